//! The whole blend: plans, each valid from a step on, and the rows before each.

use std::sync::Arc;

use super::bounds::{Error, MAX_OFFSET};
use super::schedule::Schedule;
use super::whole::Whole;

/// The plan of a blend from some step on.
pub enum Plan {
    Whole(Whole),
    Schedule(Schedule),
}

impl Plan {
    pub fn n_sources(&self) -> usize {
        match self {
            Plan::Whole(plan) => plan.weights.len(),
            Plan::Schedule(plan) => plan.n_sources,
        }
    }

    pub fn rows_per_step(&self) -> i64 {
        match self {
            Plan::Whole(plan) => plan.rows_per_step,
            Plan::Schedule(plan) => plan.rows_per_step,
        }
    }
}

/// A plan, and the rows of the blend before it.
///
/// `owed` has the rows that each source of a schedule was due but had not received when this schedule took
/// over, in units of 2^-64 rows, negative if it had received more. Without it, a source of a third of a row
/// per step would never be read if the shares changed at every step. Whole weights owe nothing.
struct Piece {
    start: i64,
    first_row: i64,
    before: Vec<i64>,
    owed: Vec<i128>,
    plan: Arc<Plan>,
}

impl Piece {
    fn counts(&self, row: i64) -> Vec<i64> {
        match &*self.plan {
            Plan::Whole(plan) => plan.counts(row),
            Plan::Schedule(plan) => plan.counts(&self.owed, row),
        }
    }
}

/// Pieces in the order of their steps, the first from step 0 on; blends share equal pieces in memory.
#[derive(Clone)]
pub struct Timeline {
    pieces: Vec<Arc<Piece>>,
}

impl Timeline {
    pub fn new(plan: Arc<Plan>) -> Self {
        let first = Piece {
            start: 0,
            first_row: 0,
            before: vec![0; plan.n_sources()],
            owed: Vec::new(),
            plan,
        };
        Self {
            pieces: vec![Arc::new(first)],
        }
    }

    /// Continue with `plan` from a step on, in place of earlier plans.
    pub fn go_on(&mut self, start: i64, plan: Arc<Plan>) -> Result<(), Error> {
        if !(0..=MAX_OFFSET).contains(&start) {
            return Err(Error(format!(
                "Step {start} is out of range. A blend has steps 0 to {MAX_OFFSET}."
            )));
        }
        while self.pieces.last().is_some_and(|it| it.start >= start) {
            self.pieces.pop();
        }
        let Some(last) = self.pieces.last() else {
            *self = Self::new(plan);
            return Ok(());
        };
        if plan.n_sources() < last.before.len() {
            return Err(Error(format!(
                "A plan of {} sources follows one of {}. Keep a source that ends, with weight 0.",
                plan.n_sources(),
                last.before.len()
            )));
        }
        let rows = (start - last.start) * last.plan.rows_per_step();
        let mut before: Vec<i64> = last
            .before
            .iter()
            .zip(last.counts(rows))
            .map(|(before, count)| before + count)
            .collect();
        before.resize(plan.n_sources(), 0);
        let owed = match (&*last.plan, &*plan) {
            (Plan::Schedule(ended), Plan::Schedule(_)) => ended.owed_after(&last.owed, rows),
            _ => Vec::new(),
        };
        let next = Piece {
            start,
            first_row: last.first_row + rows,
            before,
            owed,
            plan,
        };
        self.pieces.push(Arc::new(next));
        Ok(())
    }

    pub fn n_sources(&self) -> usize {
        self.pieces.last().map_or(0, |it| it.before.len())
    }

    pub fn starts(&self) -> Vec<i64> {
        self.pieces.iter().map(|it| it.start).collect()
    }

    pub fn plans(&self, from: usize) -> impl Iterator<Item = (i64, &Arc<Plan>)> {
        self.pieces.iter().skip(from).map(|it| (it.start, &it.plan))
    }

    fn number_of_step(&self, step: i64) -> usize {
        self.pieces
            .partition_point(|it| it.start <= step)
            .saturating_sub(1)
    }

    fn number_of_row(&self, row: i64) -> usize {
        self.pieces
            .partition_point(|it| it.first_row <= row)
            .saturating_sub(1)
    }

