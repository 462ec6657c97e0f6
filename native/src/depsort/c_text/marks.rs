//! A text without its directives, attributes and the marks that libraries put before names.

use super::bytes::{at_boundary, directive_end, is_blank, is_space, is_word, run, starts_name};

const ATTRIBUTES: [&[u8]; 6] = [
    b"__attribute__",
    b"__declspec",
    b"__asm__",
    b"__asm",
    b"_Alignas",
    b"alignas",
];
const MARKS: [&[u8]; 10] = [
    b"_API",
    b"_EXPORT",
    b"_EXPORTS",
    b"_PUBLIC",
    b"_EXTERN",
    b"_INLINE",
    b"_FORCEINLINE",
    b"_DEPRECATED",
    b"_NOEXCEPT",
    b"_CONSTEXPR",
];
const MARKED_LINES: [&[u8]; 3] = [b"NAMESPACE", b"_DECLS", b"Q_OBJECT"];

/// The text without directives; then without attributes; then without marks; then with names freed of their
/// parentheses, `(name)(int)`; then without marks between `class` and its name.
pub fn without_marks(text: &[u8]) -> Vec<u8> {
    let text = without_directives(text);
    let text = replaced(&text, |text, word, end| {
        attribute_end(text, word, end).map(|end| (end, 0))
    });
    let text = without_library_marks(&text);
    let text = without_parentheses(&text);
    replaced(&text, export_mark_end)
}

fn without_directives(text: &[u8]) -> Vec<u8> {
    let mut kept = Vec::with_capacity(text.len());
    let mut at = 0;
    while at < text.len() {
        let first = run(text, at, is_blank);
        if text.get(first) == Some(&b'#') {
            at = directive_end(text, first);
        }
        let end = memchr::memchr(b'\n', &text[at..]).map_or(text.len(), |length| at + length + 1);
        kept.extend_from_slice(&text[at..end]);
        at = end;
    }
    kept
}

/// The text without the ranges that `change` removes. `change` gets the range of each word that does not start
/// with a digit, and returns the end of the range to remove and the length of the word to keep before it.
fn replaced(text: &[u8], change: impl Fn(&[u8], usize, usize) -> Option<(usize, usize)>) -> Vec<u8> {
    let mut kept = Vec::with_capacity(text.len());
    let (mut at, mut copied) = (0, 0);
    while at < text.len() {
        if !is_word(text[at]) {
            at += 1;
            continue;
        }
        let end = run(text, at, is_word);
        match starts_name(text[at]).then(|| change(text, at, end)).flatten() {
            Some((after, stays)) => {
                kept.extend_from_slice(&text[copied..at + stays]);
                at = after;
                copied = after;
            }
            None => at = end,
        }
    }
    kept.extend_from_slice(&text[copied..]);
    kept
}

/// The end of an attribute, or of a macro of numbers alone such as `printf_like(1, 2)`.
fn attribute_end(text: &[u8], word: usize, end: usize) -> Option<usize> {
    let open = run(text, end, is_space);
    if text.get(open) != Some(&b'(') {
        return None;
    }
    let known = ATTRIBUTES.contains(&&text[word..end]);
    known
        .then(|| parenthesis_end(text, open, 1))
        .flatten()
        .map(|end| end + usize::from(text.get(end) == Some(&b')')))
        .or_else(|| numbers_end(text, open))
}

/// The end of parentheses with at most `depth` levels of nested ones.
fn parenthesis_end(text: &[u8], open: usize, depth: usize) -> Option<usize> {
    let mut level = 0;
    for (length, &byte) in text[open..].iter().enumerate() {
        match byte {
            b'(' if level > depth => return None,
            b'(' => level += 1,
            b')' if level == 1 => return Some(open + length + 1),
            b')' => level -= 1,
            _ => {}
        }
    }
    None
}

