//! Replies of a well-behaved server, and the requests it receives.

use crate::bed::{Bed, within};
use crate::servers::{ECHO, Terminal};
use serde_json::json;
use std::time::{Duration, Instant};

#[test]
fn the_tools_of_a_server_are_tools_like_the_others() {
    let bed = Bed::serving(&[("my.echo", ECHO)]);
    let (tools, beside) = bed.tools();
    assert_eq!(beside, "");
    let tool = tools.iter().find(|tool| tool["name"] == "my_echo_echo");
    let tool = tool.unwrap();
    assert_eq!(tool["description"], "Tests.");
    assert_eq!(tool["parameters"]["properties"]["words"]["type"], "string");
    assert_eq!(
        bed.reply_text("my_echo_echo", &json!({ "words": "é" })),
        r#"{"words": "\u00e9"}"#
    );
    let wrong = bed.call("my_echo_echo", &json!({ "words": [] }));
    assert!(
        wrong.is_error && wrong.text.starts_with("validation error: "),
        "{wrong:?}"
    );
    let calls = bed.got("my.echo");
    let calls: Vec<_> = calls
        .iter()
        .filter(|message| message["method"] == "tools/call")
        .collect();
    assert_eq!(calls.len(), 1, "{calls:?}");
    assert_eq!(calls[0]["params"]["name"], "echo");
    assert!(
        calls[0]["params"]["_meta"]["progressToken"].is_number(),
        "{calls:?}"
    );
    bed.nobody_left();
}

#[test]
fn cached_servers_are_started_by_a_call() {
    let bed = Bed::serving(&[("echo", ECHO)]);
    bed.done(&["tools"]);
    assert_eq!(bed.starts("echo"), 1);
    for _ in 0..3 {
        assert!(bed.names().0.contains(&"echo_echo".to_owned()));
    }
    bed.call("ls", &json!({}));
    let mut session = bed.session(&[]);
    assert!(
        session
            .tools()
            .iter()
            .any(|tool| tool["name"] == "echo_echo")
    );
    assert_eq!(bed.starts("echo"), 1);
    session.reply_text("echo_echo", &json!({}));
    session.reply_text("echo_echo", &json!({}));
    assert_eq!(bed.starts("echo"), 2);
}

