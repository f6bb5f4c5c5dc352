//! Expands variables in texts.

use std::path::Path;

/// Replaces `${NAME}` by the variable's value, and so `${env:NAME}` and `${NAME:-DEFAULT}`,
/// which other programs write. Any other dollar sign stays.
///
/// # Errors
/// Returns the name of a variable that is not set.
pub(crate) fn expand(
    text: &str,
    lookup: &dyn Fn(&str) -> Option<String>,
) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    for piece in pieces(text) {
        match piece {
            Piece::Plain(plain) => out.push_str(plain),
            Piece::Variable(name, default) => {
                let value = lookup(name).filter(|value| default.is_none() || !value.is_empty());
                let value = value.or_else(|| default.map(str::to_owned));
                out.push_str(&value.ok_or_else(|| name.to_owned())?);
            }
        }
    }
    Ok(out)
}

/// Returns the variables that [`expand`] would look up.
pub(crate) fn variables(text: &str) -> impl Iterator<Item = &str> {
    pieces(text).into_iter().filter_map(|piece| match piece {
        Piece::Variable(name, _) => Some(name),
        Piece::Plain(_) => None,
    })
}

/// Returns a path as it may be shown: the path itself, or its text if that contains
/// variables.
pub(crate) fn shown_path(written: &str, path: &Path) -> String {
    match variables(written).next() {
        Some(_) => written.to_owned(),
        None => path.display().to_string(),
    }
}

enum Piece<'a> {
    Plain(&'a str),
    /// The name in `${NAME}`, and the default.
    Variable(&'a str, Option<&'a str>),
}

fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        pieces.push(Piece::Plain(before));
        match after.split_once('}') {
            Some((inside, left)) if parts(inside).is_some() => {
                if let Some((name, default)) = parts(inside) {
                    pieces.push(Piece::Variable(name, default));
                }
                rest = left;
            }
            _ => {
                pieces.push(Piece::Plain("${"));
                rest = after;
            }
        }
    }
    pieces.push(Piece::Plain(rest));
    pieces
}

/// Whether a text is exactly one variable.
pub(crate) fn is_reference(text: &str) -> bool {
    text.strip_prefix("${")
        .and_then(|rest| rest.strip_suffix('}'))
        .is_some_and(|inside| parts(inside).is_some())
}

/// Splits the inside of a variable into its name and its default.
fn parts(inside: &str) -> Option<(&str, Option<&str>)> {
    let inside = inside.strip_prefix("env:").unwrap_or(inside);
    let (name, default) = match inside.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (inside, None),
    };
    is_name(name).then_some((name, default))
}

fn is_name(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_expanded_once() {
        let lookup = |name: &str| match name {
            "A" => Some("1".to_owned()),
            "LOOP" => Some("${A}".to_owned()),
            _ => None,
        };
        let expanded = |text| expand(text, &lookup);
        assert_eq!(expanded("x${A}y${A}").as_deref(), Ok("x1y1"));
        assert_eq!(expanded("${LOOP}").as_deref(), Ok("${A}"));
        assert_eq!(
            expanded("$A ${ A} ${} ${1} ${A").as_deref(),
            Ok("$A ${ A} ${} ${1} ${A")
        );
        assert_eq!(expanded("${NOPE}"), Err("NOPE".to_owned()));
        assert_eq!(expanded("${env:A}${env:NOPE:-b}").as_deref(), Ok("1b"));
        assert_eq!(expanded("${A:-x}${NOPE:-y:-z}").as_deref(), Ok("1y:-z"));
    }

    #[test]
    fn variables_lists_what_expand_looks_up() {
        let found = |text| variables(text).collect::<Vec<_>>().join(" ");
        assert_eq!(found("a ${A}${B} c"), "A B");
        // The inner one would be expanded.
        assert_eq!(found("${A${B}}"), "B");
        assert_eq!(found("$${A}"), "A");
        assert_eq!(found("${env:A} ${B:-x}"), "A B");
        assert_eq!(found("$A ${A:+x} ${ A} ${} ${1} ${A"), "");
    }
}
