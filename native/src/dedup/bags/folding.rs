//! Texts in one form, in which what reads alike is spelled alike.
//!
//! Compatibility composition (NFKC) makes canonically equal texts, full-width forms and ligatures equal. Characters
//! without a shape of their own are left out (soft hyphens, joiners, zero-width spaces, marks of direction, variation
//! selectors), and a typographic apostrophe becomes `'`, which ends a word. Prose is folded in case too, by the full
//! folding of Unicode: `Straße` is `strasse`, and the final sigma is the other one.

use std::borrow::Cow;

use icu_casemap::{CaseMapper, CaseMapperBorrowed};
use icu_normalizer::{ComposingNormalizer, ComposingNormalizerBorrowed};

const NFKC: ComposingNormalizerBorrowed<'static> = ComposingNormalizer::new_nfkc();
const CASES: CaseMapperBorrowed<'static> = CaseMapper::new();

const HIGH: u64 = 0x8080_8080_8080_8080;

/// A text in the form that is cut into words.
pub struct FoldedText<'a>(Cow<'a, str>);

impl<'a> FoldedText<'a> {
    /// Text whose words keep their case.
    pub fn with_case(text: &'a str) -> Self {
        Self::new(text, |composed, folded| folded.push_str(composed), |plain| plain)
    }

    /// Text whose words beyond ASCII have one case; the lexer folds ASCII.
    pub fn without_case(text: &'a str) -> Self {
        let fold = |composed: &str, folded: &mut String| {
            folded.push_str(&NFKC.normalize(&CASES.fold_string(composed)));
        };
        Self::new(text, fold, lower)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Copies ASCII; `fold` appends the rest, each run with the ASCII character whose marks it may begin with, or
    /// `lower` its characters, if all are plain.
    fn new(text: &'a str, fold: impl Fn(&str, &mut String), lower: impl Fn(char) -> char) -> Self {
        let mut at = beyond_ascii(text.as_bytes(), 0);
        if at == text.len() {
            return Self(text.into());
        }
        let mut folded = String::with_capacity(text.len() + text.len() / 16);
        let mut copied = 0;
        while at < text.len() {
            let begin = at.saturating_sub(1).max(copied);
            folded.push_str(&text[copied..begin]);
            copied = at
                + text.as_bytes()[at..]
                    .iter()
                    .take_while(|byte| !byte.is_ascii())
                    .count();
            let run = &text[begin..copied];
            if run.chars().all(is_plain) {
                folded.extend(run.chars().map(&lower));
            } else {
                // The composition of U+0149 begins with an apostrophe.
                fold(
                    &without_unseen(&NFKC.normalize(&without_unseen(run))),
                    &mut folded,
                );
            }
            at = beyond_ascii(text.as_bytes(), copied);
        }
        folded.push_str(&text[copied..]);
        Self(folded.into())
    }
}

/// Whether a character among such characters is its own composition, and its folding is `lower`: nearly all
/// characters of many texts, which so need no search in Unicode's tables.
#[inline]
fn is_plain(character: char) -> bool {
    matches!(character,
        '\0'..='\u{7f}'
        | '\u{c0}'..='\u{de}' | '\u{e0}'..='\u{ff}'
        | '\u{400}'..='\u{45f}' // Cyrillic
        | '\u{5d0}'..='\u{5ea}' | '\u{621}'..='\u{64a}' // Hebrew, Arabic
        | '\u{2013}'..='\u{2014}' | '\u{201c}'..='\u{201d}'
        | '\u{3001}'..='\u{3002}' | '\u{3041}'..='\u{3096}' | '\u{30a1}'..='\u{30fa}' | '\u{30fc}'
        | '\u{4e00}'..='\u{9fff}' | '\u{ac00}'..='\u{d7a3}')
}

/// A plain character in lower case; the lexer folds ASCII.
#[inline]
fn lower(character: char) -> char {
    let distance = match character {
        '\u{d7}' => 0,
        '\u{c0}'..='\u{de}' | '\u{410}'..='\u{42f}' => 0x20,
        '\u{400}'..='\u{40f}' => 0x50,
        _ => 0,
    };
    char::from_u32(u32::from(character) + distance).unwrap_or(character)
}

/// The first byte beyond ASCII at or after `from`, or the end.
fn beyond_ascii(bytes: &[u8], from: usize) -> usize {
    let mut at = from;
    while let Some(eight) = bytes[at..].first_chunk() {
        let high = u64::from_le_bytes(*eight) & HIGH;
        if high != 0 {
            return at + high.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    at + bytes[at..].iter().take_while(|byte| byte.is_ascii()).count()
}

/// The text without ignorable characters, and with the apostrophes and quotes of ASCII inside words.
fn without_unseen(text: &str) -> Cow<'_, str> {
    if text.chars().all(|character| replacement(character).is_none()) {
        return text.into();
    }
    let mut kept = String::with_capacity(text.len());
    for character in text.chars() {
        match replacement(character) {
            Some(ascii) => kept.push_str(ascii),
            None => kept.push(character),
        }
    }
    kept.into()
}

/// What stands for a character in a folded text, if it is not the character itself.
#[inline]
fn replacement(character: char) -> Option<&'static str> {
    match character {
        '\0'..='\u{ac}' => None,
        '\u{2018}' | '\u{2019}' | '\u{201b}' | '\u{2bc}' | '\u{5f3}' => Some("'"),
        '\u{5f4}' => Some("\""), // inside the abbreviations of Hebrew
        // The code points that Unicode calls Default_Ignorable.
        '\u{ad}'
        | '\u{34f}'
        | '\u{61c}'
        | '\u{115f}'..='\u{1160}'
        | '\u{17b4}'..='\u{17b5}'
        | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}'
        | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{3164}'
        | '\u{fe00}'..='\u{fe0f}'
        | '\u{feff}'
        | '\u{ffa0}'
        | '\u{fff0}'..='\u{fff8}'
        | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}' => Some(""),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use icu_properties::CodePointSetData;
    use icu_properties::props::DefaultIgnorableCodePoint;
    use proptest::prelude::*;
    use unicode_normalization::UnicodeNormalization;

