//! A footer's schema, checked before it is decoded.
//!
//! The schema is a tree in depth-first order, each node with the number of its children. A decoder allocates for that
//! number and recurses at every level, so both are checked against the list first.

use super::thrift::{Compact, Kind, Result, Trouble, check_struct};

const DEEPEST: usize = 64;
const SCHEMA: i64 = 2; // field of the footer
const CHILDREN: i64 = 5; // field of a node

/// Whether `footer` is one struct with lengths that fit its bytes, and its schema is a tree.
pub fn check_footer(footer: &[u8]) -> std::result::Result<(), &'static str> {
    check_struct(footer)?;
    check_tree(footer).map_err(|trouble| match trouble {
        Trouble::Short => "its metadata is cut short",
        Trouble::Malformed(what) => what,
    })
}

fn check_tree(footer: &[u8]) -> Result<()> {
    let mut compact = Compact::new(footer);
    let mut last = 0;
    while let Some(kind) = compact.field(&mut last)? {
        if (last, kind) != (SCHEMA, Kind::List) {
            compact.skip(kind)?;
            continue;
        }
        let (_, length) = compact.list()?;
        let mut open: Vec<u64> = Vec::new(); // number of missing children of each open node
        for _ in 0..length {
            while open.last() == Some(&0) {
                open.pop();
            }
            if let Some(left) = open.last_mut() {
                *left -= 1;
            }
            let children = children(&mut compact)?;
            if children > length as u64 {
                return Err(Trouble::Malformed(
                    "its schema has a node with more children than nodes",
                ));
            }
            if children > 0 {
                open.push(children);
            }
            if open.len() > DEEPEST {
                return Err(Trouble::Malformed("its schema is nested too deeply"));
            }
        }
    }
    Ok(())
}

fn children(compact: &mut Compact<'_>) -> Result<u64> {
    let mut found = 0;
    let mut last = 0;
    while let Some(kind) = compact.field(&mut last)? {
        match (last, kind) {
            (CHILDREN, Kind::Integer) => found = u64::from(compact.size()?),
            (_, kind) => compact.skip(kind)?,
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A footer whose schema has nodes with the given numbers of children.
    fn footer(children: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0x29, 0xfc, children.len() as u8];
        for &n in children {
            bytes.extend([0x55, 2 * n, 0]);
        }
        bytes.push(0);
        bytes
    }

    #[test]
    fn a_tree_is_taken() {
        for children in [&[2, 0, 0][..], &[1, 2, 0, 0], &[3, 0, 1, 0, 0], &[0]] {
            assert_eq!(check_footer(&footer(children)), Ok(()), "{children:?}");
        }
    }

    #[test]
    fn more_children_than_nodes_and_a_bottomless_schema_are_refused() {
        assert!(
            check_footer(&footer(&[9, 0, 0]))
                .unwrap_err()
                .contains("children")
        );
        assert!(check_footer(&footer(&[1; 100])).unwrap_err().contains("deep"));
        assert_eq!(check_footer(&footer(&[1; 60])), Ok(()));
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_footer_or_are_not(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = check_footer(&bytes);
        }
    }
}
