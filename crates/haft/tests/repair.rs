//! Repair of arguments, in two tables of calls in the style of many agents: those that are
//! understood, with the repaired arguments and the listed repairs, and those that are
//! refused, with the error.
#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test prepares files itself, and fails by panicking"
)]

#[path = "repair/property.rs"]
mod property;
#[path = "repair/table.rs"]
mod table;

use haft::{Call, Effect, Folders, Repair, Reply, Runtime};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use table::Row;

/// A session with all tools of a toolset and a few files.
pub(crate) struct Bench {
    runtime: Runtime,
    temp: tempfile::TempDir,
}

pub(crate) fn bench(toolset: &str) -> Bench {
    let temp = tempfile::TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let work = temp.path().join("work");
    std::fs::create_dir_all(work.join("src")).unwrap();
    std::fs::write(work.join("a.txt"), "one\ntwo\nthree\nfour\nfive\n").unwrap();
    std::fs::write(work.join("src/main.rs"), "fn main() {}\n").unwrap();
    let runtime = Runtime::builder()
        .dir(work)
        .toolset(toolset)
        .every_tool()
        .folders(Folders {
            state: Some(temp.path().join("state")),
            ..Folders::default()
        })
        .build()
        .unwrap();
    Bench { runtime, temp }
}

impl Bench {
    /// Returns the arguments that the tool would get, or why it would not run.
    pub(crate) fn explain(&self, tool: &str, sent: Value) -> Result<(Value, Vec<Repair>), String> {
        match self.runtime.explain(&Call::new(tool, sent)) {
            Ok(explained) => Ok((explained.arguments, explained.repairs)),
            Err(error) => Err(error.to_string()),
        }
    }

    fn call(&self, tool: &str, sent: Value) -> Reply {
        let tokio = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        tokio.block_on(self.runtime.call(tool, sent))
    }

    /// Whether the tool only needs files, so that the call must succeed.
    fn is_about_files(&self, tool: &str) -> bool {
        let effect = self.runtime.tools().get(tool).unwrap().effect();
        !matches!(effect, Effect::Execute | Effect::Network)
    }
}

pub(crate) fn listed(repair: &Repair) -> String {
    format!("{}: {}", repair.parameter, repair.change)
}

/// Returns every tool of every toolset.
pub(crate) fn tools() -> Vec<(&'static str, String, Value)> {
    let mut tools = Vec::new();
    for toolset in haft::toolsets::NAMES {
        for tool in bench(toolset).runtime.definitions() {
            tools.push((*toolset, tool.name, tool.parameters));
        }
    }
    tools
}

/// Checks each row of a table and shows all that fail.
fn each(rows: &[Row], check: impl Fn(&Bench, &Row) -> Result<(), String>) {
    let failed: Vec<String> = rows
        .iter()
        .filter_map(|row| {
            let Row {
                toolset,
                tool,
                sent,
                ..
            } = row;
            let why = check(&bench(toolset), row).err()?;
            Some(format!("{toolset} {tool} {sent}\n    {why}"))
        })
        .collect();
    assert!(
        failed.is_empty(),
        "{} of {} rows:\n{}",
        failed.len(),
        rows.len(),
        failed.join("\n")
    );
}

fn same(what: &str, found: impl ToString, wanted: impl ToString) -> Result<(), String> {
    let (found, wanted) = (found.to_string(), wanted.to_string());
    (found == wanted)
        .then_some(())
        .ok_or_else(|| format!("{what}: {found}\n    wanted: {wanted}"))
}

#[test]
fn unambiguous_arguments_are_repaired_and_listed() {
    let rows = table::rows(include_str!("repair/understood.txt"));
    assert!(rows.len() >= 120, "{}", rows.len());
    let covered: BTreeSet<_> = rows.iter().map(|row| (row.toolset, row.tool)).collect();
    for (toolset, tool, _) in tools() {
        assert!(
            covered.contains(&(toolset, tool.as_str())),
            "{toolset} {tool}"
        );
    }
    each(&rows, |bench, row| {
        let wanted: Value = serde_json::from_str(row.result).unwrap();
        let sent = Value::from(row.sent.as_str());
        let (arguments, repairs) = bench.explain(row.tool, sent.clone())?;
        if arguments != wanted {
            same("arguments", &arguments, &wanted)?;
        }
        let listed: Vec<String> = repairs.iter().map(listed).collect();
        same("repairs", listed.join(" ~ "), row.notes.join(" ~ "))?;
        // Repairing repaired arguments changes nothing.
        let (again, repairs) = bench.explain(row.tool, arguments.clone())?;
        same("again", again, arguments)?;
        same("repairs again", repairs.len(), 0)?;
        // The call itself, and the repairs in its details.
        let reply = bench.call(row.tool, sent);
        let details = reply.details().get("repairs").cloned().unwrap_or(json!([]));
        let listed: Vec<String> = details
            .as_array()
            .unwrap()
            .iter()
            .map(|repair| {
                let field = |name: &str| repair[name].as_str().unwrap().to_owned();
                format!("{}: {}", field("parameter"), field("change"))
            })
            .collect();
        same("details", listed.join(" ~ "), row.notes.join(" ~ "))?;
        if bench.is_about_files(row.tool) && reply.is_error() {
            return Err(format!("the call failed: {}", reply.text()));
        }
        Ok(())
    });
}

