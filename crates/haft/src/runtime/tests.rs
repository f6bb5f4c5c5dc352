#![expect(
    clippy::disallowed_methods,
    reason = "tests look at the disk themselves"
)]

mod names;
mod undeclared;

use super::*;
use crate::prelude::*;
use crate::{Access, Content, Embedded, FromSchema, Intent, MemoryJournal, Outcome, Resource};
use async_trait::async_trait;
use haft_ops::backend::Memory;
use std::sync::Mutex;
use std::time::Instant;
use tokio_util::sync::CancellationToken;

/// Does what the arguments say.
#[derive(Deserialize, JsonSchema)]
struct ObeyArgs {
    /// What to do.
    what: String,
    /// The file to write.
    file: Option<String>,
}

struct Obedient {
    log: Arc<Mutex<Vec<String>>>,
}

impl Tool for Obedient {
    const NAME: &'static str = "obey";
    const EFFECT: Effect = Effect::Write;
    type Args = ObeyArgs;

    fn resources(&self, args: &ObeyArgs) -> Vec<Resource> {
        args.file
            .iter()
            .map(|file| Resource::Path(file.clone(), Access::Write))
            .collect()
    }

    async fn call(&self, args: ObeyArgs, cx: &Context) -> Result<Reply, Error> {
        let log = |word: &str| {
            self.log
                .lock()
                .unwrap()
                .push(format!("{word} {}", cx.call_id()))
        };
        log("begin");
        match args.what.as_str() {
            "panic" => panic!("as told"),
            "fail" => return Err(Error::failed("as told")),
            "hang" => std::future::pending::<()>().await,
            "watch" => {
                cx.cancel().cancelled().await;
                return Ok(Reply::from("stopped with what there was"));
            }
            "flood" => return Ok(Reply::from("line\n".repeat(100_000)).footer("[the footer]")),
            "resource" => {
                let resource = Embedded {
                    uri: "file:///long".to_owned(),
                    media_type: None,
                    text: Some("line\n".repeat(100_000)),
                    blob: None,
                };
                let reply = Reply::from("before").and_image(PNG, "image/png");
                return Ok(reply.and(Content::Resource { resource }));
            }
            "document" => return Ok(Reply::json(json!({ "text": "line\n".repeat(100_000) }))),
            "update" => cx.update("half"),
            "final" => return Ok(Reply::final_answer("done")),
            _ => tokio::task::yield_now().await,
        }
        log("end");
        Ok(Reply::from(args.what).detail("call", cx.call_id()))
    }
}

