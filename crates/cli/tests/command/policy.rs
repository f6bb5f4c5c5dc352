//! Rules: decisions, prompts and explanations.

use crate::scratch::{Ended, Scratch};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::OpenptFlags;
use serde_json::{Value, json};
use std::fs::File;
use std::io::{Read, Write};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

const WRITE: &[&str] = &["call", "write", "path=a.txt", "content=hello"];

fn write_with(scratch: &Scratch, flags: &[&str]) -> Ended {
    let mut args = WRITE.to_vec();
    args.extend(flags);
    scratch.haft(&args)
}

#[test]
fn calls_that_need_approval_are_refused_without_a_terminal() {
    let scratch = Scratch::new();
    scratch.user("policy:\n\n  - { ask: write }\n");
    let ended = write_with(&scratch, &[]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let user = scratch.home(".config/haft/haft.yaml").display().to_string();
    assert!(
        ended.out.starts_with(&format!(
            "not approved: {user}:3 requires approval ({{ ask: write }}): write, write a.txt, and no user can be asked here\n"
        )),
        "{ended:?}"
    );
    assert!(ended.out.contains("--approve auto"), "{ended:?}");
    assert!(
        ended.out.contains("{ allow: write, path: a.txt }"),
        "{ended:?}"
    );
    assert!(!scratch.work("a.txt").exists());
    assert_eq!(write_with(&scratch, &["--approve", "never"]).code, Some(1));
    assert!(!scratch.work("a.txt").exists());
    assert_eq!(write_with(&scratch, &["--approve", "auto"]).code, Some(0));
    assert!(scratch.work("a.txt").exists());
    // The suggested rule works as described.
    scratch.user("policy:\n  - { allow: write, path: a.txt }\n  - { ask: write }\n");
    assert_eq!(write_with(&scratch, &[]).code, Some(0));
    let other = scratch.haft(&["call", "write", "path=b.txt", "content=x"]);
    assert_eq!(other.code, Some(1), "{other:?}");
    assert_eq!(
        scratch
            .haft_with(
                &[("HAFT_APPROVE", "auto")],
                &["call", "write", "path=b.txt", "content=x"]
            )
            .code,
        Some(0)
    );
    assert_eq!(write_with(&scratch, &["--approve", "maybe"]).code, Some(2));
}

#[test]
fn deny_cannot_be_overridden_by_approval() {
    let scratch = Scratch::new();
    scratch.file(
        "haft.yaml",
        "policy: [{ deny: \"*\", path: \"kept/**\" }]\n",
    );
    scratch.user("policy: [{ allow: \"*\" }]\napprove: auto\n");
    scratch.file("kept/a.txt", "old");
    std::os::unix::fs::symlink("kept", scratch.work("link")).unwrap();
    for path in [
        "kept/a.txt",
        "link/a.txt",
        "./x/../kept/a.txt",
        "@kept/a.txt",
        "kept/new",
    ] {
        let path = format!("path={path}");
        let ended = scratch.haft(&["call", "write", &path, "content=x", "--approve", "auto"]);
        assert_eq!(ended.code, Some(1), "{path} {ended:?}");
        assert!(
            ended
                .out
                .starts_with("denied: haft.yaml:1 denies this call"),
            "{path} {ended:?}"
        );
    }
    assert_eq!(
        scratch.haft(&["call", "read", "path=kept/a.txt"]).code,
        Some(1)
    );
    assert_eq!(write_with(&scratch, &[]).code, Some(0));
    assert_eq!(
        std::fs::read_to_string(scratch.work("kept/a.txt")).unwrap(),
        "old"
    );
}

#[test]
fn a_project_only_tightens() {
    let scratch = Scratch::new();
    // Its rules loosen nothing.
    scratch.user("policy: [{ ask: write }]\n");
    scratch.file("haft.yaml", "policy: [{ allow: write }]\n");
    assert_eq!(write_with(&scratch, &[]).code, Some(1));
    scratch.user("policy: [{ deny: write }]\n");
    assert_eq!(write_with(&scratch, &["--approve", "auto"]).code, Some(1));
    // Named by the user, it counts as the user's choice, and the strictest rule still wins.
    assert_eq!(
        write_with(&scratch, &["--config", "haft.yaml"]).code,
        Some(1)
    );
    for (person, project, together, warns) in [
        ("ask", "auto", "ask", true),
        ("ask", "never", "never", false),
        ("auto", "never", "never", false),
        ("auto", "ask", "ask", false),
        ("never", "auto", "never", true),
        ("never", "ask", "never", true),
        ("ask", "ask", "ask", false),
    ] {
        scratch.user(&format!("approve: {person}\n"));
        scratch.file("haft.yaml", format!("\napprove: {project}\n"));
        let shown = scratch.shown("approve", &[], &[]).0;
        assert_eq!(shown, together, "{person} {project}");
        let ended = scratch.haft(&["config", "show"]);
        let warned = ended
            .err
            .starts_with(&format!("haft.yaml:2: approve {project} is ignored"));
        assert_eq!(warned, warns, "{person} {project} {ended:?}");
    }
    assert_eq!(
        scratch.shown("approve", &[], &["--approve", "auto"]),
        (json!("auto"), "flag --approve".to_owned())
    );
}

#[test]
fn a_malformed_policy_stops_everything() {
    let scratch = Scratch::new();
    scratch.user("policy: [{ deny: write }]\n");
    scratch.file("haft.yaml", "policy: [{ denny: read }]\n");
    for args in [
        WRITE,
        &["mcp"],
        &["tools"],
        &["why", "ls"],
        &["config", "show"],
    ] {
        let ended = scratch.haft(args);
        assert_eq!(ended.code, Some(2), "{args:?} {ended:?}");
        assert!(
            ended
                .err
                .starts_with("haft.yaml:1:12: unknown key \"denny\""),
            "{ended:?}"
        );
    }
    assert!(!scratch.work("a.txt").exists());
}

#[test]
fn a_rule_for_an_unknown_tool_causes_a_warning() {
    let scratch = Scratch::new();
    scratch.file(
        "haft.yaml",
        "policy:\n  - { deny: wrote }\n  - { deny: my_plugin }\n",
    );
    let ended = scratch.haft(&["tools"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(
        ended.err,
        "haft.yaml:2: no toolset has a tool \"wrote\"; did you mean \"write\"?\nhaft.yaml:3: no toolset has a tool \"my_plugin\"\n"
    );
}

#[test]
fn the_rules_are_shown_with_their_places() {
    let scratch = Scratch::new();
    assert_eq!(
        scratch.shown("policy", &[], &[]),
        (json!([]), "default".to_owned())
    );
    scratch.user("policy:\n  - { ask: \"*\", effect: write }\n");
    scratch.file(
        "haft.yaml",
        "policy:\n  - deny: bash\n    command: git push\n",
    );
    let user = scratch.home(".config/haft/haft.yaml").display().to_string();
    assert_eq!(
        scratch.shown("policy", &[], &[]),
        (
            json!([
                "{ deny: bash, command: git push } (haft.yaml:2)",
                format!("{{ ask: \"*\", effect: write }} ({user}:2)"),
            ]),
            format!("haft.yaml, {user}")
        )
    );
}

#[test]
fn why_says_which_rule_and_runs_nothing() {
    let scratch = Scratch::new();
    scratch.user("policy: [{ allow: write, path: \"docs/**\" }, { ask: write }]\n");
    scratch.file(
        "haft.yaml",
        "policy:\n  - { deny: write, path: \"*.lock\" }\n",
    );
    let why = |args: &[&str]| {
        let mut all = vec!["why", "--json"];
        all.extend(args);
        let ended = scratch.haft(&all);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        serde_json::from_str::<Value>(&ended.out).unwrap()
    };
    let write = |path: &str| why(&["write", &format!("path={path}"), "content=x"]);
    let reply = write("docs/a.md");
    assert_eq!(reply["decision"], "allow");
    assert_eq!(reply["outcome"], "runs without asking");
    // In another spelling of the toolset it is the same path.
    assert_eq!(write("@docs/a.md")["decision"], "allow");
    assert_eq!(write("docs/../docs/a.md")["decision"], "allow");
    let reply = write("a.txt");
    assert_eq!(reply["decision"], "ask");
    assert_eq!(reply["rules"][0]["rule"], "{ ask: write }");
    assert_eq!(reply["suggestion"], "{ allow: write, path: a.txt }");
    assert_eq!(reply["sandbox"], "workspace");
    let reply = write("a.lock");
    assert_eq!(reply["decision"], "deny");
    assert_eq!(reply["rules"][0]["place"], "haft.yaml:2");
    assert_eq!(reply["suggestion"], Value::Null);
    let reply = write("/usr/out.txt");
    assert_eq!(reply["decision"], "deny");
    assert_eq!(reply["scope"][0]["decision"], "deny");
    assert_eq!(reply["scope"][0]["why"], "path not allowed: /usr/out.txt");
    assert_eq!(why(&["ls"])["rules"][0]["decision"], "allow");

    let ended = scratch.haft(&["why", "write", r#"{"path": "a.txt", "content": "x"}"#]);
    let mut lines = ended.out.lines();
    assert_eq!(lines.next(), Some("ask"));
    for words in [
        ":1 { ask: write }",
        "the scope: ",
        "approve ask: asks the user; refused if no user can be asked",
        "  - { allow: write, path: a.txt }",
        "sandbox workspace: can write the work folder",
    ] {
        assert!(ended.out.contains(words), "{words} {ended:?}");
    }
    let auto = scratch.haft(&["why", "write", "path=a", "content=x", "--approve", "auto"]);
    assert!(auto.out.starts_with("ask\n"), "{auto:?}");
    assert!(auto.out.contains("approve auto: runs as if"), "{auto:?}");
    let none = scratch.haft(&["why", "ls"]);
    assert!(none.out.starts_with("allow\n"), "{none:?}");
    assert!(none.out.contains("no rule"), "{none:?}");
    let read = scratch.haft_reading(
        br#"{"path": "a.lock", "content": "x"}"#,
        &["why", "write", "-"],
    );
    assert!(read.out.starts_with("deny\n"), "{read:?}");
    for args in [
        &["why"][..],
        &["why", "wrote"],
        &["why", "write"],
        &["why", "write", "x"],
    ] {
        assert_eq!(scratch.haft(args).code, Some(2), "{args:?}");
    }
    let left: Vec<_> = std::fs::read_dir(scratch.work("")).unwrap().collect();
    assert_eq!(left.len(), 1, "only the configuration: {left:?}");
}

#[test]
fn why_names_the_reason_and_the_remedy_of_a_refusal_without_a_rule() {
    let scratch = Scratch::new();
    let text = |args: &[&str]| {
        let ended = scratch.haft(&[&["why"], args].concat());
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert!(ended.out.starts_with("deny\n"), "{}", ended.out);
        assert!(!ended.out.contains("this rule"), "{}", ended.out);
        ended.out
    };
    let reply = text(&["write", "path=/etc/passwd", "content=x"]);
    assert!(reply.contains("`tools.roots`"), "{reply}");
    assert!(reply.contains("`--sandbox off`"), "{reply}");
    let reply = text(&["read", "path=/root/.ssh/id_rsa"]);
    assert!(reply.contains("secret place"), "{reply}");

    for url in ["http://127.0.0.1/", "http://localhost/", "http://[::1]:80/"] {
        let reply = text(&["web_fetch", &format!("url={url}")]);
        assert!(reply.contains("not allowed to connect to"), "{reply}");
        assert!(reply.contains("tools.web.allow_hosts"), "{reply}");
    }
    let ended = scratch.haft(&["why", "--json", "web_fetch", "url=http://127.0.0.1/"]);
    let reply: Value = serde_json::from_str(&ended.out).unwrap();
    assert_eq!(reply["decision"], "deny");
    assert!(reply["refused_by_tool"]["remedy"].is_string(), "{reply}");
    // A host that the user's own settings list is not refused.
    scratch.user("tools: { web: { allow_hosts: [\"127.0.0.1\"] } }\n");
    let ended = scratch.haft(&["why", "web_fetch", "url=http://127.0.0.1/"]);
    assert!(ended.out.starts_with("allow\n"), "{ended:?}");
}

#[test]
fn the_example_of_the_page_is_what_is_printed() {
    let page = include_str!("../../../../docs/policy.md");
    let between = |from: &str, to: &str| {
        let (_, after) = page.split_once(from).unwrap();
        after.split_once(to).unwrap().0.to_owned()
    };
    let scratch = Scratch::new();
    scratch.file("haft.yaml", between("```yaml\n", "```"));
    scratch.file("src/main.rs", "");
    let example = between("```console\n$ ", "```");
    let (command, printed) = example.split_once('\n').unwrap();
    let args: Vec<&str> = command.split(' ').skip(1).collect();
    let ended = scratch.haft(&args);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let work = scratch.work("").canonicalize().unwrap();
    let shown = ended
        .out
        .replace(work.to_str().unwrap(), "/home/me/project");
    // The sandbox is documented on another page and depends on the machine.
    let (decided, _) = printed.split_once("sandbox ").unwrap();
    assert!(shown.starts_with(decided), "{shown}");
}

#[test]
fn a_client_that_cannot_be_asked_is_refused_with_the_reason() {
    let scratch = Scratch::new();
    scratch.file("haft.yaml", "policy: [{ ask: write }]\n");
    let mut child = scratch
        .command(&["mcp"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"}}});
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let call = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {
        "name": "write", "arguments": {"path": "a.txt", "content": "x"}}});
    for message in [hello, ready, call] {
        writeln!(stdin, "{message}").unwrap();
    }
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(child.stdout.take().unwrap()));
    let answer = lines
        .by_ref()
        .map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap())
        .find(|message| message["id"] == 2)
        .unwrap();
    drop(stdin);
    child.wait().unwrap();
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    let text = answer["result"]["content"][0]["text"].as_str().unwrap();
    assert!(
        text.starts_with("not approved: haft.yaml:1 requires approval"),
        "{text}"
    );
    assert!(!scratch.work("a.txt").exists());
}

/// A call whose stdin and stderr are a terminal, waiting for an answer.
struct Asked {
    child: Child,
    terminal: File,
    shown: String,
}

fn asked(scratch: &Scratch, args: &[&str]) -> Asked {
    let ours = rustix::pty::openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    rustix::pty::grantpt(&ours).unwrap();
    rustix::pty::unlockpt(&ours).unwrap();
    let name = rustix::pty::ptsname(&ours, Vec::new()).unwrap();
    let theirs = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open(name.to_str().unwrap())
        .unwrap();
    let mut terminal = File::from(ours);
    // Typed before the question appeared, so it is not an answer.
    terminal.write_all(b"y\n").unwrap();
    let child = scratch
        .command(args)
        .env("TERM", "xterm")
        .stdin(theirs.try_clone().unwrap())
        .stdout(Stdio::piped())
        .stderr(theirs)
        .spawn()
        .unwrap();
    let mut shown = Vec::new();
    let deadline = Instant::now() + Duration::from_secs(30);
    while !shown.ends_with(b"Run it? [y/N] ") {
        let mut some = [0; 4096];
        let count = terminal.read(&mut some).unwrap();
        shown.extend_from_slice(&some[..count]);
        assert!(
            Instant::now() < deadline,
            "{}",
            String::from_utf8_lossy(&shown)
        );
    }
    Asked {
        child,
        terminal,
        shown: String::from_utf8(shown).unwrap(),
    }
}

impl Asked {
    fn answer(mut self, text: &[u8]) -> Ended {
        self.terminal.write_all(text).unwrap();
        self.ended()
    }

    fn ended(self) -> Ended {
        let output = self.child.wait_with_output().unwrap();
        output.into()
    }
}

#[test]
fn the_user_is_asked_on_a_terminal() {
    let scratch = Scratch::new();
    scratch.file(
        "haft.yaml",
        "policy:\n  - { ask: write, path: \"*.txt\" }\n",
    );
    let question = asked(&scratch, WRITE);
    for words in [
        "Allow write to change this file?",
        "  path:\r\n  | a.txt\r\n",
        "  content:\r\n  | hello\r\n",
        "asked by: haft.yaml:2 { ask: write, path: \"*.txt\" }",
    ] {
        assert!(question.shown.contains(words), "{words} {}", question.shown);
    }
    assert!(
        !question.shown.contains("rule:"),
        "a rule of the person's does not answer the project: {}",
        question.shown
    );
    let ended = question.answer(b"y\n");
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(ended.out, "Successfully wrote 5 bytes to a.txt\n");
    std::fs::remove_file(scratch.work("a.txt")).unwrap();
    for no in [&b"\n"[..], b"n\n", b"yo\n", b"\x04"] {
        let ended = asked(&scratch, WRITE).answer(no);
        assert_eq!(ended.code, Some(1), "{no:?} {ended:?}");
        assert!(ended.out.contains("the user said no"), "{ended:?}");
        assert!(!scratch.work("a.txt").exists(), "{no:?}");
    }
    scratch.file("haft.yaml", "");
    scratch.user("policy: [{ ask: write }]\n");
    let question = asked(&scratch, WRITE);
    assert!(
        question
            .shown
            .contains("rule: { allow: write, path: a.txt } (for this session, or always in"),
        "{}",
        question.shown
    );
    assert_eq!(question.answer(b"YES\n").code, Some(0));
}

#[test]
fn a_rejection_can_have_a_reason_and_everything_can_be_shown() {
    let scratch = Scratch::new();
    scratch.file("haft.yaml", "policy: [{ ask: write }]\n");
    let content = format!("content={}the end", "x".repeat(1000));
    let args = ["call", "write", "path=a.txt", &content];
    let ended = asked(&scratch, &args).answer(b"n not in this folder\n");
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let reply = "the user said no: not in this folder";
    assert!(ended.out.contains(reply), "{ended:?}");
    let mut question = asked(&scratch, &args);
    assert!(!question.shown.contains("the end"), "{}", question.shown);
    question.terminal.write_all(b"v\n").unwrap();
    let mut shown = Vec::new();
    while !shown.ends_with(b"Run it? [y/N] ") {
        let mut some = [0; 4096];
        let count = question.terminal.read(&mut some).unwrap();
        shown.extend_from_slice(&some[..count]);
    }
    assert!(String::from_utf8(shown).unwrap().contains("the end"));
    assert_eq!(question.answer(b"y\n").code, Some(0));
}

#[test]
fn shown_text_is_sanitized() {
    let scratch = Scratch::new();
    scratch.file("haft.yaml", "policy: [{ ask: write }]\n");
    let path = "path=a\u{1b}[2J\u{202e}\nRun it? [y/N] y";
    let question = asked(&scratch, &["call", "write", path, "content=x"]);
    assert!(
        !question.shown.contains(['\u{1b}', '\u{202e}']),
        "{:?}",
        question.shown
    );
    assert!(
        question
            .shown
            .contains("  | a\\x1b[2J\\u{202e}\r\n  | Run it? [y/N] y\r\n")
    );
    assert_eq!(question.answer(b"n\n").code, Some(1));
}

#[test]
fn an_interrupt_during_a_question_is_not_an_answer() {
    let scratch = Scratch::new();
    scratch.file("haft.yaml", "policy: [{ ask: write }]\n");
    let question = asked(&scratch, WRITE);
    kill_process(Pid::from_child(&question.child), Signal::INT).unwrap();
    let ended = question.ended();
    assert_eq!(ended.code, Some(130), "{ended:?}");
    assert!(!scratch.work("a.txt").exists());
}

#[test]
fn a_command_is_judged_before_it_runs() {
    let scratch = Scratch::new();
    scratch.user(
        "policy:\n  - { deny: bash, command: touch denied }\n  - { allow: bash, command: touch }\n  - { allow: bash, command: echo }\n  - { ask: bash }\n",
    );
    let bash = |line: &str, flags: &[&str]| {
        let line = format!("command={line}");
        let mut args = vec!["call", "bash", &line, "--sandbox", "off"];
        args.extend(flags);
        scratch.haft(&args)
    };
    let there = |name: &str| scratch.work(name).exists();
    let ended = bash("touch a && echo b", &[]);
    assert_eq!((ended.code, ended.out.as_str()), (Some(0), "b\n"));
    assert!(there("a"));
    for line in [
        "touch b; touch denied",
        "touch b $(touch denied)",
        "touch b & /usr/bin/touch denied",
        "sh -c 'touch b; touch denied'",
        "touch b; echo \"$(date)\"; touch denied",
        "cat <<'EOF'\nb\nEOF\ntouch denied",
        // The rule cannot compare this text.
        "touch `echo denied`",
        "C=touch; $C denied",
    ] {
        let ended = bash(line, &["--approve", "auto"]);
        assert_eq!(ended.code, Some(1), "{line} {ended:?}");
        assert!(ended.out.starts_with("denied: "), "{line} {ended:?}");
        assert!(!there("b") && !there("denied"), "{line}");
    }
    for line in [
        "touch c > /d",
        "touch c `ls`",
        "PATH=b touch c",
        "sudo touch c",
        "touch c\r\n",
        "ls; touch c",
    ] {
        let ended = bash(line, &[]);
        assert_eq!(ended.code, Some(1), "{line} {ended:?}");
        assert!(ended.out.starts_with("not approved: "), "{line} {ended:?}");
        assert!(!there("c"), "{line}");
    }
    assert_eq!(bash("touch c `ls`", &["--approve", "auto"]).code, Some(0));
    assert!(there("c"));
    for line in [
        "for f in e; do touch -a \"$f\"; done > log 2>&1",
        "A=b timeout 5 touch f `echo g` | echo x",
        "if touch h; then echo *; fi",
    ] {
        let ended = bash(line, &[]);
        assert_eq!(ended.code, Some(0), "{line} {ended:?}");
    }
    assert!(there("e") && there("f") && there("g") && there("h") && there("log"));
    let why = scratch.haft(&["why", "bash", "command=touch x $(ls)"]);
    assert!(why.out.starts_with("ask\n"), "{why:?}");
    assert!(why.out.contains("command ls"), "{why:?}");
    assert!(
        why.out.contains("  - { allow: bash, command: ls }"),
        "{why:?}"
    );
    let why = scratch.haft(&["why", "bash", "command=PATH=x touch x"]);
    assert!(why.out.starts_with("ask\n"), "{why:?}");
    assert!(
        why.out
            .contains("not only commands: the variable PATH may decide which program runs"),
        "{why:?}"
    );
    assert!(!there("x"));
    let why = scratch.haft(&["why", "bash", "command=$C x"]);
    assert!(why.out.starts_with("deny\n"), "{why:?}");
    assert!(
        why.out
            .contains("cannot be checked: the name of a command is not literal"),
        "{why:?}"
    );
}
