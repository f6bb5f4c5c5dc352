//! Any output of a plugin costs haft a bounded amount of memory; the plugin is slowed
//! down instead of buffered.

use crate::bed::{Bed, within};
use crate::session::Session;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Maximum memory growth caused by one tool, in KiB.
const GROWTH: u64 = 32 << 10;

/// Writes endless updates, or a given number.
const FLOODS: &str = r"
import threading
def flood(m, size, many):
    update = {'type': 'update', 'call_id': m['call_id'], 'content': [{'type': 'text', 'text': 'u' * size}]}
    line = json.dumps(update) + '\n'
    n = 0
    while many is None or n < many:
        raw(line * max(1, 100_000 // size))
        n += max(1, 100_000 // size)
def call(m):
    how = m['params'].get('how')
    if how == 'small': flood(m, 1_000, 120_000)
    elif how == 'large': flood(m, 1_000_000, 100)
    elif how == 'objects': raw('{\x22a\x22:1}\n' * 2_000_000)
    elif how == 'endless':
        open('endless', 'w').close()
        flood(m, 1_000, None)
    elif how == 'asks':
        ask = {'type': 'host_call', 'call_id': m['call_id'], 'id': 1, 'name': 'bash', 'params': {'command': 'sleep 3; echo ' + 'x' * 100_000}}
        line = json.dumps(ask) + '\n'
        for n in range(1_000): raw(line)
    text('fine', call_id=m['call_id'], type='result')
";

fn floods(definition: &str) -> Bed {
    Bed::with(&[("p", &format!("{FLOODS}\nserve({definition}, call)"))])
}

/// Returns how much the peak of haft's memory grew meanwhile. The kernel counts
/// approximately, so the peak can seem to fall.
fn growth(session: &mut Session, mut during: impl FnMut(&mut Session)) -> u64 {
    let before = session.peak();
    during(session);
    session.peak().saturating_sub(before)
}

#[test]
fn a_flood_of_updates_is_not_kept_and_the_answer_comes_after_it() {
    for definition in ["tool('one', protocol=2)", "tool('one')"] {
        let bed = floods(definition);
        let mut session = bed.session(&[]);
        assert_eq!(session.reply_text("one", &json!({})), "fine");
        for how in ["small", "large", "objects"] {
            let grown = growth(&mut session, |session| {
                assert_eq!(session.reply_text("one", &json!({ "how": how })), "fine");
            });
            assert!(grown < GROWTH, "{definition} {how}: {grown} KiB");
        }
    }
}

#[test]
fn a_call_that_floods_without_end_can_be_cancelled_and_times_out() {
    let bed = floods("tool('one', protocol=2)");
    let mut session = bed.session(&[]);
    assert_eq!(session.reply_text("one", &json!({})), "fine");
    let grown = growth(&mut session, |session| {
        let number = session.ask("one", &json!({ "how": "endless" }));
        assert!(within(Duration::from_secs(10), || bed
            .work("endless")
            .exists()));
        session.cancel(number);
        let begun = Instant::now();
        assert_eq!(session.reply_text("one", &json!({})), "fine");
        assert!(begun.elapsed() < Duration::from_secs(5));
    });
    assert!(grown < GROWTH, "{grown} KiB");
    bed.configure(&json!({ "tools": { "plugins": [bed.plugin("p")], "timeout": 2 } }));
    let mut session = bed.session(&[]);
    let answer = session.call("one", &json!({ "how": "endless" }));
    assert!(
        answer.is_error && answer.text.contains("timed out after 2 seconds"),
        "{answer:?}"
    );
    assert_eq!(session.reply_text("one", &json!({})), "fine");
}

#[test]
fn a_plugin_that_calls_tools_too_fast_is_slowed_down() {
    let bed = floods("tool('one', protocol=2)");
    bed.configure(&json!({ "tools": { "plugins": [bed.plugin("p")], "timeout": 4 } }));
    let mut session = bed.session(&[]);
    assert_eq!(session.reply_text("one", &json!({})), "fine");
    let grown = growth(&mut session, |session| {
        let answer = session.call("one", &json!({ "how": "asks" }));
        assert!(answer.is_error, "{answer:?}");
    });
    assert!(grown < GROWTH, "{grown} KiB");
    assert_eq!(session.reply_text("one", &json!({})), "fine");
}

#[test]
fn messages_without_end_before_the_introduction_are_not_kept() {
    let body = "while True: raw('{\\x22a\\x22:1}\\n' * 10_000)";
    let good = "serve(tool('fine'), lambda m: text('fine'))";
    let bed = Bed::with(&[("p", body), ("good", good)]);
    let mut session = bed.session(&[]);
    assert_eq!(session.reply_text("fine", &json!({})), "fine");
    let peak = session.peak();
    assert!(peak < 160 << 10, "{peak} KiB");
}

/// One line each, of nearly the maximum length.
const LINES: &str = r"
def call(m):
    how = m['params'].get('how')
    id = '\x22call_id\x22:\x22' + m['call_id'] + '\x22'
    if how == 'numbers': raw('{\x22content\x22:[' + '1,' * 8_000_000 + '1]}\n')
    elif how == 'objects': raw('{\x22content\x22:[],\x22details\x22:[' + '{},' * 5_000_000 + '1],' + id + '}\n')
    elif how == 'blocks': raw('{' + id + ',\x22content\x22:[' + '{\x22text\x22:\x22\x22},' * 1_300_000 + '1]}\n')
    elif how == 'update': raw('{\x22type\x22:\x22update\x22,' + id + ',\x22content\x22:[' + '1,' * 8_000_000 + '1]}\n'); text('fine', call_id=m['call_id'])
    elif how == 'text': text('z' * (16 * 1024 * 1024 - 200), call_id=m['call_id'])
    elif how == 'control': raw('{' + id + ',\x22content\x22:\x22' + '\x01' * (16 * 1024 * 1024 - 200) + '\x22}\n'); text('fine', call_id=m['call_id'])
    else: text('fine', call_id=m['call_id'])
";

#[test]
fn a_line_of_very_many_values_is_an_error_that_says_so() {
    let bed = Bed::with(&[(
        "p",
        &format!("{LINES}\nserve(tool('one', protocol=2), call)"),
    )]);
    let mut session = bed.session(&[]);
    assert_eq!(session.reply_text("one", &json!({})), "fine");
    let many = "more than 150,000 values";
    for (how, why) in [
        ("numbers", "without a call_id"),
        ("objects", many),
        ("blocks", many),
    ] {
        let grown = growth(&mut session, |session| {
            let answer = session.call("one", &json!({ "how": how }));
            assert!(
                answer.is_error && answer.text.contains(why),
                "{how}: {answer:?}"
            );
        });
        assert!(grown < GROWTH, "{how}: {grown} KiB");
        assert_eq!(session.reply_text("one", &json!({})), "fine", "{how}");
    }
    for how in ["update", "control"] {
        let grown = growth(&mut session, |session| {
            let answer = session.call("one", &json!({ "how": how }));
            assert!(how == "control" || answer.is_error, "{how}: {answer:?}");
        });
        assert!(grown < GROWTH, "{how}: {grown} KiB");
    }
    // Restarted after an answer without an id.
    assert_eq!(bed.noted("starts", "p").len(), 2);
}

#[test]
fn a_text_of_the_greatest_length_arrives_for_little_more_than_its_size() {
    let bed = Bed::with(&[("p", &format!("{LINES}\nserve(tool('one'), call)"))]);
    let mut session = bed.session(&[]);
    assert_eq!(session.reply_text("one", &json!({})), "fine");
    let grown = growth(&mut session, |session| {
        let reply: Value = session.reply_text("one", &json!({ "how": "text" })).into();
        assert!(reply.as_str().unwrap().contains("zzzz"));
    });
    // The line, and the text in it.
    assert!(grown < 48 << 10, "{grown} KiB");
}
