//! The pages in `docs/toolsets` are correct, and contain everything a model sees; changes
//! do not go unnoticed.
//!
//! `UPDATE=1 cargo test -p haft-cli --test docs` rewrites the generated parts.
#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a test reads and rewrites its own files, and fails by panicking"
)]

#[path = "docs/migrating.rs"]
mod migrating;

use haft::{Definition, Listed, Runtime, toolsets};
use haft_testing::transcript::{self, CommandLine, Haft, Mcp, Report, Route};
use haft_web::{Client, Fetcher, Searcher};
use serde_json::json;
use std::path::{Path, PathBuf};
use tokio::task::JoinSet;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn page_of(toolset: &str) -> PathBuf {
    repository()
        .join("docs/toolsets")
        .join(format!("{toolset}.md"))
}

fn definitions(toolset: &str) -> Vec<Definition> {
    let mut builder = Runtime::builder().dir(".").toolset(toolset).every_tool();
    if toolset == "standard" {
        let client = Client::new(haft_web::Settings::default()).unwrap();
        let fetcher = Fetcher::new(client.clone(), None);
        for tool in haft_web::tools(fetcher, Searcher::new(client, Vec::new())) {
            builder = builder.own_tool(tool, Listed::ByPreset);
        }
    }
    builder.build().unwrap().definitions()
}

/// Compares a file with its expected content, or rewrites it.
fn current(path: &Path, expected: &str) {
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(path, expected).unwrap();
    }
    let found = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        found == expected,
        "{} is not current. If the change is meant, run: UPDATE=1 cargo test -p haft-cli --test docs",
        path.display()
    );
}

