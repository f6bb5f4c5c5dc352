//! The server with real pipes, files and closed streams.

use crate::Yard;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;
use std::time::{Duration, Instant};

pub(crate) fn hello() -> String {
    let hello = json!({"jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}});
    format!(
        "{hello}\n{}\n",
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"})
    )
}

fn read_call(id: usize) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "read", "arguments": {"path": "big.txt"}}})
}

fn yard() -> (Yard, String) {
    let yard = Yard::new();
    let text: String = (0..1200)
        .map(|line| format!("line {line} of a file that fills a pipe\n"))
        .collect();
    std::fs::write(yard.work().join("big.txt"), &text).unwrap();
    (yard, text.trim_end().to_owned())
}

/// A hundred times the 64 KiB that a pipe holds; the client reads nothing until all
/// requests are sent.
#[test]
fn a_client_that_reads_late_gets_every_byte() {
    let (yard, text) = yard();
    let mut child = yard
        .command(&["mcp"])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let (asked, all_asked) = std::sync::mpsc::channel();
    let asking = std::thread::spawn(move || {
        stdin.write_all(hello().as_bytes()).unwrap();
        for id in 0..150 {
            writeln!(stdin, "{}", read_call(id)).unwrap();
        }
        asked.send(()).unwrap();
        stdin
    });
    // Backpressure may block the requests half way; then reading continues.
    let _ = all_asked.recv_timeout(Duration::from_secs(2));
    let mut seen = vec![0; 150];
    for line in BufReader::new(child.stdout.take().unwrap())
        .lines()
        .take(151)
    {
        let message: Value = serde_json::from_str(&line.unwrap()).unwrap();
        if let Some(id) = message["id"].as_u64() {
            assert!(
                message["result"]["content"][0]["text"] == text.as_str(),
                "{id} differs"
            );
            seen[usize::try_from(id).unwrap()] += 1;
        }
    }
    assert!(seen.iter().all(|times| *times == 1), "{seen:?}");
    drop(asking.join().unwrap());
    assert!(child.wait().unwrap().success());
}

#[test]
fn requests_may_come_from_a_file_and_answers_go_to_one() {
    let (yard, text) = yard();
    let (requests, answers) = (yard.out().join("requests"), yard.out().join("answers"));
    std::fs::write(&requests, format!("{}{}\nno json\n", hello(), read_call(7))).unwrap();
    let status = yard
        .command(&["mcp"])
        .stdin(std::fs::File::open(&requests).unwrap())
        .stdout(std::fs::File::create(&answers).unwrap())
        .status()
        .unwrap();
    assert!(status.success(), "{status}");
    let answers = std::fs::read_to_string(answers).unwrap();
    let answers: Vec<Value> = answers
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(answers.len(), 3, "{answers:?}");
    assert!(
        answers
            .iter()
            .any(|answer| answer["id"] == 7
                && answer["result"]["content"][0]["text"] == text.as_str())
    );
    assert!(
        answers
            .iter()
            .any(|answer| answer["error"]["code"] == -32700)
    );
}

#[test]
fn a_disconnected_client_ends_the_server() {
    let (yard, _) = yard();
    let mut child = yard
        .command(&["mcp"])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let mut stdin = child.stdin.take().unwrap();
    let _ = stdin.write_all(format!("{}{}\n", hello(), read_call(1)).as_bytes());
    let begun = Instant::now();
    // The input stays open: the closed output alone must end it.
    while child.try_wait().unwrap().is_none() {
        assert!(begun.elapsed() < Duration::from_secs(5), "it still runs");
        std::thread::sleep(Duration::from_millis(10));
    }
    drop(stdin);
}

/// Starts a program whose every `fork` fails with `EAGAIN`, as on a machine without free
/// processes; threads still work. A seccomp filter does that, for root too.
const WITHOUT_FORK: &str = r#"
import ctypes, os, platform, struct, sys
CLONE, FORKS = {"x86_64": (56, [57, 58]), "aarch64": (220, [])}[platform.machine()]
def op(code, jt, jf, k): return struct.pack("HBBI", code, jt, jf, k)
def ret(k): return op(0x06, 0, 0, k)
ALLOW, EAGAIN, ENOSYS = 0x7fff0000, 0x00050000 | 11, 0x00050000 | 38
program = op(0x20, 0, 0, 0)
for number in FORKS: program += op(0x15, 0, 1, number) + ret(EAGAIN)
program += op(0x15, 0, 1, 435) + ret(ENOSYS)
program += op(0x15, 1, 0, CLONE) + ret(ALLOW)
program += op(0x20, 0, 0, 16) + op(0x45, 0, 1, 0x10000) + ret(ALLOW) + ret(EAGAIN)
class Prog(ctypes.Structure): _fields_ = [("len", ctypes.c_ushort), ("filter", ctypes.c_char_p)]
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, ctypes.byref(Prog(len(program) // 8, program)), 0, 0) == 0, ctypes.get_errno()
os.execv(sys.argv[1], sys.argv[1:])
"#;

#[test]
fn a_failed_fork_is_answered_and_the_server_continues() {
    let (yard, text) = yard();
    let bash = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "bash", "arguments": {"command": "echo ran"}}});
    let mut child = yard
        .around("python3")
        .args(["-c", WITHOUT_FORK, env!("CARGO_BIN_EXE_haft"), "mcp"])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut answers = BufReader::new(child.stdout.take().unwrap()).lines();
    stdin.write_all(hello().as_bytes()).unwrap();
    answers.next().unwrap().unwrap();
    let mut ask = |request: &Value| -> Value {
        writeln!(stdin, "{request}").unwrap();
        let answer = answers.next().expect("an answer").unwrap();
        serde_json::from_str(&answer).unwrap()
    };
    let answer = ask(&bash);
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    let printed = answer["result"]["content"][0]["text"].as_str().unwrap();
    assert!(
        printed.starts_with("the command was not run, because the machine had no room"),
        "{printed}"
    );
    assert!(
        printed.contains("Resource temporarily unavailable"),
        "{printed}"
    );
    let answer = ask(&read_call(2));
    assert_eq!(answer["result"]["content"][0]["text"], text.as_str());
    drop(stdin);
    assert!(child.wait().unwrap().success());
}
