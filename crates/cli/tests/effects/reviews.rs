//! The `review` decision: run now, decide about the changes afterwards.

use crate::bed::{Bed, lines, text};
use haft_testing::model::{ModelReply, Turn};
use serde_json::{Value, json};

const REVIEWS: &str = "policy:\n  - { review: bash }\n";

fn spoil() -> Value {
    json!({ "command": "rm victim.txt; echo new > new.txt; echo ran" })
}

fn planted(bed: &Bed) {
    bed.put("victim.txt", "alive\n");
}

fn is_spoiled(bed: &Bed) -> bool {
    let (victim, new) = (bed.read("victim.txt"), bed.read("new.txt"));
    match (victim.as_deref(), new.as_deref()) {
        (None, Some("new\n")) => true,
        (Some("alive\n"), None) => false,
        other => panic!("half done: {other:?}"),
    }
}

#[test]
fn without_anybody_to_ask_changes_are_reverted_and_the_reply_says_so() {
    let bed = Bed::new();
    bed.user(REVIEWS);
    planted(&bed);
    let reply = bed.call("bash", &spoil());
    assert!(!is_spoiled(&bed), "{reply}");
    assert_eq!(reply["is_error"], true, "{reply}");
    let said = text(&reply);
    assert!(
        said.contains("ran") && said.contains("reverted, because"),
        "{said}"
    );
    assert!(said.contains("no user can be asked"), "{said}");
    assert_eq!(reply["details"]["review"], "reverted");
    // A call that changes nothing is not asked about.
    let reply = bed.call("bash", &json!({ "command": "cat victim.txt" }));
    assert_eq!(
        (&reply["is_error"], text(&reply).contains("reverted")),
        (&false.into(), false)
    );
}

#[test]
fn auto_keeps_and_never_reverts() {
    for (approve, keeps) in [("auto", true), ("never", false)] {
        let bed = Bed::new();
        bed.user(REVIEWS);
        planted(&bed);
        let reply = bed.call_with(&["--approve", approve], "bash", &spoil());
        assert_eq!(is_spoiled(&bed), keeps, "{approve}: {reply}");
        let word = if keeps { "kept" } else { "reverted, because" };
        assert!(text(&reply).contains(word), "{approve}: {reply}");
    }
}

#[test]
fn reviewed_commands_have_no_network_even_if_it_is_on() {
    let bed = Bed::new();
    bed.user(&format!("network: on\n{REVIEWS}"));
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let line = format!("exec 3<>/dev/tcp/127.0.0.1/{port} && echo reached");
    let reply = bed.call("bash", &json!({ "command": line }));
    assert!(!text(&reply).contains("reached"), "{reply}");
    bed.user("network: on\n");
    let reply = bed.call("bash", &json!({ "command": line }));
    assert!(text(&reply).contains("reached"), "the test itself: {reply}");
}

#[test]
fn only_files_on_disk_are_reviewed() {
    let bed = Bed::new();
    bed.user(
        "tools: { toolset: deepagents }\n\
         backend: { routes: { /memories: store, /: filesystem } }\n\
         policy:\n  - { review: write_file }\n",
    );
    for (path, said) in [
        ("/new.txt", "reverted, because"),
        ("/memories/new.txt", "not approved"),
    ] {
        let reply = bed.call("write_file", &json!({ "file_path": path, "content": "n" }));
        assert!(text(&reply).contains(said), "{path}: {reply}");
    }
    assert_eq!(bed.read("new.txt"), None);
}

#[test]
fn programs_that_are_tools_are_reviewed_like_commands() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let script = format!(
        "#!/bin/bash\nrm victim.txt; echo new > new.txt; echo ran\n\
         (exec 3<>/dev/tcp/127.0.0.1/{port}) 2>/dev/null && echo reached\nexit 0\n"
    );
    for (policy, is_reviewed) in [("review", true), ("allow", false)] {
        let bed = Bed::new();
        bed.user(&format!(
            "network: on\npolicy:\n  - {{ {policy}: spoil }}\n"
        ));
        planted(&bed);
        let folder = "home/.config/haft/tools";
        crate::programs::executable(&bed, &format!("{folder}/spoil"), &script);
        let page = "---\ndescription: Spoils.\n---\n";
        bed.write(&format!("{folder}/spoil.md"), page);
        let reply = bed.call("spoil", &json!({}));
        let said = text(&reply);
        assert!(said.contains("ran"), "{reply}");
        assert_eq!(said.contains("reached"), !is_reviewed, "{reply}");
        assert_eq!(said.contains("reverted, because"), is_reviewed, "{reply}");
        assert_eq!(is_spoiled(&bed), !is_reviewed, "{reply}");
    }
}

#[test]
fn processes_end_before_the_question() {
    let bed = Bed::new();
    bed.user(REVIEWS);
    let line = "(while sleep 0.05; do date +%N > clock; done) > /dev/null 2>&1 & sleep 0.3";
    let reply = bed.call("bash", &json!({ "command": line }));
    let said = text(&reply);
    assert!(
        said.contains("ended, because the user reviews this call"),
        "{said}"
    );
    assert!(!said.contains("still running"), "{said}");
    assert_eq!(
        bed.read("clock"),
        None,
        "reverted, and nothing writes it again"
    );
    std::thread::sleep(std::time::Duration::from_millis(300));
    assert_eq!(bed.read("clock"), None);
}

