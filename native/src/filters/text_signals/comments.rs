//! Visible characters in comments, estimated for source code in any language without a lexer.
//!
//! A comment begins a line, after spaces and tabs: `//`, `--`, `;` and `#` up to the end of the line (`#` only
//! where no ASCII letter, `[` or `{` follows, because `#include`, `#[derive]` and `#id {` are code), `/* */`,
//! `<!-- -->`, and strings in triple quotes, which are documentation where they begin a line. A triple-quoted
//! string that begins inside a line is code, and so is all text in it. An unclosed block does not count.

use memchr::{memchr, memchr3, memmem};

use super::characters::visible;

const BLOCKS: [(&[u8], &[u8]); 4] = [
    (b"/*", b"*/"),
    (b"<!--", b"-->"),
    (b"\"\"\"", b"\"\"\""),
    (b"'''", b"'''"),
];

struct Scanner<'a> {
    bytes: &'a [u8],
    /// Kinds of blocks that no later text closes, so that each missing end is sought only once.
    unclosed: [bool; 4],
}

/// The number of characters in comments, without spaces.
pub fn visible_in_comments(text: &str) -> u64 {
    let bytes = text.as_bytes();
    let mut scanner = Scanner {
        bytes,
        unclosed: [false; 4],
    };
    let (mut at, mut line_begins, mut characters) = (0, true, 0);
    while at < bytes.len() {
        if line_begins {
            line_begins = false;
            let first = at
                + bytes[at..]
                    .iter()
                    .take_while(|byte| matches!(byte, b' ' | b'\t'))
                    .count();
            if let Some(end) = scanner.comment(first) {
                characters += visible(&text[first..end]) as u64;
                at = end;
                continue;
            }
        }
        let Some(distance) = memchr3(b'\n', b'"', b'\'', &bytes[at..]) else {
            break;
        };
        at += distance;
        line_begins = bytes[at] == b'\n';
        at = scanner.block(at, 2..4).unwrap_or(at + 1);
    }
    characters
}

impl Scanner<'_> {
    /// The end of the comment that begins at `at`.
    fn comment(&mut self, at: usize) -> Option<usize> {
        let rest = &self.bytes[at..];
        let to_line_end = match rest {
            [b'/', b'/', ..] | [b'-', b'-', ..] | [b';', ..] => true,
            [b'#', next, ..] => !(next.is_ascii_alphabetic() || matches!(next, b'[' | b'{')),
            [b'#'] => true,
            _ => false,
        };
        if to_line_end {
            return Some(memchr(b'\n', rest).map_or(self.bytes.len(), |length| at + length));
        }
        let prefix = usize::from(matches!(rest, [b'r' | b'R' | b'u' | b'U', b'"' | b'\'', ..]));
        self.block(at + prefix, if prefix == 1 { 2..4 } else { 0..4 })
    }

    /// The end of the block at `at`, if one of `kinds` begins there.
    fn block(&mut self, at: usize, mut kinds: std::ops::Range<usize>) -> Option<usize> {
        let rest = &self.bytes[at..];
        let kind = kinds.find(|kind| rest.starts_with(BLOCKS[*kind].0))?;
        if self.unclosed[kind] {
            return None;
        }
        let (open, close) = BLOCKS[kind];
        let inside = at + open.len();
        match memmem::find(&self.bytes[inside..], close) {
            Some(length) => Some(inside + length + close.len()),
            None => {
                self.unclosed[kind] = true;
                None
            }
        }
    }
}
