//! Commands of `exec` and `process`: a line for a shell, or a program and its arguments;
//! and the folder to run in.

use crate::prelude::*;
use haft_ops::backend::Kind;
use haft_ops::executor::Program;
use haft_ops::text::duration::short;
use schemars::{Schema, SchemaGenerator, json_schema};
use std::borrow::Cow;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum Command {
    Line(String),
    Words(Vec<String>),
}

/// Written by hand, because providers differ in what they accept: a list of types is refused
/// by some, and so is anything beside `anyOf`.
impl JsonSchema for Command {
    fn schema_name() -> Cow<'static, str> {
        "Command".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [
            { "type": "string" },
            { "type": "array", "items": { "type": "string" } },
        ] })
    }
}

impl Command {
    /// Formats the command for people: the line, or the words joined with spaces.
    pub(super) fn shown(&self) -> String {
        match self {
            Self::Line(line) => line.clone(),
            Self::Words(words) => words.join(" "),
        }
    }

    pub(super) fn program(self) -> Result<Program, Error> {
        let has_nul = |text: &String| text.contains('\0');
        match &self {
            Self::Line(line) if line.trim().is_empty() => {
                return Err(Error::failed("command is required"));
            }
            Self::Words(words) if words.is_empty() => {
                return Err(Error::failed("command is required"));
            }
            Self::Words(words) if words.first().is_some_and(String::is_empty) => {
                return Err(Error::failed("command program is required"));
            }
            Self::Line(line) if has_nul(line) => {}
            Self::Words(words) if words.iter().any(has_nul) => {}
            _ => return Ok(self.checked()),
        }
        Err(Error::invalid(
            "parameter \"command\" contains a NUL character",
        ))
    }

    fn checked(self) -> Program {
        match self {
            Self::Line(script) => Program::Shell {
                shell: "bash".into(),
                arguments: vec!["-c".to_owned()],
                script,
            },
            Self::Words(words) => Program::Direct(words.into_iter().map(Into::into).collect()),
        }
    }
}

/// Returns the resources of a command, as far as its arguments tell.
pub(super) fn resources(command: &Command, folder: Option<&str>) -> Vec<Resource> {
    let command = match command {
        Command::Line(line) => Resource::Command(line.clone()),
        Command::Words(words) => Resource::Program(words.clone()),
    };
    let folder = given(folder).map(|folder| Resource::Path(folder.to_owned(), Access::Read));
    std::iter::once(command).chain(folder).collect()
}

/// Returns the folder to run in: the given one, or the work folder.
pub(super) async fn folder(folder: Option<&str>, cx: &Context) -> Result<PathBuf, Error> {
    let Some(folder) = given(folder) else {
        return Ok(cx.scope().work_dir().to_owned());
    };
    let path = cx.resolve(folder, Access::Read).await?;
    if cx.backend().stat(&path).await?.kind != Kind::Directory {
        return Err(haft_ops::Error::NotADirectory {
            path: folder.to_owned(),
        }
        .into());
    }
    Ok(path.real().to_owned())
}

fn given(folder: Option<&str>) -> Option<&str> {
    folder.filter(|folder| !folder.is_empty())
}

/// Returns the requested time in seconds, clamped to a range; `own` if none was requested.
pub(super) fn limit(requested: Option<f64>, own: Duration, longest: Duration) -> Duration {
    match requested.filter(|requested| *requested > 0.0) {
        None => own,
        // A limit that rounds to 0 would read as if there had been no time at all.
        Some(requested) => Duration::from_secs_f64(requested.clamp(0.1, longest.as_secs_f64())),
    }
}

/// Formats a time limit: `2s`, `0.25s` as requested, or the remaining time rounded to
/// tenths.
pub(super) fn brief(duration: Duration) -> String {
    if duration.subsec_nanos().is_multiple_of(1_000_000) {
        return short(duration);
    }
    let tenths = u64::try_from(duration.as_millis() / 100 + 1).unwrap_or(u64::MAX);
    short(Duration::from_millis(tenths.saturating_mul(100)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_limit_is_shown_as_requested() {
        let told = |seconds| brief(Duration::from_secs_f64(seconds));
        assert_eq!(
            (told(2.0), told(0.25)),
            ("2s".to_owned(), "0.25s".to_owned())
        );
        assert_eq!(
            (told(0.1), told(1.9987)),
            ("0.1s".to_owned(), "2s".to_owned())
        );
    }
}
