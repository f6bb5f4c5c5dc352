//! Paths that a tool uses although its `resources` do not name them.

use super::*;
use crate::{Approve, Policy, Rule, RuleDraft, RuleFile, RuleLocation, RuleOwner, Verdict};
use haft_ops::backend::Expect;

/// Writes its call id into files.
#[derive(Deserialize, JsonSchema)]
struct NoteArgs {
    /// The files to write, in order.
    files: Vec<String>,
    /// Another tool to call at the end, with one of the files.
    then: Option<String>,
}

/// Declares no resources.
struct Note {
    log: Arc<Mutex<Vec<String>>>,
}

impl Tool for Note {
    const NAME: &'static str = "note";
    const EFFECT: Effect = Effect::Write;
    type Args = NoteArgs;

    async fn call(&self, args: NoteArgs, cx: &Context) -> Result<Reply, Error> {
        let log = |word: &str| {
            let mut log = self.log.lock().unwrap();
            log.push(format!("{word} {}", cx.call_id()));
        };
        for file in &args.files {
            let path = cx.resolve(file, Access::Write).await?;
            log("begin");
            // Other calls run meanwhile.
            for _ in 0..20 {
                tokio::task::yield_now().await;
            }
            let text = cx.call_id().as_bytes().to_vec();
            cx.backend().write(&path, text, Expect::Anything).await?;
            log("end");
        }
        if let (Some(tool), Some(file)) = (&args.then, args.files.first()) {
            return Ok(cx
                .call_tool(tool, json!({ "what": "x", "file": file }))
                .await);
        }
        Ok(Reply::from("noted"))
    }
}

/// Runs code that writes files.
struct Interpret;

impl Tool for Interpret {
    const NAME: &'static str = "interpret";
    const EFFECT: Effect = Effect::Execute;
    type Args = NoteArgs;

    async fn call(&self, args: NoteArgs, cx: &Context) -> Result<Reply, Error> {
        for file in &args.files {
            cx.resolve(file, Access::Write).await?;
        }
        Ok(Reply::from("resolved"))
    }
}

/// Claims to read only.
struct Sly;

impl Tool for Sly {
    const NAME: &'static str = "sly";
    const EFFECT: Effect = Effect::Read;
    type Args = NoteArgs;

    async fn call(&self, args: NoteArgs, cx: &Context) -> Result<Reply, Error> {
        for file in &args.files {
            cx.resolve(file, Access::Write).await?;
        }
        Ok(Reply::from("resolved"))
    }
}

fn rule(verdict: Verdict, path: Option<&str>, line: u64) -> Rule {
    let place = RuleLocation {
        file: "haft.yaml".to_owned(),
        line,
    };
    let mut draft = RuleDraft::new(verdict, "note", place);
    draft.path = path.map(str::to_owned);
    Rule::new(draft).unwrap()
}

fn with_rules(rules: Vec<Rule>, set: impl FnOnce(Builder) -> Builder) -> Bench {
    bench(|builder| {
        let policy = Policy::new(vec![RuleFile {
            owner: RuleOwner::User,
            rules,
        }]);
        set(with_notes(builder).policy(policy))
    })
}

fn with_notes(builder: Builder) -> Builder {
    let log = Arc::default();
    builder.tool(Note { log }).tool(Sly).tool(Interpret)
}

fn note(files: &[&str]) -> Call {
    Call::new("note", json!({ "files": files }))
}

fn exists(bench: &Bench, file: &str) -> bool {
    bench.runtime.scope().work_dir().join(file).exists()
}

#[tokio::test]
async fn a_rule_that_denies_a_path_applies() {
    let bench = with_rules(vec![rule(Verdict::Deny, Some("secret/**"), 1)], |builder| {
        builder.approve(Approve::Auto)
    });
    let reply = bench.runtime.run(note(&["open", "secret/x"])).await;
    assert_eq!(
        reply.text(),
        "denied: haft.yaml:1 denies this call ({ deny: note, path: \"secret/**\" }): note, write secret/x"
    );
    assert!(exists(&bench, "open") && !exists(&bench, "secret/x"));
}

#[tokio::test]
async fn a_rule_that_asks_about_a_path_refuses_it() {
    let rules = || vec![rule(Verdict::Ask, Some("*.toml"), 1)];
    let bench = with_rules(rules(), |builder| builder);
    let reply = bench.runtime.run(note(&["a.toml"])).await;
    assert_eq!(
        reply.text(),
        "not approved: haft.yaml:1 requires approval ({ ask: note, path: \"*.toml\" }): note, write a.toml, \
         and the user cannot be asked about it while the call runs\n\
         The user can allow it with --approve auto, or the rule { allow: note, path: a.toml } at the top of \
         `policy` in their own settings."
    );
    assert!(!exists(&bench, "a.toml"));
    let auto = with_rules(rules(), |builder| builder.approve(Approve::Auto));
    assert_eq!(auto.runtime.run(note(&["a.toml"])).await.text(), "noted");
    assert!(exists(&auto, "a.toml"));
}

