//! Cancelled calls: their answers are dropped, and nothing of them remains.

use crate::bed::{Bed, alive, within};
use serde_json::json;
use std::time::{Duration, Instant};

/// Answers its first call late, and the others at once.
const LATE: &str = r"
done = os.path.exists('late-' + me)
def call(m):
    ids = {'call_id': m['call_id']} if m['params'].get('ids') else {}
    if m['params'].get('late'):
        open('late-' + me, 'w').close()
        time.sleep(1.3)
        text('LATE', **ids)
    else:
        text('mine ' + m['params']['n'], **ids)
serve(tool('one'), call)
";

fn timing_out(plugins: &[(&str, &str)]) -> Bed {
    let bed = Bed::with(plugins);
    let all: Vec<_> = plugins.iter().map(|(name, _)| bed.plugin(name)).collect();
    bed.configure(&json!({ "tools": { "plugins": all, "timeout": 1 } }));
    bed
}

#[test]
fn an_answer_after_the_time_limit_is_dropped() {
    for ids in [false, true] {
        let bed = timing_out(&[("p", LATE)]);
        let mut session = bed.session(&[]);
        let begun = Instant::now();
        let slow = session.ask("one", &json!({ "late": true, "ids": ids }));
        let next = session.ask("one", &json!({ "n": "0", "ids": ids }));
        let late = session.answer(slow);
        let took = begun.elapsed();
        assert!(
            late.is_error && late.text.contains("timed out after 1 second"),
            "{late:?}"
        );
        assert!(took < Duration::from_millis(2_400), "{took:?}");
        // A call that waited meanwhile has the same time limit.
        let waited = session.answer(next);
        assert!(waited.is_error || waited.text == "mine 0", "{waited:?}");
        for n in ["1", "2", "3"] {
            let reply = session.reply_text("one", &json!({ "n": n, "ids": ids }));
            assert_eq!(reply, format!("mine {n}"));
        }
    }
}

#[test]
fn an_answer_after_a_cancelled_request_is_dropped() {
    for ids in [false, true] {
        let bed = Bed::with(&[("p", LATE)]);
        let mut session = bed.session(&[]);
        let slow = session.ask("one", &json!({ "late": true, "ids": ids }));
        let began = within(Duration::from_secs(10), || bed.work("late-p").exists());
        assert!(began, "the call did not arrive");
        session.cancel(slow);
        for n in ["1", "2", "3"] {
            let reply = session.reply_text("one", &json!({ "n": n, "ids": ids }));
            assert_eq!(reply, format!("mine {n}"));
        }
    }
}

/// Hangs and ignores all signals, and so do its children.
const DEAF: &str = r"
import subprocess
signal.signal(signal.SIGTERM, signal.SIG_IGN)
def call(m):
    if not m['params'].get('hang'): return text('alive')
    deaf = 'trap \x22\x22 TERM INT HUP; while :; do sleep 1; done'
    subprocess.Popen(['setsid', 'bash', '-c', deaf, 'GRANDCHILD', os.getcwd()])
    subprocess.Popen(['setsid', 'bash', '-c', 'bash -c \x22' + 'sleep 1000; :' + '\x22 GRANDCHILD ' + os.getcwd() + ' & disown; exit'], stdout=subprocess.DEVNULL)
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            open('hung', 'w').close()
            time.sleep(1000)
        os._exit(0)
    time.sleep(1000)
serve(tool('one'), call)
";

#[test]
fn the_tree_of_a_hanging_plugin_dies_soon_and_the_next_call_works() {
    for cancels in [false, true] {
        let bed = if cancels {
            Bed::with(&[("p", DEAF)])
        } else {
            timing_out(&[("p", DEAF)])
        };
        let mut session = bed.session(&[]);
        assert_eq!(session.reply_text("one", &json!({})), "alive");
        let first = bed.noted("starts", "p");
        let hanging = session.ask("one", &json!({ "hang": true }));
        let began = within(Duration::from_secs(10), || bed.work("hung").exists());
        assert!(began, "the tree did not grow");
        if cancels {
            session.cancel(hanging);
        } else {
            assert!(session.answer(hanging).is_error);
        }
        let mut left = Vec::new();
        let gone = within(Duration::from_secs(2), || {
            left = alive(&bed.path(""));
            left.retain(|line| line.contains("GRANDCHILD") || line.contains("plugins/p"));
            left.is_empty()
        });
        assert!(gone, "{left:#?}");
        assert_eq!(session.reply_text("one", &json!({})), "alive");
        assert_eq!(bed.noted("starts", "p").len(), first.len() + 1);
        drop(session);
        bed.nobody_left();
    }
}

