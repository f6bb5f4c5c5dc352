//! Conversions for a machine that these tests describe. Through `haft init --from`,
//! `haft-cli` tests the files of each program.

use haft_import::{Host, Source, Target, convert, parse};
use std::path::Path;

struct FakeHost;

impl Host for FakeHost {
    fn is_file(&self, path: &Path) -> bool {
        path == Path::new("/work/server.js")
    }

    fn is_secret(&self, variable: &str) -> bool {
        variable.ends_with("_TOKEN")
    }

    fn variables(&self, text: &str) -> Vec<String> {
        let names = text
            .split("${")
            .skip(1)
            .filter_map(|rest| rest.split_once('}'));
        names.map(|(name, _)| name.to_owned()).collect()
    }

    fn is_server_url(&self, url: &str) -> bool {
        url.starts_with("https://")
    }

    fn key_variable(&self, provider: &str) -> Option<&'static str> {
        (provider == "openai-responses").then_some("OPENAI_API_KEY")
    }
}

fn project_file() -> Target<'static> {
    Target {
        is_own: false,
        folder: Path::new("/work"),
        is_elsewhere: false,
        home: None,
    }
}

const SERVERS: &str = r#"{
    // Comments and trailing commas are allowed.
    "mcpServers": {
        "files": { "command": "node", "args": ["server.js"] },
        "plain": { "url": "http://plain.example" },
        "tracker": {
            "url": "https://tracker.example",
            "headers": { "Authorization": "Bearer ${TRACKER_TOKEN}" },
        },
    },
}"#;

#[test]
fn what_needs_a_secret_is_withheld_from_a_project() {
    let path = Path::new(".mcp.json");
    let source = Source::detect(path, parse(path, SERVERS).unwrap()).unwrap();
    assert_eq!(source.description(), "a list of MCP servers");

    let project = convert(&source, project_file(), &FakeHost);
    let text = project.text(".mcp.json");
    assert!(
        text.contains("files: { command: node, args: [server.js] }"),
        "{text}"
    );
    assert!(
        !text.contains("tracker") && !text.contains("plain"),
        "{text}"
    );
    let own = project.own_lines().unwrap();
    assert!(
        own.contains("tracker: {") && !own.contains("files"),
        "{own}"
    );
    assert_eq!(project.own_servers().collect::<Vec<_>>(), ["tracker"]);
    assert_eq!(project.variables().collect::<Vec<_>>(), ["TRACKER_TOKEN"]);
    let report = project.report();
    assert!(
        report.contains("mcpServers.plain.url: not a valid server URL"),
        "{report}"
    );
    assert!(
        report.contains("mcpServers.tracker: it needs TRACKER_TOKEN"),
        "{report}"
    );

    // The user's own file gets everything, and paths that work from every folder.
    let own = Target {
        is_own: true,
        is_elsewhere: true,
        ..project_file()
    };
    let own = convert(&source, own, &FakeHost);
    let text = own.text(".mcp.json");
    assert!(
        text.contains("tracker: {") && text.contains("/work/server.js"),
        "{text}"
    );
    assert_eq!(own.own_lines(), None);
}

#[test]
fn the_program_is_detected_by_name_and_content() {
    let description = |name: &str, text: &str| {
        let path = Path::new(name);
        Source::detect(path, parse(path, text).unwrap()).map(|source| source.description())
    };
    for (name, text, expected) in [
        ("config.toml", "model = \"x\"", Some("settings of Codex")),
        ("config.toml", "colour = \"red\"", None),
        (
            ".claude/settings.json",
            "{}",
            Some("settings of Claude Code"),
        ),
        (
            ".gemini/settings.json",
            "{}",
            Some("settings of Gemini CLI"),
        ),
        ("opencode.jsonc", "{}", Some("settings of opencode")),
        (
            "other.json",
            r#"{ "servers": {} }"#,
            Some("a list of MCP servers"),
        ),
        ("other.json", "{}", None),
        ("other.json", "[]", None),
    ] {
        assert_eq!(description(name, text), expected, "{name} {text}");
    }
}

#[test]
fn a_syntax_error_has_a_position_and_no_value() {
    let toml = parse(Path::new("config.toml"), "model = \"x\"\nkey = s3cret\n").unwrap_err();
    assert_eq!((toml.line, toml.column), (2, None));
    let json = parse(Path::new("a.json"), "{\n  \"key\": s3cret\n}").unwrap_err();
    assert_eq!((json.line, json.column), (2, Some(10)));
    assert!(
        json.message.starts_with("not valid JSON: "),
        "{}",
        json.message
    );
    for error in [toml, json] {
        assert!(!error.message.contains("s3cret"), "{}", error.message);
    }
}