/// A PNG with one gray pixel.
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\0\0\0\0\x3a\x7e\x9b\x55\0\0\0\nIDATx\xdac\x68\0\0\0\x82\0\x81\xda\x45\x08\x3b\0\0\0\0IEND\xaeB`\x82";

struct Bench {
    runtime: Runtime,
    log: Arc<Mutex<Vec<String>>>,
    events: Arc<Mutex<Vec<Value>>>,
    _temp: tempfile::TempDir,
}

fn bench(set: impl FnOnce(Builder) -> Builder) -> Bench {
    let log = Arc::new(Mutex::new(Vec::new()));
    let events = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&events);
    let temp = tempfile::TempDir::new().unwrap();
    let work = temp.path().join("work");
    std::fs::create_dir(&work).unwrap();
    let builder = Runtime::builder()
        .dir(work)
        .preset("none")
        .folders(Folders {
            state: Some(temp.path().join("state")),
            ..Folders::default()
        })
        .tool(Obedient {
            log: Arc::clone(&log),
        })
        .on_event(move |event| {
            seen.lock()
                .unwrap()
                .push(serde_json::to_value(event).unwrap())
        });
    Bench {
        runtime: set(builder).build().unwrap(),
        log,
        events,
        _temp: temp,
    }
}

fn plain() -> Bench {
    bench(|builder| builder)
}

impl Bench {
    fn kinds(&self) -> Vec<String> {
        self.events
            .lock()
            .unwrap()
            .iter()
            .map(|event| event["type"].as_str().unwrap().to_owned())
            .collect()
    }
}

#[tokio::test]
async fn a_panic_becomes_a_reply_and_the_session_continues() {
    let bench = plain();
    let reply = bench.runtime.call("obey", json!({"what": "panic"})).await;
    assert!(reply.is_error());
    assert_eq!(reply.text(), "tool \"obey\" panicked: as told");
    assert_eq!(
        bench
            .runtime
            .call("obey", json!({"what": "hello"}))
            .await
            .text(),
        "hello"
    );
    assert_eq!(
        bench.kinds(),
        ["tool_start", "tool_end", "tool_start", "tool_end"]
    );
}

#[tokio::test]
async fn a_tool_that_hangs_is_dropped_at_the_deadline() {
    let bench = bench(|builder| builder.timeout(Duration::from_millis(50)));
    let begun = Instant::now();
    let reply = bench.runtime.call("obey", json!({"what": "hang"})).await;
    assert!(reply.is_error());
    let named = "`tools.timeout` limits every call to 0.1 seconds: raise it to allow more";
    assert_eq!(
        reply.text(),
        format!("timed out after 0.1 seconds\n{named}")
    );
    assert!(begun.elapsed() < Duration::from_secs(10));
    assert_eq!(bench.kinds(), ["tool_start", "tool_end"]);
}

#[tokio::test]
async fn a_cancelled_tool_can_reply_with_partial_results() {
    let bench = plain();
    let cancel = CancellationToken::new();
    let call = Call::new("obey", json!({"what": "watch"})).cancel(cancel.clone());
    let (reply, ()) = tokio::join!(bench.runtime.run(call), async {
        while bench.log.lock().unwrap().is_empty() {
            tokio::task::yield_now().await;
        }
        cancel.cancel();
    });
    assert_eq!(reply.text(), "stopped with what there was");
    let cancelled = Call::new("obey", json!({"what": "hang"})).cancel(cancel);
    let reply = bench.runtime.run(cancelled).await;
    assert!(reply.is_error());
    assert_eq!(reply.text(), "cancelled");
}

#[tokio::test]
async fn invalid_arguments_never_reach_the_tool() {
    let bench = plain();
    let reply = bench.runtime.call("obey", json!({"wat": 1})).await;
    assert!(reply.is_error());
    assert!(
        reply
            .text()
            .starts_with("validation error: missing required parameter \"what\""),
        "{}",
        reply.text()
    );
    assert!(bench.log.lock().unwrap().is_empty());
    assert_eq!(bench.kinds(), ["tool_denied"]);
}

#[tokio::test]
async fn an_unknown_tool_lists_the_existing_ones() {
    let reply = plain().runtime.call("obay", json!({})).await;
    assert!(reply.is_error());
    assert_eq!(
        reply.text(),
        "unknown tool: obay\nDid you mean \"obey\"? Available tools: obey."
    );
}

#[tokio::test]
async fn the_policy_refuses_before_the_tool_runs() {
    let bench = plain();
    let reply = bench
        .runtime
        .call("obey", json!({"what": "x", "file": "/usr/outside"}))
        .await;
    assert!(reply.is_error());
    assert!(
        reply.text().starts_with("path not allowed: /usr/outside\n"),
        "{}",
        reply.text()
    );
    assert!(bench.log.lock().unwrap().is_empty());
    assert_eq!(bench.kinds(), ["tool_denied"]);
}

#[tokio::test]
async fn replies_keep_the_order_of_calls_and_writes_of_one_file_are_serial() {
    let bench = bench(|builder| builder.concurrency(8));
    let calls = (0..20).map(|at| {
        Call::new("obey", json!({"what": format!("w{at}"), "file": "same"})).id(format!("{at}"))
    });
    let replies = bench.runtime.run_all(calls.collect()).await;
    let texts: Vec<String> = replies.iter().map(Reply::text).collect();
    assert_eq!(
        texts,
        (0..20).map(|at| format!("w{at}")).collect::<Vec<_>>()
    );
    let expected: Vec<String> = (0..20)
        .flat_map(|at| [format!("begin {at}"), format!("end {at}")])
        .collect();
    assert_eq!(*bench.log.lock().unwrap(), expected);
}

#[tokio::test]
async fn a_cancelled_call_in_the_queue_lets_no_call_overtake() {
    let bench = plain();
    let queue = &bench.runtime.session.queue;
    let path = bench
        .runtime
        .scope()
        .resolve("same", Access::Write)
        .unwrap();
    let paths = [(path, Access::Write)];
    let running = queue.ticket(&paths, None);
    let waiting = queue.ticket(&paths, None);
    let last = queue.ticket(&paths, None);
    drop(waiting);
    let mut turn = std::pin::pin!(last.turn());
    assert!(
        futures::poll!(turn.as_mut()).is_pending(),
        "the first call is still running"
    );
    drop(running);
    turn.await;
}

#[tokio::test]
async fn a_json_document_is_never_truncated() {
    let bench = plain();
    let reply = bench
        .runtime
        .call("obey", json!({"what": "document"}))
        .await;
    let document: Value = serde_json::from_str(&reply.text()).unwrap();
    assert_eq!(document["text"].as_str().unwrap().len(), 500_000);
}

#[tokio::test]
async fn the_text_of_a_resource_is_truncated_too() {
    let bench = plain();
    let reply = bench
        .runtime
        .call("obey", json!({"what": "resource"}))
        .await;
    let [Content::Text { text }, Content::Image { .. }] = reply.content() else {
        panic!(
            "{:?}",
            reply
                .content()
                .iter()
                .map(Content::bytes)
                .collect::<Vec<_>>()
        );
    };
    assert!(text.starts_with("before\nline\n") && text.len() < 52_000);
    assert!(text.contains("Full output saved to"));
}

#[tokio::test]
async fn a_long_reply_is_truncated_saved_in_full_and_noted() {
    let bench = plain();
    let reply = bench.runtime.call("obey", json!({"what": "flood"})).await;
    let text = reply.text();
    let path = reply.details()["output_path"].as_str().unwrap().to_owned();
    assert!(text.len() < 52_000);
    assert!(
        text.ends_with(&format!(
            "line\n\n[the footer]\n[Showing the first 2000 of 100000 lines, 9.8KB of 488.3KB]\n[Output truncated at 2000 lines. Full output saved to: {path}]"
        )),
        "{}",
        text.chars().rev().take(400).collect::<Vec<_>>().into_iter().rev().collect::<String>()
    );
    let kept = std::fs::read_to_string(&path).unwrap();
    assert!(kept.starts_with(&"line\n".repeat(99_999)) && kept.ends_with("[the footer]"));
    let read = Runtime::builder()
        .dir(bench.runtime.scope().work_dir())
        .every_tool()
        .folders(Folders {
            state: Some(bench._temp.path().join("state")),
            ..Folders::default()
        })
        .build()
        .unwrap();
    let page = read.call("read", json!({"path": path, "limit": 1})).await;
    assert!(
        page.text()
            .starts_with("line\n\n[Showing lines 1-1 of 100002"),
        "{}",
        page.text()
    );
    let denied = read
        .call("write", json!({"path": path, "content": "x"}))
        .await;
    assert!(denied.is_error());
}

#[tokio::test]
async fn updates_reach_the_caller_and_the_events() {
    let bench = plain();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&seen);
    let call = Call::new("obey", json!({"what": "update"}))
        .id("7")
        .on_update(move |update| sink.lock().unwrap().push(update.content.to_vec()));
    bench.runtime.run(call).await;
    assert_eq!(
        *seen.lock().unwrap(),
        [vec![Content::Text {
            text: "half".to_owned()
        }]]
    );
    assert_eq!(bench.kinds(), ["tool_start", "tool_update", "tool_end"]);
    let events = bench.events.lock().unwrap();
    let seqs: Vec<u64> = events
        .iter()
        .map(|event| event["seq"].as_u64().unwrap())
        .collect();
    assert_eq!(seqs, [1, 2, 3]);
    assert_eq!(events[2]["call_id"], "7");
    assert_eq!(events[2]["details"]["call"], "7");
    assert_eq!(events[2]["bytes"], 6);
    assert_eq!(events[2]["truncated"], false);
}

#[tokio::test]
async fn intent_is_recorded_before_and_the_outcome_after() {
    let journal = Arc::new(MemoryJournal::new(10));
    let bench = bench(|builder| builder.journal(Arc::clone(&journal) as Arc<dyn Journal>));
    bench.runtime.call("obey", json!({"What": "x"})).await;
    let [(intent, Some(outcome))] = &journal.calls()[..] else {
        panic!()
    };
    assert_eq!(
        intent.arguments,
        Some(json!({"what": "x"})),
        "recorded after repair"
    );
    assert_eq!(outcome.reply["details"]["repairs"][0]["parameter"], "what");
}

#[tokio::test]
async fn a_batch_of_intents_has_an_outcome_for_each_call() {
    let own = Arc::new(MemoryJournal::new(10));
    let bench = bench(|builder| builder.journal(Arc::clone(&own) as Arc<dyn Journal>));
    let journal = Arc::new(MemoryJournal::new(10));
    let port = Arc::clone(&journal) as Arc<dyn Journal>;
    let calls = vec![
        Call::new("obey", json!({"What": "x"}))
            .id("made")
            .on_end(|reply| Box::pin(async move { *reply = Reply::from("changed") })),
        Call::new("obey", json!({"what": 1.5, "file": []})).id("refused"),
        Call::new("obey", json!({"what": "x"}))
            .id("replaced")
            .instead(Reply::from("instead")),
    ];
    let mut calls = bench.runtime.admit_all(calls).await;
    bench
        .runtime
        .record_intents(&mut calls, &port)
        .await
        .unwrap();
    assert!(bench.log.lock().unwrap().is_empty(), "recorded before");
    let intents: Vec<_> = journal.calls().into_iter().map(|(one, _)| one).collect();
    assert_eq!(intents[0].arguments, Some(json!({"what": "x"})));
    assert_eq!(intents[1].arguments, None);
    let _: Vec<_> = bench.runtime.finish_each(calls).collect().await;

    let recorded = journal.calls();
    let outcome = |id: &str| {
        let found = recorded.iter().find(|(intent, _)| intent.call_id == id);
        found.unwrap().1.clone().unwrap()
    };
    let made = outcome("made");
    assert_eq!(made.reply["content"][0]["text"], "changed");
    let Some(EventKind::ToolEnd { bytes, .. }) = made.event else {
        panic!("{:?}", made.event)
    };
    assert_eq!(bytes, 7, "the event reports the changed reply");
    let refused = outcome("refused");
    assert!(refused.is_error && matches!(refused.event, Some(EventKind::ToolDenied { .. })));
    let replaced = outcome("replaced");
    assert_eq!(replaced.reply["content"][0]["text"], "instead");
    assert_eq!(replaced.event, None);
    assert_eq!(*bench.log.lock().unwrap(), ["begin made", "end made"]);
    assert!(own.calls().is_empty(), "recorded once");
}

struct Broken;

#[async_trait]
impl Journal for Broken {
    async fn intents(&self, _: Vec<Intent>) -> Result<(), Error> {
        Err(Error::Fault("disk full".to_owned()))
    }
    async fn outcome(&self, _: Outcome) -> Result<(), Error> {
        Ok(())
    }
}

#[tokio::test]
async fn a_call_that_cannot_be_recorded_is_not_made() {
    let bench = bench(|builder| builder.journal(Arc::new(Broken)));
    let reply = bench.runtime.call("obey", json!({"what": "x"})).await;
    assert!(reply.is_error());
    assert!(bench.log.lock().unwrap().is_empty());
}

#[tokio::test]
async fn tools_can_be_added_and_removed_in_a_running_session() {
    let bench = plain();
    let schema =
        json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
    let double = || {
        FromSchema::new(
            "double",
            "Doubles.",
            schema.clone(),
            Effect::Pure,
            |arguments, _| async move {
                Ok(Reply::from(format!(
                    "{}",
                    arguments["n"].as_i64().unwrap_or(0) * 2
                )))
            },
        )
        .unwrap()
    };
    bench.runtime.tools().add_any(Arc::new(double())).unwrap();
    assert_eq!(
        bench
            .runtime
            .call("double", json!({"n": "21"}))
            .await
            .text(),
        "42"
    );
    assert!(
        bench.runtime.tools().add_any(Arc::new(double())).is_err(),
        "a second tool with that name is refused"
    );
    bench.runtime.tools().replace(Arc::new(double()));
    assert_eq!(
        bench.runtime.tools().names(),
        ["obey", "double"],
        "the order is stable"
    );
    assert!(bench.runtime.tools().remove("double"));
    assert!(
        bench
            .runtime
            .call("double", json!({"n": 1}))
            .await
            .is_error()
    );
    assert!(!bench.runtime.tools().remove("double"));
}

#[tokio::test]
async fn another_backend_replaces_the_disk() {
    let runtime = Runtime::builder()
        .every_tool()
        .backend(Memory::new())
        .build()
        .unwrap();
    let reply = runtime
        .call("write", json!({"path": "/notes/a.txt", "content": "hello"}))
        .await;
    assert_eq!(reply.text(), "Successfully wrote 5 bytes to /notes/a.txt");
    assert_eq!(
        runtime
            .call("read", json!({"path": "/notes/a.txt"}))
            .await
            .text(),
        "hello"
    );
    assert!(!std::path::Path::new("/notes").exists());
}

#[test]
fn presets_select_tools_and_unknown_names_list_the_existing_ones() {
    let names = |preset: &str| {
        Runtime::builder()
            .preset(preset)
            .build()
            .map(|runtime| runtime.tools().names())
    };
    assert_eq!(names("none").unwrap(), Vec::<String>::new());
    assert_eq!(names(" READONLY ").unwrap().first().unwrap(), "read");
    let error = names("codeing").unwrap_err().to_string();
    assert_eq!(
        error,
        "toolset \"standard\" has no preset \"codeing\"; it has: coding, readonly, web, all, none"
    );
    let error = Runtime::builder()
        .toolset("nope")
        .build()
        .err()
        .unwrap()
        .to_string();
    assert!(error.starts_with("unknown toolset \"nope\"; there are: standard"));
}

#[tokio::test]
async fn a_final_answer_is_marked_as_final() {
    assert!(
        plain()
            .runtime
            .call("obey", json!({"what": "final"}))
            .await
            .is_final()
    );
}
