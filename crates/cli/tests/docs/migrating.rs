//! The pages in `docs/migrating` name only what exists, and leave out no tool of the
//! systems they are about.

use super::{definitions, repository};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A tool and its arguments.
type Tool = (&'static str, &'static [&'static str]);

/// The tools of each origin, with their arguments, as its documentation lists them.
const ORIGINS: [(&str, &[Tool]); 4] = [
    (
        "agent.md",
        &[
            ("read", &["path", "offset", "limit"]),
            ("bash", &["command", "timeout"]),
            ("edit", &["path", "old_text", "new_text"]),
            ("write", &["path", "content"]),
            (
                "grep",
                &[
                    "pattern",
                    "path",
                    "glob",
                    "case_sensitive",
                    "context_lines",
                    "max_results",
                ],
            ),
            ("find", &["path", "pattern", "type", "max_results"]),
            ("ls", &["path", "show_hidden"]),
            ("web_search", &["query", "max_results"]),
            ("web_fetch", &["url", "max_bytes"]),
        ],
    ),
    (
        "workspace.md",
        &[
            ("read", &["path"]),
            ("write", &["path", "content"]),
            (
                "edit",
                &[
                    "path",
                    "old_text",
                    "new_text",
                    "replace_all",
                    "start_line",
                    "end_line",
                ],
            ),
            ("list", &["path"]),
            ("delete", &["path"]),
            ("file", &["operation", "path", "content"]),
            ("exec", &["command", "working_dir", "timeout"]),
            (
                "process",
                &["action", "command", "working_dir", "process_id", "tail"],
            ),
            ("message", &["chanId", "chatId", "content"]),
        ],
    ),
    (
        "deepagents.md",
        &[
            ("ls", &["path"]),
            ("read_file", &["file_path", "offset", "limit"]),
            ("write_file", &["file_path", "content"]),
            (
                "edit_file",
                &["file_path", "old_string", "new_string", "replace_all"],
            ),
            ("glob", &["pattern", "path"]),
            ("grep", &["pattern", "path", "glob", "output_mode"]),
            ("write_todos", &["todos"]),
            ("read_todos", &[]),
            ("execute", &["command"]),
            ("execute_python", &["code"]),
            ("execute_bash", &["command"]),
            ("install_packages", &["packages"]),
        ],
    ),
    (
        "ah.md",
        &[
            ("read", &["path", "offset", "limit"]),
            ("write", &["path", "content"]),
            ("edit", &["path", "old_string", "new_string"]),
            ("bash", &["command", "timeout"]),
        ],
    ),
];

/// Tools that no toolset defines by itself, and the page that documents each.
const ELSEWHERE: [(&str, &str); 5] = [
    ("execute_python", "docs/sandbox.md"),
    ("execute_bash", "docs/sandbox.md"),
    ("install_packages", "docs/sandbox.md"),
    ("general_purpose", "docs/subagents.md"),
    ("task", "docs/subagents.md"),
];

/// Keys of each origin's settings that must have a row.
const KEYS: [(&str, &[&str]); 2] = [
    (
        "agent.md",
        &[
            "provider",
            "model",
            "base_url",
            "api_key",
            "system_prompt",
            "max_turns",
            "max_tokens",
            "max_retries",
            "max_tool_concurrency",
            "auto_approve",
            "tools.preset",
            "tools.work_dir",
            "tools.plugins",
            "Config.ToolTimeout",
        ],
    ),
    (
        "deepagents.md",
        &[
            "model",
            "subagents",
            "skills",
            "memory",
            "backend",
            "execution=\"local\"",
            "execution=\"heimdall\"",
            "interrupt_on",
        ],
    ),
];

/// Other names in each origin's documentation, which must appear on the page in
/// backquotes, alone or with others.
const NAMED: [(&str, &[&str]); 4] = [
    (
        "agent.md",
        &[
            "coding",
            "readonly",
            "web",
            "all",
            "none",
            "path",
            "args",
            "init",
            "describe",
            "tools.Tool",
            "Definition()",
            "tools.MustSchema",
            "tools.SimpleSchema",
            "tools.TextResult",
            "tools.ErrorResult",
            "Result.Details",
            "tools.NewRegistry",
            "reg.Register",
            "tools.LoadPlugin",
            "Executor",
        ],
    ),
    (
        "workspace.md",
        &["pid", "chan_id", "channelId", "channel_id", "chat_id"],
    ),
    (
        "deepagents.md",
        &[
            "name",
            "description",
            "system_prompt",
            "tools",
            "model",
            "skills",
            "interrupt_on",
            "general_purpose",
            "execution={\"command\", \"args\", \"env\"}",
            "execution={\"uri\"}",
            "create_deep_agent_async",
            "create_local_execute_tool",
            "tool_context.state",
            "tool_context.function_call_id",
            "_backend_factory",
            "SubAgentSpec",
            "LlmAgent",
        ],
    ),
    (
        "ah.md",
        &[
            "name",
            "description",
            "system_prompt",
            "input_schema",
            "execute",
            "tools/*.lua",
            "/zip/embed/tools/",
            "AH_PROTECT_DIRS",
            "format_tools_for_prompt()",
        ],
    ),
];

struct Table {
    header: Vec<String>,
    /// The line and the cells of each row.
    rows: Vec<(usize, Vec<String>)>,
}

fn cells(line: &str) -> Vec<String> {
    let line = line.trim().trim_start_matches('|').trim_end_matches('|');
    line.replace("\\|", "\u{0}")
        .split('|')
        .map(|cell| cell.replace('\u{0}', "|").trim().to_owned())
        .collect()
}

fn tables(page: &str) -> Vec<Table> {
    let lines: Vec<&str> = page.lines().collect();
    let mut tables: Vec<Table> = Vec::new();
    let mut is_inside = false;
    for (at, line) in lines.iter().enumerate() {
        let is_rule = lines
            .get(at + 1)
            .is_some_and(|next| next.starts_with("|--"));
        match line.starts_with('|') {
            true if is_rule => {
                is_inside = true;
                tables.push(Table {
                    header: cells(line),
                    rows: Vec::new(),
                });
            }
            true if is_inside && !line.starts_with("|--") => {
                let table = tables.last_mut().unwrap();
                table.rows.push((at + 1, cells(line)));
            }
            true => {}
            false => is_inside = false,
        }
    }
    tables
}

/// The texts in backquotes.
fn spans(text: &str) -> Vec<String> {
    text.split('`')
        .skip(1)
        .step_by(2)
        .map(str::to_owned)
        .collect()
}

fn pages() -> BTreeMap<String, String> {
    let folder = repository().join("docs/migrating");
    std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            (name, std::fs::read_to_string(path).unwrap())
        })
        .collect()
}

