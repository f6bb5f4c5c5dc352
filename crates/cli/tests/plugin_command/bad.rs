//! Plugins that are not, each with what it is told.

use crate::bed::{Bed, GOOD, python};

#[test]
fn a_silent_one() {
    let ended = Bed::new().test("import time\ntime.sleep(1000)\n");
    ended.is_bad(&[
        "✗ it introduces itself: no definition within 10.0 s",
        "Read stdin line by line in a loop",
    ]);
}

#[test]
fn one_that_never_flushes() {
    let ended = Bed::new().test(&python(GOOD).replace(", flush=True", ""));
    ended.is_bad(&[
        "✗ it introduces itself: no definition within 10.0 s",
        "Flush stdout after each line: print(…, flush=True) in Python",
    ]);
}

#[test]
fn one_that_never_ends_its_lines() {
    let ended = Bed::new().test(&python(GOOD).replace("flush=True", "end='', flush=True"));
    ended.is_bad(&[
        "✗ it introduces itself: no definition",
        "did not end the line",
    ]);
}

#[test]
fn one_with_a_banner() {
    let ended = Bed::new().test(&format!(
        "print('Welcome to \\x1b[1mshout', flush=True)\n{}",
        python(GOOD)
    ));
    ended.is_bad(&[
        "bad: 1 of 20 checks failed",
        "✗ nothing but messages on stdout: 1 line that is no message: Welcome to",
        "print(…, file=sys.stderr) in Python (print() alone writes to stdout)",
    ]);
    assert!(!ended.out.contains('\x1b'));
}

#[test]
fn one_that_prints_while_it_works() {
    let program = python(&GOOD.replace(
        "say(shout(message))",
        "print('working...', flush=True); say(shout(message))",
    ));
    let ended = Bed::new().test(&program);
    ended.is_bad(&[
        "✗ nothing but messages on stdout: ",
        " lines that are no message: working...",
    ]);
    ended.has("✓ shout, with what is required: answered");
}

#[test]
fn one_that_logs_json_to_stdout() {
    let program = python(&GOOD.replace(
        "say(shout(message))",
        "say({'level': 'info'}); say(shout(message))",
    ));
    Bed::new()
        .test(&program)
        .is_bad(&["✗ nothing but messages on stdout: ", "{\"level\":\"info\"}"]);
}

#[test]
fn one_that_exits_at_its_start() {
    let ended = Bed::new().test("import no_such_module\n");
    ended.is_bad(&[
        "bad: 1 of ",
        "✗ it starts and stays: it exited with code 1; its last words: ",
        "No module named 'no_such_module'",
        "must not exit in between",
    ]);
    ended.has("  ! Traceback");
}

#[test]
fn one_that_exits_after_its_definition() {
    let program = python(&GOOD.replace("say(DEFINITION)", "say(DEFINITION); sys.exit(3)"));
    Bed::new()
        .test(&program)
        .is_bad(&["✗ it starts and stays: it answered, then it exited with code 3"]);
}

#[test]
fn one_that_exits_after_each_call() {
    let program = python(&GOOD.replace("say(shout(message))", "say(shout(message)); sys.exit(0)"));
    Bed::new()
        .test(&program)
        .is_bad(&["it exited with code 0", "Catch errors"]);
}

#[test]
fn one_that_crashes_on_bad_input() {
    let program = python(
        "\
if message['type'] == 'describe': say(DEFINITION)
elif message['type'] == 'call': say(reply(message['params']['text'].upper()))
",
    );
    // haft checks arguments before it makes a call, so it never sends these.
    let ended = Bed::new().test(&program);
    ended.is_good("good: 1 tool, 18 checks passed, 2 warnings");
    ended.has("⚠ shout, without \"text\": it exited with code 1; its last words: ");
    ended.has("KeyError: 'text'");
    ended.has("⚠ shout, with a wrong type of \"text\": it exited with code 1");
    ended.has("haft never sends this, so the plugin works as it is");
    ended.has("  it is started again\n");
}

#[test]
fn one_that_crashes_on_malformed_lines() {
    let program = python(GOOD).replace("except ValueError", "except KeyError");
    let ended = Bed::new().test(&program);
    ended.is_good("good: 1 tool, 19 checks passed, 1 warning");
    ended.has("⚠ a line that is no JSON: it exited with code 1");
}

#[test]
fn one_whose_answers_have_a_wrong_shape() {
    let program = python(&GOOD.replace("say(shout(message))", "say({'content': 'HELLO'})"));
    Bed::new().test(&program).is_bad(&[
        "✗ shout, with what is required: content is a string, not an array",
        "A result is one line: {\"content\":[{\"type\":\"text\",\"text\":\"…\"}],\"error\":false}",
    ]);
    let program = python(&GOOD.replace("say(shout(message))", "say({'result': 'HELLO'})"));
    Bed::new().test(&program).is_bad(&[
        "✗ shout, with what is required: what it answered is no result: {\"result\":\"HELLO\"}",
        "Not everything was tried: no call was answered.",
    ]);
}