    pub fn rows_per_step(&self, step: i64) -> i64 {
        self.pieces[self.number_of_step(step)].plan.rows_per_step()
    }

    pub fn first_row(&self, step: i64) -> i64 {
        let piece = &self.pieces[self.number_of_step(step)];
        piece.first_row + (step - piece.start) * piece.plan.rows_per_step()
    }

    pub fn piece_end(&self, step: i64) -> i64 {
        self.pieces
            .get(self.number_of_step(step) + 1)
            .map_or(MAX_OFFSET, |it| it.start)
    }

    /// The first piece of steps `offset` to `stop` whose rows `ranks` does not divide: (step, rows per step).
    pub fn indivisible(&self, offset: i64, stop: i64, ranks: i64) -> Option<(i64, i64)> {
        self.pieces[self.number_of_step(offset)..]
            .iter()
            .take_while(|it| it.start < stop || it.start <= offset)
            .find(|it| it.plan.rows_per_step() % ranks != 0)
            .map(|it| (it.start, it.plan.rows_per_step()))
    }

    pub fn counts(&self, row: i64) -> Vec<i64> {
        let piece = &self.pieces[self.number_of_row(row)];
        let mut counts = piece.counts(row - piece.first_row);
        for (count, before) in counts.iter_mut().zip(&piece.before) {
            *count += before;
        }
        counts.resize(self.n_sources(), 0);
        counts
    }

    /// The source of each row, and its index within the source over the whole blend.
    pub fn place(&self, rows: &[i64], source: &mut [i64], index: &mut [i64]) {
        let mut begin = 0;
        while begin < rows.len() {
            let number = self.number_of_row(rows[begin]);
            let piece = &self.pieces[number];
            let next = self.pieces.get(number + 1).map_or(i64::MAX, |it| it.first_row);
            let length = rows[begin..]
                .iter()
                .take_while(|&&row| piece.first_row <= row && row < next)
                .count();
            let within: Vec<i64> = rows[begin..begin + length]
                .iter()
                .map(|row| row - piece.first_row)
                .collect();
            let put = |at: usize, of: usize, count: i64| {
                source[begin + at] = of as i64;
                index[begin + at] = piece.before[of] + count;
            };
            match &*piece.plan {
                Plan::Whole(plan) => plan.place(&within, put),
                Plan::Schedule(plan) => plan.place(&piece.owed, &within, put),
            }
            begin += length;
        }
    }

    pub fn step_of(&self, row: i64) -> i64 {
        let piece = &self.pieces[self.number_of_row(row)];
        piece.start + (row - piece.first_row) / piece.plan.rows_per_step()
    }

    /// The piece that holds the `index`-th row of `source`, if any: the last that begins with fewer.
    fn piece_with(&self, source: usize, index: i64) -> (&Piece, i64) {
        let before = |it: &Piece| it.before.get(source).copied().unwrap_or(0);
        let number = self
            .pieces
            .partition_point(|it| before(it) <= index)
            .saturating_sub(1);
        let piece = &*self.pieces[number];
        (piece, index - before(piece))
    }

    /// The row that holds the `index`-th row of `source`; None where the blend never reaches it.
    pub fn row_of(&self, source: usize, index: i64) -> Option<i64> {
        let (piece, index) = self.piece_with(source, index);
        if source >= piece.before.len() {
            return None;
        }
        let row = match &*piece.plan {
            Plan::Whole(plan) => plan.row_of(source, index)?,
            Plan::Schedule(plan) => plan.row_of(&piece.owed, source, index)?,
        };
        piece.first_row.checked_add(row)
    }

    /// The most whole steps from step 0 that need at most `rows` rows of `source`; None where none needs more.
    pub fn steps_within(&self, source: usize, rows: i64) -> Option<i64> {
        let (piece, rows) = self.piece_with(source, rows);
        if source >= piece.before.len() {
            return None;
        }
        let steps = match &*piece.plan {
            Plan::Whole(plan) => plan.steps_within(source, rows)?,
            Plan::Schedule(plan) => plan.steps_within(&piece.owed, source, rows)?,
        };
        piece.start.checked_add(steps)
    }
}
