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
