//! Compiling search patterns and explaining what is wrong with them.

use super::go_regex::translate;
use super::{Case, Pattern};
use crate::{Error, Result};
use grep_regex::{ErrorKind, RegexMatcher, RegexMatcherBuilder};

/// Maximum length of a pattern in bytes. Longer ones are mistakes and slow to compile.
const MAX_PATTERN: usize = 64 << 10;

/// Maximum memory for the compiled pattern, and for the state cache of each thread.
const MAX_COMPILED: usize = 16 << 20;

/// Compiles a pattern that matches within a single line.
pub(super) fn compile(pattern: &Pattern, case: Case) -> Result<RegexMatcher> {
    let given = match pattern {
        Pattern::Regex(given) | Pattern::Literal(given) => given,
    };
    let invalid = |reason: String| {
        let shown: String = given.chars().take(200).collect();
        Error::InvalidPattern {
            pattern: shown,
            reason,
        }
    };
    if given.len() > MAX_PATTERN {
        return Err(invalid(format!("it is longer than {MAX_PATTERN} bytes")));
    }
    if given.contains('\n') {
        return Err(invalid(NEWLINE.to_owned()));
    }
    let mut builder = RegexMatcherBuilder::new();
    builder
        // `\r\n` ends a line just as `\n` does: `;$` matches before both.
        .crlf(true)
        .multi_line(true)
        .unicode(true)
        .octal(false)
        .case_insensitive(case == Case::Insensitive)
        .size_limit(MAX_COMPILED)
        .dfa_size_limit(MAX_COMPILED)
        .nest_limit(200);
    let text = match pattern {
        Pattern::Literal(text) => {
            builder.fixed_strings(true);
            text.clone()
        }
        Pattern::Regex(text) => translate(text).map_err(invalid)?,
    };
    let build = |builder: &mut RegexMatcherBuilder| builder.build(&text);
    let built = match build(&mut builder) {
        // A pattern that contains `\r` must be able to match it, so lines end at `\n` only.
        Err(error) if matches!(error.kind(), ErrorKind::NotAllowed(text) if text == "\r") => {
            build(builder.crlf(false).line_terminator(Some(b'\n')))
        }
        built => built,
    };
    built.map_err(|error| invalid(explain(error.kind())))
}

/// Returns why a pattern is not a regular expression, if it has no sign of being meant as
/// one: code such as `foo(` or `x++`.
pub fn meant_literally(pattern: &str) -> Option<String> {
    let signs = ["\\", ".*", ".+", ".?", "|", "^", "$", "[^", "(?"];
    let class = pattern.contains('[') && pattern.contains(']');
    if class || signs.iter().any(|sign| pattern.contains(sign)) {
        return None;
    }
    match compile(&Pattern::Regex(pattern.to_owned()), Case::Sensitive) {
        Err(Error::InvalidPattern { reason, .. }) => {
            let (reason, _) = reason.split_once("; to find this text as it is")?;
            Some(reason.to_owned())
        }
        _ => None,
    }
}

const NEWLINE: &str = "a newline cannot be matched, because the search works line by line; search for one of the lines";

/// Turns a message of the regex library into one sentence with advice.
fn explain(kind: &ErrorKind) -> String {
    let text = match kind {
        ErrorKind::NotAllowed(_) => return NEWLINE.to_owned(),
        ErrorKind::Banned(_) => {
            return "a NUL byte cannot be matched, because binary files are not searched"
                .to_owned();
        }
        ErrorKind::Regex(text) => text.clone(),
        other => format!("{other:?}"),
    };
    if text.contains("look-around") {
        return "look-around such as (?=…), (?!…), (?<=…) and (?<!…) is not supported; match more text instead, or search in two steps"
            .to_owned();
    }
    if text.contains("backreferences") {
        return "backreferences such as \\1 are not supported; write the text out, or search in two steps".to_owned();
    }
    if text.contains("size limit") {
        return "it is too large when compiled; use smaller repetition counts".to_owned();
    }
    // The library marks the position on separate lines; the last line has the message.
    let last = text.lines().last().unwrap_or_default();
    let reason = last.strip_prefix("error: ").unwrap_or(last);
    let place = pointed_at(&text)
        .map(|piece| format!(" at `{piece}`"))
        .unwrap_or_default();
    format!(
        "{reason}{place}; to find this text as it is, escape special characters with a backslash"
    )
}

/// Returns the part of the pattern that is marked with carets.
fn pointed_at(text: &str) -> Option<String> {
    let lines: Vec<&str> = text.lines().collect();
    let at = lines
        .iter()
        .position(|line| line.contains('^') && line.trim_matches(['^', ' ']).is_empty())?;
    let carets = lines.get(at)?;
    let begin = carets.chars().take_while(|c| *c == ' ').count();
    let length = carets.chars().filter(|c| *c == '^').count();
    let piece: String = lines
        .get(at.checked_sub(1)?)?
        .chars()
        .skip(begin)
        .take(length)
        .collect();
    Some(piece.trim().to_owned()).filter(|piece| !piece.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use grep_matcher::Matcher;

    fn regex(pattern: &str) -> Result<RegexMatcher> {
        compile(&Pattern::Regex(pattern.to_owned()), Case::Sensitive)
    }

    fn reason(pattern: &str) -> String {
        regex(pattern).unwrap_err().to_string()
    }

    #[test]
    fn unsupported_patterns_are_explained() {
        assert!(reason(r"a(?=b)").contains("look-around"));
        assert!(reason(r"(?<!x)a").contains("look-around"));
        assert!(reason(r"(a)\1").contains("backreferences"));
        assert!(reason("a\nb").contains("newline"));
        assert!(reason(r"a\nb").contains("newline"));
        assert!(
            reason("a(b").contains("unclosed group"),
            "{}",
            reason("a(b")
        );
        assert!(!reason("a(b").contains('\n'));
        assert!(
            reason(&"(".repeat(1_000)).contains("nest")
                || reason(&"(".repeat(1_000)).contains("unclosed")
        );
        assert!(reason(r"((\w{1000}){1000}){1000}").contains("too large"));
        assert!(reason(&"x".repeat(100_000)).contains("longer"));
    }

    #[test]
    fn dollar_matches_before_both_line_endings() {
        let matcher = regex("b$").unwrap();
        assert!(matcher.is_match(b"ab\r").unwrap());
        assert!(matcher.is_match(b"ab").unwrap());
        assert!(!matcher.is_match(b"abc\r").unwrap());
    }

    #[test]
    fn a_carriage_return_can_be_looked_for() {
        for pattern in [r"b\r$", r"\r", "\r"] {
            let matcher = regex(pattern).unwrap();
            assert!(matcher.is_match(b"ab\r").unwrap(), "{pattern:?}");
            assert!(!matcher.is_match(b"ab").unwrap(), "{pattern:?}");
        }
        assert!(reason(r"a\r\nb").contains("newline"));
    }

    #[test]
    fn literals_have_no_special_characters() {
        let literal = |text: &str, case| compile(&Pattern::Literal(text.to_owned()), case).unwrap();
        assert!(literal("a.b", Case::Sensitive).is_match(b"xa.b").unwrap());
        assert!(!literal("a.b", Case::Sensitive).is_match(b"axb").unwrap());
        assert!(
            literal(r"\Qa", Case::Insensitive)
                .is_match(br"x\qA")
                .unwrap()
        );
    }
}
