//! Malicious schemas: each is reported, none takes long, and the other tools load.

use crate::bed::Bed;
use serde_json::json;
use std::time::Duration;

#[test]
fn a_schema_that_is_a_trap_is_named_and_the_others_load() {
    let body = r"
def deep(n):
    schema = {'type': 'string'}
    for _ in range(n): schema = {'type': 'object', 'properties': {'a': schema}}
    return schema
def one(name, schema): return {'name': name, 'description': 'd', 'parameters': schema}
def prop(schema): return {'type': 'object', 'properties': {'a': schema}}
bombs = [
    one('whole', {'$ref': '#'}),
    one('empty', {'$ref': ''}),
    one('remote', prop({'$ref': 'http://127.0.0.1:9/schema.json'})),
    one('local', prop({'$ref': 'file:///etc/passwd'})),
    one('dynamic', prop({'$dynamicRef': '#meta'})),
    one('cycle', {'type': 'object', 'properties': {'a': {'$ref': '#/$defs/a'}}, '$defs': {'a': {'$ref': '#/$defs/b'}, 'b': {'$ref': '#/$defs/a'}}}),
    one('deep', deep(50)),
    one('large', prop({'type': 'string', 'enum': ['e%d' % n * 20 for n in range(100000)]})),
    one('number', 5),
    one('list', []),
    one('kind', prop({'type': 'nonsense'})),
    one('pattern', prop({'type': 'string', 'pattern': '('})),
    one('text', 'string'),
    one('grows', {'type': 'object', 'properties': {'a': {'$ref': '#/$defs/n0'}}, '$defs': dict([('n%d' % i, {'allOf': [{'$ref': '#/$defs/n%d' % (i + 1)}] * 10}) for i in range(12)] + [('n12', {'type': 'string'})])}),
]
serve({'tools': bombs + [one('node', {'type': 'object', 'properties': {'a': {'$ref': '#/$defs/n'}}, '$defs': {'n': {'type': 'object', 'properties': {'c': {'type': 'array', 'items': {'$ref': '#/$defs/n'}}}}}}), one('backtracks', prop({'type': 'string', 'pattern': '^(a+)+$'})), tool('good')]}, lambda m: text('fine'))
";
    let bed = Bed::with(&[
        ("p", body),
        ("q", "serve(tool('other'), lambda m: text('other'))"),
    ]);
    let ran = bed.done(&["tools"]);
    assert!(ran.took < Duration::from_secs(6), "{:?}", ran.took);
    for name in [
        "whole", "empty", "remote", "local", "dynamic", "cycle", "deep", "large", "number", "list",
        "kind", "pattern", "text", "grows",
    ] {
        let expected = format!("plugin p has a tool that cannot be used: tool \"{name}\"");
        assert!(ran.err.contains(&expected), "{name}:\n{}", ran.err);
        assert!(!ran.out.contains(&format!("{name}\t")), "{name}");
    }
    assert!(ran.err.len() < 20_000, "{}", ran.err.len());
    let mut session = bed.session(&[]);
    assert_eq!(session.reply_text("good", &json!({})), "fine");
    let tree = json!({ "a": { "c": [{ "c": [] }] } });
    assert_eq!(session.reply_text("node", &tree), "fine");
    assert_eq!(session.reply_text("other", &json!({})), "other");
    let begun = std::time::Instant::now();
    let answer = session.call(
        "backtracks",
        &json!({ "a": format!("{}!", "a".repeat(50_000)) }),
    );
    assert!(
        answer.is_error && begun.elapsed() < Duration::from_secs(2),
        "{:?}",
        begun.elapsed()
    );
}

#[test]
fn a_schema_ten_thousand_levels_deep_is_survived() {
    let body = r"
for message in lines():
    if message['type'] == 'describe':
        raw('{\x22name\x22:\x22abyss\x22,\x22description\x22:\x22d\x22,\x22parameters\x22:' + '{\x22not\x22:' * 10000 + '{}' + '}' * 10000 + '}\n')
    elif message['type'] == 'init': time.sleep(1000)
";
    let bed = Bed::with(&[
        ("p", body),
        ("q", "serve(tool('other'), lambda m: text('other'))"),
    ]);
    let ran = bed.done(&["tools"]);
    assert!(ran.took < Duration::from_secs(5), "{:?}", ran.took);
    assert!(
        ran.out.contains("other") && !ran.out.contains("abyss"),
        "{ran:?}"
    );
    assert!(
        ran.err
            .contains("plugin p cannot be used: it wrote a message with more than 120 levels"),
        "{ran:?}"
    );
}
