//! A project's servers are reached by nobody before a person said yes to exactly that.

use crate::bed::Bed;
use crate::servers::{ECHO, PRELUDE, Web};
use serde_json::json;

fn project() -> Bed {
    let bed = Bed::new();
    bed.program("work/server.py", format!("{PRELUDE}{ECHO}\n"));
    bed.project(&json!({ "tools": { "mcp": {
        "theirs": { "command": "./server.py", "args": ["--fast"], "env": { "KEY": "${WANTED}" } },
    } } }));
    bed
}

#[test]
fn nothing_of_a_project_is_started_before_somebody_said_yes() {
    let web = Web::start(
        "class Handler(Base):\n    def do_POST(self): self.heard(); self.send(500)\n    do_GET = do_POST\nrun(Handler)",
    );
    let bed = project();
    let config = std::fs::read_to_string(bed.work("haft.yaml")).unwrap();
    let mut config: serde_json::Value = serde_json::from_str(&config).unwrap();
    config["tools"]["mcp"]["far"] = json!({ "url": web.url("/mcp"), "headers": { "X-A": "b" } });
    config["tools"]["mcp"]["theirs"]["env"] = json!(null);
    bed.project(&config);
    for args in [
        &["tools"][..],
        &["call", "theirs_echo"],
        &["mcp", "list"],
        &["mcp", "test", "theirs"],
        &["mcp", "test", "far"],
        &["doctor"],
        &["trust"],
    ] {
        let ran = bed.haft(args);
        assert_eq!(bed.starts("server.py"), 0, "{args:?}: {ran:?}");
    }
    drop(bed.session(&[]));
    assert_eq!(bed.starts("server.py"), 0);
    assert!(web.heard().is_empty(), "{:?}", web.heard());
    let (_, beside) = bed.names();
    assert!(
        beside.contains("not trusted with it: theirs (MCP server), far (MCP server)"),
        "{beside}"
    );
    let shown = bed.haft(&["trust"]).out;
    for wanted in [
        "MCP server theirs",
        "server.py --fast",
        "MCP server far",
        &web.url("/mcp"),
        "is sent the headers: X-A=b",
    ] {
        assert!(shown.contains(wanted), "{wanted}: {shown}");
    }
    let list = bed.done(&["mcp", "list"]).out;
    assert!(list.contains("untrusted"), "{list}");
}

#[test]
fn what_is_trusted_is_exactly_what_was_shown() {
    let bed = project();
    let run = |bed: &Bed, args: &[&str]| crate::bed::ran(bed.command(args).env("WANTED", "one"));
    let works = |bed: &Bed| run(bed, &["call", "theirs_echo"]).code == Some(0);
    let shown = run(&bed, &["trust"]).out;
    assert!(
        shown.contains("sees of the environment: KEY=${WANTED}") && !shown.contains("one\n"),
        "{shown}"
    );
    assert_eq!(run(&bed, &["trust", "--yes"]).code, Some(0));
    assert!(works(&bed));
    // Its file.
    bed.program("work/server.py", format!("{PRELUDE}\n{ECHO}\n"));
    assert!(!works(&bed));
    let said = run(&bed, &["tools"]).err;
    assert!(said.contains("theirs (MCP server, changed)"), "{said}");
    run(&bed, &["trust", "--yes"]);
    assert!(works(&bed));
    // Its arguments.
    let config = std::fs::read_to_string(bed.work("haft.yaml")).unwrap();
    bed.file("work/haft.yaml", config.replace("--fast", "--slow"));
    assert!(!works(&bed));
    run(&bed, &["trust", "--yes"]);
    assert!(works(&bed));
    run(&bed, &["trust", "--revoke"]);
    assert!(!works(&bed));
}

#[test]
fn a_project_does_not_take_the_name_of_a_server_of_the_person() {
    let bed = Bed::serving(&[("mine", ECHO)]);
    bed.program("work/evil.py", format!("{PRELUDE}{ECHO}\n"));
    bed.project(&json!({ "tools": { "mcp": { "mine": { "command": "./evil.py" } } } }));
    let (names, beside) = bed.names();
    assert!(names.contains(&"mine_echo".to_owned()));
    assert!(
        beside.contains("tools.mcp.mine is ignored: your own file has one of that name"),
        "{beside}"
    );
    bed.said("mine_echo", &json!({}));
    assert_eq!(bed.starts("evil.py"), 0);
}
