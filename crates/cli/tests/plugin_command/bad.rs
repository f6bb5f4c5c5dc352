//! Broken plugins, and the advice for each.

use crate::bed::{Bed, GOOD, python};

#[test]
fn a_silent_plugin() {
    let ended = Bed::new().test("import time\ntime.sleep(1000)\n");
    ended.is_bad(&[
        "✗ handshake: no definition within 10.0 s",
        "Read stdin line by line in a loop",
    ]);
}

#[test]
fn a_plugin_that_never_flushes() {
    let ended = Bed::new().test(&python(GOOD).replace(", flush=True", ""));
    ended.is_bad(&[
        "✗ handshake: no definition within 10.0 s",
        "Flush stdout after each line: print(…, flush=True) in Python",
    ]);
}

#[test]
fn a_plugin_that_never_ends_its_lines() {
    let ended = Bed::new().test(&python(GOOD).replace("flush=True", "end='', flush=True"));
    ended.is_bad(&["✗ handshake: no definition", "did not end the line"]);
}

#[test]
fn a_plugin_with_a_banner() {
    let ended = Bed::new().test(&format!(
        "print('Welcome to \\x1b[1mshout', flush=True)\n{}",
        python(GOOD)
    ));
    ended.is_bad(&[
        "bad: 1 of 12 checks failed",
        "✗ only messages on stdout: 1 line is not a message: Welcome to",
        "print(…, file=sys.stderr) in Python (print() alone writes to stdout)",
    ]);
    assert!(!ended.out.contains('\x1b'));
}

#[test]
fn a_plugin_that_prints_while_it_works() {
    let program = python(&GOOD.replace(
        "say(shout(message))",
        "print('working...', flush=True); say(shout(message))",
    ));
    let ended = Bed::new().test(&program);
    ended.is_bad(&[
        "✗ only messages on stdout: ",
        " lines are not a message: working...",
    ]);
    ended.has("✓ shout, with required arguments: answered");
}

#[test]
fn a_plugin_that_logs_json_to_stdout() {
    let program = python(&GOOD.replace(
        "say(shout(message))",
        "say({'level': 'info'}); say(shout(message))",
    ));
    Bed::new()
        .test(&program)
        .is_bad(&["✗ only messages on stdout: ", "{\"level\":\"info\"}"]);
}

#[test]
fn a_plugin_that_exits_at_its_start() {
    let ended = Bed::new().test("import no_such_module\n");
    ended.is_bad(&[
        "bad: 1 of ",
        "✗ starts and keeps running: exited with code 1; last line on stderr: ",
        "No module named 'no_such_module'",
        "must not exit in between",
    ]);
    ended.has("  ! Traceback");
}

#[test]
fn a_plugin_that_exits_after_its_definition() {
    let program = python(&GOOD.replace("say(DEFINITION)", "say(DEFINITION); sys.exit(3)"));
    Bed::new()
        .test(&program)
        .is_bad(&["✗ starts and keeps running: answered, then exited with code 3"]);
}

#[test]
fn a_plugin_that_exits_after_each_call() {
    let program = python(&GOOD.replace("say(shout(message))", "say(shout(message)); sys.exit(0)"));
    Bed::new().test(&program).is_bad(&[
        "✗ keeps running between calls: exited with code 0",
        "must not exit in between",
    ]);
}

#[test]
fn a_plugin_that_crashes_on_bad_input() {
    let program = python(
        "\
if message['type'] == 'describe': say(DEFINITION)
elif message['type'] == 'call': say(reply(message['params']['text'].upper()))
",
    );
    // haft checks arguments before it makes a call, so the plugin gets no bad ones.
    let bed = Bed::new();
    bed.test(&program).is_good("good: 1 tool, 12 checks passed");
    let ended = bed.haft(&[
        "plugin",
        "test",
        "--call",
        "shout",
        "{\"word\": 1}",
        "python3",
        "tool.py",
    ]);
    ended.is_bad(&[
        "⚠ shout, with your arguments: not called: ",
        "the plugin answered no call",
        "haft checks arguments against the schema and refuses these",
    ]);
}

#[test]
fn a_plugin_that_crashes_in_a_call() {
    let program = python(&GOOD.replace(
        "say(shout(message))",
        "say(shout(message) if 'haft' not in message['params']['text'] else 1 / 0)",
    ));
    let ended = Bed::new().test(&program);
    ended.is_good("good: 1 tool, 11 checks passed, 1 warning");
    ended.has("⚠ a text of 100 KB: exited with code 1; last line on stderr: ZeroDivisionError");
    ended.has("  restarting the plugin\n");
    let program = python(&GOOD.replace("say(shout(message))", "1 / 0"));
    Bed::new().test(&program).is_bad(&[
        "✗ shout, with required arguments: exited with code 1; last line on stderr: ZeroDivision",
        "Catch errors while handling each message",
    ]);
}

#[test]
fn a_plugin_whose_answers_have_a_wrong_shape() {
    let program = python(&GOOD.replace("say(shout(message))", "say({'content': 'HELLO'})"));
    Bed::new().test(&program).is_bad(&[
        "✗ shout, with required arguments: content is a string, not an array",
        "A result is one line: {\"content\":[{\"type\":\"text\",\"text\":\"…\"}],\"error\":false}",
    ]);
    let program = python(&GOOD.replace("say(shout(message))", "say({'result': 'HELLO'})"));
    Bed::new().test(&program).is_bad(&[
        "✗ shout, with required arguments: not a valid result: {\"result\":\"HELLO\"}",
        "Some checks were skipped: the plugin answered no call.",
    ]);
}

