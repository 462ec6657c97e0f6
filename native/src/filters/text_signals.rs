//! Every number that filter rules judge, for a batch of texts in one pass.
//!
//! A signal is a name, the walks it needs and a function that reads their counts. The walks (words, n-grams,
//! lines, comments, head, the lines C4 keeps) run at most once per text, and only where a signal needs them. The
//! readable definition of each signal is the `measure` of the Python rule of the same name; a test holds the two
//! equal, bit for bit.

mod adverts;
mod c4;
mod characters;
mod comments;
mod head;
mod lines;
mod ngrams;
mod phrases;
mod short;
mod table;
mod words;

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, Float64Array, RecordBatch, RecordBatchOptions, make_array};
use arrow_data::ArrayData;
use arrow_pyarrow::PyArrowType;
use arrow_schema::{DataType, Field, Schema};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use adverts::Adverts;
use c4::C4;
use lines::Lines;
use ngrams::Ngrams;
use table::Table;
use words::Words;

const NGRAMS: u8 = 1;
const LINES: u8 = 2;
const COMMENTS: u8 = 4;
const C4_LINES: u8 = 8;
const CODE: u8 = 16; // characters and identifiers, for the rules of code
const ECHOES: u8 = 32 | LINES;
const ADVERTS: u8 = 64;
const LEAST_WORDS: u64 = 50; // of a text with a rate of adverts

/// The counts of one text; buffers are reused from text to text.
#[derive(Default)]
struct Measurer {
    bytes: u64,
    words: Words,
    ngrams: Ngrams,
    lines: Lines,
    c4: C4,
    adverts: Adverts,
    comments: u64,
    generated: bool,
    xml: bool,
    table: Table,
}

impl Measurer {
    fn scan(&mut self, text: &str, needs: u8) {
        self.bytes = text.len() as u64;
        self.words.scan(text, needs & NGRAMS != 0, needs & CODE != 0);
        if needs & NGRAMS != 0 {
            self.ngrams.scan(&self.words, &mut self.table);
        }
        if needs & LINES != 0 {
            self.lines.scan(text, &mut self.table);
        }
        if needs & ECHOES == ECHOES {
            self.lines.count_echoes(text, &mut self.table);
        }
        if needs & C4_LINES != 0 {
            self.c4.scan(text);
        }
        if needs & ADVERTS != 0 {
            self.adverts.scan(text);
        }
        if needs & COMMENTS != 0 {
            self.comments = comments::visible_in_comments(text);
            self.generated = head::is_generated(text);
            self.xml = head::is_xml(text);
        }
    }

    fn visible(&self) -> u64 {
        self.words.characters - self.words.spaces
    }

    /// A number of things that adverts have, per 1,000 words.
    fn rate(&self, number: u64) -> Option<f64> {
        let words = self.adverts.words;
        (words >= LEAST_WORDS).then(|| 1_000.0 * number as f64 / words as f64)
    }

    fn of_text(&self, characters: u64) -> Option<f64> {
        ratio(characters, self.words.characters)
    }
}

/// A quotient; `None` where the divisor is zero.
fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

fn count(number: u64) -> Option<f64> {
    Some(number as f64)
}

struct Signal {
    name: &'static str,
    needs: u8,
    value: fn(&Measurer) -> Option<f64>,
}

const fn signal(name: &'static str, needs: u8, value: fn(&Measurer) -> Option<f64>) -> Signal {
    Signal { name, needs, value }
}

