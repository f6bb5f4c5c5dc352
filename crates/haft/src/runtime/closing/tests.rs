//! What rules close is found by no tool of any toolset.
#![expect(
    clippy::disallowed_methods,
    reason = "tests look at the disk themselves"
)]

use crate::runtime::{Answer, Approve, Approver, Question, Runtime};
use crate::{Draft, Place, Policy, Rule, RuleFile, Verdict, Whose};
use async_trait::async_trait;
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;

const CANARY: &str = "canary-77";

/// `deny * secrets/**`, one rule for each.
fn rules(whose: Whose, texts: &[&str]) -> RuleFile {
    let rules = texts.iter().enumerate().map(|(at, text)| {
        let words: Vec<&str> = text.split(' ').collect();
        let verdict = match words[0] {
            "allow" => Verdict::Allow,
            "ask" => Verdict::Ask,
            "deny" => Verdict::Deny,
            other => panic!("{other}"),
        };
        let place = Place {
            file: "haft.yaml".to_owned(),
            line: at as u64 + 1,
        };
        let mut draft = Draft::new(verdict, words[1], place);
        draft.path = words.get(2).map(|glob| (*glob).to_owned());
        Rule::new(draft).unwrap()
    });
    RuleFile {
        whose,
        rules: rules.collect(),
    }
}

fn person(texts: &[&str]) -> Policy {
    Policy::new(vec![rules(Whose::Person, texts)])
}

fn folder(files: &[&str]) -> tempfile::TempDir {
    let temp = tempfile::TempDir::new().unwrap();
    for file in files {
        let path = temp.path().join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, format!("{CANARY} {file}\n")).unwrap();
    }
    temp
}

fn session(toolset: &str, dir: &Path, policy: Policy) -> crate::Builder {
    Runtime::builder()
        .dir(dir)
        .toolset(toolset)
        .every_tool()
        .policy(policy)
}

async fn call(runtime: &Runtime, tool: &str, arguments: Value) -> String {
    runtime.call(tool, arguments).await.text()
}

struct Yes;

#[async_trait]
impl Approver for Yes {
    async fn ask(&self, _: &Question) -> Answer {
        Answer::Approve
    }
}

struct Always;

#[async_trait]
impl Approver for Always {
    async fn ask(&self, _: &Question) -> Answer {
        Answer::Always
    }
}

#[tokio::test]
async fn what_a_rule_names_by_a_link_is_closed_by_its_own_name() {
    let temp = folder(&[
        "data/v1/secrets/key",
        "data/v1/open",
        "kept/a.pem",
        "kept/a.txt",
    ]);
    for (to, at) in [("data/v1", "cur"), ("kept", "way"), (".", "all")] {
        std::os::unix::fs::symlink(to, temp.path().join(at)).unwrap();
    }
    let policy = person(&["deny * cur/secrets/**", "deny * way/*.pem", "deny * all/**"]);
    let runtime = session("standard", temp.path(), policy).build().unwrap();
    for path in ["data/v1/secrets/key", "cur/secrets/key", "kept/a.pem"] {
        let text = call(&runtime, "read", json!({ "path": path })).await;
        assert!(
            !text.contains(CANARY) && text.contains("haft.yaml"),
            "{path}: {text}"
        );
    }
    for path in ["data/v1/open", "kept/a.txt"] {
        let text = call(&runtime, "read", json!({ "path": path })).await;
        assert!(text.contains(CANARY), "{path}: {text}");
    }
    for path in [".", "data", "data/v1"] {
        let found = call(&runtime, "grep", json!({ "pattern": CANARY, "path": path })).await;
        assert!(found.contains("open") && !found.contains("key"), "{found}");
        assert!(!found.contains("pem"), "{found}");
    }
}

