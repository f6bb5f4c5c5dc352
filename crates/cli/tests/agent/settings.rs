//! Choosing the model: keys, addresses, names; and the error without one.

use crate::bed::{Bed, Ended};
use haft_testing::model::Turn;

fn answers() -> impl haft_testing::model::Script {
    |_: &serde_json::Value, _: usize| Turn::text("Here.")
}

/// A usage error: before any request, exit 2, nothing on stdout.
fn is_wrong(bed: &Bed, args: &[&str], words: &[&str]) {
    let ended = bed.haft(args);
    assert_eq!((ended.code, ended.out.as_str()), (Some(2), ""), "{ended:?}");
    for word in words {
        assert!(ended.err.contains(word), "{word}: {ended:?}");
    }
    assert_eq!(bed.server.count(), 0);
}

#[test]
fn without_a_model_there_are_three_next_steps() {
    let bed = Bed::bare(answers());
    for args in [&["run", "Go"][..], &["run", "Go", "--json"]] {
        is_wrong(
            &bed,
            args,
            &[
                "error: no model configured",
                "ANTHROPIC_API_KEY",
                "ollama",
                "haft demo",
            ],
        );
    }
    let ended = bed.haft(&["run", "Go"]);
    assert_eq!(ended.err.matches("\nhint: ").count(), 3, "{ended:?}");
    // This error comes first.
    is_wrong(&bed, &["run", ""], &["no model configured"]);
    // A name that starts with an unknown provider.
    let args = ["--model", "fake/x", "run", "Go"];
    is_wrong(&bed, &args, &["fake", "anthropic"]);
    let ended = bed.haft(&args);
    assert!(!ended.err.contains("no model configured"), "{ended:?}");
    assert!(!bed.state("sessions.db").exists());
}

#[test]
fn an_unset_variable_stops_commands_that_need_it() {
    let bed = Bed::new(answers());
    let without = |args: &[&str]| Ended::of(bed.command(args).env_remove("MODEL_KEY"));
    for args in [
        &["run", "Go"][..],
        &["resume", "Go on"],
        &["run", "Go", "--continue"],
    ] {
        let ended = without(args);
        assert_eq!((ended.code, ended.out.as_str()), (Some(2), ""), "{ended:?}");
        assert!(ended.err.contains("MODEL_KEY"), "{ended:?}");
        assert!(ended.err.contains("haft.yaml:4"), "{ended:?}");
    }
    std::fs::write(bed.work("a.txt"), "hello").unwrap();
    for args in [
        &["call", "read", "path=a.txt"][..],
        &["tools"],
        &["mcp"],
        &["config", "show"],
        &["sessions", "list"],
    ] {
        let ended = without(args);
        assert_eq!(ended.code, Some(0), "{args:?} {ended:?}");
    }
    assert_eq!(bed.server.count(), 0);
}

#[test]
fn settings_that_lead_nowhere() {
    let wrong = |lines: &str, words: &[&str]| {
        let bed = Bed::bare(answers());
        bed.user(&lines.replace("URL", &bed.server.url()));
        is_wrong(&bed, &["run", "Go"], words);
    };
    wrong("provider: antropic\nmodel: m\n", &["antropic", "anthropic"]);
    wrong(
        "provider: ollama\nbase_url: URL\n",
        &["no model for provider ollama", "--model"],
    );
    wrong(
        "provider: anthropic\nmodel: m\n",
        &["no key for provider anthropic", "ANTHROPIC_API_KEY"],
    );
    wrong(
        "provider: anthropic\nmodel: m\napi_key: \"a\\nb\"\n",
        &["contains invalid characters"],
    );
    for url in [
        "nonsense",
        "ftp://127.0.0.1/x",
        "\"http://\"",
        "http://user:secret@127.0.0.1:1/",
    ] {
        let lines = format!(
            "provider: openai-completions\nmodel: m\napi_key: k12345678\nbase_url: {url}\n"
        );
        wrong(&lines, &["base_url"]);
    }
    wrong(
        "provider: replay\n",
        &["provider replay needs a recording", "replay: session.jsonl"],
    );
    wrong(
        "provider: replay\nreplay: none.jsonl\n",
        &["cannot read the recording", "none.jsonl"],
    );
    wrong(
        "max_turns: 0\nprovider: ollama\nmodel: m\nbase_url: URL\n",
        &["max_turns"],
    );
    wrong("max_turns: many\n", &["max_turns"]);
    wrong("max_cost: -1\n", &["max_cost"]);
}

