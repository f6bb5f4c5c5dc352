//! The look of a tool call: title, kind, places, and the change that it requests.

use crate::update::{CallContent, CallUpdate, Kind, Location, PlanEntry, PlanStatus, Status};
use haft::ops::text::brief;
use haft::ops::text::decode::visible;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Maximum characters of the subject in a title.
const MAX_SUBJECT: usize = 200;

/// A call, as the model or the journal describes it.
pub(crate) struct CallView<'a> {
    /// Id for the client.
    pub(crate) id: &'a str,
    pub(crate) tool: &'a str,
    pub(crate) arguments: &'a Value,
    /// Name of the sub-agent that makes the call, if it is one.
    pub(crate) agent: Option<&'a str>,
    pub(crate) work_dir: &'a Path,
}

impl CallView<'_> {
    /// Creates the first update of the call.
    pub(crate) fn announce(&self, status: Status) -> CallUpdate {
        CallUpdate {
            title: Some(self.title()),
            kind: Some(self.kind()),
            status: Some(status),
            content: self.diff().map(|diff| vec![diff]),
            locations: Some(self.locations()).filter(|all| !all.is_empty()),
            raw_input: Some(self.arguments.clone()),
            ..CallUpdate::first(self.id, self.tool)
        }
    }

    /// Returns an argument, under the first of these names that the call uses.
    fn text(&self, names: &[&str]) -> Option<&str> {
        names
            .iter()
            .find_map(|name| self.arguments.get(name)?.as_str())
    }

    fn path(&self) -> Option<&str> {
        self.text(&["path", "file_path"])
    }

    /// Returns the command line, if the call runs one.
    fn command(&self) -> Option<String> {
        match self.arguments.get("command")? {
            Value::String(line) => Some(line.clone()),
            Value::Array(words) => {
                let words: Vec<_> = words.iter().filter_map(Value::as_str).collect();
                Some(words.join(" "))
            }
            _ => None,
        }
    }

    pub(crate) fn kind(&self) -> Kind {
        match self.tool {
            "read" | "read_file" | "ls" | "list" | "read_todos" | "changes" => Kind::Read,
            "edit" | "edit_file" | "write" | "write_file" => Kind::Edit,
            "delete" | "delete_file" => Kind::Delete,
            "grep" | "glob" | "find" | "web_search" => Kind::Search,
            "bash" | "exec" | "execute" | "execute_bash" | "execute_python" | "process" => {
                Kind::Execute
            }
            "write_todos" => Kind::Think,
            "web_fetch" => Kind::Fetch,
            _ => Kind::Other,
        }
    }

    /// Returns one line that says what the call does.
    pub(crate) fn title(&self) -> String {
        let one_line = |text: &str| {
            let line = visible(text.trim()).replace(['\n', '\t'], " ");
            brief(&line, MAX_SUBJECT)
        };
        let path = self.path().map(one_line);
        let words = match (self.tool, path) {
            _ if self.command().is_some() => {
                format!("`{}`", one_line(&self.command().unwrap_or_default()))
            }
            ("read" | "read_file", Some(path)) => format!("Read {path}"),
            ("edit" | "edit_file", Some(path)) => format!("Edit {path}"),
            ("write" | "write_file", Some(path)) => format!("Write {path}"),
            ("delete" | "delete_file", Some(path)) => format!("Delete {path}"),
            ("ls" | "list", path) => format!("List {}", path.unwrap_or_else(|| ".".to_owned())),
            ("write_todos", _) => "Update the plan".to_owned(),
            ("web_fetch", _) => format!("Fetch {}", self.subject()),
            ("web_search", _) => format!("Search the web for {}", self.subject()),
            (tool, path) => match (self.text(&["pattern"]), path) {
                (Some(pattern), Some(path)) if path != "." => {
                    format!("{tool} {} in {path}", one_line(pattern))
                }
                (Some(pattern), _) => format!("{tool} {}", one_line(pattern)),
                (None, Some(path)) => format!("{tool} {path}"),
                (None, None) => format!("{tool} {}", self.subject()),
            },
        };
        let words = words.trim_end();
        match self.agent {
            Some(agent) => format!("{agent}: {words}"),
            None => words.to_owned(),
        }
    }

    /// Returns the argument that says most about the call.
    fn subject(&self) -> String {
        let named = ["url", "query", "name", "description", "action"];
        let first = || {
            let all = self.arguments.as_object()?;
            all.values().find_map(Value::as_str)
        };
        let subject = self.text(&named).or_else(first).unwrap_or_default();
        let line = visible(subject.trim()).replace(['\n', '\t'], " ");
        brief(&line, MAX_SUBJECT)
    }

    fn absolute(&self, path: &str) -> PathBuf {
        self.work_dir.join(path)
    }

    /// Returns the file that the call is about.
    pub(crate) fn locations(&self) -> Vec<Location> {
        let number = |name: &str| {
            let number = self.arguments.get(name)?.as_u64()?;
            u32::try_from(number).ok()
        };
        let line = ["offset", "start_line", "line"]
            .into_iter()
            .find_map(number);
        let path = match self.command() {
            Some(_) => None,
            None => self.path(),
        };
        let location = path.map(|path| Location {
            path: self.absolute(path),
            line: line.filter(|line| *line > 0),
        });
        location.into_iter().collect()
    }

    /// Returns the change that the call requests, as far as its arguments tell.
    pub(crate) fn diff(&self) -> Option<CallContent> {
        let path = self.absolute(self.path()?);
        let new = self.text(&["new_text", "new_string"]);
        let old = self.text(&["old_text", "old_string"]);
        match (new, self.kind()) {
            (Some(new), _) => Some(CallContent::Diff {
                path,
                old: Some(old.unwrap_or_default().to_owned()),
                new: Some(new.to_owned()),
            }),
            (None, Kind::Edit) => Some(CallContent::Diff {
                path,
                old: None,
                new: Some(self.text(&["content"])?.to_owned()),
            }),
            _ => None,
        }
    }

    /// Returns the todo list that the call sets.
    pub(crate) fn plan(&self) -> Option<Vec<PlanEntry>> {
        let todos = self.arguments.get("todos")?.as_array()?;
        let entries = todos.iter().filter_map(|todo| {
            let status = match todo.get("status").and_then(Value::as_str) {
                Some("completed") => PlanStatus::Done,
                Some("in_progress") => PlanStatus::Running,
                _ => PlanStatus::Pending,
            };
            Some(PlanEntry {
                text: todo.get("content")?.as_str()?.to_owned(),
                status,
            })
        });
        (self.tool == "write_todos").then(|| entries.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn titled(tool: &str, arguments: Value) -> String {
        let view = CallView {
            id: "c",
            tool,
            arguments: &arguments,
            agent: None,
            work_dir: Path::new("/w"),
        };
        view.title()
    }

    #[test]
    fn titles_say_what_a_call_does() {
        for (tool, arguments, title) in [
            ("bash", json!({ "command": "make\ntest" }), "`make test`"),
            ("exec", json!({ "command": ["ls", "-l"] }), "`ls -l`"),
            ("read", json!({ "path": "a.rs" }), "Read a.rs"),
            ("edit_file", json!({ "file_path": "/a" }), "Edit /a"),
            (
                "grep",
                json!({ "pattern": "x", "path": "src" }),
                "grep x in src",
            ),
            ("ls", json!({}), "List ."),
            ("weather", json!({ "city": "Paris" }), "weather Paris"),
            ("ping", json!({}), "ping"),
        ] {
            assert_eq!(titled(tool, arguments), title);
        }
    }

    #[test]
    fn a_change_is_a_diff_with_an_absolute_path() {
        let arguments = json!({ "path": "a", "old_text": "x", "new_text": "y" });
        let view = CallView {
            id: "c",
            tool: "edit",
            arguments: &arguments,
            agent: Some("helper"),
            work_dir: Path::new("/w"),
        };
        let expected = CallContent::Diff {
            path: "/w/a".into(),
            old: Some("x".to_owned()),
            new: Some("y".to_owned()),
        };
        assert_eq!(view.diff(), Some(expected));
        assert_eq!(view.title(), "helper: Edit a");
        assert_eq!(view.locations()[0].path, Path::new("/w/a"));
    }
}