    fn folded(text: &str) -> String {
        FoldedText::without_case(text).as_str().to_ascii_lowercase() // as the lexer
    }

    #[test]
    fn what_reads_alike_is_spelled_alike() {
        for (text, expected) in [
            ("co\u{ad}operate \u{feff}x\u{200d}y", "cooperate xy"),
            ("ｆｕｌｌ　ｗｉｄｔｈ ﬁne", "full width fine"),
            ("STRASSE straße Straẞe", "strasse strasse strasse"),
            ("ΣΟΦΟΣ σοφος σοφοσ", "σοφοσ σοφοσ σοφοσ"),
            ("don’t צה״ל", "don't צה\"ל"),
            ("ŉ ʼn", "'n 'n"),
            ("ไทย\u{200b}ไทย", "ไทยไทย"),
        ] {
            assert_eq!(folded(text), expected);
        }
    }

    #[test]
    fn a_plain_character_is_folded_by_its_table() {
        for character in ('\u{80}'..=char::MAX).filter(|it| is_plain(*it)) {
            let expected = CASES.fold_string(&character.to_string()).into_owned();
            assert_eq!(lower(character).to_string(), expected);
            assert!(NFKC.is_normalized(&expected));
        }
    }

    #[test]
    fn code_keeps_its_case() {
        assert_eq!(FoldedText::with_case("Größe ＡＢ").as_str(), "Größe AB");
        assert_eq!(FoldedText::with_case("ASCII").as_str(), "ASCII");
    }

    #[test]
    fn the_ignorable_characters_are_those_of_unicode() {
        let ignorable = CodePointSetData::new::<DefaultIgnorableCodePoint>();
        for character in '\0'..=char::MAX {
            assert_eq!(replacement(character) == Some(""), ignorable.contains(character));
        }
    }

    proptest! {
        #[test]
        fn what_is_copied_is_the_ascii_of_the_text(text in "([ -~]{0,20}|é|—){0,9}") {
            let folded = FoldedText::with_case(&text);
            prop_assert_eq!(folded.as_str(), &text);
        }

        #[test]
        fn plain_texts_are_folded_as_all_are(text in "([À-Þà-ÿЀ-џא-תء-ي]|[–“”、。ぁ-ゖァ-ヺー一-龥가-힣])+") {
            prop_assert!(text.chars().all(is_plain));
            let folding = NFKC.normalize(&CASES.fold_string(&NFKC.normalize(&text))).into_owned();
            prop_assert_eq!(folded(&text), folding.to_ascii_lowercase());
        }

        #[test]
        fn canonically_equal_texts_are_folded_alike(text in "(\\PC|[e=n]|[\u{300}-\u{36f}]|[가-힣]|[ᄀ-ᇿ])*") {
            let composed: String = text.nfc().collect();
            let decomposed: String = text.nfd().collect();
            prop_assert_eq!(folded(&composed), folded(&decomposed));
            prop_assert_eq!(folded(&composed), folded(&text));
        }

        #[test]
        fn a_folded_text_stays_as_it_is(text in "(\\PC|[ẞΣſİ]|[\u{300}-\u{36f}])*") {
            let once = folded(&text);
            prop_assert_eq!(folded(&once), once);
        }
    }
}
