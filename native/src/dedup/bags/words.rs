//! The words of a stretch with characters beyond ASCII.
//!
//! Words end at the boundaries of Unicode (UAX #29). Thai, Lao, Khmer, Burmese, Chinese and Japanese are written
//! without blanks; there the longest words of ICU's dictionaries are taken, from front to back.
//!
//! What no dictionary has falls into clusters, a letter with its marks each, and as words these would make all texts
//! of a script alike. So three or more clusters in a row count as overlapping pairs, or four or more ideographs, and so
//! do the words of scripts without a dictionary. Fewer are words of one cluster, as many particles are.

use std::sync::LazyLock;

use icu_segmenter::options::WordBreakInvariantOptions;
use icu_segmenter::{GraphemeClusterSegmenter, GraphemeClusterSegmenterBorrowed};
use icu_segmenter::{WordSegmenter, WordSegmenterBorrowed};

static WORDS: LazyLock<WordSegmenterBorrowed<'static>> =
    LazyLock::new(|| WordSegmenter::new_dictionary(WordBreakInvariantOptions::default()));
const CLUSTERS: GraphemeClusterSegmenterBorrowed<'static> = GraphemeClusterSegmenter::new();

/// How the words of a script are found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Script {
    /// Between blanks or signs.
    #[default]
    Separate,
    /// By a dictionary, or else one by one.
    Ideographs,
    /// By a dictionary, or else cluster by cluster.
    Listed,
    /// Cluster by cluster, because it has no blanks and no dictionary.
    Unlisted,
}

fn script(character: char) -> Script {
    match character {
        '\u{e00}'..='\u{eff}' // Thai, Lao
        | '\u{1000}'..='\u{109f}' // Burmese
        | '\u{1780}'..='\u{17ff}' // Khmer
        | '\u{3041}'..='\u{30ff}' // kana
        | '\u{31f0}'..='\u{31ff}'
        | '\u{a9e0}'..='\u{a9ff}'
        | '\u{aa60}'..='\u{aa7f}'
        | '\u{1b000}'..='\u{1b16f}' => Script::Listed,
        '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}' => Script::Ideographs,
        '\u{1950}'..='\u{19df}' // Tai Le, New Tai Lue
        | '\u{1a20}'..='\u{1aaf}' // Tai Tham
        | '\u{1b00}'..='\u{1b7f}' // Balinese
        | '\u{a980}'..='\u{a9df}' // Javanese
        | '\u{aa80}'..='\u{aadf}' // Tai Viet
        | '\u{11700}'..='\u{1174f}' => Script::Unlisted, // Ahom
        _ => Script::Separate,
    }
}

/// Calls `emit` with every word of `stretch`, in order.
#[inline]
pub fn each_word<'a>(stretch: &'a str, mut emit: impl FnMut(&'a str)) {
    if !stretch.chars().all(|it| is_plain_letter(it) || is_plain_sign(it)) {
        return each_segment(stretch, emit);
    }
    for word in stretch.split(is_plain_sign) {
        if word.chars().any(char::is_alphanumeric) {
            emit(word);
        }
    }
}

/// A letter that joins its neighbors, of Latin or Cyrillic; most text beyond ASCII needs no search of boundaries.
#[inline]
fn is_plain_letter(character: char) -> bool {
    match character {
        '\0'..='\u{7f}' => true, // a stretch has only letters, digits and `_` of ASCII
        '\u{d7}' | '\u{f7}' => false,
        '\u{c0}'..='\u{24f}' | '\u{400}'..='\u{481}' | '\u{48a}'..='\u{52f}' => true,
        _ => false,
    }
}

/// A quotation mark or dash, which ends a word.
#[inline]
fn is_plain_sign(character: char) -> bool {
    matches!(character, '\u{ab}' | '\u{bb}' | '\u{2010}'..='\u{2017}' | '\u{201a}' | '\u{201c}'..='\u{2022}')
}

