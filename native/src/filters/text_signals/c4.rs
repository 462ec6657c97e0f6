//! The lines that C4's filter would keep of a text, and its reasons to discard the text.
//!
//! The filter drops lines that hold a word of more than 1,000 characters, do not end in a terminal mark (or end
//! in an ellipsis), have fewer than three words, or mention javascript, cookies or policies; it first cuts
//! citations like `[12]`. It discards a document for a placeholder or a curly bracket in a line that passes the
//! length tests, or for too few sentences in the lines it keeps. This module drops nothing; it counts all three.

use std::sync::LazyLock;

use memchr::{memchr, memchr3_iter, memmem};

use super::lines::each;

const LONGEST_WORD: usize = 1_000; // characters
const LEAST_WORDS: usize = 3; // a line
const END_MARKS: [u8; 5] = [b'.', b'?', b'!', b'"', b'\''];
const MAY_END: [u8; 6] = [b'.', b'?', b'!', b'"', b'\'', b']']; // with a citation behind the mark
const CLOSERS: [char; 9] = ['"', '\'', ')', ']', '}', '”', '’', '»', '*'];

static LOREM_IPSUM: LazyLock<memmem::Finder> = LazyLock::new(|| memmem::Finder::new("lorem ipsum"));
static JAVASCRIPT: LazyLock<memmem::Finder> = LazyLock::new(|| memmem::Finder::new("javascript"));
static POLICIES: LazyLock<[memmem::Finder; 6]> = LazyLock::new(|| {
    [
        "terms of use",
        "privacy policy",
        "cookie policy",
        "uses cookies",
        "use of cookies",
        "use cookies",
    ]
    .map(memmem::Finder::new)
});
/// Any text with one of the phrases above holds one of these words; few texts do.
static HINTS: LazyLock<[memmem::Finder; 5]> = LazyLock::new(|| {
    [
        "lorem ipsum",
        "javascript",
        "terms of use",
        "privacy policy",
        "cookie",
    ]
    .map(memmem::Finder::new)
});

/// The counts of one text; buffers are reused from text to text.
#[derive(Default)]
pub struct C4 {
    /// Sentences in the kept lines.
    pub sentences: u64,
    /// Lines that would discard the document.
    pub lorem_ipsum: u64,
    pub curly_brackets: u64,
    uncited: String,
    lower: Vec<u8>,
}

impl C4 {
    pub fn scan(&mut self, text: &str) {
        (self.sentences, self.lorem_ipsum, self.curly_brackets) = (0, 0, 0);
        let (mut uncited, mut lower) = (std::mem::take(&mut self.uncited), std::mem::take(&mut self.lower));
        lower_to(text, &mut lower);
        let hinted = HINTS.iter().any(|hint| hint.find(&lower).is_some());
        for (start, end) in each(text) {
            let line = text[start..end].trim();
            if !line.as_bytes().last().is_some_and(|last| MAY_END.contains(last)) {
                continue;
            }
            let cited = memchr(b'[', line.as_bytes()).is_some();
            if cited {
                cut_citations(line, &mut uncited);
            }
            let left = if cited { &uncited } else { line };
            let phrases = hinted || cited; // a citation may stand inside a phrase
            if ends_a_sentence(left) && has_words(line) && (!phrases || self.phrases(left, &mut lower)) {
                self.curly_brackets += u64::from(!phrases && memchr(b'{', left.as_bytes()).is_some());
                self.sentences += sentences(left);
            }
        }
        (self.uncited, self.lower) = (uncited, lower);
    }

    /// Counts the reasons to discard a document in a line that passes the length tests; returns whether it stays.
    fn phrases(&mut self, line: &str, lower: &mut Vec<u8>) -> bool {
        lower_to(line, lower);
        self.lorem_ipsum += u64::from(LOREM_IPSUM.find(lower).is_some());
        if JAVASCRIPT.find(lower).is_some() {
            return false;
        }
        self.curly_brackets += u64::from(memchr(b'{', line.as_bytes()).is_some());
        POLICIES.iter().all(|policy| policy.find(lower).is_none())
    }
}

fn lower_to(text: &str, lower: &mut Vec<u8>) {
    lower.clear();
    lower.extend_from_slice(text.as_bytes());
    lower.make_ascii_lowercase();
}

fn ends_a_sentence(line: &str) -> bool {
    let bytes = line.as_bytes();
    bytes.last().is_some_and(|last| END_MARKS.contains(last)) && !bytes.ends_with(b"...")
}

/// Whether the line has enough words, none of them too long.
fn has_words(line: &str) -> bool {
    if line.len() <= LONGEST_WORD {
        return line.split_whitespace().nth(LEAST_WORDS - 1).is_some();
    }
    let mut words = 0;
    line.split_whitespace().all(|word| {
        words += 1;
        word.len() <= LONGEST_WORD || word.chars().nth(LONGEST_WORD).is_none()
    }) && words >= LEAST_WORDS
}

/// Writes `line` without `[12]`, `[]`, `[edit]` and `[citation needed]` to `left`.
fn cut_citations(line: &str, left: &mut String) {
    left.clear();
    let mut rest = line;
    while let Some(at) = memchr(b'[', rest.as_bytes()) {
        left.push_str(&rest[..at]);
        let inside = &rest[at + 1..];
        let digits = inside.bytes().take_while(u8::is_ascii_digit).count();
        let length = ["edit", "citation needed"]
            .into_iter()
            .find(|words| inside.starts_with(words))
            .map_or(digits, str::len);
        rest = match inside[length..].strip_prefix(']') {
            Some(behind) => behind,
            None => {
                left.push('[');
                inside
            }
        };
    }
    left.push_str(rest);
}

/// The number of sentences of a line: words that end in `.`, `?` or `!` (ignoring quotes and brackets after the
/// mark) with no lowercase letter at the start of the next word, and the rest after the last of them.
fn sentences(line: &str) -> u64 {
    let line = line.trim_end();
    let ends = memchr3_iter(b'.', b'?', b'!', line.as_bytes());
    let within = ends
        .filter(|mark| {
            let behind = line[mark + 1..].trim_start_matches(CLOSERS);
            let next = behind.trim_start();
            // A space ends the word, and another word follows.
            next.len() < behind.len() && next.chars().next().is_some_and(|first| !first.is_lowercase())
        })
        .count() as u64;
    within + u64::from(!line.trim_start().is_empty())
}
