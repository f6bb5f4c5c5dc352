//! The key is for the provider: no event, no log, no file, no child has it.

use crate::bed::{Bed, Ended, KEY};
use haft_testing::model::{ModelReply, Turn};
use serde_json::json;
use std::path::Path;

/// All files below a folder that contain the key.
fn with_the_key(folder: &Path, found: &mut Vec<String>) {
    found.extend(files_with(folder, KEY));
}

/// All files below a folder that contain a text.
fn files_with(folder: &Path, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(files_with(&path, text));
        } else if std::fs::read(&path)
            .unwrap()
            .windows(text.len())
            .any(|window| window == text.as_bytes())
        {
            found.push(path.display().to_string());
        }
    }
    found
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
            // A provider that repeats the key, in an error and in an answer.
            Turn::status(500, &format!("bad key {KEY}")),
            ModelReply::text(format!("Your key is {KEY}."))
                .call("c1", "bash", &json!({ "command": look }))
                .call("c2", "read", &json!({ "path": "/proc/self/environ" }))
                .into(),
            Turn::status(401, &format!("no, {KEY} is wrong")),
        ];
        let bed = Bed::of(provider, turns);
        let ended = bed.haft(&["run", "Go", "--json", "--log", "trace"]);
        assert_eq!(ended.code, Some(1), "{provider}: {ended:?}");
        assert!(ended.err.contains("is wrong"), "{provider}: {}", ended.err);
        let reported: Vec<_> = ended
            .out
            .lines()
            .filter(|line| line.contains(KEY) && !line.contains("Your key is"))
            .collect();
        // Only the model's own text may contain it.
        let reported: Vec<_> = reported
            .into_iter()
            .filter(|line| !line.contains("message_update") && !line.contains("agent_end"))
            .collect();
        assert!(reported.is_empty(), "{provider}: {reported:?}");
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

/// A key in the file itself, or in its own variable.
#[test]
fn a_key_is_one_wherever_it_stands() {
    let bed = Bed::new(vec![
        ModelReply::calling(
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
    let printed = Ended::of(bed.command(&["run", "Go"]).env_remove("MODEL_KEY"));
    assert_eq!(printed.code, Some(0), "{printed:?}");
    let mut found = Vec::new();
    with_the_key(&bed.state(""), &mut found);
    assert!(found.is_empty(), "{found:?}");
    // The file was written as requested.
    assert_eq!(bed.read("a.txt"), format!("x {KEY} y"));
}

/// The password in a URL is redacted from records and logs without further configuration.
#[test]
fn the_password_of_an_address_is_not_written_down() {
    const PASSWORD: &str = "hunter2-canary";
    let url = format!("https://me:{PASSWORD}@host.invalid/x");
    for provider in ["anthropic", "openai-responses", "google"] {
        let turns = vec![
            ModelReply::text("Looking.")
                .reasoning(format!("I will try {url}."), "c2ln")
                .call(
                    "c1",
                    "bash",
                    &json!({ "command": format!("printf %s '{url}' > seen; cat seen") }),
                )
                .call("c2", "web_fetch", &json!({ "url": url }))
                .call("c3", "no_such_tool", &json!({ "url": url }))
                .into(),
            Turn::text("Done."),
            ModelReply::calling(
                "c4",
                "write",
                &json!({ "path": "again", "content": "https://[redacted]@host.invalid/x" }),
            )
            .into(),
            Turn::text("I could not."),
        ];
        let bed = Bed::of(provider, turns);
        let prompt = format!("Fetch {url}");
        let ended = bed.haft(&["run", &prompt, "--json", "--log", "trace"]);
        assert_eq!(ended.code, Some(0), "{provider}: {ended:?}");
        // The call got the model's text.
        assert_eq!(bed.read("seen"), url, "{provider}");
        let starts = ended.out.lines().filter(|line| line.contains("tool_start"));
        assert!(!starts.clone().any(|line| line.contains(PASSWORD)));
        assert!(
            starts
                .clone()
                .any(|line| line.contains("https://[redacted]@host"))
        );
        let logged: Vec<_> = ended
            .err
            .lines()
            .filter(|line| line.contains(PASSWORD))
            .collect();
        assert!(logged.is_empty(), "{provider}: {logged:?}");
        let found = files_with(&bed.state(""), PASSWORD);
        assert!(found.is_empty(), "{provider}: {found:?}");
        let id = bed.newest();
        for format in ["jsonl", "md", "html"] {
            let exported = bed.says(&["sessions", "export", &id, "--format", format]);
            assert!(!exported.contains(PASSWORD), "{provider} {format}");
        }
        // A resumed session does not mistake the placeholder for the secret.
        let resumed = bed.haft(&["resume", &id, "Write it down"]);
        assert_eq!(resumed.code, Some(0), "{provider}: {resumed:?}");
        assert!(!bed.work("again").exists(), "{provider}");
        let messages = format!("{:?}", bed.messages());
        assert!(messages.contains("contain the mark"), "{provider}");
    }
}

/// Logs are escaped, and secrets are redacted in escaped form too.
#[test]
fn a_secret_with_quotes_is_not_in_the_log_either() {
    let secret = "canary\"one\\two/three\tfour";
    let turns = vec![
        ModelReply::text(format!("It is {secret}."))
            .call("c1", "write", &json!({ "path": "a", "content": secret }))
            .into(),
        Turn::status(400, &format!("no {secret}")),
    ];
    let bed = Bed::new(turns);
    let mut command = bed.command(&["run", "Go", "--log", "trace"]);
    let printed = Ended::of(command.env("DB_PASSWORD", secret));
    assert_eq!(bed.read("a"), secret, "{printed:?}");
    assert!(printed.err.contains("[redacted]"), "{}", printed.err);
    let logged: Vec<_> = printed
        .err
        .lines()
        // The user sees the call and the provider's message.
        .filter(|line| !line.starts_with("> ") && !line.starts_with("error"))
        .filter(|line| line.contains("canary"))
        .collect();
    assert!(logged.is_empty(), "{logged:?}");
    assert!(files_with(&bed.state(""), "canary").is_empty());
}