#[test]
fn ambiguous_arguments_are_refused_with_a_reason() {
    let rows = table::rows(include_str!("repair/refused.txt"));
    assert!(rows.len() >= 40, "{}", rows.len());
    each(&rows, |bench, row| {
        let sent = Value::from(row.sent.as_str());
        let error = match bench.explain(row.tool, sent.clone()) {
            Ok((arguments, _)) => return Err(format!("understood as {arguments}")),
            Err(error) => error,
        };
        same("error", error, format!("validation error: {}", row.result))?;
        let reply = bench.call(row.tool, sent);
        let is_said = reply.is_error() && reply.text().contains("validation error: ");
        is_said.then_some(()).ok_or_else(|| reply.text())?;
        let text = std::fs::read_to_string(bench.temp.path().join("work/a.txt")).unwrap();
        same("the file", text, "one\ntwo\nthree\nfour\nfive\n")
    });
}

/// Lines two to four, in every way to request them: never off by one.
#[test]
fn a_range_of_lines_is_the_same_in_every_notation() {
    let asked = [
        json!({"start_line": 2, "end_line": 4}),
        json!({"startLine": "2", "endLine": "4"}),
        json!({"view_range": [2, 4]}),
        json!({"start_line_one_indexed": 2, "end_line_one_indexed_inclusive": 4}),
        json!({"from_line": 2, "limit": 3}),
        json!({"line": 2, "num_lines": 3}),
    ];
    for (toolset, tool, path) in [
        ("standard", "read", "a.txt"),
        ("workspace", "read", "a.txt"),
        ("deepagents", "read_file", "/a.txt"),
        ("ah", "read", "a.txt"),
    ] {
        for asked in &asked {
            let mut sent = asked.clone();
            sent["path"] = path.into();
            let text = bench(toolset).call(tool, sent).text();
            let shown: Vec<&str> = ["one", "two", "three", "four", "five"]
                .into_iter()
                .filter(|line| text.contains(line))
                .collect();
            assert_eq!(shown, ["two", "three", "four"], "{toolset} {asked}: {text}");
        }
    }
}

/// Only its own schema applies to an added tool.
#[test]
fn external_tools_get_the_arguments_unchanged() {
    let parameters = json!({
        "type": "object",
        "properties": {
            "path": {"type": "string"},
            "offset": {"type": "integer", "description": "Line, counted from 1."},
            "limit": {"type": "integer"},
            "kind": {"type": "string", "enum": ["dir", "file"]},
        },
        "additionalProperties": false,
    });
    let tool = haft::FromSchema::new("theirs", "", parameters, Effect::Pure, |_, _| async {
        Ok(Reply::from("done"))
    })
    .unwrap();
    let bench = bench("standard");
    bench.runtime.tools().replace(std::sync::Arc::new(tool));
    let (arguments, _) = bench
        .explain("theirs", json!({"file_path": "a", "limit": "5"}))
        .unwrap();
    assert_eq!(arguments, json!({"path": "a", "limit": 5}));
    for (sent, word) in [
        (
            json!({"path": "a", "description": "why"}),
            "\"description\"",
        ),
        (json!({"path": "a", "dry_run": false}), "\"dry_run\""),
        (json!({"path": "a", "start_line": 2}), "\"start_line\""),
        (json!({"path": "a", "kind": "DIR"}), "\"kind\""),
        (json!({"arguments": {"path": "a"}}), "\"arguments\""),
    ] {
        let error = bench.explain("theirs", sent).unwrap_err();
        assert!(error.contains(word), "{error}");
    }
}
