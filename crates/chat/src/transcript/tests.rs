use super::{Transcript, format_count};
use crate::card::Length;
use crate::driver::ChatEvent;
use crate::styled_text::{Line, Styling};
use haft_agent::{AgentEvent, EventKind, Usage};
use serde_json::{Map, Value, json};
use std::time::Instant;

fn agent(event: AgentEvent) -> ChatEvent {
    ChatEvent {
        kind: EventKind::Agent(event),
        sub_agent: None,
        is_background: false,
    }
}

fn tool(event: haft::EventKind) -> ChatEvent {
    ChatEvent {
        kind: EventKind::Tool(event),
        sub_agent: None,
        is_background: false,
    }
}

fn words(delta: &str) -> ChatEvent {
    agent(AgentEvent::MessageUpdate {
        kind: "text",
        delta: delta.to_owned(),
    })
}

fn start(id: &str, name: &str, arguments: Value) -> ChatEvent {
    tool(haft::EventKind::ToolStart {
        call_id: id.to_owned(),
        tool: name.to_owned(),
        arguments,
    })
}

fn end(id: &str, name: &str) -> ChatEvent {
    tool(haft::EventKind::ToolEnd {
        call_id: id.to_owned(),
        tool: name.to_owned(),
        is_error: false,
        details: Map::new(),
        duration_ms: 3,
        bytes: 2048,
        truncated: false,
        content: std::sync::Arc::default(),
    })
}

fn done(reason: &'static str) -> ChatEvent {
    agent(AgentEvent::AgentEnd {
        response: None,
        reason,
        text: String::new(),
        usage: Usage::default(),
        cost: None,
    })
}

fn shown(lines: &[Line]) -> Vec<String> {
    lines.iter().map(Line::text).collect()
}

fn play(transcript: &mut Transcript, events: &[ChatEvent]) -> Vec<String> {
    let see = |seen| transcript.handle(seen, Instant::now(), &|_| None);
    let lines: Vec<Line> = events.iter().flat_map(see).collect();
    shown(&lines)
}

#[test]
fn different_kinds_are_separated() {
    let mut transcript = Transcript::new(60, Styling::Plain);
    let lines = shown(&transcript.user_input("do\nit"));
    assert_eq!(lines, ["", "› do", "  it"]);
    transcript.start_work(Instant::now(), Length::Short);
    let rows = play(
        &mut transcript,
        &[
            words("I look"),
            words(" first.\n"),
            start("1", "read", json!({ "path": "a" })),
            start("2", "read", json!({ "path": "b" })),
            end("2", "read"),
            end("1", "read"),
            words("Both *read*."),
            done("interrupted"),
        ],
    );
    assert_eq!(
        rows,
        [
            "",
            "I look first.",
            "",
            "● read b · 2KB",
            "● read a · 2KB",
            "",
            "Both read.",
            "",
            "stopped"
        ]
    );
    assert!(!transcript.is_working());
    assert!(transcript.live_rows(Instant::now(), 9).is_empty());
}

#[test]
fn work_in_progress_fits_its_room() {
    let now = Instant::now();
    let mut transcript = Transcript::new(60, Styling::Plain);
    transcript.start_work(now, Length::Short);
    assert_eq!(
        shown(&transcript.live_rows(now, 9)),
        ["", "⠋ thinking · 0.0 s"]
    );
    play(&mut transcript, &[words("half a line")]);
    assert_eq!(
        shown(&transcript.live_rows(now, 9)),
        ["half a line", "", "⠋ answering · 0.0 s"]
    );
    play(
        &mut transcript,
        &[start("1", "bash", json!({ "command": "make" }))],
    );
    assert_eq!(shown(&transcript.live_rows(now, 9)), ["", "⠋ bash make"]);
    let output = "1\n2\n3\n4\n5\n".to_owned();
    let update = tool(haft::EventKind::ToolUpdate {
        call_id: "1".to_owned(),
        tool: "bash".to_owned(),
        content: vec![haft::Content::Text { text: output }],
    });
    play(&mut transcript, &[update]);
    assert_eq!(
        shown(&transcript.live_rows(now, 9)),
        ["", "⠋ bash make", "  2", "  3", "  4", "  5"]
    );
    assert_eq!(shown(&transcript.live_rows(now, 2)), ["  4", "  5"]);
}

#[test]
fn a_sub_agents_calls_take_one_line_each_and_its_text_is_hidden() {
    let mut transcript = Transcript::new(60, Styling::Plain);
    transcript.start_work(Instant::now(), Length::Short);
    let by_sub_agent = |mut seen: ChatEvent| {
        seen.sub_agent = Some("child".to_owned());
        seen
    };
    let rows = play(
        &mut transcript,
        &[
            start("1", "task", json!({ "description": "look around" })),
            by_sub_agent(words("secret thoughts\n\n")),
            by_sub_agent(start("2", "grep", json!({ "pattern": "x" }))),
            by_sub_agent(end("2", "grep")),
            end("1", "task"),
        ],
    );
    assert_eq!(rows, ["  ↳ grep x · 2KB", "● task look around · 2KB"]);
}

#[test]
fn calls_of_sub_agents_may_have_the_same_id() {
    let mut transcript = Transcript::new(60, Styling::Plain);
    transcript.start_work(Instant::now(), Length::Short);
    let of = |sub_agent: &str, mut seen: ChatEvent| {
        seen.sub_agent = Some(sub_agent.to_owned());
        seen
    };
    let denied = tool(haft::EventKind::ToolDenied {
        call_id: "1".to_owned(),
        tool: "bash".to_owned(),
        reason: "unknown tool: bash\nAvailable tools: read".to_owned(),
    });
    let rows = play(
        &mut transcript,
        &[
            start("1", "task", json!({ "description": "look around" })),
            of("a", start("1", "grep", json!({ "pattern": "x" }))),
            of("b", denied),
            of("a", end("1", "grep")),
            end("1", "task"),
        ],
    );
    assert_eq!(
        rows,
        [
            "  ↳ bash · refused · unknown tool: bash",
            "  ↳ grep x · 2KB",
            "● task look around · 2KB"
        ]
    );
}

