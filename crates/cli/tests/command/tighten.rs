//! A project's file may only tighten.

use crate::scratch::Scratch;
use serde_json::json;

#[test]
fn the_sandbox_gets_stricter_and_never_looser() {
    let scratch = Scratch::new();
    let user = |mode: &str| scratch.user(&format!("sandbox: {mode}\n"));
    for (person, project, together) in [
        ("off", "workspace", "workspace"),
        ("workspace", "off", "workspace"),
        ("read-only", "workspace", "read-only"),
        ("strict", "read-only", "strict and read-only"),
        ("read-only", "strict", "read-only and strict"),
        ("strict", "strict", "strict"),
    ] {
        user(person);
        scratch.file("haft.yaml", format!("sandbox: {project}\n"));
        assert_eq!(
            scratch.shown("sandbox", &[], &[]).0,
            together,
            "{person} {project}"
        );
    }
    // A flag and a variable are the user's choice for this run.
    user("strict");
    assert_eq!(
        scratch.shown("sandbox", &[], &["--sandbox", "off"]).0,
        "off"
    );
    assert_eq!(
        scratch.shown("sandbox", &[("HAFT_SANDBOX", "off")], &[]).0,
        "off"
    );
}

#[test]
fn the_rules_hold_for_calls() {
    let scratch = Scratch::new();
    scratch.file("haft.yaml", "\nsandbox: off\n");
    let outside = scratch.home("outside.txt");
    let path = format!("path={}", outside.display());
    let ended = scratch.haft(&["call", "write", &path, "content=x"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(
        ended.err.starts_with("haft.yaml:2: sandbox off is ignored"),
        "{ended:?}"
    );
    assert!(!outside.exists());
    assert_eq!(
        scratch
            .haft(&["call", "write", &path, "content=x", "--sandbox", "off"])
            .code,
        Some(0)
    );
    scratch.file("haft.yaml", "sandbox: read-only\n");
    assert_eq!(
        scratch
            .haft(&["call", "write", "path=in.txt", "content=x"])
            .code,
        Some(1)
    );
}

#[test]
fn roots_of_a_project_are_ignored_and_named() {
    let scratch = Scratch::new();
    std::fs::create_dir(scratch.home("more")).unwrap();
    let more = scratch.home("more").display().to_string();
    let path = format!("path={more}/a.txt");
    scratch.file("haft.yaml", format!("tools:\n  roots: [{more}]\n"));
    let ended = scratch.haft(&["call", "write", &path, "content=x"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(
        ended.err.starts_with("haft.yaml:2: tools.roots is ignored"),
        "{ended:?}"
    );
    scratch.user("tools:\n  roots: [~/more]\n");
    let ended = scratch.haft(&["call", "write", &path, "content=x"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
}

#[test]
fn protection_adds_up() {
    let scratch = Scratch::new();
    scratch.user("tools: {protect: [kept.txt]}\n");
    scratch.file("haft.yaml", "tools: {protect: [also.txt, sub/deep.txt]}\n");
    for (name, code) in [
        ("kept.txt", 1),
        ("also.txt", 1),
        ("sub/deep.txt", 1),
        ("free.txt", 0),
    ] {
        let ended = scratch.haft(&["call", "write", &format!("path={name}"), "content=x"]);
        assert_eq!(ended.code, Some(code), "{name} {ended:?}");
    }
    // A work folder further down does not remove protection.
    scratch.user("tools: {protect: [sub/kept.txt]}\n");
    scratch.file("haft.yaml", "tools: {work_dir: sub}\n");
    scratch.file("sub/kept.txt", "old");
    let ended = scratch.haft(&["call", "write", "path=kept.txt", "content=x"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
}

#[test]
fn the_time_limit_gets_shorter_only() {
    let scratch = Scratch::new();
    for (person, project, limit, warns) in [
        ("0", "30", json!(30), false),
        ("60", "30", json!(30), false),
        ("60", "2.5", json!(2.5), false),
        ("60", "120", json!(60), true),
        ("60", "0", json!(60), true),
        ("60", "60", json!(60), false),
    ] {
        scratch.user(&format!("tools: {{timeout: {person}}}\n"));
        scratch.file("haft.yaml", format!("tools: {{timeout: {project}}}\n"));
        assert_eq!(
            scratch.shown("tools.timeout", &[], &[]).0,
            limit,
            "{person} {project}"
        );
        let ended = scratch.haft(&["config", "show"]);
        assert_eq!(
            ended.err.contains("haft.yaml:1: tools.timeout"),
            warns,
            "{ended:?}"
        );
    }
}

#[test]
fn the_work_folder_stays_in_the_project() {
    let scratch = Scratch::new();
    scratch.file("sub/a.txt", "inside");
    scratch.file("haft.yaml", "tools: {work_dir: sub}\n");
    assert_eq!(
        scratch.haft(&["call", "read", "path=a.txt"]).out,
        "inside\n"
    );
    std::os::unix::fs::symlink(scratch.home(""), scratch.work("link")).unwrap();
    for outside in ["..", "/", "link", "sub/../.."] {
        scratch.file("haft.yaml", format!("tools: {{work_dir: {outside}}}\n"));
        let ended = scratch.haft(&["call", "ls"]);
        assert_eq!(ended.code, Some(2), "{outside} {ended:?}");
        assert!(ended.err.contains("haft.yaml:1:19"), "{ended:?}");
    }
    // The flag comes first, so that the file's value does not matter.
    assert_eq!(scratch.haft(&["call", "ls", "--dir", "."]).code, Some(0));
}

#[test]
fn a_project_file_that_is_a_link_to_elsewhere_is_not_read() {
    let scratch = Scratch::new();
    std::fs::write(scratch.home("secret"), "root:*:20228:0\n").unwrap();
    std::os::unix::fs::symlink(scratch.home("secret"), scratch.work("haft.yaml")).unwrap();
    let ended = scratch.haft(&["call", "ls"]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(
        ended
            .err
            .contains("is a link that leads out of this folder"),
        "{ended:?}"
    );
    assert!(!ended.err.contains("20228"), "{ended:?}");
}
