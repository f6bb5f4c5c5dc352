//! Runs the user's editor on the terminal.

use serde_json::Value;
use std::ffi::OsStr;
use std::io::Write;
use std::path::Path;
use std::process::ExitStatus;

/// Lets the user edit the arguments of a call as JSON in their editor, which takes over the
/// terminal. The file is created in `folder`, where no command of a session can reach it.
///
/// # Errors
/// If the editor fails, or the result is unchanged or not a JSON object; a message for the
/// user.
pub fn edit_arguments(
    editor: &OsStr,
    folder: Option<&Path>,
    arguments: &Value,
) -> Result<Value, String> {
    let text = serde_json::to_string_pretty(arguments).unwrap_or_default();
    let changed = edit_text(editor, folder, ".json", &text)?;
    match serde_json::from_str(&changed) {
        Ok(changed @ Value::Object(_)) if changed != *arguments => Ok(changed),
        Ok(Value::Object(_)) => Err("nothing was changed".to_owned()),
        Ok(_) => Err("the saved text is not a JSON object".to_owned()),
        Err(error) => Err(format!("the saved text is not valid JSON: {error}")),
    }
}

/// Lets the user edit a text, whose kind the suffix names, in a new file in `folder`.
pub(crate) fn edit_text(
    editor: &OsStr,
    folder: Option<&Path>,
    suffix: &str,
    text: &str,
) -> Result<String, String> {
    let failed = |error: std::io::Error| format!("cannot run the editor: {error}");
    let mut builder = tempfile::Builder::new();
    builder.prefix("haft-").suffix(suffix);
    let mut file = match folder {
        Some(folder) => {
            haft::ops::private::folder(folder).map_err(failed)?;
            builder.tempfile_in(folder)
        }
        None => builder.tempfile(),
    }
    .map_err(failed)?;
    haft::ops::private::close(&file).map_err(failed)?;
    writeln!(file, "{text}").map_err(failed)?;
    let status = run(editor, file.path()).map_err(failed)?;
    if !status.success() {
        return Err(format!("the editor failed: {status}; nothing was changed"));
    }
    // Read by name, not by handle: editors may replace the file.
    #[expect(
        clippy::disallowed_methods,
        reason = "a file of haft's own that the user's editor has written"
    )]
    std::fs::read_to_string(file.path()).map_err(failed)
}

/// Lets the user edit a file of haft's own.
pub(crate) fn edit_file(editor: &OsStr, file: &Path) -> Result<(), String> {
    match run(editor, file) {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("the editor failed: {status}")),
        Err(error) => Err(format!("cannot run the editor: {error}")),
    }
}

fn run(editor: &OsStr, file: &Path) -> std::io::Result<ExitStatus> {
    // The value may contain options; a shell splits it, as git does.
    #[expect(
        clippy::disallowed_methods,
        reason = "the user's editor, on their terminal"
    )]
    let mut command = std::process::Command::new("/bin/sh");
    command
        .arg("-c")
        .arg("exec $HAFT_EDITOR_COMMAND \"$1\"")
        .arg("sh")
        .arg(file)
        .env("HAFT_EDITOR_COMMAND", editor)
        .status()
}
