//! The user chooses where files live, and each backend keeps its promises.

use crate::session::Bed;
use serde_json::json;
use std::process::Stdio;

const DEEP: &str = "tools: {toolset: deepagents}\n";

#[test]
fn the_state_ends_with_its_session_and_the_disk_knows_nothing_of_it() {
    let bed = Bed::new();
    let config = bed.config(&format!("{DEEP}backend: state\n"));
    let mut session = bed.session(&["--config", &config]);
    let note = json!({ "file_path": "/notes/a.md", "content": "hello\n" });
    session.done("write_file", &note);
    let found = session.done("grep", &json!({ "pattern": "hello" })).json();
    assert_eq!(found["result"], "/notes/a.md");
    assert_eq!(std::fs::read_dir(bed.work("")).unwrap().count(), 0);
    drop(session);
    let mut session = bed.session(&["--config", &config]);
    let listed = session.done("ls", &json!({ "path": "/" })).json();
    assert_eq!(listed["entries"], json!([]));
}

#[test]
fn the_store_is_shared_between_sessions_and_namespaces_are_apart() {
    let bed = Bed::new();
    let config = bed.config(&format!(
        "{DEEP}backend: {{routes: {{/a: {{kind: store, namespace: a}}, /b: {{kind: store, namespace: a/b}}, /c: store}}}}\n"
    ));
    let mut one = bed.session(&["--config", &config]);
    let mut two = bed.session(&["--config", &config]);
    for place in ["a", "b", "c"] {
        let note = json!({ "file_path": format!("/{place}/b/x.md"), "content": place });
        one.done("write_file", &note);
    }
    for place in ["a", "b", "c"] {
        let read = two.done(
            "read_file",
            &json!({ "file_path": format!("/{place}/b/x.md") }),
        );
        assert_eq!(read.json()["content"], format!("     1\t{place}"));
        let listed = two.done(
            "glob",
            &json!({ "pattern": "**/*", "path": format!("/{place}") }),
        );
        assert_eq!(listed.json()["entries"].as_array().unwrap().len(), 1);
    }
    assert_eq!(std::fs::read_dir(bed.work("")).unwrap().count(), 0);
}

/// A project's namespace never gives access to the user's.
#[test]
fn a_project_has_its_own_store() {
    let bed = Bed::new();
    let config = bed.config(&format!(
        "{DEEP}backend: {{kind: store, namespace: diary}}\n"
    ));
    let secret = json!({ "file_path": "/secret.md", "content": "mine" });
    assert!(
        !bed.call(&["--config", &config], "write_file", &secret)
            .is_error
    );
    bed.file(
        "haft.yaml",
        format!("{DEEP}backend: {{kind: store, namespace: diary}}\n"),
    );
    let listed = bed.call(&[], "ls", &json!({ "path": "/" }));
    assert_eq!(listed.json()["entries"], json!([]));
    let note = json!({ "file_path": "/own.md", "content": "ours" });
    assert!(!bed.call(&[], "write_file", &note).is_error);
    let listed = bed.call(&[], "ls", &json!({ "path": "/" }));
    assert_eq!(listed.json()["entries"][0]["path"], "/own.md");
}

#[track_caller]
fn refused(bed: &Bed, config: &str, expected: &str) {
    let path = bed.config(config);
    let output = bed
        .command(&["--config", &path, "call", "ls", "path=/"])
        .output()
        .unwrap();
    let reply = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{config}: {reply}");
    assert!(reply.contains(expected), "{config}: {reply}");
}

#[test]
fn an_invalid_backend_is_reported_with_its_line() {
    let bed = Bed::new();
    std::os::unix::fs::symlink(bed.outside(""), bed.work("link")).unwrap();
    for (backend, expected) in [
        ("stor", "did you mean \"store\"?"),
        (
            "{kind: memory}",
            "backend.kind must be filesystem, state, store, composite or routes, got \"memory\"",
        ),
        (
            "{kind: filesystem, rot: x}",
            "unknown key \"rot\" in backend",
        ),
        ("{kind: filesystem, root: missing}", "missing"),
        (
            "{kind: filesystem, root: link}",
            "leads out of the work folder",
        ),
        (
            "{kind: filesystem, max_file_size_mb: 0}",
            "max_file_size_mb",
        ),
        (
            "{kind: filesystem, virtual: maybe}",
            "backend.virtual must be true or false, got text",
        ),
        (
            "{kind: store, namespace: [a]}",
            "backend.namespace must be text, got a list",
        ),
        ("{routes: [a]}", "routes must be a map"),
        ("{routes: {memories: store}}", "must start with /"),
        ("{routes: {/a/../b: store}}", "must be a plain path"),
        ("{routes: {/a: store, /a/: state}}", "is given twice"),
        (
            "{routes: {/.haft/x: state}}",
            "is reserved for saved outputs",
        ),
        (
            "{routes: {/a: {routes: {/b: state}}}}",
            "cannot contain routes",
        ),
        ("[state]", "backend must be filesystem, state, store"),
        ("7", "backend must be filesystem, state, store"),
    ] {
        refused(&bed, &format!("{DEEP}backend: {backend}\n"), expected);
    }
    refused(
        &bed,
        "backend: state\n",
        "works only with toolset deepagents",
    );
}

