//! The functions of C, by the heads of their bodies and by their prototypes.

use rustc_hash::FxHashMap;

use super::bytes::{Counts, is_space, is_word, run, starts_name};

const LONGEST_NAME: usize = 200; // bytes
const NESTED: usize = 3; // levels of parentheses in the parameters of a prototype
const STATEMENTS: [&[u8]; 7] = [b"if", b"for", b"while", b"switch", b"return", b"else", b"do"];

/// Names with their numbers of occurrences, in the order of their first occurrences.
#[derive(Default)]
pub struct Named {
    number: FxHashMap<Vec<u8>, usize>,
    counts: Counts,
}

impl Named {
    /// Counts a name, if it is not empty.
    pub fn add(&mut self, name: &[u8]) {
        if name.is_empty() {
            return;
        }
        match self.number.get(name) {
            Some(&at) => self.counts[at].1 += 1,
            None => {
                self.number.insert(name.to_vec(), self.counts.len());
                self.counts.push((name.to_vec(), 1));
            }
        }
    }

    pub fn counts(self) -> Counts {
        self.counts
    }
}

/// The start of a function's head, its name (empty where a macro defines the function), and its storage.
pub struct Head<'a> {
    pub start: usize,
    pub name: &'a [u8],
    pub is_static: bool,
}

/// The head of the function at the end of a piece; `None` for a statement.
pub fn head(piece: &[u8]) -> Option<Head<'_>> {
    let open = opening_of_last(piece)?;
    let (first, last) = name_before(piece, open, open.saturating_sub(LONGEST_NAME))?;
    let name = &piece[first..last];
    if STATEMENTS.contains(&name) {
        return None;
    }
    let start = piece[..first]
        .iter()
        .rposition(|byte| matches!(byte, b';' | b'}' | b'{'))
        .map_or(0, |at| at + 1);
    let before = &piece[start..first];
    if before.iter().all(|&byte| is_space(byte)) {
        return Some(Head {
            start,
            name: b"",
            is_static: false,
        });
    }
    Some(Head {
        start,
        name,
        is_static: has_word(before, b"static"),
    })
}

/// The opening parenthesis that matches the last closing one.
fn opening_of_last(piece: &[u8]) -> Option<usize> {
    let last = memchr::memrchr(b')', piece)?;
    let mut depth = 0usize;
    for at in (0..=last).rev() {
        match piece[at] {
            b')' => depth += 1,
            b'(' if depth == 1 => return Some(at),
            b'(' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// The range of the last name before `end`, with only white space between, if it starts at or after `least`.
fn name_before(text: &[u8], end: usize, least: usize) -> Option<(usize, usize)> {
    let last = least + text[least..end].iter().rposition(|&byte| !is_space(byte))? + 1;
    let word = text[least..last].iter().rposition(|&byte| !is_word(byte));
    let first = run(text, word.map_or(least, |at| least + at + 1), |byte| {
        byte.is_ascii_digit()
    });
    (first < last).then_some((first, last))
}

fn has_word(text: &[u8], word: &[u8]) -> bool {
    memchr::memmem::find_iter(text, word).any(|at| {
        (at == 0 || !is_word(text[at - 1])) && text.get(at + word.len()).is_none_or(|&byte| !is_word(byte))
    })
}

/// The text without prototypes, and the names they declare.
pub fn without_prototypes(text: &[u8]) -> (Vec<u8>, Counts) {
    let mut kept = Vec::with_capacity(text.len());
    let mut declarations = Named::default();
    let (mut at, mut copied) = (0, 0);
    loop {
        if let Some(prototype) = prototype(text, at) {
            let before = &text[at..prototype.name.0];
            let typed = before.iter().any(|&byte| is_word(byte));
            if typed && memchr::memmem::find(before, b"typedef").is_none() {
                declarations.add(&text[prototype.name.0..prototype.name.1]);
                kept.extend_from_slice(&text[copied..at]);
                copied = prototype.end;
            }
            at = prototype.end;
        } else {
            match text[at..]
                .iter()
                .position(|byte| matches!(byte, b';' | b'{' | b'}'))
            {
                Some(length) => at += length + 1,
                None => break,
            }
        }
        if at == text.len() {
            break;
        }
    }
    kept.extend_from_slice(&text[copied..]);
    (kept, declarations.counts())
}

struct Prototype {
    name: (usize, usize),
    end: usize,
}

/// The prototype that starts at `from`, the start of a declaration; one pair of parentheses may precede its
/// name, as in an attribute.
fn prototype(text: &[u8], from: usize) -> Option<Prototype> {
    let plain = |byte| !matches!(byte, b';' | b'{' | b'}' | b'(' | b')' | b'=');
    let first = run(text, from, plain);
    if *text.get(first)? != b'(' {
        return None;
    }
    let inner = run(text, first + 1, |byte| {
        !matches!(byte, b';' | b'{' | b'}' | b'(' | b')')
    });
    let second = run(text, inner + usize::from(inner < text.len()), plain);
    if text.get(inner) == Some(&b')')
        && text.get(second) == Some(&b'(')
        && let Some(found) = prototype_at(text, inner + 1, second)
    {
        return Some(found);
    }
    prototype_at(text, from, first)
}

/// The prototype whose parameters open at `open` and whose name starts at or after `least`.
fn prototype_at(text: &[u8], least: usize, open: usize) -> Option<Prototype> {
    let last = least + text[least..open].iter().rposition(|&byte| !is_space(byte))? + 1;
    let first = least
        + text[least..last]
            .iter()
            .rposition(|&byte| !is_word(byte))
            .map_or(0, |at| at + 1);
    if !starts_name(text[first]) {
        return None;
    }
    let end = run(text, parameters_end(text, open)?, |byte| {
        is_word(byte) || is_space(byte)
    });
    (text.get(end) == Some(&b';')).then_some(Prototype {
        name: (first, last),
        end: end + 1,
    })
}

/// The end of balanced parentheses, at most NESTED deep, with no statement in them.
fn parameters_end(text: &[u8], open: usize) -> Option<usize> {
    let mut level = 0;
    for (length, &byte) in text[open..].iter().enumerate() {
        match byte {
            b'(' if level == NESTED => return None,
            b'(' => level += 1,
            b')' if level == 1 => return Some(open + length + 1),
            b')' => level -= 1,
            b';' | b'{' | b'}' => return None,
            _ => {}
        }
    }
    None
}
