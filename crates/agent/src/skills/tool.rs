//! The tool `skill`, which reads a skill or a file in its folder.

use super::{FILE, Skill, Skills, front_matter};
use crate::tool_reply;
use haft::ops::backend::{Kind, Local, Step, Visit};
use haft::ops::read::{self, Found, Room, Window};
use haft::ops::text::decode::{prefix, visible};
use haft::ops::{Backend, Error as OpsError};
use haft::truncate::{MAX_BYTES, MAX_LINES};
use haft::{
    AnyTool, Context, Definition, Effect, Error, PreparedCall, Reply, prepared, read_arguments,
};
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// Name of the tool.
pub const SKILL: &str = "skill";

/// Maximum number of other files that are listed.
const MAX_FILES: usize = 100;

/// Maximum number of entries in the folder that are visited.
const MAX_VISITED: usize = 2000;

pub(super) struct SkillTool {
    definition: Definition,
    skills: Skills,
}

#[derive(Deserialize)]
struct Args {
    name: String,
    file: Option<String>,
}

impl SkillTool {
    pub(super) fn new(skills: &Skills) -> Self {
        let definition = Definition {
            name: SKILL.to_owned(),
            description:
                "Read a skill: instructions for some kind of work, and a list of its files."
                    .to_owned(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "name": { "type": "string", "description": "Name of the skill." },
                    "file": {
                        "type": "string",
                        "description": "Path of another file in the skill's folder.",
                    },
                },
                "required": ["name"],
            }),
            guidance: None,
        };
        Self {
            definition,
            skills: skills.clone(),
        }
    }

    async fn read(&self, args: Args, cx: &Context) -> Result<Reply, Error> {
        let Some(skill) = self.skills.find(args.name.trim()) else {
            let names: Vec<_> = self.skills.list().iter().map(|one| &*one.name).collect();
            return Err(Error::Failed {
                text: format!("unknown skill: {}", visible(prefix(&args.name, 80))),
                hint: Some(format!("known skills: {}", names.join(", "))),
            });
        };
        let file = args.file.filter(|file| !file.trim().is_empty());
        let (text, note) = text_of(skill, file.as_deref().unwrap_or(FILE), cx).await?;
        let folder = visible(&skill.folder.to_string_lossy());
        let (body, files) = match file {
            Some(_) => (text.as_str(), None),
            None => (
                front_matter::body(&text).trim(),
                Some(others(skill, cx).await),
            ),
        };
        if cx.runtime().reply_form().is_object() {
            let mut more = Vec::new();
            if let Some(files) = files {
                more.extend([("folder", json!(folder)), ("files", json!(files))]);
            }
            more.extend(note.map(|note| ("note", json!(note))));
            return Ok(tool_reply::object(cx, "content", body, more));
        }
        let head = match files {
            None => String::new(),
            Some(files) if files.is_empty() => format!("Skill {}, in {folder}\n\n", skill.name),
            Some(files) => format!(
                "Skill {}, in {folder}\nOther files: {}\n\n",
                skill.name,
                files.join(", ")
            ),
        };
        let reply = Reply::from(format!("{head}{body}"));
        Ok(match note {
            Some(note) => reply.footer(format!("[{note}]")),
            None => reply,
        })
    }
}

impl AnyTool for SkillTool {
    fn definition(&self) -> &Definition {
        &self.definition
    }

    fn effect(&self) -> Effect {
        Effect::Read
    }

    fn prepare(self: Arc<Self>, arguments: Arc<Value>) -> Result<Box<dyn PreparedCall>, Error> {
        let args = read_arguments(&arguments)?;
        Ok(prepared(Vec::new(), move |cx| async move {
            self.read(args, &cx).await
        }))
    }

    fn timeout(&self) -> Option<Duration> {
        Some(Duration::from_secs(30))
    }
}

/// Reads the start of a file. Returns a note if the file is longer.
async fn text_of(
    skill: &Skill,
    file: &str,
    cx: &Context,
) -> Result<(String, Option<String>), Error> {
    let path = cx.found(skill.resolve(file)?);
    if path.exclusion().is_some() {
        return Err(Error::Denied {
            reason: format!(
                "a rule closes {file} of this skill; the user can allow it in haft.yaml"
            ),
        });
    }
    let place = visible(&path.real().to_string_lossy());
    let request = read::Read {
        path,
        window: Window {
            first: 1,
            lines: None,
        },
        room: Room::Lines {
            bytes: MAX_BYTES,
            lines: MAX_LINES,
        },
        cancel: cx.cancel().clone(),
    };
    let shown = match read::file(&Local::new(), request).await? {
        Found::Text(shown) => shown,
        Found::Picture(bytes, kind) => {
            return Err(OpsError::Binary {
                path: file.to_owned(),
                size: bytes.len() as u64,
                kind: Some(kind),
            }
            .into());
        }
    };
    let is_truncated = shown.lines < shown.total_lines || shown.long_line.is_some();
    let note = is_truncated.then(|| {
        format!(
            "the first {} of {} lines; the file is {place}",
            shown.lines, shown.total_lines
        )
    });
    Ok((visible(&shown.text), note))
}

/// Lists the other files of a skill, as paths relative to its folder.
async fn others(skill: &Skill, cx: &Context) -> Vec<String> {
    let mut files = Vec::new();
    let mut left = MAX_VISITED;
    let mut visit = |visit: Visit<'_>| {
        left -= 1;
        if let Visit::Entry { below, stat, .. } = visit
            && matches!(stat.kind, Kind::File | Kind::Link)
            && below.as_os_str() != FILE
        {
            let name = visible(&below.to_string_lossy()).replace('\n', "\\n");
            files.push(name);
        }
        match left == 0 || files.len() > MAX_FILES {
            true => Step::Stop,
            false => Step::Into,
        }
    };
    // If the folder cannot be listed, the list stays empty.
    let _ = Local::new()
        .walk(&cx.found(skill.at.clone()), &mut visit)
        .await;
    if files.len() > MAX_FILES || left == 0 {
        files.truncate(MAX_FILES);
        files.push("…".to_owned());
    }
    files
}
