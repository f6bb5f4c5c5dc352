//! Access beyond the sandbox, which a command requests and the user grants: once, for the
//! session, or always.

use crate::bed::{Bed, lines, text};
use crate::mcp::Client;
use haft_testing::model::{ModelReply, Turn};
use serde_json::{Value, json};

/// A folder outside the work folder.
fn outside(bed: &Bed) -> String {
    bed.write("home/notes/here.txt", "mine\n");
    bed.path("home/notes").display().to_string()
}

fn elicits() -> Value {
    json!({ "elicitation": {} })
}

fn accept(scope: Option<&str>) -> Value {
    let mut content = json!({ "decision": "approve" });
    if let Some(scope) = scope {
        content["scope"] = scope.into();
    }
    json!({ "action": "accept", "content": content })
}

fn touch(folder: &str, access: &[String]) -> Value {
    json!({ "command": format!("echo new > {folder}/new.txt && echo written"), "request_access": access })
}

#[test]
fn the_parameter_exists_only_where_a_user_can_be_asked() {
    let bed = Bed::new();
    let offers = |tools: &Value| {
        let tools = tools["tools"].as_array().unwrap().clone();
        let bash = tools.iter().find(|tool| tool["name"] == "bash").unwrap();
        bash["inputSchema"]["properties"]
            .get("request_access")
            .is_some()
    };
    let mut asks = Client::start(&bed, &[], &elicits());
    assert!(offers(&asks.request("tools/list")));
    let mut cannot = Client::start(&bed, &[], &json!({}));
    assert!(!offers(&cannot.request("tools/list")));
    let mut auto = Client::start(&bed, &["--approve", "auto"], &elicits());
    assert!(!offers(&auto.request("tools/list")));
    // It is ignored there, and widens nothing.
    let folder = outside(&bed);
    let request = touch(&folder, &["unsandboxed".to_owned()]);
    for client in [&mut cannot, &mut auto] {
        let refused = client.calls("bash", &request);
        assert!(!refused.to_string().contains("written\\n"), "{refused}");
    }
    assert!(!bed.path("home/notes/new.txt").exists());
}

#[test]
fn a_folder_is_opened_once_for_the_session_or_always() {
    let bed = Bed::new();
    let folder = outside(&bed);
    let mut client = Client::start(&bed, &[], &elicits());
    let access = [format!("write {folder}")];
    // A refusal by the sandbox says how to ask.
    let refused = client.calls("bash", &touch(&folder, &[]));
    assert!(refused.to_string().contains("request_access"), "{refused}");
    // Once.
    let (asked, done) = client.asked("bash", &touch(&folder, &access), &accept(None));
    let message = asked["params"]["message"].as_str().unwrap();
    assert!(message.contains(&folder), "{message}");
    assert!(done.to_string().contains("written"), "{done}");
    // Not from then on.
    let refused = client.calls("bash", &touch(&folder, &[]));
    assert!(!refused.to_string().contains("written\\n"), "{refused}");
    // For the session: without requesting it again.
    let (_, done) = client.asked("bash", &touch(&folder, &access), &accept(Some("session")));
    assert!(done.to_string().contains("written"), "{done}");
    let done = client.calls("bash", &touch(&folder, &[]));
    assert!(done.to_string().contains("written"), "{done}");
    client.end();
    let mut client = Client::start(&bed, &[], &elicits());
    let (asked, done) = client.asked("bash", &touch(&folder, &access), &accept(Some("always")));
    let scope = &asked["params"]["requestedSchema"]["properties"]["scope"];
    assert_eq!(
        scope["enum"],
        json!(["once", "session", "always"]),
        "{asked}"
    );
    let rule = format!("{{ allow: outside_write, path: {folder} }}");
    assert!(
        scope["description"].as_str().unwrap().contains(&rule),
        "{scope}"
    );
    assert!(done.to_string().contains("written"), "{done}");
    client.end();
    let file = std::fs::read_to_string(bed.path("home/.config/haft/haft.yaml")).unwrap();
    assert!(file.contains(&format!("- {rule}")), "{file}");
    let reply = bed.call("bash", &touch(&folder, &[]));
    assert!(text(&reply).contains("written"), "{reply}");
    // The rest stays closed, and so does what is protected.
    let reply = bed.call("bash", &json!({ "command": "touch ~/other.txt" }));
    assert!(text(&reply).contains("Read-only file system"), "{reply}");
}

