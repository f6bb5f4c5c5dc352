//! `haft init`, and `haft init --from` the settings of other programs.

use crate::scratch::{Ended, Scratch};
use serde_json::Value;

const CLAUDE: &str = r#"{
  "model": "claude-sonnet-4-5",
  "permissions": {
    "allow": ["Bash(npm run test:*)", "Bash(git log:*)", "Bash(npm run lint)", "Bash(make*)",
      "Bash(curl -H ghp_0123456789abcdefghij:*)", "Read(~/.zshrc)", "Edit(/docs/**)",
      "WebFetch(domain:docs.rs)", "mcp__github__list_issues", "mcp__github", "mcp__jira__read"],
    "ask": ["Bash(git push:*)", "mcp__jira"],
    "deny": ["Bash(wget:*)", "Bash(docker run)", "Bash(pip * --user)", "Read(.env)",
      "Read(./secrets/**)", "Edit(vendor/**)", "WebSearch"],
    "additionalDirectories": ["../docs"]
  },
  "env": {"FOO": "bar"},
  "hooks": {"PreToolUse": []}
}"#;

const SERVERS: &str = r#"{"mcpServers": {
  "github": {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-github", "--token", "plainpw1"],
    "env": {"GITHUB_TOKEN": "plainpw2", "DATABASE_URL": "postgres://me:plainpw3@host/db", "MODE": "fast"}},
  "docs": {"type": "http", "url": "https://example.com/mcp?api_key=plainpw4&page=2",
    "headers": {"Authorization": "Bearer plainpw5", "X-Team": "plainpw6", "Accept": "text/plain"}},
  "user": {"url": "https://me:plainpw7@example.com/mcp"},
  "long": {"command": "srv", "args": ["a8f3k2l9q0w1e2r3t4", "--key=plainpw8"]},
  "bad": {"url": "not an address"},
  "kept": {"command": "${TOOLS:-/opt}/srv", "env": {"API_KEY": "${MY_KEY}"}},
  "open": {"command": "srv"}
}}"#;

const CODEX: &str = r#"
model = "gpt-5-codex"
approval_policy = "untrusted"
sandbox_mode = "danger-full-access"
model_reasoning_effort = "high"
[sandbox_workspace_write]
network_access = true
writable_roots = ["/srv"]
[mcp_servers.ctx]
command = "npx"
args = ["-y", "@upstash/context7-mcp"]
env = { CTX_TOKEN = "plainpw9" }
tool_timeout_sec = 45
disabled_tools = ["drop"]
[mcp_servers.figma]
url = "https://mcp.figma.com/mcp"
bearer_token_env_var = "FIGMA_TOKEN"
"#;

const GEMINI: &str = r#"{"model": {"name": "gemini-2.5-pro"}, "ui": {"theme": "x"},
 "tools": {"allowed": ["run_shell_command(git status)", "read_file"],
   "exclude": ["run_shell_command(rm)", "google_web_search", "drop_table"]},
 "mcpServers": {"py": {"command": "python3", "args": ["-m", "srv"], "env": {"API_KEY": "$MY_KEY"},
   "timeout": 1500, "trust": true, "includeTools": ["a"]},
   "web": {"httpUrl": "https://example.com/mcp"}, "old": {"url": "https://example.com/sse"}}}"#;

const OPENCODE: &str = r#"{
  "$schema": "https://opencode.ai/config.json", // a comment
  "model": "anthropic/claude-sonnet-4-5",
  "provider": {"anthropic": {"options": {"apiKey": "plainpw10"}}},
  "permission": {"sentry_delete": "deny", "local_*": "deny", "edit": "ask", "webfetch": "deny", "read": {"*.env": "deny"},
    "bash": {"*": "deny", "git *": "allow", "git push *": "deny", "npm * -g": "ask", "ls": "allow", "pnpm *": "ask"}},
  "mcp": {"local": {"type": "local", "command": ["bun", "x", "srv"], "environment": {"TOKEN": "plainpw11"}},
    "sentry": {"type": "remote", "url": "https://mcp.sentry.dev/mcp", "headers": {"Authorization": "Bearer {env:SENTRY}"}}},
  "agent": {"review": {"mode": "subagent", "description": "Reviews code", "prompt": "Be strict",
    "tools": {"write": false}}, "build": {}},
}"#;

const AGENT: &str = r#"
provider: openai-completions
base_url: https://openrouter.ai/api/v1
api_key: plainpw12
model: meta-llama/llama-3.3-70b-instruct
max_tokens: 4096
max_turns: 0
max_retries: 3
max_tool_concurrency: 4
thinking_level: low
system_prompt: |
  You are an expert Go programmer.
  Always write "idiomatic", well-tested code.
tools:
  preset: Coding
  work_dir: .
  plugins:
    - path: ./my_plugin
      args: ["--api-key", "${MY_API_KEY}", "--endpoint", "https://api.example.com"]
    - path: ./other
      args: ["--password", "plainpw13"]
"#;