/// The toolset that a page is about: `<!-- toolset NAME -->`.
fn toolset_of(page: &str) -> String {
    page.split_once("<!-- toolset ")
        .and_then(|(_, rest)| rest.split_once(" -->"))
        .map_or("standard", |(toolset, _)| toolset)
        .to_owned()
}

/// The built command in an empty home.
struct Bed {
    home: tempfile::TempDir,
    toolset: String,
}

impl Bed {
    fn new() -> Self {
        let home = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        Self {
            home,
            toolset: "standard".to_owned(),
        }
    }

    fn haft(&self, args: &[&str]) -> Result<String, String> {
        let output = Command::new(env!("CARGO_BIN_EXE_haft"))
            .args(args)
            .current_dir(self.home.path())
            .env_clear()
            .env("HOME", self.home.path())
            .env("PATH", "/usr/bin:/bin")
            .env("HAFT_TOOLSET", &self.toolset)
            .output()
            .unwrap();
        match output.status.success() {
            true => Ok(String::from_utf8(output.stdout).unwrap()),
            false => Err(String::from_utf8(output.stderr).unwrap()),
        }
    }

    /// Whether a configuration is valid, as a user's own file.
    fn accepts(&self, yaml: &str) -> Result<(), String> {
        let file: PathBuf = self.home.path().join("checked.yaml");
        std::fs::write(&file, yaml).unwrap();
        let shown = self.haft(&["config", "show", "--config", "checked.yaml"]);
        shown
            .map(|_| ())
            .map_err(|error| format!("{yaml}: {error}"))
    }
}