#[test]
fn backend_errors_name_the_file_and_line() {
    let bed = Bed::new();
    for backend in [
        "{kind: filesystem, root: missing}",
        "{routes: {/a: store, /a/: state}}",
    ] {
        refused(
            &bed,
            &format!("{DEEP}backend: {backend}\n"),
            "config.yaml:2: ",
        );
    }
}

#[test]
fn commands_read_what_was_kept_and_a_slash_at_the_end_means_the_same_everywhere() {
    let bed = Bed::new();
    let config = bed.config(&format!(
        "{DEEP}backend: {{routes: {{/mind: state, /notes: store, /: filesystem}}}}\n"
    ));
    let mut session = bed.session(&["--config", &config]);
    let answer = session
        .done("execute", &json!({ "command": "seq 40000" }))
        .json();
    let command = format!("tail -n 1 {}", answer["host_path"].as_str().unwrap());
    let last = session
        .done("execute", &json!({ "command": command }))
        .json();
    assert_eq!(last["output"], "40000\n");
    for place in ["", "/mind", "/notes"] {
        let refused = session.call(
            "write_file",
            &json!({ "file_path": format!("{place}/q/"), "content": "" }),
        );
        assert!(refused.is_error, "{place}: {}", refused.text);
        session.done(
            "write_file",
            &json!({ "file_path": format!("{place}/a.txt"), "content": "x" }),
        );
        let read = session.done(
            "read_file",
            &json!({ "file_path": format!("{place}/a.txt/") }),
        );
        assert_eq!(read.json()["content"], "     1\tx", "{place}");
        // A file is not reported as a directory, and the intent is not guessed.
        let file = json!({ "file_path": format!("{place}/a.txt/") });
        let refused = session.call("delete_file", &file);
        assert!(refused.is_error, "{place}: {}", refused.text);
        let reported = refused.json();
        assert_eq!(
            reported["message"],
            format!("Path ends with a slash: {place}/a.txt/")
        );
        let hint = reported["hint"].as_str().unwrap();
        assert!(hint.contains("leave the slash out"), "{reported}");
        session.done(
            "read_file",
            &json!({ "file_path": format!("{place}/a.txt") }),
        );
        session.done(
            "delete_file",
            &json!({ "file_path": format!("{place}/a.txt") }),
        );
    }
}

#[test]
fn a_link_is_found_as_what_it_leads_to() {
    let bed = Bed::new();
    bed.file("inner/a.py", "needle\n");
    std::os::unix::fs::symlink("inner/a.py", bed.work("l.py")).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", bed.work("out.py")).unwrap();
    let mut session = bed.session(&["--toolset", "deepagents"]);
    let found = session
        .done("glob", &json!({ "pattern": "**/*.py" }))
        .json();
    let sizes: Vec<_> = found["entries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| {
            (
                entry["path"].as_str().unwrap(),
                entry["size"].as_u64().unwrap(),
            )
        })
        .collect();
    // For a target that cannot be read, the size is that of the link.
    assert_eq!(sizes, [("/inner/a.py", 7), ("/l.py", 7), ("/out.py", 11)]);
    let refused = session.call("glob", &json!({ "pattern": "../*" }));
    assert!(
        refused.text.contains("Path traversal not allowed: ../*"),
        "{}",
        refused.text
    );
    let others = session
        .done("grep", &json!({ "pattern": "needle", "glob": "!*.py" }))
        .json();
    assert_eq!(others["result"], "No matches found.");
}