/// Secrets in places that are not marked as secret.
const HIDDEN: &str = r#"{"mcpServers": {
  "db": {"command": "srv", "args": ["postgresql://admin:plainpw1@db/prod", "https://h/?token=plainpw2&page=2",
    "-p", "plainpw3", "-u", "me:plainpw4", "-p", "8080:80"],
    "env": {"PW": "plainpw5", "CONN": "Server=x;Password=plainpw6", "MODE": "fast"}},
  "run": {"command": "docker", "args": ["run", "-e", "GITHUB_TOKEN=plainpw7", "-e", "MODE=fast",
    "--env=PASSWORD=plainpw8", "API_KEY=plainpw9", "--env", "NAME", "ghcr.io/acme/auth:latest"]},
  "web": {"command": "npx", "args": ["-p", "pack", "-p", "plainpw14", "--header", "Authorization: Bearer plainpw10",
    "-H", "X-Api-Key: plainpw11", "--config", "{\"apiKey\":\"plainpw12\"}", "-H", "X-Key: ${KEPT}",
    "https://me:plainpw13@${HOST}/"]},
  "sql": {"command": "docker", "args": ["exec", "-i", "db", "mysql", "-uroot", "-pplainpw", "--password=plainpw15", "app"]},
  "glue": {"command": "srv", "args": ["-pPlainpw16", "-port", "-p8080:80", "root:plainpw17@tcp(db:3306)/app",
    "-ume:plainpw18", "npm:left-pad@1.0.0"]},
  "open": {"command": "srv"}
}}"#;

/// Name and text of each file.
const ALL: [(&str, &str); 7] = [
    (".claude/settings.json", CLAUDE),
    (".mcp.json", SERVERS),
    (".mcp.json", HIDDEN),
    ("codex/config.toml", CODEX),
    (".gemini/settings.json", GEMINI),
    ("opencode.jsonc", OPENCODE),
    ("agent.yaml", AGENT),
];

fn from(name: &str, text: &str) -> (Scratch, Ended) {
    let scratch = Scratch::new();
    scratch.file(name, text);
    let ended = scratch.haft(&["init", "--from", name]);
    assert_eq!(ended.code, Some(0), "{name}: {ended:?}");
    (scratch, ended)
}

/// The same for the user's own file, which may use secret variables.
fn own_from(name: &str, text: &str) -> (Scratch, Ended, String) {
    let scratch = Scratch::new();
    scratch.file(name, text);
    let ended = scratch.haft(&["init", "--from", name, "--config", "own.yaml"]);
    assert_eq!(ended.code, Some(0), "{name}: {ended:?}");
    let text = std::fs::read_to_string(scratch.work("own.yaml")).unwrap();
    (scratch, ended, text)
}

fn written(scratch: &Scratch) -> String {
    std::fs::read_to_string(scratch.work("haft.yaml")).unwrap()
}

/// The policy decision about a command.
fn decided(scratch: &Scratch, command: &str) -> String {
    let command = format!("command={command}");
    let ended = scratch.haft(&["why", "bash", &command, "--json"]);
    let printed: Value = serde_json::from_str(&ended.out).unwrap();
    printed["decision"].as_str().unwrap().to_owned()
}

#[test]
fn every_result_is_valid_and_holds_no_secret() {
    for (name, text) in ALL {
        let (scratch, ended) = from(name, text);
        for config in [&[][..], &["--config", "haft.yaml"]] {
            for command in [&["config", "show"][..], &["doctor"], &["tools"]] {
                let args = [command, config].concat();
                let checked = scratch.haft(&args);
                assert_eq!(checked.code, Some(0), "{name} {args:?}: {checked:?}");
            }
        }
        for shown in [&written(&scratch), &ended.out, &ended.err] {
            for secret in ["plainpw", "Plainpw", "ghp_0", "a8f3k2l9"] {
                assert!(!shown.contains(secret), "{name}: {secret} in {shown}");
            }
        }
    }
}

/// Text around a secret keeps its meaning.
#[test]
fn a_secret_in_a_word_is_hidden_and_the_rest_stays() {
    let (_, _, text) = own_from(".mcp.json", HIDDEN);
    for kept in [
        r#""${DB_URL}", "https://h/?token=${DB_TOKEN}&page=2", "-p", "${DB_P}", "-u", "${DB_U}", "-p", "8080:80""#,
        r#"PW: "${PW}", CONN: "${CONN}", MODE: fast"#,
        r#""GITHUB_TOKEN=${RUN_GITHUB_TOKEN}", "-e", "MODE=fast", "--env=PASSWORD=${RUN_PASSWORD}""#,
        r#""API_KEY=${RUN_API_KEY}", "--env", NAME, "ghcr.io/acme/auth:latest"]"#,
        r#"[exec, "-i", db, mysql, "-uroot", "-p${SQL_PASSWORD}", "--password=${SQL_PASSWORD_2}", app]"#,
        r#"["-p${GLUE_PASSWORD}", "-port", "-p8080:80", "root:${GLUE_ROOT_PASSWORD}@tcp(db:3306)/app", "-ume:${GLUE_ME_PASSWORD}", "npm:left-pad@1.0.0"]"#,
        r#"["-p", pack, "-p", "${WEB_P}", "--header", "Authorization: Bearer ${WEB_AUTHORIZATION}""#,
        r#""X-Api-Key: ${WEB_X_API_KEY}", "--config", "${WEB_CONFIG}", "-H", "X-Key: ${KEPT}""#,
    ] {
        assert!(text.contains(kept), "{kept}: {text}");
    }
}

