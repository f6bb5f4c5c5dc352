//! Parses the arguments of a call: JSON, stdin, or KEY=VALUE pairs.

use crate::exit::Failure;
use serde_json::{Map, Value};
use tokio::io::AsyncReadExt;

/// Maximum bytes read from stdin, more than any tool accepts.
const MAX_STDIN: u64 = 64 << 20;

/// Arguments on the command line.
#[derive(Debug, PartialEq)]
pub(crate) enum Arguments {
    Given(Value),
    /// JSON follows on stdin.
    Stdin,
}

/// Parses a JSON object, `-`, or pairs. Values in pairs stay text; the tool's schema
/// decides their types.
pub(crate) fn parse(given: &[String]) -> Result<Arguments, Failure> {
    match given {
        [] => return Ok(Arguments::Given(Value::Object(Map::new()))),
        [only] if only == "-" => return Ok(Arguments::Stdin),
        [first, ..] if first == "-" => {
            return Err(Failure::usage(
                "`-` cannot be combined with other arguments: it reads all of them from stdin",
            ));
        }
        [only] if is_json(only) => return object(only, "the arguments").map(Arguments::Given),
        _ => {}
    }
    let mut pairs = Map::new();
    for pair in given {
        let (name, value) = match pair.split_once('=') {
            Some((name, value)) if !name.is_empty() && !is_json(pair) => (name, value),
            _ => return Err(unrecognised(pair)),
        };
        if pairs.insert(name.to_owned(), value.into()).is_some() {
            return Err(Failure::usage(format!("duplicate argument \"{name}\"")));
        }
    }
    Ok(Arguments::Given(Value::Object(pairs)))
}

/// Reads a JSON object from stdin.
pub(crate) async fn from_stdin() -> Result<Value, Failure> {
    let mut bytes = Vec::new();
    tokio::io::stdin()
        .take(MAX_STDIN + 1)
        .read_to_end(&mut bytes)
        .await
        .map_err(|error| Failure::usage(format!("cannot read stdin: {error}")))?;
    if bytes.len() as u64 > MAX_STDIN {
        return Err(Failure::usage(
            "stdin has more than 64MB, the limit for arguments",
        ));
    }
    let text = String::from_utf8(bytes)
        .map_err(|_| Failure::usage("stdin is not valid JSON: it is not UTF-8 text"))?;
    object(&text, "stdin")
}

/// Whether a text starts like a JSON object or list, as no parameter name does.
fn is_json(text: &str) -> bool {
    text.trim_start().starts_with(['{', '['])
}

fn object(text: &str, what: &str) -> Result<Value, Failure> {
    let value =
        haft::parse_arguments(text).map_err(|invalid| Failure::usage(invalid.to_string()))?;
    if value.is_object() {
        // Passed on as text if it needed repair, so that the reply mentions the repair.
        let plain = serde_json::from_str::<Value>(text).is_ok();
        return Ok(if plain { value } else { text.into() });
    }
    Err(Failure::usage(format!(
        "{what} must be a JSON object, like {{\"path\": \"notes.txt\"}}"
    )))
}

fn unrecognised(given: &str) -> Failure {
    let shown: String = given.chars().take(60).collect();
    let failure = Failure::usage(format!(
        "invalid argument \"{shown}\": expected one JSON object, `-`, or KEY=VALUE pairs"
    ));
    failure.hint("`haft tools NAME` lists the parameters of a tool")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn parsed(given: &[&str]) -> Result<Arguments, Failure> {
        parse(
            &given
                .iter()
                .map(|text| (*text).to_owned())
                .collect::<Vec<_>>(),
        )
    }

    #[test]
    fn json_pairs_and_stdin_are_accepted() {
        for (given, value) in [
            (vec![], json!({})),
            (vec!["{\"a\": 1}"], json!({ "a": 1 })),
            (
                vec!["a=1", "b=x=y", "c="],
                json!({ "a": "1", "b": "x=y", "c": "" }),
            ),
            (vec!["a={\"b\": 1}"], json!({ "a": "{\"b\": 1}" })),
        ] {
            assert_eq!(
                parsed(&given).unwrap(),
                Arguments::Given(value),
                "{given:?}"
            );
        }
        assert_eq!(parsed(&["-"]).unwrap(), Arguments::Stdin);
    }

    #[test]
    fn anything_else_is_an_error() {
        for given in [
            &["x"][..],
            &["=1"],
            &["a=1", "a=2"],
            &["a=1", "-"],
            &["[1]"],
            &["{\"a\": 1}", "b=2"],
            &["{"],
        ] {
            assert!(parsed(given).is_err(), "{given:?}");
        }
    }
}
