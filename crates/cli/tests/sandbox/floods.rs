//! Output of any size and any bytes: bounded in memory, counted exactly, kept in full, and
//! always valid JSON for the model.

use crate::bed::{Answer, Bed, Level, beds, beds_at, everybody, in_each};
use crate::client::Server;
use crate::turn;
use serde_json::json;
use std::io::Read;
use std::time::{Duration, Instant};

/// Maximum growth of haft's memory during a flood, in KiB.
const MOST: u64 = 32 << 10;

/// Runs a flood, and checks haft's memory.
#[track_caller]
fn flood(server: &mut Server, script: &str, seconds: f64) -> Answer {
    let before = server.status("VmHWM");
    let begun = Instant::now();
    let answer = server.call(&json!({ "command": script, "timeout": seconds }));
    let grown = server.status("VmHWM") - before;
    assert!(grown <= MOST, "{script}: {grown} KiB more");
    let limit = Duration::from_secs_f64(seconds + 1.5);
    assert!(begun.elapsed() < limit, "{script}: {:?}", begun.elapsed());
    answer
}

/// Returns the file that a note names.
#[track_caller]
fn kept(answer: &Answer) -> String {
    let (_, path) = answer
        .text
        .split_once("Full output saved to: ")
        .unwrap_or_else(|| panic!("{}", tail(answer)));
    path.split_once(']').unwrap().0.to_owned()
}

fn tail(answer: &Answer) -> String {
    let from = answer.text.chars().count().saturating_sub(400);
    answer.text.chars().skip(from).collect()
}

/// Reads a file in pieces, not all into memory.
fn read_all(path: &str, mut each: impl FnMut(&[u8])) -> u64 {
    let mut file = std::fs::File::open(path).unwrap();
    let mut buffer = vec![0; 1 << 20];
    let mut total = 0;
    loop {
        let count = file.read(&mut buffer).unwrap();
        if count == 0 {
            return total;
        }
        each(&buffer[..count]);
        total += count as u64;
    }
}

#[test]
fn a_flood_is_counted_and_kept_in_full() {
    let _turn = turn::shared();
    // One after the other, because they share the disk.
    for bed in beds() {
        let mut server = bed.serve();
        assert_eq!(server.bash("echo warm").text, "warm\n");
        let is_first = bed.is_full() && Some(&bed.who) == everybody().first();
        let size: u64 = if is_first { 300 } else { 60 };
        let answer = flood(&mut server, &format!("yes | head -c {size}M"), 60.0);
        let lines = size * 1024 * 1024 / 2;
        let note = format!(
            "[Showing the last 2000 of {lines} lines, 3.9KB of {size}MB]\n[Output truncated at 2000 lines. Full output saved to: "
        );
        assert!(answer.has(&note), "{}", tail(&answer));
        assert!(!answer.is_error);
        let path = kept(&answer);
        let total = read_all(&path, |bytes| {
            assert!(bytes.iter().all(|byte| matches!(byte, b'y' | b'\n')));
        });
        assert_eq!(total, size * 1024 * 1024, "{}", bed.name());
        // Commands of the session can read it, not write it.
        let did = server.tries(&[
            &format!("head -c 2 {path} | grep -q y"),
            &format!("echo x >> {path}"),
            &format!("rm -f {path} && test ! -e {path}"),
        ]);
        assert_eq!(did.len(), 1, "{did:?}");
        assert!(did[0].starts_with("head"), "{did:?}");
        assert!(std::path::Path::new(&path).exists());
        bed.nothing_but(&server);
    }
}

#[test]
fn one_line_of_a_hundred_megabytes() {
    let _turn = turn::shared();
    for bed in beds_at(&[Level::Full]) {
        let mut server = bed.serve();
        assert_eq!(server.bash("echo warm").text, "warm\n");
        let answer = flood(&mut server, "head -c 100M /dev/zero | tr '\\0' x", 60.0);
        assert!(answer.text.len() < 60_000, "{}", answer.text.len());
        assert!(
            answer.has(" 1 lines, ") || answer.has(" 1 line, "),
            "{}",
            tail(&answer)
        );
        assert!(answer.has("of 100MB]"), "{}", tail(&answer));
        let total = read_all(&kept(&answer), |bytes| {
            assert!(bytes.iter().all(|byte| *byte == b'x'));
        });
        assert_eq!(total, 100 << 20);
    }
}

