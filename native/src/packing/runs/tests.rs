use super::reunion::merges;
use super::*;
use proptest::prelude::*;

fn chunks() -> impl Strategy<Value = (Chunk, u32)> {
    (2u32..60, 0usize..60).prop_flat_map(|(capacity, n)| {
        (
            Just(capacity),
            prop::collection::vec(0u64..80, n),
            prop::collection::vec(prop::bool::weighted(0.2), n),
            prop::collection::vec(
                (0..n.max(1) as u32, 0..n.max(1) as u32),
                if n == 0 { 0..1 } else { 0..150 },
            ),
        )
            .prop_map(|(capacity, lengths, begins, edges)| {
                let repositories: Vec<i64> = begins
                    .iter()
                    .scan(0, |r, &b| {
                        *r += i64::from(b);
                        Some(*r)
                    })
                    .collect();
                let edges: Vec<(u32, u32)> = if lengths.is_empty() { Vec::new() } else { edges };
                (Chunk::new(lengths, &repositories, &edges, capacity), capacity)
            })
    })
}

fn visible(chunk: &Chunk, pieces: &[Piece]) -> usize {
    let mut rest = vec![u32::MAX; chunk.n_documents()];
    for piece in pieces {
        rest[piece.document as usize] = piece.sequence; // the last piece of a document comes last
    }
    for piece in pieces
        .iter()
        .filter(|p| u64::from(p.length) < u64::from(chunk.capacity))
    {
        rest[piece.document as usize] = piece.sequence;
    }
    chunk
        .edges
        .iter()
        .filter(|&&(a, b)| rest[a as usize] == rest[b as usize])
        .count()
}

fn n_sequences(pieces: &[Piece]) -> usize {
    pieces.iter().map(|p| p.sequence as usize + 1).max().unwrap_or(0)
}

/// The most dependencies any cutting of the whole order can leave visible, by trying all cuts.
fn best_cut(chunk: &Chunk) -> u32 {
    let n = chunk.n_documents();
    let mut best = 0;
    for cuts in 0u32..1 << n.saturating_sub(1) {
        let mut labels = vec![0u32; n];
        for i in 1..n {
            let forced = chunk.starts.contains(&i);
            labels[i] = labels[i - 1] + u32::from(forced || cuts >> (i - 1) & 1 == 1);
        }
        if chunk.sizes(&labels).iter().all(|&size| size <= chunk.capacity) {
            best = best.max(chunk.visible(&labels).iter().sum());
        }
    }
    best
}

/// The plan of next-fit, for comparison: the documents in order, with a new sequence for every repository and
/// for a document that does not fit.
fn next_fit(chunk: &Chunk) -> Vec<Piece> {
    let mut sequences = vec![0; chunk.n_documents()];
    let mut sequence = 0;
    let mut used = 0u64;
    let mut starts = chunk.starts.iter().peekable();
    for (document, &length) in chunk.rest.iter().enumerate() {
        let begins = starts.next_if_eq(&&document).is_some();
        if used > 0 && (begins || used + u64::from(length) > u64::from(chunk.capacity)) {
            sequence += 1;
            used = 0;
        }
        sequences[document] = sequence;
        used += u64::from(length);
    }
    placements(
        &chunk.lengths,
        chunk.capacity,
        &sequences,
        sequence + u32::from(used > 0),
    )
}

proptest! {
    #[test]
    fn as_much_is_visible_as_with_next_fit_within_the_sequences((chunk, _) in chunks(), extra in 0usize..4) {
        let least = chunk.lengths.iter().sum::<u64>().div_ceil(u64::from(chunk.capacity)) as usize;
        let pieces = plan(&chunk, (least + extra) as u64);
        prop_assert!(visible(&chunk, &pieces) >= visible(&chunk, &next_fit(&chunk)));
        let groups = joined(&chunk, &runs(&chunk));
        let filled = n_sequences(&place(&chunk, &groups));
        prop_assert!(n_sequences(&pieces) <= filled.max(least + extra));
    }

    #[test]
    fn runs_are_cut_where_the_most_stays_visible(
        lengths in prop::collection::vec(0u64..12, 1..9),
        edges in prop::collection::vec((0u32..9, 0u32..9), 0..20),
        second in 1usize..9,
    ) {
        let n = lengths.len() as u32;
        let repositories: Vec<i64> = (0..lengths.len()).map(|i| i64::from(i >= second)).collect();
        let edges: Vec<(u32, u32)> = edges.into_iter().map(|(a, b)| (a % n, b % n))
            .filter(|&(a, b)| repositories[a as usize] == repositories[b as usize]).collect();
        let chunk = Chunk::new(lengths, &repositories, &edges, 20);
        let labels = runs(&chunk);
        prop_assert!(chunk.sizes(&labels).iter().all(|&size| size <= 20));
        prop_assert_eq!(chunk.visible(&labels).iter().sum::<u32>(), best_cut(&chunk));
    }

    #[test]
    fn joined_pieces_fit_a_sequence((chunk, capacity) in chunks()) {
        let labels: Vec<u32> = (0..chunk.n_documents() as u32).collect();
        let mut parents = labels.clone();
        for (a, b) in merges(&chunk, &labels) {
            prop_assert!(root(&mut parents, a) != root(&mut parents, b));
            unite(&mut parents, a, b);
        }
        let labels: Vec<u32> = labels.iter().map(|&l| root(&mut parents, l)).collect();
        prop_assert!(chunk.sizes(&labels).iter().all(|&size| size <= capacity));
    }
}

#[test]
fn a_run_without_dependencies_is_taken_apart_before_one_with_them() {
    let chunk = Chunk::new(vec![4, 2, 4, 2, 4], &[0, 0, 1, 1, 2], &[(1, 0)], 8);
    let pieces = plan(&chunk, 0);
    let sequence = |d: u32| pieces.iter().find(|p| p.document == d).map(|p| p.sequence);
    assert_eq!(n_sequences(&pieces), 2);
    assert_eq!(sequence(0), sequence(1));
    assert_ne!(sequence(2), sequence(3));
}

#[test]
fn pieces_that_depend_on_each_other_are_joined_within_the_sequences() {
    // A (4) and B (3) cannot share a run because of the 9 tokens between them; together they leave 7 and 6 apart.
    let chunk = Chunk::new(vec![4, 9, 3, 7, 6], &[0, 0, 0, 1, 2], &[(2, 0)], 10);
    let together = |pieces: &[Piece]| {
        let sequence = |d: u32| pieces.iter().find(|p| p.document == d).map(|p| p.sequence);
        (sequence(0) == sequence(2), n_sequences(pieces))
    };
    assert_eq!(together(&plan(&chunk, 3)), (false, 3));
    assert_eq!(together(&plan(&chunk, 4)), (true, 4));
}
