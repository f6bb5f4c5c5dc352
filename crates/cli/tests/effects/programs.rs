//! Changes are recorded whatever made them.

use crate::bed::{Bed, change, within};
use crate::mcp::Client;
use serde_json::json;

/// A plugin of the first protocol: answers each call after it has changed a file.
const PLUGIN: &str = r#"#!/bin/bash
while read -r line; do
    id=$(printf %s "$line" | sed -n 's/.*"call_id":"\([^"]*\)".*/\1/p')
    case $line in
        *'"describe"'*|*'"init"'*)
            echo '{"type":"tools","tools":[{"name":"spoil","description":"Spoils a file.","parameters":{"type":"object","properties":{}}}]}' ;;
        *'"call"'*)
            rm -f victim.txt; echo spoiled > spoiled.txt
            printf '{"type":"result","call_id":"%s","content":[{"type":"text","text":"done"}],"is_error":false}\n' "$id" ;;
        *'"shutdown"'*) exit 0 ;;
    esac
done
"#;

pub(crate) fn executable(bed: &Bed, path: &str, text: &str) {
    use std::os::unix::fs::PermissionsExt;
    let path = bed.write(path, text);
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn a_program_that_is_a_tool_is_recorded() {
    let bed = Bed::new();
    bed.put("victim.txt", "alive\n");
    let page = "---\ndescription: Spoils.\n---\n";
    let folder = "home/.config/haft/tools";
    executable(
        &bed,
        &format!("{folder}/spoil"),
        "#!/bin/bash\nrm victim.txt; echo spoiled > spoiled.txt\n",
    );
    bed.write(&format!("{folder}/spoil.md"), page);
    let reply = bed.call("spoil", &json!({}));
    assert_eq!(reply["details"]["effects"]["deleted"], 1, "{reply}");
    let set = &bed.changes(&[])[0];
    assert_eq!(set["tool"], "spoil");
    assert_eq!(change(set, "spoiled.txt")["kind"], "created");
    bed.says(&["undo"]);
    assert_eq!(bed.read("victim.txt").unwrap(), "alive\n");
}

#[test]
fn a_plugin_is_recorded_with_the_call_it_serves() {
    let bed = Bed::new();
    bed.put("victim.txt", "alive\n");
    executable(&bed, "plugin.sh", PLUGIN);
    let plugin = bed.path("plugin.sh").to_str().unwrap().to_owned();
    let reply = bed.call_with(&["--plugin", &plugin], "spoil", &json!({}));
    assert_eq!(reply["is_error"], false, "{reply}");
    assert_eq!(reply["details"]["effects"]["deleted"], 1, "{reply}");
    let set = &bed.changes(&[])[0];
    assert_eq!(set["tool"], "spoil", "{set}");
    bed.says(&["undo"]);
    assert_eq!(bed.read("victim.txt").unwrap(), "alive\n");
    assert_eq!(bed.read("spoiled.txt"), None);
}

#[test]
fn every_toolset_is_recorded() {
    for (toolset, tool, arguments) in [
        (
            "workspace",
            "write",
            json!({ "path": "a.txt", "content": "a" }),
        ),
        ("workspace", "exec", json!({ "command": "echo a > a.txt" })),
        (
            "deepagents",
            "write_file",
            json!({ "file_path": "/a.txt", "content": "a" }),
        ),
        (
            "deepagents",
            "execute",
            json!({ "command": "echo a > a.txt" }),
        ),
        ("ah", "write", json!({ "path": "a.txt", "content": "a" })),
        ("ah", "bash", json!({ "command": "echo a > a.txt" })),
    ] {
        let bed = Bed::new();
        let reply = bed.call_with(&["--toolset", toolset], tool, &arguments);
        let created = &reply["details"]["effects"]["created"];
        assert_eq!(*created, 1, "{toolset} {tool}: {reply}");
        bed.says(&["undo"]);
        assert_eq!(bed.read("a.txt"), None, "{toolset} {tool}");
    }
}

/// A server that deletes one file and writes another, during a call and a moment after it.
const SERVER: &str = r#"#!/usr/bin/env python3
import json, os, sys, threading
def answer(id, result):
    print(json.dumps({"jsonrpc": "2.0", "id": id, "result": result}), flush=True)
def later():
    open("later.txt", "w").write("later")
for line in sys.stdin:
    message = json.loads(line)
    id, method = message.get("id"), message.get("method")
    if method == "initialize":
        answer(id, {"protocolVersion": message["params"]["protocolVersion"], "capabilities": {"tools": {}},
            "serverInfo": {"name": "s", "version": "1"}})
    elif method == "tools/list":
        answer(id, {"tools": [{"name": "do", "description": "Does.", "inputSchema": {"type": "object", "properties": {}}}]})
    elif method == "tools/call":
        os.remove("victim.txt")
        open("spoiled.txt", "w").write("spoiled")
        answer(id, {"content": [{"type": "text", "text": "done"}]})
        threading.Timer(0.2, later).start()
    elif id is not None:
        print(json.dumps({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "unknown"}}), flush=True)
"#;

