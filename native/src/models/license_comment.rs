//! The license comment at the head of a file.
//!
//! Thousands of files share it, and without this cut their clusters would be licenses. The head of a text is the
//! run of blank lines and comments that it begins with, behind a line `#!...` or `<?...`. A comment is a block
//! between two signs, or a run of lines that begin with the same sign. The last one that names a license ends
//! the part that is cut off. `factory/models/lsa.py` is the readable definition.

const BLOCKS: [(&str, &str); 4] = [("/*", "*/"), ("<!--", "-->"), ("(*", "*)"), ("{-", "-}")];
const LINES: [&str; 5] = ["#", "//", "--", ";", "%"];
const TERMS: [&str; 4] = ["license", "licence", "copyright", "spdx"];

/// The text behind the last comment of its head that names a license; all of it if nothing is left then.
pub fn without_license_comment(text: &str) -> &str {
    let mut begin = 0;
    let mut rest = text.strip_prefix('\u{feff}').unwrap_or(text);
    if rest.starts_with("#!") || rest.starts_with("<?") {
        rest = &rest[line_length(rest)..];
    }
    loop {
        rest = rest.trim_ascii_start();
        let length = comment_length(rest);
        if length == 0 {
            break;
        }
        let (comment, behind) = rest.split_at(length);
        if names_license(comment) {
            begin = text.len() - behind.len();
        }
        rest = behind;
    }
    let behind = &text[begin..];
    if behind.trim_ascii_start().is_empty() {
        text
    } else {
        behind
    }
}

/// The bytes of the comment that `text` begins with; 0 without one.
fn comment_length(text: &str) -> usize {
    if let Some((open, close)) = BLOCKS.iter().find(|(open, _)| text.starts_with(open)) {
        let inner = &text[open.len()..];
        return inner.find(close).map_or(0, |at| open.len() + at + close.len());
    }
    let Some(sign) = LINES.iter().find(|sign| text.starts_with(**sign)) else {
        return 0;
    };
    let mut length = 0;
    loop {
        let rest = &text[length..];
        let blanks = rest.len() - rest.trim_start_matches([' ', '\t']).len();
        if !rest[blanks..].starts_with(sign) {
            return length;
        }
        length += line_length(rest);
    }
}

/// The bytes of the first line of `text`, with its end.
fn line_length(text: &str) -> usize {
    memchr::memchr(b'\n', text.as_bytes()).map_or(text.len(), |at| at + 1)
}

fn names_license(comment: &str) -> bool {
    let lower = comment.to_ascii_lowercase();
    TERMS.iter().any(|term| lower.contains(term))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_last_comment_that_names_a_license_ends_the_cut() {
        for (text, behind) in [
            ("#!/bin/sh\n# Copyright 2020\n# by us\necho 1", "echo 1"),
            (
                "/* MIT License */\n\n/* Sorts. */ int a;",
                "\n\n/* Sorts. */ int a;",
            ),
            (
                "// The queue.\n\n// SPDX-License-Identifier: MIT\nint a;",
                "int a;",
            ),
            ("<?php\n/**\n * @license MIT\n */\nf();", "\nf();"),
            ("# The queue.\nlicense = 1", "# The queue.\nlicense = 1"),
            ("int a; // Copyright", "int a; // Copyright"),
        ] {
            assert_eq!(without_license_comment(text), behind);
        }
    }

    #[test]
    fn a_comment_without_an_end_or_without_more_behind_it_stays() {
        for text in ["", "/* Copyright", "# Copyright 2020\n\n", "-- license"] {
            assert_eq!(without_license_comment(text), text);
        }
    }

    proptest! {
        #[test]
        fn a_cut_text_is_the_end_of_the_text(text in "(# |// |/\\*|\\*/|license|é|\n| |a|#!|<\\?){0,12}") {
            prop_assert!(text.ends_with(without_license_comment(&text)));
        }
    }
}
