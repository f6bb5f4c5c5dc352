//! Handshakes and answers of plugins in every supported form.

use crate::bed::Bed;
use serde_json::{Value, json};

const ECHO: &str = r#"text(message["name"] + " " + json.dumps(message["params"], sort_keys=True))"#;

/// A plugin that answers `describe` with this.
fn describing(answer: &str) -> Bed {
    let body = format!(
        "for message in lines():\n  if message['type'] == 'describe':\n    {answer}\n  elif message['type'] == 'call': {ECHO}"
    );
    Bed::with(&[("p", &body)])
}

#[test]
fn a_definition_comes_in_every_shape() {
    for answer in [
        "say(tool('one'))",
        "say({'tools': [tool('one'), tool('two')]})",
        "say({'type': 'init', 'tools': [tool('one')]})",
        // Pretty-printed, with CRLF, after a banner, with blank lines.
        "raw(json.dumps(tool('one'), indent=2) + '\\n')",
        "raw(json.dumps({'tools': [tool('one')]}, indent=4).replace('\\n', '\\r\\n') + '\\r\\n')",
        "raw('Loading model...\\n[info] {ready}\\n\\n42\\n\"x\"\\n'); say(tool('one'))",
        "raw('{debug} starting\\n'); say({'name': 'one', 'description': 'd'})",
        "raw(json.dumps(tool('one')) + '\\r\\n')",
        // Without parameters, or with their other name.
        "say({'name': 'one', 'description': 'd'})",
        "say({'name': 'one', 'parameters': {'type': 'object'}})",
        "say({'name': 'one', 'description': 'd', 'input_schema': {'type': 'object'}})",
        "say({'name': 'one', 'description': 'd', 'parameters': None})",
    ] {
        let bed = describing(answer);
        let printed = bed.reply_text("one", &json!({ "a": "ü→🙂" }));
        assert_eq!(
            printed, r#"one {"a": "\u00fc\u2192\ud83d\ude42"}"#,
            "{answer}"
        );
        assert_eq!(bed.noted("starts", "p").len(), 1, "{answer}");
        let first = bed.noted("got", "p")[0].clone();
        assert_eq!(first, r#"{"type":"describe","protocol":2}"#);
    }
}

#[test]
fn one_plugin_with_several_tools_gets_the_tools_name() {
    let bed = describing("say({'tools': [tool('one'), tool('two')]})");
    assert_eq!(bed.reply_text("one", &json!({})), "one {}");
    assert_eq!(bed.reply_text("two", &json!({})), "two {}");
}

#[test]
fn an_init_only_plugin_is_restarted_and_asked_with_init() {
    for refusal in [
        "say({'error': {'code': -1, 'message': 'unknown type: describe'}})",
        "say({'content': [{'type': 'text', 'text': 'unknown'}], 'error': True})",
        "say({'type': 'error', 'message': 'unknown'})",
    ] {
        let body = format!(
            "for message in lines():\n  if message['type'] == 'init': say({{'type': 'init', 'tools': [tool('one')]}})\n  elif message['type'] == 'call': text('fine', type='result', call_id=message['call_id'])\n  else: {refusal}"
        );
        let bed = Bed::with(&[("p", &body)]);
        let ran = bed.done(&["call", "one"]);
        assert_eq!(ran.out, "fine\n", "{refusal}");
        let got = bed.noted("got", "p");
        let kinds: Vec<Value> = got
            .iter()
            .map(|line| serde_json::from_str::<Value>(line).unwrap()["type"].clone())
            .collect();
        assert_eq!(kinds, ["describe", "init", "init", "call"], "{refusal}");
        assert_eq!(bed.noted("starts", "p").len(), 2, "{refusal}");
    }
}

#[test]
fn a_slow_plugin_is_in_step_afterwards() {
    let slow = "serve(tool('slow'), lambda m: text('slow ' + m['params']['n']))"
        .replace("serve(", "time.sleep(1.5)\nserve(");
    let ignores = r"
for message in lines():
  if message['type'] == 'init': say({'type': 'init', 'tools': [tool('init_only')]})
  elif message['type'] == 'call': text('init ' + message['params']['n'])
";
    let bed = Bed::with(&[("slow", &slow), ("init", ignores)]);
    let mut session = bed.session(&[]);
    for n in ["a", "b", "c"] {
        let arguments = json!({ "n": n });
        assert_eq!(session.reply_text("slow", &arguments), format!("slow {n}"));
        assert_eq!(
            session.reply_text("init_only", &arguments),
            format!("init {n}")
        );
    }
    let last = bed.noted("starts", "slow").len();
    assert_eq!(last, 2, "asked twice, so it was restarted");
}

#[test]
fn only_the_pinned_protocol_is_used() {
    let body = r"
for message in lines():
  if message['type'] == 'init': say({'type': 'init', 'tools': [tool('one')]})
  elif message['type'] == 'call': text('fine')
  else: os._exit(3)
";
    let bed = Bed::with(&[("p", body)]);
    let mut entry = bed.plugin("p");
    entry["protocol"] = "init".into();
    bed.configure(&json!({ "tools": { "plugins": [entry] } }));
    assert_eq!(bed.reply_text("one", &json!({})), "fine");
    assert_eq!(bed.noted("got", "p")[0], r#"{"type":"init","tools":[]}"#);
}

#[test]
fn a_call_is_one_plain_line() {
    let properties =
        "{'a': {'type': 'string'}, 'b': {'type': ['string', 'null']}, 'c': {'type': 'integer'}}";
    let bed = Bed::with(&[(
        "p",
        &format!("serve(tool('one', {properties}), lambda m: text('ok'))"),
    )]);
    let mut session = bed.session(&[]);
    session.reply_text(
        "one",
        &json!({ "a": "</ü>\n\"\\\u{7f}/", "b": null, "c": null }),
    );
    session.reply_text("one", &json!({}));
    let got = bed.noted("got", "p");
    let call: Value = serde_json::from_str(&got[1]).unwrap();
    let id = call["call_id"].as_str().unwrap();
    assert!(!id.is_empty());
    assert_eq!(
        got[1],
        format!(
            r#"{{"type":"call","name":"one","call_id":"{id}","params":{{"a":"</ü>\n\"\\{}/"}}}}"#,
            '\u{7f}'
        )
    );
    assert_eq!(bed.calls("p")[1]["params"], json!({}));
    assert_ne!(bed.calls("p")[0]["call_id"], bed.calls("p")[1]["call_id"]);
}

#[test]
fn a_reply_is_taken_in_every_shape() {
    let body = r"
def call(m):
    how = m['params']['how']
    hello = {'type': 'text', 'text': 'hello'}
    if how == 'echoed': text('hello', call_id=m['call_id'])
    if how == 'plain': text('hello')
    if how == 'error': text('hello', error=True)
    if how == 'is_error': text('hello', is_error=True)
    if how == 'words': say({'error': 'hello'})
    if how == 'object': say({'error': {'message': 'hello'}})
    if how == 'kind': say({'type': 'error', 'message': 'hello', 'call_id': m['call_id']})
    if how == 'blocks': say({'content': [{'type': 'text', 'text': 'hel'}, {'type': 'text', 'text': 'lo'}]})
    if how == 'string': say({'content': 'hello'})
    if how == 'result': say({'type': 'result', 'call_id': m['call_id'], 'content': [hello], 'is_error': False})
    if how == 'pretty': raw(json.dumps({'content': [hello], 'error': False}, indent=2) + '\n')
    if how == 'noise': raw('debug: x\n{not json}\n[]\n'); text('hello')
    if how == 'bytes': sys.stdout.buffer.write(b'{\x22content\x22:\x22hel\xff\x22}\n'); sys.stdout.flush()
    if how == 'control': raw('{\x22content\x22:\x22a\x01\tb\x22}\n')
    if how == 'empty': say({'type': 'result', 'call_id': m['call_id']})
    if how == 'nothing': say({'content': [], 'error': False})
serve(tool('one'), call)
";
    let bed = Bed::with(&[("p", body)]);
    let mut session = bed.session(&[]);
    for (how, is_error, text) in [
        ("plain", false, "hello"),
        ("error", true, "hello"),
        ("is_error", true, "hello"),
        ("words", true, "hello"),
        ("object", true, "hello"),
        ("blocks", false, "hello"),
        ("string", false, "hello"),
        ("pretty", false, "hello"),
        ("noise", false, "hello"),
        ("bytes", false, "hel\u{fffd}"),
        ("control", false, "a\u{1}\tb"),
        ("nothing", false, ""),
        ("plain", false, "hello"),
        // From now on it sends call ids, and must keep doing so.
        ("echoed", false, "hello"),
        ("kind", true, "hello"),
        ("result", false, "hello"),
        ("empty", false, ""),
    ] {
        let answer = session.call("one", &json!({ "how": how }));
        assert_eq!(
            (answer.is_error, answer.text.as_str()),
            (is_error, text),
            "{how}"
        );
    }
    assert_eq!(
        bed.noted("starts", "p").len(),
        1,
        "none of it was a failure"
    );
}

#[test]
fn pictures_arrive_as_pictures() {
    let png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    let body = format!(
        "serve(tool('one'), lambda m: say({{'content': [{{'type': 'text', 'text': 'a'}}, {{'type': 'image', 'data': '{png}', m['params']['key']: 'image/png'}}, {{'type': 'text', 'text': 'b'}}]}}))"
    );
    let bed = Bed::with(&[("p", &body)]);
    let mut session = bed.session(&[]);
    for key in ["mimeType", "mime_type", "media_type"] {
        let number = session.ask("one", &json!({ "key": key }));
        let reply = session.reply(number);
        assert_eq!(
            reply["result"]["content"],
            json!([
                { "type": "text", "text": "a" },
                { "type": "image", "data": png, "mimeType": "image/png" },
                { "type": "text", "text": "b" },
            ]),
            "{key}"
        );
    }
}

#[test]
fn a_long_message_on_many_lines_is_read_in_time() {
    let body = r"
rows = [{'n': n} for n in range(24000)]
serve(tool('one'), lambda m: raw(json.dumps({'content': 'long', 'details': {'rows': rows}}, indent=1) + '\n'))
";
    let bed = Bed::with(&[("p", body)]);
    let mut session = bed.session(&[]);
    let begun = std::time::Instant::now();
    assert_eq!(session.reply_text("one", &json!({})), "long");
    assert!(begun.elapsed().as_secs() < 10, "{:?}", begun.elapsed());
}

#[test]
fn plugins_in_bash_with_sed_work_as_in_the_manual() {
    let bed = Bed::new();
    bed.program(
        "plugins/sh",
        r#"#!/bin/bash
while IFS= read -r line; do
  case "$line" in
    *'"type":"describe"'*) printf '{"name":"sys","description":"d","parameters":{"type":"object","properties":{"section":{"type":"string"}}}}\n' ;;
    *'"type":"call"'*) section=$(sed -n 's/.*"section":"\([^"]*\)".*/\1/p' <<<"$line")
      printf '{"content":[{"type":"text","text":"section=%s"}],"error":false}\n' "$section" ;;
  esac
done
"#,
    );
    bed.configure(&json!({ "tools": { "plugins": [bed.plugin("sh")] } }));
    assert_eq!(
        bed.reply_text("sys", &json!({ "section": "a/b ü" })),
        "section=a/b ü"
    );
}

