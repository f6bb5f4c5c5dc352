//! Prompts, work and replies of sub-agents.

use crate::bed::{
    Bed, DecidingModel, all, calls_tool, children, end, first_result, of_type, results, run, task,
    task_id, team, text_answer, worker,
};
use crate::scripted::{Next, Scripted, calls, fails, text};
use haft_agent::{
    Agent, Message, ModelErrorKind, Subagent, SubagentError, SubagentSpec, Subagents,
};
use serde_json::json;
use std::sync::{Arc, Mutex};

#[tokio::test]
async fn a_sub_agent_works_alone_and_replies_with_its_last_text() {
    let bed = Bed::new();
    bed.file("a.txt", "forty-two");
    let received = Arc::new(Mutex::new(Vec::new()));
    let hears = Arc::clone(&received);
    let child = DecidingModel::new(move |now| {
        let mut received = hears.lock().unwrap();
        received.push(now);
        let next = match received.len() {
            1 => crate::bed::answer(calls([("r", "read", json!({ "path": "a.txt" }))])),
            _ => text_answer("It is forty-two."),
        };
        async move { next }
    });
    let parent = Scripted::new([
        calls_tool("researcher", "What is in a.txt?"),
        text("Thanks."),
    ]);
    let spec = SubagentSpec {
        system_prompt: Some("You look things up.".to_owned()),
        ..worker("researcher")
    };
    let subagents = Subagents {
        surroundings: "Work folder: /somewhere".to_owned(),
        ..team([spec], [("researcher", child)])
    };
    let agent = bed.agent(&parent, subagents).await;
    let names = agent.tools().names();
    assert!(names.contains(&"bash".to_owned()));
    assert_eq!(
        names[names.len() - 6..],
        [
            "general_purpose",
            "researcher",
            "task",
            "check_task",
            "message_task",
            "cancel_task"
        ]
    );
    let events = run(&agent, "Find out.").await;

    let (reply, is_error) = first_result(&parent);
    assert!(!is_error);
    assert!(
        reply.starts_with("It is forty-two.\n\n[task_id: "),
        "{reply}"
    );
    let received = received.lock().unwrap();
    assert_eq!(received[0].history, [Message::prompt("What is in a.txt?")]);
    assert_eq!(
        received[0].tools,
        ["read", "edit", "write", "grep", "find", "ls"]
    );
    assert!(received[0].system.starts_with("You look things up.\n\n"));
    assert!(received[0].system.contains("Work folder: /somewhere"));
    assert!(
        !received[0].system.contains("bash"),
        "{}",
        received[0].system
    );

    // Its events have its own session id and come between the start and the end of the call.
    let ids = children(&events);
    assert_eq!(ids, [task_id(&reply)]);
    let of_child: Vec<_> = events
        .iter()
        .filter(|one| one["session"] == ids[0].as_str())
        .collect();
    assert!(of_child.iter().all(|one| one["parent"] == agent.session()));
    let kinds: Vec<_> = of_child
        .iter()
        .map(|one| one["type"].as_str().unwrap())
        .collect();
    assert_eq!(
        kinds,
        [
            "agent_start",
            "turn_start",
            "tool_start",
            "tool_end",
            "turn_end",
            "turn_start",
            "turn_end",
            "agent_end"
        ]
    );
    let place = |kind: &str| {
        let is_it = |one: &serde_json::Value| one["type"] == kind && one["call_id"] == "ask";
        events.iter().position(is_it).unwrap()
    };
    let inside = &events[place("tool_start")..place("tool_end")];
    assert_eq!(of_type(inside, "agent_end", Some(&ids[0])).len(), 1);
    // Progress is reported as an update of the call.
    let updates = of_type(&events, "tool_update", Some(agent.session()));
    let updates: Vec<_> = updates
        .iter()
        .map(|one| one["content"][0]["text"].as_str().unwrap().to_owned())
        .collect();
    assert!(updates.contains(&"turn 1, read".to_owned()), "{updates:?}");
    // Two turns each, at the same cost.
    assert_eq!(end(&events)["usage"]["input"], 400);
    assert_eq!(agent.usage().output, 40);
    assert!((end(&events)["cost"].as_f64().unwrap() - 0.04).abs() < 1e-9);
}

