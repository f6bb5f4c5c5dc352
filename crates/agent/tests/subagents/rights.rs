//! A sub-agent can do at most what the agent can that asked it.

use crate::bed::{Bed, asks, end, of, run, task, team, told, worker};
use crate::scripted::{Scripted, calls, text};
use async_trait::async_trait;
use haft::{Answer, Approver, Mode, Question, Reply};
use haft_agent::{Agent, Hooks, SubagentError, SubagentSpec, Subagents, ToolCall};
use serde_json::json;
use std::sync::{Arc, Mutex};

#[tokio::test]
async fn what_is_out_of_reach_and_what_was_not_given() {
    let bed = Bed::new();
    let outside = Bed::new();
    outside.file("secret.txt", "top secret");
    std::fs::create_dir(bed.folder.path().join("kept")).unwrap();
    bed.file("kept/a.txt", "old");
    let runtime = bed.runtime(|builder| {
        builder
            .rules(Mode::Strict.rules())
            .protect(vec!["kept".into()])
            .concurrency(9)
    });
    let secret = outside.folder.path().join("secret.txt");
    let child = Scripted::new([
        calls([
            ("1", "read", json!({ "path": secret })),
            (
                "2",
                "write",
                json!({ "path": "kept/a.txt", "content": "new" }),
            ),
            ("3", "bash", json!({ "command": "cat kept/a.txt" })),
            (
                "4",
                "edit",
                json!({ "path": "kept/a.txt", "old_text": "old", "new_text": "new" }),
            ),
            (
                "5",
                "task",
                json!({ "description": "d", "prompt": "p", "subagent_type": "worker" }),
            ),
            ("6", "worker", json!({ "request": "r" })),
            ("7", "read", json!({ "path": "kept/a.txt" })),
        ]),
        text("Tried."),
    ]);
    let spec = SubagentSpec {
        tools: Some(vec!["read".to_owned(), "write".to_owned()]),
        ..worker("worker")
    };
    let parent = Scripted::new([asks("worker", "Try"), text("Ok.")]);
    let agent = bed
        .agent_in(runtime, &parent, team([spec], [("worker", child.clone())]))
        .await;
    run(&agent, "Go").await;
    assert_eq!(child.tools.lock().unwrap()[0], ["read", "write"]);
    let results = crate::bed::results(&child.last());
    let errors: Vec<_> = results.iter().map(|one| one.is_error).collect();
    assert_eq!(errors, [true, true, true, true, true, true, false]);
    let text = format!("{results:?}");
    assert!(!text.contains("top secret"), "{text}");
    assert!(text.contains("path not allowed"), "{text}");
    assert!(text.contains("protected directory"), "{text}");
    assert!(text.contains("unknown tool: bash"), "{text}");
}

#[tokio::test]
async fn depth_has_an_end() {
    let bed = Bed::new();
    let asking = |name: &str| SubagentSpec {
        tools: Some(vec![
            "read".to_owned(),
            "task".to_owned(),
            "worker".to_owned(),
        ]),
        ..worker(name)
    };
    for depth in 1..=3 {
        // Everybody asks another one, as long as that works.
        let child = Scripted::new((0..20).flat_map(|_| [calls([task("t", "worker", None)])]));
        child.also([text("Never.")]);
        let parent = Scripted::new([asks("worker", "Go"), text("Ok.")]);
        let subagents = Subagents {
            max_depth: depth,
            ..team([asking("worker")], [("worker", child.clone())])
        };
        let agent = Agent::new(parent.clone(), bed.runtime(|builder| builder)).max_turns(2);
        let (agent, _) = agent.subagents(subagents).await.unwrap();
        let events = run(&agent, "Go").await;
        assert_eq!(end(&events)["reason"], "done");
        let tools = child.tools.lock().unwrap();
        for (turn, tools) in tools.iter().take(depth).enumerate() {
            let may_ask = tools.contains(&"task".to_owned());
            assert_eq!(
                may_ask,
                turn + 1 < depth,
                "depth {depth}, turn {turn}: {tools:?}"
            );
        }
        let deepest = of(&events, "tool_denied", None);
        assert!(!deepest.is_empty(), "the deepest cannot ask");
        let starts = of(&events, "agent_start", None);
        let depth_of = |start: &serde_json::Value| {
            let mut parent = &start["parent"];
            let mut depth = 0;
            while !parent.is_null() {
                let start = starts.iter().find(|one| one["session"] == *parent);
                parent = &start.unwrap()["parent"];
                depth += 1;
            }
            depth
        };
        let depths = starts.iter().map(|one| depth_of(one));
        assert_eq!(depths.max().unwrap(), depth);
    }
}

