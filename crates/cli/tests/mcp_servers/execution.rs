//! `execution`, for the toolset of absolute paths: a server runs the code.

use crate::bed::Bed;
use serde_json::json;

const RUNS: &str = "serve([tool(name, {'code': {'type': 'string'}}) for name in ['execute_python', 'execute_bash', 'install_packages', 'other']], echo)";

#[test]
fn the_tools_of_the_server_have_their_own_names() {
    let bed = Bed::new();
    bed.server("runs", RUNS);
    bed.configure(&json!({ "execution": bed.entry("runs"), "tools": { "toolset": "deepagents" } }));
    let (names, beside) = bed.names();
    assert_eq!(beside, "");
    for name in ["execute_python", "execute_bash", "install_packages"] {
        assert!(names.contains(&name.to_owned()), "{names:?}");
    }
    for name in ["execute", "other", "execution_other"] {
        assert!(!names.contains(&name.to_owned()), "{names:?}");
    }
    assert_eq!(
        bed.said("execute_python", &json!({ "code": "1" })),
        r#"{"code": "1"}"#
    );
    // Another toolset runs commands as it always does.
    let (names, _) = {
        let ran = bed.done(&["--toolset", "standard", "tools", "--json"]);
        (ran.out, ran.err)
    };
    assert!(names.contains("\"bash\"") && !names.contains("execute_python"));
}

#[test]
fn a_projects_server_needs_a_yes() {
    let bed = Bed::new();
    bed.program(
        "work/runs.py",
        format!("{}{RUNS}\n", crate::servers::PRELUDE),
    );
    bed.project(
        &json!({ "execution": { "command": "./runs.py" }, "tools": { "toolset": "deepagents" } }),
    );
    let (names, beside) = bed.names();
    assert!(
        !names.iter().any(|name| name.starts_with("execute")),
        "{names:?}"
    );
    assert!(beside.contains("execution (MCP server)"), "{beside}");
    assert_eq!(bed.starts("runs.py"), 0);
    bed.done(&["trust", "--yes"]);
    assert!(bed.names().0.contains(&"execute_bash".to_owned()));
}

/// What a variable holds may be secret: a failure shows the path as it is written.
#[test]
fn a_program_that_cannot_start_is_shown_as_it_is_written() {
    let path = "/bin/${PLACE}";
    for config in [
        json!({ "execution": { "command": path }, "tools": { "toolset": "deepagents" } }),
        json!({ "tools": { "mcp": { "docs": { "command": path } } } }),
        json!({ "tools": { "plugins": [{ "path": path }] } }),
        json!({ "tools": { "plugins": [{ "path": "${PLACE}" }] } }),
    ] {
        let bed = Bed::new();
        bed.project(&config);
        let mut command = bed.command(&["--trust", "tools"]);
        let ran = crate::bed::ran(command.env("PLACE", "kestrel-5b1c"));
        assert!(ran.err.contains("cannot start"), "{config}: {ran:?}");
        assert!(ran.err.contains("${PLACE}"), "{config}: {ran:?}");
        assert!(!(ran.out + &ran.err).contains("kestrel"), "{config}");
    }
}

#[test]
fn a_command_line_in_the_place_of_a_program_is_recognised() {
    for command in [
        "python3 /nowhere/s.py",
        "/usr/bin/python3 s.py",
        "python3 -V",
    ] {
        let bed = Bed::new();
        bed.configure(&json!({ "tools": { "mcp": { "docs": { "command": command } } } }));
        let ran = bed.haft(&["tools"]);
        assert!(
            ran.err.contains("arguments into `args`"),
            "{command}: {ran:?}"
        );
    }
    let bed = Bed::new();
    bed.configure(&json!({ "tools": { "mcp": { "docs": { "command": "/nowhere" } } } }));
    let ran = bed.haft(&["tools"]);
    assert!(
        ran.err.contains("cannot start") && !ran.err.contains("`args`"),
        "{ran:?}"
    );
}
