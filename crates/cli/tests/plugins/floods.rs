//! Plugins with too much output: it is bounded in memory, on disk and on the screen.

use crate::bed::Bed;
use serde_json::json;
use std::time::{Duration, Instant};

#[test]
fn a_line_without_end_fails_its_call_and_nothing_else() {
    let body = r"
def call(m):
    how = m['params'].get('how')
    if how == 'line': raw('{\x22content\x22:\x22' + 'x' * 20_000_000 + '\x22}\n')
    elif how == 'endless':
        for _ in range(100): raw('y' * 1_000_000)
        time.sleep(1000)
    elif how == 'pretty': raw('{\n' + '\x22a\x22: 1,\n' * 3_000_000)
    elif how == 'lines': raw('z\n' * 50_000); time.sleep(1000)
    else: text('fine')
serve(tool('one'), call)
";
    let bed = Bed::with(&[("p", body)]);
    let mut session = bed.session(&[]);
    for how in ["line", "endless", "pretty", "lines"] {
        let begun = Instant::now();
        let answer = session.call("one", &json!({ "how": how }));
        let took = begun.elapsed();
        assert!(
            answer.is_error && answer.text.contains("plugin p wrote"),
            "{how}: {answer:?}"
        );
        assert!(answer.text.len() < 4_000, "{how}");
        assert!(took < Duration::from_secs(20), "{how}: {took:?}");
        assert_eq!(session.reply_text("one", &json!({})), "fine", "{how}");
    }
    let peak = session.peak();
    assert!(peak < 400 << 10, "{peak} KiB");
}

#[test]
fn a_long_answer_arrives_cut_and_is_kept() {
    let body = r"serve(tool('one'), lambda m: text('\n'.join(str(n) for n in range(400_000))))";
    let bed = Bed::with(&[("p", body)]);
    let mut session = bed.session(&[]);
    let reply = session.reply_text("one", &json!({}));
    assert!(reply.len() < 60_000, "{}", reply.len());
    assert!(
        reply.contains("399999") || reply.contains("\n100\n"),
        "{}",
        reply.len()
    );
    let path = reply
        .split_whitespace()
        .find(|word| word.contains("/outputs/"))
        .unwrap();
    let path = path.trim_matches([']', '[']);
    let kept = std::fs::read_to_string(path).unwrap();
    assert!(kept.ends_with("399999"), "{}", kept.len());
}

#[test]
fn an_endless_log_does_not_block_and_is_bounded() {
    let body = r"
serve(tool('one'), lambda m: (sys.stderr.write('\x1b[2Jnoise line\n' * (200_000_000 // 15)), sys.stderr.flush(), text('fine')))
";
    let bed = Bed::with(&[("p", body)]);
    let mut session = bed.session(&[]);
    let begun = Instant::now();
    assert_eq!(session.reply_text("one", &json!({})), "fine");
    assert!(
        begun.elapsed() < Duration::from_secs(20),
        "{:?}",
        begun.elapsed()
    );
    assert!(session.peak() < 300 << 10, "{} KiB", session.peak());
    assert!(!session.beside().contains("noise"), "the screen saw it");
    drop(session);
    let folder = bed.path("home/.local/state/haft/plugins");
    let logs = std::fs::read_dir(&folder).unwrap().flatten();
    let sizes: Vec<u64> = logs.map(|log| log.metadata().unwrap().len()).collect();
    let total: u64 = sizes.iter().sum();
    assert!(
        total > 1_000 && total <= (1 << 20) + (64 << 10),
        "{sizes:?}"
    );
}

#[test]
fn a_plugins_log_is_not_shown_on_the_terminal() {
    let body = r"
sys.stderr.write('\x1b]0;owned\x07hello log\n'); sys.stderr.flush()
serve(tool('one'), lambda m: text('fine'))
";
    let bed = Bed::with(&[("p", body)]);
    let ran = bed.done(&["call", "one"]);
    assert_eq!((ran.out.as_str(), ran.err.as_str()), ("fine\n", ""));
    let log = std::fs::read_to_string(bed.path("home/.local/state/haft/plugins/p.log")).unwrap();
    assert!(log.contains("hello log"), "{log:?}");
    // The end of its stderr is quoted in an error, sanitized there too.
    let bed = Bed::with(&[("p", "sys.stderr.write('\\x1b[31mred\\x07\\n'); sys.exit(1)")]);
    let (_, beside) = bed.names();
    assert!(
        beside.contains("red") && !beside.contains('\u{1b}'),
        "{beside:?}"
    );
}

#[test]
fn updates_without_end_are_borne() {
    let body = r"
def call(m):
    update = {'type': 'update', 'call_id': m['call_id'], 'content': [{'type': 'text', 'text': 'u' * 1000}]}
    line = json.dumps(update) + '\n'
    for _ in range(300): raw(line * 100)
    text('fine', call_id=m['call_id'], type='result')
serve(tool('one', protocol=2), call)
";
    let bed = Bed::with(&[("p", body)]);
    let mut session = bed.session(&[]);
    assert_eq!(session.reply_text("one", &json!({})), "fine");
    assert!(session.peak() < 300 << 10, "{} KiB", session.peak());
}