#[test]
fn a_refused_call_shows_its_arguments() {
    let mut transcript = Transcript::new(60, Styling::Plain);
    let asked = tool(haft::EventKind::ApprovalNeeded {
        call_id: "1".to_owned(),
        tool: "bash".to_owned(),
        arguments: json!({ "command": "rm x" }),
        question: None,
    });
    let denied = tool(haft::EventKind::ToolDenied {
        call_id: "1".to_owned(),
        tool: "bash".to_owned(),
        reason: "the user said no".to_owned(),
    });
    assert_eq!(
        play(&mut transcript, &[asked, denied]),
        ["✗ bash rm x · refused", "  the user said no"]
    );
}

#[test]
fn formats_token_counts() {
    let all = [7, 1234, 99_999, 123_456, 1_250_000].map(format_count);
    assert_eq!(all, ["7", "1.2k", "99.9k", "123k", "1.2M"]);
}

#[test]
fn background_tasks_are_shown_while_idle() {
    let mut transcript = Transcript::new(60, Styling::Plain);
    let behind = |seen: ChatEvent, sub_agent: Option<&str>| ChatEvent {
        sub_agent: sub_agent.map(str::to_owned),
        is_background: true,
        ..seen
    };
    let status = |status: &'static str| {
        agent(AgentEvent::BackgroundTask {
            task_id: "t1".to_owned(),
            agent: "researcher".to_owned(),
            description: "find the tests".to_owned(),
            status,
        })
    };
    let now = Instant::now();
    transcript.start_work(now, Length::Short);
    play(&mut transcript, &[behind(status("running"), None)]);
    let call = start("c", "grep", json!({ "pattern": "x" }));
    play(&mut transcript, &[behind(call, Some("t1"))]);
    let live = |transcript: &Transcript| {
        let rows = shown(&transcript.live_rows(Instant::now(), 9));
        let plain = rows.iter().map(|row| {
            let words = row.trim_start_matches(|c: char| !c.is_ascii_alphabetic());
            words.split(" · ").next().unwrap_or_default().to_owned()
        });
        plain.filter(|row| !row.is_empty()).collect::<Vec<_>>()
    };
    // Its call does not hide the agent's own work.
    let task = "in the background: researcher: find the tests";
    assert_eq!(live(&transcript), ["thinking", task, "grep x"]);
    play(&mut transcript, &[done("done")]);
    assert!(!transcript.is_working() && transcript.has_background_work());
    assert_eq!(live(&transcript), [task, "grep x"]);
    let lines = play(&mut transcript, &[behind(end("c", "grep"), Some("t1"))]);
    let line = lines.last().unwrap();
    assert!(line.starts_with("  ↳ grep x · researcher"), "{lines:?}");
    assert_eq!(live(&transcript), [task]);
    // Streamed text stays together.
    transcript.start_work(now, Length::Short);
    let mut lines = play(&mut transcript, &[words("one ")]);
    lines.extend(play(&mut transcript, &[behind(status("done"), None)]));
    lines.extend(play(&mut transcript, &[words("two"), done("done")]));
    let ended = "background task t1 (researcher: find the tests): done".to_owned();
    assert!(
        lines.contains(&ended) && lines.contains(&"one two".to_owned()),
        "{lines:?}"
    );
    assert!(live(&transcript).is_empty() && !transcript.has_background_work());
    // An unanswered task says how to get its question back.
    let lines = play(&mut transcript, &[behind(status("waiting"), None)]);
    let line = lines.join(" ");
    assert!(
        line.contains("your next message brings the question back"),
        "{line}"
    );
    play(&mut transcript, &[behind(status("done"), None)]);
    // When the agent learns of it later, nothing is printed; another status is.
    assert!(play(&mut transcript, &[status("done")]).is_empty());
    assert!(play(&mut transcript, &[status("done")]).contains(&ended));
}

#[test]
fn a_background_question_ends_with_its_task() {
    let mut transcript = Transcript::new(60, Styling::Plain);
    let behind = |seen: ChatEvent| ChatEvent {
        sub_agent: Some("t1".to_owned()),
        is_background: true,
        ..seen
    };
    let asked = tool(haft::EventKind::ApprovalNeeded {
        call_id: "w".to_owned(),
        tool: "write".to_owned(),
        arguments: json!({}),
        question: None,
    });
    play(&mut transcript, &[behind(asked)]);
    assert!(transcript.has_background_work());
    play(&mut transcript, &[behind(done("approval"))]);
    assert!(!transcript.has_background_work());
}

#[test]
fn many_calls_of_a_sub_agent_are_folded() {
    let mut transcript = Transcript::new(60, Styling::Plain);
    let nested = |event: ChatEvent| ChatEvent {
        sub_agent: Some("child".to_owned()),
        ..event
    };
    let mut events = vec![start("t", "task", json!({ "description": "look" }))];
    for number in 0..9 {
        let id = number.to_string();
        events.push(nested(start(&id, "read", json!({ "path": id }))));
        events.push(nested(end(&id, "read")));
    }
    events.push(end("t", "task"));
    let rows = play(&mut transcript, &events);
    assert_eq!(rows.first().unwrap(), "  ↳ read 0 · 2KB");
    let last: Vec<&str> = rows.iter().skip(6).map(String::as_str).collect();
    assert_eq!(
        last,
        ["  ↳ … 3 more calls of sub-agents", "● task look · 2KB"]
    );
}
