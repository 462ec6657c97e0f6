//! The members of one large cell, compared with few of each other.
//!
//! Members come in order of priority, best first, each with its buckets. At each threshold a member without a
//! similar earlier leader becomes a leader; any other follows the first similar leader it finds, and gets an edge to
//! some similar leaders and to the similar ones among that leader's first few followers. All decisive comparisons are
//! exact, so the leaders are the independent set that the keep rule finds among the members, and every other
//! member has an edge to a similar earlier leader. Followers matter where a document outside the bucket removes a
//! leader: the first ones then replace it. Each threshold has its own leaders, because the leaders of a lower
//! threshold omit pairs on which a higher one depends.
//!
//! A family just below a threshold has as many leaders as members, so three bounds keep the cost of a member
//! constant: it looks at the signatures of `signatures` leaders, those of its smallest buckets first, because a
//! copy shares nearly all its buckets; it is compared exactly with the `bags` whose signatures agree most; and the
//! bags that a cell holds take `held_bytes`. A member that finds no similar leader within these bounds says how
//! many leaders it was not compared with. A threshold that decides nothing in this run has a share of the bounds.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use held::Held;
pub use held::Member;

mod held;
#[cfg(test)]
mod tests;

/// The bounds of a threshold that only a report reads are this part of the others.
const REPORTED_PART: usize = 16;

/// The conditions for an edge at one threshold.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub min_matches: usize,
    pub threshold: f64,
    /// Whether a keep rule decides at this threshold; if not, only a report reads its edges.
    pub decides: bool,
}

/// The bounds on the cost of a member.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Leaders whose signatures a member is compared with.
    pub signatures: usize,
    /// Leaders whose bags a member is compared with.
    pub bags: usize,
    /// Followers of its first leader with which a member is compared, and similar leaders beyond one that it finds.
    pub neighbours: usize,
    /// Bytes of the members held; the followers, and the leaders of reports, stay below a quarter of them.
    pub held_bytes: usize,
}

impl Bounds {
    fn at(self, limits: Limits) -> (usize, usize) {
        let part = if limits.decides { 1 } else { REPORTED_PART };
        (self.signatures.div_ceil(part), self.bags.div_ceil(part))
    }
}

/// An edge to a held member.
#[derive(Debug)]
pub struct Neighbour<'a> {
    pub name: &'a str,
    pub agreeing: usize,
    pub similarity: f64,
}

/// The deciding thresholds, as bits, at which a member has no similar leader; and the number of leaders, at most,
/// that it was not compared with at one of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unled {
    pub deciding: u64,
    pub uncompared: u64,
}

/// The leaders at one threshold.
#[derive(Default)]
struct Leadership {
    /// The held member that leads, and the first held members that follow it.
    leaders: Vec<(u32, Vec<u32>)>,
    /// The leaders in each bucket, best first.
    buckets: FxHashMap<i64, Vec<u32>>,
    /// Leaders without room.
    not_held: u64,
    /// The number of the member that last met each leader.
    met: Vec<u64>,
}

/// The members of a cell so far: leaders at each threshold, and their first followers.
pub struct Cell {
    bounds: Bounds,
    held: Held,
    by_threshold: Vec<(Limits, Leadership)>,
}

impl Cell {
    /// An empty cell with at most 64 thresholds.
    pub fn new(value_bits: usize, limits: &[Limits], bounds: Bounds) -> Self {
        Self {
            bounds,
            held: Held::new(value_bits),
            by_threshold: limits
                .iter()
                .map(|&limits| (limits, Leadership::default()))
                .collect(),
        }
    }

