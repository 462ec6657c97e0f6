//! The chords of a cosine, the error of guessed ticks, and rows mapped to sources and back.

use proptest::prelude::*;

use super::ramps::{Kind, Shares, WHOLE};
use super::schedule::Schedule;

fn shares(knots: &[Vec<i64>]) -> Shares {
    Shares {
        n_sources: knots[0].len(),
        values: knots.concat(),
    }
}

/// Shares of n sources in proportion to any numbers, summing to the whole.
fn knot(n: usize) -> impl Strategy<Value = Vec<i64>> {
    let part = prop_oneof![Just(0), 1..4i64, 1..1_000_000_000i64];
    proptest::collection::vec(part, n).prop_map(|parts| {
        let sum: i64 = parts.iter().sum();
        let mut scaled: Vec<i64> = parts
            .iter()
            .map(|&it| {
                if sum == 0 {
                    0
                } else {
                    (i128::from(it) * i128::from(WHOLE) / i128::from(sum)) as i64
                }
            })
            .collect();
        scaled[0] += WHOLE - scaled.iter().sum::<i64>();
        scaled
    })
}

/// Steps of up to five knots, and their shares.
fn knots() -> impl Strategy<Value = (Vec<i64>, Vec<Vec<i64>>)> {
    let gaps = proptest::collection::vec(prop_oneof![1..5i64, 1..1i64 << 39], 0..4);
    (gaps, 1usize..9).prop_flat_map(|(gaps, n)| {
        let steps = gaps.iter().fold(vec![0], |mut steps, gap| {
            steps.push(steps[steps.len() - 1] + gap);
            steps
        });
        let shares = proptest::collection::vec(knot(n), steps.len());
        (Just(steps), shares)
    })
}

proptest! {
    #[test]
    fn a_row_is_found_again_wherever_it_is(
        (steps, knots) in knots(),
        kind in 0usize..3,
        first in prop_oneof![0..200i64, 0..1i64 << 61],
    ) {
        let n = knots[0].len();
        let kind = [Kind::Stepped, Kind::Linear, Kind::Cosine][kind];
        let schedule = Schedule::new(kind, 1 << 20, &steps, &shares(&knots)).unwrap();
        let rows: Vec<i64> = (first..first + 40).collect();
        let mut found = vec![(0, 0); rows.len()];
        schedule.place(&[], &rows, |at, source, index| found[at] = (source, index));
        for (row, (source, index)) in rows.iter().zip(&found) {
            prop_assert_eq!(schedule.row_of(&[], *source, *index), Some(*row));
        }
        let (before, after) = (schedule.counts(&[], first), schedule.counts(&[], first + 40));
        prop_assert_eq!(before.iter().sum::<i64>(), first);
        for (source, (before, after)) in before.iter().zip(&after).enumerate() {
            let seen = found.iter().filter(|it| it.0 == source).count() as i64;
            prop_assert_eq!(after - before, seen);
            let due = schedule.due(source, first);
            let off = ((i128::from(*before) << 64) - due).abs() as f64 / 2f64.powi(64);
            prop_assert!(off <= 1.0 + n as f64 / 2.0);
        }
    }
}

#[test]
fn a_cosine_rises_as_a_cosine_does() {
    let schedule = Schedule::new(
        Kind::Cosine,
        64,
        &[0, 1],
        &shares(&[vec![WHOLE, 0], vec![0, WHOLE]]),
    )
    .unwrap();
    for row in 0..=63 {
        // the share of source 1 along a chord, from the rows due at its ends
        let grown = (schedule.due(1, row + 1) - schedule.due(1, row)) as f64 / 2f64.powi(64);
        let rise = |it: i64| (1.0 - (std::f64::consts::PI * it as f64 / 64.0).cos()) / 2.0;
        assert!((grown - (rise(row) + rise(row + 1)) / 2.0).abs() < 2e-9);
    }
}
