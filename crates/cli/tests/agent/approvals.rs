//! Calls that need approval wait for it: exit 3, and `haft resume --answer`.

use crate::bed::{Bed, Ended, ran, results};
use haft_testing::model::{ModelReply, Turn};
use serde_json::{Value, json};

const ASKS: &str = "policy:\n  - { ask: bash }\n";
const INTERRUPTS: &str = "tools:\n  interrupt_on: { bash: true }\n";

fn says(word: &str) -> Value {
    json!({ "command": format!("echo {word} >> log") })
}

/// One call that needs approval and one that does not; then an end.
fn script() -> Vec<Turn> {
    let first = ModelReply::calling("b1", "bash", &says("one")).call(
        "w1",
        "write",
        &json!({ "path": "a.txt", "content": "a" }),
    );
    vec![first.into(), Turn::text("Done.")]
}

fn result(bed: &Bed, id: &str) -> String {
    let results = results(&bed.messages());
    let mut own = results.into_iter().filter(|(call, _)| call == id);
    let (_, text) = own.next().unwrap();
    assert_eq!(own.next(), None, "{id} has two results");
    text
}

#[test]
fn a_call_waits_and_is_answered() {
    for (lines, more) in [
        (ASKS, &[][..]),
        (INTERRUPTS, &[]),
        (INTERRUPTS, &["--approve", "auto"]),
    ] {
        let bed = Bed::new(script()).and(lines);
        let waits = bed.run(more);
        assert_eq!(
            (waits.code, waits.reason()),
            (Some(3), "approval"),
            "{waits:?}"
        );
        let asked = waits.of("approval_needed");
        assert_eq!(asked.len(), 1);
        assert_eq!(
            (
                &asked[0]["call_id"],
                &asked[0]["tool"],
                &asked[0]["arguments"]
            ),
            (&"b1".into(), &"bash".into(), &says("one"))
        );
        // Calls that need no approval ran.
        assert_eq!(
            (bed.read("a.txt"), bed.read("log")),
            ("a".to_owned(), String::new())
        );
        assert_eq!(bed.server.count(), 1);
        // The call waits for an answer.
        let again = bed.resume(more);
        assert_eq!(
            (again.code, again.reason()),
            (Some(3), "approval"),
            "{again:?}"
        );
        let done = bed.resume(&[more, &["--answer", "b1=approve"]].concat());
        assert_eq!((done.code, done.reason()), (Some(0), "done"), "{done:?}");
        assert_eq!(bed.read("log"), "one\n");
        assert_eq!(done.of("tool_end").len(), 1, "{done:?}");
        assert_eq!(results(&bed.messages()).len(), 2);
        assert_eq!(bed.server.count(), 2);
    }
}

#[test]
fn pending_calls_are_printed_with_the_command_to_answer() {
    let bed = Bed::new(script()).and(ASKS);
    let ended = bed.haft(&["run", "Go"]);
    assert_eq!((ended.code, ended.out.as_str()), (Some(3), ""), "{ended:?}");
    let id = bed.newest();
    assert!(
        ended.err.contains("waiting for approval: 1 call\n"),
        "{ended:?}"
    );
    assert!(
        ended.err.contains(&format!(
            "answer with: haft resume {id} --answer b1=approve"
        )),
        "{ended:?}"
    );
    let listed = bed.says(&["sessions", "list"]);
    assert!(listed.contains("needs approval"), "{listed}");
    // The printed command works.
    assert_eq!(
        bed.says(&["resume", &id, "--answer", "b1=approve"]),
        "Done.\n"
    );
    assert_eq!(bed.read("log"), "one\n");
}

#[test]
fn no_is_no() {
    let bed = Bed::new(script()).and(ASKS);
    assert_eq!(bed.run(&[]).code, Some(3));
    let done = bed.resume(&["--answer", "b1=reject"]);
    assert_eq!((done.code, done.reason()), (Some(0), "done"), "{done:?}");
    assert_eq!(done.of("tool_denied").len(), 1, "{done:?}");
    assert_eq!(bed.read("log"), "");
    assert!(
        result(&bed, "b1").contains("the user said no"),
        "{}",
        result(&bed, "b1")
    );
}

#[test]
fn the_model_gets_the_reason_of_a_rejection() {
    let bed = Bed::new(script()).and(ASKS);
    let waits = bed.haft(&["run", "Go"]);
    assert!(waits.err.contains("reject:REASON"), "{waits:?}");
    let done = bed.resume(&["--answer", "b1=reject:use make: log=is mine"]);
    assert_eq!((done.code, done.reason()), (Some(0), "done"), "{done:?}");
    assert_eq!(bed.read("log"), "");
    let why = "the user said no: use make: log=is mine";
    assert!(result(&bed, "b1").contains(why), "{}", result(&bed, "b1"));
    let sent = bed.last_request()["messages"].to_string();
    assert!(sent.contains(why), "{sent}");
    let denied = done.of("tool_denied");
    assert!(denied[0].to_string().contains(why), "{denied:?}");
    // The call was not made, so it took no time, however long it waited.
    let exported = bed.exported();
    let calls = exported.iter().filter(|line| line["call_id"] == "b1");
    let took: Vec<_> = calls.filter_map(|line| line.get("duration_ms")).collect();
    assert_eq!(took, [0]);
}

