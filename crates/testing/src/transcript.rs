//! Runs the transcripts in a page of documentation.
//!
//! A page is Markdown. Every `## ` heading starts an empty folder; below it
//!
//! - a block `file NAME` puts a file there (`file NAME escaped`: `\r`, `\n`,
//!   `\t`, `\\` and `\xHH` are read as in Rust, and line breaks are not added),
//! - a block `call TOOL` calls a tool with the JSON inside,
//! - the block `reply` (or `reply error`) after it is what must come back, and
//! - a block `after NAME` (or `after NAME escaped`) is what the file must hold.
//!
//! In a reply, `[..]` stands for any text on its line and `$DIR` for the folder.
//! Between `<!-- parameters TOOL -->` and `<!-- end -->` stands the table that
//! is made from the tool's schema.

use haft::{Builder, Definition, Folders, Runtime};
use serde_json::Value;
use std::fmt::Write as _;
use std::path::Path;
use tempfile::TempDir;

/// What a run of a page came to.
#[derive(Debug, Default)]
pub struct Report {
    /// How many calls were made.
    pub calls: usize,
    /// The tools that have a call that succeeds.
    pub succeeded: Vec<String>,
    /// The tools that have a call that fails.
    pub failed: Vec<String>,
    /// What was not as the page says.
    pub problems: Vec<String>,
}

/// Runs every transcript of `page`. `set` describes the session; its folder is a
/// new one below `below` for each section.
pub async fn run(page: &str, below: &Path, set: impl Fn(Builder) -> Builder) -> Report {
    let mut report = Report::default();
    let mut scratch = Scratch::new(below, &set);
    let mut last = None;
    for block in blocks(page) {
        let words: Vec<&str> = block.info.split_whitespace().collect();
        match words.as_slice() {
            ["##"] => scratch = Scratch::new(below, &set),
            ["file", name, how @ ..] => scratch.put(name, &content(&block.text, how)),
            ["after", name, how @ ..] => {
                let found = std::fs::read(scratch.dir().join(name)).unwrap_or_default();
                let wanted = content(&block.text, how);
                if found != wanted {
                    let (found, wanted) = (
                        String::from_utf8_lossy(&found).into_owned(),
                        String::from_utf8_lossy(&wanted).into_owned(),
                    );
                    report.problems.push(format!(
                        "line {}: {name} holds {found:?}, not {wanted:?}",
                        block.line
                    ));
                }
            }
            ["call", tool] => {
                let arguments: Value =
                    serde_json::from_str(&block.text.replace("$DIR", &scratch.shown()))
                        .unwrap_or_else(|error| panic!("line {}: {error}", block.line));
                let reply = scratch.runtime.call(tool, arguments).await;
                report.calls += 1;
                last = Some((
                    (*tool).to_owned(),
                    reply.is_error(),
                    scratch.readable(&reply),
                ));
            }
            ["reply", how @ ..] => {
                let Some((tool, is_error, text)) = last.take() else {
                    report
                        .problems
                        .push(format!("line {}: a reply without a call", block.line));
                    continue;
                };
                if is_error != (how == ["error"])
                    || !matches(block.text.trim_end_matches('\n'), &text)
                {
                    let mark = if is_error { " error" } else { "" };
                    report.problems.push(format!(
                        "line {}: {tool} replied{mark}:\n{text}\n--- instead of:\n{}",
                        block.line, block.text
                    ));
                }
                if is_error {
                    &mut report.failed
                } else {
                    &mut report.succeeded
                }
                .push(tool);
            }
            _ => {}
        }
    }
    report
}

/// The page with its parameter tables made anew.
#[must_use]
pub fn with_tables(page: &str, definitions: &[Definition]) -> String {
    let mut out = String::new();
    let mut skipping = false;
    for line in page.lines() {
        if line.trim() == "<!-- end -->" {
            skipping = false;
        }
        if skipping {
            continue;
        }
        out.push_str(line);
        out.push('\n');
        let Some(tool) = line
            .trim()
            .strip_prefix("<!-- parameters ")
            .and_then(|rest| rest.strip_suffix(" -->"))
        else {
            continue;
        };
        let definition = definitions
            .iter()
            .find(|definition| definition.name == tool)
            .unwrap_or_else(|| panic!("no tool {tool}"));
        out.push_str(&table(definition));
        skipping = true;
    }
    out
}

fn table(definition: &Definition) -> String {
    let mut out = format!("\n{}\n\n", definition.description);
    let empty = serde_json::Map::new();
    let properties = definition.parameters["properties"]
        .as_object()
        .unwrap_or(&empty);
    if properties.is_empty() {
        return out + "It has no parameters.\n\n";
    }
    out.push_str("| parameter | type | required | description |\n|---|---|---|---|\n");
    for (name, schema) in properties {
        let required = definition.parameters["required"]
            .as_array()
            .is_some_and(|names| names.iter().any(|required| required == name));
        let kind = kind(&schema["type"]);
        let mut notes = schema["description"]
            .as_str()
            .unwrap_or_default()
            .replace('|', "\\|");
        if let Some(choices) = schema["enum"].as_array() {
            let choices: Vec<String> = choices.iter().map(|choice| format!("`{choice}`")).collect();
            let _ = write!(notes, " One of {}.", choices.join(", "));
        }
        if let Some(default) = schema.get("default") {
            let _ = write!(notes, " Default: `{default}`.");
        }
        match (schema.get("minimum"), schema.get("maximum")) {
            (Some(least), Some(most)) => drop(write!(notes, " {least} to {most}.")),
            (Some(least), None) => drop(write!(notes, " At least {least}.")),
            (None, Some(most)) => drop(write!(notes, " At most {most}.")),
            (None, None) => {}
        }
        let _ = writeln!(
            out,
            "| `{name}` | {kind} | {} | {notes} |",
            if required { "yes" } else { "" }
        );
    }
    out.push('\n');
    out
}

