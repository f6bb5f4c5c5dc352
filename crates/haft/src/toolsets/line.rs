//! Checks command lines for tools that run a shell.

use crate::Error;

/// Refuses commands that no shell can run.
pub(super) fn check(command: &str) -> Result<(), Error> {
    if command.trim().is_empty() {
        return Err(Error::invalid("parameter \"command\" is empty"));
    }
    if command.contains('\0') {
        return Err(Error::invalid(
            "parameter \"command\" contains a NUL character",
        ));
    }
    if let Some(hint) = tool_call(command) {
        return Err(Error::Failed {
            text: "the command is a tool call as JSON, not a command line; nothing was run"
                .to_owned(),
            hint: Some(hint),
        });
    }
    Ok(())
}

/// Returns what to do about a command that is a tool call written as JSON. A shell would
/// fail on it with a message that does not help.
fn tool_call(command: &str) -> Option<String> {
    let text = command.trim();
    if !text.starts_with('{') {
        return None;
    }
    let Ok(serde_json::Value::Object(fields)) = serde_json::from_str(text) else {
        return None;
    };
    let inner = ["command", "cmd", "script"]
        .iter()
        .find_map(|name| fields.get(*name)?.as_str());
    Some(match inner {
        Some(inner) => {
            let inner = haft_ops::text::brief::brief(inner, 200);
            format!("give the command line itself: {inner}")
        }
        None => "call that tool with these arguments instead".to_owned(),
    })
}
