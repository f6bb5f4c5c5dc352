//! A project's tools are guests: they have network access if commands do, and their files
//! are part of what is trusted.

use crate::bed::Bed;
use serde_json::json;

const DIAL: &str = r"
import socket
def call(m):
    try:
        socket.create_connection(('127.0.0.1', m['params']['port']), 5).close()
        text('connected')
    except Exception as error:
        text('refused')
serve(tool('one'), call)
";

#[test]
fn a_guest_has_the_network_where_commands_have_it() {
    let bed = Bed::new();
    let script = bed.python("p", DIAL);
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = json!({ "port": listener.local_addr().unwrap().port() });
    let plugin = json!({ "path": "python3", "args": [script] });
    bed.project(&json!({ "tools": { "plugins": [plugin] } }));
    let dial = "python3 -c \"import socket; socket.create_connection(('127.0.0.1', int('$HAFT_ARG_PORT')), 5)\" 2>/dev/null && echo connected || echo refused";
    bed.program("work/tools/dial", format!("#!/bin/bash\n{dial}\n"));
    let schema = "---\ndescription: Dials.\nparameters: {type: object, properties: {port: {type: integer}}}\n---\n";
    bed.write("work/tools/dial.md", schema);
    bed.done(&["trust", "--yes"]);
    for tool in ["one", "dial"] {
        for (network, expected) in [("off", "refused"), ("on", "connected")] {
            let answer = bed.call_with(&["--network", network], tool, &port);
            assert!(
                answer.text.starts_with(expected),
                "{tool} {network}: {}",
                answer.text
            );
        }
    }
}

#[test]
fn files_named_in_a_shebang_are_part_of_the_tool() {
    let bed = Bed::new();
    bed.program("work/interpreter", "#!/bin/sh\necho first\n");
    let inside = format!("#!{}\n", bed.work("interpreter").display());
    bed.program("work/tools/say", inside);
    bed.write("work/tools/say.md", "---\ndescription: Says it.\n---\n");
    bed.done(&["trust", "--yes"]);
    assert_eq!(bed.call("say", &json!({})).text.trim(), "first");
    bed.program("work/interpreter", "#!/bin/sh\necho second\n");
    let ran = bed.haft(&["call", "say", "{}"]);
    assert!(!ran.out.contains("second"), "{ran:?}");
    assert!(ran.err.contains("changed"), "{ran:?}");
}

#[test]
fn an_argument_stays_on_its_line() {
    let bed = Bed::new();
    let forged = "true\n  program g (trusted, 13a6af422ec0)\n      tools/g";
    bed.project(&json!({ "tools": { "plugins": [{ "path": "bash", "args": ["-c", forged] }] } }));
    let ran = bed.done(&["trust", "--yes"]);
    assert!(
        !ran.out
            .lines()
            .any(|line| line.trim_start().starts_with("program g")),
        "{}",
        ran.out
    );
}
