//! Adding MCP servers to the user's own file and removing them, for `haft mcp add`, `import`
//! and `remove`. As for rules, the new text is parsed before it replaces the old one.

use crate::environment::Environment;
use crate::failure::Failure;
use crate::flags::Flags;
use crate::layer::{Layer, Role};
use crate::mcp;
use crate::node::{self, Content, Name, Node};
use crate::own_file::{Form, OwnFile, with_items};
use crate::read;
use serde_json::{Map, Value};
use std::path::Path;

/// Key that new servers are added to. Those of `tools.mcp` are found and removed too.
const KEY: &str = "mcpServers";

/// The file that `haft mcp add` writes to.
#[derive(Debug, Clone)]
pub struct OwnServers {
    file: OwnFile,
    environment: Environment,
}

/// A server to add.
#[derive(Debug, Clone)]
pub struct NewServer {
    /// Name in the configuration.
    pub name: String,
    /// The entry, as in `tools.mcp`.
    pub entry: Value,
    /// Name and entry as YAML, on one line.
    pub text: String,
}

impl OwnServers {
    /// Returns the file named with `--config`, or else the user's own; `None` if there is no
    /// config folder.
    #[must_use]
    pub fn new(flags: &Flags, environment: &Environment) -> Option<Self> {
        Some(Self {
            file: OwnFile::find(flags, environment)?,
            environment: environment.clone(),
        })
    }

    /// Returns the file.
    #[must_use]
    pub fn file(&self) -> &Path {
        &self.file.0
    }

    /// Returns the names of the servers in the file.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn names(&self) -> Result<Vec<String>, Failure> {
        let shown = self.file.shown();
        let text = read::read(&self.file.0, &shown, read::Links::Followed)?;
        let root = parse(&text.unwrap_or_default(), &shown)?;
        let names = maps(&root).flat_map(|(_, map)| entries(map));
        Ok(names.map(|(name, _)| name.text.clone()).collect())
    }

    /// Adds servers. If one of the names is taken, or an entry is not valid, none is added.
    ///
    /// # Errors
    /// For these reasons, or if the file cannot be changed.
    pub fn add(&self, servers: &[NewServer]) -> Result<(), Failure> {
        let shown = self.file.shown();
        for server in servers {
            mcp::check_entry(&server.name, &server.entry, &self.environment)?;
        }
        self.file.edit(|old| {
            let root = parse(old, &shown)?;
            let taken = servers
                .iter()
                .find_map(|server| place(&root, &server.name).map(|place| (&server.name, place)));
            if let Some((name, place)) = taken {
                let line = place.name.at.line;
                let message = format!("an MCP server named {name} is already configured");
                return Err(
                    Failure::at(&format!("{shown}:{line}"), &message).hint(format!(
                        "choose another name, or run: haft mcp remove {name}"
                    )),
                );
            }
            let texts: Vec<String> = servers.iter().map(|server| server.text.clone()).collect();
            let mut wanted = root.plain();
            for server in servers {
                insert(&mut wanted, &server.name, &server.entry);
            }
            let new = with_items(old, KEY, &texts, Form::Map);
            let new = new.filter(|new| self.says(new, &wanted, &shown));
            let new = new.ok_or_else(|| {
                Failure::failed(format!(
                    "{shown} cannot be edited automatically; add this under `{KEY}` yourself: {}",
                    texts.join(", ")
                ))
            })?;
            Ok(Some(new))
        })
    }

    /// Removes a server. Returns `false` if the file has no server of this name.
    ///
    /// # Errors
    /// If the file cannot be changed.
    pub fn remove(&self, name: &str) -> Result<bool, Failure> {
        let shown = self.file.shown();
        let mut is_there = false;
        self.file.edit(|old| {
            let root = parse(old, &shown)?;
            let Some(place) = place(&root, name) else {
                return Ok(None);
            };
            is_there = true;
            let mut wanted = root.plain();
            take(&mut wanted, place.path, name);
            let line = place.name.at.line;
            let new = without_entry(old, line).filter(|new| self.says(new, &wanted, &shown));
            let new = new.ok_or_else(|| {
                let message = format!("{name} cannot be removed automatically; remove it yourself");
                Failure::at(&format!("{shown}:{line}"), &message)
            })?;
            Ok(Some(new))
        })?;
        Ok(is_there)
    }

    /// Whether a text is a valid configuration that says this.
    fn says(&self, text: &str, wanted: &Value, shown: &str) -> bool {
        let is_valid = || {
            let text = text.to_owned();
            Layer::parse(Role::User, &self.file.0, shown, text, &self.environment).is_ok()
        };
        node::parse(text).is_ok_and(|root| without_empty(&root.plain()) == without_empty(wanted))
            && is_valid()
    }
}

