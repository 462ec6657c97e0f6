//! The class of every character: space, letter, letter or number, and finer classes of ASCII.
//!
//! A space has Unicode's property White_Space, a letter Alphabetic, a number a category N*: Rust's own
//! tables. `boundaries` gives the same classes to the Python reference, so that both sides agree on every code
//! point, whatever Unicode version the interpreter has.

pub const SPACE: u8 = 1;
pub const LETTER: u8 = 2;
pub const ALPHANUMERIC: u8 = 4;
pub const DIGIT: u8 = 8; // 0 to 9 only
pub const UNDERSCORE: u8 = 16;
pub const ENCODED: u8 = 64; // A-Z a-z 0-9 + /: the alphabet of base64, a superset of hex

/// The classes of ASCII bytes; the bytes of longer characters have none.
pub static ASCII: [u8; 256] = ascii();

const fn ascii() -> [u8; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 128 {
        let character = byte as u8;
        table[byte] = match character {
            b'\t'..=b'\r' | b' ' => SPACE,
            b'a'..=b'z' | b'A'..=b'Z' => LETTER | ALPHANUMERIC | ENCODED,
            b'0'..=b'9' => DIGIT | ALPHANUMERIC | ENCODED,
            b'+' | b'/' => ENCODED,
            b'_' => UNDERSCORE,
            _ => 0,
        };
        byte += 1;
    }
    table
}

/// The classes of any character.
#[inline]
pub fn class(character: char) -> u8 {
    if character.is_ascii() {
        ASCII[character as usize]
    } else if character.is_alphabetic() {
        LETTER | ALPHANUMERIC
    } else if character.is_numeric() {
        ALPHANUMERIC
    } else if character.is_whitespace() {
        SPACE
    } else {
        0
    }
}

/// Whether a sentence ends with `character`: Unicode's Sentence_Terminal, for scripts in use.
pub fn is_terminal(character: char) -> bool {
    matches!(
        character,
        '!' | '.' | '?' // any alphabet
            | '\u{589}' // Armenian
            | '\u{61d}'..='\u{61f}' | '\u{6d4}' // Arabic, Urdu
            | '\u{700}'..='\u{702}' // Syriac
            | '\u{7f9}' // N'Ko
            | '\u{964}' | '\u{965}' // scripts of India
            | '\u{104a}' | '\u{104b}' // Burmese
            | '\u{1362}' | '\u{1367}' | '\u{1368}' // Ethiopic
            | '\u{17d4}' | '\u{17d5}' // Khmer
            | '\u{1803}' | '\u{1809}' // Mongolian
            | '\u{2047}'..='\u{2049}' | '\u{2e2e}' // two marks in one, and a mirrored one
            | '\u{3002}' | '\u{ff01}' | '\u{ff0e}' | '\u{ff1f}' | '\u{ff61}' // Chinese, Japanese
            | '\u{fe52}' | '\u{fe56}' | '\u{fe57}' // the same, small
    )
}

/// The number of characters of `text` other than spaces.
pub fn visible(text: &str) -> usize {
    let bytes = text.as_bytes();
    if bytes.is_ascii() {
        return bytes
            .iter()
            .filter(|byte| ASCII[**byte as usize] & SPACE == 0)
            .count();
    }
    text.chars()
        .filter(|character| class(*character) & SPACE == 0)
        .count()
}

/// The code points where runs of `wanted` characters begin and end, ascending: [begin, end, begin, ...).
pub fn boundaries(wanted: impl Fn(char) -> bool) -> Vec<u32> {
    let mut inside = false;
    let mut found = Vec::new();
    for point in 0..=char::MAX as u32 + 1 {
        let member = char::from_u32(point).is_some_and(&wanted);
        if member != inside {
            found.push(point);
            inside = member;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ascii_table_agrees_with_unicode() {
        for byte in 0..128u8 {
            let character = byte as char;
            assert_eq!(
                ASCII[byte as usize] & SPACE != 0,
                character.is_whitespace(),
                "{byte}"
            );
            assert_eq!(
                ASCII[byte as usize] & LETTER != 0,
                character.is_alphabetic(),
                "{byte}"
            );
            assert_eq!(
                ASCII[byte as usize] & ALPHANUMERIC != 0,
                character.is_alphanumeric(),
                "{byte}"
            );
        }
    }

    #[test]
    fn the_classes_of_longer_characters_are_unicodes() {
        for point in 128..=char::MAX as u32 {
            let Some(character) = char::from_u32(point) else {
                continue;
            };
            let classes = class(character);
            assert_eq!(classes & SPACE != 0, character.is_whitespace(), "{point:x}");
            assert_eq!(classes & LETTER != 0, character.is_alphabetic(), "{point:x}");
            assert_eq!(
                classes & ALPHANUMERIC != 0,
                character.is_alphanumeric(),
                "{point:x}"
            );
            assert_eq!(classes & !(SPACE | LETTER | ALPHANUMERIC), 0, "{point:x}");
        }
    }

    #[test]
    fn boundaries_alternate_between_in_and_out() {
        assert_eq!(boundaries(|it| it.is_ascii_digit()), [0x30, 0x3a]);
        assert_eq!(boundaries(char::is_whitespace)[..4], [0x9, 0xe, 0x20, 0x21]);
        assert_eq!(boundaries(char::is_alphabetic).len() % 2, 0);
        assert_eq!(boundaries(is_terminal)[..6], [0x21, 0x22, 0x2e, 0x2f, 0x3f, 0x40]);
    }

    #[test]
    fn visible_characters_are_counted_beyond_ascii() {
        assert_eq!(visible(" a\tb\n"), 2);
        assert_eq!(visible("\u{3000}日 本\u{a0}"), 2);
        assert_eq!(visible(""), 0);
    }
}