#[test]
fn noise_is_named_in_the_log_of_haft() {
    let bed = describing("raw('Loading model...\\n'); say(tool('one'))");
    let ran = bed.done(&["--log", "info", "call", "one"]);
    assert!(ran.err.contains("Loading model..."), "{ran:?}");
}

#[test]
fn every_toolset_has_plugins_and_says_in_its_own_way_what_is_wrong() {
    let body = "serve(tool('one', {'a': {'type': 'string'}}), lambda m: text('fine') if m['params'].get('a') else os._exit(5))";
    for (toolset, wrong, crash) in [
        (
            "standard",
            "validation error: unknown parameter \"b\"",
            "plugin p exited (code 5)",
        ),
        (
            "ah",
            "validation error: unknown parameter \"b\"",
            "error: plugin p exited (code 5)",
        ),
        (
            "workspace",
            "{\"success\":false,\"error\":\"validation error: unknown parameter",
            "{\"success\":false,\"error\":\"plugin p exited (code 5)",
        ),
        (
            "deepagents",
            "{\"status\":\"error\",\"message\":\"validation error: unknown parameter",
            "{\"status\":\"error\",\"message\":\"plugin p exited (code 5)",
        ),
    ] {
        let bed = Bed::with(&[("p", body)]);
        let mut session = bed.session(&["--toolset", toolset]);
        assert_eq!(
            session.reply_text("one", &json!({ "a": "x" })),
            "fine",
            "{toolset}"
        );
        for (arguments, first) in [(json!({ "b": 1 }), wrong), (json!({}), crash)] {
            let answer = session.call("one", &arguments);
            assert!(
                answer.is_error && answer.text.starts_with(first),
                "{toolset}: {answer:?}"
            );
        }
    }
}

