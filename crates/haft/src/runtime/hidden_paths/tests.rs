//! Tools of every toolset must not find files that rules close.
#![expect(
    clippy::disallowed_methods,
    reason = "tests look at the disk themselves"
)]

use crate::runtime::{ApprovalAnswer, Approve, Approver, Question, Runtime};
use crate::{Policy, Rule, RuleDraft, RuleFile, RuleLocation, RuleOwner, Verdict};
use async_trait::async_trait;
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;

const CANARY: &str = "canary-77";

/// Parses rules such as `deny * secrets/**`.
fn rules(owner: RuleOwner, texts: &[&str]) -> RuleFile {
    let rules = texts.iter().enumerate().map(|(at, text)| {
        let words: Vec<&str> = text.split(' ').collect();
        let verdict = match words[0] {
            "allow" => Verdict::Allow,
            "ask" => Verdict::Ask,
            "deny" => Verdict::Deny,
            other => panic!("{other}"),
        };
        let place = RuleLocation {
            file: "haft.yaml".to_owned(),
            line: at as u64 + 1,
        };
        let mut draft = RuleDraft::new(verdict, words[1], place);
        draft.path = words.get(2).map(|glob| (*glob).to_owned());
        Rule::new(draft).unwrap()
    });
    RuleFile {
        owner,
        rules: rules.collect(),
    }
}

fn person(texts: &[&str]) -> Policy {
    Policy::new(vec![rules(RuleOwner::User, texts)])
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
    async fn ask(&self, _: &Question) -> ApprovalAnswer {
        ApprovalAnswer::Approve
    }
}

struct Always;

#[async_trait]
impl Approver for Always {
    async fn ask(&self, _: &Question) -> ApprovalAnswer {
        ApprovalAnswer::ForSession
    }
}

#[tokio::test]
async fn a_rule_about_a_link_also_closes_its_target() {
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
async fn a_denied_folder_is_denied_with_everything_in_it() {
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
async fn no_tool_of_any_toolset_finds_a_denied_folder() {
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
    // A misspelled name is not corrected to one that is denied.
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
    for (tool, arguments, result) in [
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
        assert!(found.contains(result), "{tool}: {found}");
    }

    let ah = session("ah", temp.path(), policy).build().unwrap();
    let found = call(&ah, "read", json!({ "path": "secretz" })).await;
    assert!(!found.contains("secrets"), "{found}");
}

#[tokio::test]
async fn searches_respect_globs_and_the_order_of_rules() {
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
        // A project's rule cannot allow what the user denies, but it can deny more.
        (
            &["deny * secrets/key"],
            &["allow * **", "deny * a/**"],
            &["secrets/key"],
        ),
    ];
    for (own, project, closed) in cases {
        let policy = Policy::new(vec![
            rules(RuleOwner::User, own),
            rules(RuleOwner::Project, project),
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
async fn files_that_need_approval_are_skipped_without_it() {
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
    // After the user approves the folder, its files are found.
    let named = json!({ "pattern": CANARY, "path": "private" });
    let found = call(&asking, "grep", named).await;
    assert!(found.contains("private/a:1:"), "{found}");
    let found = call(&build(Approve::Auto), "grep", json!({ "pattern": CANARY })).await;
    assert!(found.contains("private/a:1:"), "{found}");

    // An "always" answer covers the files in the folder too.
    let always = session("standard", temp.path(), policy.clone())
        .approver(Arc::new(Always))
        .build()
        .unwrap();
    for _ in 0..2 {
        let named = json!({ "pattern": CANARY, "path": "private" });
        let found = call(&always, "grep", named).await;
        assert!(found.contains("private/a:1:"), "{found}");
    }

    // A rule about every call of a tool asks only once.
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
async fn explain_lists_paths_hidden_from_commands() {
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
    let place = RuleLocation {
        file: "haft.yaml".to_owned(),
        line: 1,
    };
    let mut draft = RuleDraft::new(verdict, "*", place);
    draft.effect = Some(crate::Effect::Read);
    draft.path = Some("secrets/**".to_owned());
    Policy::new(vec![RuleFile {
        owner: RuleOwner::User,
        rules: vec![Rule::new(draft).unwrap()],
    }])
}

#[tokio::test]
async fn an_edit_does_not_reveal_a_file_that_must_not_be_read() {
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
        // Text that is almost in the file, and text that is in it.
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
        // One answer covers reading and writing.
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
fn files_closed_to_all_tools_are_closed_to_prompts() {
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
                runtime.for_prompt(path).exclusion().is_some()
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