#[test]
fn a_store_file_that_is_not_a_database_is_left_unchanged() {
    let bed = Bed::new();
    let config = bed.config(&format!("{DEEP}backend: store\n"));
    std::fs::create_dir_all(bed.store().parent().unwrap()).unwrap();
    for content in [
        &b"not a database, but somebody's notes"[..],
        b"",
        b"SQLite format 3\0 and no more",
    ] {
        std::fs::write(bed.store(), content).unwrap();
        let output = bed
            .command(&["--config", &config, "call", "ls", "path=/"])
            .output()
            .unwrap();
        let reply = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{reply}");
        assert!(reply.contains("store.db"), "{reply}");
        assert_eq!(std::fs::read(bed.store()).unwrap(), content, "{reply}");
    }
}

/// A file size limit simulates a full disk.
#[test]
fn a_file_too_large_for_the_disk_changes_nothing() {
    for backend in ["store", "filesystem"] {
        let bed = Bed::new();
        let config = bed.config(&format!("{DEEP}backend: {backend}\n"));
        let flags = ["--config", config.as_str()];
        let small = json!({ "file_path": "/a.md", "content": "small" });
        assert!(!bed.call(&flags, "write_file", &small).is_error);
        let large = json!({ "file_path": "/a.md", "old_string": "small", "new_string": "x".repeat(100_000) });
        let line = format!(
            "ulimit -f 40; trap '' XFSZ; exec {} --config {config} call edit_file '{large}'",
            env!("CARGO_BIN_EXE_haft")
        );
        let output = bed
            .command_of("/bin/bash", &["-c", &line])
            .stdout(Stdio::piped())
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(1), "{backend}: {output:?}");
        let read = bed.call(&flags, "read_file", &json!({ "file_path": "/a.md" }));
        assert_eq!(read.json()["content"], "     1\tsmall", "{backend}");
        let names = bed.call(&flags, "ls", &json!({ "path": "/" })).json();
        assert_eq!(
            names["entries"].as_array().unwrap().len(),
            1,
            "{backend}: {names}"
        );
    }
}

#[test]
fn execution_can_be_taken_away() {
    let bed = Bed::new();
    for (execution, is_there) in [
        ("local", true),
        ("none", false),
        ("{uri: \"http://127.0.0.1:9\"}", false),
    ] {
        let config = bed.config(&format!("{DEEP}execution: {execution}\n"));
        let tools = bed.session(&["--config", &config]).tools();
        assert_eq!(
            tools.contains(&"execute".to_owned()),
            is_there,
            "{execution}: {tools:?}"
        );
    }
    // A project can remove it, but not add it.
    bed.file("haft.yaml", format!("{DEEP}execution: none\n"));
    let tools = bed.session(&[]).tools();
    assert!(!tools.contains(&"execute".to_owned()), "{tools:?}");
}

#[test]
fn saved_outputs_are_readable_only_by_their_own_session() {
    let bed = Bed::new();
    let mut session = bed.session(&["--toolset", "deepagents"]);
    let answer = session
        .done("execute", &json!({ "command": "seq 40000" }))
        .json();
    assert_eq!(answer["truncated"], true);
    assert_eq!(answer["output"].as_str().unwrap().len(), 100_000);
    let path = answer["output_path"].as_str().unwrap();
    assert!(path.starts_with("/.haft/outputs/"), "{path}");
    let last = session
        .done("read_file", &json!({ "file_path": path, "offset": 39_999 }))
        .json();
    assert_eq!(last["content"], " 40000\t40000");
    let found = session.done(
        "grep",
        &json!({ "pattern": "39999", "path": path, "output_mode": "content" }),
    );
    assert_eq!(found.json()["result"], format!("{path}:39999:39999"));
    // They are not part of the tree.
    let all = session.done("glob", &json!({ "pattern": "**/*" })).json();
    assert_eq!(all["entries"], json!([]));
    let all = session.done("grep", &json!({ "pattern": "39999" })).json();
    assert_eq!(all["result"], "No matches found.");
    let written = session.call(
        "edit_file",
        &json!({ "file_path": path, "old_string": "39999", "new_string": "x" }),
    );
    assert!(written.is_error, "{}", written.text);
}

