//! Memory files are part of the prompt wherever they are stored, and the model may change
//! them.

use crate::bed::{Bed, results};
use haft_testing::model::{ModelReply, Turn};
use serde_json::json;

/// System prompt of the last request.
fn prompt(bed: &Bed) -> String {
    let request = bed.last_request();
    let system = &request["messages"][0];
    assert_eq!(system["role"], "system", "{request}");
    system["content"].to_string()
}

#[test]
fn memory_of_one_session_is_in_the_prompt_of_the_next() {
    for (backend, path) in [
        ("filesystem", "/notes/memory.md"),
        ("store", "/memory.md"),
        (
            "{ routes: { /memories: store, /: filesystem } }",
            "/memories/AGENTS.md",
        ),
    ] {
        let learned = json!({ "file_path": path, "content": "The user likes tabs.\n" });
        let bed = Bed::new(vec![
            ModelReply::calling("c1", "write_file", &learned).into(),
            Turn::text("Noted."),
            Turn::text("I know."),
        ])
        .and(&format!(
            "tools: {{ toolset: deepagents }}\nbackend: {backend}\nmemory: [{path}]\n"
        ));
        assert_eq!(bed.run(&[]).code, Some(0));
        let first = prompt(&bed);
        assert!(first.contains("## Memory"), "{first}");
        assert!(
            first.contains(&format!("You may update: {path}.")),
            "{first}"
        );
        assert!(
            first.contains(&format!("{path} does not exist yet.")),
            "{first}"
        );
        assert!(!first.contains("likes tabs"), "{first}");
        assert_eq!(bed.run(&[]).code, Some(0));
        let second = prompt(&bed);
        assert!(
            second.contains("The user likes tabs."),
            "{backend}: {second}"
        );
        assert!(!second.contains("does not exist yet"), "{second}");
    }
}

#[test]
fn a_model_that_cannot_write_is_not_told_to() {
    let bed =
        Bed::new(vec![Turn::text("Hi."), Turn::text("Hi.")]).and("memory: [MEMORY.md, none.md]\n");
    std::fs::write(bed.work("MEMORY.md"), "Ship on Fridays.").unwrap();
    for flags in [["--preset", "readonly"], ["--sandbox", "read-only"]] {
        assert_eq!(bed.run(&flags).code, Some(0));
        let printed = prompt(&bed);
        assert!(printed.contains("Ship on Fridays."), "{printed}");
        assert!(!printed.contains("You may update"), "{flags:?}: {printed}");
        assert!(!printed.contains("none.md"), "{printed}");
    }
}

