//! Lines that are invalid, too long, or missing.

use std::time::{Duration, Instant};

use haft_script::{Limits, Load, MAX_LINE, Rights, exit, worker};
use serde_json::json;

use crate::process::{Worker, tool};

#[test]
fn the_first_line_must_be_a_load_message() {
    let lines = [
        "garbage".to_owned(),
        "{}".to_owned(),
        json!({"type": "describe", "protocol": 2}).to_string(),
        json!({"type": "load", "path": "p", "source": "", "rights": "root"}).to_string(),
        format!("\"{}\"", "x".repeat(MAX_LINE)),
    ];
    for line in lines {
        let mut worker = Worker::bare();
        worker.line(&line);
        let answer = worker.receive();
        assert_eq!(answer["type"], "invalid");
        assert!(
            answer["message"]
                .as_str()
                .unwrap()
                .starts_with("the first line must be a load message: "),
            "{answer}"
        );
        assert_eq!(worker.code(), Some(i32::from(exit::NOT_LOADED)));
    }
}

#[test]
fn an_empty_input_ends_the_worker() {
    let mut worker = Worker::bare();
    worker.close();
    assert_eq!(worker.code(), Some(0));
}

#[test]
fn invalid_lines_are_answered_before_describe_and_noted_later() {
    let mut worker = Worker::pure(&tool("return 'fine'"));
    let too_long = format!(
        "{{\"type\":\"describe\",\"x\":\"{}\"}}",
        "x".repeat(MAX_LINE)
    );
    for (line, expected) in [
        ("nonsense", "not a valid message"),
        ("{\"type\":\"odd\"}", "odd"),
        (&too_long, "longer than 16 MiB"),
    ] {
        worker.line(line);
        let answer = worker.receive();
        assert_eq!(answer["type"], "invalid");
        assert!(
            answer["message"].as_str().unwrap().contains(expected),
            "{answer}"
        );
    }
    worker.line("");
    assert_eq!(worker.describe()["protocol"], 2);
    worker.line("nonsense");
    worker.line(&too_long);
    worker.line("\u{0}\u{ff}");
    assert_eq!(worker.success(), "fine");
    let notes = worker.notes();
    assert_eq!(notes.matches("not a valid message").count(), 2, "{notes}");
    assert_eq!(notes.matches("longer than 16 MiB").count(), 1, "{notes}");
}

#[test]
fn limits_that_are_left_out_have_their_defaults() {
    let line = json!({"type": "load", "path": "p", "source": "", "rights": "full", "limits": {"seconds": 2}}).to_string();
    let load: Load = serde_json::from_str(&line).unwrap();
    assert_eq!(
        load.limits,
        Limits {
            memory: 64 << 20,
            instructions: 500_000_000,
            seconds: 2.0
        }
    );
    assert_eq!(load.rights, Rights::Full);
    assert_eq!(serde_json::from_str::<Load>(&load.line()).unwrap(), load);
    let short = json!({"type": "load", "path": "p", "source": "", "rights": "pure"}).to_string();
    assert_eq!(
        serde_json::from_str::<Load>(&short).unwrap().limits,
        Limits::default()
    );
}

#[test]
fn calls_before_the_end_of_input_are_answered() {
    let mut worker = Worker::pure(&tool(
        "local n = 0 for i = 1, 100000 do n = n + i end return n",
    ));
    worker.begin("1", &json!({}));
    worker.begin("2", &json!({}));
    worker.close();
    assert_eq!(worker.receive()["call_id"], "1");
    assert_eq!(worker.receive()["call_id"], "2");
    assert_eq!(worker.code(), Some(0));
}

#[test]
fn the_end_of_input_ends_the_running_call() {
    for body in [
        "while true do end",
        "return (''):rep(1e18)",
        "haft.call('never') while true do end",
    ] {
        let mut worker = Worker::pure(&tool(&format!("haft.update('in') {body}")));
        worker.begin("1", &json!({}));
        worker.receive();
        let begun = Instant::now();
        worker.close();
        assert_eq!(worker.code(), Some(0), "{body}");
        assert!(begun.elapsed() < Duration::from_secs(3), "{body}");
    }
}

#[test]
fn a_worker_works_on_any_streams() {
    let load = Load {
        path: "p.lua".to_owned(),
        source: tool("return 'x'"),
        rights: Rights::Pure,
        limits: Limits::default(),
    };
    let input = format!(
        "{}\n{}",
        load.line(),
        json!({"type": "call", "name": "tool", "call_id": 1})
    );
    let (reader, writer) = std::io::pipe().unwrap();
    let code = worker(std::io::Cursor::new(input), writer);
    assert_eq!(
        format!("{code:?}"),
        format!("{:?}", std::process::ExitCode::SUCCESS)
    );
    let mut answer = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(reader), &mut answer).unwrap();
    assert_eq!(
        answer,
        "{\"type\":\"result\",\"call_id\":1,\"content\":[{\"type\":\"text\",\"text\":\"x\"}],\"error\":false}\n"
    );
}