#[tokio::test]
async fn deepagents_shares_files_but_not_todos_and_replies_with_objects() {
    let bed = Bed::new();
    let runtime = bed.runtime(|builder| builder.toolset("deepagents"));
    let todos = |text: &str| json!({ "todos": [{ "content": text, "status": "pending" }] });
    let model = Scripted::new([
        calls([("p", "write_todos", todos("the parent's plan"))]),
        calls_tool("general_purpose", "Plan and write."),
        // The sub-agent, which uses the same model.
        calls([("r", "read_todos", json!({}))]),
        calls([
            ("t", "write_todos", todos("the child's plan")),
            (
                "w",
                "write_file",
                json!({ "file_path": "/new.txt", "content": "hello" }),
            ),
        ]),
        text("Written."),
        calls([
            ("1", "read_todos", json!({})),
            ("2", "read_file", json!({ "file_path": "/new.txt" })),
        ]),
        text("Done."),
    ]);
    let agent = bed.agent_in(runtime, &model, Subagents::default()).await;
    run(&agent, "Go").await;
    assert_eq!(
        model.tools.lock().unwrap()[2],
        [
            "ls",
            "read_file",
            "write_file",
            "edit_file",
            "delete_file",
            "glob",
            "grep",
            "write_todos",
            "read_todos"
        ]
    );
    let received = model.received.lock().unwrap().clone();
    // It starts with an empty list and does not change the parent's.
    let seen = results(&received[3])[0].content[0]
        .as_text()
        .map(str::to_owned);
    assert_eq!(seen.unwrap(), r#"{"todos":[]}"#);
    let reply = &results(&received[5])[0];
    let words = reply.content[0].as_text().unwrap();
    let reply: serde_json::Value = serde_json::from_str(words).unwrap();
    assert_eq!(
        (&reply["status"], &reply["result"]),
        (&json!("success"), &json!("Written."))
    );
    assert_eq!(reply["task_id"].as_str().unwrap().len(), 12);
    let seen = format!("{:?}", results(&received[6]));
    assert!(seen.contains("parent's plan"), "{seen}");
    assert!(!seen.contains("child's plan"), "{seen}");
    assert!(seen.contains("hello"), "{seen}");
    // When it continues, the sub-agent still has its own list.
    let id = reply["task_id"].as_str().unwrap();
    model.also([
        calls([task("again", "general_purpose", Some(id))]),
        calls([("c", "read_todos", json!({}))]),
        text("Still there."),
        text("Done."),
    ]);
    run(&agent, "On").await;
    let received = model.received.lock().unwrap();
    let seen = format!("{:?}", results(&received[received.len() - 2]));
    assert!(seen.contains("child's plan"), "{seen}");
}

#[tokio::test]
async fn the_full_text_of_a_long_reply_is_stored() {
    let long = format!("{}the end", "A line of a report.\n".repeat(20_000));
    for toolset in ["standard", "ah", "workspace", "deepagents"] {
        let bed = Bed::new();
        let state = Bed::new();
        let runtime = bed.runtime(|builder| {
            builder.toolset(toolset).folders(haft::Folders {
                state: Some(state.folder.path().to_owned()),
                ..haft::Folders::default()
            })
        });
        let child = Scripted::new([text(&long)]);
        let parent = Scripted::new([calls_tool("worker", "Report"), text("Ok.")]);
        let team = team([worker("worker")], [("worker", child)]);
        let agent = bed.agent_in(runtime, &parent, team).await;
        let events = run(&agent, "Go").await;
        let ends = of_type(&events, "tool_end", Some(agent.session()));
        assert_eq!(ends[0]["truncated"], true, "{toolset}");
        let path = ends[0]["details"]["output_path"].as_str().unwrap();
        let (reply, is_error) = first_result(&parent);
        assert!(!is_error && reply.len() < 110_000, "{toolset}");
        // The reply has the path, and the file tools of the toolset can open it.
        assert!(reply.contains(path), "{toolset}: {path}");
        let kept = match path.strip_prefix("/.haft/outputs/") {
            Some(below) => walk(state.folder.path(), below),
            None => path.into(),
        };
        let kept = std::fs::read_to_string(kept).unwrap();
        assert!(kept.starts_with(&long), "{toolset}: {} bytes", kept.len());
    }
}

/// Returns the file whose path ends like this.
fn walk(folder: &std::path::Path, below: &str) -> std::path::PathBuf {
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.ends_with(below) {
                return path;
            }
            if path.is_dir() {
                folders.push(path);
            }
        }
    }
    panic!("no file {below}")
}

