//! Starting plugins: slow ones, odd ones, and the messages about those that fail.

use crate::bed::Bed;
use serde_json::{Value, json};

/// Call handling of the plugin.
const CALL: &str = "text('called ' + json.dumps(message['params']), call_id=message['call_id'])";

/// The messages that each start of a plugin got: their types, and whether they offer the
/// second protocol.
fn asked(bed: &Bed) -> Vec<String> {
    let kind = |line: &String| {
        let message: Value = serde_json::from_str(line).unwrap();
        let kind = message["type"].as_str().unwrap().to_owned();
        match message.get("protocol") {
            Some(_) => kind + "+2",
            None => kind,
        }
    };
    bed.noted("got", "p").iter().map(kind).collect()
}

/// Calls its tool twice, in separate processes.
#[track_caller]
fn works(body: &str) -> Bed {
    let bed = Bed::with(&[("p", body)]);
    for _ in 0..2 {
        assert_eq!(bed.reply_text("one", &json!({})), "called {}", "{body}");
    }
    bed
}

#[test]
fn a_plugin_that_exits_at_describe_is_registered_by_init() {
    let bed = works(&format!(
        "for message in lines():
  if message['type'] == 'init': say({{'type': 'init', 'tools': [tool('one')]}})
  elif message['type'] == 'call': {CALL}
  else: sys.exit('unknown message type: ' + message['type'])"
    ));
    // It is cached: the second process sends only the message that it answers.
    assert_eq!(
        asked(&bed),
        ["describe+2", "init", "call", "init", "call"],
        "{:?}",
        bed.noted("got", "p")
    );
}

#[test]
fn a_plugin_that_compares_the_whole_line_is_registered() {
    for otherwise in [
        "pass",
        "sys.exit(3)",
        "say({'content': [{'type': 'text', 'text': 'unknown'}], 'error': True})",
    ] {
        let bed = works(&format!(
            "for line in iter(sys.stdin.readline, ''):
  note('got', line.rstrip('\\n'))
  if line == '{{\"type\":\"describe\"}}\\n': say(tool('one'))
  elif '\"call\"' in line:
    message = json.loads(line)
    {CALL}
  else: {otherwise}"
        ));
        let got = asked(&bed);
        assert_eq!(got[got.len() - 2..], ["describe", "call"], "{got:?}");
    }
}

#[test]
fn a_plugin_that_answers_with_a_bare_list_is_registered() {
    for question in ["describe", "init"] {
        for indent in ["None", "2"] {
            works(&format!(
                "for message in lines():
  if message['type'] == '{question}': raw(json.dumps([tool('one'), tool('two')], indent={indent}) + '\\n')
  elif message['type'] == 'call': {CALL}"
            ));
        }
    }
}

#[test]
fn each_start_has_its_own_time_limit() {
    // Two messages mean two starts; together they take longer than half of the limit.
    let body = format!(
        "time.sleep(1.8)
for message in lines():
  if message['type'] == 'init': say({{'type': 'init', 'tools': [tool('one')]}})
  elif message['type'] == 'call': {CALL}"
    );
    let bed = Bed::new();
    bed.python("p", &body);
    let mut entry = bed.plugin("p");
    entry["start_timeout"] = json!(3);
    bed.configure(&json!({ "tools": { "plugins": [entry] } }));
    assert_eq!(bed.reply_text("one", &json!({})), "called {}");
    assert_eq!(bed.noted("starts", "p").len(), 2);
}

/// The first process asks for the definition; the second has it cached and starts the
/// plugin within the call.
#[test]
fn a_start_takes_nothing_from_the_time_of_a_call() {
    let body = format!(
        "time.sleep(2)
for message in lines():
  if message['type'] == 'describe': say(tool('one'))
  elif message['type'] == 'call': {CALL}"
    );
    for (own, session) in [(json!(1), json!(60)), (Value::Null, json!(1))] {
        let bed = Bed::new();
        bed.python("p", &body);
        let mut entry = bed.plugin("p");
        if !own.is_null() {
            entry["timeout"] = own;
        }
        bed.configure(&json!({ "tools": { "plugins": [entry], "timeout": session } }));
        for _ in 0..2 {
            assert_eq!(bed.reply_text("one", &json!({})), "called {}");
        }
    }
}

#[test]
fn a_slow_plugin_is_reported_with_the_key_that_allows_more() {
    let bed = Bed::new();
    bed.python("p", "time.sleep(60)");
    let mut entry = bed.plugin("p");
    entry["start_timeout"] = json!(1.5);
    bed.configure(&json!({ "tools": { "plugins": [entry] } }));
    let (_, beside) = bed.names();
    assert!(
        beside.contains("did not answer within 1.5 seconds of its start; `start_timeout`"),
        "{beside}"
    );
}

