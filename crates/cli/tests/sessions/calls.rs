//! `haft call` is recorded, before and after.

use crate::bed::{Bed, lines};

#[test]
fn calls_are_recorded() {
    let bed = Bed::new();
    bed.says(&["call", "write", "path=a.txt", "content=hello"]);
    bed.says(&["call", "read", "path=a.txt"]);
    assert_eq!(bed.haft(&["call", "read", "path=none.txt"]).code, Some(1));
    let listed = bed.listed();
    assert_eq!(listed.len(), 3);
    for session in &listed {
        assert_eq!(session["kind"], "call");
        assert_eq!(session["calls"], 1);
        assert_eq!(session["in_use_by"], serde_json::Value::Null);
    }
    let id = |at: usize| listed[at]["id"].as_str().unwrap();
    let failed = lines(&bed.says(&["sessions", "export", id(0)]));
    assert_eq!(failed[1]["is_error"], true);
    let read = lines(&bed.says(&["sessions", "export", id(1)]));
    assert_eq!(read[1]["arguments"]["path"], "a.txt");
    assert_eq!(read[1]["has_effect"], false);
    assert_eq!(read[1]["reply"]["content"][0]["text"], "hello");
    let wrote = lines(&bed.says(&["sessions", "export", id(2)]));
    assert_eq!(
        (&wrote[1]["tool"], &wrote[1]["has_effect"]),
        (&"write".into(), &true.into())
    );

    // Not listed with conversations, unless requested.
    let ended = bed.haft(&["sessions", "list"]);
    assert_eq!((ended.code, ended.out.as_str()), (Some(0), ""), "{ended:?}");
    assert!(ended.err.contains("--all"), "{ended:?}");
    assert_eq!(
        bed.says(&["sessions", "list", "--calls"]).lines().count(),
        4
    );
    // A refused call was not made.
    assert_eq!(
        bed.haft(&["call", "write", "path=/etc/x", "content=x"])
            .code,
        Some(1)
    );
    assert_eq!(bed.listed().len(), 3);
}

#[test]
fn the_whole_output_is_found_by_its_call() {
    for (toolset, tool) in [
        ("standard", "bash"),
        ("ah", "bash"),
        ("workspace", "exec"),
        ("deepagents", "execute"),
    ] {
        let bed = Bed::new();
        let command = "command=seq 1 300000";
        let cut = bed.says(&["--toolset", toolset, "call", tool, command]);
        assert!(!cut.contains("\n45000\n") || cut.len() < 1_200_000);
        let id = bed.listed()[0]["id"].as_str().unwrap().to_owned();
        let whole = bed.says(&["sessions", "output", &format!("{id}-1")]);
        let expected: String = (1..=300_000).map(|number| format!("{number}\n")).collect();
        assert!(whole == expected, "{toolset}: {} bytes", whole.len());
        let file = bed.state("outputs");
        assert!(file.exists());
        bed.says(&["sessions", "delete", &id, "--yes"]);
        let left: Vec<_> = std::fs::read_dir(&file).unwrap().flatten().collect();
        for folder in left {
            assert_eq!(
                std::fs::read_dir(folder.path()).unwrap().count(),
                0,
                "{toolset}"
            );
        }
    }
    let bed = Bed::new();
    bed.says(&["call", "ls", "path=."]);
    let id = bed.listed()[0]["id"].as_str().unwrap().to_owned();
    let printed = bed.says(&["sessions", "output", &format!("{id}-1")]);
    assert_eq!(printed, "(empty directory)\n");
    for args in [&["call-1"][..], &["1"], &["1", "--session", &id]] {
        let args: Vec<&str> = ["sessions", "output"]
            .into_iter()
            .chain(args.iter().copied())
            .collect();
        assert_eq!(bed.says(&args), printed, "{args:?}");
    }
    assert_eq!(bed.haft(&["sessions", "output", "2"]).code, Some(2));
    let unknown = bed.haft(&["sessions", "output", "nothing"]);
    assert_eq!(unknown.code, Some(2), "{unknown:?}");
    assert_eq!(unknown.err, "error: call not found: \"nothing\"\n");
}

