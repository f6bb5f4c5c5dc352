use super::{Field, MAX_FIELDS, from_schema};
use serde_json::{Value, json};

fn field(schema: Value) -> Field {
    let schema = json!({ "type": "object", "properties": { "it": schema }, "required": ["it"] });
    from_schema(&schema).unwrap().remove(0)
}

fn optional(schema: Value) -> Field {
    let schema = json!({ "type": "object", "properties": { "it": schema } });
    from_schema(&schema).unwrap().remove(0)
}

/// Checks the value of an input.
fn reads(field: &Field, typed: &str, value: Value) {
    assert_eq!(field.parse(typed), Ok(Some(value)), "{typed:?}");
}

fn refuses(field: &Field, typed: &str, why: &str) {
    assert_eq!(field.parse(typed), Err(why.to_owned()), "{typed:?}");
}

#[test]
fn text_is_taken_as_typed() {
    let name = field(json!({ "type": "string", "title": "Name", "description": "Who you are" }));
    assert_eq!(name.prompt(), "Name: Who you are (required)");
    reads(&name, " Ada  King ", json!("Ada  King"));
    reads(&name, "5", json!("5"));
    reads(&name, "\"\"", json!(""));
    refuses(&name, "  ", "a value is required");

    let code = field(json!({ "type": "string", "minLength": 2, "maxLength": 4 }));
    assert_eq!(code.prompt(), "it (2 to 4 characters; required)");
    reads(&code, "äöü", json!("äöü"));
    for (typed, count) in [("a", 1), ("abcde", 5), ("\"\"", 0)] {
        let why = format!("got {count}, expected 2 to 4 characters");
        refuses(&code, typed, &why);
    }
}

#[test]
fn malformed_formats_are_refused() {
    let cases: [(&str, &[&str], &[&str]); 4] = [
        ("email", &["a@b.org"], &["a", "@b", "a@", "a b@c"]),
        (
            "uri",
            &["https://a.b/c", "mailto:a@b"],
            &["a.b", "https://"],
        ),
        (
            "date",
            &["2024-02-29"],
            &[
                "2023-02-29",
                "29.2.2024",
                "2024-2-9",
                "2024-13-01",
                "2024-01-01Z",
            ],
        ),
        (
            "date-time",
            &["2024-02-29T10:00:00Z", "2024-02-29T10:00:00.5+01:00"],
            &[
                "2024-02-29",
                "2024-02-29T10:00:00",
                "2024-02-29T25:00:00Z",
                "2024-02-29T10:00:00+1",
                "2024-02-29T10:00:00Zulu",
                "2024-02-29T10:00:00+",
            ],
        ),
    ];
    for (format, right, wrong) in cases {
        let field = field(json!({ "type": "string", "format": format }));
        for typed in right {
            reads(&field, typed, json!(typed));
        }
        for typed in wrong {
            assert!(field.parse(typed).is_err(), "{format}: {typed}");
        }
    }
    let unknown = field(json!({ "type": "string", "format": "ipv4" }));
    assert_eq!(unknown.prompt(), "it (ipv4; required)");
    reads(&unknown, "anything", json!("anything"));
}

#[test]
fn numbers_have_bounds() {
    let whole = field(json!({ "type": "integer", "minimum": 1, "maximum": 5 }));
    assert_eq!(whole.prompt(), "it (a whole number from 1 to 5; required)");
    reads(&whole, "5", json!(5));
    refuses(&whole, "6", "expected a number from 1 to 5");
    refuses(&whole, "1.5", "not a whole number");
    refuses(&whole, "two", "not a whole number");
    let large = field(json!({ "type": "integer" }));
    reads(&large, "18446744073709551615", json!(u64::MAX));
    reads(&large, "-3", json!(-3));

    let number = field(json!({ "type": "number", "exclusiveMinimum": 0 }));
    assert_eq!(number.prompt(), "it (a number, more than 0; required)");
    reads(&number, "1", json!(1));
    reads(&number, ".5", json!(0.5));
    reads(&number, "1e3", json!(1000.0));
    refuses(&number, "0", "expected a number, more than 0");
    for no in ["inf", "NaN", "1,5", "\"1\""] {
        refuses(&number, no, "not a number");
    }
}

#[test]
fn reads_yes_and_no() {
    let sure = field(json!({ "type": "boolean", "default": false }));
    assert_eq!(sure.prompt(), "it (y or n; Enter: n)");
    for (typed, value) in [("Y", true), ("true", true), ("no", false), ("", false)] {
        reads(&sure, typed, json!(value));
    }
    refuses(&sure, "maybe", "enter y or n");
}

#[test]
fn an_option_is_chosen_by_number_or_name() {
    let named = json!({ "type": "string", "enum": ["r", "g", "b"], "enumNames": ["Red", "Green"] });
    let titled = json!({ "type": "string", "oneOf": [
        { "const": "r", "title": "Red" }, { "const": "g", "title": "Green" }, { "const": "b" },
    ] });
    for schema in [named, titled] {
        let colour = field(schema);
        assert_eq!(colour.prompt(), "it (1 Red, 2 Green, 3 b; required)");
        for typed in ["2", "#2", "Green", "green", "g"] {
            reads(&colour, typed, json!("g"));
        }
        for no in ["0", "4", "#0", "gr"] {
            let why = format!("not one of the options: \"{no}\"; enter a name or 1 to 3");
            refuses(&colour, no, &why);
        }
    }
    let size = field(json!({ "type": "string", "enum": ["small", "large"], "default": "large" }));
    assert_eq!(size.prompt(), "it (1 small, 2 large; Enter: large)");
    reads(&size, "", json!("large"));
}

