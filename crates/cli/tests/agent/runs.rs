//! `haft run` for users and scripts: stdout, stderr and exit codes.

use crate::bed::Bed;
use haft_testing::model::{ModelReply, Turn};
use serde_json::{Value, json};

fn reads_and_says() -> Vec<Turn> {
    let read = ModelReply::calling("c1", "read", &json!({ "path": "a.txt" }));
    vec![read.into(), Turn::text("It says hello.")]
}

#[test]
fn a_task_is_done() {
    let bed = Bed::new(reads_and_says());
    std::fs::write(bed.work("a.txt"), "hello").unwrap();
    let ended = bed.haft(&["run", "What does a.txt say?"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(ended.out, "It says hello.\n");
    assert_eq!(ended.err, "> read path=a.txt\n");
    let request = bed.last_request();
    assert_eq!(
        request["messages"][1]["content"], "What does a.txt say?",
        "{request}"
    );
    let names: Vec<_> = std::fs::read_dir(bed.work(""))
        .unwrap()
        .flatten()
        .map(|entry| entry.file_name())
        .collect();
    assert_eq!(names, ["a.txt"]);
}

#[test]
fn what_failed_is_shown_with_its_reason() {
    let bed = Bed::new(vec![
        ModelReply::calling("c1", "bash", &json!({ "command": "echo out; exit 3" })).into(),
        ModelReply::calling("c2", "read", &json!({ "path": "nowhere.txt" })).into(),
        ModelReply::calling(
            "c3",
            "bash",
            &json!({ "command": "sleep 9", "timeout": 0.2 }),
        )
        .into(),
        ModelReply::calling("c4", "bash", &json!({ "command": "true" })).into(),
        Turn::text("Done."),
    ]);
    let ended = bed.haft(&["run", "Try"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let lines: Vec<_> = ended.err.lines().collect();
    assert_eq!(lines.len(), 7, "{ended:?}");
    assert_eq!(lines[1], "  bash: exit code 3", "{ended:?}");
    assert!(
        lines[3].starts_with("  read failed: ") && lines[3].contains("nowhere.txt"),
        "{ended:?}"
    );
    assert_eq!(
        lines[5], "  bash failed: Command timed out after 0.2 seconds",
        "{ended:?}"
    );
}

#[test]
fn resume_takes_a_word_that_is_no_id_for_a_prompt() {
    let bed = Bed::new(vec![
        Turn::text("One."),
        Turn::text("Two."),
        Turn::text("Three."),
    ]);
    assert_eq!(bed.haft(&["run", "Begin"]).out, "One.\n");
    for (word, answer) in [("continue", "Two.\n"), ("go", "Three.\n")] {
        let ended = bed.haft(&["resume", word]);
        assert_eq!((ended.code, ended.out.as_str()), (Some(0), answer));
        assert!(bed.last_request().to_string().contains(word), "{ended:?}");
    }
    // An id that was mistyped must not reach the model.
    let ended = bed.haft(&["resume", "k3f9m2"]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(
        ended.err.contains("session not found: \"k3f9m2\""),
        "{ended:?}"
    );
    assert_eq!(bed.server.count(), 3);
}

#[test]
fn events_are_one_a_line() {
    let bed = Bed::new(reads_and_says());
    std::fs::write(bed.work("a.txt"), "hello").unwrap();
    let ran = bed.run(&[]);
    assert_eq!(
        (ran.code, ran.reason(), ran.err.as_str()),
        (Some(0), "done", ""),
        "{ran:?}"
    );
    let kinds: Vec<_> = ran
        .events
        .iter()
        .map(|event| event["type"].as_str().unwrap())
        .filter(|kind| *kind != "message_update")
        .collect();
    let expected = [
        "agent_start",
        "turn_start",
        "tool_start",
        "tool_end",
        "turn_end",
        "turn_start",
        "turn_end",
        "agent_end",
    ];
    assert_eq!(kinds, expected);
    let start = &ran.events[0];
    assert_eq!(
        (&start["provider"], &start["model"]),
        (&"openai-completions".into(), &"scripted".into())
    );
    let end = ran.of("tool_end")[0];
    assert_eq!(
        (&end["call_id"], &end["is_error"], &end["truncated"]),
        (&"c1".into(), &false.into(), &false.into())
    );
    assert_eq!(end["bytes"], 5, "{end}");
    assert_eq!(
        end["content"],
        json!([{ "type": "text", "text": "hello" }]),
        "{end}"
    );
    assert!(
        end["duration_ms"].is_u64() && end["details"].is_object(),
        "{end}"
    );
    let last = ran.events.last().unwrap();
    assert_eq!(
        (
            &last["text"],
            &last["usage"]["input"],
            &last["usage"]["output"]
        ),
        (&"It says hello.".into(), &200.into(), &40.into())
    );
    let reply: String = ran
        .of("message_update")
        .iter()
        .filter(|event| event["kind"] == "text")
        .map(|event| event["delta"].as_str().unwrap())
        .collect();
    assert_eq!(reply, "It says hello.");
}

#[test]
fn text_on_stdin_is_appended() {
    let bed = Bed::new(vec![
        Turn::text("one"),
        Turn::text("two"),
        Turn::text("three"),
    ]);
    let sent = |bed: &Bed| bed.last_request()["messages"][1]["content"].clone();
    assert_eq!(
        bed.haft_reading(&["run", "Sum this up"], b"line\nline\n")
            .code,
        Some(0)
    );
    assert_eq!(sent(&bed), "Sum this up\n\nline\nline\n");
    assert_eq!(bed.haft_reading(&["run"], b"only this").out, "two\n");
    assert_eq!(sent(&bed), "only this");
    assert_eq!(
        bed.haft_reading(&["run", "With bytes"], b"a\xff\x00b").code,
        Some(0)
    );
    assert_eq!(sent(&bed), "With bytes\n\na\u{fffd}\0b");
    for (args, stdin) in [
        (&["run"][..], &b""[..]),
        (&["run", ""], b" \n"),
        (&["run", "  \n"], b""),
    ] {
        let ended = bed.haft_reading(args, stdin);
        assert_eq!((ended.code, ended.out.as_str()), (Some(2), ""), "{ended:?}");
        assert!(
            ended.err.starts_with("error: the prompt is empty\nhint: "),
            "{ended:?}"
        );
    }
    let too_much = vec![b'x'; (16 << 20) + 1];
    let ended = bed.haft_reading(&["run", "This"], &too_much);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert_eq!(bed.server.count(), 3);
    // A run that did not start leaves nothing behind.
    assert_eq!(
        bed.says(&["sessions", "list", "--all", "--json"])
            .lines()
            .count(),
        3
    );
}

#[test]
fn quiet_is_quiet_but_for_errors() {
    let bed = Bed::new(reads_and_says());
    let ended = bed.haft(&["run", "--quiet", "What does a.txt say?"]);
    assert_eq!(
        (ended.out.as_str(), ended.err.as_str()),
        ("It says hello.\n", ""),
        "{ended:?}"
    );
    let failed = bed.haft(&["run", "--quiet", "More"]);
    assert_eq!(
        (failed.code, failed.out.as_str()),
        (Some(1), ""),
        "{failed:?}"
    );
    assert!(
        failed
            .err
            .starts_with("error: openai-completions (127.0.0.1:"),
        "{failed:?}"
    );
    assert!(
        failed
            .err
            .contains("answered 400 Bad Request: the script is over"),
        "{failed:?}"
    );
    assert_eq!(failed.err.lines().count(), 1, "{failed:?}");
}

#[test]
fn a_failed_tool_does_not_fail_the_run() {
    let bed = Bed::new(reads_and_says());
    let ran = bed.run(&[]);
    assert_eq!((ran.code, ran.reason()), (Some(0), "done"));
    assert_eq!(ran.of("tool_end")[0]["is_error"], true);
}

/// Text from a model cannot control the terminal, not even through stderr.
#[test]
fn text_of_a_model_is_data() {
    let evil = "\u{1b}]0;owned\u{7}\u{1b}[2J";
    let call = ModelReply::calling(
        format!("c{evil}"),
        format!("no{evil}"),
        &json!({ "path": evil }),
    );
    let bed = Bed::new(vec![call.into(), Turn::status(400, evil)]);
    let ended = bed.haft(&["run", "Go"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(
        !ended.err.contains('\u{1b}') && !ended.err.contains('\u{7}'),
        "{ended:?}"
    );
    assert!(ended.err.lines().count() <= 3, "{ended:?}");
    // Stdout is not a terminal, so results are printed unchanged.
    let bed = Bed::new(vec![Turn::text(evil)]);
    assert_eq!(bed.haft(&["run", "Go"]).out, format!("{evil}\n"));
}

#[test]
fn a_session_can_be_resumed_in_three_ways() {
    let bed =
        Bed::new(|_: &serde_json::Value, number: usize| Turn::text(format!("answer {number}")));
    bed.says(&["run", "First"]);
    let id = bed.newest();
    assert_eq!(bed.says(&["run", "Second", "--continue"]), "answer 1\n");
    assert_eq!(bed.says(&["run", "Third", "--resume", &id]), "answer 2\n");
    assert_eq!(bed.says(&["resume", &id, "Fourth"]), "answer 3\n");
    assert_eq!(bed.says(&["resume", "Fifth word"]), "answer 4\n");
    assert_eq!(
        bed.says(&["sessions", "resume", &id, "Sixth"]),
        "answer 5\n"
    );
    let ran = bed.resume(&[&id, "Seventh"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(ran.events[0]["session"], id.as_str());
    assert_eq!(bed.newest(), id);
    assert_eq!(bed.says(&["sessions", "list", "--json"]).lines().count(), 1);
    let request = bed.last_request();
    let sent: Vec<_> = request["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| message["content"].as_str().unwrap_or_default().to_owned())
        .collect();
    assert_eq!(
        sent[1..],
        [
            "First",
            "answer 0",
            "Second",
            "answer 1",
            "Third",
            "answer 2",
            "Fourth",
            "answer 3",
            "Fifth word",
            "answer 4",
            "Sixth",
            "answer 5",
            "Seventh"
        ]
    );
    // Event numbers continue.
    let events = bed
        .exported()
        .into_iter()
        .filter(|line| line["type"] == "event");
    let seqs: Vec<_> = events.map(|line| line["seq"].as_u64().unwrap()).collect();
    assert!(seqs.is_sorted_by(|a, b| a < b), "{seqs:?}");

    // There is nothing to continue: no request to the model.
    let ended = bed.haft(&["resume", &id]);
    let last = (ended.code, ended.out.as_str());
    assert_eq!(last, (Some(0), "answer 6\n"), "{ended:?}");
    assert!(
        ended
            .err
            .contains("has no pending work; its last answer follows"),
        "{ended:?}"
    );
    let ended = bed.haft(&["resume", "nosuch5ession"]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(
        ended.err.contains("session not found: \"nosuch5ession\""),
        "{ended:?}"
    );
}

/// The system prompt of a request.
fn system(request: &Value) -> String {
    let first = &request["messages"][0];
    assert_eq!(first["role"], "system", "{request}");
    let content = &first["content"];
    let text = content.as_str().or_else(|| content[0]["text"].as_str());
    text.unwrap().to_owned()
}

#[test]
fn the_prompt_says_which_tools_there_are() {
    let read = || ModelReply::calling("c1", "read", &json!({ "path": "a" })).into();
    let bed = Bed::new(vec![read(), Turn::text("Done.")]).and("system_prompt: Be brief.\n");
    std::fs::write(bed.work("AGENTS.md"), "Indent with tabs.\n").unwrap();
    assert_eq!(bed.run(&[]).code, Some(0));
    let section = bed.says(&["tools", "--prompt"]);
    assert!(section.starts_with("Tools: read, "), "{section}");
    let requests = bed.server.received();
    let prompts: Vec<_> = requests.iter().map(|one| system(&one.json())).collect();
    assert_eq!(prompts.len(), 2);
    assert_eq!(prompts[0], prompts[1], "a provider can cache it");
    // Only where a user can be asked can the model request more.
    let (before, rest) = prompts[0].split_once("- If the sandbox refuses").unwrap();
    let prompt = format!("{before}{}", rest.split_once('\n').unwrap().1);
    let at = |text: &str| {
        let found = prompt.find(text.trim());
        found.unwrap_or_else(|| panic!("no {text:?} in {prompt}"))
    };
    assert!(at("Be brief.") < at(&section) && at(&section) < at("Indent with tabs."));

    // Sub-agents are tools, and their prompts list their own tools.
    let ask = ModelReply::calling("c1", "looker", &json!({ "request": "Look" }));
    let bed = Bed::new(vec![ask.into(), Turn::text("Seen."), Turn::text("Done.")])
        .and("subagents:\n  - { name: looker, description: Looks things up., tools: [read] }\n");
    assert_eq!(bed.says(&["run", "Go on"]), "Done.\n");
    let requests = bed.server.received();
    let agent = system(&requests[0].json());
    let names = agent.lines().find(|line| line.starts_with("Tools: "));
    assert!(names.unwrap().contains("looker"), "{agent}");
    assert!(agent.contains("\nlooker: Looks things up."), "{agent}");
    let child = system(&requests[1].json());
    assert!(child.contains("Tools: read.\nread: "), "{child}");
}

/// The sub-agent on the tools page of adk-deepagents, as a setting.
#[test]
fn the_printed_sub_agent_is_asked_and_knows_only_its_request() {
    let printed = include_str!("../seeds/subagents.txt");
    let (_, rest) = printed.split_once("SubAgentSpec(\n").unwrap();
    let (spec, _) = rest.split_once("        ),\n").unwrap();
    let lines = spec.lines().map(|line| {
        let (key, value) = line.trim().trim_end_matches(',').split_once('=').unwrap();
        format!("    {key}: {value}\n")
    });
    let entry = lines.collect::<String>().replacen("   ", "  -", 1);
    let ask = ModelReply::calling("c1", "researcher", &json!({ "request": "Find the parser" }));
    let turns = vec![
        ask.into(),
        Turn::text("In src/parse.rs."),
        Turn::text("Found."),
    ];
    let more = format!("tools: {{ toolset: deepagents }}\nsubagents:\n{entry}");
    let bed = Bed::new(turns).and(&more);
    assert_eq!(bed.says(&["run", "Where is the parser?"]), "Found.\n");
    let requests: Vec<Value> = bed.server.received().iter().map(|one| one.json()).collect();
    let tools = |request: &Value| -> Vec<Value> {
        let tools = request["tools"].as_array().unwrap().iter();
        tools.map(|tool| tool["function"].clone()).collect()
    };
    let offered = tools(&requests[0]);
    let named = |name: &str| offered.iter().find(|tool| tool["name"] == name);
    let description = named("researcher").unwrap()["description"]
        .as_str()
        .unwrap();
    assert!(
        description.starts_with("Searches the codebase for relevant files and patterns."),
        "{description}"
    );
    // A general one always exists.
    assert!(named("general_purpose").is_some(), "{offered:?}");
    let child = &requests[1];
    assert!(
        system(child).contains("You are a code research assistant. Search thoroughly."),
        "{child}"
    );
    let reported = child.to_string();
    assert!(
        reported.contains("Find the parser") && !reported.contains("Where is the parser?"),
        "{reported}"
    );
    // The parent's file and todo tools, and no commands.
    let names: Vec<Value> = tools(child)
        .iter()
        .map(|tool| tool["name"].clone())
        .collect();
    for name in [
        "ls",
        "read_file",
        "write_file",
        "edit_file",
        "glob",
        "grep",
        "write_todos",
        "read_todos",
    ] {
        assert!(names.contains(&json!(name)), "{names:?}");
    }
    assert!(!names.contains(&json!("execute")), "{names:?}");
    assert!(requests[2].to_string().contains("In src/parse.rs."));
}
