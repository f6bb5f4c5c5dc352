//! The options of `haft plugin test`.

use crate::bed::{Bed, GOOD, python};

#[test]
fn quiet_is_the_verdict_alone() {
    let bed = Bed::new();
    bed.file("tool.py", &python(GOOD));
    let ended = bed.haft(&["plugin", "test", "--quiet", "python3", "tool.py"]);
    assert_eq!(
        (ended.code, ended.out.as_str()),
        (Some(0), "good: 1 tool, 12 checks passed\n")
    );
    bed.file("tool.py", &format!("print('hello')\n{}", python(GOOD)));
    let ended = bed.haft(&["plugin", "test", "--quiet", "python3", "tool.py"]);
    assert_eq!(ended.code, Some(1));
    assert!(
        ended
            .out
            .starts_with("bad: 1 of 12 checks failed\n\n✗ only messages"),
        "{}",
        ended.out
    );
}

#[test]
fn json_is_a_report_for_programs() {
    let bed = Bed::new();
    bed.file("tool.py", &python(GOOD));
    let ended = bed.haft(&["plugin", "test", "--json", "python3", "tool.py"]);
    assert_eq!(ended.code, Some(0));
    let report = ended.json();
    assert_eq!(report["verdict"], "good");
    assert_eq!(report["protocol"], "describe");
    assert_eq!(report["version"], 1);
    assert_eq!(report["tools"][0], "shout");
    assert_eq!(report["passed"], 12);
    assert_eq!(report["program"][1], "tool.py");
    assert_eq!(report["checks"][1]["id"], "describe");
    assert_eq!(report["checks"][1]["result"], "passed");
    assert!(report["checks"][1]["ms"].as_f64().unwrap() > 0.0);
    bed.file("tool.py", "raise SystemExit(4)");
    let ended = bed.haft(&["plugin", "test", "--json", "python3", "tool.py"]);
    assert_eq!(
        (ended.code, &ended.json()["verdict"]),
        (Some(1), &"bad".into())
    );
    assert!(
        ended.json()["checks"][0]["fix"].is_string(),
        "{}",
        ended.out
    );
}

#[test]
fn a_part_is_tried_alone() {
    let bed = Bed::new();
    bed.file("tool.py", &python(GOOD));
    let ended = bed.haft(&["plugin", "test", "--only", "describe", "python3", "tool.py"]);
    assert_eq!(ended.code, Some(0), "{}", ended.out);
    assert!(!ended.out.contains("\"type\":\"call\""), "{}", ended.out);
    let ended = bed.haft(&["plugin", "test", "--only", "calls", "python3", "tool.py"]);
    assert_eq!(ended.code, Some(0), "{}", ended.out);
    ended.has("shout, with required arguments");
    assert!(!ended.out.contains("Texts"), "{}", ended.out);
}

#[test]
fn calls_use_the_given_arguments() {
    let bed = Bed::new();
    bed.file("tool.py", &python(GOOD));
    let ended = bed.haft(&[
        "plugin",
        "test",
        "--only",
        "calls",
        "--call",
        "shout",
        "{\"text\": \"one\"}",
        "--call",
        "shout",
        "{\"text\": \"two\"}",
        "python3",
        "tool.py",
    ]);
    assert_eq!(ended.code, Some(0), "{}", ended.out);
    ended.has("\"params\":{\"text\":\"one\"}}");
    ended.has("\"text\": \"TWO\"");
    assert!(!ended.out.contains("example"), "{}", ended.out);
    for (call, reported) in [
        (
            ["shot", "{}"],
            "error: --call shot: the plugin has no such tool; did you mean \"shout\"?",
        ),
        (
            ["shout", "[]"],
            "error: --call shout: the arguments must be a JSON object",
        ),
        (["shout", "{"], "error: --call shout: not valid JSON"),
    ] {
        let ended = bed.haft(&[
            "plugin", "test", "--quiet", "--call", call[0], call[1], "python3", "tool.py",
        ]);
        assert_eq!(ended.code, Some(2), "{ended:?}");
        assert!(ended.err.starts_with(reported), "{ended:?}");
    }
}

/// A plugin that supports one protocol, and misbehaves with the other.
fn knows(protocol: &str, otherwise: &str) -> String {
    let definition = match protocol {
        "init" => "{'type': 'init', 'tools': [DEFINITION]}",
        _ => "DEFINITION",
    };
    python(&format!(
        "if message['type'] == '{protocol}': say({definition})
elif message['type'] == 'call': say(shout(message))
elif message['type'] in ('describe', 'init'): {otherwise}
else: say(reply('unknown type', True))
"
    ))
}