#[test]
fn a_number_that_is_an_option_is_not_a_position() {
    let count = field(json!({ "enum": [3, 1, 2] }));
    assert_eq!(count.prompt(), "it (#1 3, #2 1, #3 2; required)");
    reads(&count, "1", json!(1));
    reads(&count, "#1", json!(3));
    // Options with the same name.
    let same = field(json!({ "enum": ["a", "b"], "enumNames": ["same", "same"] }));
    assert!(same.parse("same").is_err());
    reads(&same, "2", json!("b"));
}

#[test]
fn several_options_are_separated_by_commas() {
    let plain = json!({ "type": "array", "maxItems": 2, "items": { "enum": ["a", "b", "c, d"] } });
    let letters = field(plain.clone());
    assert_eq!(
        letters.prompt(),
        "it (several, separated by commas: 1 a, 2 b, 3 c, d; at most 2 of them; Enter: none)"
    );
    reads(&letters, "1,b", json!(["a", "b"]));
    reads(&letters, "a, a ,1", json!(["a"]));
    reads(&letters, "c, d", json!(["c, d"]));
    reads(&letters, "", json!([]));
    refuses(&letters, "1,2,3", "got 3, expected at most 2 of them");
    assert!(letters.parse("a,x").is_err());
    assert_eq!(optional(plain).parse(""), Ok(None));

    let titled = field(json!({
        "type": "array",
        "minItems": 1,
        "items": { "anyOf": [{ "const": "x", "title": "Ex" }, { "const": "y", "title": "Why" }] },
        "default": ["y"],
    }));
    assert_eq!(
        titled.prompt(),
        "it (several, separated by commas: 1 Ex, 2 Why; at least 1 of them; Enter: Why)"
    );
    reads(&titled, "", json!(["y"]));
}

#[test]
fn other_types_are_entered_as_json() {
    for schema in [
        json!({ "type": "object" }),
        json!({ "type": "array", "items": { "type": "string" } }),
        json!({ "anyOf": [{ "type": "string" }, { "type": "integer" }] }),
        json!({ "enum": [] }),
        json!(true),
        json!({}),
    ] {
        let field = field(schema);
        assert_eq!(field.prompt(), "it (as JSON; required)");
        reads(&field, "{\"a\":[1]}", json!({ "a": [1] }));
        assert!(field.parse("{").is_err());
    }
    // Required properties without a description are asked for too.
    let schema = json!({ "type": "object", "properties": {}, "required": ["other"] });
    let fields = from_schema(&schema).unwrap();
    assert_eq!(fields[0].prompt(), "other (as JSON; required)");
    // A nullable string is still a string.
    let text = optional(json!({ "type": ["string", "null"], "default": null }));
    assert_eq!(text.prompt(), "it (Enter: skip)");
    assert_eq!(text.parse(""), Ok(None));
    reads(&text, "1", json!("1"));
}

#[test]
fn an_invalid_default_is_ignored() {
    for schema in [
        json!({ "type": "string", "minLength": 3, "default": "a" }),
        json!({ "type": "integer", "default": "1" }),
        json!({ "enum": ["a"], "default": "b" }),
        json!({ "type": "array", "minItems": 1, "items": { "enum": ["a"] }, "default": ["b"] }),
    ] {
        let field = field(schema);
        assert_eq!(
            field.parse(""),
            Err("a value is required".to_owned()),
            "{field:?}"
        );
    }
}

#[test]
fn descriptions_become_one_short_sanitized_line() {
    let hostile = "\x1b[2J\u{202e}x\nHaft asks:\rpassword ".repeat(10_000);
    let choices: Vec<String> = (0..500).map(|n| format!("{hostile}{n}")).collect();
    let field = field(json!({
        "title": hostile, "description": hostile, "enum": choices, "default": choices[0],
    }));
    let prompt = field.prompt();
    assert!(prompt.chars().count() < 3000, "{}", prompt.chars().count());
    assert!(
        !prompt.contains(['\x1b', '\u{202e}', '\n', '\r', '\t']),
        "{prompt}"
    );
    assert!(prompt.contains("and 470 more"), "{prompt}");
    // Options that are not listed can be selected too.
    reads(&field, "500", json!(choices[499]));
    let why = field.parse(&hostile).unwrap_err();
    assert!(why.chars().count() < 200 && !why.contains('\x1b'), "{why}");
    let text = super::sanitize(&"word ".repeat(100), 12);
    assert_eq!(text, "word word wo…");
}

#[test]
fn refuses_hundreds_of_fields() {
    let schema = |count: usize| {
        let all = (0..count).map(|n| (format!("f{n}"), json!({ "type": "string" })));
        json!({ "properties": all.collect::<serde_json::Map<_, _>>() })
    };
    assert_eq!(from_schema(&schema(MAX_FIELDS)).unwrap().len(), MAX_FIELDS);
    assert_eq!(
        from_schema(&schema(MAX_FIELDS + 1)),
        Err("the form has 51 fields, at most 50 are supported".to_owned())
    );
    for nothing in [
        json!({}),
        json!(null),
        json!({ "properties": 5, "required": 5 }),
    ] {
        assert_eq!(from_schema(&nothing), Ok(Vec::new()));
    }
}
