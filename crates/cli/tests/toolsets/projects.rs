//! A project's file may only tighten: its folders and backends neither remove the user's
//! rules nor show the user's files.

use crate::session::Bed;
use serde_json::json;

const DEEP: &str = "tools: {toolset: deepagents}\n";

/// The user's rules apply wherever a project moves the work folder.
#[test]
fn a_rule_about_a_path_is_not_moved_away() {
    let bed = Bed::new();
    bed.file("secrets/key", "KEY");
    let rules = "policy:\n  - {deny: \"*\", path: \"secrets/**\"}\n";
    bed.user(rules);
    let moved = [
        (
            "deepagents",
            "backend: {kind: filesystem, root: secrets}\n",
            "read_file",
            json!({ "file_path": "/key" }),
        ),
        (
            "deepagents",
            "backend: {routes: {/: {kind: filesystem, root: secrets}}}\n",
            "read_file",
            json!({ "file_path": "/key" }),
        ),
        (
            "deepagents",
            "backend: {routes: {/s: {kind: filesystem, root: secrets}}}\n",
            "read_file",
            json!({ "file_path": "/s/key" }),
        ),
        (
            "standard",
            "tools: {work_dir: secrets}\n",
            "read",
            json!({ "path": "key" }),
        ),
        (
            "workspace",
            "tools: {work_dir: secrets}\n",
            "read",
            json!({ "path": "key" }),
        ),
        (
            "ah",
            "tools: {work_dir: secrets}\n",
            "read",
            json!({ "path": "key" }),
        ),
    ];
    for (toolset, project, tool, arguments) in moved {
        bed.file("haft.yaml", project);
        let answer = bed.call(&["--toolset", toolset], tool, &arguments);
        assert!(
            answer.is_error && !answer.text.contains("KEY"),
            "{project}: {}",
            answer.text
        );
        assert!(answer.text.contains("denied"), "{project}: {}", answer.text);
    }
}

/// A rule may name a mount as the model does.
#[test]
fn a_rule_about_a_path_holds_for_mounts() {
    let bed = Bed::new();
    let config = bed.config(&format!(
        "{DEEP}backend: {{routes: {{/memories: store, /mind: state, /: filesystem}}}}\npolicy:\n  - {{deny: \"*\", path: \"memories/**\"}}\n  - {{deny: \"*\", path: /mind/**}}\n"
    ));
    for path in ["/memories/x", "/mind/x"] {
        let arguments = json!({ "file_path": path, "content": "x" });
        let answer = bed.call(&["--config", &config], "write_file", &arguments);
        assert!(answer.text.contains("denied"), "{path}: {}", answer.text);
    }
}

#[test]
fn no_message_shows_what_a_variable_holds() {
    let bed = Bed::new();
    for project in [
        "backend: {kind: \"${CANARY}\"}\n",
        "backend: {kind: \"x${CANARY}\"}\n",
        "backend: {routes: {/x: \"${CANARY}\"}}\n",
        "backend: {kind: filesystem, root: \"${CANARY}\"}\n",
        "backend: {routes: {/x: {kind: filesystem, root: \"${CANARY}\"}}}\n",
        "backend: {kind: store, namespace: \"${CANARY}\"}\n",
        "tools: {channels: {a: {kind: \"${CANARY}\"}}}\n",
        "tools: {channels: {a: {kind: webhook, url: \"ftp://${CANARY}\"}}}\n",
        "execution: \"${CANARY}\"\n",
    ] {
        bed.file("haft.yaml", project);
        let config = bed.config(project);
        for flags in [&[][..], &["--config", config.as_str()]] {
            for command in [
                &["config", "show"][..],
                &["call", "ls", "path=/"],
                &["doctor"],
            ] {
                let args = [flags, &["--toolset", "deepagents"], command].concat();
                let output = bed
                    .command(&args)
                    .env("CANARY", "sk-4711")
                    .output()
                    .unwrap();
                for reply in [output.stdout, output.stderr] {
                    let reply = String::from_utf8_lossy(&reply).into_owned();
                    assert!(!reply.contains("sk-4711"), "{project} {args:?}: {reply}");
                }
            }
        }
    }
}