#[test]
fn a_refusal_and_bad_requests_open_nothing() {
    let bed = Bed::new();
    let folder = outside(&bed);
    let mut client = Client::start(&bed, &[], &elicits());
    let no =
        json!({ "action": "accept", "content": { "decision": "reject", "reason": "not there" } });
    let access = [format!("write {folder}")];
    let (_, refused) = client.asked("bash", &touch(&folder, &access), &no);
    assert!(refused.to_string().contains("not there"), "{refused}");
    assert!(!bed.path("home/notes/new.txt").exists());
    for wrong in [
        "write notes",
        "write /",
        "write ~/",
        "write /no/such",
        "root",
        "network",
        "",
    ] {
        let reply = client.calls("bash", &touch(&folder, &[wrong.to_owned()]));
        assert!(
            reply.to_string().contains("request_access"),
            "{wrong}: {reply}"
        );
        assert_eq!(reply["isError"], true, "{wrong}: {reply}");
    }
    assert!(!bed.path("home/notes/new.txt").exists());
}

#[test]
fn a_command_runs_outside_the_sandbox_only_after_a_question_about_it() {
    let bed = Bed::new();
    bed.user("policy: [{ allow: \"*\" }]\n");
    let folder = outside(&bed);
    let mut client = Client::start(&bed, &[], &elicits());
    let request = touch(&folder, &["unsandboxed".to_owned()]);
    // A longer yes is not offered, and would count for this call only.
    let (asked, done) = client.asked("bash", &request, &accept(Some("session")));
    let message = asked["params"]["message"].as_str().unwrap();
    assert!(message.contains("outside the sandbox"), "{message}");
    let fields = &asked["params"]["requestedSchema"]["properties"];
    assert_eq!(fields.get("scope"), None, "{fields}");
    assert!(done.to_string().contains("written"), "{done}");
    for request in [
        touch(&folder, &[]),
        json!({ "command": format!("touch {folder}/other") }),
    ] {
        let refused = client.calls("bash", &request);
        assert!(refused.to_string().contains("Read-only"), "{refused}");
    }
    let (asked, _) = client.asked(
        "bash",
        &json!({ "command": "x=1", "request_access": ["unsandboxed"] }),
        &accept(Some("always")),
    );
    let fields = &asked["params"]["requestedSchema"]["properties"];
    assert_eq!(fields.get("scope"), None, "{fields}");
    // A command that cannot be shown in full is refused without a question.
    let long = format!("echo {}; touch {folder}/hidden", "a".repeat(5000));
    let refused = client.calls(
        "bash",
        &json!({ "command": long, "request_access": ["unsandboxed"] }),
    );
    assert!(
        refused.to_string().contains("too long to be shown"),
        "{refused}"
    );
    client.end();
    let file = std::fs::read_to_string(bed.path("home/.config/haft/haft.yaml")).unwrap();
    assert!(!file.contains("unsandboxed"), "{file}");
    let sets = bed.changes(&[]);
    let incomplete = sets.iter().any(|set| set["complete"] == false);
    assert!(
        incomplete,
        "nothing is recorded outside the sandbox: {sets:?}"
    );
    bed.user("policy: [{ allow: unsandboxed, command: ls }]\n");
    let refused = bed.haft(&["tools"]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.err.contains("one by one"), "{refused:?}");
}

#[test]
fn a_denied_exception_stays_denied_and_a_project_cannot_allow_one() {
    let bed = Bed::new();
    let folder = outside(&bed);
    bed.user("policy: [{ deny: unsandboxed }, { deny: outside_write, path: \"/**\" }]\n");
    let mut client = Client::start(&bed, &[], &elicits());
    for access in ["unsandboxed".to_owned(), format!("write {folder}")] {
        let denied = client.calls("bash", &touch(&folder, &[access]));
        assert!(denied.to_string().contains("denies this call"), "{denied}");
    }
    client.end();
    bed.user("");
    bed.put(
        "haft.yaml",
        format!("policy: [{{ allow: outside_write, path: {folder} }}]\n"),
    );
    let reply = bed.call_with(&["--trust"], "bash", &touch(&folder, &[]));
    assert!(!bed.path("home/notes/new.txt").exists(), "{reply}");
}

