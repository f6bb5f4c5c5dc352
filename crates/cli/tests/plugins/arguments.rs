//! Arguments that do not fit the schema never reach the plugin.

use crate::bed::Bed;
use serde_json::json;

const WEATHER: &str = r"
schema = {'type': 'object', 'properties': {'city': {'type': 'string'}, 'days': {'type': 'integer', 'minimum': 1, 'maximum': 5}, 'unit': {'enum': ['c', 'f']}}, 'required': ['city']}
open_schema = {'type': 'object', 'properties': {'a': {'type': 'string'}}, 'additionalProperties': True}
tools = [tool('weather', parameters=schema), tool('open', parameters=open_schema), tool('any', parameters={}), tool('none', parameters={'type': 'object'})]
def tool_call(m): text(json.dumps(m['params'], sort_keys=True))
serve({'tools': tools}, tool_call)
";

#[test]
fn invalid_arguments_are_reported_and_not_sent() {
    let bed = Bed::with(&[("p", WEATHER)]);
    let mut session = bed.session(&[]);
    for (arguments, first) in [
        (
            json!({}),
            "validation error: missing required parameter \"city\"",
        ),
        (json!({ "city": null }), "validation error: "),
        (
            json!({ "city": {} }),
            "validation error: parameter \"city\"",
        ),
        (
            json!({ "city": "x", "days": "many" }),
            "validation error: parameter \"days\"",
        ),
        (
            json!({ "city": "x", "days": 9 }),
            "validation error: parameter \"days\"",
        ),
        (
            json!({ "city": "x", "unit": "k" }),
            "validation error: parameter \"unit\"",
        ),
        (
            json!({ "city": "x", "colour": 1 }),
            "validation error: unknown parameter \"colour\"",
        ),
    ] {
        let answer = session.call("weather", &arguments);
        assert!(answer.is_error, "{arguments}: {answer:?}");
        let line = answer.text.lines().next().unwrap();
        assert!(line.starts_with(first), "{arguments}: {line}");
    }
    assert!(
        bed.calls("p").is_empty(),
        "it got nothing: {:?}",
        bed.calls("p")
    );
    // Arguments with only one possible meaning are repaired.
    let reply = session.reply_text(
        "weather",
        &json!({ "city": "x", "days": "3", "unit": null }),
    );
    assert_eq!(reply, r#"{"city": "x", "days": 3}"#);
    assert_eq!(
        session.reply_text("open", &json!({ "a": "x", "b": [1] })),
        r#"{"a": "x", "b": [1]}"#
    );
    for free in ["any", "none"] {
        assert_eq!(
            session.reply_text(free, &json!({ "x": 1 })),
            r#"{"x": 1}"#,
            "{free}"
        );
    }
    assert_eq!(bed.calls("p").len(), 4);
}

#[test]
fn arguments_that_are_not_an_object_are_refused() {
    let bed = Bed::with(&[("p", "serve(tool('one'), lambda m: text('ran'))")]);
    for given in ["[1]", "\"text\"", "3"] {
        let ran = bed.haft(&["call", "one", given]);
        assert_ne!(ran.code, Some(0), "{given}: {ran:?}");
    }
    assert!(bed.calls("p").is_empty());
}