#[test]
fn a_server_that_haft_started_is_recorded_during_and_after_its_call() {
    let bed = Bed::new();
    bed.put("victim.txt", "alive\n");
    executable(&bed, "server.py", SERVER);
    let server = bed.path("server.py");
    let server = server.display();
    bed.user(&format!(
        "tools: {{ mcp: {{ spoil: {{ command: \"{server}\" }} }} }}\n"
    ));
    let before = bed.tree();
    let mut client = Client::start(&bed, &[], &json!({}));
    let reply = client.calls("spoil_do", &json!({}));
    assert_eq!(reply["isError"], false, "{reply}");
    let later = || bed.work("later.txt").exists();
    within("the server writes after its call", later);
    // A later call of the same server closes what it did between the calls.
    bed.put("victim.txt", "alive\n");
    client.calls("spoil_do", &json!({}));
    client.end();
    let sets = bed.changes(&[]);
    let tools: Vec<_> = sets.iter().map(|set| set["tool"].clone()).collect();
    assert_eq!(
        tools[..3],
        ["spoil_do", "MCP server spoil", "spoil_do"],
        "{sets:?}"
    );
    assert!(sets.iter().all(|set| set["complete"] == true), "{sets:?}");
    assert_eq!(change(&sets[0], "victim.txt")["kind"], "deleted");
    assert_eq!(change(&sets[1], "later.txt")["kind"], "created");
    bed.says(&["undo", "--session"]);
    assert_eq!(bed.tree(), before);
}

#[test]
fn a_lua_tool_is_undone_with_everything_it_called() {
    let bed = Bed::new();
    bed.put("victim.txt", "alive\n");
    bed.write(
        "home/.config/haft/tools/spoil.lua",
        r#"return {
  name = "spoil", description = "Spoils.", input_schema = { type = "object", properties = {} },
  execute = function(input)
    haft.call("bash", { command = "rm victim.txt" })
    haft.call("write", { path = "spoiled.txt", content = "spoiled" })
    return "done"
  end,
}"#,
    );
    let before = bed.tree();
    let reply = bed.call("spoil", &json!({}));
    assert_eq!(reply["is_error"], false, "{reply}");
    let effects = &reply["details"]["effects"];
    assert_eq!(
        (&effects["deleted"], &effects["created"]),
        (&1.into(), &1.into()),
        "{reply}"
    );
    let sets = bed.changes(&[]);
    assert_eq!(sets.len(), 1, "{sets:?}");
    assert_eq!(sets[0]["tool"], "spoil");
    bed.says(&["undo"]);
    assert_eq!(bed.tree(), before);
}

#[test]
fn a_background_process_belongs_to_the_call_that_started_it() {
    let bed = Bed::new();
    bed.put("victim.txt", "alive\n");
    let before = bed.tree();
    let mut client = Client::start(&bed, &["--toolset", "workspace"], &json!({}));
    let line = "until [ -e go ]; do sleep 0.02; done; rm victim.txt; echo late > late.txt";
    let start = json!({ "action": "start", "command": line });
    let started = client.calls("process", &start);
    assert_eq!(started["isError"], false, "{started}");
    client.calls("write", &json!({ "path": "go", "content": "" }));
    within("the process has ended", || {
        bed.changes(&[])
            .iter()
            .any(|set| set["tool"] == "process" && set["state"] == "done")
    });
    let sets = bed.changes(&[]);
    let process = sets.iter().find(|set| set["tool"] == "process").unwrap();
    assert_eq!(change(process, "victim.txt")["kind"], "deleted");
    assert_eq!(change(process, "late.txt")["kind"], "created");
    // Nothing that was made meanwhile is touched.
    bed.says(&["undo", process["call_id"].as_str().unwrap()]);
    assert_eq!(bed.read("victim.txt").unwrap(), "alive\n");
    assert_eq!(bed.read("go").unwrap(), "");
    bed.says(&["undo"]);
    assert_eq!(bed.tree(), before);
    client.end();
}

#[test]
fn a_running_process_is_shown_and_keeps_its_call_from_being_undone() {
    let bed = Bed::new();
    bed.put("victim.txt", "alive\n");
    let mut client = Client::start(&bed, &["--toolset", "workspace"], &json!({}));
    let line = "rm victim.txt; sleep 60";
    client.calls("process", &json!({ "action": "start", "command": line }));
    within("the process deletes the file", || {
        !bed.work("victim.txt").exists()
    });
    let sets = bed.changes(&[]);
    assert_eq!(sets[0]["state"], "running", "{sets:?}");
    assert_eq!(change(&sets[0], "victim.txt")["kind"], "deleted");
    let id = sets[0]["call_id"].as_str().unwrap();
    for words in [&["undo"][..], &["undo", id], &["undo", "--session"]] {
        let refused = bed.haft(words);
        assert_eq!(refused.code, Some(1), "{refused:?}");
        assert!(refused.err.contains("still running"), "{refused:?}");
    }
    // It ends with the session, and what it did can then be undone.
    client.end();
    bed.says(&["undo"]);
    assert_eq!(bed.read("victim.txt").unwrap(), "alive\n");
}

#[test]
fn files_that_are_not_on_disk_are_named_as_not_recorded() {
    let bed = Bed::new();
    bed.user(
        "tools: { toolset: deepagents }\nbackend: { routes: { /memories: store, /: filesystem } }\n",
    );
    let stored = json!({ "file_path": "/memories/a.md", "content": "a" });
    let reply = bed.call("write_file", &stored);
    let effects = &reply["details"]["effects"];
    assert_eq!(effects["complete"], false, "{reply}");
    let why = effects["why"].as_str().unwrap();
    assert!(why.contains("/memories/a.md"), "{reply}");
    let refused = bed.haft(&["undo"]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.err.contains("/memories/a.md"), "{refused:?}");
    // The route on disk is recorded.
    let on_disk = json!({ "file_path": "/b.md", "content": "b" });
    let reply = bed.call("write_file", &on_disk);
    assert_eq!(reply["details"]["effects"]["complete"], true, "{reply}");
    bed.says(&["undo"]);
    assert_eq!(bed.read("b.md"), None);
}
