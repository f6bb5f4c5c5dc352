//! Changes of a text that the mistakes consist of.

use icu_normalizer::{ComposingNormalizerBorrowed, DecomposingNormalizerBorrowed};

/// Applies a change to every line.
fn lines(text: &str, change: impl Fn(usize, &str) -> String) -> String {
    let ends = text.ends_with('\n');
    let lines: Vec<String> = text
        .lines()
        .enumerate()
        .map(|(index, line)| change(index, line))
        .collect();
    let text = lines.join("\n");
    if ends { text + "\n" } else { text }
}

/// Puts line numbers in front.
pub(crate) fn numbered(text: &str, first: usize, width: usize, separator: &str) -> String {
    lines(text, |index, line| {
        format!("{:>width$}{separator}{line}", first + index)
    })
}

pub(crate) fn json_escaped(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
        .replace('\t', "\\t")
}

pub(crate) fn entities(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

fn indent(line: &str) -> &str {
    line.get(..line.len() - line.trim_start_matches([' ', '\t']).len())
        .unwrap_or_default()
}

/// Returns a function that removes the indentation that all lines of a text share.
pub(crate) fn dedented(like: &str) -> impl Fn(&str) -> String {
    let common = like
        .lines()
        .filter(|line| !line.trim().is_empty())
        .map(|line| indent(line).len())
        .min()
        .unwrap_or(0);
    move |text| {
        lines(text, |_, line| {
            line.get(common..).unwrap_or(line.trim_start()).to_owned()
        })
    }
}

/// Returns a function that removes some spaces from every line, where all lines of a text have them.
pub(crate) fn shallower(like: &str, spaces: usize) -> impl Fn(&str) -> String {
    let pad = " ".repeat(spaces);
    let possible = like
        .lines()
        .filter(|line| !line.trim().is_empty())
        .all(|line| line.starts_with(&pad));
    move |text| {
        if !possible {
            return text.to_owned();
        }
        lines(text, |_, line| {
            line.strip_prefix(&pad).unwrap_or(line).to_owned()
        })
    }
}

pub(crate) fn indented(text: &str, by: &str) -> String {
    lines(text, |_, line| {
        if line.trim().is_empty() {
            line.to_owned()
        } else {
            format!("{by}{line}")
        }
    })
}

pub(crate) fn untabbed(text: &str, width: usize) -> String {
    lines(text, |_, line| {
        let (indent, body) = line
            .split_at_checked(indent(line).len())
            .unwrap_or(("", line));
        format!("{}{body}", indent.replace('\t', &" ".repeat(width)))
    })
}

pub(crate) fn tabbed(text: &str, width: usize) -> String {
    let unit = " ".repeat(width);
    if text
        .lines()
        .any(|line| !indent(line).len().is_multiple_of(width) || indent(line).contains('\t'))
    {
        return text.to_owned();
    }
    lines(text, |_, line| {
        let (indent, body) = line
            .split_at_checked(indent(line).len())
            .unwrap_or(("", line));
        format!("{}{body}", indent.replace(&unit, "\t"))
    })
}

pub(crate) fn without_blank_lines(text: &str) -> String {
    let kept: Vec<&str> = text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    if text.ends_with('\n') {
        return kept.join("\n") + "\n";
    }
    kept.join("\n")
}

pub(crate) fn curly(text: &str) -> String {
    let mut open = true;
    text.chars()
        .map(|c| match c {
            '"' => {
                open = !open;
                if open { '\u{201d}' } else { '\u{201c}' }
            }
            '\'' => '\u{2019}',
            other => other,
        })
        .collect()
}

pub(crate) fn straight(text: &str) -> String {
    text.replace(['\u{201c}', '\u{201d}'], "\"")
        .replace(['\u{2018}', '\u{2019}'], "'")
}

pub(crate) fn decomposed(text: &str) -> String {
    DecomposingNormalizerBorrowed::new_nfd()
        .normalize(text)
        .into_owned()
}

pub(crate) fn composed(text: &str) -> String {
    ComposingNormalizerBorrowed::new_nfc()
        .normalize(text)
        .into_owned()
}

/// Returns the longest word of a text.
fn word(text: &str) -> &str {
    text.split(|c: char| !c.is_ascii_alphabetic())
        .max_by_key(|word| word.len())
        .unwrap_or_default()
}

pub(crate) fn swapped_case(text: &str) -> String {
    let word = word(text);
    let mut chars = word.chars();
    let Some(first) = chars.next() else {
        return text.to_owned();
    };
    let swapped = if first.is_ascii_uppercase() {
        first.to_ascii_lowercase()
    } else {
        first.to_ascii_uppercase()
    };
    text.replacen(word, &format!("{swapped}{}", chars.as_str()), 1)
}

pub(crate) fn mistyped(text: &str) -> String {
    let word = word(text);
    let typo: String = word
        .chars()
        .enumerate()
        .filter(|(index, _)| *index != 1)
        .map(|(_, c)| c)
        .collect();
    if word.len() < 4 {
        text.to_owned()
    } else {
        text.replacen(word, &typo, 1)
    }
}

pub(crate) fn renamed(text: &str) -> String {
    let word = word(text);
    if word.len() < 4 {
        text.to_owned()
    } else {
        text.replace(word, &format!("my{word}Value"))
    }
}
