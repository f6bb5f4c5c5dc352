//! Pending calls of sub-agents are answered by their printed ids.

use crate::bed::{Bed, lines, results};
use haft_testing::model::{ModelReply, Turn};
use serde_json::{Value, json};

const SETTINGS: &str = "tools:\n  toolset: deepagents\n  interrupt_on: { write_file: true }\n";

fn file(name: &str) -> Value {
    json!({ "file_path": format!("/{name}"), "content": "old" })
}

fn asks(id: &str) -> Turn {
    ModelReply::calling(id, "general_purpose", &json!({ "request": "Write" })).into()
}

/// A sub-agent that wants to write two files.
fn bed(own: &str) -> Bed {
    let both = ModelReply::calling("s1", "write_file", &file("one"));
    let both = both.call("s2", "write_file", &file("two"));
    let turns = vec![
        asks(own),
        both.into(),
        Turn::text("Written."),
        Turn::text("Done."),
    ];
    Bed::new(turns).and(SETTINGS)
}

#[test]
fn calls_are_answered_one_by_one() {
    let bed = bed("p1");
    let waits = bed.haft(&["run", "Go", "--json"]);
    assert_eq!(waits.code, Some(3), "{waits:?}");
    let events = lines(&waits.out).into_iter();
    let asked = events.filter(|event| event["type"] == "approval_needed");
    let ids: Vec<_> = asked.map(|one| one["call_id"].clone()).collect();
    assert_eq!(ids, ["s1", "s2"]);
    let wrong = bed.haft(&["resume", "--answer", "s3=approve"]);
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
    assert!(wrong.err.contains("pending calls: s1, s2"), "{wrong:?}");
    let twice = bed.haft(&["resume", "--answer", "p1=approve", "--answer", "s1=reject"]);
    assert_eq!(twice.code, Some(2), "{twice:?}");

    let first = bed.haft(&["resume", "--answer", r#"s1={"content":"new"}"#]);
    assert_eq!(first.code, Some(3), "{first:?}");
    assert_eq!(
        (bed.read("one"), bed.read("two")),
        ("new".into(), "".into())
    );
    // The printed command works.
    let printed = format!("haft resume {} --answer s2=approve", bed.newest());
    assert!(first.err.contains(&printed), "{first:?}");
    assert!(
        first.err.contains("waiting for approval: 1 call\n"),
        "{first:?}"
    );
    let gone = bed.haft(&["resume", "--answer", "s1=approve"]);
    assert_eq!(gone.code, Some(2), "{gone:?}");
    let second = bed.haft(&["resume", "--answer", "s2=approve"]);
    assert_eq!(second.out, "Done.\n", "{second:?}");
    assert_eq!(bed.read("two"), "old");
    assert_eq!(bed.server.count(), 4);
}

#[test]
fn all_by_the_call_that_waits_for_them() {
    for (answer, written) in [("approve", "old"), ("reject", "")] {
        let bed = bed("p1");
        assert_eq!(bed.haft(&["run", "Go"]).code, Some(3));
        let done = bed.haft(&["resume", "--answer", &format!("p1={answer}")]);
        assert_eq!(done.code, Some(0), "{done:?}");
        assert_eq!(
            (bed.read("one"), bed.read("two")),
            (written.into(), written.into())
        );
    }
}

/// Providers restart call ids in each conversation.
#[test]
fn equal_call_ids_are_distinguished() {
    let bed = bed("s1");
    assert_eq!(bed.haft(&["run", "Go"]).code, Some(3));
    let waits = bed.haft(&["resume"]);
    assert_eq!(waits.code, Some(3), "{waits:?}");
    let mut words = waits.err.split_whitespace();
    let long = words.find(|word| word.ends_with("/s1")).unwrap();
    let second = bed.haft(&[
        "resume",
        "--answer",
        "s2=reject",
        "--answer",
        &format!("{long}=approve"),
    ]);
    assert_eq!(second.code, Some(0), "{second:?}");
    assert_eq!(
        (bed.read("one"), bed.read("two")),
        ("old".into(), "".into())
    );
}

/// Every reply of this toolset is one object, even with a note about changed arguments.
#[test]
fn changed_arguments_are_noted_in_the_reply() {
    for answers in [vec![vec!["w1", "w2"]], vec![vec!["w1"], vec!["w2"]]] {
        let both = ModelReply::calling("w1", "write_file", &file("one"));
        let both = both.call("w2", "write_file", &file("two"));
        let bed = Bed::new(vec![both.into(), Turn::text("Done.")]).and(SETTINGS);
        assert_eq!(bed.run(&[]).code, Some(3));
        for ids in answers {
            let given = ids.iter().map(|id| format!(r#"{id}={{"content":"new"}}"#));
            let given: Vec<_> = given.collect();
            let mut args = Vec::new();
            for one in &given {
                args.extend(["--answer", one.as_str()]);
            }
            bed.resume(&args);
        }
        let results = results(&bed.messages());
        assert_eq!(results.len(), 2);
        for (_, text) in results {
            let object: Value = serde_json::from_str(&text).unwrap();
            assert_eq!(object["status"], "success");
            let note = object["note"].as_str().unwrap();
            assert!(note.contains("changed arguments"), "{note}");
            assert!(note.contains(r#""content":"new""#), "{note}");
        }
    }
}

#[test]
fn an_interrupt_without_a_tool_causes_a_warning() {
    let wrong = "tools:\n  toolset: deepagents\n  interrupt_on: { write_fil: true, \
                 general_purpose: true, execute: true, nothing_at_all: true, ls: false }\n";
    let bed = Bed::new(vec![Turn::text("Done."), Turn::text("Done.")]).and(wrong);
    let ended = bed.haft(&["run", "Go"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let warnings: Vec<_> = ended
        .err
        .lines()
        .filter(|line| line.contains("interrupt_on"))
        .collect();
    assert_eq!(warnings.len(), 2, "{ended:?}");
    assert!(warnings[0].contains("\"nothing_at_all\""), "{warnings:?}");
    assert!(
        warnings[1].contains("did you mean \"write_file\"?"),
        "{warnings:?}"
    );
    let quiet = bed.haft(&["--quiet", "run", "Go"]);
    assert_eq!((quiet.code, quiet.err.as_str()), (Some(0), ""));
}

/// Calls in this folder are found first.
#[test]
fn the_output_of_a_call_is_that_of_this_folder() {
    let says = |word: &str| {
        ModelReply::calling("c1", "bash", &json!({ "command": format!("echo {word}") })).into()
    };
    let bed = Bed::new(vec![
        says("here-old"),
        Turn::text("Done."),
        says("here-new"),
        Turn::text("Done."),
        says("there"),
        Turn::text("Done."),
    ]);
    assert_eq!(bed.run(&[]).code, Some(0));
    assert_eq!(bed.run(&[]).code, Some(0));
    let there = bed.elsewhere().display().to_string();
    assert_eq!(bed.haft(&["--dir", &there, "run", "Go"]).code, Some(0));
    assert!(bed.says(&["sessions", "output", "c1"]).contains("here-new"));
    assert!(
        bed.says(&["--dir", &there, "sessions", "output", "c1"])
            .contains("there")
    );
    let home = bed.home("").display().to_string();
    let ended = bed.haft(&["--dir", &home, "sessions", "output", "c1"]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
}
