use super::*;
use crate::prelude::*;
use crate::{Answer, Approver, FromSchema, Question};
use async_trait::async_trait;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

/// Longer than the call may take: it is not the call's time.
const THINKING: Duration = Duration::from_millis(60);

struct Somebody(fn(&Form) -> Filled);

#[async_trait]
impl Approver for Somebody {
    async fn ask(&self, _: &Question) -> Answer {
        Answer::Reject { reason: None }
    }

    async fn fill(&self, form: &Form) -> Filled {
        tokio::time::sleep(THINKING).await;
        (self.0)(form)
    }
}

async fn asked(approve: Approve, somebody: Option<fn(&Form) -> Filled>) -> String {
    let folder = tempfile::tempdir().unwrap();
    let mut builder = Runtime::builder().dir(folder.path()).approve(approve);
    if let Some(fill) = somebody {
        builder = builder.approver(Arc::new(Somebody(fill)));
    }
    let runtime = builder.build().unwrap();
    let fields = json!({
        "type": "object",
        "properties": { "name": { "type": "string" }, "age": { "type": "integer" } },
        "required": ["name"],
    });
    let tool = FromSchema::new(
        "greet",
        "Asks who it is.",
        json!({ "type": "object" }),
        Effect::Pure,
        move |_, cx: Context| {
            let fields = fields.clone();
            async move {
                Ok(Reply::from(match cx.fill("Who are you?", fields).await {
                    Filled::Accepted(fields) => fields.to_string(),
                    other => format!("{other:?}"),
                }))
            }
        },
    );
    let tool = tool.unwrap().with_timeout(Some(THINKING / 3));
    runtime.tools().add_any(Arc::new(tool)).unwrap();
    runtime.call("greet", json!({})).await.text()
}

#[tokio::test]
async fn what_is_filled_in_fits_or_does_not_count() {
    let fits: fn(&Form) -> Filled = |form| {
        assert_eq!(
            (form.tool.as_str(), form.message.as_str()),
            ("greet", "Who are you?")
        );
        Filled::Accepted(json!({ "name": "Ada", "age": 36 }))
    };
    let expected = r#"{"name":"Ada","age":36}"#;
    assert_eq!(asked(Approve::Ask, Some(fits)).await, expected);
    // No rule can know it in their place, so they are asked whatever is approved.
    assert_eq!(asked(Approve::Auto, Some(fits)).await, expected);
    let wrong: fn(&Form) -> Filled = |_| Filled::Accepted(json!({ "age": "old" }));
    assert_eq!(asked(Approve::Ask, Some(wrong)).await, "Dismissed");
    let none: fn(&Form) -> Filled = |_| Filled::Dismissed;
    assert_eq!(asked(Approve::Ask, Some(none)).await, "Dismissed");
}

#[tokio::test]
async fn with_nobody_there_it_is_declined() {
    assert_eq!(asked(Approve::Ask, None).await, "Declined");
    assert_eq!(asked(Approve::Auto, None).await, "Declined");
    let never: fn(&Form) -> Filled = |_| Filled::Accepted(json!({ "name": "Eve" }));
    assert_eq!(asked(Approve::Never, Some(never)).await, "Declined");
}

#[test]
fn what_fits_is_known_before_it_is_sent() {
    let form = Form {
        call_id: "c".to_owned(),
        tool: "greet".to_owned(),
        message: "Who?".to_owned(),
        schema: json!({
            "type": "object",
            "properties": {
                "name": { "type": "string", "pattern": "^[A-Z]" },
                "age": { "$ref": "#/$defs/age" },
            },
            "required": ["name"],
            "dependentRequired": { "age": ["name"] },
            "$defs": { "age": { "type": "integer", "minimum": 18 } },
        }),
    };
    assert!(form.check(&json!({ "name": "Ada", "age": 36 })).is_ok());
    assert!(form.check(&json!({ "age": 36 })).is_err());
    assert!(form.check_field("age", &json!(36)).is_ok());
    assert!(form.check_field("age", &json!(17)).is_err());
    assert!(form.check_field("name", &json!("ada")).is_err());
    let broken = Form {
        schema: json!({ "type": "object", "properties": { "a": { "type": 5 } } }),
        ..form
    };
    let error = broken.check(&json!({})).unwrap_err();
    assert!(!matches!(error, Error::Invalid(_)), "{error}");
}