#[test]
fn failures_of_every_kind_reach_the_model() {
    let bed = Bed::serving(&[(
        "bad",
        r#"
def call(message):
    how = arguments(message).get("how")
    if how == "flag": answer(message["id"], text("it is full", isError=True))
    elif how == "error": error(message["id"], -32000, "no such table \x1b[2J")
    elif how == "number": say({"jsonrpc": "2.0", "id": message["id"], "result": 7})
    elif how == "odd": answer(message["id"], {"content": [{"type": "new", "x": 1}]})
    else: answer(message["id"], {"content": [], "structuredContent": {"a": 1}})
serve([tool("t", {"how": {"type": "string"}})], call)
"#,
    )]);
    let mut session = bed.session(&[]);
    let mut call = |how: &str| {
        let answer = session.call("bad_t", &json!({ "how": how }));
        (answer.is_error, answer.text)
    };
    assert_eq!(call("flag"), (true, "it is full".to_owned()));
    let (is_error, text) = call("error");
    assert!(
        is_error && text.contains("no such table \\x1b[2J"),
        "{text}"
    );
    let (is_error, text) = call("number");
    assert!(
        is_error && text.contains("answered with an invalid result"),
        "{text}"
    );
    assert_eq!(call("odd"), (false, r#"{"type":"new","x":1}"#.to_owned()));
    assert_eq!(call("plain"), (false, r#"{"a":1}"#.to_owned()));
    assert_eq!(bed.starts("bad"), 1, "none of these is a crash");
}

#[test]
fn a_structured_result_that_breaks_its_own_schema_is_an_error_that_says_where() {
    let bed = Bed::serving(&[(
        "typed",
        r#"
def call(message):
    how = arguments(message).get("how")
    structured = {"good": {"rows": 3}, "bad": {"rows": "three"}, "none": {}, "flag": {"rows": "three"}}[how]
    more = {"isError": True} if how == "flag" else {}
    answer(message["id"], text("words", structuredContent=structured, **more))
output = {"type": "object", "properties": {"rows": {"type": "integer"}}, "required": ["rows"]}
how = {"how": {"type": "string"}}
serve([tool("t", how, outputSchema=output), tool("broken", how, outputSchema={"type": 5})], call)
"#,
    )]);
    let (names, beside) = bed.names();
    assert!(names.contains(&"typed_broken".to_owned()), "{names:?}");
    assert!(beside.contains("results are not checked"), "{beside}");
    let mut session = bed.session(&[]);
    let mut call = |tool: &str, how: &str| {
        let answer = session.call(tool, &json!({ "how": how }));
        (answer.is_error, answer.text)
    };
    assert_eq!(call("typed_t", "good"), (false, "words".to_owned()));
    let (is_error, text) = call("typed_t", "bad");
    assert!(
        is_error && text.contains("/rows") && text.contains("integer"),
        "{text}"
    );
    let (is_error, text) = call("typed_t", "none");
    assert!(is_error && text.contains("rows"), "{text}");
    // A failure is text, whatever else comes with it.
    assert_eq!(call("typed_t", "flag"), (true, "words".to_owned()));
    assert_eq!(call("typed_broken", "bad"), (false, "words".to_owned()));
    assert_eq!(bed.starts("typed"), 2, "none of these is a crash");
}

#[test]
fn progress_is_reported_and_extends_the_time_limit() {
    let bed = Bed::serving(&[(
        "slow",
        r#"
def call(message):
    for n in range(8):
        time.sleep(0.25)
        progress(message, n, "step %d" % n)
    answer(message["id"], text("done"))
serve([tool("t")], call)
"#,
    )]);
    let mut entry = bed.entry("slow");
    entry["timeout"] = json!(1);
    bed.configure(&json!({ "tools": { "mcp": { "slow": entry } } }));
    let mut session = bed.session(&[]);
    assert_eq!(session.reply_text("slow_t", &json!({})), "done");
    let reported = format!("{:?}", session.notifications);
    assert!(
        reported.contains("step 0") && reported.contains("step 6"),
        "{reported}"
    );
}

/// The first process lists the tools; the second has them cached and starts the server
/// within the call.
#[test]
fn a_start_takes_nothing_from_the_time_of_a_call() {
    let bed = Bed::serving(&[("slow", "time.sleep(2)\nserve([tool('t')], echo)")]);
    let tools = json!({ "mcp": { "slow": bed.entry("slow") }, "timeout": 1 });
    bed.configure(&json!({ "tools": tools }));
    for _ in 0..2 {
        let answer = bed.call("slow_t", &json!({}));
        assert!(!answer.is_error, "{answer:?}");
    }
    assert_eq!(bed.starts("slow"), 2);
}

#[test]
fn a_damaged_image_is_dropped_and_the_reply_says_why() {
    let bed = Bed::serving(&[(
        "draws",
        r#"
png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR42mNoAAAAggCB2kUIOwAAAABJRU5ErkJggg=="
def call(message):
    words = arguments(message).get("words")
    blocks = [{"type": "text", "text": words}] if words else []
    damaged = png[:56] + "////" + png[60:]
    answer(message["id"], {"content": blocks + [{"type": "image", "data": damaged, "mimeType": "image/png"}]})
serve([tool("t", {"words": {"type": "string"}})], call)
"#,
    )]);
    let alone = bed.call("draws_t", &json!({}));
    assert!(alone.is_error, "{alone:?}");
    assert!(
        alone
            .text
            .starts_with("[the image was left out: this image/png of 67B is damaged"),
        "{alone:?}"
    );
    let beside = bed.call("draws_t", &json!({ "words": "a chart" }));
    assert!(!beside.is_error, "{beside:?}");
    assert!(
        beside.text.starts_with("a chart") && beside.text.contains("was left out: "),
        "{beside:?}"
    );
}

/// A server that never answers, but may report progress.
const HANGS: &str = r#"
def call(message):
    while True:
        time.sleep(0.1)
        if arguments(message).get("lives"): progress(message, 1, "still there")
serve([tool("t", {"lives": {"type": "boolean"}})], call)
"#;

#[test]
fn a_timeout_comes_at_the_configured_time_and_names_the_key() {
    let bed = Bed::serving(&[("hangs", HANGS)]);
    let silent = json!({});
    let lives = json!({ "lives": true });
    let session = "`tools.timeout` limits every call to 1 second: raise it to allow more";
    let entry = "set `timeout` (in seconds) in the entry of the MCP server hangs";
    for (of_session, of_entry, arguments, key) in [
        // Only the session's: the server has the same one.
        (json!(1), json!(null), &silent, session),
        // The session's bounds the whole call, whatever the entry allows.
        (json!(1), json!(30), &silent, session),
        (json!(1), json!(30), &lives, session),
        (json!(30), json!(1), &silent, entry),
        (json!(null), json!(1), &silent, entry),
    ] {
        let mut server = bed.entry("hangs");
        server["timeout"] = of_entry.clone();
        let mut tools = json!({ "mcp": { "hangs": server } });
        if !of_session.is_null() {
            tools["timeout"] = of_session.clone();
        }
        bed.configure(&json!({ "tools": tools }));
        let case = format!("{of_session} {of_entry} {arguments}");
        let mut haft = bed.session(&[]);
        haft.tools();
        let begun = Instant::now();
        let answer = haft.call("hangs_t", arguments);
        let took = begun.elapsed();
        assert!(answer.is_error, "{case}: {answer:?}");
        assert!(
            answer.text.starts_with("timed out after 1 second\n") && answer.text.contains(key),
            "{case}: {answer:?}"
        );
        assert!(took >= Duration::from_secs(1), "{case}: {took:?}");
        assert!(took < Duration::from_secs(10), "{case}: {took:?}");
    }
}

#[test]
fn a_call_without_progress_ends_and_the_next_one_works() {
    let bed = Bed::serving(&[(
        "hangs",
        r#"
signal.signal(signal.SIGTERM, signal.SIG_IGN)
def call(message):
    if arguments(message): time.sleep(1000)
    answer(message["id"], text("fine"))
serve([tool("t")], call)
"#,
    )]);
    let mut entry = bed.entry("hangs");
    entry["timeout"] = json!(1);
    bed.configure(&json!({ "tools": { "mcp": { "hangs": entry } } }));
    let mut session = bed.session(&[]);
    let begun = Instant::now();
    let hung = session.call("hangs_t", &json!({ "forever": true }));
    assert!(hung.is_error && hung.text.contains("timed out"), "{hung:?}");
    assert!(
        begun.elapsed() < Duration::from_secs(4),
        "{:?}",
        begun.elapsed()
    );
    // It does not answer a ping either, so it is ended, and another one is there.
    let next = (0..10).find_map(|_| {
        let next = session.call("hangs_t", &json!({}));
        (!next.is_error).then_some(next.text)
    });
    assert_eq!(next.as_deref(), Some("fine"));
    drop(session);
    bed.nobody_left();
}

#[test]
fn a_cancelled_call_is_cancelled_at_the_server() {
    let bed = Bed::serving(&[(
        "waits",
        r#"
def work(message):
    progress(message, 1, "begun")
    time.sleep(20)
def call(message): threading.Thread(target=work, args=[message], daemon=True).start()
serve([tool("t"), tool("quick")], lambda m: echo(m) if m["params"]["name"] == "quick" else call(m))
"#,
    )]);
    let mut session = bed.session(&[]);
    let number = session.ask("waits_t", &json!({}));
    assert!(within(Duration::from_secs(10), || {
        bed.got("waits")
            .iter()
            .any(|message| message["method"] == "tools/call")
    }));
    session.cancel(number);
    assert!(within(Duration::from_secs(5), || {
        let got = bed.got("waits");
        let call = got
            .iter()
            .find(|message| message["method"] == "tools/call")
            .unwrap();
        let cancelled = got
            .iter()
            .find(|message| message["method"] == "notifications/cancelled");
        cancelled.is_some_and(|cancelled| cancelled["params"]["requestId"] == call["id"])
    }));
    assert_eq!(session.reply_text("waits_quick", &json!({})), "{}");
    assert_eq!(bed.starts("waits"), 1, "one that lives is not ended");
}

#[test]
fn calls_of_one_server_run_at_once() {
    let bed = Bed::serving(&[(
        "many",
        r#"
def work(message):
    time.sleep(0.5)
    echo(message)
serve([tool("t", {"n": {"type": "integer"}})], lambda m: threading.Thread(target=work, args=[m]).start())
"#,
    )]);
    let mut session = bed.session(&[]);
    session.reply_text("many_t", &json!({ "n": 0 }));
    let begun = Instant::now();
    let numbers: Vec<u64> = (1..=8)
        .map(|n| session.ask("many_t", &json!({ "n": n })))
        .collect();
    for (n, number) in (1..=8).zip(numbers) {
        assert_eq!(session.answer(number).text, format!("{{\"n\": {n}}}"));
    }
    assert!(
        begun.elapsed() < Duration::from_secs(3),
        "{:?}",
        begun.elapsed()
    );
}

#[test]
fn a_server_sees_little_and_reaches_no_more_than_commands_do() {
    let bed = Bed::serving(&[(
        "looks",
        r#"
import socket
def call(message):
    found = {"env": dict(os.environ), "roots": None}
    for name in ["outside/canary", "work/mine"]:
        try:
            with open(os.path.join(os.getcwd(), "..", name), "w") as out: out.write("x")
            found[name] = "written"
        except OSError as error: found[name] = "refused"
    try: found["secret"] = open(os.path.expanduser("~/.ssh/id_rsa")).read()
    except OSError: found["secret"] = "closed"
    try:
        socket.create_connection(("127.0.0.1", int(arguments(message)["port"])), 2).close()
        found["network"] = "on"
    except OSError as error: found["network"] = str(error)
    answer(message["id"], text(json.dumps(found)))
serve([tool("t", {"port": {"type": "integer"}})], call)
"#,
    )]);
    bed.write("home/.ssh/id_rsa", "CANARY");
    let mut entry = bed.entry("looks");
    entry["env"] = json!({ "GIVEN": "${WANTED}" });
    bed.configure(&json!({ "tools": { "mcp": { "looks": entry } } }));
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let mut command = bed.command(&["call", "looks_t", &format!("port={port}")]);
    for name in [
        "ANTHROPIC_API_KEY",
        "AWS_SECRET_ACCESS_KEY",
        "GITHUB_TOKEN",
        "OTHER",
    ] {
        command.env(name, "CANARY");
    }
    command.env("WANTED", "wanted").env("LC_ALL", "C.UTF-8");
    let ran = crate::bed::Ended::of(&mut command);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(!ran.out.contains("CANARY"), "{}", ran.out);
    let found: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(found["env"]["GIVEN"], "wanted");
    let usual = ["PATH", "HOME", "LC_ALL", "TMPDIR", "GIVEN", "LC_CTYPE"];
    for name in found["env"].as_object().unwrap().keys() {
        assert!(usual.contains(&name.as_str()), "{name}");
    }
    assert_eq!(found["work/mine"], "written");
    assert_eq!(found["outside/canary"], "refused");
    assert_eq!(found["secret"], "closed");
    assert_eq!(
        found["network"], "on",
        "the person's own servers keep the network"
    );
}

#[test]
fn requests_of_a_server_get_minimal_answers() {
    let bed = Bed::serving(&[(
        "asks",
        r#"
def call(message):
    for n, (method, params) in enumerate([
        ("sampling/createMessage", {"messages": [], "maxTokens": 10}),
        ("roots/list", {}),
        ("elicitation/create", {"message": "your name?", "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}}),
        ("elicitation/create", {"message": "sure?", "requestedSchema": {"type": "object", "properties": {}}}),
    ]): say({"jsonrpc": "2.0", "id": "q%d" % n, "method": method, "params": params})
    answers = {}
    for got in messages():
        if str(got.get("id", "")).startswith("q"): answers[got["id"]] = got.get("result") or got.get("error")
        if len(answers) == 4: break
    answer(message["id"], text(json.dumps(answers)))
serve([tool("t")], call)
"#,
    )]);
    let reply: serde_json::Value =
        serde_json::from_str(&bed.reply_text("asks_t", &json!({}))).unwrap();
    assert_eq!(reply["q0"]["code"], -32601, "{reply}");
    let root = format!("file://{}", bed.path("work").display());
    assert_eq!(reply["q1"]["roots"], json!([{ "uri": root }]), "{reply}");
    assert_eq!(reply["q2"]["action"], "decline", "{reply}");
    assert_eq!(
        reply["q3"]["action"], "decline",
        "cannot ask without a terminal: {reply}"
    );
    // With a yes to everything, only what a yes can answer is answered.
    let auto = bed.call_with(&["--approve", "auto"], "asks_t", &json!({}));
    let reply: serde_json::Value = serde_json::from_str(&auto.text).unwrap();
    assert_eq!(reply["q2"]["action"], "decline", "{reply}");
    assert_eq!(reply["q3"]["action"], "accept", "{reply}");
}

#[test]
fn the_user_is_asked_what_the_server_asks() {
    let bed = Bed::serving(&[(
        "asks",
        r#"
def call(message):
    say({"jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": {"message": "Delete \x1b[8mall 7 tables?",
        "requestedSchema": {"type": "object", "properties": {"sure": {"type": "boolean"}}, "required": ["sure"]}}})
    for got in messages():
        if got.get("id") == "q": break
    answer(message["id"], text(json.dumps(got["result"])))
serve([tool("t")], call)
"#,
    )]);
    let mut entry = bed.entry("asks");
    // The user's time does not count towards the call's limit.
    entry["timeout"] = json!(1);
    bed.configure(&json!({ "tools": { "mcp": { "asks": entry } } }));
    let mut terminal = Terminal::run(&bed, "call asks_t");
    let asked = "MCP server asks asks: Delete \\x1b[8mall 7 tables?";
    let seen = within(Duration::from_secs(10), || terminal.shown().contains(asked));
    assert!(seen, "{}", terminal.shown());
    std::thread::sleep(Duration::from_millis(1_500));
    terminal.type_in("y\n");
    let (code, shown) = terminal.wait();
    assert_eq!(code, Some(0), "{shown}");
    assert!(
        shown.contains(r#"{"action": "accept", "content": {"sure": true}}"#),
        "{shown}"
    );
    assert!(!shown.contains("\u{1b}[8m"), "{shown}");
}

/// A server that asks for a name.
const WHO: &str = r#"
def call(message):
    say({"jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": {"message": "Who \x1b[8mare you?",
        "requestedSchema": {"type": "object", "required": ["name", "plan"], "properties": {
            "name": {"type": "string", "title": "Your name", "minLength": 2},
            "plan": {"type": "string", "oneOf": [{"const": "f", "title": "Free"}, {"const": "p", "title": "Paid"}]},
            "mail": {"type": "string", "format": "email"},
            "seats": {"type": "integer", "minimum": 1, "default": 3},
            "days": {"type": "array", "items": {"type": "string", "enum": ["mon", "tue"]}}}}}})
    for got in messages():
        if got.get("id") == "q": break
    answer(message["id"], text(json.dumps(got["result"])))
serve([tool("t")], call)
"#;

/// Waits for words at a terminal, then types.
fn respond(terminal: &mut Terminal, asked: &str, typed: &str) {
    let seen = within(Duration::from_secs(20), || terminal.shown().contains(asked));
    assert!(seen, "{asked} did not come: {}", terminal.shown());
    terminal.type_in(typed);
}

#[test]
fn the_user_fills_in_a_servers_form() {
    let bed = Bed::serving(&[("asks", WHO)]);
    let mut terminal = Terminal::run(&bed, "call asks_t");
    respond(&mut terminal, "Answer? [y/N] ", "y\n");
    respond(
        &mut terminal,
        "1/5 Your name (at least 2 characters; required): ",
        "A\n",
    );
    respond(&mut terminal, "got 1, expected at least 2 characters", "");
    let again = || terminal.shown().matches("1/5 Your name").count() == 2;
    assert!(
        within(Duration::from_secs(20), again),
        "{}",
        terminal.shown()
    );
    terminal.type_in("Ada\n");
    respond(
        &mut terminal,
        "2/5 plan (1 Free, 2 Paid; required): ",
        "2\n",
    );
    respond(
        &mut terminal,
        "3/5 mail (an email address; Enter: skip): ",
        "\n",
    );
    respond(
        &mut terminal,
        "4/5 seats (a whole number, at least 1; Enter: 3): ",
        "\n",
    );
    respond(
        &mut terminal,
        "5/5 days (several, separated by commas: 1 mon, 2 tue; ",
        "1,2\n",
    );
    let (code, shown) = terminal.wait();
    assert_eq!(code, Some(0), "{shown}");
    let sent = r#"{"action": "accept", "content": {"name": "Ada", "plan": "p", "seats": 3, "days": ["mon", "tue"]}}"#;
    assert!(shown.contains(sent), "{shown}");
    for words in [
        "asks_t is running and asks for input:",
        "  | MCP server asks asks: Who \\x1b[8mare you?",
        "  fields: Your name, plan, mail, seats, days",
        "  your answer goes to asks_t; do not enter passwords or keys",
    ] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    assert!(!shown.contains("\u{1b}[8m"), "{shown}");
}

#[test]
fn the_user_can_decline_a_servers_form() {
    for (typed, then, action) in [
        ("n\n", "", "decline"),
        ("\n", "", "decline"),
        ("\x04", "", "cancel"),
        ("y\n", "\x04", "cancel"),
    ] {
        let bed = Bed::serving(&[("asks", WHO)]);
        let mut terminal = Terminal::run(&bed, "call asks_t");
        respond(&mut terminal, "Answer? [y/N] ", typed);
        if !then.is_empty() {
            respond(&mut terminal, "1/5 Your name", then);
        }
        let (code, shown) = terminal.wait();
        assert_eq!(code, Some(0), "{typed:?}: {shown}");
        let sent = format!(r#"{{"action": "{action}"}}"#);
        assert!(shown.contains(&sent), "{typed:?}: {shown}");
    }
}

#[test]
fn clients_of_haft_get_everything_that_a_server_says_about_a_tool() {
    let bed = Bed::serving(&[(
        "rich",
        r#"
shape = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
hints = {"readOnlyHint": True, "idempotentHint": True}
serve([tool("count", title="Count things", outputSchema=shape, annotations=hints)],
      lambda m: answer(m["id"], text("one", structuredContent={"n": 1})))
"#,
    )]);
    let mut session = bed.session(&["--preset", "all"]);
    let tools = session.tools();
    let named = |name: &str| tools.iter().find(|tool| tool["name"] == name);
    let count = named("rich_count").unwrap();
    assert_eq!(count["title"], "Count things");
    assert_eq!(count["outputSchema"]["required"], json!(["n"]));
    assert_eq!(count["annotations"]["idempotentHint"], true);
    let fetch = named("web_fetch").unwrap();
    assert_eq!(fetch["annotations"]["readOnlyHint"], true);
    assert_eq!(fetch["annotations"]["openWorldHint"], true);
    let params = json!({ "name": "rich_count", "arguments": {} });
    let result = session.request("tools/call", &params);
    assert_eq!(result["structuredContent"], json!({ "n": 1 }), "{result}");
    assert_eq!(result["content"][0]["text"], "one");
}