#[tokio::test]
async fn a_task_continues_its_conversation() {
    let bed = Bed::new();
    let child = Scripted::new([text("One."), text("Two.")]);
    let parent = Scripted::new([calls([task("t1", "worker", None)])]);
    let agent = bed
        .agent(
            &parent,
            team([worker("worker")], [("worker", child.clone())]),
        )
        .await;
    parent.also([text("Ok.")]);
    run(&agent, "Go").await;
    let id = task_id(&first_result(&parent).0);

    parent.also([calls([task("t2", "worker", Some(&id))]), text("Ok.")]);
    let events = run(&agent, "On").await;
    assert_eq!(children(&events), std::slice::from_ref(&id));
    assert_eq!(task_id(&first_result(&parent).0), id);
    assert!(first_result(&parent).0.starts_with("Two."));
    let received = child.last();
    assert_eq!(received.len(), 3);
    assert_eq!(received[0], Message::prompt("Go on."));

    // A task of another agent cannot be continued.
    for stranger in ["0123456789ab", "../../etc", agent.session()] {
        parent.also([calls([task("t3", "worker", Some(stranger))]), text("Ok.")]);
        run(&agent, "On").await;
        let (reply, is_error) = first_result(&parent);
        assert!(is_error && reply.contains("unknown task_id: "), "{reply}");
        assert!(reply.contains(&id), "{reply}");
    }
    let other = bed
        .agent(
            &parent,
            team([worker("worker")], [("worker", child.clone())]),
        )
        .await;
    parent.also([calls([task("t1", "worker", Some(&id))]), text("Ok.")]);
    run(&other, "On").await;
    assert!(first_result(&parent).1);
    assert_eq!(child.requests(), 2);
}

#[tokio::test]
async fn subagent_types_are_found_by_any_form_of_their_name() {
    let bed = Bed::new();
    let model = Scripted::new([]);
    let agent = bed.agent(&model, team([worker("code-reviewer")], [])).await;
    // By its name, by the name of its tool, and by a short form.
    for (kind, part) in [
        (
            "code-reviewer",
            "sub-agent code-reviewer: its model code-reviewer: no such model",
        ),
        ("code_reviewer", "no such model"),
        ("nobody", "must be one of general_purpose, code_reviewer"),
    ] {
        model.also([calls([task("t", kind, None)]), text("Ok.")]);
        run(&agent, "Go").await;
        let (reply, is_error) = first_result(&model);
        assert!(is_error && reply.contains(part), "{kind}: {reply}");
    }
    model.also([
        calls([task("t", "general", None)]),
        text("Child."),
        text("Ok."),
    ]);
    run(&agent, "Go").await;
    assert!(first_result(&model).0.starts_with("Child."));
    let blank = json!({ "description": " ", "prompt": "", "subagent_type": "general" });
    model.also([calls([("t", "task", blank)]), text("Ok.")]);
    run(&agent, "Go").await;
    assert!(
        first_result(&model).0.contains("must not both be empty"),
        "{:?}",
        first_result(&model)
    );
    model.also([calls_tool("general_purpose", " "), text("Ok.")]);
    run(&agent, "Go").await;
    assert!(first_result(&model).1);
}

#[tokio::test]
async fn a_failure_has_a_reason_and_a_limit_keeps_the_text() {
    let bed = Bed::new();
    bed.file("a.txt", "x");
    let child = Scripted::new([text("Half of it."), fails(ModelErrorKind::Status(401))]);
    let parent = Scripted::new([calls_tool("worker", "Go"), text("Ok.")]);
    let agent = Agent::new(parent.clone(), bed.runtime(|builder| builder)).max_turns(2);
    let subagents = team([worker("worker")], [("worker", child.clone())]);
    let (agent, _) = agent.subagents(subagents).await.unwrap();
    run(&agent, "Go").await;
    let id = task_id(&first_result(&parent).0);
    parent.also([calls([task("t", "worker", Some(&id))]), text("Ok.")]);
    run(&agent, "Go").await;
    let (reply, is_error) = first_result(&parent);
    assert!(
        is_error && reply.contains("sub-agent worker failed: Status(401) happened"),
        "{reply}"
    );

    let read = |n| calls([("r", "read", json!({ "path": "a.txt", "limit": n }))]);
    let with_text = |n| match read(n) {
        Next::ModelReply(mut answer) => {
            let text = format!("I look, {n}.");
            answer.parts.insert(0, haft_agent::Part::Text { text });
            Next::ModelReply(answer)
        }
        next => next,
    };
    child.also([with_text(1), read(2)]);
    parent.also([calls_tool("worker", "Again"), text("Ok.")]);
    run(&agent, "Go").await;
    let (reply, is_error) = first_result(&parent);
    assert!(is_error, "{reply}");
    assert!(
        reply.starts_with("sub-agent worker was stopped before it was done: it reached max_turns (2)\n\nI look, 1.\n\n[task_id: "),
        "{reply}"
    );
}

