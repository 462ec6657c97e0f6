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

use super::agreement::matches;
use super::jaccard::weighted_jaccard;

/// The bounds of a threshold that only a report reads are this part of the others.
const REPORTED_PART: usize = 16;

/// A document with its signature and its weighted bag.
#[derive(Clone, Debug)]
pub struct Member {
    pub name: String,
    pub signature: Vec<u8>,
    pub tokens: Vec<u64>,
    pub weights: Vec<f64>,
}

impl Member {
    fn bytes(&self) -> usize {
        self.name.len() + self.signature.len() + 16 * self.tokens.len()
    }
}

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

/// The comparison of the newest member with a held one, made once for all thresholds.
#[derive(Clone, Copy, Default)]
struct Comparison {
    /// The number of the member that was compared last.
    member: u64,
    agreeing: usize,
    similarity: Option<f64>,
}

/// The members that a cell holds, and their comparisons with the newest member.
struct Held {
    value_bits: usize,
    members: Vec<Member>,
    /// The signatures of all members, one after the other.
    signatures: Vec<u8>,
    comparisons: Vec<Comparison>,
    bytes: usize,
    /// The number of the newest member.
    newest: u64,
}

impl Held {
    /// The comparison of `member` with the held member `number`, with the number of agreeing values.
    fn comparison(&mut self, member: &Member, number: u32) -> &mut Comparison {
        let comparison = &mut self.comparisons[number as usize];
        if comparison.member != self.newest {
            let (begin, bytes) = (number as usize * member.signature.len(), member.signature.len());
            let signature = &self.signatures[begin..begin + bytes];
            *comparison = Comparison {
                member: self.newest,
                agreeing: matches(&member.signature, signature, self.value_bits),
                similarity: None,
            };
        }
        comparison
    }

    /// (agreeing values, similarity) of two members, if both reach their limits.
    fn similarity(&mut self, member: &Member, number: u32, limits: Limits) -> Option<(usize, f64)> {
        let Comparison {
            agreeing, similarity, ..
        } = *self.comparison(member, number);
        if agreeing < limits.min_matches {
            return None;
        }
        let similarity = similarity.unwrap_or_else(|| {
            let other = &self.members[number as usize];
            weighted_jaccard(&member.tokens, &member.weights, &other.tokens, &other.weights)
        });
        self.comparisons[number as usize].similarity = Some(similarity);
        (similarity >= limits.threshold).then_some((agreeing, similarity))
    }

    fn push(&mut self, member: Member) -> u32 {
        let number = self.members.len() as u32;
        self.bytes += member.bytes();
        self.signatures.extend_from_slice(&member.signature);
        self.members.push(member);
        self.comparisons.push(Comparison::default());
        number
    }
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
            held: Held {
                value_bits,
                members: Vec::new(),
                signatures: Vec::new(),
                comparisons: Vec::new(),
                bytes: 0,
                newest: 0,
            },
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dedup::keep_rule::{Keep, decisions};
    use crate::dedup::similarity_graph::Edge;
    use proptest::prelude::*;

    const LIMITS: Limits = Limits {
        min_matches: 0,
        threshold: 0.6,
        decides: true,
    };
    const BOUNDS: Bounds = Bounds {
        signatures: 4096,
        bags: 64,
        neighbours: 3,
        held_bytes: 1 << 30,
    };

    /// Families of bags: a member differs from its family's first bag in some tokens.
    fn members() -> impl Strategy<Value = Vec<Member>> {
        let member = (0u64..3, proptest::collection::vec(0u64..12, 0..5));
        proptest::collection::vec(member, 0..60).prop_map(|members| {
            let of = |(number, (family, changed)): (usize, (u64, Vec<u64>))| {
                let mut tokens: BTreeMap<u64, f64> = (0..12).map(|t| (100 * family + t, 1.0)).collect();
                for token in changed {
                    tokens.remove(&(100 * family + token));
                    tokens.insert(1000 + 100 * number as u64 + token, 1.0);
                }
                let (tokens, weights) = tokens.into_iter().unzip();
                Member {
                    name: format!("{number}"),
                    signature: vec![0; 8],
                    tokens,
                    weights,
                }
            };
            members.into_iter().enumerate().map(of).collect()
        })
    }

    /// A member with `n` shared tokens and `own` tokens of its own.
    fn copy(number: u64, n: u64, own: u64) -> Member {
        Member {
            name: number.to_string(),
            signature: vec![7; 8],
            tokens: (0..n)
                .chain((0..own).map(|token| 1000 + 100 * number + token))
                .collect(),
            weights: vec![1.0; (n + own) as usize],
        }
    }

    fn edge(left: usize, right: usize, similarity: f64) -> Edge {
        Edge {
            left: left as u32,
            right: right as u32,
            similarity,
        }
    }

    /// The edges (name, place) of the members, of which the first `leading` may lead, and what each lacks.
    fn compared(
        members: &[Member],
        limits: &[Limits],
        bounds: Bounds,
        leading: usize,
    ) -> (Vec<Edge>, Vec<Unled>) {
        let (mut cell, mut edges) = (Cell::new(8, limits, bounds), Vec::new());
        let unled = members.iter().enumerate().map(|(number, member)| {
            cell.add(member.clone(), &[1], u64::MAX, number < leading, |other| {
                edges.push(edge(other.name.parse().unwrap(), number, other.similarity));
            })
        });
        let unled = unled.collect();
        (edges, unled)
    }

    fn edges_by_leaders(members: &[Member], limits: Limits) -> Vec<Edge> {
        compared(members, &[limits], BOUNDS, members.len()).0
    }