#[test]
fn invalid_images_are_reported_and_images_are_limited() {
    let png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR42mNoAAAAggCB2kUIOwAAAABJRU5ErkJggg==";
    let body = r"
png = 'PNG'
image = lambda data, kind: {'type': 'image', 'data': data, 'mimeType': kind}
replies = {'base64': [image('!!!', 'image/png')], 'kind': [image('QQ==', 'text/html\r\nX: y')], 'empty': [image('', 'image/png')],
  'damaged': [image('QQ==', 'image/png')], 'beside': [{'type': 'text', 'text': 'drawn'}, image(png[:48], 'image/png')], 'cut': [image(png[:48], 'image/png')], 'svg': [image('PHN2Zy8+', 'image/svg+xml')],
  'lines': [image(png[:30] + '\r\n' + png[30:] + '\n', 'image/png')], 'type': [image(png, 'application/octet-stream')], 'many': [image(png, 'image/gif')] * 5000}
serve(tool('one'), lambda m: say({'content': replies[m['params']['how']]}))
";
    let body = body.replace("PNG", png);
    let bed = Bed::with(&[("p", &body)]);
    let mut session = bed.session(&[]);
    let empty = bed.call("one", &json!({ "how": "empty" }));
    assert!(empty.is_error, "{empty:?}");
    assert!(
        empty.text.contains("an image block has no data"),
        "{empty:?}"
    );
    for (how, is_error) in [
        ("base64", true),
        ("kind", true),
        ("damaged", true),
        ("cut", true),
        ("svg", true),
        ("beside", false),
    ] {
        let answer = session.call("one", &json!({ "how": how }));
        assert_eq!(answer.is_error, is_error, "{answer:?}");
        let printed = answer.text;
        assert!(printed.contains("was left out"), "{how}: {printed}");
        assert!(!printed.contains('\r'), "{how}: {printed:?}");
    }
    for (how, images) in [("lines", 1), ("type", 1), ("many", 20)] {
        let number = session.ask("one", &json!({ "how": how }));
        let reply = session.reply(number);
        let blocks = reply["result"]["content"].as_array().unwrap();
        let is_image = |block: &&Value| {
            block["type"] == "image" && block["data"] == png && block["mimeType"] == "image/png"
        };
        assert_eq!(blocks.iter().filter(is_image).count(), images, "{how}");
        assert_eq!(blocks.len(), if how == "many" { 21 } else { 1 }, "{how}");
    }
}