#[tokio::test]
async fn a_sub_agent_stopped_by_a_limit_is_an_error() {
    for (toolset, read, expected) in [
        (
            "deepagents",
            "read_file",
            ("status", json!("error"), "message"),
        ),
        ("workspace", "read", ("success", json!(false), "error")),
    ] {
        let bed = Bed::new();
        let path = if toolset == "workspace" { "a" } else { "/a" };
        let argument = if toolset == "workspace" {
            "path"
        } else {
            "file_path"
        };
        let child = Scripted::new([1, 2].map(|n| {
            let mut arguments = json!({ "limit": n });
            arguments[argument] = path.into();
            calls([("r", read, arguments)])
        }));
        let parent = Scripted::new([calls_tool("worker", "Go"), text("Ok.")]);
        let runtime = bed.runtime(|builder| builder.toolset(toolset));
        let agent = Agent::new(parent.clone(), runtime).max_turns(2);
        let subagents = team([worker("worker")], [("worker", child.clone())]);
        let (agent, _) = agent.subagents(subagents).await.unwrap();
        run(&agent, "Go").await;
        let (reply, is_error) = first_result(&parent);
        assert!(is_error, "{reply}");
        let reply: serde_json::Value = serde_json::from_str(&reply).unwrap();
        let (field, status, message) = expected;
        assert_eq!(reply[field], status, "{reply}");
        let message = reply[message].as_str().unwrap();
        assert!(message.contains("worker was stopped"), "{message}");
        assert_eq!(reply["result"], "");
        assert!(reply["task_id"].is_string());
    }
}

#[tokio::test]
async fn its_answer_satisfies_its_response_format() {
    let bed = Bed::new();
    let spec = |schema| SubagentSpec {
        response_format: Some(schema),
        ..worker("worker")
    };
    let schema = json!({ "type": "array", "items": { "type": "integer" } });
    let child = Scripted::new([text("One and two."), text("[1,\n 2]")]);
    let parent = Scripted::new([calls_tool("worker", "Count"), text("Ok, in words.")]);
    let subagents = team([spec(schema.clone())], [("worker", child.clone())]);
    let agent = bed.agent(&parent, subagents).await;
    let events = run(&agent, "Go").await;
    // The format applies only to the sub-agent.
    assert_eq!(end(&events)["text"], "Ok, in words.");
    assert!(first_result(&parent).0.starts_with("[1,2]\n\n[task_id: "));
    let ends = of_type(&events, "tool_end", Some(agent.session()));
    assert_eq!(ends[0]["details"]["response"], json!([1, 2]));
    assert_eq!(child.requests(), 2);

    child.also((0..4).map(|_| text("No.")));
    parent.also([calls_tool("worker", "Count"), text("Ok.")]);
    run(&agent, "Again").await;
    let (reply, is_error) = first_result(&parent);
    assert!(
        is_error && reply.contains("does not satisfy response_format"),
        "{reply}"
    );

    let agent = Agent::new(parent, bed.runtime(|builder| builder));
    let bad = team([spec(json!({ "type": 7 }))], []);
    let error = agent.subagents(bad).await.err().unwrap().to_string();
    assert!(
        error.starts_with("sub-agent \"worker\": response_format: "),
        "{error}"
    );
}

#[tokio::test]
async fn a_program_can_build_a_sub_agent_itself() {
    let bed = Bed::new();
    let built = Scripted::new([text("Built.")]);
    let model = built.clone();
    let subagents = Subagents {
        agents: vec![Subagent::Built {
            name: "own".to_owned(),
            description: "Made here.".to_owned(),
            make: Arc::new(move |start| {
                assert!(start.runtime.tools().get("bash").is_none());
                Ok(Agent::new(model.clone(), start.runtime).system("Mine."))
            }),
        }],
        ..Subagents::default()
    };
    let parent = Scripted::new([calls_tool("own", "Go"), text("Ok.")]);
    let agent = bed.agent(&parent, subagents).await;
    let events = run(&agent, "Go").await;
    assert!(first_result(&parent).0.starts_with("Built."));
    let ends = of_type(&events, "agent_end", None);
    assert_eq!(ends[0]["parent"], agent.session());
    assert_eq!(built.requests(), 1);
}

