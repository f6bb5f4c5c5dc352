//! Input that no sensible caller sends, and failures of the machine: each gets a reply, and
//! the next call works.

use crate::bed::{Level, Who, beds_at, in_each};
use crate::client::Server;
use crate::{left, turn};
use serde_json::{Value, json};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

#[test]
fn bad_arguments_are_reported() {
    let _turn = turn::shared();
    in_each(beds_at(&[Level::Full]), |bed| {
        let mut server = bed.serve();
        for (arguments, reply) in [
            (
                json!({}),
                "validation error: missing required parameter \"command\"",
            ),
            (
                json!({ "command": null }),
                "validation error: parameter \"command\" must be a string, got null",
            ),
            (
                json!({ "command": ["touch ran"] }),
                "validation error: parameter \"command\" must be a string",
            ),
            (
                json!({ "command": "" }),
                "validation error: parameter \"command\" is empty",
            ),
            (
                json!({ "command": " \n\t" }),
                "validation error: parameter \"command\" is empty",
            ),
            (
                json!({ "command": "touch ran\0; true" }),
                "validation error: parameter \"command\" contains a NUL character",
            ),
            (
                json!({ "command": "touch ran", "timeout": "abc" }),
                "validation error: parameter \"timeout\" must be a number, got the string \"abc\"",
            ),
            (
                json!({ "command": "touch ran", "timeout": [1] }),
                "validation error: parameter \"timeout\" must be a number",
            ),
            (
                json!({ "command": "touch ran", "sandbox": "off" }),
                "validation error: ",
            ),
            (
                json!({ "command": "touch ran", "dangerously_disable_sandbox": true }),
                "validation error: ",
            ),
            (
                json!({ "command": format!("touch ran; echo {} | wc -c", "x".repeat(2 << 20)) }),
                "the command is longer than the system takes",
            ),
        ] {
            let answer = server.call(&arguments);
            assert!(
                answer.is_error && answer.text.starts_with(reply),
                "{reply}: {answer:?}"
            );
        }
        assert!(!bed.has("work/ran"));
        for timeout in [
            json!(0),
            json!(-1),
            json!(-1e18),
            json!(1e18),
            json!("5"),
            Value::Null,
        ] {
            let answer = server.call(&json!({ "command": "echo hi", "timeout": timeout }));
            assert_eq!(answer.text, "hi\n", "{timeout}");
        }
        // The maximum timeout is finite.
        let answer = bed.call_with(&[], &json!({ "command": "echo hi", "timeout": 1e18 }));
        assert_eq!(
            answer.details["repairs"][0]["parameter"], "timeout",
            "{answer:?}"
        );
        // The maximum, and an unusual value.
        let long = format!("true {}; echo end", "x".repeat(100_000));
        assert_eq!(server.bash(&long).text, "end\n");
        assert_eq!(
            server
                .bash("echo 'ünï\u{202e}\u{0}'".replace('\0', "").as_str())
                .text,
            "ünï\u{202e}\n"
        );
        bed.nothing_but(&server);
    });
}

#[test]
fn exit_codes_are_those_of_a_shell() {
    let _turn = turn::shared();
    in_each(beds_at(&[Level::Full, Level::Partial]), |bed| {
        bed.file("work/plain", "no program");
        let mut server = bed.serve();
        for (script, code) in [
            ("exit 1", 1),
            ("exit 255", 255),
            ("./plain", 126),
            ("no-such-program-here", 127),
            ("if", 2),
            ("kill -9 $$", 137),
            ("kill -TERM $$", 143),
            ("kill -SEGV $$", 139),
            ("exit 256", 0),
        ] {
            let answer = server.bash(script);
            let last = answer.text.lines().last().unwrap().to_owned();
            let expected = format!("Exit code: {code}");
            assert_eq!(
                last == expected,
                code != 0,
                "{} {script}: {answer:?}",
                bed.name()
            );
            assert!(!answer.is_error, "{} {script}: {answer:?}", bed.name());
        }
        let killed = bed.bash("kill -9 $$").details;
        assert_eq!(
            (&killed["exit_code"], &killed["signal"]),
            (&json!(137), &json!(9))
        );
        let ended = bed.bash("exit 137").details;
        assert_eq!(
            (&ended["exit_code"], &ended["signal"]),
            (&json!(137), &Value::Null)
        );
    });
}

#[test]
fn the_work_folder_can_be_removed_and_recreated() {
    let _turn = turn::shared();
    in_each(beds_at(&[Level::Full, Level::Partial]), |bed| {
        std::fs::create_dir(bed.path("work/gone")).unwrap();
        bed.file("work/gone/f", "");
        let mut server = bed.serve_with(&["--dir", &bed.at("work/gone")]);
        assert_eq!(server.bash("ls").text, "f\n");
        std::fs::remove_dir_all(bed.path("work/gone")).unwrap();
        let answer = server.bash("touch ran; echo hi");
        assert!(
            answer.is_error && !answer.text.starts_with("hi"),
            "{}: {answer:?}",
            bed.name()
        );
        assert!(server.lives());
        bed.file("work/gone/g", "");
        let answer = server.bash("ls");
        // The session used the old folder, and the new one is a different folder.
        assert!(
            answer.is_error && answer.has("was moved, replaced or removed while haft was running"),
            "{}: {answer:?}",
            bed.name()
        );
        bed.nothing_but(&server);
    });
}

