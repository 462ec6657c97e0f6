//! Fixed whole weights: the order of the rows of a step, which repeats.
//!
//! The j-th of the w rows of a source happens at (2j+1) / 2w of the step. In fixed point of 42 bits two
//! different times of weights up to 2^20 have different floors in the same order, and equal times equal ones.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::bounds::{Error, MAX_ROWS_PER_STEP};

const TIME_BITS: u32 = 42;
const SOURCE_BITS: u32 = 20; // as many sources as a step may have rows

/// Rows of all patterns in the cache; a blend updated ten thousand times keeps its weights, not their patterns.
const KEPT_ROWS: usize = 1 << 22;

static KEPT: Mutex<VecDeque<Arc<Pattern>>> = Mutex::new(VecDeque::new());

/// The order of the rows of a step.
pub struct Pattern {
    source: Vec<u32>, // for each row of the step
    index: Vec<u32>,  // for each row: its number among the rows of its source in the step
    first: Vec<u32>,  // for each source: where its rows begin in `place`
    place: Vec<u32>,  // at first[s] + j: the place in the step of the j-th row of source s
}

impl Pattern {
    fn new(weights: &[i64]) -> Self {
        let mut first = Vec::with_capacity(weights.len() + 1);
        let mut order = Vec::new();
        for (source, &weight) in weights.iter().enumerate() {
            first.push(order.len() as u32);
            for j in 0..weight {
                let time = (((2 * j + 1) as u64) << TIME_BITS) / (2 * weight) as u64;
                order.push((time << SOURCE_BITS) | source as u64);
            }
        }
        first.push(order.len() as u32);
        order.sort_unstable();
        let source: Vec<u32> = order
            .iter()
            .map(|key| (key & ((1 << SOURCE_BITS) - 1)) as u32)
            .collect();
        let mut seen = vec![0u32; weights.len()];
        let mut place = vec![0u32; source.len()];
        let mut index = vec![0u32; source.len()];
        for (row, &of) in source.iter().enumerate() {
            let count = &mut seen[of as usize];
            index[row] = *count;
            place[(first[of as usize] + *count) as usize] = row as u32;
            *count += 1;
        }
        Self {
            source,
            index,
            first,
            place,
        }
    }

    fn of(&self, source: usize) -> &[u32] {
        &self.place[self.first[source] as usize..self.first[source + 1] as usize]
    }
}

/// Rows per step of each source, the same in every step.
pub struct Whole {
    pub weights: Vec<i64>,
    pub rows_per_step: i64,
    pattern: Mutex<Weak<Pattern>>,
}

impl Whole {
    pub fn new(weights: Vec<i64>) -> Result<Self, Error> {
        if let Some(negative) = weights.iter().find(|&&weight| weight < 0) {
            return Err(Error(format!(
                "A weight is {negative}. Use zero or more rows a step."
            )));
        }
        let sum = weights
            .iter()
            .fold(0i64, |sum, &weight| sum.saturating_add(weight));
        if !(1..=MAX_ROWS_PER_STEP).contains(&sum) {
            return Err(Error(format!(
                "The weights sum to {sum} rows a step. Use 1 to {MAX_ROWS_PER_STEP}."
            )));
        }
        if weights.len() > 1 << SOURCE_BITS {
            return Err(Error(format!(
                "There are {} sources. Use at most {}.",
                weights.len(),
                1 << SOURCE_BITS
            )));
        }
        Ok(Self {
            weights,
            rows_per_step: sum,
            pattern: Mutex::new(Weak::new()),
        })
    }

    fn pattern(&self) -> Arc<Pattern> {
        let mut mine = unpoisoned(&self.pattern);
        if let Some(known) = mine.upgrade() {
            return known;
        }
        let made = Arc::new(Pattern::new(&self.weights));
        *mine = Arc::downgrade(&made);
        let mut kept = unpoisoned(&KEPT);
        kept.push_back(made.clone());
        let mut rows: usize = kept.iter().map(|it| it.source.len()).sum();
        while rows > KEPT_ROWS && kept.len() > 1 {
            rows -= kept.pop_front().map_or(0, |it| it.source.len());
        }
        made
    }

    /// How many of the first `row` rows each source has.
    pub fn counts(&self, row: i64) -> Vec<i64> {
        let (steps, rest) = (row / self.rows_per_step, row % self.rows_per_step);
        let whole = self.weights.iter().map(|weight| steps * weight);
        if rest == 0 {
            return whole.collect(); // the begin of a step needs no pattern
        }
        let pattern = self.pattern();
        let within = |source| {
            pattern
                .of(source)
                .partition_point(|&place| i64::from(place) < rest) as i64
        };
        whole
            .enumerate()
            .map(|(source, count)| count + within(source))
            .collect()
    }

    /// The source of each row, and its index within the source.
    pub fn place(&self, rows: &[i64], mut put: impl FnMut(usize, usize, i64)) {
        let pattern = self.pattern();
        for (number, row) in rows.iter().enumerate() {
            let (step, rest) = (row / self.rows_per_step, (row % self.rows_per_step) as usize);
            let source = pattern.source[rest] as usize;
            put(
                number,
                source,
                step * self.weights[source] + i64::from(pattern.index[rest]),
            );
        }
    }

    /// The row that holds the `index`-th row of `source`; None for a source of weight zero.
    pub fn row_of(&self, source: usize, index: i64) -> Option<i64> {
        let weight = self.weights[source];
        if weight == 0 {
            return None;
        }
        let place = self.pattern().of(source)[(index % weight) as usize];
        (index / weight)
            .checked_mul(self.rows_per_step)?
            .checked_add(i64::from(place))
    }

    /// The most whole steps that need at most `rows` rows of `source`.
    pub fn steps_within(&self, source: usize, rows: i64) -> Option<i64> {
        rows.checked_div(self.weights[source])
    }
}

fn unpoisoned<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner) // it guards a cache, which is valid at any time
}