#[test]
fn an_existing_file_is_kept_unless_forced() {
    let scratch = Scratch::new();
    scratch.file("haft.yaml", "log: warn\n");
    scratch.file(".mcp.json", SERVERS);
    for args in [&["init"][..], &["init", "--from", ".mcp.json"]] {
        let ended = scratch.haft(args);
        assert_eq!(ended.code, Some(1), "{ended:?}");
        assert!(
            ended.err.contains("already exists; left unchanged"),
            "{ended:?}"
        );
        assert!(ended.err.contains("--force"), "{ended:?}");
        assert_eq!(written(&scratch), "log: warn\n");
    }
    let ended = scratch.haft(&["init", "--from", ".mcp.json", "--force"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(written(&scratch).contains("mcp:"), "{ended:?}");
    // A link is replaced, and its target left alone.
    scratch.file("elsewhere", "kept\n");
    std::fs::remove_file(scratch.work("haft.yaml")).unwrap();
    std::os::unix::fs::symlink(scratch.work("elsewhere"), scratch.work("haft.yaml")).unwrap();
    assert_eq!(scratch.haft(&["init", "--from", ".mcp.json"]).code, Some(1));
    assert_eq!(scratch.haft(&["init", "--force"]).code, Some(0));
    let kept = std::fs::read_to_string(scratch.work("elsewhere")).unwrap();
    assert_eq!(kept, "kept\n");
}

#[test]
fn unknown_settings_are_reported() {
    let scratch = Scratch::new();
    for (name, text, words) in [
        (
            "a.json",
            "{\"a\": 1}",
            "cannot tell which program a.json belongs to",
        ),
        ("b.json", "{\"a\": sk-plainpw", "b.json:1:"),
        ("c.toml", "a = ", "c.toml:1: "),
        ("d.toml", "[package]\nname = \"x\"\n", "cannot tell"),
        ("e.yaml", "- 1\n", "cannot tell"),
        ("f.yaml", "a: [", "f.yaml:"),
    ] {
        scratch.file(name, text);
        let ended = scratch.haft(&["init", "--from", name]);
        assert_eq!(ended.code, Some(2), "{name} {ended:?}");
        assert!(ended.err.contains(words), "{name} {ended:?}");
        assert!(!ended.err.contains("plainpw"), "{name} {ended:?}");
    }
    let ended = scratch.haft(&["init", "--from", "gone.json"]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.err.contains("gone.json not found"), "{ended:?}");
    assert!(!scratch.work("haft.yaml").exists());
    // Recognized, but without any setting that haft has.
    scratch.file(".claude/settings.json", "{\"hooks\": {}}");
    let ended = scratch.haft(&["init", "--from", ".claude/settings.json"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.out.contains("hooks: haft has no hooks"), "{ended:?}");
    assert!(!scratch.work("haft.yaml").exists());
}

/// Rules keep their meaning or become stricter.
#[test]
fn permissions_of_claude_code_never_get_wider() {
    let (scratch, ended) = from(".claude/settings.json", CLAUDE);
    scratch.file("secrets/key", "x");
    scratch.file("sub/.env", "x");
    for (command, decision) in [
        ("npm run test --watch", "allow"),
        ("npm run tests", "ask"),
        ("git log -1", "allow"),
        ("git logout", "ask"),
        // Allowed there without arguments only, so it asks here.
        ("npm run lint", "ask"),
        ("make all", "allow"),
        ("makefile", "ask"),
        ("ls", "ask"),
        ("git push origin", "ask"),
        ("wget x", "deny"),
        ("docker run -it x", "deny"),
        // Denied there for some arguments that haft cannot tell: all of pip is denied.
        ("pip install x", "deny"),
    ] {
        assert_eq!(decided(&scratch, command), decision, "{command}");
    }
    let why = |args: &[&str]| {
        let args = [&["why"], args, &["--json"]].concat();
        let printed: Value = serde_json::from_str(&scratch.haft(&args).out).unwrap();
        printed["decision"].as_str().unwrap().to_owned()
    };
    for (call, decision) in [
        (&["read", "path=secrets/key"][..], "deny"),
        (&["read", "path=sub/.env"], "deny"),
        (&["read", "path=README.md"], "allow"),
        (&["write", "path=docs/a.md", "content=x"], "allow"),
        (&["write", "path=src/a.rs", "content=x"], "ask"),
        (&["write", "path=vendor/a.rs", "content=x"], "deny"),
        (
            &["web_fetch", "url=https://docs.rs/x", "--preset=all"],
            "allow",
        ),
        (
            &["web_fetch", "url=https://example.com/x", "--preset=all"],
            "ask",
        ),
        (&["web_search", "query=x", "--preset=all"], "deny"),
    ] {
        assert_eq!(why(call), decision, "{call:?}");
    }
    for line in [
        "permissions.allow Bash(git log:*) -> policy: { allow: bash, command: git log }",
        "permissions.deny Bash(pip * --user) -> policy: { deny: bash, command: pip }: ",
        "permissions.allow Bash(npm run lint): haft has no rule for exactly these words",
        "permissions.allow mcp__jira__read: another rule asks about or denies the whole server",
        "permissions.additionalDirectories: a project's file cannot add folders",
        "hooks: haft has no hooks",
    ] {
        assert!(ended.out.contains(line), "{line}: {}", ended.out);
    }
}

/// In the other program the last matching rule decides, in haft the first.
#[test]
fn permissions_of_opencode_never_get_wider() {
    let (scratch, _) = from("opencode.jsonc", OPENCODE);
    for (command, decision) in [
        ("git status", "allow"),
        ("git push origin", "deny"),
        ("pnpm i", "ask"),
        // There it asks only for `-g`, and denies the rest.
        ("npm i", "deny"),
        ("ls", "deny"),
        ("cat x", "deny"),
    ] {
        assert_eq!(decided(&scratch, command), decision, "{command}");
    }
    let text = written(&scratch);
    assert!(text.contains("tools: [read]"), "{text}");
    // Tools of servers have the same names there.
    assert!(text.contains("- { deny: sentry_delete }"), "{text}");
    assert!(text.contains("enabled: false"), "{text}");
}

#[test]
fn permissions_of_gemini_and_codex_never_get_wider() {
    let (scratch, _) = from(".gemini/settings.json", GEMINI);
    assert!(
        written(&scratch).contains("- { deny: py_drop_table }"),
        "{}",
        written(&scratch)
    );
    for (command, decision) in [("git status -s", "allow"), ("rm x", "deny"), ("ls", "ask")] {
        assert_eq!(decided(&scratch, command), decision, "{command}");
    }
    let (scratch, _) = from(
        ".gemini/settings.json",
        r#"{"tools": {"core": ["run_shell_command(git)", "read_file"], "allowed": ["run_shell_command"]}}"#,
    );
    for (command, decision) in [("git log", "ask"), ("ls", "deny")] {
        assert_eq!(decided(&scratch, command), decision, "{command}");
    }
    let (scratch, ended) = from("codex/config.toml", CODEX);
    assert_eq!(decided(&scratch, "ls"), "ask");
    let text = written(&scratch);
    assert!(text.contains("sandbox: workspace"), "{text}");
    assert!(
        !text.contains("network") && !text.contains("roots"),
        "{text}"
    );
    assert!(
        ended
            .out
            .contains("network_access: a project's file cannot turn"),
        "{ended:?}"
    );
    // The user's own file may have both.
    let own = scratch.haft(&[
        "init",
        "--from",
        "codex/config.toml",
        "--config",
        "own.yaml",
    ]);
    assert_eq!(own.code, Some(0), "{own:?}");
    let text = std::fs::read_to_string(scratch.work("own.yaml")).unwrap();
    assert!(
        text.contains("network: \"on\"") && text.contains("roots: [\"/srv\"]"),
        "{text}"
    );
}

#[test]
fn variables_stand_for_secrets() {
    let (scratch, ended, text) = own_from(".mcp.json", SERVERS);
    for words in [
        "\"--token\", \"${GITHUB_TOKEN_2}\"",
        "GITHUB_TOKEN: \"${GITHUB_TOKEN}\"",
        "DATABASE_URL: \"${DATABASE_URL}\"",
        "MODE: fast",
        "?api_key=${DOCS_API_KEY}&page=2",
        "Authorization: \"Bearer ${DOCS_AUTHORIZATION}\"",
        "Accept: text/plain",
        "\"${USER_URL}\"",
        "\"--key=${LONG_KEY}\"",
        "command: \"${TOOLS}/srv\"",
        "API_KEY: \"${MY_KEY}\"",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    assert!(
        ended
            .out
            .contains("mcpServers.bad.url: not a valid server URL"),
        "{ended:?}"
    );
    assert!(
        ended
            .err
            .contains("Set these variables: DATABASE_URL, DOCS_"),
        "{ended:?}"
    );
    // With the variables set, and as the user's own word, every server is there.
    let variables = [
        "GITHUB_TOKEN",
        "GITHUB_TOKEN_2",
        "DATABASE_URL",
        "DOCS_API_KEY",
        "DOCS_AUTHORIZATION",
        "DOCS_X_TEAM",
        "LONG_SECRET",
        "LONG_KEY",
        "TOOLS",
        "MY_KEY",
    ];
    let mut variables: Vec<(&str, &str)> = variables.iter().map(|name| (*name, "x")).collect();
    variables.push(("USER_URL", "https://example.com/mcp"));
    let (servers, _) = scratch.shown("tools.mcp", &variables, &["--config", "own.yaml"]);
    assert_eq!(
        servers,
        serde_json::json!(["github", "docs", "user", "long", "kept", "open"])
    );
}

#[test]
fn an_agent_yaml_becomes_a_haft_yaml() {
    let (scratch, ended, text) = own_from("agent.yaml", AGENT);
    let named = ["--config", "own.yaml"];
    let variables = [
        ("MY_API_KEY", "k"),
        ("API_KEY", "k"),
        ("OTHER_PASSWORD", "p"),
        ("OPENAI_API_KEY", "k"),
    ];
    for (key, value) in [
        ("provider", "openai-completions"),
        ("base_url", "https://openrouter.ai/api/v1"),
        ("model", "meta-llama/llama-3.3-70b-instruct"),
        ("tools.preset", "coding"),
    ] {
        assert_eq!(scratch.shown(key, &variables, &named).0, value, "{key}");
    }
    let prompt = "system_prompt: |\n  You are an expert Go programmer.\n  Always write \"idiomatic\", well-tested code.\n";
    assert!(text.contains(prompt), "{text}");
    assert!(
        text.contains("[\"--api-key\", \"${MY_API_KEY}\", \"--endpoint\""),
        "{text}"
    );
    assert!(
        text.contains("[\"--password\", \"${OTHER_PASSWORD}\"]"),
        "{text}"
    );
    for line in [
        "max_tokens: in agent.yaml it limits one answer",
        "max_turns: haft has no unlimited turns",
        "thinking_level: haft has no such setting",
    ] {
        assert!(ended.out.contains(line), "{line}: {}", ended.out);
    }
}

#[test]
fn the_servers_of_this_folder_come_from_the_state_of_claude_code() {
    let scratch = Scratch::new();
    let here = scratch.work("").canonicalize().unwrap();
    let state = serde_json::json!({
        "numStartups": 5,
        "mcpServers": { "a": { "type": "stdio", "command": "a", "args": [] } },
        "projects": {
            here.to_str().unwrap().trim_end_matches('/'): { "mcpServers": { "b": { "command": "b" } } },
            "/other": { "mcpServers": { "c": { "command": "c" } } },
        },
        // Larger than any real configuration.
        "history": "x".repeat(2 << 20),
    });
    scratch.file(".claude.json", state.to_string());
    let ended = scratch.haft(&["init", "--from", ".claude.json"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let text = written(&scratch);
    assert!(
        text.contains("a: { command: a }\n    b: { command: b }\n"),
        "{text}"
    );
    assert!(!text.contains("command: c"), "{text}");
    assert!(
        ended.out.contains("servers of other folders (1)"),
        "{}",
        ended.out
    );
}

/// Settings in unusual places deny as much as before.
#[test]
fn no_denial_is_lost() {
    for (name, text, expected) in [
        (
            ".claude/settings.json",
            r#"{"permissions": {"deny": ["Skill", "Task"]}}"#,
            &["- { deny: skill }", "- { deny: task }"][..],
        ),
        (
            "opencode.json",
            r#"{"$schema": "https://opencode.ai/config.json", "permission": {"bash": "allow", "external_directory": "deny"},
              "agent": {"build": {"permission": {"bash": "deny"}, "tools": {"webfetch": false}}}}"#,
            &[
                "sandbox: strict",
                "- { deny: web_fetch }\n  - { deny: bash }\n  - { allow: bash }",
            ],
        ),
        (
            "codex/config.toml",
            "model = \"gpt-5\"\nsandbox_mode = \"workspace-write\"\nprofile = \"x\"\n[profiles.x]\nsandbox_mode = \"read-only\"\n",
            &["sandbox: read-only"],
        ),
        (
            "codex/config.toml",
            "model = \"gpt-5\"\napproval_policy = { granular = { rules = true } }\n",
            &["sandbox: read-only", "- { ask: \"*\", effect: execute }"],
        ),
        (
            ".gemini/settings.json",
            r#"{"tools": {"exclude": "run_shell_command"}, "excludeTools": ["write_file"]}"#,
            &["- { deny: bash }", "- { deny: write }"],
        ),
    ] {
        let (scratch, ended) = from(name, text);
        let text = written(&scratch);
        for line in expected {
            assert!(text.contains(line), "{line}: {text}\n{ended:?}");
        }
        // Every rule names an existing tool.
        let shown = scratch.haft(&["config", "show"]);
        assert_eq!(shown.code, Some(0), "{shown:?}");
        assert!(!shown.err.contains("no toolset has"), "{shown:?}");
    }
}

#[test]
fn a_provider_keeps_its_kind_at_another_address() {
    for (name, kind) in [
        ("anthropic", "anthropic"),
        ("google", "google"),
        ("ollama", "ollama"),
        ("acme", "openai-completions"),
    ] {
        let text = format!(
            r#"{{"$schema": "https://opencode.ai/config.json", "model": "{name}/m",
              "provider": {{"{name}": {{"options": {{"baseURL": "https://proxy.example.com/v1"}}}}}}}}"#
        );
        let (scratch, _) = from("opencode.json", &text);
        let text = written(&scratch);
        assert!(text.contains(&format!("provider: {kind}\n")), "{text}");
        assert!(text.contains("base_url: \"https://proxy"), "{text}");
    }
    let (scratch, ended) = from(
        "agent.yaml",
        "provider: ollama\nmodel: m\nauto_approve: false\ntools:\n  plugins:\n    - path: ./p\n      env: {MODE: fast, API_TOKEN: plainpw}\n",
    );
    let text = written(&scratch);
    assert!(text.contains("provider: ollama"), "{text}");
    let env = r#"env: { MODE: fast, API_TOKEN: "${API_TOKEN}" }"#;
    assert!(!text.contains(env), "{text}");
    assert!(ended.err.contains(env), "{ended:?}");
    assert!(
        ended.out.contains("auto_approve: haft asks only if"),
        "{ended:?}"
    );
}

/// Following the printed steps puts every server to use.
#[test]
fn servers_that_need_secrets_go_into_the_users_own_file() {
    let servers = r#"{"mcpServers": {
      "open": {"command": "/bin/true"},
      "closed": {"command": "./srv", "args": ["${workspaceFolder}", "run.js"], "env": {"API_TOKEN": "plainpw"}}}}"#;
    let (scratch, ended) = from(".mcp.json", servers);
    scratch.file("run.js", "");
    let text = written(&scratch);
    assert!(text.contains("open:") && !text.contains("closed"), "{text}");
    assert!(
        ended.out.contains("mcpServers.closed: it needs API_TOKEN"),
        "{ended:?}"
    );
    assert!(
        ended.err.contains("Set these variables: API_TOKEN\n"),
        "{ended:?}"
    );
    // Followed literally.
    let (_, command) = ended.err.split_once("mkdir -p").unwrap();
    let (command, _) = command.split_once("\nEND\n").unwrap();
    let command = format!("mkdir -p{command}\nEND\n");
    let pasted = std::process::Command::new("/bin/sh")
        .args(["-c", &command])
        .status()
        .unwrap();
    assert!(pasted.success());
    let set = [("API_TOKEN", "x"), ("PWD", "/somewhere")];
    let (shown, ended) = scratch.shown("tools.mcp", &set, &[]);
    assert_eq!(shown, serde_json::json!(["closed", "open"]), "{ended:?}");
    let own = std::fs::read_to_string(scratch.home(".config/haft/haft.yaml")).unwrap();
    let program = scratch.work("").canonicalize().unwrap().join("srv");
    assert!(own.contains(program.to_str().unwrap()), "{own}");
    assert!(own.contains(r#"["${PWD}", "#), "{own}");
    let listed = scratch.haft_with(&set, &["mcp", "list"]);
    assert_eq!(listed.code, Some(0), "{listed:?}");
    assert!(!listed.err.contains("left out"), "{listed:?}");
    // If the file exists, only the lines are shown, and it is left unchanged.
    let again = scratch.haft(&["init", "--from", ".mcp.json", "--force"]);
    assert!(again.err.contains("Add these lines"), "{again:?}");
    assert!(!again.err.contains("mkdir"), "{again:?}");
    // A variable that is already set is not requested.
    let again = scratch.haft_with(&set, &["init", "--from", ".mcp.json", "--force"]);
    assert!(!again.err.contains("Set these"), "{again:?}");
}

#[test]
fn a_project_file_without_anything_it_can_use_is_not_written() {
    let scratch = Scratch::new();
    let servers = r#"{"mcpServers": {"a": {"command": "srv", "env": {"API_TOKEN": "plainpw"}}}}"#;
    scratch.file(".mcp.json", servers);
    let ended = scratch.haft(&["init", "--from", ".mcp.json"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(!scratch.work("haft.yaml").exists());
    assert!(
        ended
            .err
            .contains(r#"a: { command: srv, env: { API_TOKEN: "${API_TOKEN}" } }"#),
        "{ended:?}"
    );
    assert!(ended.err.contains("wrote nothing"), "{ended:?}");
}

/// Placeholders of other programs that are not variables.
#[test]
fn placeholders_for_folders_are_translated_or_named() {
    let servers = r#"{"mcpServers": {
      "a": {"command": "${workspaceFolder}/srv", "args": ["${CLAUDE_PROJECT_DIR}", "--root=${workspaceFolder}/x",
        "-v", "${workspaceFolder}:/w", "file://${workspaceFolder}", "${userHome}/notes", "${CLAUDE_PROJECT_DIR:-.}"],
        "env": {"WHERE": "${workspaceFolder}/data"}},
      "b": {"command": "srv", "cwd": "${workspaceFolder}/sub", "args": ["${workspaceFolder}/x.js"]},
      "c": {"command": "srv", "args": ["${workspaceFolderBasename}", "${CLAUDE_PLUGIN_ROOT}/y", "${config:python.path}"]}}}"#;
    let (scratch, ended) = from(".mcp.json", servers);
    let text = written(&scratch);
    for line in [
        r#"a: { command: "./srv", args: [".", "--root=./x", "-v", "${PWD}:/w", "file://${PWD}", "${HOME}/notes", "."], env: { WHERE: "${PWD}/data" } }"#,
        r#"b: { command: srv, args: ["${PWD}/x.js"], cwd: "./sub" }"#,
        r#"c: { command: srv, args: ["${WORKSPACE_FOLDER_BASENAME}", "${CLAUDE_PLUGIN_ROOT}/y", "${CONFIG_PYTHON_PATH}"] }"#,
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    for line in [
        "mcpServers.a, ${workspaceFolder} -> `.`, the folder of haft.yaml",
        "mcpServers.a.env, ${workspaceFolder} -> `${PWD}`, the folder that haft is started in",
        "mcpServers.c, ${CLAUDE_PLUGIN_ROOT}: haft has no such placeholder; write the folder of the plugin",
        "mcpServers.c, ${config:python.path}: haft has no such placeholder; write the value, or set variable CONFIG_PYTHON_PATH",
    ] {
        assert!(ended.out.contains(line), "{line}: {}", ended.out);
    }
    let set =
        "Set these variables: CLAUDE_PLUGIN_ROOT, CONFIG_PYTHON_PATH, WORKSPACE_FOLDER_BASENAME\n";
    assert!(ended.err.contains(set), "{ended:?}");
    // In the user's own file, where paths start elsewhere.
    let own = scratch.haft(&[
        "init",
        "--from",
        ".mcp.json",
        "--config",
        "../home/own.yaml",
    ]);
    assert_eq!(own.code, Some(0), "{own:?}");
    let text = std::fs::read_to_string(scratch.home("own.yaml")).unwrap();
    assert!(
        text.contains(r#"a: { command: "${PWD}/srv", args: ["${PWD}","#),
        "{text}"
    );
    assert!(!text.contains("workspaceFolder"), "{text}");
    // Braces that are not references stay.
    let opencode = r#"{"$schema": "https://opencode.ai/config.json",
      "mcp": {"a": {"type": "local", "command": ["srv", "--format={json}", "{env:MODE}"]}}}"#;
    let (scratch, _) = from("opencode.json", opencode);
    let text = written(&scratch);
    assert!(text.contains(r#"["--format={json}", "${MODE}"]"#), "{text}");
}

/// Linear in the number of rules: comparing each with all others took minutes here.
#[test]
fn many_rules_are_carried_over_quickly() {
    let rules = |count: usize| {
        let allow: Vec<String> = (0..count).map(|n| format!("Bash(c{n}:*)")).collect();
        serde_json::json!({ "permissions": { "allow": allow } }).to_string()
    };
    let started = std::time::Instant::now();
    let (scratch, ended) = from(".claude/settings.json", &rules(25_000));
    assert!(started.elapsed().as_secs() < 60, "{:?}", started.elapsed());
    assert!(ended.out.contains("command: c24999 }"));
    assert_eq!(written(&scratch).matches("allow: bash").count(), 25_000);
    // More than haft would read is not written.
    let scratch = Scratch::new();
    scratch.file(".claude/settings.json", rules(50_000));
    let ended = scratch.haft(&["init", "--from", ".claude/settings.json"]);
    assert_eq!(ended.code, Some(1), "{}", ended.err);
    assert!(
        ended.err.contains("haft reads at most 1MB"),
        "{}",
        ended.err
    );
    assert!(!scratch.work("haft.yaml").exists());
}

/// The lines printed for the user's own file.
fn lines_for_own(ended: &Ended) -> &str {
    let (_, lines) = ended.err.split_once("<<'END'\n").unwrap();
    lines.split_once("\nEND\n").unwrap().0
}

#[test]
fn lines_for_the_own_file_come_with_a_warning_that_they_run_everywhere() {
    let servers = r#"{"mcpServers": {"open": {"command": "srv"},
      "gh": {"command": "srv", "env": {"API_TOKEN": "plainpw"}}}}"#;
    let (scratch, ended) = from(".mcp.json", servers);
    let warning = "run without `haft trust`, because the file is your own, and in every folder";
    assert!(ended.err.contains(warning), "{}", ended.err);
    assert!(
        ended
            .err
            .contains("Values that look like secrets are not copied; check the file"),
        "{}",
        ended.err
    );
    assert!(!ended.err.contains("already has"), "{}", ended.err);
    scratch.user("tools:\n  mcp:\n    gh: { command: other }\n");
    let again = scratch.haft(&["init", "--from", ".mcp.json", "--force"]);
    assert!(
        again
            .err
            .contains("already has MCP servers of these names: gh."),
        "{}",
        again.err
    );
}

#[test]
fn different_secrets_get_different_variables() {
    let servers = r#"{"mcpServers": {
      "b3": {"command": "srv", "args": ["AKIA0123456789ABCDEF", "eyJhbGciOiJIUzI1NiJ9", "xoxb-0123456789ab", "AKIA0123456789ABCDEF"]},
      "a7": {"command": "srv", "args": ["-pONE1", "--password=TWO2", "--password", "ONE1"]},
      "one": {"command": "srv", "env": {"GH_TOKEN": "one"}}, "two": {"command": "srv", "env": {"GH_TOKEN": "two"}}}}"#;
    let (_, _, text) = own_from(".mcp.json", servers);
    for line in [
        r#"["${B3_SECRET}", "${B3_SECRET_2}", "${B3_SECRET_3}", "${B3_SECRET}"]"#,
        r#"["-p${A7_PASSWORD}", "--password=${A7_PASSWORD_2}", "--password", "${A7_PASSWORD}"]"#,
        r#"one: { command: srv, env: { GH_TOKEN: "${GH_TOKEN}" } }"#,
        r#"two: { command: srv, env: { GH_TOKEN: "${GH_TOKEN_2}" } }"#,
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
}

#[test]
fn secrets_behind_short_flags_and_in_a_whole_command_line_are_found() {
    let servers = r#"{"mcpServers": {
      "line": {"command": "srv --token LEAK24 --x"},
      "names": {"command": "srv", "env": {"CREDS": "LEAK1", "CREDENTIALS": "LEAK2", "PASSPHRASE": "LEAK3",
        "PAT": "LEAK4", "AUTH": "LEAK5", "DB_CREDS": "LEAK6"}},
      "aws": {"command": "srv", "args": ["wJalrXUtnFEMI/K7MDENG/bPxRfiCYLEAKMPLEKE"]},
      "flags": {"command": "srv", "args": ["-k", "LEAK32abc123", "-PLEAK21", "-aLEAK22", "-wLEAK23", "-w", "worker1"]},
      "open": {"command": "my server", "args": ["x"]}
    }}"#;
    let scratch = Scratch::new();
    scratch.file(".mcp.json", servers);
    scratch.file("my server", "");
    let ended = scratch.haft(&["init", "--from", ".mcp.json"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let text = written(&scratch);
    assert!(text.contains("open: { command: my server"), "{text}");
    for text in [&text, &ended.out, &ended.err] {
        assert!(!text.contains("LEAK"), "{text}");
    }
    let lines = lines_for_own(&ended);
    assert!(
        lines.contains(r#"line: { command: srv, args: ["--token", "${LINE_TOKEN}", "--x"] }"#),
        "{lines}"
    );
    assert!(lines.contains("worker1"), "{lines}");
}

#[test]
fn all_keys_of_a_plugin_are_carried_over() {
    let agent = "plugins:\n  - ./p3\n  - { path: ./p1, timeout: 5, start_timeout: 2.5, cwd: sub, protocol: init, override: true, args: [] }\n  - { name: x }\n  - { path: ./p2, timeout: soon, colour: red }\n";
    let (scratch, ended) = from("agent.yaml", agent);
    let text = written(&scratch);
    for line in [
        "- { path: \"./p3\" }\n",
        "timeout: 5",
        "start_timeout: 2.5",
        "cwd: sub",
        "protocol: init",
        "override: true",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    for line in [
        "tools.plugins, entry 3: it has no path",
        "tools.plugins ./p2.timeout: not a number of seconds up to a day",
        "tools.plugins ./p2.colour: haft has no such setting for a plugin",
    ] {
        assert!(ended.out.contains(line), "{line}: {}", ended.out);
    }
}

#[test]
fn a_tilde_is_the_home_folder() {
    let scratch = Scratch::new();
    let script = "#!/bin/sh\nprintf '%s\\n' \"$@\" >&2\npwd >&2\nexit 3\n";
    let path = scratch.home("srv");
    std::fs::write(&path, script).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&path, mode).unwrap();
    scratch.user("tools:\n  mcp:\n    a: { command: ~/srv, args: [\"~\", ~/x, a~/y, --z=~/z], cwd: \"~\" }\n");
    let ended = scratch.haft(&["mcp", "test", "a", "--timeout", "20"]);
    let home = scratch.home("");
    let home = home.to_str().unwrap().trim_end_matches('/');
    let given = format!("{home}\n{home}/x\na~/y\n--z=~/z\n{home}\n");
    assert!(ended.err.contains(&given), "{given}: {ended:?}");
}

#[test]
fn printed_lines_are_valid_yaml_whatever_the_names_hold() {
    let servers = "{\"mcpServers\": {\"\u{202e}evil\": {\"command\": \"srv\", \"args\": [\"\u{e0041}\", \"\u{200b}\"], \"env\": {\"API_TOKEN\": \"x\"}}, \"open\": {\"command\": \"srv\"}}}";
    let (scratch, ended) = from(".mcp.json", servers);
    let lines = lines_for_own(&ended);
    assert!(lines.contains(r#""\u202eevil""#), "{lines}");
    assert!(lines.contains(r#"["\U000e0041", "\u200b"]"#), "{lines}");
    scratch.user(lines);
    let (shown, _) = scratch.shown("tools.mcp", &[("API_TOKEN", "x")], &[]);
    assert_eq!(shown, serde_json::json!(["\u{202e}evil", "open"]));
}

#[test]
fn the_report_says_what_happens_to_servers_for_the_own_file() {
    let servers = r#"{"mcpServers": {
      "shut": {"command": "srv", "args": ["${workspaceFolder}/x", "${env:MYVAR:-def}", "${input:token}"],
        "env": {"A_TOKEN": "one", "B_TOKEN": "two"}},
      "open": {"command": "srv", "args": ["${workspaceFolder}/x", "${env:MODE:-def}"]}}}"#;
    let (scratch, ended) = from(".mcp.json", servers);
    let (carried, rest) = ended.out.split_once("for your own haft.yaml").unwrap();
    assert!(!carried.contains("shut"), "{carried}");
    assert!(
        carried.contains("mcpServers.open, ${workspaceFolder} -> `.`"),
        "{carried}"
    );
    for line in [
        "mcpServers.shut: it needs A_TOKEN, B_TOKEN, TOKEN\n",
        "mcpServers.shut, ${workspaceFolder} -> `${PWD}`",
        "mcpServers.shut, ${input:token}: haft does not prompt",
        "mcpServers.shut, the default of MYVAR: haft has no defaults for variables; set MYVAR",
    ] {
        assert!(rest.contains(line), "{line}: {rest}");
    }
    let text = written(&scratch);
    assert!(text.contains(r#"["./x", "${MODE}"]"#), "{text}");
    assert!(
        lines_for_own(&ended).contains(r#"["${PWD}/x", "${MYVAR}", "${TOKEN}"]"#),
        "{}",
        ended.err
    );
}

#[test]
fn a_provider_s_key_is_named_once_and_goes_into_the_own_file() {
    let (scratch, ended) = from("agent.yaml", "provider: anthropic\napi_key: plainpw\n");
    assert!(
        ended
            .err
            .contains("Set these variables: ANTHROPIC_API_KEY\n"),
        "{ended:?}"
    );
    assert_eq!(ended.out.matches("api_key").count(), 1, "{}", ended.out);
    assert!(!written(&scratch).contains("api_key"));
    let (scratch, _) = from(
        "agent.yaml",
        "provider: openai\nmodel: m\napi_key: \"${OPENAI_API_KEY}\"\n",
    );
    let text = written(&scratch);
    assert!(text.contains("provider: openai-responses\n"), "{text}");
    assert!(!text.contains("api_key"), "{text}");
    let (scratch, ended) = from(
        "agent.yaml",
        "provider: openai\nbase_url: http://localhost:1/v1\nmodel: m\napi_key: \"${ROUTER_KEY}\"\n",
    );
    // The address moves with its key: it must not get another key of the user.
    let text = written(&scratch);
    assert!(text.contains("model: m\n"), "{text}");
    for key in ["api_key", "base_url", "provider"] {
        assert!(!text.contains(key), "{key}: {text}");
        let (carried, rest) = ended.out.split_once("for your own haft.yaml").unwrap();
        assert!(
            !carried.contains(key) && rest.contains(key),
            "{}",
            ended.out
        );
    }
    assert_eq!(
        lines_for_own(&ended),
        "provider: openai-completions\nbase_url: \"http://localhost:1/v1\"\napi_key: \"${ROUTER_KEY}\""
    );
    let (_, _, text) = own_from(
        "agent.yaml",
        "provider: ollama\napi_key: \"${ROUTER_KEY}\"\n",
    );
    assert!(text.contains("api_key: \"${ROUTER_KEY}\"\n"), "{text}");
}

#[test]
fn an_error_in_json_is_explained() {
    let scratch = Scratch::new();
    scratch.file("bad.json", "{\"a\": \"plainpw\"\n\"b\"}");
    let ended = scratch.haft(&["init", "--from", "bad.json"]);
    assert!(
        ended
            .err
            .contains("bad.json:2:1: not valid JSON: expected `,` or `}`"),
        "{ended:?}"
    );
    scratch.file("bad.json", "{\"mcpServers\": {\n");
    let ended = scratch.haft(&["init", "--from", "bad.json"]);
    assert!(
        ended.err.contains("not valid JSON: EOF while parsing"),
        "{ended:?}"
    );
}

#[test]
fn a_rule_about_a_tool_of_a_server_is_not_taken_for_a_misspelling() {
    let (scratch, _) = from(
        ".claude/settings.json",
        r#"{"permissions": {"deny": ["mcp__gh__list"]}}"#,
    );
    let ended = scratch.haft(&["config", "show"]);
    assert!(
        ended
            .err
            .contains("no toolset has a tool \"gh_list\", and no MCP server \"gh\" is configured"),
        "{ended:?}"
    );
    assert!(!ended.err.contains("did you mean"), "{ended:?}");
}
