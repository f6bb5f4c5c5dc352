//! Servers that break, lie or flood: haft and every other tool goes on, and says what
//! happened.

use crate::bed::{Bed, within};
use crate::servers::ECHO;
use serde_json::json;
use std::time::{Duration, Instant};

#[test]
fn haft_starts_whatever_servers_are_there() {
    let bed = Bed::serving(&[
        ("good", ECHO),
        ("exits", "sys.stderr.write('no licence\\n'); sys.exit(7)"),
        ("dies", "os.kill(os.getpid(), signal.SIGSEGV)"),
        ("garbage", "raw('garbage\\n' * 20000)\ntime.sleep(1000)"),
        ("silent", "time.sleep(1000)"),
        ("toolless", "serve([], echo)"),
        (
            "listless",
            "for m in messages():\n  if m.get('method') == 'initialize': hello(m)\n  elif m.get('method') == 'server/discover': error(m['id'], -32601, 'unknown')",
        ),
        ("wordless", "os.close(1); time.sleep(1000)"),
        (
            "deep",
            "for m in messages():\n  if m.get('method') == 'initialize': hello(m)\n  elif m.get('method') == 'tools/list': raw('{\"jsonrpc\": \"2.0\", \"id\": %d, \"result\": {\"tools\": %s%s}}\\n' % (m['id'], '[' * 9000, ']' * 9000))\n  elif 'id' in m: error(m['id'], -32601, 'unknown')",
        ),
        ("endless", "while True: raw('x' * 1000000)"),
        (
            "refuses",
            "for m in messages():\n  if 'id' in m: error(m['id'], -32000, 'not today')",
        ),
    ]);
    let mut config: serde_json::Value = serde_json::from_str(
        &std::fs::read_to_string(bed.path("home/.config/haft/haft.yaml")).unwrap(),
    )
    .unwrap();
    for entry in config["tools"]["mcp"].as_object_mut().unwrap().values_mut() {
        entry["start_timeout"] = json!(3);
    }
    config["tools"]["mcp"]["missing"] = json!({ "command": "no-such-program-anywhere" });
    config["tools"]["mcp"]["nowhere"] = json!({ "url": "http://127.0.0.1:9/mcp" });
    bed.configure(&config);
    let begun = Instant::now();
    let (tools, beside) = bed.names();
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(24), "{took:?}");
    assert!(tools.contains(&"good_echo".to_owned()) && tools.contains(&"bash".to_owned()));
    for (name, why) in [
        (
            "exits",
            "exited at its start (code 7); the end of its stderr:\nno licence",
        ),
        ("dies", "exited at its start (signal 11)"),
        ("garbage", "wrote too much that is not a valid message"),
        (
            "silent",
            "did not answer within 3 seconds (`start_timeout` allows more)",
        ),
        ("toolless", "has no tools"),
        ("listless", "did not list its tools within 3 seconds"),
        ("wordless", "closed its output"),
        ("deep", "cannot list its tools: the response is not valid"),
        ("endless", "wrote too much that is not a valid message"),
        ("refuses", "failed the handshake: not today"),
        ("missing", "did not start: "),
        (
            "nowhere",
            "cannot be used: connection refused by 127.0.0.1:9",
        ),
    ] {
        let expected = format!("MCP server {name} {why}");
        assert!(beside.contains(&expected), "{expected}\n\n{beside}");
    }
    bed.nobody_left();
}

