//! Lists and pages for users.

use crate::bed::Bed;
use haft_store::sessions::Batch;
use serde_json::json;

#[test]
fn a_list_fits_and_says_what_waits() {
    let bed = Bed::new();
    let session = bed.agent("k3f9x2m4p7qz");
    bed.asks(&session);
    let list = bed.says(&["sessions", "list"]);
    let rows: Vec<&str> = list.lines().collect();
    assert_eq!(rows.len(), 2, "the sub-agent's is not in it: {list}");
    assert!(rows[0].starts_with("SESSION       AGE"), "{list}");
    assert!(rows[1].starts_with("k3f9x2m4p7qz"), "{list}");
    assert!(
        rows[1].contains("$0.12") || rows[1].contains("$0.13"),
        "{list}"
    );
    let marks = format!("(needs approval, in use by {})", std::process::id());
    assert!(rows[1].contains(&marks), "{list}");
    assert!(rows.iter().all(|row| row.chars().count() <= 80), "{list}");
    assert!(!list.contains('\u{1b}'), "{list}");
    drop(session);
    let list = bed.says(&["sessions", "list"]);
    assert!(
        list.contains("(needs approval) fix <b>it</b> & \\x1b[31m"),
        "{list}"
    );

    // Sessions of another folder only with `--all`.
    std::fs::create_dir(bed.work("below")).unwrap();
    let elsewhere = bed.haft(&["--dir", "below", "sessions", "list"]);
    assert_eq!(elsewhere.out, "", "{elsewhere:?}");
    let all = bed.says(&["--dir", "below", "sessions", "list", "--all"]);
    assert!(all.contains("work: "), "{all}");
}

#[test]
fn a_page_shows_the_conversation() {
    let bed = Bed::new();
    drop(bed.agent("k3f9x2m4p7qz"));
    let page = bed.says(&["sessions", "show", "k3f9"]);
    let expected = [
        "session k3f9x2m4p7qz\n",
        "agent · standard · replay · scripted · ",
        "── you · message 16777217 · ",
        "fix <b>it</b> & \\x1b[31mmore\n",
        "── thinking · message 16777218 ",
        "── assistant",
        "I look.\n  → task {\"what\":\"look\"}\n  → write {\"path\":\"a.txt\"}\n",
        "  ← task\n    looked\n",
        "── assistant · message 16777220 ",
        "Done.\n",
        "session child-k3f9x2m4p7qz\n",
        "started by k3f9x2m4p7qz",
    ];
    let mut from = 0;
    for part in expected {
        let at = page.get(from..).unwrap().find(part);
        from += at.unwrap_or_else(|| panic!("{part:?} is not in its place:\n{page}"));
    }
    assert!(!page.contains('\u{1b}'), "{page}");
}

#[test]
fn todos_are_harmless_on_a_terminal_and_a_line_each() {
    let bed = Bed::new();
    let session = bed.agent("k3f9x2m4p7qz");
    assert_eq!(bed.says(&["sessions", "todos", "k3f9"]), "");
    let todos = json!([
        { "content": "fix \u{1b}[31mit\u{1b}[0m\u{7}", "status": "in_progress" },
        { "content": "two\nlines\r\u{9b}2J", "status": "completed" },
        { "content": "plain é", "status": "pending" },
    ]);
    let state = json!({ "todos": todos }).to_string();
    session
        .commit_blocking(Batch {
            state: Some(state),
            ..Batch::default()
        })
        .unwrap();
    let shown = bed.says(&["sessions", "todos", "k3f9"]);
    assert_eq!(
        shown,
        "[>] fix \\x1b[31mit\\x1b[0m\\x07\n[x] two lines\\x0d\\u{9b}2J\n[ ] plain é\n"
    );
    // As JSON they are unchanged.
    let lines = bed.says(&["sessions", "todos", "k3f9", "--json"]);
    assert!(!lines.contains('\u{1b}'), "{lines}");
    assert_eq!(serde_json::Value::from(crate::bed::lines(&lines)), todos);
}

#[test]
fn missing_sessions_and_messages_are_errors() {
    let bed = Bed::new();
    for args in [
        &["sessions", "show", "k3f9"][..],
        &["sessions", "export", "k3f9"],
        &["sessions", "fork", "k3f9"],
        &["sessions", "delete", "k3f9", "--yes"],
    ] {
        let ended = bed.haft(args);
        assert_eq!((ended.code, ended.out.as_str()), (Some(2), ""), "{ended:?}");
        assert_eq!(ended.err, "error: no sessions found\n");
    }
    assert!(!bed.state("sessions.db").exists(), "looking makes nothing");
    drop(bed.agent("k3f9x2m4p7qz"));
    drop(bed.agent("k3f9x2m4p7qy"));
    let reported = |given: &str| {
        let ended = bed.haft(&["sessions", "show", given]);
        assert_eq!((ended.code, ended.out.as_str()), (Some(2), ""), "{ended:?}");
        ended.err
    };
    assert!(
        reported("k3f9").starts_with("error: several sessions begin with \"k3f9\": k3f9x2m4p7qy, ")
    );
    assert!(reported("k3f").starts_with("error: session id too short: \"k3f\""));
    let near = reported("k3f9x2m4p7qa");
    assert!(near.contains("; did you mean \"k3f9x2m4p7q"), "{near}");
    assert!(near.contains("hint: `haft sessions list --all`"), "{near}");
    assert!(!reported("\u{1b}[2Jxxxx").contains('\u{1b}'));
}
