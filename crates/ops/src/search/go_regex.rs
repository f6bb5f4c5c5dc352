//! Translates Go's regular expressions to Rust's. Most of the syntax is the same. The
//! exceptions are quoted text (`\Q…\E`), literal braces (`interface{}`), octal numbers, and
//! bracket classes: Rust's classes nest and have operators (`&&`, `--`, `~~`), Go's do not.

use std::str::Chars;

/// Translates a Go pattern. Errors that both dialects reject are left for Rust to report.
///
/// # Errors
/// The reason if Go rejects a pattern that has another meaning in Rust.
pub(super) fn translate(pattern: &str) -> Result<String, String> {
    let mut result = String::with_capacity(pattern.len());
    let mut rest = pattern.chars();
    while let Some(c) = rest.next() {
        match c {
            '\\' if is_octal(rest.as_str()) => octal(&mut rest, &mut result),
            '\\' => match rest.next() {
                Some('Q') => quoted(&mut rest).for_each(|c| escape(&mut result, c)),
                Some(class @ ('p' | 'P' | 'x' | 'u' | 'U' | 'b')) => {
                    result.extend(['\\', class]);
                    // `\p{Greek}`, `\x{10FFFF}`, `\b{start}`: these braces are part of an
                    // escape.
                    braces(&mut rest, &mut result);
                }
                Some(other) => result.extend(['\\', other]),
                None => result.push('\\'),
            },
            '[' => class(&mut rest, &mut result)?,
            '{' if !counts(rest.as_str()) => result.push_str("\\{"),
            other => result.push(other),
        }
    }
    Ok(result)
}

/// Translates a bracket class, after its opening bracket.
fn class(rest: &mut Chars<'_>, result: &mut String) -> Result<(), String> {
    result.push('[');
    if skip(rest, "^") {
        result.push('^');
    }
    // A closing bracket at the start is a literal character.
    let mut is_first = true;
    while !rest.as_str().is_empty() {
        if !is_first && skip(rest, "]") {
            result.push(']');
            return Ok(());
        }
        is_first = false;
        if let Some((name, behind)) = named(rest.as_str()) {
            if !NAMES.contains(&name.trim_start_matches('^')) {
                return Err(format!(
                    "`[:{name}:]` is not a character class; known classes: {}",
                    NAMES.join(", ")
                ));
            }
            result.extend(["[:", name, ":]"]);
            *rest = behind.chars();
        } else if skip(rest, "\\Q") {
            quoted(rest).for_each(|c| escape(result, c));
        } else if let Some(letter) = letter(rest.as_str()) {
            result.extend(rest.by_ref().take(2));
            if matches!(letter, 'p' | 'P') {
                braces(rest, result);
            }
        } else {
            one(rest, result);
            // `a-]` is an `a` and a hyphen.
            let behind = rest.as_str().strip_prefix('-');
            if behind.is_some_and(|behind| !behind.is_empty() && !behind.starts_with(']')) {
                rest.next();
                result.push('-');
                one(rest, result);
            }
        }
    }
    Ok(())
}

/// POSIX classes, which both dialects support.
const NAMES: [&str; 14] = [
    "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct",
    "space", "upper", "word", "xdigit",
];

/// Returns the name in `[:alpha:]` and the text after it.
fn named(text: &str) -> Option<(&str, &str)> {
    text.strip_prefix("[:")?.split_once(":]")
}

/// Returns the letter of `\d` and similar classes, if one is next.
fn letter(text: &str) -> Option<char> {
    let letter = text.strip_prefix('\\')?.chars().next();
    letter.filter(|c| "pPdDsSwW".contains(*c))
}

/// Translates one character of a class.
fn one(rest: &mut Chars<'_>, result: &mut String) {
    match rest.next() {
        None => {}
        Some('\\') if is_octal(rest.as_str()) => octal(rest, result),
        Some('\\') => match rest.next() {
            Some(number @ ('x' | 'u' | 'U')) => {
                result.extend(['\\', number]);
                let digits = match number {
                    'x' => 2,
                    'u' => 4,
                    _ => 8,
                };
                if !braces(rest, result) {
                    result.extend(rest.by_ref().take(digits));
                }
            }
            Some(mark) if mark.is_ascii_punctuation() || mark == ' ' => escape(result, mark),
            Some(other) => result.extend(['\\', other]),
            None => result.push('\\'),
        },
        Some(c @ ('[' | ']' | '^' | '-' | '&' | '~')) => escape(result, c),
        Some(c) => result.push(c),
    }
}

/// Returns the text up to `\E`.
fn quoted<'a>(rest: &mut Chars<'a>) -> Chars<'a> {
    let text = rest.as_str();
    let (quoted, behind) = text.split_once("\\E").unwrap_or((text, ""));
    *rest = behind.chars();
    quoted.chars()
}

/// Copies text in braces, if there is any. Returns whether there was.
fn braces(rest: &mut Chars<'_>, result: &mut String) -> bool {
    let there = rest.as_str().starts_with('{');
    if there {
        result.extend(rest.by_ref().take_while(|c| *c != '}'));
        result.push('}');
    }
    there
}

/// Whether an octal number follows a backslash. A single digit other than 0 would be a
/// backreference, which neither dialect supports.
fn is_octal(text: &str) -> bool {
    let mut digits = text.chars();
    let is_digit = |c: Option<char>| c.is_some_and(|c| c.is_digit(8));
    text.starts_with('0') || is_digit(digits.next()) && is_digit(digits.next())
}

/// Translates an octal number of up to three digits.
fn octal(rest: &mut Chars<'_>, result: &mut String) {
    let mut number = 0;
    for _ in 0..3 {
        let Some(digit) = rest.as_str().chars().next().and_then(|c| c.to_digit(8)) else {
            break;
        };
        rest.next();
        number = number * 8 + digit;
    }
    result.push_str(&format!("\\x{{{number:X}}}"));
}

/// Whether the text after a brace makes it a repetition count: `3}`, `3,}`, `3,5}`.
fn counts(after: &str) -> bool {
    let Some((inside, _)) = after.split_once('}') else {
        return false;
    };
    let (least, most) = inside.split_once(',').unwrap_or((inside, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    !least.is_empty() && digits(least) && digits(most)
}

fn skip(rest: &mut Chars<'_>, text: &str) -> bool {
    match rest.as_str().strip_prefix(text) {
        Some(behind) => {
            *rest = behind.chars();
            true
        }
        None => false,
    }
}

fn escape(result: &mut String, c: char) {
    match c {
        // A plain space is ignored after `(?x)`.
        ' ' => result.push_str("\\x20"),
        '\t' => result.push_str("\\t"),
        '\\' | '.' | '+' | '*' | '?' | '(' | ')' | '|' | '[' | ']' | '{' | '}' | '^' | '$'
        | '#' | '&' | '-' | '~' => {
            result.push('\\');
            result.push(c);
        }
        _ => result.push(c),
    }
}

#[cfg(test)]
mod tests;
