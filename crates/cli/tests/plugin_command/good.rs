//! Plugins that work.

use crate::bed::{Bed, GOOD, python};

#[test]
fn a_small_plugin_is_good_and_every_line_is_shown() {
    let ended = Bed::new().test(&python(GOOD));
    ended.is_good("good: 1 tool, 12 checks passed");
    for line in [
        "  → {\"type\":\"describe\",\"protocol\":2}\n",
        "  ← {\"name\": \"shout\", ",
        "\n✓ starts and keeps running\n",
        "\n✓ handshake: protocol describe (",
        "\n✓ definition of shout: 1 parameter, 1 required\n",
        "  → {\"type\":\"call\",\"name\":\"shout\",\"call_id\":\"test-1\",\"params\":{\"text\":\"example\"}}\n",
        "\n✓ shout, with required arguments: answered (",
        "\n✓ quotes, newlines and several scripts: answered (",
        "\n✓ a text of 100 KB: answered (",
        "\n✓ exits when stdin closes: exited with code 0 (",
        "\n✓ leaves no processes running\n",
        "\n✓ only messages on stdout\n",
        "\n✓ repeats call_id: no, which is fine\n",
    ] {
        ended.has(line);
    }
    assert!(!ended.out.contains('\x1b'), "colours without a terminal");
    assert!(
        ended.out.lines().all(|line| line.chars().count() <= 310),
        "{}",
        ended.out
    );
}

#[test]
fn a_simple_script_of_a_shell_is_good() {
    let bed = Bed::new();
    bed.file(
        "tool.sh",
        r#"#!/bin/bash
while IFS= read -r line; do
    case $line in
        *'"type":"describe"'*)
            echo '{"name":"now","description":"Tell the time.","parameters":{"type":"object","properties":{}}}' ;;
        *'"type":"call"'*)
            echo '{"content":[{"type":"text","text":"'"$(date +%T)"'"}],"error":false}' ;;
    esac
done
"#,
    );
    let ended = bed.haft(&["plugin", "test", "bash", "tool.sh"]);
    assert_eq!(ended.code, Some(0), "{}", ended.out);
    assert!(
        ended.verdict().starts_with("good: 1 tool, "),
        "{}",
        ended.out
    );
    ended.has("now, without arguments: answered");
}

#[test]
fn several_tools_and_optional_parameters_are_all_tried() {
    let program = python(
        "\
number = {'type': 'integer', 'description': 'A number', 'minimum': 5, 'maximum': 9}
unit = {'type': 'string', 'description': 'A unit', 'enum': ['metre', 'mile']}
list = {'type': 'array', 'description': 'A list', 'minItems': 2, 'items': {'type': 'number', 'exclusiveMinimum': 3}}
word = {'type': 'string', 'description': 'A word', 'pattern': '^[0-9]{3}$'}
schema = {'type': 'object', 'properties': {'number': number, 'unit': unit, 'list': list, 'word': word}, 'required': ['number']}
if message['type'] == 'describe':
    say({'tools': [{'name': 'one', 'description': 'First.', 'parameters': schema}, {'name': 'two', 'description': 'Second.', 'parameters': {'type': 'object', 'properties': {}}}]})
else: say({'call_id': message.get('call_id', ''), **reply(message.get('name', ''), 'params' not in message or message.get('name') not in ('one', 'two'))})
",
    );
    let ended = Bed::new().test(&program);
    ended.is_good("good: 2 tools, 15 checks passed");
    ended.has("\"params\":{\"number\":5}}");
    ended.has("\"params\":{\"number\":5,\"unit\":\"metre\",\"list\":[4,4],\"word\":\"123\"}}");
    ended.has("✓ one, with all parameters: answered");
    ended.has("✓ two, without arguments: answered");
    ended.has("✓ repeats call_id\n");
    assert!(!ended.out.contains("not called"), "{}", ended.out);
}