fn each_segment<'a>(stretch: &'a str, mut emit: impl FnMut(&'a str)) {
    let mut row = Row::default();
    let mut begin = 0;
    for end in WORDS.segment_str(stretch).skip(1) {
        let word = &stretch[begin..end];
        let script = word.chars().next().map_or(Script::Separate, script);
        if script != row.script || row.end != begin {
            row.finish(stretch, &mut emit);
            row.script = script;
        }
        if script == Script::Unlisted || script != Script::Separate && is_cluster(word) {
            if word.chars().any(char::is_alphanumeric) {
                let inner = CLUSTERS.segment_str(word).take_while(|at| *at < word.len());
                row.begins.extend(inner.map(|at| begin + at));
                row.end = end;
            }
        } else {
            row.finish(stretch, &mut emit);
            if word.chars().any(char::is_alphanumeric) {
                emit(word);
            }
        }
        begin = end;
    }
    row.finish(stretch, &mut emit);
}

fn is_cluster(word: &str) -> bool {
    CLUSTERS.segment_str(word).nth(1) == Some(word.len())
}

/// Clusters of one script in a row, by their begins.
#[derive(Default)]
struct Row {
    script: Script,
    begins: Vec<usize>,
    end: usize,
}

impl Row {
    fn finish<'a>(&mut self, stretch: &'a str, emit: &mut impl FnMut(&'a str)) {
        let least = if self.script == Script::Ideographs { 4 } else { 3 };
        let words = if self.begins.len() < least { 1 } else { 2 };
        if !self.begins.is_empty() {
            self.begins.push(self.end);
            for bounds in self.begins.windows(words + 1) {
                emit(&stretch[bounds[0]..bounds[words]]);
            }
            self.begins.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn words(stretch: &str) -> Vec<&str> {
        let mut words = Vec::new();
        each_word(stretch, |word| words.push(word));
        words
    }

    /// Fails if another version of the crates cuts words elsewhere: bags of both versions must not meet, and a
    /// change of `Cargo.toml` sees to that, because it is part of the code version.
    #[test]
    fn scripts_without_blanks_are_cut_by_dictionaries() {
        for (text, expected) in [
            ("ภาษาไทยไม่มีช่องว่าง", "ภาษา ไทย ไม่มี ช่อง ว่าง"),
            ("ທົດສອບພາສາລາວ", "ທົດສອບ ພາສາ ລາວ"),
            ("ភាសាខ្មែរ", "ភាសាខ្មែរ"),
            ("မြန်မာဘာသာစကား", "မြန်မာဘာသာ စကား"),
            ("日本語を勉強します", "日本語 を 勉強 しま す"),
            ("我们学习中文", "我们 学习 中文"),
        ] {
            assert_eq!(words(text).join(" "), expected);
        }
    }

    #[test]
    fn clusters_that_no_dictionary_has_are_pairs() {
        assert_eq!(words("ฃูฃีฃิ"), ["ฃูฃี", "ฃีฃิ"]);
        assert_eq!(words("㐀㐁㐂㐃"), ["㐀㐁", "㐁㐂", "㐂㐃"]);
        assert_eq!(words("㐀㐁㐂"), ["㐀", "㐁", "㐂"]);
        assert_eq!(words("ᦑᦟᦹᧉ"), ["ᦑᦟ", "ᦟᦹ", "ᦹᧉ"]);
        assert_eq!(words("ᦑᦟ"), ["ᦑ", "ᦟ"]);
    }

    #[test]
    fn other_scripts_are_cut_at_the_boundaries_of_unicode() {
        assert_eq!(words("über—naïve„क्षमा”שלום"), ["über", "naïve", "क्षमा", "שלום"]);
        assert_eq!(words("_é_1"), ["_é_1"]);
        assert_eq!(words("—…“”"), Vec::<&str>::new());
    }

    proptest! {
        #[test]
        fn plain_stretches_end_at_the_boundaries_too(stretch in "([À-ɏЀ-ҁҊ-ԯa-z0-9_]|[×÷«»‐-‗‚“-•])+") {
            let mut segments = Vec::new();
            each_segment(&stretch, |word| segments.push(word));
            prop_assert_eq!(words(&stretch), segments);
        }

        #[test]
        fn every_letter_stands_in_a_word(stretch in "([ก-๎]|[ກ-ໝ]|[က-႟]|[ក-៹]|[ぁ-ヿ]|[一-龥]|[ᦀ-᧟]|é|—|a)+") {
            let mut end = 0;
            for word in words(&stretch) {
                let begin = word.as_ptr() as usize - stretch.as_ptr() as usize;
                prop_assert!(!stretch[end.min(begin)..begin].chars().any(char::is_alphanumeric));
                end = begin + word.len();
            }
            prop_assert!(!stretch[end..].chars().any(char::is_alphanumeric));
        }
    }
}