#[test]
fn a_headless_run_waits_for_the_answer() {
    for (answer, is_written, is_saved) in [
        ("approve", true, false),
        ("approve:always", true, true),
        ("reject", false, false),
    ] {
        let first = |folder: &str| {
            ModelReply::calling("b1", "bash", &touch(folder, &[format!("write {folder}")]))
        };
        let base = Bed::new();
        let folder = outside(&base);
        let script: Vec<Turn> = vec![first(&folder).into(), Turn::text("Done.")];
        let bed = base.and_model(script, "");
        let waits = bed.haft(&["run", "Go", "--json"]);
        assert_eq!(waits.code, Some(3), "{waits:?}");
        let events = lines(&waits.out);
        assert!(
            events.iter().any(|one| one["type"] == "approval_needed"),
            "{events:?}"
        );
        let done = bed.haft(&["resume", "--answer", &format!("b1={answer}")]);
        assert_eq!(done.code, Some(0), "{done:?}");
        assert_eq!(
            bed.path("home/notes/new.txt").exists(),
            is_written,
            "{answer}"
        );
        let file = std::fs::read_to_string(bed.path("home/.config/haft/haft.yaml")).unwrap();
        assert_eq!(file.contains("outside_write"), is_saved, "{answer}: {file}");
    }
}

#[test]
fn a_host_is_opened_for_one_call() {
    let bed = Bed::new();
    let mut client = Client::start(&bed, &[], &elicits());
    let fetch = |access: &[&str]| {
        json!({
            "command": "curl -sS -m 5 http://host.invalid/ 2>&1; true",
            "request_access": access,
        })
    };
    let refused = client.calls("bash", &fetch(&[]));
    let refusal = "the sandbox refused connections to host.invalid:80";
    assert!(refused.to_string().contains(refusal), "{refused}");
    let (asked, done) = client.asked("bash", &fetch(&["network host.invalid"]), &accept(None));
    let message = asked["params"]["message"].as_str().unwrap();
    assert!(message.contains("host.invalid"), "{message}");
    // The name does not resolve.
    assert!(!done.to_string().contains(refusal), "{done}");
    let refused = client.calls("bash", &fetch(&[]));
    assert!(refused.to_string().contains(refusal), "{refused}");
    let reply = client.calls("bash", &fetch(&["network localhost:80"]));
    assert!(
        reply.to_string().contains("--network localhost:80"),
        "{reply}"
    );
}

#[test]
fn a_granted_name_must_have_a_public_address() {
    let host = "metadata.google.internal";
    let fetch = |access: &[String]| {
        json!({
            "command": format!("curl -sS -m 5 http://{host}/ 2>&1; true"),
            "request_access": access,
        })
    };
    for scope in [None, Some("session")] {
        let bed = Bed::new();
        let mut client = Client::start(&bed, &[], &elicits());
        let request = fetch(&[format!("network {host}")]);
        let (_, done) = client.asked("bash", &request, &accept(scope));
        let noted = format!("[the sandbox refused connections to {host}:80");
        assert!(done.to_string().contains(&noted), "{done}");
        assert!(done.to_string().contains("is a metadata service"), "{done}");
        if scope.is_some() {
            // The rule of the session opens the name, but no private address of it.
            let later = client.calls("bash", &fetch(&[]));
            assert!(
                later.to_string().contains("is a metadata service"),
                "{later}"
            );
        }
    }
}

#[test]
fn a_call_asks_about_a_limited_number_of_hosts() {
    let bed = Bed::new();
    bed.user("policy:\n  - { ask: network, host: \"*.invalid\" }\n");
    let mut client = Client::start(&bed, &[], &elicits());
    let line = "for n in $(seq 33) 1; do curl -sS -m 20 http://h$n.invalid/; done 2>&1; true";
    let reject = json!({ "action": "accept", "content": { "decision": "reject" } });
    let (asked, done) = client.answering("bash", &json!({ "command": line }), &reject);
    assert_eq!(asked.len(), 32);
    assert_eq!(done["isError"], false, "{done}");
}
