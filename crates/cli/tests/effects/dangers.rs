//! Dangerous commands that no rule is about: they run under review, and the user is asked only
//! if something is lost that the session did not make itself.

use crate::bed::{Bed, lines, text};
use crate::mcp::Client;
use haft_testing::model::{ModelReply, Turn};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpListener;

fn run(id: &str, line: &str) -> ModelReply {
    ModelReply::calling(id, "bash", &json!({ "command": line }))
}

#[test]
fn a_headless_run_waits_for_a_decision_about_lost_files() {
    for (answer, is_gone) in [("keep", true), ("revert", false)] {
        let script: Vec<Turn> = vec![
            run("b1", "rm -rf old").into(),
            Turn::text("Done."),
            Turn::text("Then not."),
        ];
        let bed = Bed::with_model(script, "");
        bed.put("old/deep/a.txt", "mine\n");
        let waits = bed.haft(&["run", "Go", "--json"]);
        assert_eq!(waits.code, Some(3), "{waits:?}");
        let events = lines(&waits.out);
        let asked = events.iter().find(|one| one["type"] == "review_needed");
        assert_eq!(asked.unwrap()["call_id"], "b1", "{events:?}");
        let done = bed.haft(&["resume", "--answer", &format!("b1={answer}")]);
        assert_eq!(done.code, Some(0), "{done:?}");
        assert_eq!(bed.read("old/deep/a.txt").is_none(), is_gone, "{answer}");
    }
}

