//! `haft mcp add`, `import` and `remove`, and the files of other programs.

use crate::bed::Bed;
use crate::servers::{ECHO, PRELUDE};
use serde_json::{Value, json};

/// A server that returns one of its variables.
const SAYS: &str =
    "serve([tool('says')], lambda m: answer(m['id'], text(os.environ.get('WORD', 'nothing'))))";

fn own(bed: &Bed) -> String {
    std::fs::read_to_string(bed.path("home/.config/haft/haft.yaml")).unwrap()
}

#[test]
fn a_server_is_added_used_and_removed() {
    let bed = Bed::new();
    bed.server("says", SAYS);
    bed.write("home/.config/haft/haft.yaml", "# mine\nquiet: false\n");
    let program = bed.path("plugins/says").to_string_lossy().into_owned();
    let added = bed.done(&[
        "mcp",
        "add",
        "s",
        "-e",
        "WORD=hello",
        "--",
        &program,
        "--flag",
    ]);
    assert!(added.out.contains("haft mcp test s"), "{added:?}");
    assert!(
        own(&bed).starts_with("# mine\nquiet: false\n"),
        "{}",
        own(&bed)
    );
    assert_eq!(bed.reply_text("s_says", &json!({})), "hello");
    let again = bed.haft(&["mcp", "add", "s", "https://example.com/mcp"]);
    assert_eq!(again.code, Some(2), "{again:?}");
    assert!(again.err.contains("haft mcp remove s"), "{again:?}");
    bed.done(&[
        "mcp",
        "add",
        "far",
        "https://example.com/mcp",
        "-H",
        "X-Key: ${NOT_SET}",
    ]);
    assert!(own(&bed).contains("far: { url: "), "{}", own(&bed));
    bed.done(&["mcp", "remove", "far"]);
    bed.done(&["mcp", "remove", "s"]);
    assert_eq!(own(&bed).trim_end(), "# mine\nquiet: false");
    let missing = bed.haft(&["mcp", "remove", "s"]);
    assert_eq!(missing.code, Some(2), "{missing:?}");
    for wrong in [
        &["mcp", "add", "x"][..],
        &["mcp", "add", "x", "ftp://example.com"],
        &["mcp", "add", "x", "-e", "NOTHING", "--", "y"],
        &["mcp", "add", "x", "https://example.com", "--", "y"],
    ] {
        assert_eq!(bed.haft(wrong).code, Some(2), "{wrong:?}");
    }
}

#[test]
fn the_servers_of_other_agents_are_imported_without_their_secrets() {
    let bed = Bed::new();
    bed.server("echo", ECHO);
    let program = bed.path("plugins/echo");
    bed.write(
        "home/.config/haft/haft.yaml",
        "mcpServers:\n  taken: { command: \"true\" }\n",
    );
    let key = "sk-abcdefghijklmnopqrstuvwxyz0123456789";
    bed.write(
        "home/.claude.json",
        json!({ "mcpServers": {
            "echo": { "type": "stdio", "command": program, "args": [], "env": {} },
            "keyed": { "command": program, "env": { "API_KEY": key } },
            "taken": { "command": "other" },
        }, "projects": {}, "numStartups": 5 })
        .to_string(),
    );
    let done = bed.done(&["mcp", "import", "claude"]);
    assert!(done.out.contains("added echo, keyed to"), "{done:?}");
    assert!(
        done.out.contains("left out") && done.out.contains("taken"),
        "{done:?}"
    );
    assert!(!own(&bed).contains(key), "{}", own(&bed));
    assert!(
        !done.out.contains(key) && !done.err.contains(key),
        "{done:?}"
    );
    assert!(bed.names().0.contains(&"echo_echo".to_owned()));
    bed.write(
        "home/.codex/config.toml",
        format!(
            "model = \"gpt-5\"\n[mcp_servers.fast]\ncommand = {:?}\nstartup_timeout_sec = 7\n",
            program.display().to_string()
        ),
    );
    bed.done(&["mcp", "import", "codex"]);
    assert!(own(&bed).contains("start_timeout: 7"), "{}", own(&bed));
    let done = bed.done(&["mcp", "import", "codex"]);
    assert!(done.out.contains("nothing to add"), "{done:?}");
    let none = bed.haft(&["mcp", "import", "cursor"]);
    assert_eq!(none.code, Some(1), "{none:?}");
    assert!(
        none.err.contains("~/.cursor/mcp.json not found"),
        "{none:?}"
    );
}

