//! The knots of a schedule as stretches of rows on which every share is constant or linear.
//!
//! A cosine is a fixed set of chords, so that every row follows from integers.

use super::bounds::Error;

/// 2^32: all shares of a knot sum to it.
pub const WHOLE: i64 = 1 << 32;
const MAX_CELLS: usize = 1 << 22; // stretches times sources, 24 bytes each

const CHORDS: usize = 64;
/// (1 - cos(pi i / 64)) / 2 in units of 2^-32, to the nearest, up to the middle; a test recomputes them.
#[rustfmt::skip]
const RISE: [i64; CHORDS / 2 + 1] = [
    0, 2_586_738, 10_340_721, 23_243_268, 41_263_296, 64_357_394, 92_469_925,
    125_533_164, 163_467_459, 206_181_423, 253_572_154, 305_525_484, 361_916_252, 422_608_608,
    487_456_340, 556_303_222, 628_983_398, 705_321_774, 785_134_444, 868_229_132, 954_405_657,
    1_043_456_411, 1_135_166_864, 1_229_316_076, 1_325_677_235, 1_424_018_197, 1_524_102_050, 1_625_687_685,
    1_728_530_372, 1_832_382_353, 1_936_993_442, 2_042_111_620, 2_147_483_648,
];

/// The rise after `chord` of all chords; the second half mirrors the first.
fn rise(chord: usize) -> i64 {
    RISE.get(chord)
        .copied()
        .unwrap_or_else(|| WHOLE - RISE[CHORDS - chord])
}

/// How shares change from one knot to the next.
#[derive(Clone, Copy, PartialEq)]
pub enum Kind {
    Stepped,
    Linear,
    Cosine,
}

/// The shares of every knot, row by row.
pub struct Shares {
    pub n_sources: usize,
    pub values: Vec<i64>,
}

/// Stretches of rows: where each begins, and the shares there.
pub struct Ramps {
    pub from: Vec<i64>,
    pub shares: Vec<i64>,
    pub sloped: bool,
}

pub fn ramps(kind: Kind, rows_per_step: i64, steps: &[i64], shares: &Shares) -> Result<Ramps, Error> {
    check(kind, steps, shares)?;
    let knots: Vec<&[i64]> = shares.values.chunks(shares.n_sources).collect();
    let mut made = Ramps {
        from: Vec::new(),
        shares: Vec::new(),
        sloped: kind != Kind::Stepped,
    };
    if steps[0] > 0 {
        made.push(0, knots[0]);
    }
    for (knot, &step) in steps.iter().enumerate() {
        let row = step * rows_per_step;
        made.push(row, knots[knot]);
        if kind == Kind::Cosine && knot + 1 < steps.len() {
            let length = (steps[knot + 1] - step) * rows_per_step;
            let chords = (0..=6)
                .map(|it| CHORDS >> it)
                .find(|&it| it as i64 <= length)
                .unwrap_or(1);
            for chord in 1..chords {
                let rise = rise(chord * (CHORDS / chords));
                let after = (i128::from(length) * chord as i128 / chords as i128) as i64;
                made.push(row + after, &between(knots[knot], knots[knot + 1], rise));
            }
        }
    }
    Ok(made)
}

impl Ramps {
    fn push(&mut self, row: i64, shares: &[i64]) {
        self.from.push(row);
        self.shares.extend_from_slice(shares);
    }
}

/// a + (b - a) rise / 2^32, rounded by largest remainders (ties to the earlier source), which preserves the sum.
fn between(a: &[i64], b: &[i64], rise: i64) -> Vec<i64> {
    let exact: Vec<i128> = a
        .iter()
        .zip(b)
        .map(|(&a, &b)| (i128::from(a) << 32) + i128::from(b - a) * i128::from(rise))
        .collect();
    let mut shares: Vec<i64> = exact.iter().map(|it| (it >> 32) as i64).collect();
    let missing = (WHOLE - shares.iter().sum::<i64>()) as usize;
    let mut order: Vec<usize> = (0..a.len()).collect();
    order.sort_by_key(|&source| std::cmp::Reverse(exact[source] & 0xFFFF_FFFF)); // stable
    for &source in &order[..missing] {
        shares[source] += 1;
    }
    shares
}

fn check(kind: Kind, steps: &[i64], shares: &Shares) -> Result<(), Error> {
    let fault = |message: &str| Err(Error(message.to_owned()));
    if steps.is_empty() || shares.n_sources == 0 || shares.n_sources > super::MAX_SOURCES {
        return Err(Error(format!(
            "The schedule has {} knots of {} sources. Pass at least one knot, of 1 to {} sources.",
            steps.len(),
            shares.n_sources,
            super::MAX_SOURCES
        )));
    }
    if shares.values.len() != steps.len() * shares.n_sources {
        return fault(
            "The knots do not have a share for every source. Pass one share a source in each knot.",
        );
    }
    if steps[0] < 0 || !steps.is_sorted_by(|a, b| a < b) || steps[steps.len() - 1] > super::MAX_OFFSET {
        return fault("The steps of the knots do not ascend from 0. Pass each step once, in order.");
    }
    if shares.values.iter().any(|&share| !(0..=WHOLE).contains(&share)) {
        return fault("A share is negative or above 2^32. Use shares from 0 to 2^32.");
    }
    let mut sums = shares
        .values
        .chunks(shares.n_sources)
        .map(|knot| knot.iter().sum::<i64>());
    if sums.any(|sum| sum != WHOLE) {
        return fault("The shares of a knot do not sum to 2^32. Scale them.");
    }
    let stretches = if kind == Kind::Cosine {
        CHORDS * steps.len()
    } else {
        steps.len() + 1
    };
    if stretches.saturating_mul(shares.n_sources) > MAX_CELLS {
        return Err(Error(format!(
            "The schedule has {stretches} stretches of {} sources, more than {MAX_CELLS} shares. Use fewer knots.",
            shares.n_sources
        )));
    }
    Ok(())
}