#[test]
fn fifty_calls_at_once_are_all_answered_in_step() {
    let bed = Bed::with(&[(
        "p",
        "serve(tool('one'), lambda m: text('n=' + str(m['params']['n'])))",
    )]);
    let mut session = bed.session(&[]);
    let asked: Vec<_> = (0..50)
        .map(|n| session.ask("one", &json!({ "n": n })))
        .collect();
    for (n, number) in asked.into_iter().enumerate() {
        let answer = session.answer(number);
        assert_eq!(answer.text, format!("n={n}"), "{answer:?}");
    }
    assert_eq!(bed.noted("starts", "p").len(), 1);
}

#[test]
fn calls_at_once_beside_one_that_is_cancelled_keep_their_own_answers() {
    let body = r"
def call(m):
    n = m['params']['n']
    if n == 'slow':
        open('slow', 'w').close()
        time.sleep(0.4)
    text('n=' + n)
serve(tool('one'), call)
";
    let bed = Bed::with(&[("p", body)]);
    let mut session = bed.session(&[]);
    for round in 0..3 {
        let _ = std::fs::remove_file(bed.work("slow"));
        let slow = session.ask("one", &json!({ "n": "slow" }));
        let asked: Vec<_> = (0..8)
            .map(|n| session.ask("one", &json!({ "n": n.to_string() })))
            .collect();
        let began = within(Duration::from_secs(10), || bed.work("slow").exists());
        assert!(began, "round {round}");
        session.cancel(slow);
        for (n, number) in asked.into_iter().enumerate() {
            let answer = session.answer(number);
            assert_eq!(answer.text, format!("n={n}"), "round {round}: {answer:?}");
        }
    }
}

#[test]
fn twenty_plugins_answer_for_themselves() {
    let bed = Bed::new();
    let mut all = Vec::new();
    for n in 0..20 {
        let name = format!("p{n}");
        bed.program(
            &format!("plugins/{name}"),
            format!("#!/bin/bash\nwhile read -r line; do case $line in *describe*) echo '{{\"name\":\"{name}\",\"description\":\"d\"}}';; *) echo '{{\"content\":\"from {name}\"}}';; esac; done\n"),
        );
        all.push(bed.plugin(&name));
    }
    bed.configure(&json!({ "tools": { "plugins": all } }));
    let mut session = bed.session(&[]);
    let asked: Vec<_> = (0..40)
        .map(|n| session.ask(&format!("p{}", n % 20), &json!({})))
        .collect();
    for (n, number) in asked.into_iter().enumerate() {
        assert_eq!(session.answer(number).text, format!("from p{}", n % 20));
    }
    drop(session);
    bed.nobody_left();
}

/// Answers a call twice, without an id.
const TWICE: &str = r"
def call(m):
    text('n=' + m['params']['n'])
    if m['params'].get('twice'):
        time.sleep(m['params'].get('after', 0))
        text('AGAIN')
        open('again', 'w').close()
serve(tool('one'), call)
";

#[test]
fn a_second_answer_to_a_call_is_dropped() {
    for after in [0.0, 0.2] {
        let bed = Bed::with(&[("p", TWICE)]);
        let mut session = bed.session(&[]);
        for round in 0..5 {
            let _ = std::fs::remove_file(bed.work("again"));
            let arguments = json!({ "n": "twice", "twice": true, "after": after });
            assert_eq!(session.reply_text("one", &arguments), "n=twice");
            assert!(within(Duration::from_secs(10), || bed
                .work("again")
                .exists()));
            for n in ["1", "2"] {
                let reply = session.reply_text("one", &json!({ "n": n }));
                assert_eq!(reply, format!("n={n}"), "round {round}");
            }
        }
    }
}

#[test]
fn an_answer_that_comes_before_the_call_was_read_is_not_its_answer() {
    // It does not read for a while after the second one, with the next call in its pipe.
    let body = r"
def call(m):
    text('n=' + m['params']['n'])
    if m['params'].get('twice'):
        time.sleep(0.5)
        text('AGAIN')
        time.sleep(1)
serve(tool('one'), call)
";
    let bed = Bed::with(&[("p", body)]);
    let mut session = bed.session(&[]);
    assert_eq!(
        session.reply_text("one", &json!({ "n": "0", "twice": true })),
        "n=0"
    );
    for n in ["1", "2"] {
        assert_eq!(
            session.reply_text("one", &json!({ "n": n })),
            format!("n={n}")
        );
    }
}
