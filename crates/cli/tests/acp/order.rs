//! Requests that change a session while others are under way, and sessions without a prompt.

use crate::bed::{Bed, says};
use haft_testing::acp::Client;
use haft_testing::model::Turn;
use serde_json::{Value, json};

fn replies() -> Bed {
    Bed::new(|_: &Value, _: usize| says("Hello"))
}

#[track_caller]
fn succeeds(client: &mut Client, id: u64) -> Value {
    let answer = client.answer(id);
    assert!(answer.get("error").is_none(), "{answer}");
    answer["result"].clone()
}

#[test]
fn requests_about_one_session_wait_for_each_other() {
    let bed = replies();
    let (mut client, session) = bed.seated();
    client.prompt(&session, "Hi");
    let own = json!({ "sessionId": session });
    let ids = [
        client.request("session/close", own.clone()),
        client.request("session/load", bed.place(&session)),
        client.request("session/load", bed.place(&session)),
        client.request("session/load", bed.place(&session)),
        client.begin_prompt(&session, "Go on"),
    ];
    for id in ids {
        succeeds(&mut client, id);
    }
    let ids = [
        client.request("session/load", bed.place(&session)),
        client.request("session/delete", own),
    ];
    for id in ids {
        succeeds(&mut client, id);
    }
    assert_eq!(client.ok("session/list", json!({}))["sessions"], json!([]));
}

#[test]
fn a_session_can_be_loaded_right_after_a_cancellation() {
    let bed = Bed::new(vec![Turn::Silent, says("Back")]);
    let (mut client, session) = bed.seated();
    let prompt = client.begin_prompt(&session, "Wait");
    while bed.server.count() == 0 {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    client.notify("session/cancel", json!({ "sessionId": session }));
    let load = client.request("session/load", bed.place(&session));
    assert_eq!(client.stop_reason(prompt), "cancelled");
    succeeds(&mut client, load);
    assert_eq!(client.prompt(&session, "Go on"), "end_turn");
}

#[test]
fn a_session_without_a_prompt_can_be_opened_again() {
    let bed = replies();
    let (mut client, session) = bed.seated();
    client.prompt(&session, "/changes");
    client.seen.clear();
    client.ok("session/load", bed.place(&session));
    assert!(client.updates("user_message_chunk").is_empty());
    client.ok("session/resume", bed.place(&session));
    client.ok("session/close", json!({ "sessionId": session }));
    client.ok("session/load", bed.place(&session));
    let copy = client.ok("session/fork", bed.place(&session));
    let copy = copy["sessionId"].as_str().unwrap().to_owned();
    assert_ne!(copy, session);
    assert_eq!(client.prompt(&copy, "Hi"), "end_turn");
    assert_eq!(client.prompt(&session, "Hi"), "end_turn");
    let empty = client.session(&bed.folder());
    client.ok("session/delete", json!({ "sessionId": empty }));
    let (code, _) = client.refused("session/load", bed.place(&empty));
    assert_eq!(code, -32002);
}

#[test]
fn a_load_that_fails_leaves_the_open_session_alone() {
    let bed = replies();
    let (mut client, session) = bed.seated();
    client.prompt(&session, "Hi");
    let servers = json!([{ "name": "x", "type": "http", "url": "not a url", "headers": [] }]);
    let place = json!({ "sessionId": session, "cwd": bed.folder(), "mcpServers": servers });
    client.refused("session/load", place);
    assert_eq!(client.prompt(&session, "Go on"), "end_turn");
    // Nor does one of a session that does not exist.
    client.refused("session/load", bed.place("x"));
    client.refused("session/delete", json!({ "sessionId": "nobody" }));
    assert_eq!(client.prompt(&session, "Go on"), "end_turn");
}

#[test]
fn settings_stay_when_a_session_is_loaded_again() {
    let bed = replies();
    let (mut client, session) = bed.seated();
    client.prompt(&session, "Hi");
    client.ok(
        "session/set_mode",
        json!({ "sessionId": session, "modeId": "auto" }),
    );
    let effort = json!({ "sessionId": session, "configId": "effort", "value": "high" });
    client.ok("session/set_config_option", effort);
    let opened = client.ok("session/load", bed.place(&session));
    assert_eq!(opened["modes"]["currentModeId"], "auto");
    let options = opened["configOptions"].as_array().unwrap();
    let effort = options.iter().find(|one| one["id"] == "effort").unwrap();
    assert_eq!(effort["currentValue"], "high");
}

#[test]
fn a_session_that_is_in_use_is_a_conflict() {
    let bed = replies();
    let (mut first, session) = bed.seated();
    first.prompt(&session, "Hi");
    let mut second = bed.client();
    let (code, message) = second.refused("session/load", bed.place(&session));
    assert_eq!(code, -32600, "{message}");
    assert!(!message.contains("process"), "{message}");
}

#[test]
fn sessions_of_a_folder_are_found_however_its_path_is_written() {
    let bed = replies();
    let mut client = bed.client();
    let folder = bed.folder();
    let link = folder.with_file_name("link");
    std::os::unix::fs::symlink(&folder, &link).unwrap();
    let work = folder.display();
    let ways = [
        format!("{work}"),
        format!("{work}/"),
        format!("{work}/../work"),
        link.display().to_string(),
    ];
    for cwd in &ways {
        let opened = client.ok("session/new", json!({ "cwd": cwd, "mcpServers": [] }));
        let session = opened["sessionId"].as_str().unwrap().to_owned();
        client.prompt(&session, "Hi");
    }
    for cwd in &ways {
        let listed = client.ok("session/list", json!({ "cwd": cwd }));
        assert_eq!(listed["sessions"].as_array().unwrap().len(), 4, "{cwd}");
    }
    let other = json!({ "cwd": bed.home("") });
    assert_eq!(client.ok("session/list", other)["sessions"], json!([]));
    assert_eq!(
        client.refused("session/list", json!({ "cwd": "work" })).0,
        -32602
    );
}

#[test]
fn more_folders_are_checked_like_the_work_folder() {
    let bed = replies();
    let mut client = bed.client();
    let mut opened = |folder: &std::path::Path| {
        let place =
            json!({ "cwd": bed.folder(), "mcpServers": [], "additionalDirectories": [folder] });
        client.call("session/new", place)
    };
    for folder in ["/".as_ref(), "/etc".as_ref(), bed.home("").as_path()] {
        let answer = opened(folder);
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
    }
    let other = bed.write("other/a.txt", "");
    let answer = opened(other.parent().unwrap());
    assert!(answer.get("error").is_none(), "{answer}");
}