#[test]
fn an_answer_that_is_not_a_definition_is_shown() {
    for (body, expected) in [
        (
            "for message in lines(): say({'hello': message['type']})",
            r#"answered, but not with a definition: {"hello":"describe"}"#,
        ),
        (
            "for message in lines(): say({'content': [], 'error': True})",
            "answered, but not with a definition",
        ),
        (
            "raw('Usage: p [options]\\n')\nfor message in lines(): pass",
            "wrote a line that is not a JSON message: Usage: p [options]",
        ),
        (
            "for message in lines(): sys.exit('no such message')",
            "exited at its start (code 1)",
        ),
    ] {
        let bed = Bed::new();
        bed.python("p", body);
        let mut entry = bed.plugin("p");
        entry["start_timeout"] = json!(2.5);
        bed.configure(&json!({ "tools": { "plugins": [entry] } }));
        let (_, beside) = bed.names();
        assert!(beside.contains(expected), "{body}: {beside}");
        assert!(!beside.contains("did not answer"), "{body}: {beside}");
    }
}

#[test]
fn a_plugin_that_fails_before_it_reads_is_started_once() {
    let bed = Bed::with(&[("p", "sys.exit('no licence')")]);
    let (_, beside) = bed.names();
    assert!(beside.contains("no licence"), "{beside}");
    assert_eq!(bed.noted("starts", "p").len(), 1);
}

const SLEEPS: &str = "serve(tool('one', {'s': {'type': 'number'}}), lambda m: (time.sleep(m['params']['s']), text('slept')))";

#[test]
fn a_plugin_s_entry_limits_its_calls_and_the_reply_names_the_key() {
    let bed = Bed::new();
    bed.python("p", SLEEPS);
    let mut entry = bed.plugin("p");
    entry["timeout"] = json!(0.5);
    bed.configure(&json!({ "tools": { "plugins": [entry] } }));
    let late = bed.call("one", &json!({ "s": 30 }));
    assert!(late.is_error);
    assert!(
        late.text.starts_with("timed out after 0.5 seconds"),
        "{late:?}"
    );
    assert!(
        late.text
            .contains("set `timeout` (seconds) in its entry under `tools.plugins`"),
        "{late:?}"
    );
    // It overrides the limit of all tools, which applies to entries without their own.
    entry["timeout"] = json!(20);
    bed.configure(&json!({ "tools": { "plugins": [entry], "timeout": 0.5 } }));
    assert_eq!(bed.reply_text("one", &json!({ "s": 1.5 })), "slept");
    bed.configure(&json!({ "tools": { "plugins": [bed.plugin("p")], "timeout": 0.5 } }));
    let late = bed.call("one", &json!({ "s": 30 }));
    assert!(late.text.contains("`tools.timeout`"), "{late:?}");
}

#[test]
fn a_project_s_entry_cannot_exceed_the_limit_of_all_tools() {
    let bed = Bed::new();
    bed.python("p", SLEEPS);
    bed.configure(&json!({ "tools": { "timeout": 0.5 } }));
    let mut entry = bed.plugin("p");
    entry["timeout"] = json!(20);
    bed.project(&json!({ "tools": { "plugins": [entry] } }));
    bed.done(&["trust", "--yes"]);
    let late = bed.call("one", &json!({ "s": 30 }));
    assert!(
        late.is_error && late.text.contains("`tools.timeout`"),
        "{late:?}"
    );
}

#[test]
fn a_page_and_a_module_limit_their_calls_too() {
    let bed = Bed::new();
    bed.program(
        "home/.config/haft/tools/slow.sh",
        "#!/bin/sh\necho begun\nsleep 30\n",
    );
    bed.write(
        "home/.config/haft/tools/slow.md",
        "---\ndescription: Deploys: to prod\ntimeout: 0.5\n---\nUse it.\n",
    );
    let late = bed.call("slow", &json!({}));
    assert!(late.is_error);
    assert!(late.text.starts_with("begun\n"), "{late:?}");
    assert!(
        late.text.contains("timed out after 0.5 seconds"),
        "{late:?}"
    );
    assert!(
        late.text
            .contains("set `timeout` (seconds) in the front matter of"),
        "{late:?}"
    );
    assert!(late.text.contains("slow.md"), "{late:?}");
    let (tools, _) = bed.tools();
    let slow = tools.iter().find(|tool| tool["name"] == "slow").unwrap();
    assert_eq!(slow["description"], "Deploys: to prod");
    bed.write(
        "home/.config/haft/tools/lazy.lua",
        "return { name = 'lazy', description = 'Sleeps.', timeout = 0.5,
           input_schema = { type = 'object', properties = {} },
           execute = function() haft.call('slow', {}) return 'done' end }",
    );
    bed.write(
        "home/.config/haft/tools/slow.md",
        "---\ndescription: Deploys: to prod\n---\nUse it.\n",
    );
    let late = bed.call("lazy", &json!({}));
    assert!(late.is_error);
    assert!(
        late.text.starts_with("timed out after 0.5 seconds"),
        "{late:?}"
    );
    assert!(
        late.text.contains("the table that") && late.text.contains("lazy.lua"),
        "{late:?}"
    );
}

#[test]
fn an_invalid_limit_is_an_error_that_names_the_key() {
    let bed = Bed::new();
    bed.python("p", SLEEPS);
    for key in ["timeout", "start_timeout"] {
        let mut entry = bed.plugin("p");
        entry[key] = json!("soon");
        bed.configure(&json!({ "tools": { "plugins": [entry] } }));
        let ran = bed.haft(&["tools"]);
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(
            ran.err
                .contains(&format!("{key} must be a number of seconds")),
            "{ran:?}"
        );
    }
}