fn kind(kind: &Value) -> String {
    match kind {
        Value::String(kind) => kind.clone(),
        Value::Array(kinds) => {
            let kinds: Vec<&str> = kinds.iter().filter_map(Value::as_str).collect();
            kinds.join(" or ")
        }
        _ => "any".to_owned(),
    }
}

struct Scratch {
    temp: TempDir,
    runtime: Runtime,
}

impl Scratch {
    fn new(below: &Path, set: &impl Fn(Builder) -> Builder) -> Self {
        let temp = TempDir::new_in(below).unwrap();
        std::fs::create_dir(temp.path().join("work")).unwrap();
        let builder = Runtime::builder()
            .dir(temp.path().join("work"))
            .folders(Folders {
                state: Some(temp.path().join("state")),
                ..Folders::default()
            })
            .every_tool();
        let runtime = set(builder).build().unwrap();
        Self { temp, runtime }
    }

    fn dir(&self) -> std::path::PathBuf {
        self.temp.path().join("work")
    }

    fn shown(&self) -> String {
        self.dir()
            .canonicalize()
            .unwrap()
            .to_string_lossy()
            .into_owned()
    }

    fn state(&self) -> String {
        let state = self.temp.path().canonicalize().unwrap().join("state");
        state.to_string_lossy().into_owned()
    }

    fn put(&self, name: &str, content: &[u8]) {
        let path = self.dir().join(name);
        std::fs::create_dir_all(path.parent().unwrap_or(Path::new("/"))).unwrap();
        std::fs::write(path, content).unwrap();
    }

    fn readable(&self, reply: &haft::Reply) -> String {
        reply
            .text()
            .replace(&self.shown(), "$DIR")
            .split(&format!("{}/outputs/", self.state()))
            .enumerate()
            .map(|(at, part)| match (at, part.splitn(3, '/').nth(2)) {
                (0, _) | (_, None) => part.to_owned(),
                // Which session it was is another thing each time.
                (_, Some(file)) => format!("$OUTPUTS/{file}"),
            })
            .collect::<String>()
            .trim_end_matches('\n')
            .to_owned()
    }
}

/// A fenced block: its info string, its text and the line it begins on.
struct Block {
    info: String,
    text: String,
    line: usize,
}

fn blocks(page: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut fence: Option<(String, Block)> = None;
    for (at, line) in page.lines().enumerate() {
        match &mut fence {
            Some((closing, block)) if line.trim_end() == closing => {
                blocks.push(std::mem::replace(
                    block,
                    Block {
                        info: String::new(),
                        text: String::new(),
                        line: 0,
                    },
                ));
                fence = None;
            }
            Some((_, block)) => {
                block.text.push_str(line);
                block.text.push('\n');
            }
            None => {
                let ticks = line.len() - line.trim_start_matches('`').len();
                if ticks >= 3 {
                    let info = line.trim_start_matches('`').trim().to_owned();
                    fence = Some((
                        "`".repeat(ticks),
                        Block {
                            info,
                            text: String::new(),
                            line: at + 1,
                        },
                    ));
                } else if line.starts_with("## ") {
                    blocks.push(Block {
                        info: "##".to_owned(),
                        text: String::new(),
                        line: at + 1,
                    });
                }
            }
        }
    }
    blocks
}

fn content(text: &str, how: &[&str]) -> Vec<u8> {
    if how != ["escaped"] {
        return text.as_bytes().to_vec();
    }
    let mut bytes = Vec::new();
    let mut chars = text.chars().filter(|c| *c != '\n');
    while let Some(c) = chars.next() {
        if c != '\\' {
            bytes.extend_from_slice(c.to_string().as_bytes());
            continue;
        }
        match chars.next() {
            Some('r') => bytes.push(b'\r'),
            Some('n') => bytes.push(b'\n'),
            Some('t') => bytes.push(b'\t'),
            Some('x') => {
                let digits: String = chars.by_ref().take(2).collect();
                bytes.push(u8::from_str_radix(&digits, 16).expect("two hex digits after \\x"));
            }
            Some(other) => bytes.extend_from_slice(other.to_string().as_bytes()),
            None => {}
        }
    }
    bytes
}

/// Whether `text` is what `wanted` describes.
fn matches(wanted: &str, text: &str) -> bool {
    let wanted: Vec<&str> = wanted.lines().collect();
    let text: Vec<&str> = text.lines().collect();
    lines_match(&wanted, &text)
}

/// `[...]` alone on a line stands for any lines.
fn lines_match(wanted: &[&str], text: &[&str]) -> bool {
    match (wanted, text) {
        ([], []) => true,
        (["[...]", wanted @ ..], text) => {
            (0..=text.len()).any(|skipped| lines_match(wanted, text.get(skipped..).unwrap_or(&[])))
        }
        ([first, wanted @ ..], [line, text @ ..]) => {
            line_matches(first, line) && lines_match(wanted, text)
        }
        _ => false,
    }
}

fn line_matches(wanted: &str, text: &str) -> bool {
    let pieces: Vec<&str> = wanted.split("[..]").collect();
    let [first, middle @ .., last] = pieces.as_slice() else {
        return wanted == text;
    };
    let Some(mut rest) = text.strip_prefix(first) else {
        return false;
    };
    for piece in middle {
        let Some((_, after)) = rest.split_once(piece) else {
            return false;
        };
        rest = after;
    }
    rest.ends_with(last)
}