#[test]
fn only_the_chosen_protocol_is_used() {
    let bed = Bed::new();
    for (protocol, other) in [("describe", "init"), ("init", "describe")] {
        bed.file("tool.py", &knows(protocol, "sys.exit(3)"));
        let test = |chosen: &str, more: &[&str]| {
            let program = ["python3", "tool.py"];
            let words = ["plugin", "test", "--protocol", chosen];
            bed.haft(&[&words[..], more, &program].concat())
        };
        let ended = test(protocol, &[]);
        ended.is_good("good: 1 tool, 12 checks passed");
        ended.has(&format!("✓ handshake: protocol {protocol} ("));
        assert!(
            !ended.out.contains(&format!("{{\"type\":\"{other}\"")),
            "{}",
            ended.out
        );

        let ended = test(other, &[]);
        ended.is_bad(&["✗ starts and keeps running", "without --protocol"]);
        ended.has(&format!("  → {{\"type\":\"{other}\""));
        assert!(
            !ended.out.contains(&format!("{{\"type\":\"{protocol}\"")),
            "{}",
            ended.out
        );
        let report = test(other, &["--json"]).json();
        assert_eq!(report["verdict"], "bad", "{report}");
        let fix = report["checks"][0]["fix"].as_str().unwrap();
        assert!(
            fix.contains("haft detects which one the plugin uses"),
            "{report}"
        );

        // Without the flag it is good, as the report says.
        let ended = test("auto", &[]);
        assert_eq!(ended.code, Some(0), "{}", ended.out);
    }
    let ended = bed.haft(&["plugin", "test", "--protocol", "initial", "true"]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(
        ended.err.contains("init") && ended.err.contains("describe"),
        "{ended:?}"
    );
}

#[test]
fn an_error_in_answer_to_the_protocol_that_was_chosen_is_shown() {
    let bed = Bed::new();
    let unknown = "say(reply('I only know init', True))";
    bed.file("tool.py", &knows("init", unknown));
    let ended = bed.haft(&[
        "plugin",
        "test",
        "--protocol",
        "describe",
        "python3",
        "tool.py",
    ]);
    ended.is_bad(&[
        "✗ handshake: not a definition:",
        "I only know init",
        "without --protocol",
        "The answer to describe is one line",
    ]);
}

#[test]
fn usage_errors_are_reported() {
    let bed = Bed::new();
    for args in [
        &["plugin", "test"][..],
        &["plugin"],
        &["plugin", "test", "--only", "all", "true"],
        &["plugin", "test", "--timeout", "0", "true"],
        &["plugin", "test", "--tiemout", "1", "true"],
        &["plugin", "nope"],
    ] {
        let ended = bed.haft(args);
        assert_eq!(
            (ended.code, ended.out.as_str()),
            (Some(2), ""),
            "{args:?} {ended:?}"
        );
    }
}

#[test]
fn arguments_of_the_program_are_its_own() {
    let bed = Bed::new();
    bed.file(
        "tool.py",
        &format!(
            "import sys\nassert sys.argv[1:] == ['--quiet', '--json', '-h'], sys.argv\n{}",
            python(GOOD)
        ),
    );
    let ended = bed.haft(&[
        "plugin", "test", "python3", "tool.py", "--quiet", "--json", "-h",
    ]);
    ended.is_good("good: 1 tool, 12 checks passed");
}

#[test]
fn the_environment_is_the_one_that_plugins_get() {
    let bed = Bed::new();
    bed.file(
        "tool.py",
        &format!(
            "import os\nassert 'SOME_KEY' in os.environ, 'no SOME_KEY'\n{}",
            python(GOOD)
        ),
    );
    let run = |args: &[&str]| {
        let mut command = bed.command(args);
        command.env("SOME_KEY", "secret");
        crate::bed::Ended::from(command.output().unwrap())
    };
    run(&["plugin", "test", "python3", "tool.py"]).is_bad(&["no SOME_KEY", "--env"]);
    run(&["plugin", "test", "--env", "SOME_KEY", "python3", "tool.py"])
        .is_good("good: 1 tool, 12 checks passed");
}

#[test]
fn an_interrupt_ends_the_program_too() {
    let bed = Bed::new();
    bed.file("tool.py", "import os, time\nopen('pid', 'w').write(str(os.getpid()))\nos.rename('pid', 'ready')\ntime.sleep(1000)\n");
    let mut child = bed
        .command(&["plugin", "test", "python3", "tool.py"])
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let ready = bed.work("ready");
    while !ready.exists() {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let pid = std::fs::read_to_string(ready).unwrap();
    let haft = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(haft, rustix::process::Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    // The supervisor may need a moment to notice that haft is gone.
    let limit = std::time::Instant::now() + std::time::Duration::from_secs(1);
    while std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| !line.is_empty()) {
        assert!(std::time::Instant::now() < limit, "{pid} runs on");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}