fn parse(text: &str, shown: &str) -> Result<Node, Failure> {
    node::parse(text).map_err(|malformed| malformed.failure(shown))
}

/// A server in a file.
struct Place<'a> {
    /// Keys of the map that it is in.
    path: &'static [&'static str],
    name: &'a Name,
}

fn place<'a>(root: &'a Node, server: &str) -> Option<Place<'a>> {
    maps(root).find_map(|(path, map)| {
        let (name, _) = entries(map).iter().find(|(name, _)| name.text == server)?;
        Some(Place { path, name })
    })
}

/// Returns the maps of servers, with the keys that lead to them.
fn maps(root: &Node) -> impl Iterator<Item = (&'static [&'static str], &Node)> {
    const PATHS: [&[&str]; 2] = [&[KEY], &["tools", "mcp"]];
    PATHS.into_iter().filter_map(move |path| {
        let map = path.iter().try_fold(root, |node, key| {
            let (_, value) = entries(node).iter().find(|(name, _)| name.text == *key)?;
            Some(value)
        })?;
        Some((path, map))
    })
}

fn entries(node: &Node) -> &[(Name, Node)] {
    match &node.content {
        Content::Map(entries) => entries,
        _ => &[],
    }
}

fn insert(root: &mut Value, name: &str, entry: &Value) {
    if !root.is_object() {
        *root = Value::Object(Map::new());
    }
    let servers = root
        .as_object_mut()
        .map(|map| map.entry(KEY).or_insert(Value::Null));
    if let Some(servers) = servers {
        if !servers.is_object() {
            *servers = Value::Object(Map::new());
        }
        if let Some(servers) = servers.as_object_mut() {
            servers.insert(name.to_owned(), entry.clone());
        }
    }
}

fn take(root: &mut Value, path: &[&str], name: &str) {
    let map = path.iter().try_fold(root, |node, key| node.get_mut(*key));
    if let Some(map) = map.and_then(Value::as_object_mut) {
        map.remove(name);
    }
}

/// Returns a value without empty maps, which mean the same as missing ones.
fn without_empty(value: &Value) -> Value {
    let map = match value {
        Value::Object(map) => map,
        Value::Null => return Value::Object(Map::new()),
        other => return other.clone(),
    };
    let is_empty = |value: &Value| value.as_object().is_some_and(Map::is_empty);
    let entries = map
        .iter()
        .map(|(name, value)| (name.clone(), without_empty(value)));
    Value::Object(entries.filter(|(_, value)| !is_empty(value)).collect())
}

/// Removes the entry that begins on a line, with the keys above it that have no other; `None`
/// if it does not have lines of its own.
fn without_entry(text: &str, line: u64) -> Option<String> {
    let mut lines: Vec<&str> = text.split_inclusive('\n').collect();
    let mut at = usize::try_from(line).ok()?.checked_sub(1)?;
    loop {
        let indent = indent(lines.get(at)?)?;
        let below = lines.iter().skip(at + 1);
        let belongs = |line: &&&str| self::indent(line).is_none_or(|other| other > indent);
        let mut end = at + 1 + below.take_while(belongs).count();
        // Empty lines and comments at the end belong to what follows.
        while end > at + 1 && self::indent(lines.get(end - 1)?).is_none() {
            end -= 1;
        }
        lines.drain(at..end);
        let above = lines.iter().take(at).enumerate().rev();
        let mut above = above.filter_map(|(at, line)| Some((at, line, self::indent(line)?)));
        let Some((parent, line, parent_indent)) = above.next() else {
            return Some(lines.concat());
        };
        let has_value = !line.split(" #").next()?.trim_end().ends_with(':');
        let next = lines.iter().skip(at).find_map(|line| self::indent(line));
        let has_others = next.is_some_and(|next| next > parent_indent);
        if parent_indent >= indent || has_value || has_others {
            return Some(lines.concat());
        }
        at = parent;
    }
}

