use super::*;
use crate::prelude::*;
use crate::{ApprovalAnswer, Approver, FromSchema, Question};
use async_trait::async_trait;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

/// Longer than the call's time limit, which does not include this time.
const THINKING: Duration = Duration::from_millis(60);

struct FormUser(fn(&Form) -> Filled);

#[async_trait]
impl Approver for FormUser {
    async fn ask(&self, _: &Question) -> ApprovalAnswer {
        ApprovalAnswer::Reject { reason: None }
    }

    async fn fill(&self, form: &Form) -> Filled {
        tokio::time::sleep(THINKING).await;
        (self.0)(form)
    }
}

async fn asked(approve: Approve, form_user: Option<fn(&Form) -> Filled>) -> String {
    let folder = tempfile::tempdir().unwrap();
    let mut builder = Runtime::builder().dir(folder.path()).approve(approve);
    if let Some(fill) = form_user {
        builder = builder.approver(Arc::new(FormUser(fill)));
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
async fn invalid_fields_count_as_declined() {
    let fits: fn(&Form) -> Filled = |form| {
        assert_eq!(
            (form.tool.as_str(), form.message.as_str()),
            ("greet", "Who are you?")
        );
        Filled::Accepted(json!({ "name": "Ada", "age": 36 }))
    };
    let expected = r#"{"name":"Ada","age":36}"#;
    assert_eq!(asked(Approve::Ask, Some(fits)).await, expected);
    // No rule knows the answer, so the user is asked in every approval mode.
    assert_eq!(asked(Approve::Auto, Some(fits)).await, expected);
    let wrong: fn(&Form) -> Filled = |_| Filled::Accepted(json!({ "age": "old" }));
    assert_eq!(asked(Approve::Ask, Some(wrong)).await, "Dismissed");
    let none: fn(&Form) -> Filled = |_| Filled::Dismissed;
    assert_eq!(asked(Approve::Ask, Some(none)).await, "Dismissed");
}

#[tokio::test]
async fn without_an_approver_a_form_is_declined() {
    assert_eq!(asked(Approve::Ask, None).await, "Declined");
    assert_eq!(asked(Approve::Auto, None).await, "Declined");
    let never: fn(&Form) -> Filled = |_| Filled::Accepted(json!({ "name": "Eve" }));
    assert_eq!(asked(Approve::Never, Some(never)).await, "Declined");
}

#[test]
fn fields_can_be_checked_before_they_are_sent() {
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