#[test]
fn one_whose_definition_is_none() {
    let definition =
        |definition: &str| python(&GOOD.replace("say(DEFINITION)", &format!("say({definition})")));
    for (made, words) in [
        (
            "{'title': 'x'}",
            "what it answered is no definition: {\"title\":\"x\"}",
        ),
        ("{'tools': []}", "✗ it has tools: the list is empty"),
        (
            "{**DEFINITION, 'name': 'sh out'}",
            "✗ the definition of sh out: it has a tool named \"sh out\"",
        ),
        (
            "{**DEFINITION, 'description': ''}",
            "✗ the definition of shout: it has no description",
        ),
        (
            "{**DEFINITION, 'parameters': {'type': 'objekt'}}",
            "✗ the definition of shout: ",
        ),
        (
            "{**DEFINITION, 'parameters': []}",
            "✗ the definition of shout: ",
        ),
        (
            "{'tools': [DEFINITION, DEFINITION]}",
            "another tool has the same name",
        ),
        (
            "{'tools': [DEFINITION, {'description': 'x'}]}",
            "✗ the definition of tool 2: it has no name",
        ),
        (
            "{**DEFINITION, 'parameters': {'type': 'object', 'properties': {}, 'required': ['x'], 'additionalProperties': False}}",
            "\"x\" is required, but not among its properties",
        ),
    ] {
        let ended = Bed::new().test(&definition(made));
        ended.is_bad(&[words]);
    }
}

#[test]
fn one_that_hangs_in_a_call() {
    let program = python(&GOOD.replace("say(shout(message))", "time.sleep(1000)"));
    Bed::new().test(&program).is_bad(&[
        "✗ shout, with what is required: no answer within 2 seconds",
        "Not everything was tried: no call was answered.",
    ]);
}

#[test]
fn one_that_answers_out_of_step() {
    // Each answer is the one to the call before.
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
        "✗ every answer belongs to its question: ",
        "that nobody asked for",
        "One message in, at most one answer out",
    ]);
    // Or there are two.
    let program = python(&GOOD.replace(
        "say(shout(message))",
        "say(shout(message)); say(shout(message))",
    ));
    Bed::new()
        .test(&program)
        .is_bad(&["✗ every answer belongs to its question: "]);
}

#[test]
fn one_of_the_second_protocol_without_ids() {
    let program = python(&GOOD.replace("say(DEFINITION)", "say({'protocol': 2, **DEFINITION})"));
    Bed::new().test(&program).is_bad(&[
        "✗ two calls at once: 0 of 2 answered by its call_id",
        "✗ it repeats call_id: ",
        "With \"protocol\": 2 several calls run at once",
    ]);
}

#[test]
fn one_with_bad_updates() {
    let program = python(&GOOD.replace(
        "say(shout(message))",
        "say({'type': 'update', 'content': 'half'}); say(shout(message))",
    ));
    Bed::new()
        .test(&program)
        .is_bad(&["✗ its updates: content is a string, not an array"]);
}

#[test]
fn one_that_writes_without_end() {
    Bed::new()
        .test("while True: print('x' * 100)\n")
        .is_bad(&["✗ nothing but messages on stdout: it wrote without end"]);
}

#[test]
fn one_that_cannot_be_started() {
    let bed = Bed::new();
    bed.file("tool.py", "print(1)\n");
    for (words, told) in [
        (
            &["nothing_of_this_name"][..],
            "✗ it starts: there is no nothing_of_this_name on PATH",
        ),
        (&["./nothing"], "✗ it starts: there is no ./nothing"),
        (&["tool.py"], "haft plugin test ./tool.py"),
        (
            &["./tool.py"],
            "chmod +x ./tool.py, or name its interpreter",
        ),
        (
            &["python3 tool.py"],
            "Without quotes, the words are apart: haft plugin test python3 tool.py",
        ),
        (&["/"], "✗ it starts: / is a folder"),
    ] {
        let mut args = vec!["plugin", "test"];
        args.extend(words);
        bed.haft(&args).is_bad(&["bad: 1 of 1 check failed", told]);
    }
    use std::os::unix::fs::PermissionsExt;
    let executable = || std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(bed.work("tool.py"), executable()).unwrap();
    bed.haft(&["plugin", "test", "./tool.py"])
        .is_bad(&["Its first line has to name its interpreter"]);
    bed.file("tool.py", "#!/no/such/interpreter\n");
    bed.haft(&["plugin", "test", "./tool.py"])
        .is_bad(&["the interpreter that its first line (#!…) names is not"]);
}