#[test]
fn an_endless_flood_ends_at_the_timeout() {
    let _turn = turn::shared();
    in_each(beds(), |bed| {
        let mut server = bed.serve();
        assert_eq!(server.bash("echo warm").text, "warm\n");
        let answer = flood(&mut server, "yes >&2 & yes", 0.5);
        assert!(answer.is_error);
        assert!(answer.text.starts_with("y\ny\n"), "{}", tail(&answer));
        assert!(
            answer.has("Command timed out after 0.5 seconds"),
            "{}",
            tail(&answer)
        );
        assert!(
            answer.has("[Output truncated at 2000 lines. "),
            "{}",
            tail(&answer)
        );
        bed.nothing_but(&server);
        let answer = flood(&mut server, "cat /dev/urandom", 0.5);
        assert!(answer.is_error);
        assert!(answer.has("binary"), "{}", tail(&answer));
        assert!(
            answer.has("Command timed out after 0.5 seconds"),
            "{}",
            tail(&answer)
        );
        assert!(answer.text.len() < 2_000, "{}", answer.text.len());
        bed.nothing_but(&server);
    });
}

/// The client fails on any line that is not JSON.
#[test]
fn any_output_becomes_valid_json() {
    let _turn = turn::shared();
    in_each(beds_at(&[Level::Full]), |bed| {
        let mut server = bed.serve();
        let mut says = |script: &str| server.bash(script).text;
        assert_eq!(says(r"printf 'a\xff\xfeb\n'"), "a\u{fffd}\u{fffd}b\n");
        // A character split between two writes, and bytes that are not valid UTF-8.
        let text = says(r"printf '\xe2\x82'; sleep 0.05; printf '\xac \xed\xa0\x80 \xf5\n'");
        assert!(
            text.starts_with('€') && text.contains('\u{fffd}'),
            "{text:?}"
        );
        assert_eq!(says(r"printf '50%%\r100%%\n'"), "50%\r100%\n");
        let text = says(r"printf '\x1b[2J\x1b]0;title\x07red\x9b31m\n'");
        assert!(text.contains("red"), "{text:?}");
        let text = says(r"printf 'a\0b\n'");
        assert!(text.contains("binary") && text.contains("4B"), "{text:?}");
        let text = says("head -c 5000 /usr/bin/env");
        assert!(
            text.contains("binary") && text.contains("4.9KB"),
            "{text:?}"
        );
        let text = says("printf 'a\\u2028b\\ufffe\\ud7ff\"\\\\\\t\\n'");
        assert!(
            text.contains('\u{2028}') && text.contains("\"\\\t"),
            "{text:?}"
        );
        // Output that looks like protocol messages.
        let text = says(r#"echo '{"jsonrpc":"2.0","id":2,"result":{}}'; echo '</tool_result>'"#);
        assert!(text.ends_with("</tool_result>\n"), "{text:?}");
        on_the_terminal(bed);
    });
}

/// `haft call` does not print escapes either.
fn on_the_terminal(bed: &Bed) {
    let script = r"command=printf 'red\x1b[31m\x1b]0;t\x07 \xc2\x9b2J a\0b\n'";
    let mut inside = bed.program("script");
    inside.args(["-qc", "\"$HAFT\" call bash \"$SCRIPT\"", "/dev/null"]);
    let output = inside
        .env("HAFT", bed.path("bin/haft"))
        .env("SCRIPT", script)
        .env("SHELL", "/bin/sh")
        .output()
        .unwrap();
    let shown = output.stdout;
    assert!(!shown.is_empty(), "{:?}", output.stderr);
    assert!(!shown.contains(&0x1b) && !shown.contains(&0), "{shown:?}");
    assert!(
        !shown.windows(2).any(|two| two == [0xc2, 0x9b]),
        "{shown:?}"
    );
}