#[test]
fn a_plugin_with_an_invalid_definition() {
    let definition =
        |definition: &str| python(&GOOD.replace("say(DEFINITION)", &format!("say({definition})")));
    for (made, words) in [
        ("{'title': 'x'}", "not a definition: {\"title\":\"x\"}"),
        ("{'tools': []}", "✗ has tools: the list is empty"),
        (
            "{**DEFINITION, 'name': 'sh out'}",
            "✗ definition of sh out: it has a tool named \"sh out\"",
        ),
        (
            "{**DEFINITION, 'description': ''}",
            "✗ definition of shout: no description",
        ),
        (
            "{**DEFINITION, 'parameters': {'type': 'objekt'}}",
            "✗ definition of shout: ",
        ),
        (
            "{**DEFINITION, 'parameters': []}",
            "✗ definition of shout: ",
        ),
        (
            "{'tools': [DEFINITION, DEFINITION]}",
            "another tool has the same name",
        ),
        (
            "{'tools': [DEFINITION, {'description': 'x'}]}",
            "✗ definition of tool 2: the name is missing",
        ),
        (
            "{**DEFINITION, 'parameters': {'type': 'object', 'properties': {}, 'required': ['x'], 'additionalProperties': False}}",
            "\"x\" is required, but not among the properties",
        ),
    ] {
        let ended = Bed::new().test(&definition(made));
        ended.is_bad(&[words]);
    }
}

#[test]
fn a_plugin_that_hangs_in_a_call() {
    let program = python(&GOOD.replace("say(shout(message))", "time.sleep(1000)"));
    Bed::new().test(&program).is_bad(&[
        "✗ shout, with required arguments: no answer within 2 seconds",
        "Some checks were skipped: the plugin answered no call.",
    ]);
}

#[test]
fn a_plugin_that_answers_out_of_step() {
    // Each answer belongs to the previous call.
    let program = python(
        "\
if message['type'] == 'describe': say(DEFINITION)
elif message['type'] == 'call':
    late = globals().get('last', message)
    last = message
    say({'call_id': late['call_id'], **shout(late)})
",
    );
    Bed::new().test(&program).is_bad(&[
        "✗ each answer belongs to a request: ",
        "without a request",
        "One message in, at most one answer out",
    ]);
    // Or it answers twice.
    let program = python(&GOOD.replace(
        "say(shout(message))",
        "say(shout(message)); say(shout(message))",
    ));
    Bed::new()
        .test(&program)
        .is_bad(&["✗ each answer belongs to a request: "]);
}

#[test]
fn a_plugin_of_the_second_protocol_without_ids() {
    let program = python(&GOOD.replace("say(DEFINITION)", "say({'protocol': 2, **DEFINITION})"));
    Bed::new().test(&program).is_bad(&[
        "✗ shout, with required arguments: ",
        "gave an answer without a call_id",
        "✗ repeats call_id: ",
        "With \"protocol\": 2 several calls run at once",
    ]);
}

#[test]
fn a_plugin_with_bad_updates() {
    let program = python(&GOOD.replace(
        "say(shout(message))",
        "say({'type': 'update', 'content': 'half'}); say(shout(message))",
    ));
    Bed::new()
        .test(&program)
        .is_bad(&["✗ updates: content is a string, not an array"]);
}

#[test]
fn a_plugin_that_writes_without_end() {
    Bed::new()
        .test("while True: print('x' * 100)\n")
        .is_bad(&["✗ only messages on stdout: endless output"]);
}

#[test]
fn a_plugin_that_cannot_be_started() {
    let bed = Bed::new();
    bed.file("tool.py", "print(1)\n");
    for (words, reported) in [
        (
            &["nothing_of_this_name"][..],
            "✗ starts: nothing_of_this_name not found on PATH",
        ),
        (&["./nothing"], "✗ starts: ./nothing not found"),
        (&["tool.py"], "haft plugin test ./tool.py"),
        (
            &["./tool.py"],
            "chmod +x ./tool.py, or name its interpreter",
        ),
        (
            &["python3 tool.py"],
            "Remove the quotes: haft plugin test python3 tool.py",
        ),
        (&["/"], "✗ starts: / is a folder"),
    ] {
        let mut args = vec!["plugin", "test"];
        args.extend(words);
        bed.haft(&args)
            .is_bad(&["bad: 1 of 1 check failed", reported]);
    }
    use std::os::unix::fs::PermissionsExt;
    let executable = || std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(bed.work("tool.py"), executable()).unwrap();
    bed.haft(&["plugin", "test", "./tool.py"])
        .is_bad(&["The first line must name the interpreter"]);
    bed.file("tool.py", "#!/no/such/interpreter\n");
    bed.haft(&["plugin", "test", "./tool.py"])
        .is_bad(&["the interpreter in its first line (#!…) does not"]);
}

#[test]
fn a_plugin_that_reports_that_it_cannot_be_used() {
    let program = python(&GOOD.replace(
        "say(DEFINITION)",
        "say({'type': 'invalid', 'message': 'no license key'})",
    ));
    Bed::new().test(&program).is_bad(&[
        "✗ handshake: the plugin reports that it cannot be used: ",
        "no license key",
        "its message says why",
    ]);
}
