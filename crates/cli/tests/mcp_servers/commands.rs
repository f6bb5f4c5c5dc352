//! `haft mcp list` and `haft mcp test`.

use crate::bed::Bed;
use crate::servers::ECHO;
use serde_json::{Value, json};

#[test]
fn a_list_says_what_is_known_and_starts_nothing() {
    let bed = Bed::serving(&[("echo", ECHO), ("other", ECHO)]);
    let mut config: Value = serde_json::from_str(
        &std::fs::read_to_string(bed.path("home/.config/haft/haft.yaml")).unwrap(),
    )
    .unwrap();
    config["tools"]["mcp"]["gone"] =
        json!({ "command": "nonesuch", "args": ["--api-key", "sk-canary", "--token=sk-canary"] });
    config["tools"]["mcp"]["far"] = json!({ "url": "https://example.com/mcp?key=sk-canary" });
    bed.configure(&config);
    let states = |bed: &Bed| -> Vec<(String, Value)> {
        let ran = bed.done(&["mcp", "list", "--json"]);
        let all: Vec<Value> = serde_json::from_str(&ran.out).unwrap();
        all.iter()
            .map(|one| {
                (
                    one["state"].as_str().unwrap().to_owned(),
                    one["tools"].clone(),
                )
            })
            .collect()
    };
    let named = |state: &str, tools: Value| (state.to_owned(), tools);
    assert_eq!(
        states(&bed),
        [
            named("new", json!(null)),
            named("new", json!(null)),
            named("missing", json!(null)),
            named("new", json!(null))
        ]
    );
    assert_eq!(bed.starts("echo") + bed.starts("other"), 0);
    bed.done(&["mcp", "test", "echo"]);
    assert_eq!(states(&bed)[0], named("known", json!(1)));
    let list = bed.done(&["mcp", "list"]).out;
    assert!(!list.contains("sk-canary"), "{list}");
    assert!(list.contains("program not found: nonesuch"), "{list}");
    let doctor = bed.done(&["doctor"]).out;
    assert!(
        doctor.contains("echo: known") && doctor.contains("gone: missing"),
        "{doctor}"
    );
    assert_eq!(bed.starts("echo"), 1);
}

#[test]
fn a_test_reaches_the_server_and_judges_it() {
    let bed = Bed::serving(&[
        ("echo", ECHO),
        ("broken", "sys.exit(3)"),
        ("empty", "serve([], echo)"),
    ]);
    let ran = bed.done(&["mcp", "test", "echo"]);
    for expected in [
        "echo 1.2.3, protocol 2025-11-25",
        "echo_echo  Tests.",
        "good: 1 tool",
    ] {
        assert!(ran.out.contains(expected), "{expected}: {}", ran.out);
    }
    let report: Value =
        serde_json::from_str(&bed.done(&["mcp", "test", "echo", "--json"]).out).unwrap();
    assert_eq!(
        (&report["good"], &report["tools"][0]["own_name"]),
        (&json!(true), &json!("echo"))
    );
    let broken = bed.haft(&["mcp", "test", "broken"]);
    assert_eq!(broken.code, Some(1));
    assert!(
        broken.err.contains("exited at its start (code 3)"),
        "{broken:?}"
    );
    assert_eq!(bed.haft(&["mcp", "test", "empty"]).code, Some(1));
    let unknown = bed.haft(&["mcp", "test", "ecko"]);
    assert_eq!(unknown.code, Some(2));
    assert!(
        unknown.err.contains("did you mean \"echo\"?"),
        "{unknown:?}"
    );
    let json = bed.haft(&["mcp", "test", "broken", "--json"]);
    let json: Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!(json["good"], false);
    bed.nobody_left();
}
