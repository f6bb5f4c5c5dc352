//! Paths in every hostile spelling: nothing outside is read, written, listed or deleted, in
//! the toolsets that never leave their folder.

use crate::session::{Answer, Bed};
use serde_json::{Value, json};

const CANARY: &str = "canary-4711";

/// Spellings of a file and a folder outside, and of invalid paths.
fn spellings(bed: &Bed) -> Vec<String> {
    let outside = bed.outside("secret.txt").to_string_lossy().into_owned();
    let folder = bed.outside("").to_string_lossy().into_owned();
    let work = bed.work("").to_string_lossy().into_owned();
    let mut all = vec![
        outside.clone(),
        folder.clone(),
        format!("//{outside}"),
        format!("{work}/../outside/secret.txt"),
        format!("{work}/./sub/../../outside/secret.txt"),
        format!("/proc/self/root{outside}"),
        "/proc/self/cwd/../outside/secret.txt".to_owned(),
        format!("file://{outside}"),
        outside.to_uppercase(),
        format!("{outside}\0.txt"),
        format!("/{}", "a/".repeat(3000)),
        "x".repeat(300),
    ];
    for spelled in [
        "../outside/secret.txt",
        "/../outside/secret.txt",
        "sub/../../outside/secret.txt",
        "/sub/../../outside/secret.txt",
        "..\\outside\\secret.txt",
        "/sub\\..\\..\\outside\\secret.txt",
        "..%2foutside%2fsecret.txt",
        "%2e%2e/outside/secret.txt",
        "．．/outside/secret.txt",
        "..\u{2215}outside\u{2215}secret.txt",
        "\u{202e}../outside/secret.txt",
        "~/../outside/secret.txt",
        "~root/.ssh/id_rsa",
        "$HOME/../outside/secret.txt",
        "${HOME}/x",
        "C:\\Windows\\system32",
        "\\\\host\\share",
        "link/secret.txt",
        "/link/secret.txt",
        "/link",
        "direct",
        "/direct",
        "/chain/secret.txt",
        "/etc/passwd",
        "/dev/stdin",
        "/proc/self/environ",
        "",
        " ",
        ".",
        "/",
        "/.haft/outputs/../../../secret.txt",
        "/.haft/outputs/link/secret.txt",
    ] {
        all.push(spelled.to_owned());
    }
    all
}

fn bed() -> Bed {
    let bed = Bed::new();
    std::fs::write(bed.outside("secret.txt"), CANARY).unwrap();
    bed.file("sub/inside.txt", "inside");
    std::os::unix::fs::symlink(bed.outside(""), bed.work("link")).unwrap();
    std::os::unix::fs::symlink("link", bed.work("chain")).unwrap();
    std::os::unix::fs::symlink("../outside/secret.txt", bed.work("direct")).unwrap();
    bed
}

#[track_caller]
fn harmless(bed: &Bed, what: &str, answer: &Answer) {
    assert!(!answer.text.contains(CANARY), "{what}: {}", answer.text);
    assert!(!answer.text.contains("root:x:"), "{what}: {}", answer.text);
    let found = std::fs::read_to_string(bed.outside("secret.txt")).unwrap_or_default();
    assert_eq!(found, CANARY, "{what}: {}", answer.text);
    let names: Vec<_> = std::fs::read_dir(bed.outside(""))
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(names, ["secret.txt"], "{what}: {}", answer.text);
}

fn calls(toolset: &str, path: &str) -> Vec<(&'static str, Value)> {
    match toolset {
        "workspace" => vec![
            ("read", json!({ "path": path })),
            ("list", json!({ "path": path })),
            ("file", json!({ "path": path })),
            ("write", json!({ "path": path, "content": "changed" })),
            (
                "write",
                json!({ "path": format!("{path}/new"), "content": "changed" }),
            ),
            (
                "edit",
                json!({ "path": path, "old_text": CANARY, "new_text": "x" }),
            ),
            (
                "edit",
                json!({ "path": path, "start_line": 1, "end_line": 1, "new_text": "x" }),
            ),
            ("exec", json!({ "command": ["pwd"], "working_dir": path })),
        ],
        _ => vec![
            ("ls", json!({ "path": path })),
            ("read_file", json!({ "file_path": path })),
            (
                "write_file",
                json!({ "file_path": path, "content": "changed" }),
            ),
            (
                "write_file",
                json!({ "file_path": format!("{path}/new"), "content": "changed" }),
            ),
            (
                "edit_file",
                json!({ "file_path": path, "old_string": CANARY, "new_string": "x" }),
            ),
            (
                "grep",
                json!({ "pattern": "canary", "path": path, "output_mode": "content" }),
            ),
            ("glob", json!({ "pattern": "**/*", "path": path })),
            ("glob", json!({ "pattern": path })),
            (
                "grep",
                json!({ "pattern": "canary", "glob": path, "output_mode": "content" }),
            ),
        ],
    }
}

fn never_leaves(toolset: &str, flags: &[&str]) {
    let bed = bed();
    let flags = [&["--toolset", toolset], flags].concat();
    let mut session = bed.session(&flags);
    for path in spellings(&bed) {
        for (tool, arguments) in calls(toolset, &path) {
            let answer = session.call(tool, &arguments);
            harmless(&bed, &format!("{toolset} {tool} {path:?}"), &answer);
            // Deleting a link in the work folder does not delete its target.
            assert!(
                bed.work("direct").is_symlink(),
                "{tool} {path:?}: {}",
                answer.text
            );
        }
    }
    // The server still works.
    let inside = session.call(
        if toolset == "workspace" { "read" } else { "read_file" },
        &json!({ "path": if toolset == "workspace" { "sub/inside.txt" } else { "/sub/inside.txt" } }),
    );
    assert!(inside.text.contains("inside"), "{}", inside.text);
}

#[test]
fn workspace_stays_in_its_folder() {
    never_leaves("workspace", &[]);
}

#[test]
fn workspace_stays_in_its_folder_whatever_the_mode() {
    never_leaves("workspace", &["--sandbox", "off"]);
}

#[test]
fn deepagents_stays_in_its_tree() {
    never_leaves("deepagents", &[]);
}

#[test]
fn deepagents_stays_in_its_tree_whatever_the_mode() {
    never_leaves("deepagents", &["--sandbox", "off"]);
}

#[test]
fn a_link_itself_can_be_deleted_wherever_it_points() {
    let bed = bed();
    for link in ["direct", "link"] {
        let gone = bed.call(
            &["--toolset", "workspace"],
            "delete",
            &json!({ "path": link }),
        );
        assert!(!gone.is_error, "{}", gone.text);
        assert!(!bed.work(link).is_symlink());
    }
    harmless(
        &bed,
        "delete",
        &Answer {
            is_error: false,
            text: String::new(),
        },
    );
    let refused = bed.call(
        &["--toolset", "workspace"],
        "delete",
        &json!({ "path": "sub" }),
    );
    assert!(refused.is_error && bed.work("sub/inside.txt").exists());
}

#[test]
fn a_tree_of_backends_has_no_way_out_either() {
    let bed = bed();
    let config = bed.config(
        "tools: {toolset: deepagents}\nbackend: {routes: {/notes: store, /mind: state, /: filesystem}}\n",
    );
    let mut session = bed.session(&["--config", &config]);
    for path in spellings(&bed) {
        for below in [
            path.clone(),
            format!("/notes/{path}"),
            format!("/mind/{path}"),
        ] {
            for (tool, arguments) in calls("deepagents", &below) {
                let answer = session.call(tool, &arguments);
                harmless(&bed, &format!("{tool} {below:?}"), &answer);
            }
        }
    }
}
