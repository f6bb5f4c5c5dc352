use super::*;
use crate::schema::generate;
use proptest::prelude::*;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

/// Get the weather
/// for a city.
///
/// - in two units
#[derive(Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only its schema is used")]
struct Weather {
    /// City name.
    city: String,
    /// Which units.
    units: Option<Units>,
    /// How many days.
    #[schemars(range(min = 1, max = 10))]
    days: Option<u32>,
    /// Also the night.
    #[serde(default)]
    night: bool,
    /// Tags.
    #[serde(default)]
    tags: Vec<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Units {
    Celsius,
    Fahrenheit,
}

fn checker(ranges: Ranges) -> Checker {
    Checker::new(&of::<Weather>().1, ranges)
}

fn prepared(arguments: Value) -> (Value, Vec<String>) {
    let (arguments, repairs) = checker(Ranges::Clamp).prepare(arguments).unwrap();
    (
        arguments,
        repairs
            .into_iter()
            .map(|repair| format!("{}: {}", repair.parameter, repair.change))
            .collect(),
    )
}

fn refused(arguments: Value) -> String {
    checker(Ranges::Clamp)
        .prepare(arguments)
        .unwrap_err()
        .to_string()
}

#[test]
fn schemas_are_flat_ordered_and_free_of_null() {
    let (description, schema) = of::<Weather>();
    assert_eq!(description, "Get the weather for a city.\n\n- in two units");
    let expected = json!({
        "type": "object",
        "properties": {
            "city": { "description": "City name.", "type": "string" },
            "units": { "description": "Which units.", "type": "string", "enum": ["celsius", "fahrenheit"] },
            "days": { "description": "How many days.", "type": "integer", "minimum": 1, "maximum": 10 },
            "night": { "description": "Also the night.", "type": "boolean", "default": false },
            "tags": { "description": "Tags.", "type": "array", "items": { "type": "string" }, "default": [] }
        },
        "required": ["city"],
        "additionalProperties": false
    });
    assert_eq!(schema, expected);
    let order: Vec<&String> = schema["properties"].as_object().unwrap().keys().collect();
    assert_eq!(order, ["city", "units", "days", "night", "tags"]);
}

#[test]
fn the_first_line_names_what_is_missing() {
    assert_eq!(
        refused(json!({})),
        "validation error: missing required parameter \"city\""
    );
    assert_eq!(
        refused(Value::Null),
        "validation error: missing required parameter \"city\""
    );
    assert_eq!(
        refused(json!("")),
        "validation error: missing required parameter \"city\""
    );
}

#[test]
fn errors_name_the_parameter_the_expected_and_the_given_value() {
    let table = [
        (
            json!({"city": ["a"]}),
            "parameter \"city\" must be a string, got an array",
        ),
        (
            json!({"city": "x", "days": "soon"}),
            "parameter \"days\" must be an integer, got the string \"soon\"",
        ),
        (
            json!({"city": "x", "days": 2.5}),
            "parameter \"days\" must be an integer, got 2.5",
        ),
        (
            json!({"city": "x", "night": "maybe"}),
            "parameter \"night\" must be a boolean, got the string \"maybe\"",
        ),
        (
            json!({"city": "x", "units": "kelvin"}),
            "parameter \"units\" must be one of \"celsius\", \"fahrenheit\", got the string \"kelvin\"",
        ),
        (
            json!({"city": "x", "tags": [[]]}),
            "parameter \"tags[0]\" must be a string, got an array",
        ),
        (
            json!({"city": "x", "dyas": 1}),
            "unknown parameter \"dyas\", did you mean \"days\"?",
        ),
        (
            json!({"city": null}),
            "parameter \"city\" must be a string, got null",
        ),
        (json!([1]), "the arguments must be an object, got an array"),
        (
            json!("{\"city\": "),
            "the arguments are not valid JSON: EOF while parsing a value at line 1 column 8",
        ),
    ];
    for (arguments, problem) in table {
        assert_eq!(
            refused(arguments.clone()),
            format!("validation error: {problem}"),
            "{arguments}"
        );
    }
}

#[test]
fn an_unknown_argument_is_dropped() {
    let (arguments, repairs) = prepared(json!({"city": "x", "zzz": 1}));
    assert_eq!(arguments, json!({"city": "x"}));
    assert_eq!(repairs, ["zzz: dropped: the tool has no such parameter"]);
    assert_eq!(
        refused(json!({"city": "x", "nigth": true})),
        "validation error: unknown parameter \"nigth\", did you mean \"night\"?"
    );
    let external = checker(Ranges::Refuse).prepare(json!({"city": "x", "zzz": 1}));
    assert_eq!(
        external.unwrap_err().to_string(),
        "validation error: unknown parameter \"zzz\" (known: city, units, days, night, tags)"
    );
}

#[test]
fn an_unknown_argument_that_limits_the_call_is_refused() {
    for (name, value) in [
        ("dry_run", json!(true)),
        ("dryrun", json!("true")),
        ("Preview", json!(1)),
        ("replaceAll", json!(true)),
        ("max-count", json!(3)),
        ("-A", json!(2)),
        ("overwrite", json!(false)),
        ("encoding", json!("latin-1")),
        ("env", json!({"A": "1"})),
        ("exclude", json!(["*.txt"])),
    ] {
        let text = refused(json!({"city": "x", name: value}));
        assert_eq!(
            text,
            format!(
                "validation error: unknown parameter \"{name}\" (known: city, units, days, night, tags)"
            )
        );
    }
    for (name, value) in [
        ("dry_run", json!(false)),
        ("overwrite", json!(true)),
        ("encoding", json!("UTF-8")),
        ("exclude", json!([])),
        ("env", json!({})),
        ("confidence", json!(0.5)),
        ("language", json!("english")),
    ] {
        let (arguments, _) = prepared(json!({"city": "x", name: value}));
        assert_eq!(arguments, json!({"city": "x"}), "{name}");
    }
    // It may be what is missing.
    assert_eq!(
        refused(json!({"zzz": "x"})),
        "validation error: missing required parameter \"city\"; unknown parameter \"zzz\" (known: city, units, days, night, tags)"
    );
}

#[test]
fn several_problems_are_reported_on_one_line() {
    assert_eq!(
        refused(json!({"dyas": 1, "night": 3})),
        "validation error: missing required parameter \"city\"; parameter \"night\" must be a boolean, got 3; unknown parameter \"dyas\", did you mean \"days\"?"
    );
}

#[test]
fn unambiguous_arguments_are_repaired_and_listed() {
    let (arguments, repairs) = prepared(
        json!({"City": 42, "days": "5", "night": "TRUE", "tags": "[\"a\"]", "units": null}),
    );
    assert_eq!(
        arguments,
        json!({"city": "42", "days": 5, "night": true, "tags": ["a"]})
    );
    assert_eq!(
        repairs,
        [
            "city: taken from \"City\"",
            "days: \"5\" read as integer",
            "night: \"TRUE\" read as boolean",
            "tags: \"[\\\"a\\\"]\" read as array",
            "city: 42 read as string",
        ]
    );
    assert_eq!(
        prepared(json!({"city": "x", "days": 5.0})).0["days"],
        json!(5)
    );
    assert_eq!(
        prepared(json!("```json\n{\"city\": \"x\",}\n```")).0,
        json!({"city": "x"})
    );
    assert_eq!(
        prepared(json!("{\"city\": \"a\nb\"}")).0,
        json!({"city": "a\nb"})
    );
    assert_eq!(
        prepared(json!("\"{\\\"city\\\": \\\"x\\\"}\"")).0,
        json!({"city": "x"})
    );
    let (untouched, repairs) = prepared(json!({"city": "x", "days": 3}));
    assert_eq!(
        (untouched, repairs.len()),
        (json!({"city": "x", "days": 3}), 0),
        "valid arguments are unchanged"
    );
}

#[test]
fn numbers_out_of_range_are_clamped_only_for_tools_of_a_toolset() {
    for (given, taken) in [
        (json!(99), 10),
        (json!(-3), 1),
        (json!(1e18), 10),
        (json!(1e300), 10),
        (json!("0"), 1),
        (json!(u64::MAX), 10),
    ] {
        let (arguments, repairs) = prepared(json!({"city": "x", "days": given}));
        assert_eq!(arguments["days"], json!(taken), "{given}");
        assert!(repairs.last().unwrap().contains("out of range"));
    }
    let refused = checker(Ranges::Refuse)
        .prepare(json!({"city": "x", "days": 99}))
        .unwrap_err()
        .to_string();
    assert_eq!(
        refused,
        "validation error: parameter \"days\" must be at most 10, got 99"
    );
}

#[test]
fn numbers_that_would_lose_their_spelling_are_refused() {
    for number in [json!(1.1), json!(1e5), json!(1.2e22)] {
        assert!(
            refused(json!({"city": number})).contains("\"city\" must be a string"),
            "{number}"
        );
    }
    for fraction in [json!(0.5), json!(-1.5), json!(99.5)] {
        assert!(
            refused(json!({"city": "x", "days": fraction})).contains("\"days\" must be an integer"),
            "{fraction}"
        );
    }
    let twice = refused(json!("{\"city\": \"a\", \"city\": \"b\"}"));
    assert!(twice.contains("\"city\" is given twice"), "{twice}");
    assert_eq!(
        prepared(json!("{\"city\": \"x\",}")).1,
        [": invalid JSON was repaired: trailing commas"]
    );
}

#[test]
fn a_blank_id_is_not_given_and_an_integer_id_is_accepted() {
    let schema = json!({"type": "object", "properties": {"chanId": {"type": "string"}, "chatId": {"type": "string"}, "content": {"type": "string"}}, "required": ["chanId", "chatId"], "additionalProperties": false});
    let checker = Checker::new(&schema, Ranges::Clamp);
    let taken = |arguments: Value| checker.prepare(arguments).unwrap().0;
    let requested = json!({"chanId": "wh", "chatId": "1"});
    for given in [
        json!({"chanId": "", "channel_id": "wh", "chatId": 1.0}),
        json!({"chanId": "wh", "channel_id": " ", "chatId": 1}),
        json!({"channelId": " ", "channel": "wh", "chatId": "1"}),
    ] {
        assert_eq!(taken(given.clone()), requested, "{given}");
    }
    let refused = |arguments| checker.prepare(arguments).unwrap_err().to_string();
    let two = refused(json!({"chanId": "a", "channel_id": "b", "chatId": "1"}));
    assert!(two.contains("channel_id"), "{two}");
    let inexact = refused(json!({"chanId": "a", "chatId": 1e22}));
    assert!(inexact.contains("\"chatId\" must be a string"), "{inexact}");
    let fraction = refused(json!({"chanId": "a", "chatId": 1.5}));
    assert!(
        fraction.contains("\"chatId\" must be a string"),
        "{fraction}"
    );
    // Text may be empty on purpose.
    let text = refused(json!({"chanId": "a", "chatId": "1", "content": "", "text": "b"}));
    assert!(text.contains("text"), "{text}");
}

#[test]
fn a_time_limit_that_is_too_short_is_raised() {
    let schema = json!({"type": "object", "properties": {"timeout": {"type": "number", "description": "Seconds it may take."}}, "additionalProperties": false});
    let checker = Checker::new(&schema, Ranges::Clamp);
    for (given, taken, repairs) in [
        (0.001, 0.1, 1),
        (0.1, 0.1, 0),
        (0.0, 0.0, 0),
        (-1.0, -1.0, 0),
    ] {
        let (arguments, message) = checker.prepare(json!({"timeout": given})).unwrap();
        assert_eq!(
            (arguments["timeout"].as_f64(), message.len()),
            (Some(taken), repairs)
        );
    }
}

#[test]
fn two_names_for_one_parameter_must_agree() {
    let schema = json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"], "additionalProperties": false});
    let checker = Checker::new(&schema, Ranges::Clamp);
    let taken = |arguments: Value| {
        checker
            .prepare(arguments)
            .map(|(arguments, _)| arguments["path"].clone())
    };
    assert_eq!(taken(json!({"file_path": "a"})).unwrap(), "a");
    assert_eq!(taken(json!({"filePath": "a", "path": "a"})).unwrap(), "a");
    assert_eq!(
        taken(json!({"file_path": "a", "path": "b"}))
            .unwrap_err()
            .to_string(),
        "validation error: parameters \"path\" and \"file_path\" mean the same but differ: give one"
    );
}

#[test]
fn an_alias_of_two_parameters_is_not_guessed() {
    let properties = |names: &[&str]| {
        let properties: serde_json::Map<String, Value> = names
            .iter()
            .map(|name| ((*name).to_owned(), json!({})))
            .collect();
        json!({"type": "object", "properties": properties, "additionalProperties": false})
    };
    let taken =
        |names: &[&str]| Checker::new(&properties(names), Ranges::Clamp).prepare(json!({"max": 3}));
    assert_eq!(
        taken(&["max_results"]).unwrap().0,
        json!({"max_results": 3})
    );
    let error = taken(&["limit", "max_results"]).unwrap_err().to_string();
    assert!(
        error.starts_with("validation error: unknown parameter \"max\""),
        "{error}"
    );
}

#[test]
fn a_name_with_a_unit_is_accepted_if_the_parameter_has_that_unit() {
    let taken = |unit: &str, name: &str| {
        let schema = json!({
            "type": "object",
            "properties": {"timeout": {"type": "integer", "description": format!("{unit} it may take.")}},
            "additionalProperties": false,
        });
        Checker::new(&schema, Ranges::Clamp).prepare(json!({name: 30}))
    };
    for (unit, name) in [("Seconds", "timeout_secs"), ("Milliseconds", "timeoutMs")] {
        assert_eq!(taken(unit, name).unwrap().0, json!({"timeout": 30}));
    }
    for (unit, name) in [
        ("Milliseconds", "timeout_seconds"),
        ("Seconds", "timeout_ms"),
        ("Minutes", "timeout_ms"),
    ] {
        let error = taken(unit, name).unwrap_err().to_string();
        assert!(
            error.contains(&format!("unknown parameter \"{name}\"")),
            "{error}"
        );
    }
}

/// A quotation mark inside Python's ones must not hide the values after it.
#[test]
fn strings_with_lists_share_one_limit_whatever_their_quotation_marks() {
    let schema = json!({
        "properties": {"lists": {"type": "array", "items": {"type": "array"}}},
    });
    let checker = Checker::new(&schema, Ranges::Clamp);
    for begin in ["[0", "['\"'"] {
        let list = format!("{begin}{}]", ",1".repeat(60_000));
        let prepare = |count: usize| checker.prepare(json!({"lists": vec![list.clone(); count]}));
        assert!(prepare(2).is_ok(), "{begin}");
        let error = prepare(3).unwrap_err().to_string();
        assert!(error.contains("the arguments are too large"), "{error}");
    }
}

#[test]
fn external_schemas_are_limited() {
    let mut deep = json!({"type": "string"});
    for _ in 0..100 {
        deep = json!({"type": "object", "properties": {"x": deep}});
    }
    let wide: serde_json::Map<String, Value> = (0..30_000)
        .map(|at| (format!("p{at}"), json!({})))
        .collect();
    let bad = [
        (json!([]), "is not an object"),
        (deep, "nested too deeply"),
        (json!({"properties": wide}), "too many parts"),
        (json!({"$ref": "#"}), "$ref"),
        (json!({"$ref": "http://localhost/x"}), "$ref"),
        (
            json!({"properties": {"a": {"$ref": "file:///etc/passwd"}}}),
            "$ref",
        ),
        (json!({"items": {"$recursiveRef": "#"}}), "$recursiveRef"),
        (json!({"items": {"$id": "http://localhost/x"}}), "$id"),
        (
            json!({"items": {"$ref": "#/$defs/x", "$dynamicRef": "#x"}, "$defs": {"x": {}}}),
            "$ref",
        ),
        (json!({"type": "strin"}), "is not valid"),
        (json!({"description": "x".repeat(300_000)}), "too large"),
    ];
    for (schema, reason) in bad {
        let error = generate::check("t", &schema).unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
    }
    assert!(generate::check("t", &json!({"type": "object", "properties": {"a": {"type": "string", "pattern": "^(a+)+$"}}})).is_ok());
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
        Just(json!("5")),
        Just(json!("true")),
    ];
    leaf.prop_recursive(4, 24, 5, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::vec(
                (
                    prop_oneof![
                        Just("city".to_owned()),
                        Just("days".to_owned()),
                        Just("tags".to_owned()),
                        "[a-z]{1,6}"
                    ],
                    inner
                ),
                0..5
            )
            .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

proptest! {
    /// Arguments are either refused or match the schema: nothing in between reaches a tool,
    /// and nothing panics.
    #[test]
    fn prepared_arguments_are_valid(arguments in any_json()) {
        if let Ok((prepared, _)) = checker(Ranges::Clamp).prepare(arguments) {
            let validator = generate::compile(&of::<Weather>().1).unwrap();
            prop_assert!(validator.is_valid(&prepared), "{prepared}");
            prop_assert!(serde_json::from_value::<Weather>(prepared).is_ok());
        }
    }

    /// Valid JSON is unchanged by the lenient parser.
    #[test]
    fn valid_json_is_not_changed(value in any_json()) {
        let normalized = lenient_json::normalize(&value.to_string());
        prop_assert_eq!(normalized.text, value.to_string());
        prop_assert!(normalized.found.is_empty());
    }

    /// Text that is not JSON never panics either.
    #[test]
    fn any_text_is_parsed_or_refused(text in "\\PC{0,60}") {
        let _ = parse_arguments(&text);
    }
}

#[test]
fn errors_are_short_however_much_is_wrong() {
    let unknown: Map<String, Value> = (0..50_000)
        .map(|number| (format!("k{number}"), json!(1)))
        .collect();
    let message = refused(Value::Object(unknown));
    assert!(
        message.contains("missing required parameter \"city\""),
        "{message}"
    );
    assert!(message.contains("unknown parameter \"k0\""), "{message}");
    assert!(
        message.contains("more problems") && message.len() < 4_000,
        "{message}"
    );

    let long = "x".repeat(1 << 20);
    let mut with_long = Map::new();
    with_long.insert(long.clone(), json!(1));
    for arguments in [
        Value::Object(with_long),
        json!({ "city": [], "units": long }),
        json!({ "city": "a", "days": long }),
        json!({ "city": "a", "tags": vec![1.5; 10_000] }),
        Value::String(format!("{{\"{long}\": 1, \"{long}\": 2}}")),
        Value::String(format!("[{}1]", "1,".repeat(200_000))),
    ] {
        let message = refused(arguments);
        assert!(message.len() < 4_000, "{} {message:.300}", message.len());
    }
    // Conflicts and repairs are limited too.
    let same: Map<String, Value> = (0..5_000)
        .map(|number| (format!("ci{}ty", "_".repeat(number % 90)), json!(number)))
        .chain([("city".to_owned(), json!("x"))])
        .collect();
    assert!(refused(Value::Object(same)).len() < 4_000);
    let tags = json!({ "city": "a", "tags": vec![true; 5_000] });
    let (_, repairs) = prepared(tags);
    assert_eq!(repairs.len(), 51);
    assert_eq!(repairs[50], ": and 4950 more repairs");
}

#[test]
fn errors_about_long_values_are_short() {
    let schema = json!({
        "type": "object",
        "properties": { "a": { "type": "string", "pattern": "^b", "maxLength": 3 } },
    });
    let checker = Checker::new(&schema, Ranges::Refuse);
    let error = checker
        .prepare(json!({ "a": "x".repeat(1 << 20) }))
        .unwrap_err();
    let message = error.to_string();
    assert!(
        message.contains("parameter \"a\"") && message.len() < 2_000,
        "{message:.300}"
    );
}

#[test]
fn arguments_that_take_long_to_check_are_refused_briefly() {
    let options: Vec<_> = (0..4_000).map(|n| json!({ "const": n })).collect();
    let schema = json!({
        "type": "object",
        "properties": { "a": { "type": "array", "items": { "anyOf": options } } },
    });
    let checker = Checker::new(&schema, Ranges::Refuse);
    let message = |many: usize| {
        let prepared = checker.prepare(json!({ "a": vec!["x"; many] }));
        prepared.unwrap_err().to_string()
    };
    assert!(message(100).contains("haft cannot say where"));
    assert!(message(100_000).contains("send less at once"));
}

#[test]
fn lists_and_objects_in_strings_share_one_limit() {
    let schema = json!({
        "type": "object",
        "properties": {
            "todos": { "type": "array", "items": { "type": "object" } },
        },
    });
    let checker = Checker::new(&schema, Ranges::Refuse);
    let todo = |values: usize| json!({ "tags": vec![1; values] }).to_string();
    let call = |values: usize, todos: usize| {
        let todos = vec![todo(values); todos];
        checker.prepare(json!({ "todos": todos })).map(|_| ())
    };
    assert!(call(30_000, 4).is_ok());
    let error = call(30_000, 50).unwrap_err();
    assert!(
        error.to_string().contains("more than 150000 values"),
        "{error}"
    );
    // A string in a string counts too.
    let outer = format!("[{}]", vec![json!(todo(30_000)).to_string(); 6].join(","));
    assert!(checker.prepare(json!({ "todos": outer })).is_err());
}