#[test]
fn arguments_may_be_changed() {
    let bed = Bed::new(script()).and(ASKS);
    assert_eq!(bed.run(&[]).code, Some(3));
    let answer = format!("b1={}", says("other"));
    let done = bed.resume(&["--answer", &answer]);
    assert_eq!((done.code, done.reason()), (Some(0), "done"), "{done:?}");
    assert_eq!(bed.read("log"), "other\n");
    // The model is informed.
    let text = result(&bed, "b1");
    assert!(
        text.contains("The user approved this call with changed arguments")
            && text.contains("other"),
        "{text}"
    );
    // Changed arguments that do not fit the schema are rejected.
    let bed = Bed::new(script()).and(ASKS);
    assert_eq!(bed.run(&[]).code, Some(3));
    let done = bed.resume(&["--answer", "b1={\"command\": []}"]);
    assert_eq!((done.code, done.reason()), (Some(0), "done"), "{done:?}");
    assert_eq!(bed.read("log"), "");
    assert!(!result(&bed, "b1").is_empty());
}

/// A rule that denies holds for changed arguments too.
#[test]
fn changed_arguments_are_checked_against_the_rules() {
    let bed =
        Bed::new(script()).and("policy:\n  - { deny: bash, command: touch }\n  - { ask: bash }\n");
    assert_eq!(bed.run(&[]).code, Some(3));
    let done = bed.resume(&["--answer", "b1={\"command\": \"touch evil\"}"]);
    assert_eq!(
        (done.code, done.of("tool_denied").len()),
        (Some(0), 1),
        "{done:?}"
    );
    assert!(!bed.work("evil").exists());
}

#[test]
fn never_is_never() {
    for lines in [ASKS, INTERRUPTS] {
        let bed = Bed::new(script()).and(lines);
        let ran = bed.run(&["--approve", "never"]);
        assert_eq!((ran.code, ran.reason()), (Some(0), "done"), "{ran:?}");
        assert_eq!(ran.of("tool_denied").len(), 1);
        assert_eq!(bed.read("log"), "");
        assert!(ran.of("approval_needed").is_empty());
    }
    // With `--approve auto`, calls that a rule asks about run.
    let bed = Bed::new(script()).and(ASKS);
    let ran = bed.run(&["--approve", "auto"]);
    assert_eq!(
        (ran.code, bed.read("log").as_str()),
        (Some(0), "one\n"),
        "{ran:?}"
    );
}

#[test]
fn some_are_answered_and_some_are_not() {
    let first = ModelReply::calling("b1", "bash", &says("one"))
        .call("b2", "bash", &says("two"))
        .call("b3", "bash", &says("three"));
    let bed = Bed::new(vec![first.into(), Turn::text("Done.")]).and(ASKS);
    let waits = bed.run(&[]);
    assert_eq!(
        (waits.code, waits.of("approval_needed").len()),
        (Some(3), 3),
        "{waits:?}"
    );
    let waits = bed.resume(&["--answer", "b2=approve"]);
    assert_eq!(
        (waits.code, waits.reason()),
        (Some(3), "approval"),
        "{waits:?}"
    );
    assert_eq!(bed.read("log"), "two\n");
    // A call can be answered only once.
    let wrong = bed.haft(&["resume", "--answer", "b2=approve"]);
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
    assert!(
        wrong.err.contains("no pending call b2") && wrong.err.contains("b1, b3"),
        "{wrong:?}"
    );
    // A new prompt is refused until all calls have a result.
    let early = bed.haft(&["resume", &bed.newest(), "Do something else"]);
    assert_eq!((early.code, early.out.as_str()), (Some(2), ""), "{early:?}");
    assert!(early.err.contains("b1, b3"), "{early:?}");
    let done = bed.resume(&[
        "--answer",
        "b1=reject",
        "--answer",
        "b3=approve",
        &bed.newest(),
        "And then this",
    ]);
    assert_eq!((done.code, done.reason()), (Some(0), "done"), "{done:?}");
    assert_eq!(bed.read("log"), "two\nthree\n");
    let order: Vec<_> = results(&bed.messages())
        .into_iter()
        .map(|(id, _)| id)
        .collect();
    assert_eq!(order, ["b1", "b2", "b3"]);
    assert!(
        bed.last_request()["messages"]
            .to_string()
            .contains("And then this")
    );
}