/// Files of the store on the command line, as a session's tools see them.
#[test]
fn the_store_is_managed_by_hand() {
    let bed = Bed::new();
    let ended = |args: &[&str], stdin: &[u8]| {
        use std::io::Write;
        let mut child = bed
            .command(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(stdin).unwrap();
        child.wait_with_output().unwrap()
    };
    let done = |args: &[&str], stdin: &[u8]| {
        let output = ended(args, stdin);
        assert!(output.status.success(), "{args:?}: {output:?}");
        output.stdout
    };
    let refused = |args: &[&str], code: i32, expected: &str| {
        let output = ended(args, b"");
        let reply = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{args:?}: {reply}");
        assert!(reply.contains(expected), "{args:?}: {reply}");
    };
    // An unused store is not an error, and no database is created.
    assert_eq!(done(&["store", "list"], b""), b"");
    refused(&["store", "get", "/x.md"], 1, "haft store list");
    let other = ["store", "get", "/x.md", "--namespace", "zzz"];
    refused(&other, 1, "`haft store list --namespace zzz`");
    let listed = ended(&["store", "list", "--namespace", "zzz"], b"");
    let reply = String::from_utf8_lossy(&listed.stderr).into_owned();
    assert!(reply.contains("no files in namespace zzz"), "{reply}");
    assert!(!bed.store().exists());

    let binary = [0, 255, 10, 13, 27];
    done(&["store", "put", "/bin/data"], &binary);
    bed.file("local.md", "from a file\n");
    done(&["store", "put", "notes.md", "local.md"], b"");
    assert_eq!(done(&["store", "get", "/bin/data"], b""), binary);
    done(&["store", "put", "/notes.md"], b"replaced\n");
    assert_eq!(done(&["store", "get", "/notes.md"], b""), b"replaced\n");
    let listed = String::from_utf8(done(&["store", "list"], b"")).unwrap();
    let names: Vec<_> = listed
        .lines()
        .filter_map(|line| line.split_whitespace().last())
        .collect();
    assert_eq!(names, ["/bin/data", "/notes.md"], "{listed}");
    let line = done(&["store", "list", "/bin", "--json"], b"");
    let line: serde_json::Value = serde_json::from_slice(&line).unwrap();
    assert_eq!(
        (&line["path"], &line["bytes"]),
        (&json!("/bin/data"), &json!(5))
    );

    // It is the same store as in a session, below its route.
    let config = bed.config(&format!(
        "{DEEP}backend: {{routes: {{/memories: store}}}}\n"
    ));
    let with = |args: &[&'static str]| {
        let config: &'static str = Box::leak(config.clone().into_boxed_str());
        [&["--config", config], args].concat()
    };
    let read = bed.call(
        &["--config", &config],
        "read_file",
        &json!({ "file_path": "/memories/notes.md" }),
    );
    assert_eq!(read.json()["content"], "     1\treplaced");
    refused(
        &with(&["store", "get", "/memories/notes.md"]),
        1,
        "omit it from the path",
    );

    refused(&["store", "get", "/bin"], 1, "haft store list /bin");
    refused(&["store", "delete", "/notes.md", "/none"], 1, "not found");
    assert_eq!(
        done(&["store", "get", "/notes.md"], b""),
        b"replaced\n",
        "nothing was deleted"
    );
    refused(&["store", "get", "/../x"], 2, "without ..");
    for action in ["get", "put", "delete"] {
        for path in ["", "/", ".", "notes.md/"] {
            refused(
                &["store", action, path],
                2,
                "name a file, such as /notes.md",
            );
        }
    }
    refused(&["store", "put", "/notes.md/x"], 1, "a part of this path");
    refused(&["store", "delete", "bin"], 1, "is a directory: /bin");
    done(&["store", "delete", "/notes.md", "/bin/data"], b"");
    assert_eq!(done(&["store", "list", "--json"], b""), b"");

    let config = bed.config(&format!(
        "{DEEP}backend: {{routes: {{/a: {{kind: store, namespace: a}}, /b: {{kind: store, namespace: b}}}}}}\n"
    ));
    refused(
        &["--config", &config, "store", "list"],
        2,
        "pass --namespace with one of: a, b",
    );
    done(
        &[
            "--config",
            &config,
            "store",
            "put",
            "/x",
            "--namespace",
            "a",
        ],
        b"in a",
    );
    let read = bed.call(
        &["--config", &config],
        "read_file",
        &json!({ "file_path": "/a/x" }),
    );
    assert_eq!(read.json()["content"], "     1\tin a");
    assert_eq!(
        done(&["store", "get", "x", "--namespace", "a"], b""),
        b"in a"
    );
    refused(&["store", "get", "x"], 1, "not found");
}