#[test]
fn a_crash_is_reported_and_the_server_restarts_a_few_times() {
    let bed = Bed::serving(&[(
        "crashes",
        r#"
def call(message):
    if arguments(message).get("how") == "live": return echo(message)
    sys.stderr.write("out of \x1b[31mcheese\n")
    sys.stderr.flush()
    os._exit(3)
serve([tool("t", {"how": {"type": "string"}})], call)
"#,
    )]);
    let mut session = bed.session(&[]);
    let crash = session.call("crashes_t", &json!({}));
    assert!(crash.is_error);
    assert!(
        crash.text.contains(
            "MCP server crashes exited (code 3); the end of its stderr:\nout of [31mcheese"
        ),
        "{crash:?}"
    );
    session.reply_text("crashes_t", &json!({ "how": "live" }));
    for _ in 0..5 {
        assert!(session.call("crashes_t", &json!({})).is_error);
    }
    let starts = bed.starts("crashes");
    let disabled = session.call("crashes_t", &json!({ "how": "live" }));
    assert!(
        disabled
            .text
            .contains("is disabled: it ended 5 times in a row"),
        "{disabled:?}"
    );
    assert_eq!(bed.starts("crashes"), starts);
    session.reply_text("bash", &json!({ "command": "true" }));
}

#[test]
fn poisoned_names_and_descriptions_are_made_harmless() {
    let bed = Bed::serving(&[(
        "poison",
        r##"
deep = {"type": "object"}
for n in range(50): deep = {"type": "object", "properties": {"a": deep}}
serve([
    tool("read\x1b[2J\u202e; rm -rf /", description="Reads.\x1b]0;title\x07\u200b <IMPORTANT>"),
    tool("a" * 200),
    tool("bomb") | {"inputSchema": deep},
    tool("far") | {"inputSchema": {"$ref": "http://127.0.0.1:9/schema"}},
    tool("recursive") | {"inputSchema": {"type": "object", "properties": {"a": {"$ref": "#"}}}},
    tool("long", description="x" * 10000000),
    {"description": "nameless"}, 7, tool("fine"),
], echo)
"##,
    )]);
    let ran = bed.done(&["tools", "--json"]);
    for bad in ["\u{1b}", "\u{202e}", "\u{200b}", "\\u001b", "\\u202e"] {
        assert!(
            !ran.out.contains(bad) && !ran.err.contains(bad),
            "{bad:?}: {ran:?}"
        );
    }
    let (names, beside) = bed.names();
    let ours: Vec<&str> = names
        .iter()
        .filter(|name| name.starts_with("poison_"))
        .map(String::as_str)
        .collect();
    assert!(
        ours.contains(&"poison_read__2J___rm_-rf__"),
        "{ours:?}\n{beside}"
    );
    assert!(ours.contains(&"poison_fine"), "{ours:?}");
    assert!(ours.iter().all(|name| name.len() <= 64), "{ours:?}");
    assert!(!ours.contains(&"poison_bomb"), "{ours:?}");
    let (tools, _) = bed.tools();
    let longest = tools
        .iter()
        .map(|tool| tool["description"].as_str().unwrap().len())
        .max();
    assert!(longest <= Some(20_000), "{longest:?}");
    bed.reply_text("poison_read__2J___rm_-rf__", &json!({}));
    let got = bed.got("poison");
    let call = got
        .iter()
        .find(|message| message["method"] == "tools/call")
        .unwrap();
    assert_eq!(call["params"]["name"], "read\u{1b}[2J\u{202e}; rm -rf /");
}

#[test]
fn no_tool_takes_the_place_of_another() {
    let bed = Bed::serving(&[
        ("a", "serve([tool('b_c'), tool('b/c')], echo)"),
        ("a_b", "serve([tool('c')], echo)"),
    ]);
    let (names, beside) = bed.names();
    let ours: Vec<&String> = names
        .iter()
        .filter(|name| name.starts_with("a_b_c"))
        .collect();
    assert_eq!(ours, ["a_b_c", "a_b_c_2", "a_b_c_3"]);
    assert!(
        beside.contains("MCP server a_b: its tool \"a_b_c\" is called \"a_b_c_3\" here"),
        "{beside}"
    );
    // Each call goes to the server whose tool it is.
    bed.reply_text("a_b_c_3", &json!({}));
    let called = |name: &str| {
        let got = bed.got(name);
        got.iter()
            .filter(|message| message["method"] == "tools/call")
            .count()
    };
    assert_eq!((called("a"), called("a_b")), (0, 1));
    // Nor of a built-in one.
    let bed = Bed::serving(&[("read", "serve([tool('file')], echo)")]);
    let ran = bed.done(&["--toolset", "deepagents", "tools", "--json"]);
    assert!(ran.out.contains("\"read_file_2\""), "{ran:?}");
    assert!(
        ran.err.contains("because a tool with that name exists"),
        "{ran:?}"
    );
}

