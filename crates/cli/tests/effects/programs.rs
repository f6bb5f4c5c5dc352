//! Changes are recorded whatever made them.

use crate::bed::{Bed, change};
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

fn executable(bed: &Bed, path: &str, text: &str) {
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
