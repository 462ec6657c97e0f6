//! Classes of bytes, runs of bytes of one class, and counted names.

/// Names with their numbers of occurrences, in the order of their first occurrences.
pub type Counts = Vec<(Vec<u8>, u64)>;

/// A letter, a digit or an underscore.
pub fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// A byte that a name may start with.
pub fn starts_name(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_'
}

/// White space, of any kind.
pub fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c)
}

/// White space within a line.
pub fn is_blank(byte: u8) -> bool {
    byte == b' ' || byte == b'\t'
}

/// The end of the run, from `from` on, of bytes of a class.
pub fn run(text: &[u8], from: usize, class: impl Fn(u8) -> bool) -> usize {
    text[from..]
        .iter()
        .position(|&byte| !class(byte))
        .map_or(text.len(), |length| from + length)
}

/// Whether a run of word bytes could start at `at`: the byte before does not belong to a word.
pub fn at_boundary(text: &[u8], at: usize) -> bool {
    at == 0 || !is_word(text[at - 1])
}

/// The end of the directive whose `#` is at `at`: the end of its line, or of the lines that backslashes join.
pub fn directive_end(text: &[u8], from: usize) -> usize {
    let mut at = from;
    while let Some(&byte) = text.get(at) {
        match byte {
            b'\n' => break,
            b'\\' if text[at + 1..].starts_with(b"\r\n") => at += 3,
            b'\\' if at + 1 == text.len() => break,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    at
}