static SIGNALS: [Signal; 49] = [
    signal("word_count", 0, |m| count(m.words.cores)),
    signal("mean_word_length", 0, |m| {
        ratio(m.words.core_characters, m.words.cores)
    }),
    signal("hash_to_word_ratio", 0, |m| {
        ratio(m.words.hash_signs, m.words.words)
    }),
    signal("ellipsis_to_word_ratio", 0, |m| {
        ratio(m.words.ellipses, m.words.words)
    }),
    signal("bullet_lines", LINES, |m| ratio(m.lines.bullets, m.lines.written)),
    signal("ellipsis_lines", LINES, |m| {
        ratio(m.lines.ellipses, m.lines.written)
    }),
    signal("alphabetic_words", 0, |m| {
        ratio(m.words.words_with_letter, m.words.words)
    }),
    signal("stop_words", 0, |m| {
        count(u64::from(m.words.stop_words.count_ones()))
    }),
    signal("duplicate_lines", LINES, |m| {
        ratio(m.lines.duplicates, m.lines.written)
    }),
    signal("duplicate_paragraphs", LINES, |m| {
        ratio(m.lines.duplicate_paragraphs, m.lines.paragraphs)
    }),
    signal("duplicate_line_chars", LINES, |m| {
        m.of_text(m.lines.duplicate_characters)
    }),
    signal("duplicate_paragraph_chars", LINES, |m| {
        m.of_text(m.lines.duplicate_paragraph_characters)
    }),
    signal("top_2_gram", NGRAMS, |m| m.of_text(m.ngrams.top[2]?)),
    signal("top_3_gram", NGRAMS, |m| m.of_text(m.ngrams.top[3]?)),
    signal("top_4_gram", NGRAMS, |m| m.of_text(m.ngrams.top[4]?)),
    signal("duplicate_5_grams", NGRAMS, |m| m.of_text(m.ngrams.repeated[5]?)),
    signal("duplicate_6_grams", NGRAMS, |m| m.of_text(m.ngrams.repeated[6]?)),
    signal("duplicate_7_grams", NGRAMS, |m| m.of_text(m.ngrams.repeated[7]?)),
    signal("duplicate_8_grams", NGRAMS, |m| m.of_text(m.ngrams.repeated[8]?)),
    signal("duplicate_9_grams", NGRAMS, |m| m.of_text(m.ngrams.repeated[9]?)),
    signal("duplicate_10_grams", NGRAMS, |m| {
        m.of_text(m.ngrams.repeated[10]?)
    }),
    signal("c4_sentences", C4_LINES, |m| count(m.c4.sentences)),
    signal("c4_lorem_ipsum", C4_LINES, |m| count(m.c4.lorem_ipsum)),
    signal("c4_curly_brackets", C4_LINES, |m| count(m.c4.curly_brackets)),
    signal("line_punctuation", LINES, |m| {
        ratio(m.lines.terminated, m.lines.written)
    }),
    signal("short_lines", LINES, |m| ratio(m.lines.short, m.lines.written)),
    signal("fineweb_duplicate_chars", LINES, |m| {
        ratio(m.lines.duplicate_characters, m.lines.characters)
    }),
    signal("newline_to_word_ratio", LINES, |m| {
        ratio(m.words.characters - m.lines.characters, m.words.words)
    }),
    signal("code_words", CODE, |m| count(m.words.identifiers)),
    signal("code_chars", 0, |m| count(m.words.characters)),
    signal("code_bytes", 0, |m| count(m.bytes)),
    signal("code_word_length", CODE, |m| {
        ratio(m.words.identifier_characters, m.words.identifiers)
    }),
    signal("code_lines", LINES, |m| count(m.lines.lines)),
    signal("code_longest_line", LINES, |m| count(m.lines.longest)),
    signal("code_mean_line", LINES, |m| {
        ratio(m.lines.characters, m.lines.lines)
    }),
    signal("code_duplicate_lines", ECHOES, |m| {
        ratio(m.lines.echoes, m.lines.written)
    }),
    signal("code_letters", CODE, |m| ratio(m.words.letters, m.visible())),
    signal("code_digits", CODE, |m| ratio(m.words.digits, m.visible())),
    signal("code_whitespace", 0, |m| m.of_text(m.words.spaces)),
    signal("code_replacement_chars", CODE, |m| {
        m.of_text(m.words.replacements)
    }),
    signal("code_comments", COMMENTS, |m| ratio(m.comments, m.visible())),
    signal("code_longest_encoded_run", CODE, |m| {
        count(m.words.longest_encoded)
    }),
    signal("code_encoded_chars", CODE, |m| m.of_text(m.words.encoded)),
    signal("code_generated", COMMENTS, |m| count(u64::from(m.generated))),
    signal("code_xml", COMMENTS, |m| count(u64::from(m.xml))),
    signal("advert_calls", ADVERTS, |m| m.rate(m.adverts.calls)),
    signal("advert_prices", ADVERTS, |m| m.rate(m.adverts.prices)),
    signal("advert_contacts", ADVERTS, |m| {
        let enough = m.adverts.words >= LEAST_WORDS;
        enough
            .then(|| ratio(m.adverts.contacts, m.adverts.lines))
            .flatten()
    }),
    signal("advert_links", ADVERTS, |m| m.rate(m.adverts.links)),
];

/// The values of `signals` for each text, one column per signal; null for a missing text.
fn measure<'a>(
    texts: impl ExactSizeIterator<Item = Option<&'a str>>,
    signals: &[&Signal],
) -> Result<Vec<Vec<Option<f64>>>, String> {
    let needs = signals.iter().fold(0, |needs, signal| needs | signal.needs);
    let mut measurer = Measurer::default();
    let mut columns: Vec<_> = signals.iter().map(|_| Vec::with_capacity(texts.len())).collect();
    for text in texts {
        let Some(text) = text else {
            columns.iter_mut().for_each(|column| column.push(None));
            continue;
        };
        if text.len() > u32::MAX as usize {
            return Err(format!(
                "A text has {} bytes, more than 4 GiB. Split it before measuring it.",
                text.len()
            ));
        }
        measurer.scan(text, needs);
        for (column, signal) in columns.iter_mut().zip(signals) {
            column.push((signal.value)(&measurer));
        }
    }
    Ok(columns)
}