#[test]
fn invalid_answers() {
    let bed = Bed::new(script()).and(ASKS);
    assert_eq!(bed.run(&[]).code, Some(3));
    for answer in [
        "b1",
        "b1=",
        "b1=yes",
        "b1=[1]",
        "b1={\"command\":",
        "b1=\"approve\"",
        "=approve",
        "x=approve",
    ] {
        let wrong = bed.haft(&["resume", "--answer", answer]);
        assert_eq!(
            (wrong.code, wrong.out.as_str()),
            (Some(2), ""),
            "{answer}: {wrong:?}"
        );
    }
    let twice = bed.haft(&["resume", "--answer", "b1=reject", "--answer", "b1=approve"]);
    assert_eq!(twice.code, Some(2), "{twice:?}");
    assert!(twice.err.contains("b1 has two answers"), "{twice:?}");
    let evil = bed.haft(&["resume", "--answer", "b1=\u{1b}[2J"]);
    assert!(!evil.err.contains('\u{1b}'), "{evil:?}");
    assert_eq!((bed.server.count(), bed.read("log").as_str()), (1, ""));
    // The call still waits.
    assert_eq!(bed.resume(&["--answer", "b1=approve"]).code, Some(0));
    let over = bed.haft(&["resume", "--answer", "b1=approve"]);
    assert_eq!(over.code, Some(2), "{over:?}");
    assert!(
        over.err.contains("this session has no pending calls"),
        "{over:?}"
    );
    assert_eq!(bed.read("log"), "one\n");
}

#[test]
fn two_concurrent_answers_have_one_effect() {
    for _ in 0..8 {
        let bed = Bed::new(script()).and(ASKS);
        assert_eq!(bed.run(&[]).code, Some(3));
        let started: Vec<_> = (0..3)
            .map(|_| {
                bed.command(&["resume", "--answer", "b1=approve"])
                    .spawn()
                    .unwrap()
            })
            .collect();
        let ended: Vec<Ended> = started
            .into_iter()
            .map(|child| Ended::from(child.wait_with_output().unwrap()))
            .collect();
        let done = ended.iter().filter(|ended| ended.code == Some(0)).count();
        assert_eq!(done, 1, "{ended:?}");
        for other in ended.iter().filter(|ended| ended.code != Some(0)) {
            assert!(
                other.err.contains("is in use by process") || other.err.contains("no pending call"),
                "{other:?}"
            );
            assert!(matches!(other.code, Some(1 | 2)), "{other:?}");
        }
        assert_eq!(bed.read("log"), "one\n");
        assert_eq!(results(&bed.messages()).len(), 2);
    }
}

/// An approval applies to what the user saw, under the rules in force when the call runs.
#[test]
fn rules_of_today_hold_for_answers_of_yesterday() {
    let bed = Bed::new(script()).and(ASKS);
    assert_eq!(bed.run(&[]).code, Some(3));
    let bed = bed.and("policy:\n  - { deny: bash }\n");
    let done = ran(bed.haft(&["resume", "--json", "--answer", "b1=approve"]));
    assert_eq!(
        (done.code, done.of("tool_denied").len()),
        (Some(0), 1),
        "{done:?}"
    );
    assert_eq!(bed.read("log"), "");
}

/// A secret is not recorded, and the placeholder is never run in its place.
#[test]
fn a_call_that_is_not_known_as_it_was_shown_is_not_made() {
    let secret = "hunter2hunter2";
    let remove = json!({ "command": format!("rm -f {secret}; echo ran > proof") });
    let write = json!({ "path": "conf", "content": format!("pw={secret}") });
    let other = json!({ "path": "other", "content": "fine" });
    let turns = vec![
        ModelReply::calling("c1", "bash", &remove)
            .call("c2", "write", &write)
            .call("c3", "write", &other)
            .call("c4", "write", &write)
            .call("c5", "write", &write)
            .into(),
        Turn::text("Done."),
    ];
    let bed = Bed::new(turns).and("policy: [{ ask: bash }, { ask: write }]\n");
    for name in ["a", "c", "d", "e"] {
        std::fs::write(bed.work(name), "kept").unwrap();
    }
    let with_secret = |args: &[&str]| {
        let mut command = bed.command(args);
        command.env("DB_PASSWORD", secret);
        Ended::of(&mut command)
    };
    assert_eq!(with_secret(&["run", "Go"]).code, Some(3));
    let resumed = with_secret(&[
        "resume",
        "--answer",
        "c1=approve",
        "--answer",
        "c2=approve",
        "--answer",
        "c3=approve",
        // Around the placeholder, and replacing it.
        "--answer",
        r#"c4={"path":"around","content":"pw=[redacted]!"}"#,
        "--answer",
        r#"c5={"path":"instead","content":"none"}"#,
    ]);
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
    for name in ["a", "c", "d", "e"] {
        assert!(bed.work(name).exists(), "{name}");
    }
    assert!(!bed.work("proof").exists() && !bed.work("conf").exists());
    assert!(!bed.work("around").exists());
    assert_eq!(bed.read("other"), "fine");
    assert_eq!(bed.read("instead"), "none");
    let reported = results(&bed.messages());
    assert!(
        reported
            .iter()
            .any(|(_, text)| text.contains("contained a secret, which is not recorded"))
    );
}