/// Checks `haft sessions export SESSION --format html`, or flags alone.
fn command(bed: &Bed, span: &str) -> Result<(), String> {
    let words: Vec<&str> = span.split_whitespace().collect();
    let words = words.strip_prefix(&["haft"]).unwrap_or(&words);
    let is_name = |word: &&&str| word.chars().all(|c| c.is_ascii_lowercase());
    let path: Vec<&str> = words.iter().take_while(is_name).copied().collect();
    // The word behind a command may be an argument.
    let help = (0..=path.len().min(2)).rev().find_map(|length| {
        let asked = match length {
            0 => vec!["call", "--help"],
            _ => [&path[..length], &["--help"]].concat(),
        };
        let is_enough = length > 0 || path.is_empty();
        let help = bed.haft(&asked).ok().filter(|_| is_enough)?;
        let is_this = length == 0 || help.contains(&format!("haft {}", path[..length].join(" ")));
        // Behind a command that has commands of its own, a word is one of these.
        let is_whole = length == path.len().min(2) || !help.contains("Commands:");
        (is_this && is_whole).then_some(help)
    });
    let Some(mut help) = help else {
        return Err(format!("`{span}`: there is no such command"));
    };
    help.push_str(&bed.haft(&["help", "flags"])?);
    let known = |flag: &str| help.split([' ', '\n', ',']).any(|word| word == flag);
    let flags = words.iter().filter(|word| word.starts_with("--"));
    for flag in flags {
        let flag = flag.split('=').next().unwrap_or_default();
        if !known(flag) {
            return Err(format!("`{span}`: unknown flag {flag}"));
        }
    }
    Ok(())
}

/// Checks `tools.work_dir`, or `execution: sandbox`.
fn key(bed: &Bed, schema: &Value, span: &str) -> Result<(), String> {
    let (name, value) = match span.split_once(": ") {
        Some((name, value)) => (name, Some(value)),
        None => (span, None),
    };
    let mut at = schema;
    for part in name.split('.') {
        at = &at["properties"][part];
    }
    if at.is_null() {
        return Err(format!("`{span}`: there is no such key"));
    }
    let Some(value) = value.filter(|value| !value.contains('…')) else {
        return Ok(());
    };
    match name.split_once('.') {
        Some((section, name)) => bed.accepts(&format!("{section}: {{ {name}: {value} }}\n")),
        None => bed.accepts(&format!("{name}: {value}\n")),
    }
}

/// Whether a word stands in a text. `chan_id` and `chanId` are the same, as they are for haft.
fn holds(text: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let same = |part: &str| part.replace('_', "").to_ascii_lowercase();
    let word = same(word);
    text.split(|c| !is_part(c)).any(|part| same(part) == word)
}

/// Everything that a name of ours can be, in the texts that haft makes itself: the schemas of
/// the toolset and of the settings, and the help of every command.
struct Known {
    schemas: String,
    help: String,
    sources: String,
}

