//! The text that a user reads before deciding: the tool, what it would do, and why the user
//! is asked.

use haft::ops::text::decode::{prefix, visible};
use haft::{Access, Form, Question, Resource, Review};
use serde_json::Value;

/// Maximum number of characters of an argument that is neither a command nor a path.
const MAX_ARGUMENT: usize = 400;
/// Maximum number of characters of everything else; no user reads more.
const MAX_FACT: usize = 8000;

/// Maximum number of changes that are listed; all of them are counted.
const MAX_CHANGES: usize = 100;

/// Formats the question. Text from a model or a file is escaped and its lines are indented,
/// so that no line looks like one of ours.
pub(crate) fn approval(question: &Question) -> String {
    let tool = visible(&question.tool);
    if let Some(review) = &question.review {
        return changes(&tool, review);
    }
    let mut text = match &question.confirm {
        Some(_) => format!("{tool} asks for confirmation before it continues:\n"),
        None => format!("Allow {tool} to run?\n"),
    };
    if let Some(confirm) = &question.confirm {
        field(&mut text, "question", confirm, MAX_FACT);
    }
    let mut shown_values = Vec::new();
    for resource in &question.resources {
        let (name, value_text) = match resource {
            Resource::Command(line) => ("command", line.clone()),
            Resource::Program(words) => ("program", words.join(" ")),
            Resource::Path(path, Access::Read) => ("read", path.clone()),
            Resource::Path(path, Access::Write) => ("write", path.clone()),
            Resource::Path(path, _) => ("remove", path.clone()),
            Resource::Host(host) => ("host", host.clone()),
            Resource::Channel(channel) => ("channel", channel.clone()),
            _ => continue,
        };
        if !shown_values.contains(&value_text) {
            field(&mut text, name, &value_text, MAX_FACT);
            shown_values.push(value_text);
        }
    }
    if let Value::Object(arguments) = &question.arguments {
        for (name, value) in arguments {
            let shown = match value {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            if !shown_values.contains(&shown) {
                field(&mut text, name, &shown, MAX_ARGUMENT);
            }
        }
    }
    if question.confirm.is_none() {
        field(&mut text, "asked because", &question.reason(), MAX_FACT);
    }
    text
}

/// Formats the changes of a call that has run, deletions first.
fn changes(tool: &str, review: &Review) -> String {
    let mut text = format!("{tool} has run and changed files. Keep the changes?\n");
    field(&mut text, "changed", &review.summary(), MAX_FACT);
    let lines = review.lines();
    for line in lines.iter().take(MAX_CHANGES) {
        text.push_str(&format!("    {line}\n"));
    }
    if let Some(more) = lines
        .len()
        .checked_sub(MAX_CHANGES)
        .filter(|more| *more > 0)
    {
        text.push_str(&format!("    … and {more} more\n"));
    }
    text
}

/// Formats the request of a tool, and names the tool that asks.
pub(crate) fn tool_form(form: &Form) -> String {
    let mut text = String::new();
    let asks = format!("{} asks", form.tool);
    field(&mut text, &asks, &form.message, MAX_FACT);
    text
}

/// Appends one fact: on the line of its name, or indented below it.
fn field(text: &mut String, name: &str, value: &str, limit: usize) {
    let length = value.chars().count();
    let shown = match value.char_indices().nth(limit) {
        Some((end, _)) => prefix(value, end),
        None => value,
    };
    let name = visible(name).replace(['\n', '\t'], " ");
    let shown = visible(shown);
    if shown.contains('\n') {
        text.push_str(&format!("{name}:\n"));
        for line in shown.lines() {
            text.push_str(&format!("    {line}\n"));
        }
    } else {
        text.push_str(&format!("{name}: {shown}\n"));
    }
    if length > limit {
        text.push_str(&format!("    … the first {limit} of {length} characters\n"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_a_model_cannot_imitate_our_lines() {
        let mut text = String::new();
        field(
            &mut text,
            "content",
            "a\nasked because: \x1b[2Jnothing",
            400,
        );
        assert_eq!(
            text,
            "content:\n    a\n    asked because: \\x1b[2Jnothing\n"
        );
        let mut text = String::new();
        field(&mut text, "a\nb", &"x".repeat(500), 400);
        assert!(text.starts_with("a b: xxx"), "{text}");
        assert!(
            text.ends_with("the first 400 of 500 characters\n"),
            "{text}"
        );
    }
}
