//! Proportions that change along the rows: the exact time of every row of every source.
//!
//! A share is a whole number of 2^-32, and all shares of a knot sum to 2^32. T_s(x), the rows of source s that
//! are due after x rows, is the integral of its share: quadratic between two knots, exact in units of 2^-64
//! rows. The j-th row of s happens at the first tick of 2^-16 row at which T_s >= j + 1/2; rows stand in order
//! of (tick, source).
//!
//! ```text
//! T_s(x_k + u) = base + a u + (b - a) u^2 / 2L        0 <= u <= L, from knot k to the next, L rows on
//! ```
//!
//! Rows and ticks stay below 2^62 and 2^78, T below 2^126. After x rows no count is further from T_s(x) than
//! half a row, so with S sources the n-th row of the blend happens within S/2 of x = n, in a window around n.

use super::bounds::{Error, MAX_ROWS_PER_STEP};
use super::due::{Ramp, TICK_BITS};
use super::ramps::{Kind, Shares, ramps};

const HALF: i128 = 1 << 63;
const FROM_START: i128 = -1; // the tick before the first
const SPAN: i64 = 1 << 16; // rows sorted at once
const SOURCE_BITS: u32 = 16;
pub const MAX_SOURCES: usize = 1 << SOURCE_BITS;

/// Rows per step, and the shares of all sources along the rows; `Timeline` adds the debts of earlier plans.
pub struct Schedule {
    pub rows_per_step: i64,
    pub n_sources: usize,
    from: Vec<i64>,   // the row at which each stretch begins, the first 0
    shares: Vec<i64>, // [stretch, source], at its begin
    sloped: bool,     // whether shares run to those of the next stretch; the last stretch is always flat
    base: Vec<i128>,  // [stretch, source], T_s at its begin
}

/// The rows that happen in a window of ticks.
struct Window {
    first_row: i64,
    counts: Vec<i64>, // rows of each source before the window
    order: Vec<u64>,  // for each row: its tick after the window's begin, then its source
}

impl Window {
    fn source(&self, row: usize) -> usize {
        (self.order[row] & (MAX_SOURCES as u64 - 1)) as usize
    }
}

impl Schedule {
    /// `steps` are the steps of the knots, ascending from 0; the `shares` of each knot sum to 2^32.
    pub fn new(kind: Kind, rows_per_step: i64, steps: &[i64], shares: &Shares) -> Result<Self, Error> {
        if !(1..=MAX_ROWS_PER_STEP).contains(&rows_per_step) {
            return Err(Error(format!(
                "The schedule has {rows_per_step} rows a step. Use 1 to {MAX_ROWS_PER_STEP}."
            )));
        }
        let made = ramps(kind, rows_per_step, steps, shares)?;
        let n_sources = shares.n_sources;
        let mut base = vec![0i128; made.shares.len()];
        for stretch in 1..made.from.len() {
            let length = i128::from(made.from[stretch] - made.from[stretch - 1]);
            for source in 0..n_sources {
                let at = stretch * n_sources + source;
                let (a, b) = (
                    i128::from(made.shares[at - n_sources]),
                    i128::from(made.shares[at]),
                );
                let mean = if made.sloped { a + b } else { 2 * a };
                base[at] = base[at - n_sources] + ((mean * length) << 31);
            }
        }
        Ok(Self {
            rows_per_step,
            n_sources,
            from: made.from,
            shares: made.shares,
            sloped: made.sloped,
            base,
        })
    }

    fn ramp(&self, stretch: usize, source: usize) -> Ramp {
        let at = stretch * self.n_sources + source;
        let (base, a) = (self.base[at], self.shares[at]);
        match self.from.get(stretch + 1) {
            Some(next) if self.sloped => {
                let slope = self.shares[at + self.n_sources] - a;
                Ramp {
                    base,
                    a,
                    slope,
                    length: next - self.from[stretch],
                }
            }
            _ => Ramp {
                base,
                a,
                slope: 0,
                length: 1,
            },
        }
    }