#[test]
fn memory_that_is_not_text_is_skipped() {
    let bed =
        Bed::new(vec![Turn::text("Hi.")]).and("memory: [dir, pipe, bytes, new.md, empty.md]\n");
    std::fs::create_dir(bed.work("dir")).unwrap();
    std::fs::write(bed.work("bytes"), b"\0\x01\x02").unwrap();
    std::fs::write(bed.work("empty.md"), "").unwrap();
    let made = std::process::Command::new("mkfifo")
        .arg(bed.work("pipe"))
        .status();
    assert!(made.unwrap().success());
    let ran = bed.run(&[]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let printed = prompt(&bed);
    assert!(
        printed.contains("You may update: new.md, empty.md."),
        "{printed}"
    );
    for name in ["dir", "pipe", "bytes"] {
        let warned = ran.err.lines().any(|line| {
            line.starts_with("warning: memory: ") && line.contains(&format!("/{name} left out"))
        });
        assert!(warned, "{name}: {}", ran.err);
    }
}

/// As with AGENTS.md, text of a project needs no trust, and nothing outside it is read.
#[test]
fn a_project_can_name_only_its_own_memory_files() {
    let bed = Bed::new(vec![Turn::text("Hi.")]);
    let outside = bed.elsewhere().join("private.md");
    std::fs::write(&outside, "the secret plan").unwrap();
    std::fs::write(bed.work("inside.md"), "the open plan").unwrap();
    std::os::unix::fs::symlink(&outside, bed.work("link.md")).unwrap();
    bed.project(&format!(
        "memory: [inside.md, {}, ../elsewhere/private.md, link.md]\n",
        outside.display()
    ));
    let ran = bed.run(&[]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let printed = prompt(&bed);
    assert!(printed.contains("the open plan"), "{printed}");
    assert!(!printed.contains("secret plan"), "{printed}");
    assert_eq!(
        ran.err.matches("outside the work folder").count(),
        3,
        "{}",
        ran.err
    );
}

#[test]
fn files_closed_by_rules_are_not_in_the_prompt() {
    let bed = Bed::new(vec![Turn::text("Hi.")])
        .and("memory: [diary.md]\npolicy:\n  - { deny: read, path: diary.md }\n");
    std::fs::write(bed.work("diary.md"), "dear diary").unwrap();
    let ran = bed.run(&[]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(!prompt(&bed).contains("dear diary"));
    assert!(ran.err.contains("diary.md"), "{}", ran.err);
}

#[test]
fn the_prompt_names_the_work_folder_as_the_tools_do() {
    let bed = Bed::new(vec![Turn::text("Hi."), Turn::text("Hi.")]);
    assert_eq!(bed.run(&["--toolset", "deepagents"]).code, Some(0));
    let printed = prompt(&bed);
    assert!(printed.contains("Work folder: /\\n"), "{printed}");
    let real = std::fs::canonicalize(bed.work("")).unwrap();
    assert!(!printed.contains(&*real.to_string_lossy()), "{printed}");
    assert_eq!(bed.run(&[]).code, Some(0));
    let printed = prompt(&bed);
    assert!(
        printed.contains(&format!("Work folder: {}\\n", real.display())),
        "{printed}"
    );
}

#[test]
fn a_session_starts_with_the_files_of_a_folder() {
    let read = |id: &str, path: &str| -> Turn {
        ModelReply::calling(id, "read_file", &json!({ "file_path": path })).into()
    };
    let todos = json!({ "todos": [
        { "content": "look", "status": "completed" },
        { "content": "think", "status": "in_progress" },
        { "content": "write", "status": "pending" },
    ] });
    let bed = Bed::new(vec![
        read("c1", "/docs/a.md"),
        ModelReply::calling("c2", "write_todos", &todos).into(),
        Turn::text("Read."),
        read("c3", "/docs/a.md"),
        Turn::text("Read again."),
    ])
    .and("tools: { toolset: deepagents }\nbackend: state\n");
    let seeds = bed.elsewhere();
    std::fs::create_dir_all(seeds.join("docs")).unwrap();
    std::fs::write(seeds.join("docs/a.md"), "seeded\n").unwrap();
    let binary = [0, 159, 146, 150, b'\n', 255];
    std::fs::write(seeds.join("b.bin"), binary).unwrap();
    let ran = bed.run(&["--files", &seeds.to_string_lossy()]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let results = results(&bed.messages());
    assert!(results[0].1.contains("seeded"), "{results:?}");

    let session = bed.newest();
    let listed = bed.says(&["sessions", "files", &session]);
    let names: Vec<_> = listed
        .lines()
        .filter_map(|line| line.split_whitespace().last())
        .collect();
    assert_eq!(names, ["/b.bin", "/docs/a.md"], "{listed}");
    assert!(listed.starts_with("6B "), "{listed}");
    let line = bed.says(&["sessions", "files", &session, "--json"]);
    let first: serde_json::Value = serde_json::from_str(line.lines().next().unwrap()).unwrap();
    assert_eq!(
        (&first["path"], &first["bytes"]),
        (&json!("/b.bin"), &json!(6))
    );
    for path in ["/b.bin", "b.bin"] {
        let output = bed
            .command(&["sessions", "files", &session, path])
            .output()
            .unwrap();
        assert_eq!(output.stdout, binary, "{output:?}");
    }
    let missing = bed.haft(&["sessions", "files", &session, "/none"]);
    assert_eq!(missing.code, Some(1), "{missing:?}");
    assert!(missing.err.contains("haft sessions files"), "{missing:?}");

    assert_eq!(
        bed.says(&["sessions", "todos", &session]).trim_end(),
        "[x] look\n[>] think\n[ ] write"
    );
    let line = bed.says(&["sessions", "todos", &session, "--json"]);
    let first: serde_json::Value = serde_json::from_str(line.lines().next().unwrap()).unwrap();
    assert_eq!(first, json!({ "content": "look", "status": "completed" }));

    // They are part of the session, even if the folder changes.
    std::fs::remove_dir_all(seeds.join("docs")).unwrap();
    let ended = bed.haft(&["run", "Go on", "--continue"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let last = bed.last_request()["messages"].to_string();
    assert_eq!(last.matches("seeded").count(), 2, "{last}");
}

#[test]
fn files_need_a_place_in_the_session() {
    let routed =
        "tools: { toolset: deepagents }\nbackend: { routes: { /notes: state, /: filesystem } }\n";
    let none = "this session does not store files";
    let elsewhere = "/a.md is not in a folder that is saved with the session: /notes/";
    for (lines, expected, remedy) in [
        ("tools: { toolset: deepagents }\n", none, "backend: "),
        ("", none, "backend: "),
        (routed, elsewhere, "belong in its subfolder notes"),
    ] {
        let bed = Bed::new(vec![Turn::text("Never asked.")]).and(lines);
        let seeds = bed.elsewhere();
        std::fs::write(seeds.join("a.md"), "x").unwrap();
        let ended = bed.haft(&["run", "Go", "--files", &seeds.to_string_lossy()]);
        assert_eq!(ended.code, Some(2), "{ended:?}");
        assert!(
            ended.err.contains(expected) && ended.err.contains(remedy),
            "{ended:?}"
        );
        assert!(!bed.work("a.md").exists());
    }
    let bed = Bed::new(vec![Turn::text("Never asked.")]);
    let ended = bed.haft(&["run", "Go", "--files", "no-such-folder"]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(
        ended.err.contains("--files: cannot read no-such-folder"),
        "{ended:?}"
    );
}