#[tokio::test]
async fn one_that_asks_another_gives_no_more_than_it_has() {
    let bed = Bed::new();
    let planner = SubagentSpec {
        tools: Some(vec!["read".to_owned(), "coder".to_owned()]),
        ..worker("planner")
    };
    let coder = SubagentSpec {
        tools: Some(vec!["read".to_owned(), "write".to_owned()]),
        ..worker("coder")
    };
    let write = json!({ "path": "x", "content": "y" });
    let plans = Scripted::new([asks("coder", "Write"), text("Planned.")]);
    let codes = Scripted::new([calls([("w", "write", write)]), text("Could not.")]);
    let parent = Scripted::new([asks("planner", "Go"), text("Ok.")]);
    let subagents = team(
        [planner, coder],
        [("planner", plans.clone()), ("coder", codes.clone())],
    );
    let agent = bed.agent(&parent, subagents).await;
    run(&agent, "Go").await;
    assert_eq!(plans.tools.lock().unwrap()[0], ["read", "coder"]);
    assert_eq!(codes.tools.lock().unwrap()[0], ["read"]);
    assert!(told(&codes).1);
    assert!(!bed.has("x"));
}

struct Veto(Mutex<Vec<String>>);

#[async_trait]
impl Hooks for Veto {
    async fn before_agent(&self, prompt: &mut String) {
        self.0.lock().unwrap().push(prompt.clone());
    }

    async fn before_tool(&self, call: &mut ToolCall) -> Option<Reply> {
        (call.name == "write").then(|| Reply::error("not with me"))
    }
}

#[tokio::test]
async fn who_has_a_say_in_calls_has_it_here_too() {
    let bed = Bed::new();
    let write = json!({ "path": "x", "content": "y" });
    let model = Scripted::new([
        asks("general_purpose", "Write"),
        calls([("w", "write", write)]),
        text("No."),
        text("Ok."),
    ]);
    let hooks = Arc::new(Veto(Mutex::default()));
    let agent = Agent::new(model.clone(), bed.runtime(|builder| builder)).hooks(hooks.clone());
    let (agent, _) = agent.subagents(Subagents::default()).await.unwrap();
    run(&agent, "Go").await;
    assert!(!bed.has("x"));
    assert_eq!(*hooks.0.lock().unwrap(), ["Go"]);
}

struct Asked(Mutex<Vec<Question>>);

#[async_trait]
impl Approver for Asked {
    async fn ask(&self, question: &Question) -> Answer {
        self.0.lock().unwrap().push(question.clone());
        Answer::Approve
    }
}