    fn stretch(&self, tick: i128) -> usize {
        let row = tick >> TICK_BITS;
        self.from
            .partition_point(|&from| i128::from(from) <= row)
            .saturating_sub(1)
    }

    fn begin(&self, stretch: usize) -> i128 {
        i128::from(self.from[stretch]) << TICK_BITS
    }

    /// T_s at a row, in units of 2^-64 rows.
    pub fn due(&self, source: usize, row: i64) -> i128 {
        let tick = i128::from(row) << TICK_BITS;
        let stretch = self.stretch(tick);
        self.ramp(stretch, source).due(tick - self.begin(stretch))
    }

    /// Rows of `source` that happen up to and including `tick`.
    fn count(&self, source: usize, owed: i128, stretch: usize, tick: i128) -> i64 {
        if tick < 0 {
            return 0;
        }
        happened(self.ramp(stretch, source).due(tick - self.begin(stretch)) + owed)
    }

    fn counts_at(&self, owed: &[i128], tick: i128) -> (Vec<i64>, i64) {
        let stretch = self.stretch(tick.max(0));
        let counts: Vec<i64> = (0..self.n_sources)
            .map(|source| self.count(source, owed_to(owed, source), stretch, tick))
            .collect();
        let sum = counts.iter().sum();
        (counts, sum)
    }

    /// A window that holds the rows `first` to `last`, in order.
    fn window(&self, owed: &[i128], first: i64, last: i64) -> Window {
        let mut margin = self.n_sources as i128 / 2 + 2;
        let (begin, counts, first_row) = loop {
            let begin = ((i128::from(first) - margin) << TICK_BITS).max(FROM_START);
            let (counts, sum) = self.counts_at(owed, begin);
            if sum <= first || begin == FROM_START {
                break (begin, counts, sum);
            }
            margin *= 2;
        };
        let mut order = Vec::with_capacity((last - first_row + 2) as usize + self.n_sources);
        let mut reached = (begin, counts.clone(), first_row);
        let mut margin = self.n_sources as i128 / 2 + 2;
        while reached.2 <= last {
            let end = ((i128::from(last) + margin) << TICK_BITS).max(reached.0 + 1);
            reached = self.happen(owed, begin, reached, end, &mut order);
            margin *= 2;
        }
        order.sort_unstable();
        Window {
            first_row,
            counts,
            order,
        }
    }

    /// Append the rows that happen from the tick `reached` to `end`, stretch by stretch.
    fn happen(
        &self,
        owed: &[i128],
        window: i128,
        reached: (i128, Vec<i64>, i64),
        end: i128,
        order: &mut Vec<u64>,
    ) -> (i128, Vec<i64>, i64) {
        let (mut tick, mut counts, mut sum) = reached;
        while tick < end {
            let stretch = self.stretch(tick.max(0));
            let front = self.begin(stretch);
            let stop = match self.from.get(stretch + 1) {
                Some(_) => self.begin(stretch + 1).min(end),
                None => end,
            };
            for (source, count) in counts.iter_mut().enumerate() {
                let (ramp, owed) = (self.ramp(stretch, source), owed_to(owed, source));
                let until = happened(ramp.due(stop - front) + owed);
                if until <= *count {
                    continue;
                }
                let begin = (tick - front).max(0);
                let due = ramp.due(begin);
                for index in *count..until {
                    let target = (i128::from(index) << 64) + HALF - owed;
                    let at = if due >= target {
                        begin
                    } else {
                        ramp.first(begin, due, stop - front, target)
                    };
                    order.push((((front + at - window) as u64) << SOURCE_BITS) | source as u64);
                }
                sum += until - *count;
                *count = until;
            }
            tick = stop;
        }
        (tick, counts, sum)
    }

    /// How many of the first `row` rows each source has.
    pub fn counts(&self, owed: &[i128], row: i64) -> Vec<i64> {
        if row == 0 {
            return vec![0; self.n_sources];
        }
        let window = self.window(owed, row, row);
        let mut counts = window.counts.clone();
        for at in 0..(row - window.first_row) as usize {
            counts[window.source(at)] += 1;
        }
        counts
    }

