//! `execution`, for the toolset of absolute paths: a server runs the code.

use crate::bed::Bed;
use crate::servers::Web;
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
        bed.reply_text("execute_python", &json!({ "code": "1" })),
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

/// A variable may hold a secret, so errors show the path as written.
#[test]
fn a_program_that_cannot_start_is_shown_as_written() {
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
        let ran = crate::bed::Ended::of(command.env("PLACE", "kestrel-5b1c"));
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

/// The value of `execution` in a printed call of `create_deep_agent_async`: a flow mapping
/// of YAML as it stands.
fn printed(call: &str) -> &str {
    let (_, rest) = call.split_once("execution=").unwrap();
    rest.trim_end().strip_suffix(",\n)").unwrap()
}

#[test]
fn the_printed_server_is_started_as_it_is_printed() {
    let bed = Bed::new();
    let runs = RUNS.replace(
        ", echo)",
        ", lambda m: answer(m['id'], text(' '.join(sys.argv[1:] + [os.environ['HEIMDALL_WORKSPACE']]))))",
    );
    assert_ne!(runs, RUNS);
    // It stands for the npx that would fetch the server.
    bed.program("bin/npx", format!("{}{runs}\n", crate::servers::PRELUDE));
    let stdio = printed(include_str!("../seeds/execution_stdio.txt"));
    bed.write(
        "home/.config/haft/haft.yaml",
        format!("execution: {stdio}\ntools: {{ toolset: deepagents }}\n"),
    );
    let path = format!("{}:/usr/bin:/bin", bed.path("bin").display());
    let ran = |args: &[&str]| crate::bed::Ended::of(bed.command(args).env("PATH", &path));
    let listed = ran(&["tools", "--json"]);
    for name in ["execute_python", "execute_bash", "install_packages"] {
        assert!(listed.out.contains(&format!("\"{name}\"")), "{listed:?}");
    }
    let called = ran(&["call", "execute_python", "code=print(2 + 2)"]);
    assert_eq!(
        (called.code, called.out.as_str()),
        (Some(0), "@heimdall-ai/heimdall /workspace\n"),
        "{called:?}"
    );
}

#[test]
fn the_printed_address_works_unchanged() {
    let web = Web::start(
        r#"
usual = result
def result(message):
    if message.get("method") == "tools/list":
        return {"tools": [tool(name) for name in ["execute_python", "execute_bash", "install_packages"]]}
    return usual(message)
class Handler(Base):
    def do_POST(self):
        message = json.loads(self.body())
        self.heard(message=message)
        if "id" not in message: return self.send(202)
        self.send(200, json.dumps(reply(message)).encode())
    def do_GET(self): self.send(405)
    def do_DELETE(self): self.send(200)
run(Handler)
"#,
    );
    let bed = Bed::new();
    // Another port: that of the document may be in use here.
    let sse = printed(include_str!("../seeds/execution_sse.txt"));
    let sse = sse.replace(":8080", &format!(":{}", web.port));
    bed.write(
        "home/.config/haft/haft.yaml",
        format!("execution: {sse}\ntools: {{ toolset: deepagents }}\n"),
    );
    let (names, beside) = bed.names();
    assert!(names.contains(&"execute_python".to_owned()), "{beside}");
    let words = json!({ "words": "print(2 + 2)" });
    assert_eq!(
        bed.reply_text("execute_python", &words),
        r#"{"words": "print(2 + 2)"}"#
    );
    assert_eq!(web.heard()[0]["path"], "/");
}
