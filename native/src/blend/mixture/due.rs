//! The rows of one source that are due on one stretch, and the tick at which each becomes due.

pub const TICK_BITS: u32 = 16;

/// Largest error of a guessed tick that is used; see `Ramp::guess`.
const UNSURE: f64 = 1.0 / 256.0;

const TWO_32: f64 = 4_294_967_296.0;
const TWO_48: f64 = 281_474_976_710_656.0;
const TWO_64: f64 = 18_446_744_073_709_551_616.0;

/// T_s of one source on one stretch.
#[derive(Clone, Copy)]
pub struct Ramp {
    pub base: i128,
    pub a: i64,
    pub slope: i64, // b - a, over `length` rows
    pub length: i64,
}

impl Ramp {
    /// T_s after `ticks` of the stretch, rounded down to 2^-64 rows.
    pub fn due(&self, ticks: i128) -> i128 {
        let flat = self.base + i128::from(self.a) * (ticks << TICK_BITS);
        if self.slope == 0 {
            return flat;
        }
        let (square, rest) = self.square(ticks as u128);
        let slope = i128::from(self.slope);
        flat + slope * square as i128 + (slope * rest as i128).div_euclid(2 * i128::from(self.length))
    }

    /// ticks^2 / 2L and its remainder; the square itself may have 156 bits.
    fn square(&self, ticks: u128) -> (u128, u128) {
        let twice = 2 * self.length as u128;
        if ticks < 1 << 64 {
            return (ticks * ticks / twice, ticks * ticks % twice);
        }
        let (rows, part) = (ticks >> TICK_BITS, ticks & ((1 << TICK_BITS) - 1));
        let (high, left) = (rows * rows / twice, rows * rows % twice);
        let low = (left << 32) + ((rows * part) << (TICK_BITS + 1)) + part * part;
        ((high << 32) + low / twice, low % twice)
    }

    /// Ticks after `begin` until T_s has grown by `need`, in floating point; None where its error might reach 2^-8
    /// ticks.
    ///
    /// Every operation is correctly rounded, nothing cancels while the root is at least half the share, and a
    /// result below 2^36 ticks is then off by less than 2^-10.
    fn guess(&self, begin: i128, need: i128) -> Option<f64> {
        let need = need as f64 / TWO_64;
        let rows = if self.slope == 0 {
            need * TWO_32 / self.a as f64
        } else {
            let length = i128::from(self.length);
            let share = i128::from(self.a) * (length << TICK_BITS) + i128::from(self.slope) * begin;
            let share = share as f64 / (self.length as f64 * TWO_48);
            let squared = share * share + 2.0 * need * (self.slope as f64 / self.length as f64 / TWO_32);
            if squared < share * share / 4.0 {
                return None;
            }
            2.0 * need / (share + squared.sqrt())
        };
        let ticks = rows * 65_536.0;
        (ticks > 0.0 && ticks < 68_719_476_736.0).then_some(ticks)
    }

    /// The first tick in (begin, end] at which T_s >= `target`, which is true at `end` and false at `begin`.
    pub fn first(&self, begin: i128, due_at_begin: i128, end: i128, target: i128) -> i128 {
        let guess = self.guess(begin, target - due_at_begin);
        let (mut before, mut at) = (begin, end);
        if let Some(ticks) = guess {
            let up = ticks.ceil();
            if up - ticks > UNSURE && up - ticks < 1.0 - UNSURE {
                return begin + up as i128;
            }
            let near = begin + ticks.round() as i128;
            for tick in [near - 1, near, near + 1] {
                if tick > before && tick < at {
                    if self.due(tick) >= target {
                        at = tick;
                    } else {
                        before = tick;
                    }
                }
            }
        }
        while at - before > 1 {
            let middle = before + (at - before) / 2;
            if self.due(middle) >= target {
                at = middle;
            } else {
                before = middle;
            }
        }
        at
    }
}
