//! The final answer of a run that has a response format.

use crate::bed::{Bed, run};
use crate::scripted::{Scripted, text};
use haft_agent::{Message, ResponseFormat};
use serde_json::{Value, json};

fn end(events: &[Value]) -> &Value {
    events.last().unwrap()
}

fn format() -> Option<ResponseFormat> {
    let schema = json!({
        "type": "object",
        "properties": { "count": { "type": "integer" } },
        "required": ["count"],
        "additionalProperties": false,
    });
    Some(ResponseFormat::new(schema).unwrap())
}

#[tokio::test]
async fn an_answer_that_does_not_satisfy_the_format_is_corrected() {
    let model = Scripted::new([
        text("There are three."),
        text(r#"{"count":"three","extra":1}"#),
        text("```json\n{\"count\": 3}\n```"),
    ]);
    let agent = Bed::new().agent(&model).response_format(format());
    let events = run(&agent, "How many?").await;
    assert_eq!(end(&events)["reason"], "done");
    assert_eq!(end(&events)["response"], json!({ "count": 3 }));
    let received = model.received.lock().unwrap();
    let note = |n: usize| match received[n].last().unwrap() {
        Message::User { content, .. } => content[0].as_text().unwrap().to_owned(),
        other => panic!("{other:?}"),
    };
    assert!(note(1).contains("not valid JSON"), "{}", note(1));
    assert!(note(2).contains("/count: "), "{}", note(2));
    assert!(note(2).contains("extra"), "{}", note(2));
}

#[tokio::test]
async fn a_run_fails_if_no_answer_satisfies_the_format() {
    let model = Scripted::new((0..9).map(|_| text("No.")));
    let agent = Bed::new().agent(&model).response_format(format());
    let events = run(&agent, "How many?").await;
    assert_eq!(end(&events)["reason"], "failed");
    assert_eq!(end(&events)["response"], Value::Null);
    let errors: Vec<_> = events.iter().filter(|one| one["type"] == "error").collect();
    let message = errors[0]["message"].as_str().unwrap();
    assert!(
        message.starts_with("the final answer does not satisfy response_format after 4 attempts"),
        "{message}"
    );
    assert_eq!(model.requests(), 4);
}

#[tokio::test]
async fn without_a_format_any_answer_is_accepted() {
    let model = Scripted::new([text("Three.")]);
    let agent = Bed::new().agent(&model);
    let events = run(&agent, "How many?").await;
    assert_eq!(end(&events)["text"], "Three.");
    assert!(end(&events).get("response").is_none());
}
