//! A sub-agent has at most the rights of its parent.

use crate::bed::{Bed, calls_tool, end, first_result, of_type, run, task, team, worker};
use crate::scripted::{Scripted, calls, text};
use async_trait::async_trait;
use haft::{ApprovalAnswer, Approver, Mode, Question, Reply};
use haft_agent::{Agent, Hooks, SubagentError, SubagentSpec, Subagents, ToolCall};
use serde_json::json;
use std::sync::{Arc, Mutex};

#[tokio::test]
async fn tools_that_the_parent_lacks_or_that_were_not_given_are_missing() {
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
    let parent = Scripted::new([calls_tool("worker", "Try"), text("Ok.")]);
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
async fn nesting_depth_is_limited() {
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
        // Each agent calls another one as long as that is allowed.
        let child = Scripted::new((0..20).flat_map(|_| [calls([task("t", "worker", None)])]));
        child.also([text("Never.")]);
        let parent = Scripted::new([calls_tool("worker", "Go"), text("Ok.")]);
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
        let deepest = of_type(&events, "tool_denied", None);
        assert!(!deepest.is_empty(), "the deepest cannot ask");
        let starts = of_type(&events, "agent_start", None);
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
async fn a_nested_sub_agent_has_at_most_its_parents_rights() {
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
    let plans = Scripted::new([calls_tool("coder", "Write"), text("Planned.")]);
    let codes = Scripted::new([calls([("w", "write", write)]), text("Could not.")]);
    let parent = Scripted::new([calls_tool("planner", "Go"), text("Ok.")]);
    let subagents = team(
        [planner, coder],
        [("planner", plans.clone()), ("coder", codes.clone())],
    );
    let agent = bed.agent(&parent, subagents).await;
    run(&agent, "Go").await;
    assert_eq!(plans.tools.lock().unwrap()[0], ["read", "coder"]);
    assert_eq!(codes.tools.lock().unwrap()[0], ["read"]);
    assert!(first_result(&codes).1);
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
async fn hooks_for_tools_apply_to_sub_agents() {
    let bed = Bed::new();
    let write = json!({ "path": "x", "content": "y" });
    let model = Scripted::new([
        calls_tool("general_purpose", "Write"),
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
    async fn ask(&self, question: &Question) -> ApprovalAnswer {
        self.0.lock().unwrap().push(question.clone());
        ApprovalAnswer::Approve
    }
}

#[tokio::test]
async fn approval_questions_name_the_sub_agent() {
    let bed = Bed::new();
    let asked = Arc::new(Asked(Mutex::default()));
    let runtime = bed.runtime(|builder| builder.approver(asked.clone()).interrupt_on(["edit"]));
    let asking = SubagentSpec {
        tools: Some(["read", "write", "edit", "inner"].map(str::to_owned).into()),
        ..worker("outer\u{1b}[2J")
    };
    // They apply in addition to the parent's.
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
        calls_tool("inner", "Write"),
        text("Done."),
    ]);
    let parent = Scripted::new([calls_tool("outer__2J", "Go"), text("Ok.")]);
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
async fn tools_of_sub_agents_do_not_keep_the_agent_alive() {
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
    let parent = Scripted::new([calls_tool("worker", "Go"), text("Ok.")]);
    let agent = bed
        .agent_in(runtime, &parent, team([asking], [("worker", child)]))
        .await;
    run(&agent, "Go").await;
    assert_eq!(Arc::strong_count(&held), 2);
    drop(agent);
    // The run may need a moment to end.
    let begun = std::time::Instant::now();
    while Arc::strong_count(&held) > 1 {
        assert!(begun.elapsed().as_secs() < 5, "the session is still there");
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn only_the_user_can_give_it_more_tools_than_the_agent_has() {
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

    // The rules and the approver still apply.
    for (waits, is_written) in [(true, false), (false, true)] {
        let runtime = bed.runtime(|builder| match waits {
            true => readonly(builder).interrupt_on(["write"]),
            false => readonly(builder),
        });
        let child = Scripted::new(writes());
        parent.also([calls_tool("worker", "Write"), text("Ok.")]);
        let subagents = team([spec(true)], [("worker", child.clone())]);
        let agent = bed.agent_in(runtime, &parent, subagents).await;
        assert!(agent.tools().get("write").is_none());
        run(&agent, "Go").await;
        assert_eq!(child.tools.lock().unwrap()[0], ["read", "write"]);
        assert_eq!(bed.has("new.txt"), is_written);
    }
}
