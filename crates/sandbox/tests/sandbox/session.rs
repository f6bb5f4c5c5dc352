//! haft-sandbox as part of a session, with its files and rules.

use crate::bed::{Bed, Server};
use serde_json::{Value, json};
use std::path::Path;
use std::time::{Duration, Instant};

const SANDBOX: &str = "execution: sandbox\n";

const NAMES: [&str; 3] = ["execute_python", "execute_bash", "install_packages"];

fn tools(server: &mut Server) -> Vec<String> {
    let listed = server.ask("tools/list", json!({}));
    let tools = listed["tools"].as_array().unwrap().iter();
    tools
        .map(|tool| tool["name"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn an_agent_uses_it_on_a_machine_without_python() {
    let bed = Bed::new();
    bed.file("sales.csv", "city,sum\nOslo,3\nRoma,4\nOslo,5\n");
    let code = "import csv\n\
                rows = list(csv.DictReader(open('/sales.csv')))\n\
                total = sum(int(row['sum']) for row in rows)\n\
                open('/total.txt', 'w').write(str(total))\n\
                print('total', total)";
    let message = |id: u64, message: Value| json!({ "type": "message", "id": id, "parent": id - 1, "time": "2026-11-15T00:00:00.000Z", "message": message });
    let call = json!({ "type": "call", "id": "c1", "name": "execute_python", "arguments": { "code": code } });
    let lines = [
        json!({ "type": "session", "version": 1, "id": "s", "kind": "agent", "work_dir": "/", "toolset": "deepagents",
            "provider": "replay", "model": "recorded", "created": "2026-11-15T00:00:00.000Z", "parent": null }),
        message(
            1,
            json!({ "role": "assistant", "parts": [call], "stop": "calls", "model": "recorded" }),
        ),
        message(
            2,
            json!({ "role": "assistant", "parts": [{ "type": "text", "text": "It is 12." }], "stop": "end", "model": "recorded" }),
        ),
    ];
    let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
    let recording = bed.work().join("../recorded.jsonl");
    std::fs::write(&recording, lines.join("\n")).unwrap();
    let recording = recording.display();
    let config = format!("{SANDBOX}provider: replay\nreplay: {recording}\n");
    let output = bed
        .haft(
            &config,
            &["run", "--json", "What is the total of /sales.csv?"],
        )
        .output()
        .unwrap();
    let reply = String::from_utf8_lossy(&output.stdout);
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{reply}{complaints}");
    let ended = reply.lines().find(|line| line.contains("\"tool_end\""));
    let ended: Value = serde_json::from_str(ended.unwrap()).unwrap();
    assert_eq!(ended["is_error"], false, "{reply}");
    assert_eq!(bed.read("total.txt"), "12");
    // Changes that the code makes are recorded like those of other tools.
    assert_eq!(ended["details"]["effects"]["created"], 1, "{reply}");
    let undone = bed.haft(&config, &["undo"]).output().unwrap();
    assert_eq!(undone.status.code(), Some(0), "{undone:?}");
    assert!(!bed.work().join("total.txt").exists());
}

#[test]
fn a_table_of_the_workspace_is_analysed_without_python() {
    let bed = Bed::new();
    bed.file("sales.csv", "city,sum\nOslo,3\nRoma,4\nOslo,5\n");
    let mut session = bed.session(SANDBOX);
    let tools = tools(&mut session);
    for tool in [
        "execute_python",
        "execute_bash",
        "install_packages",
        "ls",
        "read_file",
    ] {
        assert!(tools.iter().any(|name| name == tool), "{tools:?}");
    }
    assert!(!tools.contains(&"execute".to_owned()), "{tools:?}");
    let answer = session.python(
        "import collections, csv\n\
         sums = collections.Counter()\n\
         for row in csv.DictReader(open('/sales.csv')):\n    sums[row['city']] += int(row['sum'])\n\
         with open('/report.txt', 'w') as report:\n    for city, total in sums.most_common(): print(city, total, file=report)\n\
         dict(sums)",
    );
    assert_eq!(
        answer.text("result"),
        "{'Oslo': 8, 'Roma': 4}",
        "{}",
        answer.json
    );
    assert_eq!(bed.read("report.txt"), "Oslo 8\nRoma 4\n");
    let answer = session.call("read_file", json!({ "file_path": "/report.txt" }));
    assert_eq!(answer.text("content"), "     1\tOslo 8\n     2\tRoma 4");
    let answer = session.bash("grep Oslo /report.txt > /oslo.txt; ls /");
    assert_eq!(answer.text("stdout"), "oslo.txt\nreport.txt\nsales.csv\n");
}

#[test]
fn models_see_the_same_three_tools_in_a_session_and_alone() {
    let three = |server: &mut Server| -> Vec<Value> {
        let listed = server.ask("tools/list", json!({}));
        let tools = listed["tools"].as_array().unwrap().iter();
        tools
            .filter(|tool| NAMES.contains(&tool["name"].as_str().unwrap()))
            .map(|tool| json!([tool["name"], tool["description"], tool["inputSchema"]]))
            .collect()
    };
    let bed = Bed::new();
    let in_session = three(&mut bed.session(SANDBOX));
    let alone = three(&mut Server::alone(&[]));
    assert_eq!(in_session, alone);
    let parameters: Vec<(&str, &Value)> = alone
        .iter()
        .map(|tool| (tool[0].as_str().unwrap(), &tool[2]["required"]))
        .collect();
    assert_eq!(
        parameters,
        [
            ("execute_python", &json!(["code"])),
            ("execute_bash", &json!(["command"])),
            ("install_packages", &json!(["packages"])),
        ]
    );
}

#[test]
fn the_program_itself_is_kept_from_the_machine() {
    let bed = Bed::new();
    let mut session = bed.session(SANDBOX);
    session.python("print(1)");
    let name = |process: &u32| std::fs::read_to_string(format!("/proc/{process}/comm"));
    let all = children(session.process());
    let program = all
        .iter()
        .find(|process| name(process).is_ok_and(|name| name.trim() == "haft-sandbox"));
    let program = program.unwrap();
    // Confinement as the kernel reports it: no new privileges, and a syscall filter.
    let status = std::fs::read_to_string(format!("/proc/{program}/status")).unwrap();
    assert!(status.contains("NoNewPrivs:\t1"), "{status}");
    assert!(status.contains("Seccomp:\t2"), "{status}");
    let environment = std::fs::read(format!("/proc/{program}/environ")).unwrap();
    let environment = String::from_utf8_lossy(&environment).into_owned();
    assert!(!environment.contains("PATH="), "{environment}");
}

#[test]
fn files_of_every_backend_are_available() {
    for backend in [
        "backend: state\n",
        "backend: store\n",
        "backend: { routes: { /memories: store, /scratch: state } }\n",
    ] {
        let bed = Bed::new();
        let mut session = bed.session(&format!("{SANDBOX}{backend}"));
        for path in ["/a.txt", "/memories/b.txt", "/scratch/c.txt"] {
            let made = json!({ "file_path": path, "content": "one\n" });
            assert!(!session.call("write_file", made).is_error);
            let code = format!("open('{path}', 'a').write('two\\n')\nopen('{path}').read()");
            let answer = session.python(&code);
            assert_eq!(
                answer.text("result"),
                "'one\\ntwo\\n'",
                "{backend}: {}",
                answer.json
            );
            let read = session.call("read_file", json!({ "file_path": path }));
            assert_eq!(
                read.text("content"),
                "     1\tone\n     2\ttwo",
                "{backend}{path}"
            );
        }
        let answer = session.bash("find / -name '*.txt' | sort; rm /scratch/c.txt");
        assert_eq!(
            answer.text("stdout"),
            "/a.txt\n/memories/b.txt\n/scratch/c.txt\n",
            "{backend}: {}",
            answer.json
        );
        let gone = session.call("read_file", json!({ "file_path": "/scratch/c.txt" }));
        assert!(gone.is_error);
    }
}

#[test]
fn concurrent_changes_of_others_are_not_overwritten() {
    let bed = Bed::new();
    bed.file("n.txt", "1");
    let mut session = bed.session(SANDBOX);
    let code = "import os\n\
                old = open('/n.txt').read()\n\
                while 'go' not in os.listdir('/'): pass\n\
                open('/n.txt', 'w').write(old + ' and code')";
    let call = json!({ "name": "execute_python", "arguments": { "code": code } });
    let read = watch(&bed.work().join("n.txt"));
    session.send("tools/call", call);
    read();
    bed.file("n.txt", "somebody else");
    bed.file("go", "");
    let answer = session.hear();
    let answer = crate::bed::answer(&answer["result"]);
    assert!(answer.is_error, "{}", answer.json);
    let message = answer.text("message");
    assert!(
        message.starts_with("/n.txt was not written: someone else changed it while the code ran"),
        "{message}"
    );
    assert_eq!(bed.read("n.txt"), "somebody else");
    let kept = message.rsplit(' ').next().unwrap();
    let kept = session.call("read_file", json!({ "file_path": kept }));
    assert_eq!(kept.text("content"), "     1\t1 and code", "{}", kept.json);
}

#[test]
fn the_scope_and_the_rules_apply() {
    let bed = Bed::new();
    std::fs::write(bed.work().join("../canary"), "canary").unwrap();
    std::os::unix::fs::symlink("../canary", bed.work().join("out")).unwrap();
    bed.file("secret.txt", "canary");
    let rules = "policy:\n  - { deny: \"*\", path: \"/secret.txt\" }\n";
    let mut session = bed.session(&format!("{SANDBOX}{rules}"));
    for path in ["/out", "/secret.txt", "/../canary"] {
        let answer = session.python(&format!("print(open('{path}').read())"));
        assert!(answer.is_error, "{path}: {}", answer.json);
        assert!(!answer.text("stdout").contains("canary"), "{}", answer.json);
    }
    let answer =
        session.bash("echo x > /haft.yaml; mkdir /.git; echo x > /.git/config; echo y > /ok");
    assert!(answer.is_error);
    assert!(
        answer
            .text("message")
            .contains("/haft.yaml was not written"),
        "{}",
        answer.json
    );
    assert!(!bed.work().join("haft.yaml").exists());
    assert!(!bed.work().join(".git").exists());
    assert_eq!(bed.read("ok"), "y\n");
}

#[test]
fn presets_select_tools_and_a_missing_program_is_reported() {
    let bed = Bed::new();
    let mut session = Server::start(bed.haft(SANDBOX, &["--preset", "readonly", "mcp"]));
    assert!(!tools(&mut session).contains(&"execute_python".to_owned()));
    // A haft without haft-sandbox beside it.
    let there = bed.haft(SANDBOX, &["tools"]);
    let alone = bed.work().join("haft");
    std::fs::hard_link(there.get_program(), &alone).unwrap();
    let mut command = std::process::Command::new(&alone);
    command.args(there.get_args()).env_clear();
    command.env("HOME", bed.work());
    let output = command.current_dir(bed.work()).output().unwrap();
    // The session works without those tools, and reports what is missing.
    assert_eq!(output.status.code(), Some(0));
    let listed = String::from_utf8(output.stdout).unwrap();
    assert!(listed.contains("read_file") && !listed.contains("execute_python"));
    let reply = String::from_utf8(output.stderr).unwrap();
    assert!(reply.contains("needs the program haft-sandbox"), "{reply}");
    assert!(
        reply.contains("cargo build --release -p haft-sandbox"),
        "{reply}"
    );
}

#[test]
fn doctor_shows_the_interpreter() {
    let bed = Bed::new();
    let output = bed.haft(SANDBOX, &["doctor"]).output().unwrap();
    let reply = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{reply}");
    assert!(
        reply.contains("/haft-sandbox, isolated from this machine\n"),
        "{reply}"
    );
    assert!(!reply.contains("bash does not work"), "{reply}");
}

#[test]
fn it_starts_when_it_is_first_called() {
    let bed = Bed::new();
    // The first session has to ask for its tools.
    tools(&mut bed.session(SANDBOX));
    let mut session = bed.session(SANDBOX);
    assert!(tools(&mut session).contains(&"execute_python".to_owned()));
    assert_eq!(children(session.process()), Vec::<u32>::new());
    session.python("print(1)");
    assert!(!children(session.process()).is_empty());
}

#[test]
fn no_process_outlives_the_session() {
    let bed = Bed::new();
    let mut session = bed.session(SANDBOX);
    session.python("print(1)");
    let of_it = children(session.process());
    assert!(!of_it.is_empty());
    drop(session);
    let begun = Instant::now();
    while of_it.iter().any(|process| is_alive(*process)) {
        assert!(begun.elapsed() < Duration::from_secs(5), "{of_it:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Returns a function that waits until a file has been read.
fn watch(path: &Path) -> impl FnOnce() + use<> {
    use rustix::fs::inotify::{CreateFlags, Reader, WatchFlags, add_watch, init};
    let watch = init(CreateFlags::CLOEXEC).unwrap();
    add_watch(&watch, path, WatchFlags::CLOSE_NOWRITE).unwrap();
    move || {
        let mut buffer = [std::mem::MaybeUninit::uninit(); 1024];
        Reader::new(&watch, &mut buffer).next().unwrap();
    }
}

/// Returns all descendants of a process.
fn children(process: u32) -> Vec<u32> {
    let mut all = Vec::new();
    let mut open = vec![process];
    while let Some(parent) = open.pop() {
        for entry in std::fs::read_dir("/proc").unwrap().flatten() {
            let Ok(number) = entry.file_name().to_string_lossy().parse::<u32>() else {
                continue;
            };
            let stat = std::fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
            let after = stat.rsplit(')').next().unwrap_or_default();
            if after.split_whitespace().nth(1) == Some(&parent.to_string()) {
                all.push(number);
                open.push(number);
            }
        }
    }
    all
}

fn is_alive(process: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let after = stat.rsplit(')').next().unwrap_or_default();
    !matches!(after.split_whitespace().next(), None | Some("Z" | "X"))
}

#[test]
fn a_file_that_is_too_large_ends_only_the_command_that_reads_it() {
    let bed = Bed::new();
    bed.file("big", &"a".repeat(11 << 20));
    let mut session = bed.session(SANDBOX);
    let commands = [
        "file /big",
        "less /big",
        "gzip /big",
        "tar cf /t.tar /big",
        "join /big /big",
    ];
    let script: String = commands
        .iter()
        .map(|one| format!("{one}; echo $?; "))
        .collect();
    let answer = session.bash(&script);
    assert_eq!(answer.text("stdout"), "1\n1\n1\n2\n1\n", "{}", answer.json);
    let stderr = answer.text("stderr");
    assert!(stderr.starts_with("file: /big: "), "{stderr}");
    assert_eq!(stderr.lines().count(), commands.len(), "{stderr}");
}
