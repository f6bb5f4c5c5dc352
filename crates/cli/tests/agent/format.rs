//! `response_format`: a final answer that satisfies a JSON Schema, or a failure.

use crate::bed::Bed;
use haft_testing::model::Turn;
use serde_json::json;

const SCHEMA: &str =
    r#"{"type":"object","properties":{"count":{"type":"integer"}},"required":["count"]}"#;

fn says(texts: &[&str]) -> Vec<Turn> {
    texts.iter().map(|text| Turn::text(*text)).collect()
}

#[test]
fn the_answer_is_json_that_fits() {
    let bed = Bed::new(says(&["Three.", "```json\n{ \"count\": 3 }\n```"]));
    std::fs::write(bed.work("schema.json"), SCHEMA).unwrap();
    let ended = bed.haft(&["run", "Count", "--response-format", "schema.json"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(ended.out, "{\"count\":3}\n");
    let received = bed.server.received();
    assert!(
        received[0].json()["messages"][0]
            .to_string()
            .contains("JSON Schema below")
    );
    assert!(received[1].json().to_string().contains("not valid JSON"));
    // The value is in the event too, and the session can continue.
    let again = bed.resume(&["--output-schema", "schema.json"]);
    assert_eq!(
        again.events.last().unwrap()["response"],
        json!({ "count": 3 })
    );
}

#[test]
fn an_answer_that_never_fits_is_a_failure() {
    let bed = Bed::new(says(&["No."; 9]));
    bed.user(&format!(
        "{}response_format: {SCHEMA}\n",
        bed.model_lines("openai-completions")
    ));
    let ended = bed.haft(&["run", "Count"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert_eq!(ended.out, "");
    assert!(
        ended
            .err
            .contains("error: the final answer does not satisfy response_format"),
        "{ended:?}"
    );
    assert_eq!(bed.server.count(), 4);
}

#[test]
fn an_invalid_schema_stops_before_any_request() {
    let bed = Bed::new(says(&["No."]));
    let own = bed.model_lines("openai-completions");
    for (text, part) in [
        ("nonsense", "not valid JSON"),
        ("[]", "must be a JSON Schema"),
        (r#"{"type":"strange"}"#, "not a valid JSON Schema"),
    ] {
        std::fs::write(bed.work("schema.json"), text).unwrap();
        let ended = bed.haft(&["run", "Go", "--response-format", "schema.json"]);
        assert_eq!(ended.code, Some(2), "{ended:?}");
        assert!(
            ended.err.contains("schema.json") && ended.err.contains(part),
            "{ended:?}"
        );
    }
    let ended = bed.haft(&["run", "Go", "--response-format", "nowhere.json"]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.err.contains("no such file"), "{ended:?}");
    // A file named by a project would be sent to the model.
    bed.project("response_format: /etc/passwd\n");
    let ended = bed.haft(&["run", "Go"]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(
        ended
            .err
            .contains("only your own haft.yaml may name a file"),
        "{ended:?}"
    );
    assert_eq!(bed.server.count(), 0);
    // The user's file may, from its own folder.
    std::fs::remove_file(bed.work("haft.yaml")).unwrap();
    bed.user(&format!("{own}response_format: format.json\n"));
    std::fs::write(bed.home(".config/haft/format.json"), r#"{"type":"string"}"#).unwrap();
    let ended = bed.haft(&["run", "Go"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(bed.server.count() > 0);
}

#[test]
fn an_invalid_format_of_a_sub_agent_is_reported_once_and_by_name() {
    let bed = Bed::new(vec![Turn::text("Never asked.")]).and(
        "subagents:\n  - { name: lister, description: Lists., response_format: { type: nonsense } }\n",
    );
    let ended = bed.haft(&["run", "Go"]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    let words = "sub-agent \"lister\": response_format: not a valid JSON Schema";
    assert_eq!(ended.err.matches(words).count(), 1, "{ended:?}");
    // A command that needs no model prints a warning and works.
    let ended = bed.haft(&["tools"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(ended.err.matches(words).count(), 1, "{ended:?}");
}
