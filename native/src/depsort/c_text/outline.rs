//! The parts of a C or C++ text that a parser of declarations needs.
//!
//! `outline` removes directives, attributes and the marks of libraries, and empties every function body that ends
//! at the indentation of its function. `functions` goes further, which is enough to read C without a parser: it
//! removes the heads of functions and their prototypes too, and returns their names instead.

use rustc_hash::FxHashMap;

use super::bytes::{Counts, is_blank, is_space, is_word, run};
use super::marks::without_marks;
use super::prototypes::{Named, head, without_prototypes};

const MAX_LINE: usize = 2_000; // bytes searched for a line's end

/// A C text without its functions, and the functions' names.
pub struct Functions {
    pub outline: Vec<u8>,
    pub definitions: Counts,
    pub declarations: Counts,
    pub private: Vec<Vec<u8>>,
}

/// A text without directives, marks and the bodies of functions.
pub fn outline(text: &[u8]) -> Vec<u8> {
    let text = without_marks(text);
    let mut kept = Vec::with_capacity(text.len());
    pieces(&text, |piece, has_body| {
        kept.extend_from_slice(piece);
        if has_body {
            kept.extend_from_slice(b"}\n");
        }
    });
    kept
}

/// The outline of a text without the heads of functions and their prototypes, and the names of both.
pub fn functions(text: &[u8]) -> Functions {
    let text = without_marks(text);
    let mut kept = Vec::with_capacity(text.len());
    let mut definitions = Named::default();
    let mut private = Named::default();
    pieces(&text, |piece, has_body| {
        match if has_body { head(piece) } else { None } {
            Some(head) => {
                kept.extend_from_slice(&piece[..head.start]);
                definitions.add(head.name);
                if head.is_static {
                    private.add(head.name);
                }
            }
            None => {
                kept.extend_from_slice(piece);
                if has_body {
                    kept.extend_from_slice(b"}\n");
                }
            }
        }
    });
    let (outline, declarations) = without_prototypes(&kept);
    Functions {
        outline,
        definitions: definitions.counts(),
        declarations,
        private: private.counts().into_iter().map(|(name, _)| name).collect(),
    }
}

/// Calls `each` with the text between function bodies, up to the opening brace of a body; the last piece has no
/// body.
///
/// A body ends at the closing brace on the line it opens, or on the next line with the function name's indentation.
fn pieces(text: &[u8], mut each: impl FnMut(&[u8], bool)) {
    let (mut done, mut searched) = (0, 0);
    let mut name_at = 0; // the last opening parenthesis before `searched`, behind `done`
    let closings = closings(text);
    while let Some((parenthesis, opened)) = next_body(text, searched) {
        if let Some(before) = memchr::memrchr(b'(', &text[searched..parenthesis]) {
            name_at = searched + before;
        }
        let own_line = text[parenthesis..opened].contains(&b'\n');
        searched = opened;
        let limit = text.len().min(searched + MAX_LINE);
        let line = &text[searched..limit];
        let line = &line[..memchr::memchr(b'\n', line).unwrap_or(line.len())];
        let closing = match memchr::memchr(b'}', line) {
            Some(length) => searched + length,
            None => {
                // a brace on a line of its own has the function's indentation itself
                let near = if own_line { searched } else { name_at.max(done) };
                let from = near.saturating_sub(MAX_LINE);
                let margin = memchr::memrchr(b'\n', &text[from..near]).map_or(0, |at| from + at + 1);
                let indentation = &text[margin..run(text, margin, is_blank)];
                match closing_behind(&closings, indentation, searched) {
                    Some(closing) => closing,
                    None => continue,
                }
            }
        };
        each(&text[done..searched], true);
        done = closing + 1;
        searched = done;
        name_at = done;
    }
    each(&text[done..], false);
}

/// The next `)` that a `{` follows, with nothing but words between them, and the position after the `{`.
fn next_body(text: &[u8], from: usize) -> Option<(usize, usize)> {
    let mut at = from;
    loop {
        let parenthesis = at + memchr::memchr(b')', &text[at..])?;
        let brace = run(text, parenthesis + 1, |byte| is_word(byte) || is_space(byte));
        if *text.get(brace)? == b'{' {
            return Some((parenthesis, brace + 1));
        }
        at = brace;
    }
}

/// The closing braces that begin a line, in order, by the indentation before them.
fn closings(text: &[u8]) -> FxHashMap<&[u8], Vec<usize>> {
    let mut found: FxHashMap<&[u8], Vec<usize>> = FxHashMap::default();
    for line in memchr::memchr_iter(b'\n', text).map(|at| at + 1) {
        let brace = run(text, line, is_blank);
        if text.get(brace) == Some(&b'}') {
            found.entry(&text[line..brace]).or_default().push(brace);
        }
    }
    found
}

/// The first brace at or after `from` with this indentation.
fn closing_behind(closings: &FxHashMap<&[u8], Vec<usize>>, indentation: &[u8], from: usize) -> Option<usize> {
    let braces = closings.get(indentation)?;
    braces.get(braces.partition_point(|&brace| brace < from)).copied()
}