    /// Compares the next best member at the `thresholds` of these bits; calls `emit` for each of its edges.
    ///
    /// A member that `leads` may become a leader or a follower; any other leaves the cell as it is. All signatures
    /// have one length.
    pub fn add(
        &mut self,
        member: Member,
        buckets: &[i64],
        thresholds: u64,
        leads: bool,
        mut emit: impl FnMut(Neighbour),
    ) -> Unled {
        self.held.newest += 1;
        let (mut unled, mut edges, mut roles) = (Unled::default(), BTreeMap::new(), Vec::new());
        for (place, (limits, leadership)) in self.by_threshold.iter_mut().enumerate() {
            if thresholds >> place & 1 == 0 {
                continue;
            }
            let (n_signatures, n_bags) = self.bounds.at(*limits);
            let (mut candidates, mut uncompared) =
                leadership.meet(&mut self.held, &member, buckets, n_signatures, limits.min_matches);
            let by_agreement = |a: &(usize, u32), b: &(usize, u32)| b.0.cmp(&a.0).then(a.1.cmp(&b.1));
            if candidates.len() > n_bags {
                uncompared += (candidates.len() - n_bags) as u64;
                candidates.select_nth_unstable_by(n_bags, by_agreement);
                candidates.truncate(n_bags);
            }
            candidates.sort_unstable_by(by_agreement);
            let (mut first, mut n_similar) = (None, 0);
            for (_, leader) in candidates {
                let number = leadership.leaders[leader as usize].0;
                if let Some(edge) = self.held.similarity(&member, number, *limits) {
                    edges.insert(number, edge);
                    first = Some(first.map_or(leader, |first: u32| first.min(leader)));
                    n_similar += 1;
                    if n_similar > self.bounds.neighbours {
                        break;
                    }
                }
            }
            let Some(first) = first else {
                if limits.decides {
                    unled.deciding |= 1 << place;
                    unled.uncompared = unled.uncompared.max(uncompared);
                }
                roles.push((place, None));
                continue;
            };
            let followers = &leadership.leaders[first as usize].1;
            for &number in followers {
                if let Some(edge) = self.held.similarity(&member, number, *limits) {
                    edges.insert(number, edge);
                }
            }
            if followers.len() < self.bounds.neighbours {
                roles.push((place, Some(first)));
            }
        }
        for (number, (agreeing, similarity)) in edges {
            let name = &self.held.members[number as usize].name;
            emit(Neighbour {
                name,
                agreeing,
                similarity,
            });
        }
        if leads && !roles.is_empty() {
            self.assign(member, buckets, &roles);
        }
        unled
    }

    /// Holds a member in its `roles`: at each threshold a leader, or a follower of a leader.
    fn assign(&mut self, member: Member, buckets: &[i64], roles: &[(usize, Option<u32>)]) {
        let decides = roles
            .iter()
            .any(|&(place, leader)| leader.is_none() && self.by_threshold[place].0.decides);
        let part = if decides { 1 } else { 4 };
        let number = (self.held.bytes + member.bytes() <= self.bounds.held_bytes / part)
            .then(|| self.held.push(member));
        for &(place, leader) in roles {
            let leadership = &mut self.by_threshold[place].1;
            match (leader, number) {
                (Some(leader), Some(number)) => leadership.leaders[leader as usize].1.push(number),
                (None, Some(number)) => leadership.push(number, buckets),
                (None, None) => leadership.not_held += 1,
                (Some(_), None) => {}
            }
        }
    }
}

impl Leadership {
    fn push(&mut self, number: u32, buckets: &[i64]) {
        let leader = self.leaders.len() as u32;
        self.leaders.push((number, Vec::new()));
        self.met.push(0);
        for &bucket in buckets {
            self.buckets.entry(bucket).or_default().push(leader);
        }
    }

    /// (agreeing values, leader) of up to `n_signatures` leaders of `buckets` that reach `min_matches`, and the
    /// number of leaders left, at most.
    fn meet(
        &mut self,
        held: &mut Held,
        member: &Member,
        buckets: &[i64],
        n_signatures: usize,
        min_matches: usize,
    ) -> (Vec<(usize, u32)>, u64) {
        let mut lists: Vec<&Vec<u32>> = buckets
            .iter()
            .filter_map(|bucket| self.buckets.get(bucket))
            .collect();
        lists.sort_by_key(|leaders| leaders.len());
        let (mut candidates, mut n_met, mut n_left) = (Vec::new(), 0, 0);
        for leaders in lists {
            for (place, &leader) in leaders.iter().enumerate() {
                if self.met[leader as usize] == held.newest {
                    continue;
                }
                if n_met == n_signatures {
                    n_left += leaders.len() - place;
                    break;
                }
                self.met[leader as usize] = held.newest;
                n_met += 1;
                let agreeing = held.comparison(member, self.leaders[leader as usize].0).agreeing;
                if agreeing >= min_matches {
                    candidates.push((agreeing, leader));
                }
            }
        }
        let n_left = n_left.min(self.leaders.len() - n_met) as u64;
        (candidates, n_left + self.not_held)
    }
}
