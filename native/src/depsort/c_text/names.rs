//! A text without comments and strings, all names in it, and the names it seems to declare.

use rustc_hash::{FxHashMap, FxHashSet};

use super::bytes::{Counts, is_blank, is_space, is_word, run, starts_name};

const LONGEST_DELIMITER: usize = 16; // of a raw string

/// `source` with each comment as a space and each string empty, except in the lines of includes.
pub fn without_comments(source: &[u8]) -> Vec<u8> {
    let mut kept = Vec::with_capacity(source.len());
    let (mut at, mut copied) = (0, 0);
    while at < source.len() {
        let (end, instead): (usize, &[u8]) = match source[at] {
            b'/' if source.get(at + 1) == Some(&b'/') => (line_comment_end(source, at + 2), b" "),
            b'/' if source.get(at + 1) == Some(&b'*') => (block_comment_end(source, at + 2), b" "),
            b'#' if is_include(source, at) => {
                at = run(source, at, |byte| byte != b'\n');
                continue;
            }
            b'R' if source.get(at + 1) == Some(&b'"') => match raw_string_end(source, at + 2) {
                Some(end) => (end, b"\"\""),
                None => (at, b""),
            },
            quote @ (b'"' | b'\'') if at == 0 || source[at - 1] != b'\\' => {
                (string_end(source, at + 1, quote).unwrap_or(at), b"\"\"")
            }
            _ => (at, b""),
        };
        if end > at {
            kept.extend_from_slice(&source[copied..at]);
            kept.extend_from_slice(instead);
            at = end;
            copied = end;
        } else {
            at += 1;
        }
    }
    kept.extend_from_slice(&source[copied..]);
    kept
}

fn line_comment_end(source: &[u8], from: usize) -> usize {
    let mut at = from;
    while let Some(&byte) = source.get(at) {
        match byte {
            b'\n' => break,
            b'\\' if at + 1 == source.len() => break,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    at
}

fn block_comment_end(source: &[u8], from: usize) -> usize {
    memchr::memmem::find(&source[from..], b"*/").map_or(source.len(), |length| from + length + 2)
}

/// Whether the `#` at `at` begins a line and includes or imports something.
fn is_include(source: &[u8], at: usize) -> bool {
    let word = &source[run(source, at + 1, is_blank)..];
    (word.starts_with(b"include") || word.starts_with(b"import"))
        && source[..at]
            .iter()
            .rev()
            .find(|&&byte| !is_blank(byte))
            .is_none_or(|&byte| byte == b'\n')
}

/// The end of a raw string whose delimiter starts at `from`; the end of the text if nothing closes it.
fn raw_string_end(source: &[u8], from: usize) -> Option<usize> {
    let open = run(source, from, |byte| {
        !is_space(byte) && !matches!(byte, b'(' | b'"' | b'\\')
    });
    if open - from > LONGEST_DELIMITER || source.get(open) != Some(&b'(') {
        return None;
    }
    let delimiter = &source[from..open];
    let closing = memchr::memchr_iter(b')', &source[open..])
        .map(|length| open + length + 1)
        .find(|&after| {
            source[after..].starts_with(delimiter) && source.get(after + delimiter.len()) == Some(&b'"')
        });
    Some(closing.map_or(source.len(), |after| after + delimiter.len() + 1))
}

/// The end of a string within its line, or within the lines that backslashes join.
fn string_end(source: &[u8], from: usize, quote: u8) -> Option<usize> {
    let mut at = from;
    while let Some(&byte) = source.get(at) {
        match byte {
            b'\n' => return None,
            b'\\' => at += 2,
            _ if byte == quote => return Some(at + 1),
            _ => at += 1,
        }
    }
    None
}

/// Every name of a text without comments: plain, as `.name` after `.` and `->`, and as both after `::`.
pub fn words(text: &[u8]) -> Counts {
    let mut counted: FxHashMap<(bool, &[u8]), u64> = FxHashMap::default();
    let mut order: Vec<(bool, &[u8])> = Vec::new();
    let mut add = |key| {
        *counted.entry(key).or_insert_with(|| {
            order.push(key);
            0
        }) += 1;
    };
    let mut at = 0;
    while at < text.len() {
        let byte = text[at];
        if starts_name(byte) {
            let end = run(text, at, is_word);
            add((false, &text[at..end]));
            at = end;
        } else if byte.is_ascii_digit() {
            at = run(text, at, |byte| is_word(byte) || byte == b'.' || byte == b'\'');
        } else {
            let length = match byte {
                b'-' if text.get(at + 1) == Some(&b'>') => 2,
                b':' if text.get(at + 1) == Some(&b':') => 2,
                b'.' if text.get(at + 1) != Some(&b'.') => 1,
                _ => 0,
            };
            if length == 0 {
                at += 1;
                continue;
            }
            let mut start = run(text, at + length, is_space);
            start += usize::from(text.get(start) == Some(&b'~'));
            at += 1;
            if text.get(start).is_some_and(|&byte| starts_name(byte)) {
                let end = run(text, start, is_word);
                add((true, &text[start..end]));
                if byte == b':' {
                    add((false, &text[start..end]));
                }
                at = end;
            }
        }
    }
    order
        .iter()
        .map(|key| {
            let dot: &[u8] = if key.0 { b"." } else { b"" };
            ([dot, key.1].concat(), counted[key])
        })
        .collect()
}

/// The names a text seems to declare as parameters, members and local variables: `type name` before one of
/// `=;,[)`. A statement (`return x;`) does not declare.
pub fn declared(text: &[u8]) -> Vec<&[u8]> {
    let mut found = FxHashSet::default();
    let mut order: Vec<&[u8]> = Vec::new();
    let mut at = 0;
    while at < text.len() {
        if !is_word(text[at]) {
            at += 1;
            continue;
        }
        let end = run(text, at, is_word);
        let word = &text[at..end];
        let start = at;
        at = end;
        if !starts_name(text[start]) {
            continue;
        }
        let Some((name, after)) = declared_name(text, end) else {
            continue;
        };
        at = after;
        if !STATEMENTS.contains(&word) && found.insert(name) {
            order.push(name);
        }
    }
    order
}

const STATEMENTS: [&[u8]; 16] = [
    b"return",
    b"goto",
    b"case",
    b"else",
    b"sizeof",
    b"struct",
    b"union",
    b"enum",
    b"class",
    b"namespace",
    b"using",
    b"typename",
    b"typedef",
    b"new",
    b"delete",
    b"throw",
];

/// The name declared after a type that ends at `from`, and where the declaration continues.
fn declared_name(text: &[u8], from: usize) -> Option<(&[u8], usize)> {
    let star = |byte| byte == b'*';
    let after_blanks = run(text, from, is_blank);
    let start = if after_blanks > from {
        run(text, after_blanks, star)
    } else {
        let after_stars = run(text, from, star);
        let start = run(text, after_stars, is_blank);
        if after_stars == from || start == after_stars {
            return None;
        }
        start
    };
    if !starts_name(*text.get(start)?) {
        return None;
    }
    let end = run(text, start, is_word);
    let mark = run(text, end, is_blank);
    let declares = matches!(text.get(mark)?, b'=' | b';' | b',' | b'[' | b')');
    (declares && text.get(mark + 1) != Some(&b'=')).then(|| (&text[start..end], mark + 1))
}
