//! The key is for the provider: no event, no log, no file, no child has it.

use crate::bed::{Bed, KEY, ended};
use haft_testing::model::{Says, Turn};
use serde_json::json;
use std::path::Path;

/// Every file below a folder that holds the key.
fn with_the_key(folder: &Path, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            with_the_key(&path, found);
        } else if std::fs::read(&path)
            .unwrap()
            .windows(KEY.len())
            .any(|window| window == KEY.as_bytes())
        {
            found.push(path.display().to_string());
        }
    }
}

#[test]
fn the_key_stays_with_the_provider() {
    for provider in [
        "anthropic",
        "openai-responses",
        "openai-completions",
        "google",
        "ollama",
    ] {
        let look = "env; cat /proc/self/environ /proc/$PPID/environ /proc/*/environ /proc/*/cmdline 2>/dev/null | tr '\\0' '\\n'";
        let turns = vec![
            // A provider that repeats it, in an error and in an answer.
            Turn::status(500, &format!("bad key {KEY}")),
            Says::text(format!("Your key is {KEY}."))
                .call("c1", "bash", &json!({ "command": look }))
                .call("c2", "read", &json!({ "path": "/proc/self/environ" }))
                .into(),
            Turn::status(401, &format!("no, {KEY} is wrong")),
        ];
        let bed = Bed::of(provider, turns);
        let ended = bed.haft(&["run", "Go", "--json", "--log", "trace"]);
        assert_eq!(ended.code, Some(1), "{provider}: {ended:?}");
        assert!(ended.err.contains("is wrong"), "{provider}: {}", ended.err);
        let told: Vec<_> = ended
            .out
            .lines()
            .filter(|line| line.contains(KEY) && !line.contains("Your key is"))
            .collect();
        // The model's own words are the model's; nobody else says it.
        let told: Vec<_> = told
            .into_iter()
            .filter(|line| !line.contains("message_update") && !line.contains("agent_end"))
            .collect();
        assert!(told.is_empty(), "{provider}: {told:?}");
        let logged: Vec<_> = ended
            .err
            .lines()
            .filter(|line| line.contains(KEY))
            .collect();
        assert!(logged.is_empty(), "{provider}: {logged:?}");
        let mut found = Vec::new();
        with_the_key(&bed.state(""), &mut found);
        with_the_key(&bed.work(""), &mut found);
        assert!(found.is_empty(), "{provider}: {found:?}");
        let id = bed.newest();
        for format in ["jsonl", "md", "html"] {
            let exported = bed.says(&["sessions", "export", &id, "--format", format]);
            assert!(!exported.contains(KEY), "{provider} {format}");
        }
        let shown = bed.says(&["config", "show"]) + &bed.says(&["sessions", "show", &id]);
        assert!(!shown.contains(KEY), "{provider}");
    }
}

/// One that stands in the file itself, or in a variable of its own.
#[test]
fn a_key_is_one_wherever_it_stands() {
    let bed = Bed::new(vec![
        Says::calling(
            "c1",
            "write",
            &json!({ "path": "a.txt", "content": format!("x {KEY} y") }),
        )
        .into(),
        Turn::text("Done."),
    ]);
    let lines = bed
        .model_lines("openai-completions")
        .replace("${MODEL_KEY}", KEY);
    bed.user(&lines);
    let said = ended(bed.command(&["run", "Go"]).env_remove("MODEL_KEY"));
    assert_eq!(said.code, Some(0), "{said:?}");
    let mut found = Vec::new();
    with_the_key(&bed.state(""), &mut found);
    assert!(found.is_empty(), "{found:?}");
    // What was asked to be written was written.
    assert_eq!(bed.read("a.txt"), format!("x {KEY} y"));
}
