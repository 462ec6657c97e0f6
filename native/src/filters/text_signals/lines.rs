//! Lines and paragraphs of a text: their number, lengths, ends and repetitions.
//!
//! A line ends at a newline or at the end of the text. A blank line holds spaces only. A paragraph is a
//! maximal run of lines that are not blank.

use memchr::memchr;
use xxhash_rust::xxh3::xxh3_64;

use super::characters::is_terminal;
use super::table::Table;

const SHORT: u64 = 30; // characters of a short line, as FineWeb counts it

/// The counts of one text; buffers are reused from text to text.
#[derive(Default)]
pub struct Lines {
    pub lines: u64,
    /// Characters of the longest line and of all lines, without newlines.
    pub longest: u64,
    pub characters: u64,
    /// Lines that are not blank; all counts below skip blank lines.
    pub written: u64,
    pub bullets: u64,
    pub ellipses: u64,
    /// Lines that end in a terminal mark, and lines of at most 30 characters.
    pub terminated: u64,
    pub short: u64,
    /// Lines, and characters in lines, that repeat an earlier line.
    pub duplicates: u64,
    pub duplicate_characters: u64,
    /// Lines that equal another line up to outer spaces; `},` and single characters do not count.
    pub echoes: u64,
    pub paragraphs: u64,
    pub duplicate_paragraphs: u64,
    pub duplicate_paragraph_characters: u64,
    spans: Vec<(usize, usize)>,
    paragraph_spans: Vec<(usize, usize)>,
}

impl Lines {
    /// Counts everything but `echoes`.
    pub fn scan(&mut self, text: &str, table: &mut Table) {
        let ascii = text.is_ascii();
        let (mut spans, mut paragraphs) = (
            std::mem::take(&mut self.spans),
            std::mem::take(&mut self.paragraph_spans),
        );
        spans.clear();
        paragraphs.clear();
        *self = Lines::default();
        self.split(text, ascii, &mut spans, &mut paragraphs);
        self.written = spans.len() as u64;
        self.paragraphs = paragraphs.len() as u64;
        (self.duplicates, self.duplicate_characters) = duplicates(text, ascii, &spans, table);
        (self.duplicate_paragraphs, self.duplicate_paragraph_characters) =
            duplicates(text, ascii, &paragraphs, table);
        (self.spans, self.paragraph_spans) = (spans, paragraphs);
    }

    /// Counts the echoes of the text scanned last.
    pub fn count_echoes(&mut self, text: &str, table: &mut Table) {
        self.echoes = echoes(text, &self.spans, table);
    }

    fn split(
        &mut self,
        text: &str,
        ascii: bool,
        spans: &mut Vec<(usize, usize)>,
        paragraphs: &mut Vec<(usize, usize)>,
    ) {
        let mut in_paragraph = false;
        for (start, end) in each(text) {
            let line = &text[start..end];
            let length = characters(line, ascii);
            self.lines += 1;
            self.characters += length;
            self.longest = self.longest.max(length);
            let bare = line.trim();
            if bare.is_empty() {
                in_paragraph = false;
            } else {
                self.bullets += u64::from(bare.starts_with(['•', '-']));
                self.ellipses += u64::from(bare.ends_with("...") || bare.ends_with('…'));
                self.terminated += u64::from(bare.ends_with(is_terminal));
                self.short += u64::from(length <= SHORT);
                spans.push((start, end));
                match paragraphs.last_mut() {
                    Some(paragraph) if in_paragraph => paragraph.1 = end,
                    _ => paragraphs.push((start, end)),
                }
                in_paragraph = true;
            }
        }
    }
}

/// The number of characters of a part of a text; `ascii` says whether the whole text is ASCII.
fn characters(part: &str, ascii: bool) -> u64 {
    if ascii {
        part.len() as u64
    } else {
        part.chars().count() as u64
    }
}

/// The range of every line, without its newline.
pub fn each(text: &str) -> impl Iterator<Item = (usize, usize)> + '_ {
    let mut next = 0;
    std::iter::from_fn(move || {
        let start = next;
        let rest = text.as_bytes().get(start..).filter(|rest| !rest.is_empty())?;
        let end = memchr(b'\n', rest).map_or(text.len(), |length| start + length);
        next = end + 1;
        Some((start, end))
    })
}

/// The number and the characters of the spans that repeat an earlier one.
fn duplicates(text: &str, ascii: bool, spans: &[(usize, usize)], table: &mut Table) -> (u64, u64) {
    table.reset(spans.len());
    let (mut number, mut characters) = (0, 0);
    for &(start, end) in spans {
        let span = &text[start..end];
        let slot = table.add(xxh3_64(span.as_bytes()));
        if table.slot(slot).count > 1 {
            number += 1;
            characters += self::characters(span, ascii);
        }
    }
    (number, characters)
}

/// The number of the spans that equal another one.
fn echoes(text: &str, spans: &[(usize, usize)], table: &mut Table) -> u64 {
    table.reset(spans.len());
    let mut number = 0;
    for &(start, end) in spans {
        let bare = text[start..end].trim();
        if bare == "}," || bare.chars().nth(1).is_none() {
            continue;
        }
        let slot = table.add(xxh3_64(bare.as_bytes()));
        number += match table.slot(slot).count {
            1 => 0,
            2 => 2, // the second one makes the first an echo, too
            _ => 1,
        };
    }
    number
}
