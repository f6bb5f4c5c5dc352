//! The second protocol: updates, concurrent calls, cancellation, details.

use crate::bed::{Bed, within};
use serde_json::{Value, json};
use std::time::Duration;

const SECOND: &str = r"
import threading
lock = threading.Lock()
def locked(message):
    with lock: say(message)
waiting = []
def call(m):
    how, id = m['params'].get('how'), m['call_id']
    block = lambda words: [{'type': 'text', 'text': words}]
    if how == 'updates':
        for n in range(3):
            locked({'type': 'update', 'call_id': id, 'content': block('step %d' % n)})
        locked({'type': 'result', 'call_id': id, 'content': block('done'), 'details': {'rows': 3}})
    elif how == 'together':
        # Nobody is answered before all twenty are here; then the last one first.
        waiting.append(m)
        if len(waiting) == 20:
            for one in reversed(waiting):
                locked({'type': 'result', 'call_id': one['call_id'], 'content': block('n=%d' % one['params']['n'])})
    elif how == 'hang': open('hangs', 'w').close()
    elif how == 'crash':
        waiting.append(m)
        if len(waiting) == 6: os._exit(3)
    else: locked({'type': 'result', 'call_id': id, 'content': block('fine'), 'error': how == 'fail'})
for message in lines():
    if message['type'] == 'describe': say(tool('one', protocol=2))
    elif message['type'] == 'call': call(message)
    elif message['type'] == 'cancel' and not os.path.exists('deaf'):
        say({'type': 'result', 'call_id': message['call_id'], 'content': 'LATE', 'error': True})
";

#[test]
fn updates_arrive_as_progress_and_details_stay_with_the_host() {
    let bed = Bed::with(&[("p", SECOND)]);
    let mut session = bed.session(&[]);
    let number = session.ask("one", &json!({ "how": "updates" }));
    let reply = session.reply(number);
    assert_eq!(
        reply["result"]["content"],
        json!([{ "type": "text", "text": "done" }])
    );
    let reported: Vec<&Value> = session
        .notifications
        .iter()
        .filter(|message| message["params"]["progressToken"] == number)
        .collect();
    let words = reported
        .iter()
        .map(|message| message["params"]["message"].as_str().unwrap_or_default());
    let words: String = words.collect::<Vec<_>>().join("|");
    assert!(
        !reported.is_empty() && words.contains("step"),
        "{reported:?}"
    );
    let ran = bed.done(&["call", "one", "how=updates", "--json"]);
    let reply: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(reply["details"]["rows"], 3, "{reply}");
    assert!(session.call("one", &json!({ "how": "fail" })).is_error);
}

#[test]
fn twenty_simultaneous_calls_are_matched_by_id() {
    let bed = Bed::with(&[("p", SECOND)]);
    let mut session = bed.session(&[]);
    let asked: Vec<_> = (0..20)
        .map(|n| session.ask("one", &json!({ "how": "together", "n": n })))
        .collect();
    for (n, number) in asked.into_iter().enumerate() {
        assert_eq!(session.answer(number).text, format!("n={n}"));
    }
    assert_eq!(bed.noted("starts", "p").len(), 1);
}