    /// The source of each row, and its index within the source.
    pub fn place(&self, owed: &[i128], rows: &[i64], mut put: impl FnMut(usize, usize, i64)) {
        let mut numbers: Vec<usize> = (0..rows.len()).collect();
        if !rows.is_sorted() {
            numbers.sort_unstable_by_key(|&number| rows[number]);
        }
        let apart = 2 * self.n_sources as i64 + 4; // rows further apart have windows of their own
        let mut rest = numbers.as_slice();
        while let Some(&head) = rest.first() {
            let first = rows[head];
            let together = 1 + rest
                .windows(2)
                .take_while(|it| rows[it[1]] - rows[it[0]] <= apart && rows[it[1]] - first < SPAN)
                .count();
            let (chosen, others) = rest.split_at(together);
            self.place_near(owed, rows, chosen, &mut put);
            rest = others;
        }
    }

    fn place_near(
        &self,
        owed: &[i128],
        rows: &[i64],
        ascending: &[usize],
        put: &mut impl FnMut(usize, usize, i64),
    ) {
        let last = ascending.last().map_or(0, |&number| rows[number]);
        let mut window = self.window(owed, rows[ascending[0]], last);
        let mut at = 0;
        for &number in ascending {
            let wanted = (rows[number] - window.first_row) as usize;
            while at < wanted {
                let source = window.source(at);
                window.counts[source] += 1;
                at += 1;
            }
            let source = window.source(at);
            put(number, source, window.counts[source]);
        }
    }

    /// The row that holds the `index`-th row of `source`; None where the schedule never reaches it.
    pub fn row_of(&self, owed: &[i128], source: usize, index: i64) -> Option<i64> {
        let target = (i128::from(index) << 64) + HALF - owed_to(owed, source);
        let n = self.n_sources;
        let mut low = 0; // the last stretch that begins before the row happens
        let mut high = self.from.len();
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if self.base[middle * n + source] < target {
                low = middle;
            } else {
                high = middle;
            }
        }
        let (ramp, front) = (self.ramp(low, source), self.begin(low));
        let tick = if ramp.base >= target {
            front
        } else if low + 1 < self.from.len() {
            front + ramp.first(0, ramp.base, self.begin(low + 1) - front, target)
        } else {
            let a = u128::try_from(ramp.a).ok().filter(|&it| it > 0)? << TICK_BITS;
            front + ((target - ramp.base) as u128).div_ceil(a) as i128
        };
        if tick >> TICK_BITS > 1 << 62 {
            return None;
        }
        let (before, mut row) = self.counts_at(owed, tick - 1);
        let stretch = self.stretch(tick);
        for (other, before) in before.iter().enumerate().take(source) {
            row += self.count(other, owed_to(owed, other), stretch, tick) - before;
        }
        Some(row + index - before[source])
    }

    /// The most whole steps that need at most `rows` rows of `source`; None if no number of steps needs more.
    pub fn steps_within(&self, owed: &[i128], source: usize, rows: i64) -> Option<i64> {
        Some(self.row_of(owed, source, rows)? / self.rows_per_step)
    }

    /// Rows due to each source after `row` rows and not yet delivered, in units of 2^-64 rows.
    pub fn owed_after(&self, owed: &[i128], row: i64) -> Vec<i128> {
        let counts = self.counts(owed, row);
        (0..self.n_sources)
            .map(|source| self.due(source, row) + owed_to(owed, source) - (i128::from(counts[source]) << 64))
            .collect()
    }
}

/// Rows that have happened where `due` rows are due.
fn happened(due: i128) -> i64 {
    ((due + HALF) >> 64).max(0) as i64
}

fn owed_to(owed: &[i128], source: usize) -> i128 {
    owed.get(source).copied().unwrap_or(0)
}