#[test]
fn servers_in_the_project_file_of_other_agents_need_trust() {
    let bed = Bed::new();
    bed.program("work/server.py", format!("{PRELUDE}{SAYS}\n"));
    bed.write("work/.env", "WORD='from the file'\nOTHER=x\n");
    bed.write(
        "work/.mcp.json",
        "{\n\t\"mcpServers\": {\n\t\t\"theirs\": { \"type\": \"stdio\", \"command\": \"./server.py\", \"envFile\": \".env\" },\n\t\t\"needy\": { \"command\": \"./server.py\", \"env\": { \"WORD\": \"${WANTED}\" } },\n\t\t\"haft\": { \"command\": \"haft\", \"args\": [\"mcp\"] }\n\t},\n\t\"inputs\": []\n}\n",
    );
    let (names, beside) = bed.names();
    assert!(!names.iter().any(|name| name == "theirs_says"), "{names:?}");
    assert!(beside.contains("theirs (MCP server)"), "{beside}");
    // Variables of the user are not read for it either.
    let withheld = "mcpServers.needy is ignored: it needs variable WANTED, and this file is not";
    assert!(beside.contains(withheld), "{beside}");
    assert_eq!(bed.starts("server.py"), 0);
    let shown = bed.haft(&["trust"]).out;
    assert!(shown.contains("gets the variables in"), "{shown}");
    bed.done(&["trust", "--yes"]);
    assert_eq!(bed.reply_text("theirs_says", &json!({})), "from the file");
    bed.write("work/.env", "WORD=changed\n");
    let (names, beside) = bed.names();
    assert!(!names.iter().any(|name| name == "theirs_says"), "{names:?}");
    assert!(beside.contains("theirs (MCP server, changed)"), "{beside}");
    // It may not reach out of the project, and a mistake in it stops nothing else.
    bed.write("outside/secrets", "WORD=secret\n");
    std::fs::remove_file(bed.work(".env")).unwrap();
    std::os::unix::fs::symlink(bed.path("outside/secrets"), bed.work(".env")).unwrap();
    let (_, beside) = bed.names();
    assert!(beside.contains("is not in the project"), "{beside}");
    bed.write("work/.mcp.json", "{ \"mcpServers\": [");
    let (names, beside) = bed.names();
    assert!(
        beside.contains(".mcp.json") && beside.contains("the file is ignored"),
        "{beside}"
    );
    assert!(names.contains(&"read".to_owned()));
}

#[test]
fn shares_of_work_links_and_hints_reach_the_clients_of_haft() {
    let body = r"
def call(message):
    token = message['params']['_meta']['progressToken']
    tell('notifications/progress', {'progressToken': token, 'progress': 2, 'total': 5, 'message': 'part'})
    time.sleep(0.3)
    link = {'type': 'resource_link', 'name': 'n', 'uri': 'file:///n', 'mimeType': 'text/plain'}
    answer(message['id'], {'content': [{'type': 'text', 'text': 'done'}, link]})
serve([tool('work'), dict(tool('later'), execution={'taskSupport': 'required'})], call)";
    let bed = Bed::serving(&[("w", body)]);
    let (names, beside) = bed.names();
    assert!(names.contains(&"w_work".to_owned()), "{names:?}");
    assert!(!names.contains(&"w_later".to_owned()), "{names:?}");
    assert!(beside.contains("only runs as a task"), "{beside}");
    let mut session = bed.session(&[]);
    let tools = session.request("tools/list", &json!({}));
    for tool in tools["tools"].as_array().unwrap() {
        let hint = &tool["_meta"]["anthropic/maxResultSizeChars"];
        assert_eq!(*hint, 200_000, "{tool}");
    }
    let number = session.ask("w_work", &json!({}));
    let result = session.reply(number)["result"].clone();
    let shares: Vec<_> = session
        .notifications
        .iter()
        .filter(|message| message["method"] == "notifications/progress")
        .map(|message| {
            (
                message["params"]["progress"].as_f64(),
                message["params"]["total"].as_f64(),
            )
        })
        .collect();
    assert!(shares.contains(&(Some(2.0), Some(5.0))), "{shares:?}");
    let content = result["content"].as_array().unwrap();
    let link = content
        .iter()
        .find(|block| block["type"] == "resource_link");
    assert_eq!(link.unwrap()["uri"], "file:///n", "{result}");
}

