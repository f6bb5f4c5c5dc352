//! The arguments of a call, in the three ways to write them.

use crate::exit::Failure;
use serde_json::{Map, Value};
use tokio::io::AsyncReadExt;

/// More than any tool takes; a pipe that never ends stops here.
const MAX_STDIN: u64 = 64 << 20;

/// What was typed.
#[derive(Debug, PartialEq)]
pub(crate) enum Arguments {
    Given(Value),
    /// JSON follows on stdin.
    Stdin,
}

/// Understands a JSON object, `-`, or pairs. The values of pairs stay text: the
/// schema of the tool says what they are.
pub(crate) fn parse(given: &[String]) -> Result<Arguments, Failure> {
    match given {
        [] => return Ok(Arguments::Given(Value::Object(Map::new()))),
        [only] if only == "-" => return Ok(Arguments::Stdin),
        [first, ..] if first == "-" => {
            return Err(Failure::usage(
                "- stands alone: all arguments come from stdin then",
            ));
        }
        [only] if is_json(only) => return object(only, "the arguments").map(Arguments::Given),
        _ => {}
    }
    let mut pairs = Map::new();
    for pair in given {
        let (name, value) = match pair.split_once('=') {
            Some((name, value)) if !name.is_empty() && !is_json(pair) => (name, value),
            _ => return Err(neither(pair)),
        };
        if pairs.insert(name.to_owned(), value.into()).is_some() {
            return Err(Failure::usage(format!("\"{name}\" is given twice")));
        }
    }
    Ok(Arguments::Given(Value::Object(pairs)))
}

/// Reads JSON from stdin, to its end.
pub(crate) async fn from_stdin() -> Result<Value, Failure> {
    let mut bytes = Vec::new();
    tokio::io::stdin()
        .take(MAX_STDIN + 1)
        .read_to_end(&mut bytes)
        .await
        .map_err(|error| Failure::usage(format!("stdin cannot be read: {error}")))?;
    if bytes.len() as u64 > MAX_STDIN {
        return Err(Failure::usage(
            "stdin has more than 64MB, which no tool takes",
        ));
    }
    let text = String::from_utf8(bytes)
        .map_err(|_| Failure::usage("stdin is not UTF-8 text, so it is no JSON"))?;
    object(&text, "stdin")
}

/// No name of a parameter begins like an object or a list.
fn is_json(text: &str) -> bool {
    text.trim_start().starts_with(['{', '['])
}

fn object(text: &str, what: &str) -> Result<Value, Failure> {
    let value =
        haft::parse_arguments(text).map_err(|invalid| Failure::usage(invalid.to_string()))?;
    if value.is_object() {
        // As text when it had to be repaired: the reply then says so.
        let plain = serde_json::from_str::<Value>(text).is_ok();
        return Ok(if plain { value } else { text.into() });
    }
    Err(Failure::usage(format!(
        "{what} must be a JSON object, like {{\"path\": \"notes.txt\"}}"
    )))
}

fn neither(given: &str) -> Failure {
    let shown: String = given.chars().take(60).collect();
    let failure = Failure::usage(format!(
        "\"{shown}\" cannot be understood: give one JSON object, or -, or KEY=VALUE pairs"
    ));
    failure.hint("haft tools NAME lists the parameters of a tool")
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
    fn three_ways_to_say_it() {
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
    fn anything_else_is_a_mistake() {
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