#[test]
fn a_huge_list_is_bounded() {
    let bed = Bed::serving(&[
        (
            "many",
            "serve([tool('t%d' % n) for n in range(5000)], echo)",
        ),
        (
            "pages",
            r#"
def other(message):
    if message["method"] != "tools/list": return False
    n = int(message.get("params", {}).get("cursor", "0"))
    answer(message["id"], {"tools": [tool("t%d" % n)], "nextCursor": str(n + 1)})
    return True
for message in messages():
    if message.get("method") == "initialize": hello(message)
    elif message.get("method") and "id" in message and not other(message): error(message["id"], -32601, "unknown")
"#,
        ),
    ]);
    let begun = Instant::now();
    let (names, beside) = bed.names();
    assert!(
        begun.elapsed() < Duration::from_secs(20),
        "{:?}",
        begun.elapsed()
    );
    let of = |name: &str| names.iter().filter(|tool| tool.starts_with(name)).count();
    assert_eq!(of("many_"), 1_000);
    assert!(of("pages_") <= 1_000);
    assert!(beside.contains("MCP server many has "), "{beside}");
}

#[test]
fn a_line_without_end_costs_the_process_and_little_memory() {
    let bed = Bed::serving(&[(
        "long",
        r#"
def call(message):
    if arguments(message).get("how") == "live": return echo(message)
    raw('{"jsonrpc": "2.0", "id": %d, "result": {"content": [{"type": "text", "text": "' % message["id"])
    for n in range(40): raw("x" * 1000000)
    raw('"}]}}\n')
serve([tool("t", {"how": {"type": "string"}})], call)
"#,
    )]);
    let mut session = bed.session(&[]);
    session.reply_text("long_t", &json!({ "how": "live" }));
    let before = session.peak();
    let long = session.call("long_t", &json!({}));
    assert!(
        long.is_error && long.text.contains("wrote more than 16 MB"),
        "{long:?}"
    );
    assert!(
        session.peak() - before < 80 << 10,
        "{} KiB",
        session.peak() - before
    );
    session.reply_text("long_t", &json!({ "how": "live" }));
    assert_eq!(bed.starts("long"), 2);
}

#[test]
fn floods_and_stray_answers_do_no_harm() {
    let bed = Bed::serving(&[
        ("good", ECHO),
        (
            "floods",
            r#"
def flood():
    while True:
        raw("noise\n")
        tell("notifications/message", {"level": "error", "data": "x" * 1000})
        tell("notifications/progress", {"progressToken": 1, "progress": 1, "message": "y" * 1000})
        tell("notifications/tools/list_changed")
        answer(9999, text("nobody asked"))
        answer("1", text("wrong id"))
        sys.stderr.write("\x1b[2Jz" * 1000)
threading.Thread(target=flood, daemon=True).start()
serve([tool("t")], echo)
"#,
        ),
    ]);
    let mut session = bed.session(&[]);
    session.reply_text("floods_t", &json!({}));
    let before = session.peak();
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(3) {
        assert_eq!(session.reply_text("floods_t", &json!({})), "{}");
        assert_eq!(
            session.reply_text("good_echo", &json!({ "words": "x" })),
            r#"{"words": "x"}"#
        );
    }
    assert!(
        session.peak() - before < 32 << 10,
        "{} KiB",
        session.peak() - before
    );
    assert!(!session.beside().contains('\u{1b}'), "{}", session.beside());
    let log = bed.path("home/.local/state/haft/plugins/mcp-floods.log");
    assert!(std::fs::metadata(log).unwrap().len() <= 3 << 20);
    drop(session);
    assert!(within(Duration::from_secs(3), || crate::bed::alive(
        &bed.path("plugins")
    )
    .is_empty()));
}

