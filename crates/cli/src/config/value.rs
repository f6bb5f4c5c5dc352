//! Values: of which kind they are, and what they are with variables expanded.

use super::keys::{Key, Kind};
use super::yaml::{Content, Node, Place};
use haft::ops::text::spelling::closest;
use serde_json::Value;
use std::path::Path;

/// Something wrong with a value.
#[derive(Debug)]
pub(crate) struct Wrong {
    pub(crate) at: Place,
    pub(crate) message: String,
}

/// Checks the kind of a value as it is written. A text that names variables is
/// only known once they are expanded, and then it is checked again.
pub(crate) fn check(key: &Key, node: &Node) -> Result<(), Wrong> {
    let wrong = |at: Place, got: &str| Wrong {
        at,
        message: format!("{} must be {}, got {got}", key.name, key.kind.wanted()),
    };
    match (key.kind, &node.content) {
        (Kind::Text, Content::Scalar(Value::String(_)))
        | (Kind::Truth, Content::Scalar(Value::Bool(_)))
        | (Kind::List | Kind::Rules, Content::List(_))
        | (Kind::Map, Content::Map(_))
        | (Kind::Anything, _) => Ok(()),
        (Kind::Choice(names), Content::Scalar(Value::String(text))) => {
            if text.contains("${") || names.contains(&text.as_str()) {
                return Ok(());
            }
            let mut wrong = wrong(node.at, &format!("\"{text}\""));
            if let Some(near) =
                closest(text, names.iter().map(|name| (*name).to_owned()), 1).first()
            {
                wrong
                    .message
                    .push_str(&format!("; did you mean \"{near}\"?"));
            }
            Err(wrong)
        }
        (Kind::Whole(least, most), Content::Scalar(Value::Number(number))) => {
            match number.as_u64() {
                Some(whole) if (least..=most).contains(&whole) => Ok(()),
                _ => Err(wrong(node.at, &number.to_string())),
            }
        }
        (Kind::Number(most), Content::Scalar(Value::Number(number))) =>
        {
            #[expect(clippy::cast_precision_loss, reason = "a bound, not a count")]
            match number.as_f64() {
                Some(value) if (0.0..=most as f64).contains(&value) => Ok(()),
                _ => Err(wrong(node.at, &number.to_string())),
            }
        }
        (Kind::Texts, Content::List(items)) => {
            match items.iter().find(|item| item.text().is_none()) {
                Some(item) => Err(wrong(item.at, &format!("{} in it", item.kind()))),
                None => Ok(()),
            }
        }
        _ => Err(wrong(node.at, node.kind())),
    }
}

/// Puts the values of variables in place of `${NAME}`. Anything else with a
/// dollar sign stays as it is.
///
/// # Errors
/// The name of a variable that is not set.
pub(crate) fn expand(
    text: &str,
    lookup: &dyn Fn(&str) -> Option<String>,
) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    for piece in pieces(text) {
        match piece {
            Piece::Plain(plain) => out.push_str(plain),
            Piece::Variable(name) => {
                out.push_str(&lookup(name).ok_or_else(|| name.to_owned())?);
            }
        }
    }
    Ok(out)
}

/// The variables that [`expand`] would look up in a text.
pub(crate) fn variables(text: &str) -> impl Iterator<Item = &str> {
    pieces(text).into_iter().filter_map(|piece| match piece {
        Piece::Variable(name) => Some(name),
        Piece::Plain(_) => None,
    })
}

/// A path as it may be shown: where it is, or with the names of variables in it.
pub(crate) fn shown_path(written: &str, path: &Path) -> String {
    match variables(written).next() {
        Some(_) => written.to_owned(),
        None => path.display().to_string(),
    }
}

enum Piece<'a> {
    Plain(&'a str),
    /// The name in `${NAME}`.
    Variable(&'a str),
}

fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        pieces.push(Piece::Plain(before));
        match after.split_once('}') {
            Some((name, left)) if is_name(name) => {
                pieces.push(Piece::Variable(name));
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

/// Whether a text is a reference to one variable and nothing else.
pub(crate) fn is_reference(text: &str) -> bool {
    text.strip_prefix("${")
        .and_then(|rest| rest.strip_suffix('}'))
        .is_some_and(is_name)
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
    }

    #[test]
    fn every_variable_that_would_be_expanded_is_found() {
        let found = |text| variables(text).collect::<Vec<_>>().join(" ");
        assert_eq!(found("a ${A}${B} c"), "A B");
        // The inner one is expanded, and so it counts.
        assert_eq!(found("${A${B}}"), "B");
        assert_eq!(found("$${A}"), "A");
        assert_eq!(found("$A ${A:-x} ${ A} ${} ${1} ${A"), "");
    }
}