/// Wraps the same command in another program.
fn inside(outer: &[&str], command: &Command) -> Command {
    let mut wrapped = Command::new(outer[0]);
    wrapped
        .args(&outer[1..])
        .arg(command.get_program())
        .args(command.get_args())
        .current_dir(command.get_current_dir().unwrap())
        .env_clear()
        .envs(
            command
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        )
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    wrapped
}

#[test]
fn a_full_disk_is_reported() {
    let _turn = turn::shared();
    if !rustix::process::geteuid().is_root() {
        println!("skipped: a small disk takes root to make");
        return;
    }
    in_each(beds_at(&[Level::Full]), |bed| {
        std::fs::create_dir_all(bed.path("home/.local/state")).unwrap();
        bed.file("home/.local/state/x", "");
        let owner = if bed.who == Who::User { 65534 } else { 0 };
        let script = format!(
            "mount -t tmpfs -o size=2m,uid={owner},gid={owner} small {} || exit 99\nexec \"$@\"",
            bed.at("home/.local/state")
        );
        let command = inside(
            &["unshare", "-m", "sh", "-c", &script, "sh"],
            &bed.haft(&["mcp"]),
        );
        let mut server = Server::start(command);
        let answer = server.bash("yes | head -c 20M");
        assert!(
            answer.has("no space left on device"),
            "{}: {}",
            bed.name(),
            tail(&answer.text)
        );
        assert!(
            answer.has("[Showing the last 2000 of 10485760 lines, 3.9KB of 20MB]"),
            "{}",
            tail(&answer.text)
        );
        // Without space for its record no command runs, and the error says what to do.
        let answer = server.bash("echo next");
        assert!(
            answer.has("could not be recorded, so it was not made")
                && answer.has("no space left; nothing was changed; free some space"),
            "{}: {}",
            bed.name(),
            tail(&answer.text)
        );
        let outputs = bed.at("home/.local/state/haft/outputs");
        // As the command sees it: the small disk is mounted in its namespace.
        let outputs = format!("/proc/{}/root{outputs}", server.pid());
        std::fs::remove_dir_all(outputs).unwrap();
        assert_eq!(server.bash("echo next").text, "next\n");
        let answer = server.bash("yes | head -c 20M; echo end");
        assert!(answer.has("\nend\n"), "{}", tail(&answer.text));
        assert!(server.lives());
        bed.nothing_but(&server);
    });
}

fn tail(text: &str) -> String {
    let from = text.chars().count().saturating_sub(500);
    text.chars().skip(from).collect()
}

#[test]
fn output_without_a_reader() {
    let _turn = turn::shared();
    in_each(beds_at(&[Level::Full, Level::Partial]), |bed| {
        // A closed output, a full one, and a reader that stops reading.
        let call = bed.haft(&["call", "bash", "command=sleep 0.2; seq 100000"]);
        for (outer, fine) in [
            ("exec \"$@\" >&-", true),
            ("exec \"$@\" >/dev/full", false),
            ("\"$@\" | true; exit ${PIPESTATUS[0]}", true),
        ] {
            let begun = Instant::now();
            let output = inside(&["bash", "-c", outer, "bash"], &call)
                .output()
                .unwrap();
            assert!(begun.elapsed() < Duration::from_secs(5));
            let code = output.status.code();
            assert!(
                fine || code != Some(0),
                "{} {outer}: {output:?}",
                bed.name()
            );
            assert!(
                !String::from_utf8_lossy(&output.stderr).contains("panicked"),
                "{output:?}"
            );
            bed.nothing_left();
        }
        // A client that disconnects while a command runs.
        let mut command = bed.haft(&["mcp"]);
        let mut haft = command.stdin(Stdio::piped()).spawn().unwrap();
        drop(haft.stdout.take());
        let mut stdin = haft.stdin.take().unwrap();
        let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}});
        let call = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "bash", "arguments": {"command": "setsid sleep 1000 & sleep 1000"}}});
        let _ = std::io::Write::write_all(&mut stdin, format!("{hello}\n{call}\n").as_bytes());
        left::until("haft ends with its output", Duration::from_secs(5), || {
            haft.try_wait().unwrap().is_some()
        });
        drop(stdin);
        bed.nothing_left();
    });
}

#[test]
fn two_hundred_concurrent_calls_get_replies() {
    let _turn = turn::shared();
    in_each(beds_at(&[Level::Full]), |bed| {
        let mut server = bed.serve();
        let ids: Vec<u64> = (0..200)
            .map(|at| server.ask(&json!({ "command": format!("echo {at}") })))
            .collect();
        for (at, id) in ids.into_iter().enumerate() {
            assert_eq!(server.answer(id).text, format!("{at}\n"), "{}", bed.name());
        }
        bed.nothing_but(&server);
    });
}
