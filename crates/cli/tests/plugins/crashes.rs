//! Plugins that crash: haft and all other tools keep working, and the reply says what
//! happened.

use crate::bed::Bed;
use serde_json::json;
use std::time::{Duration, Instant};

const GOOD: (&str, &str) = ("good", "serve(tool('fine'), lambda m: text('fine'))");

#[test]
fn haft_starts_whatever_plugins_are_there() {
    let bed = Bed::with(&[
        GOOD,
        ("exits", "sys.stderr.write('no licence\\n'); sys.exit(7)"),
        ("dies", "os.kill(os.getpid(), signal.SIGSEGV)"),
        ("garbage", "raw('garbage\\n' * 20000)\ntime.sleep(1000)"),
        ("silent", "time.sleep(1000)"),
        ("toolless", "serve({'tools': []}, None)"),
        (
            "wordless",
            "sys.stdout.close(); os.close(1); time.sleep(1000)",
        ),
    ]);
    bed.write("plugins/plain", "not a program");
    std::fs::create_dir(bed.path("plugins/folder")).unwrap();
    bed.program("plugins/bad_interpreter", "#!/no/such/interpreter\n");
    let names = [
        "exits",
        "dies",
        "garbage",
        "silent",
        "toolless",
        "wordless",
        "plain",
        "folder",
        "bad_interpreter",
        "missing",
        "good",
    ];
    let mut all: Vec<_> = names.iter().map(|name| bed.plugin(name)).collect();
    all.push(json!({ "path": "no-such-program-anywhere" }));
    bed.configure(&json!({ "tools": { "plugins": all } }));
    let begun = Instant::now();
    let (tools, beside) = bed.names();
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(14), "{took:?}");
    assert!(tools.contains(&"fine".to_owned()) && tools.contains(&"bash".to_owned()));
    for (name, why) in [
        (
            "exits",
            "exited at its start (code 7); the end of its stderr:\nno licence",
        ),
        ("dies", "exited at its start (signal 11)"),
        (
            "garbage",
            "wrote more than 16 MB or 10,000 lines that are not JSON messages",
        ),
        ("silent", "did not answer within 10 seconds of its start"),
        ("toolless", "has no tools"),
        ("wordless", "closed its output"),
        ("plain", "did not start: "),
        ("folder", "did not start: "),
        ("bad_interpreter", "did not start: "),
        ("missing", "did not start: "),
        ("no-such-program-anywhere", "did not start: "),
    ] {
        let expected = format!("plugin {name} {why}");
        assert!(
            beside.contains(&expected),
            "{expected:?} is not in:\n{beside}"
        );
    }
    bed.nobody_left();
}

#[test]
fn a_built_in_tool_does_not_wait_for_a_plugin_that_is_silent() {
    let bed = Bed::with(&[("silent", "time.sleep(1000)")]);
    bed.write("work/a.txt", "here");
    let begun = Instant::now();
    assert_eq!(bed.reply_text("read", &json!({ "path": "a.txt" })), "here");
    assert!(begun.elapsed() < Duration::from_secs(5));
    bed.nobody_left();
}

#[test]
fn a_crash_in_a_call_is_an_error_with_the_end_of_stderr() {
    let body = r"
def call(m):
    how = m['params']['how']
    sys.stderr.write('first\nlast words of ' + how + '\n'); sys.stderr.flush()
    if how == 'exit': os._exit(9)
    if how == 'signal': os.kill(os.getpid(), signal.SIGSEGV)
    if how == 'close': os.close(1); time.sleep(1000)
    text('fine')
serve(tool('one'), call)
";
    let bed = Bed::with(&[("p", body), GOOD]);
    let mut session = bed.session(&[]);
    for (how, says) in [
        ("exit", "exited (code 9)"),
        ("signal", "exited (signal 11)"),
        ("close", "closed its output"),
    ] {
        let answer = session.call("one", &json!({ "how": how }));
        assert!(answer.is_error, "{how}: {answer:?}");
        let first = answer.text.lines().next().unwrap();
        assert!(
            first.contains(&format!("plugin p {says}")),
            "{how}: {answer:?}"
        );
        let last = format!("last words of {how}");
        assert!(answer.text.contains(&last), "{how}: {answer:?}");
        assert_eq!(session.reply_text("fine", &json!({})), "fine");
        assert_eq!(
            session.reply_text("one", &json!({ "how": "well" })),
            "fine",
            "{how}"
        );
    }
    assert_eq!(bed.noted("starts", "p").len(), 4);
}