#[test]
fn the_init_protocol_is_found() {
    let program = python(
        "\
if message['type'] == 'init': say({'type': 'init', 'tools': [DEFINITION]})
elif message['type'] == 'call': say({'type': 'result', 'call_id': message['call_id'], 'is_error': False, **shout(message)})
",
    );
    let ended = Bed::new().test(&program);
    assert_eq!(ended.code, Some(0), "{}", ended.out);
    ended.has("  → {\"type\":\"init\",\"tools\":[]}\n");
    ended.has("✓ handshake: protocol init (");
    ended.has("asking again with the one it answered");
}

#[test]
fn the_second_protocol_is_tried() {
    let program = r#"
import json, sys, threading
lock = threading.Lock()
def say(message):
    with lock:
        print(json.dumps(message), flush=True)
def block(text): return [{"type": "text", "text": text}]
stops = {}
def work(message, stop):
    say({"type": "update", "call_id": message["call_id"], "content": block("half")})
    stopped = stop.wait(0.05)
    say({"type": "result", "call_id": message["call_id"], "content": block("done"), "error": stopped})
for line in sys.stdin:
    try: message = json.loads(line)
    except ValueError: continue
    if message["type"] == "describe":
        say({"protocol": 2, "name": "wait", "description": "Wait.", "parameters": {"type": "object", "properties": {}}})
    elif message["type"] == "call":
        stops[message["call_id"]] = threading.Event()
        threading.Thread(target=work, args=(message, stops[message["call_id"]])).start()
    elif message["type"] == "cancel":
        stops[message["call_id"]].set()
"#;
    let ended = Bed::new().test(program);
    assert_eq!(ended.code, Some(0), "{}", ended.out);
    for line in [
        "protocol describe, version 2",
        "✓ two calls at once: each answered with its call_id",
        "  → {\"type\":\"cancel\",\"call_id\":\"test-",
        "✓ a cancelled call: answered",
        "✓ the call after it: answered",
        "✓ updates: ",
        "✓ repeats call_id\n",
    ] {
        ended.has(line);
    }
}

#[test]
fn a_flood_on_stderr_does_not_block() {
    let program = python(&format!(
        "sys.stderr.write('\\x1b[2Jx' * 40 + '\\n' + 'y\\n' * 300000)\n{GOOD}"
    ));
    let ended = Bed::new().test(&program);
    assert_eq!(ended.code, Some(0), "{}", ended.out);
    ended.has("  ! \\x1b[2Jx");
    ended.has(" more lines on stderr\n");
    ended.has("⚠ log on stderr: ");
    assert!(ended.out.len() < 60_000, "{}", ended.out.len());
}

#[test]
fn pretty_messages_are_understood_and_named() {
    let program = python(GOOD).replace("json.dumps(message)", "json.dumps(message, indent=2)");
    let ended = Bed::new().test(&program);
    assert_eq!(ended.code, Some(0), "{}", ended.out);
    ended.has("⚠ one line of JSON per message: ");
    ended.has("Omit indent=");
}

#[test]
fn a_plugin_that_ignores_the_end_of_stdin_is_killed() {
    let program = format!("{}\ntime.sleep(1000)\n", python(GOOD));
    let ended = Bed::new().test(&program);
    ended.is_good("good: 1 tool, 10 checks passed, 1 warning");
    ended.has("⚠ exits when stdin closes: still running after 2 seconds; killed");
}

#[test]
fn children_that_are_left_are_named_and_ended() {
    let program = format!(
        "import subprocess\nchild = subprocess.Popen(['sleep', '987'], start_new_session=True)\n{}",
        python(GOOD)
    );
    let ended = Bed::new().test(&program);
    assert_eq!(ended.code, Some(0), "{}", ended.out);
    ended.has("⚠ leaves no processes running: killed: sleep (");
    let pid = ended
        .out
        .split("sleep (")
        .nth(1)
        .unwrap()
        .split(')')
        .next()
        .unwrap();
    assert!(
        !std::fs::exists(format!("/proc/{pid}/cwd")).unwrap() || {
            // A zombie has a name and no command line.
            std::fs::read(format!("/proc/{pid}/cmdline"))
                .unwrap_or_default()
                .is_empty()
        }
    );
}