#[test]
fn a_list_with_one_tool_on_each_line_is_one_list() {
    let list = r"',\n'.join(json.dumps(tool(name, {'content': {}, 'a': {'type': 'string'}})) for name in ('t1', 't2', 't3'))";
    for (first, last) in [
        (r#"{"tools":[\n"#, r"\n]}\n"),
        (r#"{"tools":\n[\n"#, r"\n]\n}\n"),
        (r#"{"type":"init","tools":[\n"#, r"\n]}\n"),
        (r#"{"protocol":2,"tools":["#, r"]}\n"),
    ] {
        let bed = describing(&format!("raw('{first}' + {list} + '{last}')"));
        let (names, beside) = bed.names();
        for name in ["t1", "t2", "t3"] {
            assert!(names.contains(&name.to_owned()), "{first}: {names:?}");
        }
        assert_eq!(beside, "", "{first}");
    }
    let body = format!(
        "for message in lines():\n  if message['type'] == 'init': raw('{{\"type\":\"init\",\"tools\":[\\n' + {list} + '\\n]}}\\n')\n  elif message['type'] == 'call': text('fine')"
    );
    let bed = Bed::with(&[("p", &body)]);
    let (names, _) = bed.names();
    assert!(names.contains(&"t1".to_owned()) && names.contains(&"t3".to_owned()));
    assert_eq!(bed.reply_text("t2", &json!({})), "fine");
}

#[test]
fn a_log_line_with_a_name_is_not_a_definition() {
    let log = "{'name': 'myapp', 'hostname': 'h', 'pid': 1, 'level': 30, 'msg': 'started', 'v': 0}";
    let bed = describing(&format!("say({log}); say(tool('one'))"));
    let (names, beside) = bed.names();
    assert!(
        names.contains(&"one".to_owned()) && !names.contains(&"myapp".to_owned()),
        "{names:?}"
    );
    assert_eq!(beside, "");
    assert_eq!(bed.reply_text("one", &json!({})), "one {}");
    assert_eq!(
        bed.noted("starts", "p").len(),
        2,
        "it was asked once each time"
    );
}

#[test]
fn half_a_character_in_an_escape_is_replaced() {
    let body = r#"
def call(m):
    raw('{"content":[{"type":"text","text":"a\\ud800b\\udc00c \\ud83d\\ude42 \\\\ud800"}],"error":false}\n')
serve(tool('one'), call)
"#;
    let bed = Bed::with(&[("p", body)]);
    assert_eq!(
        bed.reply_text("one", &json!({})),
        "a\u{fffd}b\u{fffd}c \u{1f642} \\ud800"
    );
}