#[tokio::test]
async fn a_denied_folder_is_denied_with_all_that_is_in_it() {
    let temp = folder(&[
        "secrets/deep/key",
        "some/deep/key",
        "open/public/a",
        "open/b",
    ]);
    let policy = person(&[
        "deny * secrets",
        "deny * some/*",
        "allow * open/public/**",
        "deny * open",
    ]);
    let runtime = session("standard", temp.path(), policy).build().unwrap();
    for path in ["secrets/deep/key", "some/deep/key", "open/b"] {
        let text = call(&runtime, "read", json!({ "path": path })).await;
        assert!(
            !text.contains(CANARY) && text.contains("haft.yaml"),
            "{path}: {text}"
        );
    }
    let found = call(&runtime, "grep", json!({ "pattern": CANARY })).await;
    assert!(found.contains("open/public/a"), "{found}");
    assert!(
        !found.contains("key") && !found.contains("open/b"),
        "{found}"
    );
}

#[tokio::test]
async fn a_denied_folder_is_found_by_no_tool_of_any_toolset() {
    let temp = folder(&["secrets/key", "secrets/deep/key", "open.txt", "docs/a.txt"]);
    std::os::unix::fs::symlink("../secrets/key", temp.path().join("docs/link")).unwrap();
    std::os::unix::fs::symlink("secrets", temp.path().join("way")).unwrap();
    let policy = person(&["deny * secrets/**"]);

    let standard = session("standard", temp.path(), policy.clone())
        .build()
        .unwrap();
    let found = call(&standard, "grep", json!({ "pattern": CANARY })).await;
    assert!(!found.contains("secrets"), "{found}");
    assert!(
        found.ends_with("[2 matches; searched 2 files, skipped 3: 3 denied by rules]"),
        "{found}"
    );
    let found = call(&standard, "find", json!({})).await;
    assert!(
        !found.contains("secrets") && !found.contains("link"),
        "{found}"
    );
    assert!(found.contains("skipped 3: 3 denied by rules]"), "{found}");
    let found = call(&standard, "find", json!({ "pattern": "key" })).await;
    assert!(found.starts_with("No matches found"), "{found}");
    let found = call(&standard, "ls", json!({})).await;
    assert!(
        !found.contains("secrets") && !found.contains("way"),
        "{found}"
    );
    assert!(
        found.ends_with("[2 entries left out: 2 denied by rules]"),
        "{found}"
    );
    let found = call(&standard, "ls", json!({ "path": "docs" })).await;
    assert!(!found.contains("link"), "{found}");
    // A name that is nearly right is not put right to one that is denied.
    let found = call(&standard, "read", json!({ "path": "secretz" })).await;
    assert!(!found.contains("secrets"), "{found}");
    let found = call(&standard, "read", json!({ "path": "open.tx" })).await;
    assert!(found.contains("open.txt"), "{found}");

    let workspace = session("workspace", temp.path(), policy.clone())
        .build()
        .unwrap();
    let found = call(&workspace, "list", json!({ "path": "." })).await;
    assert!(
        !found.contains("secrets") && !found.contains("way"),
        "{found}"
    );
    assert!(found.contains(r#""left_out":{"denied":2}"#), "{found}");

    let deep = session("deepagents", temp.path(), policy.clone())
        .build()
        .unwrap();
    for (tool, arguments, said) in [
        ("grep", json!({ "pattern": CANARY }), r#""denied":3"#),
        (
            "glob",
            json!({ "pattern": "**/*" }),
            r#""left_out":{"denied":3}"#,
        ),
        ("ls", json!({ "path": "/" }), r#""left_out":{"denied":2}"#),
    ] {
        let found = call(&deep, tool, arguments).await;
        assert!(
            !found.contains("secrets") && !found.contains("key"),
            "{tool}: {found}"
        );
        assert!(found.contains(said), "{tool}: {found}");
    }

    let ah = session("ah", temp.path(), policy).build().unwrap();
    let found = call(&ah, "read", json!({ "path": "secretz" })).await;
    assert!(!found.contains("secrets"), "{found}");
}

#[tokio::test]
async fn globs_order_and_files_count_in_a_walk() {
    let files = [
        "secrets/key",
        "secrets/public/a",
        "secrets/public/deep/b",
        "src/x.pem",
        "src/.env",
        "src/.env.local",
        "a/plain.txt",
    ];
    let temp = folder(&files);
    let cases: [(&[&str], &[&str], &[&str]); 7] = [
        (&["deny * **/*.pem"], &[], &["src/x.pem"]),
        (&["deny * **/.env*"], &[], &["src/.env", "src/.env.local"]),
        (
            &["deny grep src/**"],
            &[],
            &["src/x.pem", "src/.env", "src/.env.local"],
        ),
        (&["deny read src/**"], &[], &[]),
        (
            &["allow * secrets/public/**", "deny * secrets/**"],
            &[],
            &["secrets/key"],
        ),
        (
            &["deny * secrets/**", "allow * secrets/public/**"],
            &[],
            &["secrets/key", "secrets/public/a", "secrets/public/deep/b"],
        ),
        // What a project allows opens nothing that the person denies, and what it denies
        // is denied.
        (
            &["deny * secrets/key"],
            &["allow * **", "deny * a/**"],
            &["secrets/key"],
        ),
    ];
    for (own, project, closed) in cases {
        let policy = Policy::new(vec![
            rules(Whose::Person, own),
            rules(Whose::Project, project),
        ]);
        let runtime = session("standard", temp.path(), policy).build().unwrap();
        let found = call(&runtime, "grep", json!({ "pattern": CANARY })).await;
        for file in files {
            let is_found = found.contains(&format!("{file}:1:"));
            assert_eq!(is_found, !closed.contains(&file), "{file} {own:?}: {found}");
        }
    }
}

#[tokio::test]
async fn what_rules_ask_about_is_left_out_unless_somebody_said_yes() {
    let temp = folder(&["private/a", "open.txt"]);
    let policy = person(&["ask * private/**"]);
    let build = |approve| {
        session("standard", temp.path(), policy.clone())
            .approve(approve)
            .approver(Arc::new(Yes))
            .build()
            .unwrap()
    };
    let asking = build(Approve::Ask);
    let found = call(&asking, "grep", json!({ "pattern": CANARY })).await;
    assert!(!found.contains("private"), "{found}");
    assert!(
        found.contains("skipped 1: 1 that rules ask about]"),
        "{found}"
    );
    // Asked about the folder, somebody says yes: then what is in it is found.
    let named = json!({ "pattern": CANARY, "path": "private" });
    let found = call(&asking, "grep", named).await;
    assert!(found.contains("private/a:1:"), "{found}");
    let found = call(&build(Approve::Auto), "grep", json!({ "pattern": CANARY })).await;
    assert!(found.contains("private/a:1:"), "{found}");

    // Always means what is in the folder, too.
    let always = session("standard", temp.path(), policy.clone())
        .approver(Arc::new(Always))
        .build()
        .unwrap();
    for _ in 0..2 {
        let named = json!({ "pattern": CANARY, "path": "private" });
        let found = call(&always, "grep", named).await;
        assert!(found.contains("private/a:1:"), "{found}");
    }

    // A rule that asks about every call asks once.
    let runtime = session(
        "standard",
        temp.path(),
        person(&["deny * no/**", "ask grep"]),
    )
    .approver(Arc::new(Yes))
    .build()
    .unwrap();
    let found = call(&runtime, "grep", json!({ "pattern": CANARY })).await;
    assert!(found.contains("private/a:1:"), "{found}");
}

#[tokio::test]
async fn what_is_hidden_from_commands_is_explained() {
    let temp = folder(&["a"]);
    let policy = person(&[
        "allow bash",
        "deny * secrets/**",
        "deny bash **/*.pem",
        "deny read other/**",
    ]);
    let runtime = session("standard", temp.path(), policy).build().unwrap();
    let arguments = json!({ "command": "ls" });
    let explained = runtime
        .explain(&crate::Call::new("bash", arguments))
        .unwrap();
    let hidden: Vec<String> = explained
        .hidden
        .iter()
        .map(|(glob, place)| format!("{glob} {place}"))
        .collect();
    assert_eq!(hidden, ["secrets/** haft.yaml:2", "**/*.pem haft.yaml:3"]);
    let read = crate::Call::new("read", json!({ "path": "a" }));
    assert!(runtime.explain(&read).unwrap().hidden.is_empty());
}

/// A rule about reading `secrets/**` with any tool.
fn about_reading(verdict: Verdict) -> Policy {
    let place = Place {
        file: "haft.yaml".to_owned(),
        line: 1,
    };
    let mut draft = Draft::new(verdict, "*", place);
    draft.effect = Some(crate::Effect::Read);
    draft.path = Some("secrets/**".to_owned());
    Policy::new(vec![RuleFile {
        whose: Whose::Person,
        rules: vec![Rule::new(draft).unwrap()],
    }])
}

#[tokio::test]
async fn an_edit_shows_nothing_of_a_file_that_may_not_be_read() {
    let edits = [
        ("standard", "edit", "path", "old_text", "new_text", ""),
        ("ah", "edit", "path", "old_string", "new_string", ""),
        ("workspace", "edit", "path", "old_text", "new_text", ""),
        (
            "deepagents",
            "edit_file",
            "file_path",
            "old_string",
            "new_string",
            "/",
        ),
    ];
    for (toolset, tool, path, old, new, root) in edits {
        let temp = folder(&["secrets/key", "open/key"]);
        let policy = about_reading(Verdict::Deny);
        let runtime = session(toolset, temp.path(), policy).build().unwrap();
        // One that is nearly there, and one that is there.
        for wanted in ["canary-78 secrets/key", CANARY] {
            let at = format!("{root}secrets/key");
            let reply = runtime
                .call(tool, json!({ path: at, old: wanted, new: "x" }))
                .await;
            let text = format!("{} {:?}", reply.text(), reply.details);
            assert!(reply.is_error(), "{toolset}: {text}");
            assert!(!text.contains(CANARY), "{toolset}: {text}");
            assert!(text.contains("haft.yaml:1"), "{toolset}: {text}");
        }
        let before = std::fs::read_to_string(temp.path().join("secrets/key")).unwrap();
        assert!(before.contains(CANARY), "{toolset}");
        let at = format!("{root}open/key");
        let reply = runtime
            .call(tool, json!({ path: at, old: CANARY, new: "x" }))
            .await;
        assert!(!reply.is_error(), "{toolset}: {}", reply.text());
        // A rule that asks is answered once for reading and writing.
        let policy = about_reading(Verdict::Ask);
        let asking = session(toolset, temp.path(), policy);
        let runtime = asking.approver(Arc::new(Yes)).build().unwrap();
        let at = format!("{root}secrets/key");
        let arguments = json!({ path: at, old: CANARY, new: "x" });
        let refused = session(toolset, temp.path(), about_reading(Verdict::Ask));
        let refused = refused.build().unwrap();
        let reply = refused.call(tool, arguments.clone()).await;
        assert!(reply.is_error(), "{toolset}: {}", reply.text());
        let reply = runtime.call(tool, arguments).await;
        assert!(!reply.is_error(), "{toolset}: {}", reply.text());
    }
}

#[test]
fn what_a_rule_keeps_from_all_tools_is_kept_from_prompts() {
    use haft_ops::Access;
    for (toolset, root) in [("standard", ""), ("workspace", ""), ("deepagents", "/")] {
        let temp = folder(&["secrets/key", "asked/key", "open/key"]);
        let policy = person(&["allow *", "deny * secrets/**", "ask * asked/**"]);
        let closed = |approve: Approve, backing: Option<crate::Backing>| {
            let mut builder = session(toolset, temp.path(), policy.clone()).approve(approve);
            if let Some(backing) = backing {
                builder = builder.backend(backing);
            }
            let runtime = builder.build().unwrap();
            ["secrets/key", "asked/key", "open/key"].map(|file| {
                let path = format!("{root}{file}");
                let path = runtime.scope().resolve(&path, Access::Read).unwrap();
                runtime.for_prompt(path).closed().is_some()
            })
        };
        assert_eq!(closed(Approve::Ask, None), [true, true, false], "{toolset}");
        assert_eq!(closed(Approve::Auto, None), [true, false, false]);
        if toolset == "deepagents" {
            let state = Some(crate::Backing::state());
            assert_eq!(closed(Approve::Ask, state), [true, true, false]);
        }
    }
}