/// A project has one store, by any name of its folder, and no access to others.
#[test]
fn a_project_is_its_folder() {
    let bed = Bed::new();
    bed.file("haft.yaml", format!("{DEEP}backend: store\n"));
    bed.file("sub/x", "");
    let note = json!({ "file_path": "/note", "content": "ours" });
    assert!(!bed.call(&[], "write_file", &note).is_error);
    let link = bed.outside("link");
    std::os::unix::fs::symlink(bed.work(""), &link).unwrap();
    let work = bed.work("").to_string_lossy().into_owned();
    for dir in [
        ".",
        "sub/..",
        "../work",
        &work,
        &format!("{work}/"),
        &link.to_string_lossy(),
    ] {
        let read = bed.call(
            &["--dir", dir],
            "read_file",
            &json!({ "file_path": "/note" }),
        );
        assert!(read.text.contains("ours"), "{dir}: {}", read.text);
    }
    // A folder whose name looks like the end of a namespace is a different one.
    let other = bed.outside("work\nx");
    std::fs::create_dir(&other).unwrap();
    std::fs::write(
        other.join("haft.yaml"),
        format!("{DEEP}backend: {{kind: store, namespace: \"x\\n\"}}\n"),
    )
    .unwrap();
    let read = bed.call(
        &["--dir", &other.to_string_lossy()],
        "read_file",
        &json!({ "file_path": "/note" }),
    );
    assert!(read.is_error, "{}", read.text);
}

#[test]
fn the_settings_of_the_work_folder_are_protected_through_every_mount() {
    let bed = Bed::new();
    for backend in [
        "{routes: {/up: {kind: filesystem, root: ..}, /: filesystem}}",
        "{kind: filesystem, root: ..}",
    ] {
        let config = bed.config(&format!("{DEEP}backend: {backend}\n"));
        for path in [
            "/up/work/haft.yaml",
            "/work/haft.yaml",
            "/haft.yaml",
            "/work/.git/config",
        ] {
            let arguments = json!({ "file_path": path, "content": "approve: auto" });
            bed.call(&["--config", &config], "write_file", &arguments);
            for file in ["haft.yaml", ".git/config"] {
                assert!(!bed.work(file).exists(), "{backend} {path}");
            }
        }
        bed.file("haft.yaml", "quiet: true\n");
        let command = json!({ "command": "echo x > haft.yaml; echo x > work/haft.yaml" });
        bed.call(&["--config", &config], "execute", &command);
        let found = std::fs::read_to_string(bed.work("haft.yaml")).unwrap();
        assert_eq!(found, "quiet: true\n", "{backend}");
        std::fs::remove_file(bed.work("haft.yaml")).unwrap();
    }
}

#[test]
fn nothing_persistent_is_written_in_read_only_mode() {
    let bed = Bed::new();
    let config = bed.config(&format!(
        "{DEEP}backend: {{routes: {{/notes: store, /mind: state, /: filesystem}}}}\n"
    ));
    let flags = ["--config", config.as_str(), "--sandbox", "read-only"];
    for (path, is_refused) in [("/notes/x", true), ("/x", true), ("/mind/x", false)] {
        let arguments = json!({ "file_path": path, "content": "x" });
        let answer = bed.call(&flags, "write_file", &arguments);
        assert_eq!(answer.is_error, is_refused, "{path}: {}", answer.text);
    }
}

/// A folder in the repository with the name of the outputs folder is not that folder.
#[test]
fn kept_outputs_cannot_be_forged() {
    let bed = Bed::new();
    bed.file(".haft/outputs/x/forged.txt", "needle");
    let mut session = bed.session(&["--toolset", "deepagents"]);
    let found = session.done("grep", &json!({ "pattern": "needle" })).json();
    assert_eq!(found["result"], "No matches found.");
    let found = session
        .done("glob", &json!({ "pattern": ".haft/**/*.txt" }))
        .json();
    assert_eq!(found["entries"], json!([]));
}

#[test]
fn the_memory_of_a_session_has_an_end() {
    let bed = Bed::new();
    let config = bed.config(&format!("{DEEP}backend: state\n"));
    let mut session = bed.session(&["--config", &config]);
    let content = "x".repeat(8 << 20);
    let full = (0..40).find_map(|number| {
        let arguments = json!({ "file_path": format!("/{number}"), "content": content });
        Some(session.call("write_file", &arguments)).filter(|answer| answer.is_error)
    });
    let reply = full.map(|answer| answer.text).unwrap_or_default();
    assert!(reply.contains("no room for"), "{reply}");
    session.done("read_file", &json!({ "file_path": "/0" }));
}
