//! The definitions of all tools keep to what every provider accepts. A provider that refuses
//! one definition refuses the whole request.
//!
//! The rules are those of OpenAI (function calling in strict mode, after the usual
//! conversion: every property required, optional ones nullable, no defaults), Anthropic,
//! Gemini (function declarations) and JSON Schema 2020-12.

use crate::session::Bed;
use serde_json::{Map, Value, json};

/// Keywords that all of them accept. Gemini has the fewest.
const KEYWORDS: [&str; 14] = [
    "type",
    "description",
    "properties",
    "required",
    "items",
    "enum",
    "anyOf",
    "minimum",
    "maximum",
    "minItems",
    "maxItems",
    "default",
    "additionalProperties",
    "format",
];

/// Nesting that OpenAI accepts in strict mode, and the number of properties and of enum
/// values in one definition.
const MAX_DEPTH: usize = 10;
const MAX_PROPERTIES: usize = 5_000;
const MAX_OPTIONS: usize = 1_000;

#[derive(Default)]
struct Counts {
    properties: usize,
    options: usize,
}

fn check(schema: &Value, at: &str, depth: usize, counts: &mut Counts) -> Vec<String> {
    let mut bad = Vec::new();
    let mut wrong = |why: String| bad.push(format!("{at}: {why}"));
    let Some(fields) = schema.as_object() else {
        return vec![format!("{at}: not an object")];
    };
    for key in fields
        .keys()
        .filter(|key| !KEYWORDS.contains(&key.as_str()))
    {
        wrong(format!("keyword {key} is not accepted everywhere"));
    }
    if depth > MAX_DEPTH {
        wrong("nested too deeply".to_owned());
    }
    // Gemini and OpenAI want one type, Gemini nothing beside alternatives.
    match (&schema["type"], schema.get("anyOf")) {
        (Value::String(kind), None) => {
            let kinds = ["object", "array", "string", "integer", "number", "boolean"];
            if !kinds.contains(&kind.as_str()) {
                wrong(format!("type {kind}"));
            }
        }
        (Value::Null, Some(_)) if fields.len() == 1 => {}
        (kind, choices) => wrong(format!("type {kind} and anyOf {choices:?}")),
    }
    if let Some(options) = schema.get("enum") {
        let options = options.as_array().cloned().unwrap_or_default();
        counts.options += options.len();
        if options.is_empty() || schema["type"] != "string" {
            wrong("an enum needs options and the type string".to_owned());
        }
        for option in &options {
            if option.as_str().is_none_or(str::is_empty) {
                wrong(format!("enum value {option}"));
            }
        }
        if schema
            .get("default")
            .is_some_and(|default| !options.contains(default))
        {
            wrong("the default is not one of the options".to_owned());
        }
    }
    let none = Map::new();
    let mut below = Vec::new();
    match schema["type"].as_str() {
        Some("object") => {
            if schema["additionalProperties"] != false {
                wrong("additionalProperties is not false".to_owned());
            }
            let properties = schema["properties"].as_object().unwrap_or(&none);
            counts.properties += properties.len();
            for name in schema["required"].as_array().into_iter().flatten() {
                if !name
                    .as_str()
                    .is_some_and(|name| properties.contains_key(name))
                {
                    wrong(format!("required names {name}, which is not a property"));
                }
            }
            for (name, property) in properties {
                let plain = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
                if name.is_empty() || name.len() > 64 || !name.chars().all(plain) {
                    wrong(format!("property name {name}"));
                }
                below.push((property, format!("{at}.{name}")));
            }
        }
        Some("array") => match schema.get("items") {
            Some(items) => below.push((items, format!("{at}[]"))),
            None => wrong("an array needs items".to_owned()),
        },
        _ => {}
    }
    for choice in schema["anyOf"].as_array().into_iter().flatten() {
        below.push((choice, format!("{at}|")));
    }
    for (schema, at) in below {
        bad.extend(check(schema, &at, depth + 1, counts));
    }
    bad
}

fn problems(tool: &Value) -> Vec<String> {
    let name = tool["name"].as_str().unwrap();
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let mut bad = Vec::new();
    // Gemini wants a letter or an underscore first.
    if name.len() > 64
        || !name.chars().all(plain)
        || !name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
    {
        bad.push(format!("{name}: not a name"));
    }
    let description = tool["description"].as_str().unwrap_or_default();
    // OpenAI's limit was the smallest for years, and some compatible servers still have it.
    if description.is_empty() || description.chars().count() > 1_024 {
        bad.push(format!(
            "{name}: {} characters",
            description.chars().count()
        ));
    }
    let schema = &tool["parameters"];
    if schema["type"] != "object" || !schema["properties"].is_object() {
        bad.push(format!("{name}: not an object with properties"));
    }
    let mut counts = Counts::default();
    bad.extend(check(schema, name, 0, &mut counts));
    if counts.properties > MAX_PROPERTIES || counts.options > MAX_OPTIONS {
        bad.push(format!("{name}: too large"));
    }
    if let Err(error) = jsonschema::draft202012::meta::validate(schema) {
        bad.push(format!("{name}: {error}"));
    }
    bad
}

#[test]
fn every_provider_accepts_every_definition() {
    let bed = Bed::new();
    let config = bed.config(
        "tools: { web: { enabled: true }, channels: { me: { kind: webhook, url: 'https://example.com/x' } } }\n",
    );
    let mut seen = 0;
    for toolset in haft::toolsets::NAMES {
        let flags = ["--config", &config, "--toolset", toolset, "--preset", "all"];
        let ended = bed.haft(&[&flags[..], &["tools", "--json"]].concat());
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let tools: Vec<Value> = match serde_json::from_str(&ended.out) {
            Ok(Value::Array(tools)) => tools,
            _ => ended
                .out
                .lines()
                .map(|line| serde_json::from_str(line).unwrap())
                .collect(),
        };
        assert!(tools.len() >= 4, "{toolset}: {}", ended.out);
        seen += tools.len();
        let bad: Vec<String> = tools.iter().flat_map(problems).collect();
        assert!(bad.is_empty(), "{toolset}:\n{}", bad.join("\n"));
    }
    assert!(seen >= 30, "{seen}");
}

#[test]
fn the_rules_find_what_providers_refused() {
    for (parameters, why) in [
        (
            json!({ "type": "string", "enum": ["file", ""] }),
            "enum value",
        ),
        (json!({ "type": ["string", "array"] }), "type"),
        (json!({ "type": "array" }), "needs items"),
        (json!({ "type": "string", "pattern": "x" }), "pattern"),
        (
            json!({ "anyOf": [{ "type": "string" }], "description": "x" }),
            "anyOf",
        ),
        (
            json!({ "type": "object", "properties": {} }),
            "additionalProperties",
        ),
    ] {
        let tool = json!({ "name": "t", "description": "x", "parameters": {
            "type": "object", "properties": { "p": parameters }, "additionalProperties": false,
        } });
        let bad = problems(&tool).join("\n");
        assert!(bad.contains(why), "{parameters}: {bad}");
    }
}
