//! What a person reads before they decide: the tool, what it would do, and who asks.

use haft::ops::text::decode::{prefix, visible};
use haft::{Access, Form, Question, Resource};
use serde_json::Value;

/// How much is shown of an argument that is neither a command nor a path.
const BESIDE: usize = 400;
/// How much is shown of the others. What is longer is nothing that somebody reads.
const MOST: usize = 8000;

/// The question in words. All that comes from a model or a file is made visible, and
/// its lines are indented, so that none looks like one of ours.
pub(crate) fn of(question: &Question) -> String {
    let tool = visible(&question.tool);
    let mut text = match &question.confirm {
        Some(_) => format!("{tool} runs, and asks before it goes on:\n"),
        None => format!("{tool} wants to run:\n"),
    };
    if let Some(confirm) = &question.confirm {
        field(&mut text, "question", confirm, MOST);
    }
    let mut told = Vec::new();
    for resource in &question.resources {
        let (name, what) = match resource {
            Resource::Command(line) => ("command", line.clone()),
            Resource::Program(words) => ("program", words.join(" ")),
            Resource::Path(path, Access::Read) => ("read", path.clone()),
            Resource::Path(path, Access::Write) => ("write", path.clone()),
            Resource::Path(path, _) => ("remove", path.clone()),
            Resource::Host(host) => ("host", host.clone()),
            Resource::Channel(channel) => ("channel", channel.clone()),
            _ => continue,
        };
        if !told.contains(&what) {
            field(&mut text, name, &what, MOST);
            told.push(what);
        }
    }
    if let Value::Object(arguments) = &question.arguments {
        for (name, value) in arguments {
            let shown = match value {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            if !told.contains(&shown) {
                field(&mut text, name, &shown, BESIDE);
            }
        }
    }
    if question.confirm.is_none() {
        field(&mut text, "asked because", &question.reason(), MOST);
    }
    text
}

/// What a tool wants to know, and that it is the tool who asks.
pub(crate) fn of_form(form: &Form) -> String {
    let mut text = String::new();
    let asks = format!("{} asks", form.tool);
    field(&mut text, &asks, &form.message, MOST);
    text
}

/// One fact: on a line with its name, or indented below it.
fn field(text: &mut String, name: &str, value: &str, most: usize) {
    let length = value.chars().count();
    let shown = match value.char_indices().nth(most) {
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
    if length > most {
        text.push_str(&format!("    … the first {most} of {length} characters\n"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_model_wrote_stays_in_its_place() {
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
