//! For every tool: valid arguments are unchanged, and each parameter is accepted in other
//! spellings.

use super::{bench, listed, tools};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Map, Value};

/// Number of generated calls for each tool.
const CASES: u32 = 60;

/// Generates values that match a schema.
fn value(schema: &Value) -> BoxedStrategy<Value> {
    if let Some(options) = schema["enum"].as_array() {
        return prop::sample::select(options.clone()).boxed();
    }
    // The first of several forms is as good as any.
    if let Some(forms) = schema["anyOf"].as_array() {
        return value(&forms[0]);
    }
    let kind = match &schema["type"] {
        Value::Array(kinds) => kinds[0].as_str().unwrap(),
        kind => kind.as_str().unwrap(),
    };
    let bound = |name: &str, other: i64| schema[name].as_i64().unwrap_or(other);
    let range = bound("minimum", 0)..=bound("maximum", i64::MAX);
    match kind {
        "string" => "[a-zA-Z0-9_./:{}' \n-]{0,16}".prop_map(Value::from).boxed(),
        "integer" => range.prop_map(Value::from).boxed(),
        "number" => (range, any::<bool>())
            .prop_map(|(whole, is_half)| match whole {
                1..=500 if is_half => Value::from(whole as f64 - 0.5),
                _ => Value::from(whole),
            })
            .boxed(),
        "boolean" => any::<bool>().prop_map(Value::from).boxed(),
        "array" => prop::collection::vec(value(&schema["items"]), 0..4)
            .prop_map(Value::from)
            .boxed(),
        "object" => object(schema).prop_map(Value::Object).boxed(),
        other => panic!("{other}"),
    }
}

/// Generates objects that match: all required fields and some of the others.
fn object(schema: &Value) -> BoxedStrategy<Map<String, Value>> {
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    let fields: Vec<_> = schema["properties"]
        .as_object()
        .unwrap()
        .iter()
        .map(|(name, schema)| {
            let named = {
                let name = name.clone();
                move |value| Some((name.clone(), value))
            };
            let given = value(schema).prop_map(named).boxed();
            if required.contains(&Value::from(name.as_str())) {
                given
            } else {
                prop_oneof![given, Just(None)].boxed()
            }
        })
        .collect();
    fields
        .prop_map(|fields| fields.into_iter().flatten().collect())
        .boxed()
}

/// Returns other spellings of a name: `filePath`, `FilePath`, `file-path`, `FILE_PATH`,
/// `file path`, `file_path`.
fn spellings(name: &str) -> Vec<String> {
    let mut words: Vec<String> = vec![String::new()];
    for c in name.chars() {
        if c == '_' || c.is_uppercase() {
            words.push(String::new());
        }
        if c != '_' {
            words.last_mut().unwrap().extend(c.to_lowercase());
        }
    }
    let capital = |word: &String| {
        let (first, rest) = word.split_at(1);
        format!("{}{rest}", first.to_uppercase())
    };
    let pascal: String = words.iter().map(capital).collect();
    let (first, rest) = pascal.split_at(1);
    vec![
        format!("{}{rest}", first.to_lowercase()),
        pascal.clone(),
        words.join("-"),
        words.join("_").to_uppercase(),
        words.join(" "),
        words.join("_"),
    ]
}

/// Checks each tool with valid arguments.
fn each(check: impl Fn(&super::Bench, &str, Map<String, Value>) -> Result<(), TestCaseError>) {
    for (toolset, tool, schema) in tools() {
        let bench = bench(toolset);
        let config = Config {
            cases: CASES,
            failure_persistence: None,
            ..Config::default()
        };
        TestRunner::new(config)
            .run(&object(&schema), |arguments| {
                check(&bench, &tool, arguments)
            })
            .unwrap_or_else(|error| panic!("{toolset} {tool}: {error}"));
    }
}

#[test]
fn valid_arguments_are_unchanged() {
    each(|bench, tool, arguments| {
        let sent = Value::Object(arguments);
        for way in [sent.clone(), Value::from(sent.to_string())] {
            let (arguments, repairs) = bench.explain(tool, way).map_err(TestCaseError::fail)?;
            prop_assert_eq!(&arguments, &sent);
            let repairs: Vec<String> = repairs.iter().map(listed).collect();
            prop_assert!(repairs.is_empty(), "{repairs:?}");
        }
        Ok(())
    });
}

#[test]
fn every_parameter_is_accepted_in_every_spelling() {
    each(|bench, tool, arguments| {
        for name in arguments.keys() {
            for spelling in spellings(name).into_iter().filter(|other| other != name) {
                let mut sent = arguments.clone();
                let value = sent.remove(name).unwrap();
                sent.insert(spelling.clone(), value);
                let (taken, repairs) = bench
                    .explain(tool, Value::Object(sent))
                    .map_err(TestCaseError::fail)?;
                prop_assert_eq!(taken, Value::Object(arguments.clone()));
                let repairs: Vec<String> = repairs.iter().map(listed).collect();
                prop_assert_eq!(repairs, [format!("{name}: taken from \"{spelling}\"")]);
            }
        }
        Ok(())
    });
}