#[tokio::test]
async fn names_and_tools_are_checked_at_setup() {
    let bed = Bed::new();
    let model = Scripted::new([]);
    let wrong = async |subagents: Subagents| {
        let agent = Agent::new(
            model.clone(),
            bed.runtime(|builder| builder.preset("coding")),
        );
        agent.subagents(subagents).await.err().unwrap()
    };
    let spec = |tools: &[&str]| SubagentSpec {
        tools: Some(tools.iter().map(|name| (*name).to_owned()).collect()),
        ..worker("one")
    };
    let error = wrong(team([spec(&["read", "grpe", "no\u{1b}pe"])], [])).await;
    let text = error.to_string();
    assert!(matches!(error, SubagentError::UnknownTools { .. }));
    assert!(
        text.contains("\"one\": unknown tools: grpe, no\\x1bpe; known tools: read"),
        "{text}"
    );
    assert!(matches!(
        wrong(team([worker("read")], [])).await,
        SubagentError::NameTaken { .. }
    ));
    assert!(matches!(
        wrong(team([worker("a b"), worker("a-b")], [])).await,
        SubagentError::NameTaken { .. }
    ));
    assert!(matches!(
        wrong(team([worker("task")], [])).await,
        SubagentError::NameTaken { .. }
    ));
    let waits = SubagentSpec {
        interrupt_on: [("wirte".to_owned(), true)].into(),
        ..worker("one")
    };
    let text = wrong(team([waits], [])).await.to_string();
    assert!(text.contains("wirte"), "{text}");
    // A sub-agent with this name replaces the default one.
    let agent = Agent::new(model.clone(), bed.runtime(|builder| builder));
    let (agent, _) = agent
        .subagents(team([worker("general-purpose")], []))
        .await
        .unwrap();
    let definition = agent.tools().get("general_purpose").unwrap();
    assert!(
        definition
            .definition()
            .description
            .starts_with("Does the work of a general-purpose.")
    );
}

#[test]
fn a_spec_is_read_from_configuration() {
    let spec: SubagentSpec = serde_json::from_value(json!({
        "name": "researcher", "description": "Looks.", "tools": ["read"], "skills": ["./skills"],
        "interrupt_on": { "write": true }, "model": "m", "system_prompt": "Look.",
    }))
    .unwrap();
    assert_eq!(spec.tools.unwrap(), ["read"]);
    assert!(serde_json::from_value::<SubagentSpec>(json!({ "name": "x" })).is_err());
    let unknown = json!({ "name": "x", "description": "y", "promt": "z" });
    assert!(serde_json::from_value::<SubagentSpec>(unknown).is_err());
}

#[tokio::test]
async fn a_sub_agent_has_only_its_own_skills() {
    let bed = Bed::new();
    let skill = bed.folder.path().join("skills/pdf");
    std::fs::create_dir_all(&skill).unwrap();
    std::fs::write(
        skill.join("SKILL.md"),
        "---\nname: pdf\ndescription: Forms.\n---\nFill in.",
    )
    .unwrap();
    let spec = SubagentSpec {
        skills: vec![bed.folder.path().join("skills")],
        tools: Some(vec!["read".to_owned()]),
        ..worker("worker")
    };
    let child = Scripted::new([
        calls([("s", "skill", json!({ "name": "pdf" }))]),
        text("Read."),
    ]);
    let parent = Scripted::new([calls_tool("worker", "Go"), text("Ok.")]);
    let agent = bed
        .agent(&parent, team([spec], [("worker", child.clone())]))
        .await;
    all(agent.prompt("Go").await.unwrap()).await;
    assert_eq!(child.tools.lock().unwrap()[0], ["read", "skill"]);
    assert!(
        first_result(&child).0.contains("Fill in."),
        "{:?}",
        first_result(&child)
    );
    assert!(agent.tools().get("skill").is_none());
}

#[tokio::test]
async fn a_task_keeps_its_type_when_it_continues() {
    let bed = Bed::new();
    let child = Scripted::new([text("Done.")]);
    let parent = Scripted::new([calls([task("t", "worker", None)]), text("Ok.")]);
    let agent = bed
        .agent(&parent, team([worker("worker")], [("worker", child)]))
        .await;
    run(&agent, "Go").await;
    let id = task_id(&first_result(&parent).0);
    parent.also([calls([task("u", "general", Some(&id))]), text("Ok.")]);
    run(&agent, "On").await;
    let (reply, is_error) = first_result(&parent);
    let words = format!("task {id} has subagent_type worker, not general_purpose");
    assert!(is_error && reply.contains(&words), "{reply}");
    parent.also([calls([task("v", "worker", Some("nope"))]), text("Ok.")]);
    run(&agent, "On").await;
    let (reply, _) = first_result(&parent);
    assert!(reply.contains("omit task_id to start a new one"), "{reply}");
}