impl Known {
    fn new(bed: &Bed, schema: &Value, sources: &str) -> Self {
        let mut help = bed.haft(&["help", "flags"]).unwrap();
        let mut open: Vec<Vec<String>> = vec![Vec::new()];
        while let Some(path) = open.pop() {
            let words: Vec<&str> = path.iter().map(String::as_str).chain(["--help"]).collect();
            let Ok(text) = bed.haft(&words) else {
                continue;
            };
            // Commands without a description of their own.
            let more = text
                .lines()
                .find_map(|line| line.strip_prefix("More commands: "));
            for name in more.into_iter().flat_map(|names| names.split(", ")) {
                open.push(vec![name.to_owned()]);
            }
            // Commands stand before the flags, each as `  name  what it does`.
            let listed = text.lines().take_while(|line| {
                !["Options:", "Flags"]
                    .iter()
                    .any(|end| line.starts_with(end))
            });
            for line in listed.filter(|_| path.len() < 2) {
                let name = line
                    .strip_prefix("  ")
                    .and_then(|line| line.split_once("  "));
                let name = name.map(|(name, _)| name).filter(|name| {
                    let is_part = |c: char| c.is_ascii_lowercase() || c == '-';
                    !name.is_empty() && !name.starts_with('-') && name.chars().all(is_part)
                });
                if let Some(name) = name {
                    open.push(path.iter().cloned().chain([name.to_owned()]).collect());
                }
            }
            help.push_str(&text);
        }
        let definitions: Vec<String> = definitions(&bed.toolset)
            .iter()
            .map(|tool| format!("{} {}", tool.name, tool.parameters))
            .collect();
        Self {
            schemas: format!("{schema} {}", definitions.join(" ")),
            help,
            sources: sources.to_owned(),
        }
    }

    /// Checks what is in backquotes beside a checked column, or in the text: flags, and names
    /// of tools, arguments, keys and values.
    fn span(&self, span: &str, in_table: bool) -> Result<(), String> {
        let words: Vec<&str> = span.split_whitespace().collect();
        let unknown = words.iter().find(|word| {
            let flag = word.split('=').next().unwrap_or_default();
            let is_flag = |known: &str| known.trim_end_matches(',') == flag;
            word.starts_with("--") && !self.help.split_whitespace().any(is_flag)
        });
        if let Some(flag) = unknown {
            return Err(format!("`{span}`: no command has {flag}"));
        }
        let is_identifier = |c: char| c.is_ascii_lowercase() || c == '_';
        if in_table && words.len() == 1 && span.chars().all(is_identifier) {
            let mut texts = [&self.schemas, &self.help, &self.sources].into_iter();
            if !texts.any(|text| holds(text, span)) {
                return Err(format!("`{span}`: haft has nothing of this name"));
            }
        }
        Ok(())
    }
}

/// Checks a tool and its arguments, which follow it.
fn tool(toolset: &str, spans: &[String]) -> Result<(), String> {
    let Some((name, arguments)) = spans.split_first() else {
        return Ok(());
    };
    if let Some(definition) = definitions(toolset).iter().find(|tool| tool.name == *name) {
        for argument in arguments {
            if definition.parameters["properties"].get(argument).is_none() {
                return Err(format!("{name} of {toolset} has no argument {argument}"));
            }
        }
        return Ok(());
    }
    let Some((_, page)) = ELSEWHERE.iter().find(|(known, _)| known == name) else {
        return Err(format!("{toolset} has no tool {name}"));
    };
    let page = std::fs::read_to_string(repository().join(page)).unwrap();
    let row = page
        .lines()
        .find(|line| line.starts_with(&format!("| `{name}`")));
    let row = row.ok_or_else(|| format!("{name} is not documented"))?;
    match arguments
        .iter()
        .find(|argument| !row.contains(&format!("`{argument}`")))
    {
        Some(argument) => Err(format!("{name} has no argument {argument}")),
        None => Ok(()),
    }
}

/// All source files of some crates.
fn sources(crates: &[&str]) -> String {
    fn collect(folder: &Path, text: &mut String) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => collect(&path, text),
                false if path.extension().is_some_and(|kind| kind == "rs") => {
                    text.push_str(&std::fs::read_to_string(path).unwrap());
                }
                false => {}
            }
        }
    }
    let mut text = String::new();
    for name in crates {
        collect(
            &repository().join("crates").join(name).join("src"),
            &mut text,
        );
    }
    text
}

