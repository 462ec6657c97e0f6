use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::dedup::bags::jaccard::weighted_jaccard;
use crate::dedup::keep_rule::{Keep, decisions};
use crate::dedup::similarity_graph::Edge;

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