/// A bed with a Go program of the seed documents, if Go is installed.
fn go(source: &str) -> Option<Bed> {
    if !std::path::Path::new("/usr/bin/go").exists() {
        return None;
    }
    let bed = Bed::new();
    bed.file("main.go", source);
    bed.file("go.mod", "module example\n\ngo 1.21\n");
    let built = std::process::Command::new("/usr/bin/go")
        .args(["build", "-o", "plugin", "."])
        .current_dir(bed.work(""))
        .env("HOME", bed.home(""))
        .env("GOCACHE", concat!(env!("CARGO_TARGET_TMPDIR"), "/go-cache"))
        .env("GOTOOLCHAIN", "local")
        .output()
        .unwrap();
    assert!(built.status.success(), "{built:?}");
    Some(bed)
}

#[test]
fn the_go_plugins_of_the_seeds_are_good_and_told_how_to_read_long_lines() {
    let printed = include_str!("../seeds/go/plugin.go");
    // The same program for the other protocol: it answers to the other message.
    let describes = printed.replace("case \"init\":", "case \"describe\":");
    assert_ne!(describes, printed);
    for (source, protocol) in [(printed, "init"), (&describes, "describe")] {
        let Some(bed) = go(source) else {
            return;
        };
        for more in [&[][..], &["--protocol", protocol]] {
            let ended = bed.haft(&[&["plugin", "test"], more, &["./plugin"]].concat());
            assert_eq!(ended.code, Some(0), "{}", ended.out);
            ended.has(&format!("handshake: protocol {protocol}"));
            ended.has("⚠ a text of 100 KB: exited with code 0");
            ended.has("scanner.Buffer(make([]byte, 0, 64*1024)");
            assert!(!ended.out.contains("✗"), "{}", ended.out);
        }
    }
}

#[test]
fn only_the_pinned_protocol_is_tried() {
    let bed = Bed::new();
    bed.file("tool.py", &python(GOOD));
    let args = [
        "--protocol",
        "init",
        "--only",
        "describe",
        "python3",
        "tool.py",
    ];
    let ended = bed.haft(&[&["plugin", "test"], &args[..]].concat());
    assert_eq!(ended.code, Some(1), "{}", ended.out);
    assert!(
        !ended.out.contains("\"type\":\"describe\""),
        "{}",
        ended.out
    );
    ended.has("without --protocol");
    ended.has("{\"type\":\"init\",\"tools\":[");
}

#[test]
fn plugins_that_answer_only_one_message_are_tested_as_haft_uses_them() {
    for (program, protocol) in [
        // Exits on unknown messages.
        (
            python(&GOOD.replace(
                "if message['type'] == 'describe': say(DEFINITION)",
                "if message['type'] == 'init': say({'type': 'init', 'tools': [DEFINITION]})\nelif message['type'] == 'describe': sys.exit(3)",
            )),
            "init",
        ),
        // Compares the whole message.
        (
            python(&GOOD.replace(
                "if message['type'] == 'describe': say(DEFINITION)",
                "if message == {'type': 'describe'}: say(DEFINITION)",
            )),
            "describe",
        ),
        // Answers with a list.
        (
            python(&GOOD.replace("say(DEFINITION)", "say([DEFINITION])")),
            "describe",
        ),
    ] {
        let ended = Bed::new().test(&program);
        assert_eq!(ended.code, Some(0), "{}", ended.out);
        ended.has(&format!("handshake: protocol {protocol}"));
    }
}

#[test]
fn no_line_that_failed_says_that_it_is_fine() {
    // Malformed answers, also where an answer is optional.
    let program = python(&GOOD.replace("say(shout(message))", "say({'content': 'HELLO'})"));
    let ended = Bed::new().test(&program);
    for line in ended.out.lines().filter(|line| !line.starts_with('✓')) {
        assert!(!line.contains("which is fine"), "{line}");
    }
}