#[test]
fn the_model_is_named_by_flag_variable_and_file() {
    let bed = Bed::new(answers());
    let asked = || bed.last_request()["model"].clone();
    bed.says(&["run", "Go"]);
    assert_eq!(asked(), "scripted");
    Ended::of(bed.command(&["run", "Go"]).env("HAFT_MODEL", "by-variable"));
    assert_eq!(asked(), "by-variable");
    Ended::of(
        bed.command(&["run", "Go", "--model", "by-flag"])
            .env("HAFT_MODEL", "by-variable"),
    );
    assert_eq!(asked(), "by-flag");
    // A resumed session may use another model.
    bed.says(&["run", "Go", "--continue", "--model", "another"]);
    assert_eq!(asked(), "another");
}

#[test]
fn the_effort_is_chosen_by_flag_variable_and_file_and_not_sent_otherwise() {
    let bed = Bed::new(answers());
    let asked = || bed.last_request()["reasoning_effort"].clone();
    bed.says(&["run", "Go"]);
    assert_eq!(asked(), serde_json::Value::Null);
    Ended::of(bed.command(&["run", "Go"]).env("HAFT_EFFORT", "high"));
    assert_eq!(asked(), "high");
    Ended::of(
        bed.command(&["run", "Go", "--effort", "low"])
            .env("HAFT_EFFORT", "high"),
    );
    assert_eq!(asked(), "low");
    let wrong = Ended::of(&mut bed.command(&["run", "Go", "--effort", "lots"]));
    assert_eq!(wrong.code, Some(2));
    bed.project("effort: medium\n");
    bed.says(&["run", "Go"]);
    assert_eq!(asked(), "medium");
}

#[test]
fn a_key_of_the_environment_is_enough() {
    // The provider's own address would be used, if the user did not name another.
    let bed = Bed::bare(answers());
    bed.user(&format!("base_url: \"{}\"\n", bed.server.url()));
    let ended = Ended::of(
        bed.command(&["run", "Go", "--model", "m"])
            .env("OPENAI_API_KEY", "sk-of-the-environment"),
    );
    assert_eq!(
        (ended.code, ended.out.as_str()),
        (Some(0), "Here.\n"),
        "{ended:?}"
    );
    let sent = bed.server.received();
    assert_eq!(
        sent[0].header("authorization"),
        Some("Bearer sk-of-the-environment")
    );
    assert_eq!(sent[0].json()["model"], "m");
}

/// Approval of the home folder is not permanent for a session.
#[test]
fn a_session_in_the_home_folder_is_resumed_only_by_id() {
    let bed = Bed::new(answers());
    let home = bed.home("").to_string_lossy().into_owned();
    let begun = bed.haft(&["run", "Go", "--dir", &home]);
    assert_eq!(begun.code, Some(0), "{begun:?}");
    let listed = bed.says(&["sessions", "list", "--all", "--json"]);
    let listed = crate::bed::lines(&listed);
    let id = listed[0]["id"].as_str().unwrap();
    for args in [
        &["resume", id, "More"][..],
        &["run", "More", "--resume", id],
    ] {
        let ended = bed.haft(args);
        assert_eq!((ended.code, ended.out.as_str()), (Some(2), ""), "{ended:?}");
        assert!(ended.err.contains("--dir"), "{ended:?}");
    }
    let ended = bed.haft(&["resume", id, "More", "--dir", &home]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
}