#[tokio::test]
async fn a_person_is_told_who_asks() {
    let bed = Bed::new();
    let asked = Arc::new(Asked(Mutex::default()));
    let runtime = bed.runtime(|builder| builder.approver(asked.clone()).interrupt_on(["edit"]));
    let asking = SubagentSpec {
        tools: Some(["read", "write", "edit", "inner"].map(str::to_owned).into()),
        ..worker("outer\u{1b}[2J")
    };
    // Its own come on top of those of the agent.
    let inner = SubagentSpec {
        interrupt_on: [("write".to_owned(), true), ("read".to_owned(), false)].into(),
        ..worker("inner")
    };
    let write = json!({ "path": "x", "content": "y" });
    let edit = json!({ "path": "x", "old_text": "y", "new_text": "z" });
    let inners = Scripted::new([
        calls([("w", "write", write.clone())]),
        calls([("e", "edit", edit)]),
        text("Done."),
    ]);
    let outers = Scripted::new([
        calls([("w", "write", write)]),
        asks("inner", "Write"),
        text("Done."),
    ]);
    let parent = Scripted::new([asks("outer__2J", "Go"), text("Ok.")]);
    let subagents = team(
        [asking, inner],
        [("outer\u{1b}[2J", outers), ("inner", inners)],
    );
    let agent = bed.agent_in(runtime, &parent, subagents).await;
    run(&agent, "Go").await;
    assert_eq!(
        std::fs::read_to_string(bed.folder.path().join("x")).unwrap(),
        "z"
    );
    let asked = asked.0.lock().unwrap();
    let who: Vec<_> = asked
        .iter()
        .map(|one| (one.tool.as_str(), one.agent.as_deref().unwrap()))
        .collect();
    assert_eq!(
        who,
        [
            ("write", "outer\\x1b[2J > inner"),
            ("edit", "outer\\x1b[2J > inner")
        ]
    );
}

#[tokio::test]
async fn nothing_is_kept_alive_by_tools_of_sub_agents() {
    let bed = Bed::new();
    let held = Arc::new(());
    let holds = Arc::clone(&held);
    let runtime = bed.runtime(|builder| builder);
    let tool = haft::FromSchema::new(
        "hold",
        "Holds.",
        json!({ "type": "object" }),
        haft::Effect::Pure,
        move |_, _| {
            let held = Arc::clone(&holds);
            async move {
                drop(held);
                Ok::<_, haft::Error>(Reply::from("held"))
            }
        },
    );
    runtime.tools().add_any(Arc::new(tool.unwrap())).unwrap();
    let asking = SubagentSpec {
        tools: Some(["read", "task"].map(str::to_owned).into()),
        ..worker("worker")
    };
    let child = Scripted::new([text("Done.")]);
    let parent = Scripted::new([asks("worker", "Go"), text("Ok.")]);
    let agent = bed
        .agent_in(runtime, &parent, team([asking], [("worker", child)]))
        .await;
    run(&agent, "Go").await;
    assert_eq!(Arc::strong_count(&held), 2);
    drop(agent);
    // What ends the run may still be on its way.
    let begun = std::time::Instant::now();
    while Arc::strong_count(&held) > 1 {
        assert!(begun.elapsed().as_secs() < 5, "the session is still there");
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn it_has_more_tools_than_the_agent_only_where_the_user_says_so() {
    let bed = Bed::new();
    let tools = ["read", "write"].map(str::to_owned).to_vec();
    let spec = |may_exceed| SubagentSpec {
        tools: Some(tools.clone()),
        may_exceed,
        ..worker("worker")
    };
    let writes = || {
        let call = ("w", "write", json!({ "path": "new.txt", "content": "x" }));
        [calls([call]), text("Tried.")]
    };
    let readonly = |builder: haft::Builder| builder.preset("readonly");
    let parent = Scripted::new([]);
    let agent = Agent::new(parent.clone(), bed.runtime(readonly));
    let error = agent
        .subagents(team([spec(false)], []))
        .await
        .err()
        .unwrap();
    assert!(matches!(error, SubagentError::NotGranted { .. }));
    let error = error.to_string();
    assert!(
        error.contains("does not have these tools: write; only"),
        "{error}"
    );

    // The same rules and the same person, all the same.
    for (waits, is_written) in [(true, false), (false, true)] {
        let runtime = bed.runtime(|builder| match waits {
            true => readonly(builder).interrupt_on(["write"]),
            false => readonly(builder),
        });
        let child = Scripted::new(writes());
        parent.also([asks("worker", "Write"), text("Ok.")]);
        let subagents = team([spec(true)], [("worker", child.clone())]);
        let agent = bed.agent_in(runtime, &parent, subagents).await;
        assert!(agent.tools().get("write").is_none());
        run(&agent, "Go").await;
        assert_eq!(child.tools.lock().unwrap()[0], ["read", "write"]);
        assert_eq!(bed.has("new.txt"), is_written);
    }
}