fn numbers_end(text: &[u8], open: usize) -> Option<usize> {
    let mut at = open;
    loop {
        let first = run(text, at + 1, is_space);
        let last = run(text, first, |byte| byte.is_ascii_digit());
        at = run(text, last, is_space);
        match text.get(at) {
            _ if first == last => return None,
            Some(b',') => {}
            Some(b')') => return Some(at + 1),
            _ => return None,
        }
    }
}

/// The text without words such as `LIB_API` and lines such as `BEGIN_DECLS`.
fn without_library_marks(text: &[u8]) -> Vec<u8> {
    let mut kept = Vec::with_capacity(text.len());
    let (mut at, mut copied) = (0, 0);
    let mut line_start = true;
    while at < text.len() {
        let byte = text[at];
        let mut end = at;
        if is_word(byte) {
            let word = run(text, at, is_word);
            if is_mark(&text[at..word]) && at_boundary(text, at) {
                end = word;
            }
        }
        if end == at && line_start {
            end = marked_line_end(text, at).unwrap_or(at);
        }
        line_start = byte == b'\n';
        if end > at {
            kept.extend_from_slice(&text[copied..at]);
            copied = end;
            at = end;
            line_start = false;
        } else if is_word(byte) {
            at = run(text, at, is_word);
        } else {
            at += 1;
        }
    }
    kept.extend_from_slice(&text[copied..]);
    kept
}

fn is_mark(word: &[u8]) -> bool {
    word[0].is_ascii_uppercase()
        && word
            .iter()
            .all(|&byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
        && MARKS
            .iter()
            .any(|mark| word.len() > mark.len() && word.ends_with(mark))
}

/// The end of a line that consists of one marked word, perhaps with arguments and a semicolon.
fn marked_line_end(text: &[u8], from: usize) -> Option<usize> {
    let start = run(text, from, is_blank);
    let end = run(text, start, is_word);
    let word = &text[start..end];
    if !MARKED_LINES
        .iter()
        .any(|mark| memchr::memmem::find(word, mark).is_some())
    {
        return None;
    }
    let line_ends = |from: usize| {
        let at = run(text, from, is_blank);
        let at = at + usize::from(text.get(at) == Some(&b';'));
        text.get(at).is_none_or(|&byte| byte == b'\n').then_some(at)
    };
    let arguments = (text.get(end) == Some(&b'('))
        .then(|| run(text, end + 1, |byte| !matches!(byte, b'(' | b')' | b'\n')))
        .filter(|&close| text.get(close) == Some(&b')'));
    arguments
        .and_then(|close| line_ends(close + 1))
        .or_else(|| line_ends(end))
}

/// The text with `(name)` before another parenthesis as ` name`.
fn without_parentheses(text: &[u8]) -> Vec<u8> {
    let mut kept = Vec::with_capacity(text.len());
    let mut copied = 0;
    for open in memchr::memchr_iter(b'(', text) {
        let start = run(text, open + 1, is_space);
        if !text.get(start).is_some_and(|&byte| starts_name(byte)) {
            continue;
        }
        let end = run(text, start, is_word);
        let close = run(text, end, is_space);
        if text.get(close) != Some(&b')') || text.get(run(text, close + 1, is_space)) != Some(&b'(') {
            continue;
        }
        kept.extend_from_slice(&text[copied..open]);
        kept.push(b' ');
        kept.extend_from_slice(&text[start..end]);
        copied = close + 1;
    }
    kept.extend_from_slice(&text[copied..]);
    kept
}

/// In `class MARK Name`, the end of the mark and of the space after it; `class` keeps one space.
fn export_mark_end(text: &[u8], word: usize, end: usize) -> Option<(usize, usize)> {
    if !matches!(&text[word..end], b"class" | b"struct") {
        return None;
    }
    let mark = run(text, end, is_space);
    if mark == end || !text.get(mark).is_some_and(u8::is_ascii_uppercase) {
        return None;
    }
    let mark_end = run(text, mark, |byte| {
        byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_'
    });
    let name = run(text, mark_end, is_space);
    let named = name > mark_end && text.get(name).is_some_and(|&byte| starts_name(byte));
    named.then_some((name, end - word + 1))
}
