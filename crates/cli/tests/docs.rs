//! The pages in `docs/toolsets` are true, and nothing a model sees is missing
//! from them or changes unnoticed.
//!
//! `UPDATE=1 cargo test -p haft-cli --test docs` rewrites what is made from code.
#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a test reads and rewrites its own files, and fails by panicking"
)]

use haft::commands::Place;
use haft::ops::executor::Itself;
use haft::ops::executor::sandbox::Network;
use haft::{Commands, Definition, Runtime, toolsets};
use haft_testing::transcript;
use serde_json::json;
use std::path::{Path, PathBuf};

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn page_of(toolset: &str) -> PathBuf {
    repository()
        .join("docs/toolsets")
        .join(format!("{toolset}.md"))
}

fn definitions(toolset: &str) -> Vec<Definition> {
    Runtime::builder()
        .dir(".")
        .toolset(toolset)
        .every_tool()
        .build()
        .unwrap()
        .definitions()
}

/// How the pages' commands are run: by the binary that people have.
fn commands() -> Commands {
    let haft = Itself::at(env!("CARGO_BIN_EXE_haft").into());
    Commands {
        executor: std::sync::Arc::new(haft.executor()),
        environment: vec![("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into())],
        place: Place::Here {
            helper: haft.helper(),
            network: Network::Off,
            sockets: Vec::new(),
        },
    }
}

/// Compares a file with what it should hold, or rewrites it.
fn current(path: &Path, wanted: &str) {
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(path, wanted).unwrap();
    }
    let found = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        found == wanted,
        "{} is not current. If the change is meant, run: UPDATE=1 cargo test -p haft-cli --test docs",
        path.display()
    );
}

#[tokio::test]
async fn every_transcript_is_true() {
    for toolset in toolsets::NAMES {
        let page = std::fs::read_to_string(page_of(toolset)).unwrap_or_else(|_| {
            panic!("the toolset {toolset} has no page: add docs/toolsets/{toolset}.md")
        });
        let report = transcript::run(&page, Path::new(env!("CARGO_TARGET_TMPDIR")), |builder| {
            builder.toolset(*toolset).commands(commands())
        })
        .await;
        assert!(
            report.problems.is_empty(),
            "docs/toolsets/{toolset}.md:\n{}",
            report.problems.join("\n\n")
        );
        for definition in definitions(toolset) {
            let name = &definition.name;
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

/// What a model sees is an interface: a change shows up here and is explained.
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
                let described = schema["description"]
                    .as_str()
                    .is_some_and(|text| !text.is_empty());
                assert!(
                    described,
                    "{toolset} {name}: put a doc comment on the field {parameter}"
                );
                assert!(
                    schema.get("anyOf").is_none() && schema.get("$ref").is_none(),
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

/// A file in a toolset's folder that is no tool of it was forgotten.
#[test]
fn every_tool_file_is_listed() {
    let not_tools = [
        "mod", "reply", "summary", "command", "status", "until", "entry", "todo",
    ];
    for toolset in toolsets::NAMES {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../haft/src/toolsets")
            .join(toolset);
        let names: Vec<String> = definitions(toolset)
            .into_iter()
            .map(|definition| definition.name)
            .collect();
        for entry in std::fs::read_dir(folder).unwrap() {
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