/// Returns the indentation of a line; `None` if it is empty or a comment.
fn indent(line: &str) -> Option<usize> {
    let text = line.trim_start_matches(' ');
    let is_content = !text.trim().is_empty() && !text.starts_with('#');
    is_content.then(|| line.len() - text.len())
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test makes its own files")]
mod tests {
    use super::*;
    use crate::sources::FILE;
    use serde_json::json;

    fn own(text: &str) -> (tempfile::TempDir, OwnServers) {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(FILE);
        std::fs::write(&file, text).unwrap();
        let environment = crate::environment::of_test();
        let file = OwnFile(file);
        (folder, OwnServers { file, environment })
    }

    fn docs() -> NewServer {
        NewServer {
            name: "docs".to_owned(),
            entry: json!({ "command": "npx", "args": ["-y", "docs"] }),
            text: "docs: { command: npx, args: [\"-y\", docs] }".to_owned(),
        }
    }

    fn text(own: &OwnServers) -> String {
        std::fs::read_to_string(own.file()).unwrap()
    }

    const LINE: &str = "docs: { command: npx, args: [\"-y\", docs] }";

    #[test]
    fn a_server_is_added_and_everything_else_stays() {
        for (before, after) in [
            ("", "mcpServers:\n  LINE\n"),
            (
                "# mine\ntools:\n  preset: all # every one\n",
                "# mine\ntools:\n  preset: all # every one\n\nmcpServers:\n  LINE\n",
            ),
            (
                "mcpServers:\n    # first\n    other: { url: \"http://x.example\" }\nmodel: m\n",
                "mcpServers:\n    LINE\n    # first\n    other: { url: \"http://x.example\" }\nmodel: m\n",
            ),
            ("mcpServers: {}\n", "mcpServers:\n  LINE\n"),
            (
                "mcpServers: { other: { command: x } }\n",
                "mcpServers: {LINE, other: { command: x } }\n",
            ),
        ] {
            let (_folder, own) = own(before);
            own.add(&[docs()]).unwrap();
            assert_eq!(text(&own), after.replace("LINE", LINE), "{before:?}");
            let again = own.add(&[docs()]).unwrap_err();
            assert!(again.message.contains("already configured"), "{again}");
        }
    }

    #[test]
    fn a_server_is_removed_wherever_it_is() {
        for (before, after) in [
            ("mcpServers:\n  docs: { command: x }\n", ""),
            (
                "model: m\ntools:\n  preset: all\n  mcp:\n    docs:\n      command: x\n      args:\n        - a\n\n    # next\n    other: { command: y }\nquiet: true\n",
                "model: m\ntools:\n  preset: all\n  mcp:\n\n    # next\n    other: { command: y }\nquiet: true\n",
            ),
            (
                "tools:\n  mcp: # servers\n    docs: { command: x }\nmodel: m\n",
                "model: m\n",
            ),
        ] {
            let (_folder, own) = own(before);
            assert!(own.remove("docs").unwrap(), "{before:?}");
            assert_eq!(text(&own), after, "{before:?}");
            assert!(!own.remove("docs").unwrap());
        }
    }

    #[test]
    fn a_file_in_an_unusual_form_stays_as_it_is() {
        for before in [
            "{ \"mcpServers\": { \"docs\": { \"command\": \"x\" } }, \"model\": \"m\" }\n",
            "mcpServers: { docs: { command: x }, other: { command: y } }\n",
        ] {
            let (_folder, own) = own(before);
            own.remove("docs").unwrap_err();
            assert_eq!(text(&own), before);
        }
        let (_folder, own) = own("mcpServers: &all\n  other: { command: x }\n");
        own.add(&[docs()]).unwrap_err();
        let wrong = NewServer {
            entry: json!({ "command": "x", "url": "http://x.example" }),
            ..docs()
        };
        let failure = own.add(&[wrong]).unwrap_err();
        assert!(failure.message.contains("only one of"), "{failure}");
    }
}