/// The two ways to call the tools, both with the built binary.
fn routes(toolset: &str) -> [(&'static str, Box<dyn Route>); 2] {
    let haft = Haft {
        program: env!("CARGO_BIN_EXE_haft").into(),
        toolset: toolset.to_owned(),
    };
    [
        ("haft mcp", Box::new(Mcp(haft.clone()))),
        ("haft call", Box::new(CommandLine(haft))),
    ]
}

/// Results of a page by both routes, `haft mcp` first.
async fn by_both_routes(page: &str, toolset: &str) -> [Report; 2] {
    let below = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let [(_, mcp), (_, command_line)] = routes(toolset);
    let (mcp, command_line) = tokio::join!(
        transcript::run(page, below, &*mcp),
        transcript::run(page, below, &*command_line)
    );
    [mcp, command_line]
}

// Most of a run is spent waiting for commands, so all pages run in parallel.
#[tokio::test]
async fn every_transcript_is_true() {
    let mut runs = JoinSet::new();
    for toolset in toolsets::NAMES {
        let page = std::fs::read_to_string(page_of(toolset)).unwrap_or_else(|_| {
            panic!("the toolset {toolset} has no page: add docs/toolsets/{toolset}.md")
        });
        runs.spawn(async move {
            let reports = by_both_routes(&page, toolset).await;
            (*toolset, page, reports)
        });
    }
    let runs = runs.join_all().await;
    let mut problems = Vec::new();
    for (toolset, _, reports) in &runs {
        for ((route, _), report) in routes(toolset).iter().zip(reports) {
            for problem in &report.problems {
                problems.push(format!("docs/toolsets/{toolset}.md by {route}, {problem}"));
            }
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n\n"));
    for (toolset, page, [mcp, command_line]) in &runs {
        assert_eq!(mcp.skipped, 0, "a server is one session");
        assert_eq!(command_line.calls + command_line.skipped, mcp.calls);
        for definition in definitions(toolset) {
            complete(&definition.name, toolset, page, mcp);
            let name = &definition.name;
            assert!(
                command_line.succeeded.contains(name) && command_line.failed.contains(name),
                "docs/toolsets/{toolset}.md: {name} has no transcript that succeeds or none that fails above `<!-- one session -->`, for `haft call`"
            );
        }
    }
}

/// Pages beside those of the toolsets that have transcripts.
#[tokio::test]
async fn the_page_of_the_web_is_true() {
    let page = std::fs::read_to_string(repository().join("docs/web.md")).unwrap();
    for (report, (route, _)) in by_both_routes(&page, "standard")
        .await
        .iter()
        .zip(routes("standard"))
    {
        assert!(
            report.problems.is_empty() && report.calls >= 4,
            "docs/web.md by {route}: {}",
            report.problems.join("\n\n")
        );
    }
}

/// Checks that a page documents a tool completely.
fn complete(name: &String, toolset: &str, page: &str, report: &Report) {
    assert!(
        page.contains(&format!("## `{name}`")),
        "step 3 forgotten: docs/toolsets/{toolset}.md has no section ## `{name}`"
    );
    assert!(
        page.contains(&format!("<!-- parameters {name} -->")),
        "step 3 forgotten: the section of {name} has no <!-- parameters {name} -->"
    );
    assert!(
        report.succeeded.contains(name),
        "step 3 forgotten: {name} has no transcript that succeeds"
    );
    assert!(
        report.failed.contains(name),
        "step 3 forgotten: {name} has no transcript that fails"
    );
}

/// Both routes report an error with its line, apply the configuration, and accept long
/// arguments.
#[tokio::test]
async fn both_routes_find_what_is_wrong() {
    let long = "x".repeat(200_000);
    let page = format!(
        r#"
```call write
{{"path": "long.txt", "content": "{long}"}}
```

```reply
Successfully wrote 200000 bytes to long.txt
```

```after long.txt escaped
{long}
```

## Wrong

```call read
{{"path": "gone.txt"}}
```

```reply
it is there
```

```call reed
{{}}
```

```reply error
there is no such tool
```

## Configured

```config
sandbox: read-only
```

```call write
{{"path": "a.txt", "content": "x"}}
```

```reply error
[..]
[...]
```
"#
    );
    for report in by_both_routes(&page, "standard").await {
        let lines: Vec<&str> = report
            .problems
            .iter()
            .filter_map(|problem| Some(problem.split_once(" replied")?.0))
            .collect();
        assert_eq!(lines, ["line 20: read"], "{report:#?}");
        let [_, unknown] = report.problems.as_slice() else {
            panic!("{report:#?}");
        };
        assert!(unknown.starts_with("line 24: reed: "), "{unknown}");
        assert!(unknown.contains("unknown tool"), "{unknown}");
    }
}

#[test]
fn parameter_tables_are_current() {
    for toolset in toolsets::NAMES {
        let path = page_of(toolset);
        let page = std::fs::read_to_string(&path).unwrap();
        current(
            &path,
            &transcript::with_tables(&page, &definitions(toolset)),
        );
    }
}

/// The model-visible texts are an interface: changes show up here and must be explained.
#[test]
fn what_a_model_sees_is_current() {
    for toolset in toolsets::NAMES {
        let seen: Vec<_> = definitions(toolset)
            .into_iter()
            .map(|definition| {
                json!({
                    "name": definition.name,
                    "description": definition.description,
                    "parameters": definition.parameters,
                    "guidance": definition.guidance,
                })
            })
            .collect();
        let text = serde_json::to_string_pretty(&seen).unwrap() + "\n";
        current(
            &Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/model_sees/{toolset}.json")),
            &text,
        );
    }
}

#[test]
fn every_parameter_is_described() {
    for toolset in toolsets::NAMES {
        for definition in definitions(toolset) {
            let name = &definition.name;
            assert!(
                !definition.description.is_empty(),
                "{toolset} {name}: put a doc comment on its Args"
            );
            for (parameter, schema) in definition.parameters["properties"].as_object().unwrap() {
                let described = [&schema["description"], &schema["anyOf"][0]["description"]]
                    .iter()
                    .any(|text| text.as_str().is_some_and(|text| !text.is_empty()));
                assert!(
                    described,
                    "{toolset} {name}: put a doc comment on the field {parameter}"
                );
                assert!(
                    schema.get("$ref").is_none(),
                    "{toolset} {name}: {parameter} is not flat"
                );
            }
        }
    }
}

#[test]
fn every_tool_is_in_the_preset_all() {
    for name in toolsets::NAMES {
        let toolset = toolsets::by_name(name).unwrap();
        let all = toolset.preset(Some("all")).unwrap().tools;
        for definition in definitions(name) {
            assert!(
                all.contains(&definition.name.as_str()),
                "step 2 forgotten: put {} into the preset `all` of toolsets/{name}/mod.rs, and into others that should list it",
                definition.name
            );
        }
    }
}

/// A file in a toolset's folder that is not one of its tools was forgotten.
#[test]
fn every_tool_file_is_listed() {
    let not_tools = [
        "mod", "reply", "summary", "command", "status", "log", "until", "entry", "found", "todo",
        "layout", "window",
    ];
    for toolset in toolsets::NAMES {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../haft/src/toolsets")
            .join(toolset);
        let names: Vec<String> = definitions(toolset)
            .into_iter()
            .map(|definition| definition.name)
            .collect();
        let web = Path::new(env!("CARGO_MANIFEST_DIR")).join("../web/src/tools");
        let folders = [Some(folder), (*toolset == "standard").then_some(web)];
        let entries = folders.into_iter().flatten().flat_map(std::fs::read_dir);
        for entry in entries.flatten() {
            let path = entry.unwrap().path();
            let stem = path.file_stem().unwrap().to_string_lossy().into_owned();
            assert!(
                not_tools.contains(&stem.as_str()) || names.contains(&stem),
                "step 2 forgotten: {} is not in the list of toolsets/{toolset}/mod.rs",
                path.display()
            );
        }
    }
}