fn find(name: &str) -> Result<&'static Signal, String> {
    SIGNALS.iter().find(|signal| signal.name == name).ok_or_else(|| {
        let known: Vec<&str> = SIGNALS.iter().map(|signal| signal.name).collect();
        format!("Unknown text signal `{name}`. Signals: {}.", known.join(", "))
    })
}

fn batch(texts: ArrayData, names: &[String]) -> Result<RecordBatch, String> {
    let signals = names
        .iter()
        .map(|name| find(name))
        .collect::<Result<Vec<_>, _>>()?;
    let texts = make_array(texts);
    let columns = match texts.data_type() {
        DataType::Utf8 => measure(texts.as_string::<i32>().iter(), &signals),
        DataType::LargeUtf8 => measure(texts.as_string::<i64>().iter(), &signals),
        other => Err(format!(
            "The texts are of type {other}. Cast them to string or large_string."
        )),
    }?;
    let fields: Vec<Field> = names
        .iter()
        .map(|name| Field::new(name, DataType::Float64, true))
        .collect();
    let arrays = columns
        .into_iter()
        .map(|column| Arc::new(Float64Array::from(column)) as ArrayRef)
        .collect();
    let options = RecordBatchOptions::new().with_row_count(Some(texts.len()));
    RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), arrays, &options)
        .map_err(|error| error.to_string())
}

#[pyfunction]
fn text_signals(
    py: Python<'_>,
    texts: PyArrowType<ArrayData>,
    names: Vec<String>,
) -> PyResult<PyArrowType<RecordBatch>> {
    py.detach(|| batch(texts.0, &names))
        .map(PyArrowType)
        .map_err(PyValueError::new_err)
}

#[pyfunction]
fn text_signal_names() -> Vec<&'static str> {
    SIGNALS.iter().map(|signal| signal.name).collect()
}

#[pyfunction]
fn advert_phrases() -> Vec<&'static str> {
    phrases::PHRASES.to_vec()
}

#[pyfunction]
fn character_boundaries(py: Python<'_>, kind: &str) -> PyResult<Vec<u32>> {
    let wanted: fn(char) -> bool = match kind {
        "space" => |it| characters::class(it) & characters::SPACE != 0,
        "letter" => |it| characters::class(it) & characters::LETTER != 0,
        "alphanumeric" => |it| characters::class(it) & characters::ALPHANUMERIC != 0,
        "lowercase" => char::is_lowercase,
        "terminal" => characters::is_terminal,
        _ => {
            return Err(PyValueError::new_err(format!(
                "Unknown kind of character `{kind}`. Use space, letter, alphanumeric, lowercase or terminal."
            )));
        }
    };
    Ok(py.detach(|| characters::boundaries(wanted)))
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(text_signals, module)?)?;
    module.add_function(wrap_pyfunction!(text_signal_names, module)?)?;
    module.add_function(wrap_pyfunction!(advert_phrases, module)?)?;
    module.add_function(wrap_pyfunction!(character_boundaries, module)?)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn all() -> Vec<&'static Signal> {
        SIGNALS.iter().collect()
    }

    proptest! {
        #[test]
        fn no_value_depends_on_the_texts_before(before in "(\\PC|[ \n#.'\"/*])*", text in "(\\PC|[ \n#.'\"/*])*") {
            let alone = measure([Some(&*text)].into_iter(), &all()).unwrap();
            let after = measure([Some(&*before), None, Some(&*text)].into_iter(), &all()).unwrap();
            for (alone, after) in alone.iter().zip(&after) {
                prop_assert_eq!(alone[0], after[2]);
                prop_assert_eq!(after[1], None);
            }
        }

        #[test]
        fn a_signal_measured_alone_has_the_same_value(text in "[ab \n.]{0,80}") {
            let together = measure([Some(&*text)].into_iter(), &all()).unwrap();
            for (signal, column) in SIGNALS.iter().zip(together) {
                let alone = measure([Some(&*text)].into_iter(), &[signal]).unwrap();
                prop_assert_eq!(&alone[0], &column, "{}", signal.name);
            }
        }

        #[test]
        fn values_are_finite(text in "(\\PC|\n){0,80}") {
            for column in measure([Some(&*text)].into_iter(), &all()).unwrap() {
                prop_assert!(column[0].is_none_or(f64::is_finite));
            }
        }
    }
}
