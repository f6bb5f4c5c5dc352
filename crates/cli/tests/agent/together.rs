//! Concurrent runs, and sessions used by other processes.

use crate::bed::{Bed, Ended, results};
use haft_testing::model::{ModelReply, Turn};
use serde_json::{Value, json};

#[test]
fn two_runs_in_one_folder() {
    // Each answer depends on the request: two conversations with one server.
    let script = |request: &Value, _: usize| -> Turn {
        let messages = request["messages"].as_array().unwrap();
        let name = messages[1]["content"].as_str().unwrap();
        let turn = messages
            .iter()
            .filter(|message| message["role"] == "tool")
            .count();
        match turn {
            6 => Turn::text(format!("{name} is done.")),
            turn => ModelReply::calling(
                format!("c{turn}"),
                "bash",
                &json!({ "command": format!("echo {name}{turn} >> log") }),
            )
            .into(),
        }
    };
    let bed = Bed::new(script);
    let names = ["a", "b", "c"];
    let started: Vec<_> = names
        .iter()
        .map(|name| bed.command(&["run", name]).spawn().unwrap())
        .collect();
    for (child, name) in started.into_iter().zip(names) {
        let ended = Ended::from(child.wait_with_output().unwrap());
        assert_eq!(
            (ended.code, ended.out),
            (Some(0), format!("{name} is done.\n")),
            "{}",
            ended.err
        );
    }
    let mut lines: Vec<_> = bed.read("log").lines().map(str::to_owned).collect();
    lines.sort();
    let mut expected: Vec<_> = names
        .iter()
        .flat_map(|name| (0..6).map(move |turn| format!("{name}{turn}")))
        .collect();
    expected.sort();
    assert_eq!(lines, expected);
    assert_eq!(bed.says(&["sessions", "list", "--json"]).lines().count(), 3);
    assert_eq!(results(&bed.messages()).len(), 6);
}

#[test]
fn a_session_in_use_is_not_taken() {
    let bed = Bed::new(vec![
        Turn::text("First."),
        Turn::Silent,
        Turn::text("Here."),
    ]);
    bed.says(&["run", "Go"]);
    let id = bed.newest();
    let mut busy = bed.command(&["resume", &id, "More"]).spawn().unwrap();
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while bed.server.count() < 2 {
        assert!(std::time::Instant::now() < deadline, "it asks nothing");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    for args in [
        &["resume", &id, "Me too"][..],
        &["run", "Me too", "--continue"],
        &["resume", &id, "Me too", "--json"],
    ] {
        let ended = bed.haft(args);
        assert_eq!((ended.code, ended.out.as_str()), (Some(1), ""), "{ended:?}");
        assert!(
            ended
                .err
                .contains(&format!("session {id} is in use by process {}", busy.id())),
            "{ended:?}"
        );
    }
    assert_eq!(bed.server.count(), 2);
    // It can be read.
    assert!(bed.says(&["sessions", "export", &id]).contains("More"));
    busy.kill().unwrap();
    busy.wait().unwrap();
    assert_eq!(bed.says(&["resume", &id]), "Here.\n");
}

#[test]
fn a_session_is_of_its_folder() {
    let script = |_: &Value, number: usize| -> Turn {
        match number % 2 {
            0 => ModelReply::calling(
                format!("c{number}"),
                "write",
                &json!({ "path": format!("{number}.txt"), "content": "here" }),
            )
            .into(),
            _ => Turn::text("Done."),
        }
    };
    let bed = Bed::new(script);
    bed.says(&["run", "Go"]);
    let id = bed.newest();
    bed.project("model: of-the-project\n");
    let from_elsewhere = |args: &[&str]| Ended::of(bed.command(args).current_dir(bed.elsewhere()));
    let resumed = from_elsewhere(&["resume", &id, "Again"]);
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
    assert_eq!(bed.read("2.txt"), "here");
    assert_eq!(std::fs::read_dir(bed.elsewhere()).unwrap().count(), 0);
    assert_eq!(bed.last_request()["model"], "of-the-project");
    let none = from_elsewhere(&["resume", "More of it"]);
    assert_eq!(none.code, Some(2), "{none:?}");
    assert!(
        none.err.contains("no session found for this folder"),
        "{none:?}"
    );
    // A missing folder is an error, and nothing is created elsewhere.
    std::fs::rename(bed.work(""), bed.home("moved")).unwrap();
    let gone = from_elsewhere(&["resume", &id, "Again"]);
    assert_eq!((gone.code, gone.out.as_str()), (Some(2), ""), "{gone:?}");
    assert!(gone.err.contains("work"), "{gone:?}");
    std::fs::rename(bed.home("moved"), bed.work("")).unwrap();
}

/// A project that changed meanwhile has no more rights than a new one.
#[test]
fn a_resumed_session_uses_the_current_settings() {
    let bed = Bed::new(vec![
        Turn::text("First."),
        ModelReply::calling("c1", "bash", &json!({ "command": "echo x > a.txt" })).into(),
        Turn::text("Done."),
    ]);
    bed.says(&["run", "Go"]);
    bed.project("policy:\n  - { deny: bash }\n");
    let ran = bed.resume(&[&bed.newest(), "More"]);
    assert_eq!(
        (ran.code, ran.of("tool_denied").len()),
        (Some(0), 1),
        "{ran:?}"
    );
    assert!(!bed.work("a.txt").exists());
}

/// Calls end and are recorded while another one sends updates: sequence numbers still
/// increase.
#[test]
fn events_of_calls_beside_each_other_are_in_order() {
    let talks = "for i in $(seq 400); do echo $i; sleep 0.005; done";
    let mut says = ModelReply::calling("t", "bash", &json!({ "command": talks }));
    for number in 0..12 {
        let waits = json!({ "command": format!("sleep 0.{number:02}") });
        says = says.call(format!("c{number}"), "bash", &waits);
    }
    let bed = Bed::new(vec![says.into(), Turn::text("Done.")]);
    let ran = bed.run(&[]);
    assert_eq!(ran.reason(), "done");
    assert!(ran.of("tool_update").len() > 5, "{:?}", ran.events);
}
