//! Memory for a client's data is proportional to its size, and running out of memory or
//! threads leads to an error reply, not a crash.

use crate::Yard;
use crate::server::hello;
use serde_json::{Value, json};
use std::collections::HashSet;
use std::io::{BufRead, BufReader, Lines, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// Maximum memory for hostile arguments, beyond the server's own use.
const MOST_MEMORY: u64 = 64 << 10;
/// Maximum length of a reply about them.
const LONGEST_ANSWER: usize = 64 << 10;

struct Server {
    child: Child,
    stdin: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Server {
    fn start(mut command: Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let stdin = child.stdin.take().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut server = Self {
            child,
            stdin,
            lines,
        };
        server.send(&hello());
        server.next();
        server
    }

    fn send(&mut self, text: &str) {
        self.stdin.write_all(text.as_bytes()).unwrap();
    }

    fn next(&mut self) -> String {
        self.lines.next().unwrap().unwrap()
    }

    /// Calls a tool with raw JSON arguments.
    fn call(&mut self, tool: &str, arguments: &str) -> String {
        self.send(&format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{{\"name\":\"{tool}\",\"arguments\":{arguments}}}}}\n"
        ));
        self.next()
    }

    /// Peak memory so far, in KiB.
    fn peak(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmHWM"));
        let number = line.unwrap().split_whitespace().nth(1).unwrap();
        number.parse().unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn hostile_arguments_cost_little_and_are_answered_briefly() {
    const SIZE: usize = 13 << 20;
    let keys = |count: usize| {
        let keys = (0..count).map(|key| format!("\"k{key:07}\":1"));
        format!("{{{}}}", keys.collect::<Vec<_>>().join(","))
    };
    let bomb = format!("[{}1]", "1,".repeat(SIZE / 3));
    let string = |text: &str| Value::from(text).to_string();
    let cases = [
        ("a million names", "read", keys(1_000_000)),
        ("as many names as may be", "read", keys(140_000)),
        (
            "a long name",
            "read",
            format!("{{\"{}\":1}}", "p".repeat(SIZE)),
        ),
        ("a list", "read", format!("{{\"path\":{bomb}}}")),
        (
            "the longest list",
            "read",
            format!("{{\"path\":[{}1]}}", "1,".repeat(149_000)),
        ),
        (
            "a list as text",
            "edit",
            format!("{{\"path\":\"a\",\"edits\":{}}}", string(&bomb)),
        ),
        (
            "arguments as text",
            "read",
            string(&format!("{{\"path\":{bomb}}}")),
        ),
        (
            "arguments as text in another language",
            "read",
            string(&format!("{{'path':{bomb}}}")),
        ),
        (
            "arguments inside arguments",
            "read",
            json!({ "arguments": format!("{{\"path\":{bomb}}}") }).to_string(),
        ),
        (
            "depth",
            "read",
            format!(
                "{{\"path\":{}{}}}",
                "[".repeat(SIZE / 2),
                "]".repeat(SIZE / 2)
            ),
        ),
        (
            "digits",
            "read",
            format!("{{\"path\":\"a\",\"offset\":{}}}", "1".repeat(SIZE)),
        ),
        (
            "digits as text",
            "read",
            json!({ "path": "a", "offset": "1".repeat(SIZE) }).to_string(),
        ),
        (
            "blanks",
            "read",
            json!({ "path": "a", "offset": " ".repeat(SIZE) }).to_string(),
        ),
        // One long text is copied a few times, for the tool, the record and the reply.
        (
            "a long path",
            "read",
            json!({ "path": "a/".repeat(SIZE / 3) }).to_string(),
        ),
        (
            "escapes",
            "read",
            format!("{{\"path\":\"{}\"}}", "\\u0041".repeat(SIZE / 6)),
        ),
    ];
    let yard = Yard::new();
    for (what, tool, arguments) in cases {
        let mut server = Server::start(yard.command(&["mcp"]));
        server.call("read", "{\"path\":\"nothing\"}");
        let before = server.peak();
        let answer = server.call(tool, &arguments);
        let cost = server.peak() - before;
        assert!(cost <= MOST_MEMORY, "{what}: {cost} KiB");
        assert!(answer.len() <= LONGEST_ANSWER, "{what}: {}", answer.len());
        let answer: Value = serde_json::from_str(&answer).unwrap();
        assert_eq!(answer["id"], 1, "{what}: {answer}");
        // The connection still works.
        let next = server.call("read", "{\"path\":\"nothing\"}");
        assert!(next.contains("file not found"), "{what}: {next}");
    }
}

#[test]
fn a_long_text_is_harmless() {
    let yard = Yard::new();
    let mut server = Server::start(yard.command(&["mcp"]));
    let content = "x,{[\n".repeat(2 << 20);
    let arguments = json!({ "path": "big.txt", "content": content });
    let answer = server.call("write", &arguments.to_string());
    assert!(answer.contains("10485760 bytes"), "{answer:.300}");
    let written = std::fs::read_to_string(yard.work().join("big.txt")).unwrap();
    assert!(written == content);
}

#[test]
fn arguments_on_standard_input_are_bounded_as_well() {
    let yard = Yard::new();
    let many: Vec<u8> = vec![1; 200_000];
    let output = yard.call_in(
        yard.command(&["call", "read", "-"]),
        &json!({ "path": many }),
    );
    let printed = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{printed}");
    assert!(printed.contains("more than 150,000 values"), "{printed}");
}

/// Each thread takes address space, and glibc takes more of it for each thread.
#[test]
fn in_little_address_space_every_call_has_one_answer() {
    const CALLS: usize = 110;
    let yard = Yard::new();
    for number in 0..40 {
        let folder = yard.work().join(format!("d{}", number % 8));
        std::fs::create_dir_all(&folder).unwrap();
        let text = "hello world\n".repeat(500);
        std::fs::write(folder.join(format!("f{number}.txt")), text).unwrap();
    }
    std::fs::write(
        yard.work().join("big.txt"),
        "a line of text\n".repeat(200_000),
    )
    .unwrap();
    for limit in ["536870912", "300000000"] {
        let mut command = yard.around("prlimit");
        command
            .arg(format!("--as={limit}"))
            .arg(env!("CARGO_BIN_EXE_haft"))
            .args(["--preset", "all", "mcp"]);
        let mut server = Server::start(command);
        for id in 0..CALLS {
            let (tool, arguments) = match id % 5 {
                0 => ("read", json!({ "path": "big.txt" })),
                1 => ("grep", json!({ "pattern": "hello" })),
                2 => ("bash", json!({ "command": format!("echo {id}") })),
                3 => ("find", json!({ "pattern": "**/*.txt" })),
                _ => (
                    "write",
                    json!({ "path": format!("o{id}"), "content": "x".repeat(100_000) }),
                ),
            };
            let params = json!({ "name": tool, "arguments": arguments });
            let call =
                json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params });
            server.send(&format!("{call}\n"));
        }
        let mut answered = HashSet::new();
        let begun = Instant::now();
        while answered.len() < CALLS {
            let answer: Value = serde_json::from_str(&server.next()).unwrap();
            let result = &answer["result"];
            assert_eq!(result["isError"], false, "{limit}: {answer:.500}");
            assert!(
                answered.insert(answer["id"].as_u64().unwrap()),
                "{answer:.200} twice"
            );
            assert!(begun.elapsed() < Duration::from_secs(120));
        }
        let next = server.call("bash", "{\"command\":\"echo alive\"}");
        assert!(next.contains("alive"), "{limit}: {next}");
    }
}