#[test]
fn a_plugin_that_ends_between_calls_is_restarted() {
    let body = r"
def call(m):
    text('fine')
    os._exit(0)
serve(tool('one'), call)
";
    let bed = Bed::with(&[("p", body)]);
    let mut session = bed.session(&[]);
    for n in 1..=7 {
        assert_eq!(session.reply_text("one", &json!({})), "fine", "{n}");
        bed.gone("p");
        assert_eq!(bed.noted("starts", "p").len(), n);
    }
}

#[test]
fn an_unread_call_is_sent_to_the_restarted_plugin() {
    let body = r"
def call(m):
    text('fine')
    time.sleep(0.3)
    os._exit(0)
serve(tool('one'), call)
";
    let bed = Bed::with(&[("p", body)]);
    let mut session = bed.session(&[]);
    for n in 1..=4 {
        assert_eq!(session.reply_text("one", &json!({})), "fine", "{n}");
        assert_eq!(bed.noted("starts", "p").len(), n);
    }
}

#[test]
fn after_five_crashes_in_a_row_nothing_more_is_started() {
    let body = r"
def call(m):
    if m['params'].get('fine'): return text('fine')
    os._exit(1)
serve(tool('one'), call)
";
    let bed = Bed::with(&[("p", body), GOOD]);
    let mut session = bed.session(&[]);
    let crash = json!({});
    for _ in 0..4 {
        assert!(session.call("one", &crash).text.contains("exited (code 1)"));
    }
    // A successful call resets the count of failures.
    assert_eq!(session.reply_text("one", &json!({ "fine": true })), "fine");
    let begun = Instant::now();
    for n in 0..5 {
        let answer = session.call("one", &crash);
        assert!(answer.text.contains("exited (code 1)"), "{n}: {answer:?}");
    }
    // Each start waits longer than the one before.
    assert!(
        begun.elapsed() > Duration::from_millis(1_400),
        "{:?}",
        begun.elapsed()
    );
    let starts = bed.noted("starts", "p").len();
    for _ in 0..3 {
        let answer = session.call("one", &crash);
        assert!(
            answer.is_error && answer.text.contains("is disabled"),
            "{answer:?}"
        );
    }
    assert_eq!(bed.noted("starts", "p").len(), starts);
    assert_eq!(session.reply_text("fine", &json!({})), "fine");
}

#[test]
fn calls_at_once_that_crash_together_are_one_crash_each_start() {
    let body = r"
def call(m):
    if m['params'].get('crash'): os._exit(4)
    text('fine')
serve(tool('one'), call)
";
    let bed = Bed::with(&[("p", body)]);
    let mut session = bed.session(&[]);
    let asked: Vec<_> = (0..3)
        .map(|_| session.ask("one", &json!({ "crash": true })))
        .collect();
    let well = session.ask("one", &json!({}));
    for number in asked {
        let answer = session.answer(number);
        assert!(answer.text.contains("exited (code 4)"), "{answer:?}");
    }
    let answer = session.answer(well);
    assert_eq!(answer.text, "fine", "{answer:?}");
    assert_eq!(bed.noted("starts", "p").len(), 4);
}

#[test]
fn a_crash_is_detected_while_a_child_holds_the_output() {
    let body = r"
import subprocess
def call(m):
    if not m['params'].get('crash'): return text('fine')
    subprocess.Popen(['setsid', 'sleep', '1000'])
    sys.stderr.write('the last words\n'); sys.stderr.flush()
    os._exit(3)
serve(tool('one'), call)
";
    let bed = Bed::with(&[("p", body)]);
    let mut session = bed.session(&[]);
    assert_eq!(session.reply_text("one", &json!({})), "fine");
    for round in 0..5 {
        let begun = Instant::now();
        let answer = session.call("one", &json!({ "crash": true }));
        let took = begun.elapsed();
        assert!(
            answer.is_error
                && answer.text.contains("plugin p exited (code 3)")
                && answer.text.contains("the last words"),
            "{round}: {answer:?}"
        );
        assert!(took < Duration::from_secs(6), "{round}: {took:?}");
    }
    let answer = session.call("one", &json!({ "crash": true }));
    assert!(
        answer.is_error && answer.text.contains("is disabled"),
        "{answer:?}"
    );
    assert_eq!(bed.noted("starts", "p").len(), 5);
    drop(session);
    bed.nobody_left();
}

#[test]
fn a_plugin_that_exits_at_its_start_is_reported_at_once_despite_a_child() {
    let body = "import subprocess\nsubprocess.Popen(['setsid', 'sleep', '1000'])\nsys.exit(4)";
    let bed = Bed::with(&[("p", body)]);
    let begun = Instant::now();
    let (_, beside) = bed.names();
    assert!(
        beside.contains("plugin p exited at its start (code 4)"),
        "{beside}"
    );
    assert!(begun.elapsed() < Duration::from_secs(6));
    bed.nobody_left();
}