/// Calls that cannot be recorded are refused, except those that only read.
#[test]
fn without_a_record_nothing_changes() {
    let bed = Bed::new();
    std::fs::create_dir_all(bed.state("")).unwrap();
    std::fs::write(bed.work("a.txt"), "old").unwrap();
    let garbage = "no database ".repeat(1000);
    std::fs::write(bed.state("sessions.db"), &garbage).unwrap();
    let read = bed.haft(&["call", "read", "path=a.txt"]);
    assert_eq!(
        (read.code, read.out.as_str()),
        (Some(0), "old\n"),
        "{read:?}"
    );
    assert!(
        read.err
            .starts_with("warning: calls cannot be recorded: the session database "),
        "{read:?}"
    );
    assert!(
        read.err
            .contains("is not a database; nothing was changed; move it away"),
        "{read:?}"
    );
    assert_eq!(bed.haft(&["--quiet", "call", "read", "path=a.txt"]).err, "");
    for args in [
        &["call", "write", "path=a.txt", "content=new"][..],
        &["call", "edit", "path=a.txt", "old_text=old", "new_text=new"],
        &["call", "bash", "command=echo new > a.txt"],
        &[
            "--sandbox",
            "off",
            "call",
            "bash",
            "command=echo new > a.txt",
        ],
    ] {
        let ended = bed.haft(args);
        assert_eq!(ended.code, Some(1), "{ended:?}");
        assert!(
            ended
                .out
                .contains("could not be recorded, so it was not made"),
            "{ended:?}"
        );
        assert!(ended.out.contains("move it away"), "{ended:?}");
    }
    assert_eq!(std::fs::read_to_string(bed.work("a.txt")).unwrap(), "old");
    assert_eq!(
        std::fs::read_to_string(bed.state("sessions.db")).unwrap(),
        garbage
    );
    let listed = bed.haft(&["sessions", "list"]);
    assert_eq!(
        (listed.code, listed.out.as_str()),
        (Some(1), ""),
        "{listed:?}"
    );
    // The remedy works.
    std::fs::rename(bed.state("sessions.db"), bed.state("kept")).unwrap();
    bed.says(&["call", "write", "path=a.txt", "content=new"]);
    assert_eq!(bed.listed().len(), 1);
}

#[test]
fn secrets_are_not_written_down() {
    let bed = Bed::new();
    let secrets = [
        ("GITHUB_TOKEN", "ghp_canary\"one\\two"),
        ("DATABASE_URL", "postgres://u:canarypw@db/x"),
    ];
    let config = "tools:\n  channels:\n    main: { kind: webhook, url: \"https://example.com/x\", token: \"canary-of-config\" }\n";
    std::fs::create_dir_all(bed.work("").parent().unwrap().join("home/.config/haft")).unwrap();
    std::fs::write(
        bed.work("")
            .parent()
            .unwrap()
            .join("home/.config/haft/haft.yaml"),
        config,
    )
    .unwrap();
    for (_, secret) in secrets.iter().chain([&("", "canary-of-config")]) {
        let ended = bed
            .command(&[
                "call",
                "write",
                "path=a.txt",
                &format!("content=x {secret} y"),
            ])
            .envs(secrets)
            .output()
            .unwrap();
        assert!(ended.status.success(), "{ended:?}");
        let ended = bed
            .command(&["call", "read", "path=a.txt"])
            .envs(secrets)
            .output()
            .unwrap();
        assert!(
            String::from_utf8_lossy(&ended.stdout).contains(secret),
            "{ended:?}"
        );
    }
    for entry in std::fs::read_dir(bed.state("")).unwrap().flatten() {
        if entry.path().is_file() {
            let bytes = std::fs::read(entry.path()).unwrap();
            let found = bytes.windows(6).any(|window| window == b"canary");
            assert!(!found, "{}", entry.path().display());
        }
    }
    assert_eq!(bed.listed().len(), 6);
    let id = bed.listed()[0]["id"].as_str().unwrap().to_owned();
    assert!(
        bed.says(&["sessions", "show", &id])
            .contains("x [redacted] y")
    );
}

#[test]
fn the_password_of_an_address_is_not_written_down() {
    let bed = Bed::new();
    let url = "https://me:hunter2-canary@host/x";
    let command = format!("command=printf %s {url} > seen; cat seen");
    let printed = bed.says(&["call", "bash", &command]);
    assert_eq!(
        printed.trim_end(),
        url,
        "the caller gets the existing output"
    );
    assert_eq!(std::fs::read_to_string(bed.work("seen")).unwrap(), url);
    for entry in std::fs::read_dir(bed.state("")).unwrap().flatten() {
        if entry.path().is_file() {
            let bytes = std::fs::read(entry.path()).unwrap();
            let found = bytes.windows(6).any(|window| window == b"canary");
            assert!(!found, "{}", entry.path().display());
        }
    }
    let id = bed.listed()[0]["id"].as_str().unwrap().to_owned();
    let shown = bed.says(&["sessions", "show", &id]);
    assert!(shown.contains("https://[redacted]@host/x"), "{shown}");
}