#[test]
fn what_the_session_made_itself_is_deleted_without_a_question() {
    let script: Vec<Turn> = vec![
        run("b1", "mkdir -p out/deep && echo a > out/deep/a.txt").into(),
        run("b2", "rm -rf out").into(),
        run("b3", "mkdir tmp && touch tmp/x && rm -r tmp").into(),
        run("b4", "rm -rf missing").into(),
        Turn::text("Done."),
    ];
    let bed = Bed::with_model(script, "");
    let done = bed.haft(&["run", "Go", "--json"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(!done.out.contains("review_needed"), "{done:?}");
    assert_eq!(bed.read("out/deep/a.txt"), None);
}

#[test]
fn uncommitted_changes_are_not_discarded_without_a_question() {
    let git = "git -c user.name=t -c user.email=t@t";
    let prepared = |bed: &Bed| {
        bed.put("a.txt", "committed\n");
        bed.bash(&format!(
            "git init -q . && git add a.txt && {git} commit -qm one"
        ));
    };
    let script =
        || -> Vec<Turn> { vec![run("b1", "git reset --hard").into(), Turn::text("Done.")] };
    // Nothing is lost.
    let bed = Bed::with_model(script(), "");
    prepared(&bed);
    let done = bed.haft(&["run", "Go"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    let bed = Bed::with_model(script(), "");
    prepared(&bed);
    bed.put("a.txt", "not committed\n");
    let waits = bed.haft(&["run", "Go"]);
    assert_eq!(waits.code, Some(3), "{waits:?}");
    let done = bed.haft(&["resume", "--answer", "b1=revert"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert_eq!(bed.read("a.txt").unwrap(), "not committed\n");
}

#[test]
fn without_anybody_to_ask_it_runs_and_can_be_undone() {
    let bed = Bed::new();
    bed.put("old/a.txt", "mine\n");
    let reply = bed.bash("rm -rf old && echo gone");
    assert!(text(&reply).starts_with("gone"), "{reply}");
    assert_eq!(bed.read("old/a.txt"), None);
    bed.says(&["undo"]);
    assert_eq!(bed.read("old/a.txt").unwrap(), "mine\n");
}

#[test]
fn where_nothing_is_recorded_it_needs_approval_and_the_refusal_says_how_to_allow_it() {
    for settings in ["effects: { record: false }\n", "sandbox: off\n"] {
        let bed = Bed::new();
        bed.user(settings);
        bed.put("old/a.txt", "mine\n");
        let line = json!({ "command": "rm -rf old" });
        let reply = bed.call("bash", &line);
        let said = text(&reply);
        assert_eq!(reply["is_error"], true, "{reply}");
        assert!(said.contains("deletes recursively"), "{said}");
        assert!(said.contains("{ allow: bash, command: rm }"), "{said}");
        assert_eq!(bed.read("old/a.txt").unwrap(), "mine\n", "{settings}");
        let reply = bed.call_with(&["--approve", "auto"], "bash", &line);
        assert_eq!(reply["is_error"], false, "{reply}");
        assert_eq!(bed.read("old/a.txt"), None, "{settings}");
    }
}

#[test]
fn what_could_leave_the_machine_needs_approval_and_a_rule_allows_it() {
    let bed = Bed::new();
    let made = bed.bash("git init -q .");
    assert_eq!(made["is_error"], false, "{made}");
    bed.user("network: on\n");
    let line = json!({ "command": "git push" });
    let reply = bed.call("bash", &line);
    let said = text(&reply).to_owned();
    assert!(said.starts_with("not approved"), "{said}");
    assert!(
        said.contains("sends something to another machine"),
        "{said}"
    );
    assert!(
        said.contains("{ allow: bash, command: git push }"),
        "{said}"
    );
    bed.user("network: on\npolicy: [{ allow: bash, command: git push }]\n");
    let reply = bed.call("bash", &line);
    assert!(
        text(&reply).contains("No configured push destination"),
        "{reply}"
    );
    // Without network nothing can leave.
    bed.user("");
    let reply = bed.call("bash", &line);
    assert!(
        text(&reply).contains("No configured push destination"),
        "{reply}"
    );
}

#[test]
fn a_client_is_asked_by_elicitation_only_if_something_is_lost() {
    let bed = Bed::new();
    bed.put("old/a.txt", "mine\n");
    let mut client = Client::start(&bed, &[], &json!({ "elicitation": {} }));
    let made = client.calls("bash", &json!({ "command": "mkdir own && touch own/x" }));
    assert_eq!(made["isError"], false, "{made}");
    // It would fail on an unexpected question.
    let made = client.calls("bash", &json!({ "command": "rm -rf own" }));
    assert_eq!(made["isError"], false, "{made}");
    let answer = json!({ "action": "accept", "content": { "decision": "revert" } });
    let (asked, made) = client.asked("bash", &json!({ "command": "rm -rf old" }), &answer);
    let question = asked["params"]["message"].as_str().unwrap().to_owned();
    assert!(question.contains("deleted"), "{question}");
    assert!(made.to_string().contains("reverted, because"), "{made}");
    assert_eq!(bed.read("old/a.txt").unwrap(), "mine\n");
}

#[test]
fn a_second_look_leaves_the_network_as_it_is_and_a_rule_closes_it() {
    let listener = TcpListener::bind(("127.0.0.2", 0)).unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nreply\n");
        }
    });
    let line =
        json!({ "command": format!("rm -rf gone; curl -sS -m 10 http://{address}/ 2>&1; true") });
    for (rules, is_reached) in [("", true), ("policy: [{ review: bash }]\n", false)] {
        let bed = Bed::new();
        bed.user(&format!("network: [127.0.0.2]\n{rules}"));
        let mut client = Client::start(&bed, &[], &json!({ "elicitation": {} }));
        let reply = client.calls("bash", &line).to_string();
        assert_eq!(reply.contains("reply\\n"), is_reached, "{rules}: {reply}");
    }
}

#[test]
fn what_a_revert_brought_back_and_what_the_user_wrote_count_as_the_users() {
    let bed = Bed::new();
    bed.put("old/a.txt", "mine\n");
    let mut client = Client::start(&bed, &[], &json!({ "elicitation": {} }));
    let revert = json!({ "action": "accept", "content": { "decision": "revert" } });
    let line = |line: &str| json!({ "command": line });
    for _ in 0..2 {
        let (_, made) = client.asked("bash", &line("rm -rf old"), &revert);
        assert!(made.to_string().contains("reverted, because"), "{made}");
        assert_eq!(bed.read("old/a.txt").unwrap(), "mine\n");
    }
    let made = client.calls("bash", &line("mkdir gen; echo a > gen/f"));
    assert_eq!(made["isError"], false, "{made}");
    bed.put("gen/f", "the user's own words\n");
    client.asked("bash", &line("rm -rf gen"), &revert);
    assert_eq!(bed.read("gen/f").unwrap(), "the user's own words\n");
}

#[test]
fn a_repository_is_not_deleted_beside_another_command_of_git() {
    let bed = Bed::new();
    bed.put("a.txt", "committed\n");
    let git = "git -c user.name=t -c user.email=t@t";
    bed.bash(&format!(
        "git init -q . && git add a.txt && {git} commit -qm one"
    ));
    let mut client = Client::start(&bed, &[], &json!({ "elicitation": {} }));
    let revert = json!({ "action": "accept", "content": { "decision": "revert" } });
    let line = json!({ "command": "git checkout -f; rm -rf .git" });
    client.asked("bash", &line, &revert);
    assert!(bed.read(".git/HEAD").is_some());
}

#[test]
fn why_explains_the_default() {
    let bed = Bed::new();
    let why = |line: &str| -> Value {
        let line = format!("command={line}");
        serde_json::from_str(&bed.says(&["why", "bash", &line, "--json"])).unwrap()
    };
    let why_rm = why("rm -rf x");
    assert_eq!(why_rm["decision"], "review", "{why_rm}");
    assert!(
        why_rm.to_string().contains("deletes recursively"),
        "{why_rm}"
    );
    assert_eq!(why("rm x")["decision"], "allow");
}