#[test]
fn a_plugin_is_notified_of_a_cancelled_call_and_keeps_running() {
    let bed = Bed::with(&[("p", SECOND)]);
    let mut session = bed.session(&[]);
    let number = session.ask("one", &json!({ "how": "hang" }));
    assert!(within(Duration::from_secs(10), || bed
        .work("hangs")
        .exists()));
    session.cancel(number);
    let is_told = within(Duration::from_secs(5), || {
        let got = bed.noted("got", "p");
        got.iter().any(|line| line.contains(r#""type":"cancel""#))
    });
    assert!(is_told, "{:?}", bed.noted("got", "p"));
    let id = bed.calls("p")[0]["call_id"].clone();
    let got = bed.noted("got", "p");
    let cancel = got.iter().find(|line| line.contains("cancel")).unwrap();
    assert_eq!(
        serde_json::from_str::<Value>(cancel).unwrap(),
        json!({ "type": "cancel", "call_id": id })
    );
    assert_eq!(session.reply_text("one", &json!({})), "fine");
    assert_eq!(
        bed.noted("starts", "p").len(),
        1,
        "it answered, and may live"
    );
}

#[test]
fn a_plugin_that_ignores_a_cancelled_call_is_ended() {
    let bed = Bed::with(&[("p", SECOND)]);
    bed.write("work/deaf", "");
    let mut session = bed.session(&[]);
    let number = session.ask("one", &json!({ "how": "hang" }));
    assert!(within(Duration::from_secs(10), || bed
        .work("hangs")
        .exists()));
    session.cancel(number);
    bed.gone_within("p", Duration::from_secs(6));
    assert_eq!(session.reply_text("one", &json!({})), "fine");
    assert_eq!(bed.noted("starts", "p").len(), 2);
}

#[test]
fn a_crash_under_many_calls_is_one_crash() {
    let bed = Bed::with(&[("p", SECOND)]);
    let mut session = bed.session(&[]);
    let asked: Vec<_> = (0..6)
        .map(|_| session.ask("one", &json!({ "how": "crash" })))
        .collect();
    for number in asked {
        let answer = session.answer(number);
        assert!(
            answer.is_error && answer.text.contains("exited (code 3)"),
            "{answer:?}"
        );
    }
    assert_eq!(session.reply_text("one", &json!({})), "fine");
    assert_eq!(session.reply_text("one", &json!({})), "fine");
    assert_eq!(bed.noted("starts", "p").len(), 2);
}

#[test]
fn a_call_does_not_pay_for_another_that_was_cancelled_and_never_answered() {
    let body = r"
import threading
def call(m):
    how, id = m['params'].get('how'), m['call_id']
    def later():
        time.sleep(4)
        say({'type': 'result', 'call_id': id, 'content': 'slept'})
    if how == 'sleep': threading.Thread(target=later).start()
    elif how == 'hang': open('hangs', 'w').close()
    else: say({'type': 'result', 'call_id': id, 'content': 'fine'})
serve(tool('one', protocol=2), call)
";
    let bed = Bed::with(&[("p", body)]);
    let mut session = bed.session(&[]);
    let hangs = session.ask("one", &json!({ "how": "hang" }));
    let sleeps = session.ask("one", &json!({ "how": "sleep" }));
    assert!(within(Duration::from_secs(10), || bed
        .work("hangs")
        .exists()));
    session.cancel(hangs);
    assert_eq!(session.reply_text("one", &json!({})), "fine");
    let slept = session.answer(sleeps);
    assert_eq!((slept.is_error, slept.text.as_str()), (false, "slept"));
    assert_eq!(session.reply_text("one", &json!({})), "fine");
    assert_eq!(bed.noted("starts", "p").len(), 2);
    drop(session);
    bed.nobody_left();
}

/// Answers as instructed, with or without the id of the call.
const NAMELESS: &str = r"
import threading
def call(m):
    how, id = m['params'].get('how'), m['call_id']
    def result(words, **ids): say(dict({'type': 'result', 'content': words}, **ids))
    def twice():
        result('first', call_id=id)
        while not os.path.exists('go'): time.sleep(0.01)
        result('FOR ANOTHER')
    if how == 'wait': open('waits', 'w').close()
    elif how == 'nameless': result('FOR ANOTHER')
    elif how == 'number': result('FOR ANOTHER', call_id=7)
    elif how == 'twice': threading.Thread(target=twice).start()
    elif how == 'go': open('go', 'w').close()
    else: result('fine', call_id=id)
";

#[test]
fn a_result_without_an_id_answers_no_call() {
    let body = format!("{NAMELESS}serve(tool('one', protocol=2), call)");
    // Alone, and with another call in progress; an id is a string.
    for (is_alone, how) in [(true, "nameless"), (false, "nameless"), (true, "number")] {
        let bed = Bed::with(&[("p", &body)]);
        let mut session = bed.session(&[]);
        assert_eq!(session.reply_text("one", &json!({})), "fine");
        let waits = (!is_alone).then(|| session.ask("one", &json!({ "how": "wait" })));
        if waits.is_some() {
            assert!(within(Duration::from_secs(10), || bed
                .work("waits")
                .exists()));
        }
        let nameless = session.ask("one", &json!({ "how": how }));
        for number in waits.into_iter().chain([nameless]) {
            let answer = session.answer(number);
            assert!(
                answer.is_error && answer.text.contains("without a call_id"),
                "{answer:?}"
            );
            assert!(!answer.text.contains("FOR ANOTHER"), "{answer:?}");
        }
        assert_eq!(session.reply_text("one", &json!({})), "fine");
        assert_eq!(bed.noted("starts", "p").len(), 2, "alone: {is_alone}");
    }
}

#[test]
fn a_second_answer_without_an_id_does_not_answer_the_next_call() {
    // In both protocols, from a plugin that sent call ids before.
    for protocol in ["", ", protocol=2"] {
        let body = format!("{NAMELESS}serve(tool('one'{protocol}), call)");
        let bed = Bed::with(&[("p", &body)]);
        let mut session = bed.session(&[]);
        assert_eq!(
            session.reply_text("one", &json!({ "how": "twice" })),
            "first"
        );
        // The second answer comes once the plugin has read the next call.
        let answer = session.call("one", &json!({ "how": "go" }));
        assert!(
            answer.is_error && !answer.text.contains("FOR ANOTHER"),
            "{protocol}: {answer:?}"
        );
        assert_eq!(session.reply_text("one", &json!({})), "fine");
    }
}