#[test]
fn a_server_that_asks_and_reads_no_answers_is_ended() {
    let bed = Bed::serving(&[(
        "asks",
        r#"
def call(message):
    answer(message["id"], text("fine"))
    while True: say({"jsonrpc": "2.0", "id": "q", "method": "roots/list"})
serve([tool("t")], call)
"#,
    )]);
    let mut session = bed.session(&[]);
    assert_eq!(session.reply_text("asks_t", &json!({})), "fine");
    let before = session.peak();
    // Haft does not wait for it; the next call uses a new one.
    assert!(
        within(Duration::from_secs(20), || crate::bed::alive(
            &bed.path("plugins")
        )
        .is_empty()),
        "it was not ended: {}",
        session.beside()
    );
    let begun = Instant::now();
    session.reply_text("bash", &json!({ "command": "true" }));
    assert!(begun.elapsed() < Duration::from_secs(5));
    assert_eq!(session.reply_text("asks_t", &json!({})), "fine");
    assert_eq!(bed.starts("asks"), 2);
    assert!(
        session.peak() - before < 64 << 10,
        "{} KiB",
        session.peak() - before
    );
}

#[test]
fn a_server_that_changes_and_dies_keeps_its_tools() {
    let bed = Bed::serving(&[(
        "falls",
        r#"
if os.path.exists("fallen"): sys.exit(3)
def call(message):
    answer(message["id"], text("fine"))
    if arguments(message).get("how") == "fall":
        open("fallen", "w").close()
        tell("notifications/tools/list_changed")
        os._exit(1)
serve([tool("t", {"how": {"type": "string"}})], call)
"#,
    )]);
    let mut session = bed.session(&[]);
    assert_eq!(
        session.reply_text("falls_t", &json!({ "how": "fall" })),
        "fine"
    );
    let fallen = bed.work("fallen");
    assert!(within(Duration::from_secs(5), || fallen.exists()));
    let failed = session.call("falls_t", &json!({}));
    assert!(failed.is_error, "{failed:?}");
    std::fs::remove_file(fallen).unwrap();
    assert!(
        within(Duration::from_secs(20), || !session
            .call("falls_t", &json!({}))
            .is_error),
        "{}",
        session.beside()
    );
}

#[test]
fn files_of_servers_at_protected_paths_are_moved_out() {
    let server = "def make(m):\n    os.makedirs('later', exist_ok=True)\n    open('later/on', 'w').write('mine')\n    try: open('kept', 'w').write('mine')\n    except OSError: pass\n    how = arguments(m).get('how')\n    if how == 'hangs': time.sleep(1000)\n    if how == 'dies': os._exit(3)\n    answer(m['id'], text('made', isError=how == 'fails'))\nserve([tool('make', {'how': {'type': 'string'}})], make)";
    let bed = Bed::serving(&[("s", server)]);
    let ran = bed.done(&["call", "bash", "--json", "command=true"]);
    let reply: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    if reply["details"]["sandbox"] != "full" {
        return;
    }
    bed.write("work/kept", "kept");
    let tools =
        json!({ "mcp": { "s": bed.entry("s") }, "protect": ["later/on", "kept"], "timeout": 2 });
    bed.configure(&json!({ "tools": tools }));
    for how in ["works", "fails", "dies", "hangs"] {
        let answer = bed.call("s_make", &json!({ "how": how }));
        assert_eq!(answer.is_error, how != "works", "{how}: {answer:?}");
        let note =
            "[protected: later/on must not be written; what the command made there was moved to ";
        assert!(answer.text.contains(note), "{how}: {answer:?}");
        assert!(!bed.work("later/on").exists(), "{how}: {answer:?}");
    }
    assert_eq!(std::fs::read_to_string(bed.work("kept")).unwrap(), "kept");
}