#[test]
fn haft_is_added_to_other_agents_and_nothing_else_changes() {
    let bed = Bed::new();
    let haft = json!(env!("CARGO_BIN_EXE_haft"));
    let arguments = json!(["mcp", "--preset", "all"]);
    let read = |file: &str| std::fs::read_to_string(bed.path("home").join(file)).unwrap();
    for (program, file, key, more) in [
        (
            "claude",
            ".claude.json",
            "mcpServers",
            json!({ "type": "stdio" }),
        ),
        ("gemini", ".gemini/settings.json", "mcpServers", json!({})),
        ("cursor", ".cursor/mcp.json", "mcpServers", json!({})),
        (
            "vscode",
            ".config/Code/User/mcp.json",
            "servers",
            json!({ "type": "stdio" }),
        ),
        (
            "zed",
            ".config/zed/settings.json",
            "context_servers",
            json!({}),
        ),
    ] {
        let before = format!(
            "{{\"theme\":  0.1000000000000000055511151231257827, \"{key}\":{{\"other\":{{\"command\":\"o\"}}"
        );
        let after = "},\"a\":1 }";
        let others = format!("{before}{after}");
        bed.write(&format!("home/{file}"), &others);
        let said = bed.done(&["mcp", "install", program]);
        assert!(said.out.contains(&format!("restart {program}")), "{said:?}");
        let mut wanted: Value = serde_json::from_str(&others).unwrap();
        wanted[key]["haft"] = more;
        wanted[key]["haft"]["command"] = haft.clone();
        wanted[key]["haft"]["args"] = arguments.clone();
        let is: Value = serde_json::from_str(&read(file)).unwrap();
        assert_eq!(is, wanted, "{program}");
        let text = read(file);
        assert!(text.starts_with(&before) && text.ends_with(after), "{text}");
        let again = bed.done(&["mcp", "install", program]);
        assert!(again.out.contains("already"), "{again:?}");
        assert_eq!(read(file), text);
    }
    // Without servers, without a file, and with another form.
    bed.write("home/.qwen/settings.json", "{\n  \"a\": {}\n}\n");
    bed.done(&["mcp", "install", "qwen"]);
    let qwen = read(".qwen/settings.json");
    let start = "{\n  \"a\": {},\n  \"mcpServers\": {\n    \"haft\": {\n      \"command\": ";
    assert!(
        qwen.starts_with(start) && qwen.ends_with("\n    }\n  }\n}\n"),
        "{qwen}"
    );
    bed.done(&["mcp", "install", "opencode"]);
    let opencode: Value = serde_json::from_str(&read(".config/opencode/opencode.json")).unwrap();
    assert_eq!(opencode["mcp"]["haft"]["command"][1], "mcp");
    let codex = "# mine\nmodel = \"m\"\n\n[mcp_servers.other]\ncommand = \"o\" # kept";
    bed.write("home/.codex/config.toml", codex);
    bed.done(&["mcp", "install", "codex"]);
    let now = read(".codex/config.toml");
    assert!(
        now.starts_with(&format!("{codex}\n\n[mcp_servers.haft]\n")),
        "{now}"
    );
    bed.done(&["mcp", "install", "codex"]);
    assert_eq!(read(".codex/config.toml"), now);
    // The entry can be read back.
    for program in ["codex", "qwen"] {
        let listed = bed.haft(&["mcp", "import", program]);
        assert!(listed.out.contains("haft"), "{listed:?}");
    }
}

#[test]
fn settings_that_cannot_be_changed_safely_are_left_alone() {
    let bed = Bed::new();
    for (program, file, text, hint) in [
        (
            "zed",
            ".config/zed/settings.json",
            "{ // mine\n}",
            "\"context_servers\"",
        ),
        ("gemini", ".gemini/settings.json", "[1]", "\"mcpServers\""),
        (
            "gemini",
            ".gemini/settings.json",
            "{\"mcpServers\": 1}",
            "\"mcpServers\"",
        ),
        (
            "gemini",
            ".gemini/settings.json",
            "{\"mcpServers\": {\"haft\": {}}}",
            "remove it there",
        ),
        (
            "codex",
            ".codex/config.toml",
            "mcp_servers = { x = { command = \"y\" } }",
            "[mcp_servers.haft]",
        ),
        (
            "codex",
            ".codex/config.toml",
            "[mcp_servers.haft]\ncommand = \"other\"",
            "remove it there",
        ),
        (
            "codex",
            ".codex/config.toml",
            "= broken",
            "[mcp_servers.haft]",
        ),
    ] {
        bed.write(&format!("home/{file}"), text);
        let said = bed.haft(&["mcp", "install", program]);
        assert_eq!(said.code, Some(1), "{said:?}");
        assert!(said.err.contains(hint), "{said:?}");
        assert_eq!(
            std::fs::read_to_string(bed.path("home").join(file)).unwrap(),
            text
        );
    }
    assert_eq!(bed.haft(&["mcp", "install", "emacs"]).code, Some(2));
}