    fn all_edges(members: &[Member]) -> Vec<Edge> {
        let mut edges = Vec::new();
        for j in 0..members.len() {
            for i in 0..j {
                let (a, b) = (&members[i], &members[j]);
                let similarity = weighted_jaccard(&a.tokens, &a.weights, &b.tokens, &b.weights);
                if similarity >= LIMITS.threshold {
                    edges.push(edge(i, j, similarity));
                }
            }
        }
        edges
    }

    fn kept(n: usize, edges: &[Edge]) -> Vec<bool> {
        decisions(Keep::IndependentSet, n, edges)
            .iter()
            .map(Option::is_none)
            .collect()
    }

    proptest! {
        #[test]
        fn a_cell_keeps_what_all_its_pairs_would_keep(members in members()) {
            let few = edges_by_leaders(&members, LIMITS);
            let all = all_edges(&members);
            for found in &few {
                prop_assert!(all.iter().any(|e| (e.left, e.right) == (found.left, found.right)));
            }
            prop_assert_eq!(kept(members.len(), &few), kept(members.len(), &all));
        }

        #[test]
        fn members_without_a_leader_among_the_first_are_led_in_later_rounds(members in members(), leading in 1usize..9) {
            let (mut edges, mut open) = (Vec::new(), (0..members.len()).collect::<Vec<_>>());
            while !open.is_empty() {
                let of_round: Vec<Member> = open.iter().map(|&number| members[number].clone()).collect();
                let (found, unled) = compared(&of_round, &[LIMITS], BOUNDS, leading);
                edges.extend(found.iter().map(|e| edge(e.left as usize, open[e.right as usize], e.similarity)));
                open = (leading..open.len()).filter(|&at| unled[at].deciding != 0).map(|at| open[at]).collect();
            }
            prop_assert_eq!(kept(members.len(), &edges), kept(members.len(), &all_edges(&members)));
        }
    }

    #[test]
    fn many_near_copies_make_few_edges() {
        let members: Vec<Member> = (0..2000).map(|number| copy(number, 20, 1)).collect();
        let edges = edges_by_leaders(&members, LIMITS);
        assert!(edges.len() <= 4 * 2000);
        assert_eq!(kept(2000, &edges).iter().filter(|kept| **kept).count(), 1);
    }

    #[test]
    fn a_member_of_a_family_below_the_threshold_counts_the_leaders_it_was_not_compared_with() {
        let members: Vec<Member> = (0..200).map(|number| copy(number, 10, 4)).collect(); // .56 between any two
        let bounds = Bounds { bags: 16, ..BOUNDS };
        let (edges, unled) = compared(&members, &[LIMITS], bounds, 200);
        assert!(edges.is_empty());
        assert!(unled.iter().all(|it| it.deciding == 1));
        assert_eq!((unled[16].uncompared, unled[199].uncompared), (0, 183));
        let bounds = Bounds {
            signatures: 50,
            bags: 64,
            ..BOUNDS
        };
        assert_eq!(compared(&members, &[LIMITS], bounds, 200).1[199].uncompared, 149);
        let bounds = Bounds {
            held_bytes: 20 * members[0].bytes() + 50,
            ..BOUNDS
        };
        assert_eq!(compared(&members, &[LIMITS], bounds, 200).1[199].uncompared, 179);
    }

    #[test]
    fn a_threshold_of_a_report_costs_and_counts_little() {
        let members: Vec<Member> = (0..200).map(|number| copy(number, 20, 1)).collect(); // .9 between any two
        let reported = Limits {
            threshold: 0.95,
            decides: false,
            ..LIMITS
        };
        let (edges, unled) = compared(&members, &[LIMITS, reported], BOUNDS, 200);
        assert_eq!(edges.len(), compared(&members, &[LIMITS], BOUNDS, 200).0.len());
        assert!(unled[1..].iter().all(|it| *it == Unled::default()));
    }

    #[test]
    fn a_copy_finds_its_original_among_leaders_that_agree_less() {
        let mut members: Vec<Member> = (0..200).map(|number| copy(number, 10, 4)).collect();
        members[150].signature = vec![7, 7, 7, 7, 7, 7, 8, 9];
        let mut twin = members[150].clone();
        twin.name = "200".to_owned();
        members.push(twin);
        let bounds = Bounds { bags: 4, ..BOUNDS };
        let (edges, unled) = compared(&members, &[LIMITS], bounds, 201);
        assert_eq!((edges[0].left, edges[0].right, edges.len()), (150, 200, 1));
        assert_eq!(unled[200], Unled::default());
    }

    #[test]
    fn members_of_other_buckets_are_not_compared() {
        let mut cell = Cell::new(8, &[LIMITS], BOUNDS);
        cell.add(copy(0, 20, 0), &[1, 2], 1, true, |_| panic!());
        assert_eq!(cell.add(copy(1, 20, 0), &[3], 1, true, |_| panic!()).deciding, 1);
        let mut n_edges = 0;
        cell.add(copy(2, 20, 0), &[2, 3], 1, true, |_| n_edges += 1);
        assert_eq!(n_edges, 2);
    }

    #[test]
    fn members_with_unlike_signatures_are_not_compared() {
        let mut members: Vec<Member> = (0..2u8)
            .map(|number| Member {
                name: number.to_string(),
                signature: vec![number; 8],
                tokens: vec![1],
                weights: vec![1.0],
            })
            .collect();
        let limits = Limits {
            min_matches: 4,
            ..LIMITS
        };
        assert_eq!(edges_by_leaders(&members, limits).len(), 0);
        members[1].signature = vec![0, 0, 0, 0, 1, 1, 1, 1];
        assert_eq!(edges_by_leaders(&members, limits).len(), 1);
    }
}