#[tokio::test]
async fn a_rule_that_asks_about_the_whole_call_is_answered_once() {
    let bench = with_rules(vec![rule(Verdict::Ask, None, 1)], |builder| builder);
    let call = || note(&["a", "b"]);
    assert!(bench.runtime.run(call()).await.is_error());
    assert!(!exists(&bench, "a"));
    let approved = call().answered(ApprovalAnswer::Approve);
    assert_eq!(bench.runtime.run(approved).await.text(), "noted");
    assert!(exists(&bench, "b"));
}

#[tokio::test]
async fn permission_to_run_a_program_does_not_include_every_file() {
    let place = |line| RuleLocation {
        file: "haft.yaml".to_owned(),
        line,
    };
    let mut allow = RuleDraft::new(Verdict::Allow, "*", place(1));
    allow.effect = Some(Effect::Execute);
    let mut deny = RuleDraft::new(Verdict::Deny, "*", place(2));
    deny.path = Some("secret/**".to_owned());
    let rules = [allow, deny].map(|draft| Rule::new(draft).unwrap());
    let bench = with_rules(rules.into(), |builder| builder);
    let call = |file: &str| Call::new("interpret", json!({ "files": [file] }));
    assert_eq!(bench.runtime.run(call("open")).await.text(), "resolved");
    let text = bench.runtime.run(call("secret/x")).await.text();
    assert!(text.starts_with("denied: haft.yaml:2 denies"), "{text}");
}

#[tokio::test]
async fn a_tool_that_only_reads_cannot_write() {
    let bench = bench(with_notes);
    let reply = bench.runtime.call("sly", json!({ "files": ["x"] })).await;
    assert_eq!(
        reply.text(),
        "denied: a tool without the effect \"write\" tried to change x"
    );
}

/// Runs calls at the same time and returns the log.
async fn logged(calls: Vec<Call>) -> Vec<String> {
    let log: Arc<Mutex<Vec<String>>> = Arc::default();
    let bench = bench(|builder| {
        let log = Arc::clone(&log);
        builder.tool(Note { log }).concurrency(8)
    });
    let running = bench.runtime.run_all(calls);
    let replies = tokio::time::timeout(Duration::from_secs(30), running).await;
    for reply in replies.expect("calls wait for each other") {
        assert!(!reply.is_error(), "{}", reply.text());
    }
    std::mem::take(&mut log.lock().unwrap())
}

/// Whether no call began before another one had ended.
fn is_serial(log: &[String]) -> bool {
    let pairs = log.chunks(2);
    let matches = |pair: &[String]| match pair {
        [begin, end] => begin.strip_prefix("begin") == end.strip_prefix("end"),
        _ => false,
    };
    pairs.into_iter().all(matches)
}

#[tokio::test]
async fn two_calls_write_the_same_file_one_after_the_other() {
    let log = logged(vec![note(&["same"]).id("1"), note(&["same"]).id("2")]).await;
    assert_eq!(log, ["begin 1", "end 1", "begin 2", "end 2"]);
    let apart = logged(vec![note(&["one"]).id("1"), note(&["two"]).id("2")]).await;
    assert!(!is_serial(&apart), "{apart:?}");
}

#[tokio::test]
async fn calls_that_want_each_others_files_do_not_block_each_other() {
    let calls = vec![note(&["a", "b"]).id("1"), note(&["b", "a"]).id("2")];
    assert_eq!(logged(calls).await.len(), 8);
}

#[tokio::test]
async fn a_call_does_not_wait_for_the_call_that_made_it() {
    let bench = bench(with_notes);
    let arguments = json!({ "files": ["same"], "then": "obey" });
    let running = bench.runtime.call("note", arguments);
    let reply = tokio::time::timeout(Duration::from_secs(30), running).await;
    assert_eq!(reply.expect("the inner call waits").text(), "x");
}

#[tokio::test]
async fn a_call_that_declares_the_file_waits_for_one_that_does_not() {
    let log: Arc<Mutex<Vec<String>>> = Arc::default();
    let bench = bench(|builder| {
        builder.tool(Note {
            log: Arc::clone(&log),
        })
    });
    let calls = vec![
        note(&["same"]).id("1"),
        Call::new("obey", json!({ "what": "x", "file": "same" })).id("2"),
    ];
    // The first call starts before the second one takes its position.
    let runtime = bench.runtime.clone();
    let mut calls = calls.into_iter();
    let first = tokio::spawn({
        let (runtime, call) = (runtime.clone(), calls.next().unwrap());
        async move { runtime.run(call).await }
    });
    while log.lock().unwrap().is_empty() {
        tokio::task::yield_now().await;
    }
    runtime.run(calls.next().unwrap()).await;
    assert_eq!(*log.lock().unwrap(), ["begin 1", "end 1"], "it has waited");
    first.await.unwrap();
}