/// Checks `Reply::detail`, or a name alone.
fn item(sources: &str, span: &str) -> Result<(), String> {
    let is_type = |name: &str| {
        ["struct", "trait", "enum"].iter().any(|kind| {
            let found = format!("pub {kind} {name}");
            let mut found = sources.split(&found).skip(1);
            found.any(|rest| rest.starts_with([' ', '<', '(', ':', ';', '{']))
        })
    };
    let is_function = |name: &str| {
        let found = sources.contains(&format!("fn {name}("));
        found || sources.contains(&format!("fn {name}<"))
    };
    let holds = match span.split_once("::") {
        Some((of, "from")) => is_type(of) && sources.contains(&format!("> for {of} ")),
        Some((of, name)) if name.starts_with(|c: char| c.is_uppercase()) => {
            is_type(of) && sources.contains(&format!("    {name}"))
        }
        Some((of, name)) => is_type(of) && is_function(name),
        None => is_type(span) || is_function(span),
    };
    match holds {
        true => Ok(()),
        false => Err(format!("`{span}`: there is no such item")),
    }
}

#[test]
fn tables_name_only_what_exists() {
    let mut bed = Bed::new();
    let schema: Value = serde_json::from_str(&bed.haft(&["config", "schema"]).unwrap()).unwrap();
    let sources = self::sources(&["ops", "haft", "agent"]);
    let own = self::sources(&["cli", "config"]);
    let mut problems = Vec::new();
    let mut checked = 0;
    for (name, page) in pages() {
        bed.toolset = toolset_of(&page);
        let known_names = Known::new(&bed, &schema, &format!("{sources}{own}"));
        let mut is_fenced = false;
        for (at, line) in page.lines().enumerate() {
            is_fenced ^= line.starts_with("```");
            // For ah, only the table rows matter.
            if is_fenced || line.starts_with('|') {
                continue;
            }
            let wrong = spans(line)
                .into_iter()
                .filter_map(|span| known_names.span(&span, false).err());
            problems.extend(wrong.map(|wrong| format!("{name}:{}: {wrong}", at + 1)));
        }
        for Table { header, rows } in tables(&page) {
            let known = ["haft tool", "haft.yaml", "haft command", "haft in Rust"];
            let column = header
                .iter()
                .position(|title| known.contains(&title.as_str()));
            let Some(column) = column else {
                if name != "README.md" {
                    problems.push(format!("{name}: no column of {header:?} is checked"));
                }
                continue;
            };
            for (line, cells) in rows {
                if cells.len() != header.len() {
                    problems.push(format!("{name}:{line}: {} cells", cells.len()));
                    continue;
                }
                for cell in cells.iter().skip(column + 1) {
                    let beside = spans(cell);
                    checked += beside.len();
                    let wrong = beside
                        .iter()
                        .filter_map(|span| known_names.span(span, true).err());
                    problems.extend(wrong.map(|wrong| format!("{name}:{line}: {wrong}")));
                }
                let spans = spans(&cells[column]);
                checked += spans.len();
                let results: Vec<Result<(), String>> = match header[column].as_str() {
                    "haft tool" => vec![tool(&bed.toolset, &spans)],
                    "haft.yaml" => spans.iter().map(|span| key(&bed, &schema, span)).collect(),
                    "haft command" => spans.iter().map(|span| command(&bed, span)).collect(),
                    _ => spans.iter().map(|span| item(&sources, span)).collect(),
                };
                let wrong = results.into_iter().filter_map(Result::err);
                problems.extend(wrong.map(|wrong| format!("{name}:{line}: {wrong}")));
            }
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    assert!(checked > 150, "{checked} names were found in the tables");
}

/// The same for commands and settings outside of the tables.
#[test]
fn commands_and_settings_in_the_text_exist() {
    let mut bed = Bed::new();
    let schema: Value = serde_json::from_str(&bed.haft(&["config", "schema"]).unwrap()).unwrap();
    let mut problems = Vec::new();
    for (name, page) in pages() {
        bed.toolset = toolset_of(&page);
        let mut fence: Option<(String, String)> = None;
        for (at, line) in page.lines().enumerate() {
            let mut found = Vec::new();
            match (&mut fence, line.strip_prefix("```")) {
                (Some((language, text)), Some(_)) => {
                    if language == "yaml" {
                        found.push(bed.accepts(text));
                    }
                    fence = None;
                }
                (None, Some(language)) => fence = Some((language.to_owned(), String::new())),
                (Some((language, text)), None) => {
                    text.push_str(line);
                    text.push('\n');
                    let typed = line.split(" #").next().unwrap_or_default().trim();
                    if language == "sh" && typed.starts_with("haft") {
                        found.push(command(&bed, typed));
                    }
                }
                (None, None) => {
                    for span in spans(line) {
                        let root = span.split([':', '.']).next().unwrap_or_default();
                        let is_setting = span.contains(": ") && !span.starts_with(['{', '"']);
                        if span == "haft" || span.starts_with("haft ") {
                            found.push(command(&bed, &span));
                        } else if is_setting && !schema["properties"][root].is_null() {
                            found.push(key(&bed, &schema, &span));
                        }
                    }
                }
            }
            let wrong = found.into_iter().filter_map(Result::err);
            problems.extend(wrong.map(|wrong| format!("{name}:{}: {wrong}", at + 1)));
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn every_tool_and_key_of_the_origins_has_a_row() {
    let pages = pages();
    for (name, names) in NAMED {
        let all: Vec<String> = pages[name].lines().flat_map(spans).collect();
        for expected in names {
            let found = all.iter().any(|span| {
                let is_word = !expected.contains([' ', '{']);
                span == expected
                    || (is_word && span.split([' ', '/']).any(|word| word == *expected))
            });
            assert!(found, "{name} does not name {expected}");
        }
    }
    for (name, tools) in ORIGINS {
        let all = tables(&pages[name]);
        let rows = all.iter().filter(|table| table.header[1] == "arguments");
        let rows: Vec<&Vec<String>> = rows
            .flat_map(|table| &table.rows)
            .map(|row| &row.1)
            .collect();
        for (tool, arguments) in tools {
            let row = rows.iter().find(|row| spans(&row[0]) == [*tool]);
            let row = row.unwrap_or_else(|| panic!("{name} has no row for the tool {tool}"));
            // Each argument of theirs is one of ours too, in the same row.
            let ours = spans(&row[2]);
            for argument in *arguments {
                assert!(
                    ours.iter().skip(1).any(|our| our == argument),
                    "{name}: {tool} of ours does not take {argument}"
                );
            }
            assert_eq!(
                spans(&row[1]),
                *arguments,
                "{name}: the arguments of {tool}"
            );
        }
    }
    for (name, keys) in KEYS {
        let all = tables(&pages[name]);
        let rows = all.iter().filter(|table| table.header[1] == "haft.yaml");
        let named: Vec<String> = rows
            .flat_map(|table| &table.rows)
            .flat_map(|row| spans(&row.1[0]))
            .collect();
        for key in keys {
            assert!(
                named.iter().any(|named| named == key),
                "{name}: no row for {key}"
            );
        }
    }
}

#[test]
fn the_pages_are_linked_and_their_links_lead_somewhere() {
    let pages = pages();
    let read = |path: &str| std::fs::read_to_string(repository().join(path)).unwrap();
    assert!(read("README.md").contains("(docs/migrating/README.md)"));
    let index = read("docs/README.md");
    for name in pages.keys() {
        assert!(index.contains(&format!("(migrating/{name})")), "{name}");
    }
    for (name, page) in &pages {
        for target in page.split("](").skip(1) {
            let target = target.split([')', '#']).next().unwrap_or_default();
            let path = repository().join("docs/migrating").join(target);
            assert!(target.is_empty() || path.exists(), "{name}: {target}");
        }
    }
}