#[test]
fn where_nothing_is_recorded_a_review_asks() {
    for settings in ["effects: { record: false }\n", "sandbox: off\n"] {
        let bed = Bed::new();
        bed.user(&format!("{settings}{REVIEWS}"));
        planted(&bed);
        let reply = bed.call("bash", &spoil());
        assert!(!is_spoiled(&bed), "{settings}: {reply}");
        assert!(
            text(&reply).starts_with("not approved"),
            "{settings}: {reply}"
        );
    }
}

/// A call under review, one that is not, then an end.
fn script() -> Vec<Turn> {
    let first = ModelReply::calling("b1", "bash", &spoil()).call(
        "w1",
        "write",
        &json!({ "path": "other.txt", "content": "o" }),
    );
    vec![first.into(), Turn::text("Done."), Turn::text("Then not.")]
}

#[test]
fn a_headless_run_waits_and_the_answer_keeps_or_reverts() {
    for (answer, keeps) in [
        ("keep", true),
        ("revert", false),
        ("revert:not that", false),
    ] {
        let bed = Bed::with_model(script(), REVIEWS);
        planted(&bed);
        let waits = bed.haft(&["run", "Go", "--json"]);
        assert_eq!(waits.code, Some(3), "{waits:?}");
        let events = lines(&waits.out);
        let asked: Vec<_> = events
            .iter()
            .filter(|one| one["type"] == "review_needed")
            .collect();
        assert_eq!(asked.len(), 1, "{events:?}");
        assert_eq!(
            (&asked[0]["call_id"], &asked[0]["tool"]),
            (&"b1".into(), &"bash".into())
        );
        let changes = asked[0]["changes"].as_array().unwrap();
        assert_eq!(changes.len(), 2);
        assert_eq!(
            changes[0]["kind"], "deleted",
            "deletions first: {changes:?}"
        );
        let count = |kind: &str| events.iter().filter(|one| one["type"] == kind).count();
        assert_eq!(
            (count("tool_start"), count("tool_end")),
            (2, 2),
            "{events:?}"
        );
        assert!(is_spoiled(&bed), "it ran");
        assert_eq!(bed.read("other.txt").unwrap(), "o", "the turn went on");

        let answer = format!("b1={answer}");
        let done = bed.haft(&["resume", "--json", "--answer", &answer]);
        assert_eq!(done.code, Some(0), "{done:?}");
        assert_eq!(is_spoiled(&bed), keeps, "{done:?}");
        let server = bed.server.as_ref().unwrap();
        let sent = server.received().last().unwrap().json().to_string();
        assert!(sent.contains("ran"), "the output of the call: {sent}");
        let said = if keeps {
            "[kept: "
        } else {
            "[reverted, because the user said no"
        };
        assert!(sent.contains(said), "{sent}");
        assert_eq!(sent.contains("not that"), answer.contains("not that"));
        assert!(!sent.contains("the user undid"), "{sent}");
        assert_eq!(server.count(), 2, "the call was not repeated");
    }
}

#[test]
fn what_the_user_changed_meanwhile_stays_and_the_rest_is_reverted() {
    let bed = Bed::with_model(script(), REVIEWS);
    planted(&bed);
    let waits = bed.haft(&["run", "Go", "--json"]);
    assert_eq!(waits.code, Some(3), "{waits:?}");
    bed.put("new.txt", "mine\n");
    let done = bed.haft(&["resume", "--json", "--answer", "b1=revert"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert_eq!(bed.read("victim.txt").as_deref(), Some("alive\n"));
    assert_eq!(bed.read("new.txt").as_deref(), Some("mine\n"));
    let server = bed.server.as_ref().unwrap();
    let sent = server.received().last().unwrap().json().to_string();
    assert!(sent.contains("not all of it could be reverted"), "{sent}");
    assert!(sent.contains("new.txt"), "{sent}");
}

#[test]
fn an_answer_of_the_wrong_kind_is_an_error() {
    let bed = Bed::with_model(script(), REVIEWS);
    planted(&bed);
    let waits = bed.haft(&["run", "Go"]);
    assert_eq!(waits.code, Some(3), "{waits:?}");
    assert!(waits.err.contains("--answer b1=keep"), "{waits:?}");
    assert!(
        waits.err.contains("? bash: 1 deleted, 1 created\n"),
        "{waits:?}"
    );
    let question = "\n    keep or revert? 1 deleted, 1 created\n";
    assert!(waits.err.contains(question), "{waits:?}");
    let wrong = bed.haft(&["resume", "--answer", "b1=approve"]);
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
    assert!(wrong.err.contains("keep, revert"), "{wrong:?}");
    assert_eq!(bed.says(&["resume", "--answer", "b1=revert"]), "Done.\n");
    assert!(!is_spoiled(&bed));
}

#[test]
fn why_names_the_rule() {
    let bed = Bed::new();
    bed.user(REVIEWS);
    let why: Value =
        serde_json::from_str(&bed.says(&["why", "bash", "command=rm x", "--json"])).unwrap();
    assert_eq!(why["decision"], "review", "{why}");
    assert!(
        why["outcome"].as_str().unwrap().contains("without network"),
        "{why}"
    );
}
