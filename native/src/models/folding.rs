//! A text in one form for comparison with a word list, and where its characters come from.
//!
//! A unit is a character with the marks on it. Each unit is composed (NFKC), folded in case and composed again, without
//! the characters that Unicode ignores, so canonically equal texts have the same words, and a soft hyphen, joiner or
//! zero-width space inside a word hides nothing. `factory/models/word_list.py` is the readable definition.

use std::borrow::Cow;

use icu_casemap::{CaseMapper, CaseMapperBorrowed};
use icu_normalizer::{ComposingNormalizer, ComposingNormalizerBorrowed};
use icu_properties::props::DefaultIgnorableCodePoint;
use icu_properties::{CodePointSetData, CodePointSetDataBorrowed};
use unicode_normalization::char::is_combining_mark;

const NFKC: ComposingNormalizerBorrowed<'static> = ComposingNormalizer::new_nfkc();
const CASES: CaseMapperBorrowed<'static> = CaseMapper::new();
const IGNORABLE: CodePointSetDataBorrowed<'static> = CodePointSetData::new::<DefaultIgnorableCodePoint>();

/// A folded text.
pub struct FoldedText<'a> {
    pub text: Cow<'a, str>,
    original: &'a str,
    /// The begin in the original of the unit of each byte; empty if the text is ASCII, which stays as it is.
    units: Vec<usize>,
}

impl<'a> FoldedText<'a> {
    pub fn new(original: &'a str) -> Self {
        if original.is_ascii() {
            return Self {
                text: original.into(),
                original,
                units: Vec::new(),
            };
        }
        let (mut text, mut units) = (String::with_capacity(original.len()), Vec::new());
        let mut begin = 0;
        while begin < original.len() {
            let end = begin + unit_len(&original[begin..]);
            match &original[begin..end] {
                ascii if ascii.is_ascii() => text.push_str(ascii),
                unit => fold(unit, &mut text),
            }
            units.resize(text.len(), begin);
            begin = end;
        }
        Self {
            text: text.into(),
            original,
            units,
        }
    }

    /// The range of the original that became the bytes `begin` to `end`.
    pub fn place(&self, begin: usize, end: usize) -> (usize, usize) {
        if self.units.is_empty() {
            return (begin, end);
        }
        let last = self.units[end - 1];
        (self.units[begin], last + unit_len(&self.original[last..]))
    }
}

/// The bytes of the character that `text` begins with, and of the marks on it.
fn unit_len(text: &str) -> usize {
    let behind = text.char_indices().skip(1);
    behind
        .skip_while(|(_, character)| is_combining_mark(*character) || composes(*character))
        .map(|(at, _)| at)
        .next()
        .unwrap_or(text.len())
}

/// Whether a character that is no mark composes with the one before it: vowels and finals of Korean, marks of
/// half-width kana, vowels of Kirat Rai.
fn composes(character: char) -> bool {
    matches!(
        character,
        '\u{1160}'..='\u{11ff}' | '\u{ff9e}'..='\u{ff9f}' | '\u{ffa0}'..='\u{ffdc}' | '\u{16d67}'..='\u{16d68}'
    )
}

fn fold(unit: &str, folded: &mut String) {
    let seen: String = unit.chars().filter(|it| !IGNORABLE.contains(*it)).collect();
    folded.push_str(&NFKC.normalize(&CASES.fold_string(&NFKC.normalize(&seen))));
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use unicode_normalization::UnicodeNormalization;

    use super::*;

    #[test]
    fn a_unit_is_a_character_with_its_marks() {
        let text = "a e\u{301}x\u{ad}y Straße";
        let folded = FoldedText::new(text);
        assert_eq!(folded.text, "a éxy Strasse");
        let place = |word: &str| {
            let begin = folded.text.find(word).unwrap();
            let (begin, end) = folded.place(begin, begin + word.len());
            &text[begin..end]
        };
        assert_eq!(
            ["é", "éxy", "Strass"].map(place),
            ["e\u{301}", "e\u{301}x\u{ad}y", "Straß"]
        );
    }

    #[test]
    fn every_character_is_folded_as_its_decomposition() {
        for character in '\0'..=char::MAX {
            let decomposed: String = [character].into_iter().nfd().collect();
            if decomposed.contains(character) {
                continue;
            }
            let composed: String = decomposed.nfc().collect();
            let (composed, decomposed) = (FoldedText::new(&composed).text, FoldedText::new(&decomposed).text);
            assert_eq!(composed, decomposed, "U+{:04X}", u32::from(character));
        }
    }

    proptest! {
        #[test]
        fn canonically_equal_texts_are_folded_alike(text in "(\\PC|[eE]|[\u{300}-\u{36f}]|[가-힣]|[ᄀ-ᇿ])*") {
            let (composed, decomposed): (String, String) = (text.nfc().collect(), text.nfd().collect());
            prop_assert_eq!(FoldedText::new(&composed).text, FoldedText::new(&decomposed).text);
        }
    }
}
