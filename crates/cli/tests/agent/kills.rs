//! SIGKILL at any moment: everything that was reported is recorded, nothing is done
//! twice, and the session can be resumed.

use crate::bed::{Bed, Ended, calls, lines, messages_of, results};
use crate::interrupts::ends_within;
use haft_testing::model::{ModelReply, Turn};
use serde_json::{Value, json};
use std::collections::{HashMap, HashSet};
use std::io::{BufRead, BufReader};
use std::time::{Duration, Instant};

/// Number of kills, in all threads together.
const KILLS: usize = 200;
const THREADS: usize = 2;
/// Turns with calls in a session.
const TURNS: usize = 8;

/// A model that decides by the messages it receives, so it knows its position after a kill.
fn script(marker: &str) -> impl Fn(&Value, usize) -> Turn + Send + Sync + 'static {
    let marker = marker.to_owned();
    move |request, _| {
        let messages = request["messages"].as_array().unwrap();
        let turn = messages
            .iter()
            .filter(|message| message["tool_calls"].is_array())
            .count();
        if turn == TURNS {
            return Turn::text("All done.");
        }
        let says =
            |at: usize| json!({ "command": format!("echo t{turn}k{at} >> log; : {marker}") });
        let id = |at: usize| format!("t{turn}k{at}");
        let file = json!({ "path": format!("f{turn}.txt"), "content": format!("{turn}\n") });
        ModelReply::text("On.")
            .call(id(0), "bash", &says(0))
            .call(id(1), "write", &file)
            .call(id(2), "read", &json!({ "path": "log" }))
            .call(id(3), "bash", &says(3))
            .into()
    }
}

/// Events printed before the kills.
#[derive(Default)]
struct Reported {
    session: Option<String>,
    /// Calls that ended, and whether they failed.
    ends: HashMap<String, bool>,
    starts: usize,
    turn_ends: usize,
    is_done: bool,
}

impl Reported {
    /// Parses the output of a process; its last line may be incomplete.
    fn hear(&mut self, out: &str) {
        let whole = out.rsplit_once('\n').map_or("", |(whole, _)| whole);
        for event in lines(whole) {
            match event["type"].as_str().unwrap() {
                "agent_start" => {
                    let session = event["session"].as_str().unwrap().to_owned();
                    let known = self.session.get_or_insert_with(|| session.clone());
                    assert_eq!(*known, session);
                }
                "tool_start" => self.starts += 1,
                "tool_end" => {
                    let id = event["call_id"].as_str().unwrap().to_owned();
                    let failed = event["is_error"].as_bool().unwrap();
                    assert_eq!(self.ends.insert(id, failed), None, "{event} twice");
                }
                "turn_end" => self.turn_ends += 1,
                "agent_end" => self.is_done = event["reason"] == "done",
                _ => {}
            }
        }
    }
}

/// Kills one session repeatedly until it is done. Returns the number of kills, and of
/// calls with unknown outcome.
fn killed_again_and_again(random: &mut fastrand::Rng, longest: Duration) -> (usize, usize) {
    let marker = format!("haft-kills-{}-{}", std::process::id(), random.u64(..));
    let bed = Bed::new(script(&marker));
    let mut reported = Reported::default();
    let mut kills = 0;
    while !reported.is_done {
        let args: &[&str] = match &reported.session {
            Some(session) => &["resume", session, "--json"],
            None => &["run", "Go", "--json"],
        };
        let mut child = bed.command(args).spawn().unwrap();
        let delay = longest.mul_f64(random.f64());
        let deadline = Instant::now() + delay;
        while Instant::now() < deadline && child.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_micros(300));
        }
        let _ = child.kill();
        let output = child.wait_with_output().unwrap();
        let was_killed = output.status.code().is_none();
        let ended = Ended::from(output);
        reported.hear(&ended.out);
        if was_killed {
            kills += 1;
        } else {
            assert_eq!(ended.code, Some(0), "{ended:?}");
        }
    }
    let unknown = is_whole(&bed, &reported);
    assert!(
        ends_within(&marker, Duration::from_secs(5)),
        "a command outlived haft"
    );
    (kills, unknown)
}

/// Checks that every reported event is recorded exactly once.
fn is_whole(bed: &Bed, reported: &Reported) -> usize {
    let exported = lines(&bed.says(&["sessions", "export", reported.session.as_ref().unwrap()]));
    let messages = messages_of(&exported);
    let called = calls(&messages);
    let expected: Vec<_> = (0..TURNS)
        .flat_map(|turn| (0..4).map(move |at| format!("t{turn}k{at}")))
        .collect();
    assert_eq!(called, expected);
    let results = results(&messages);
    let answered: Vec<_> = results.iter().map(|(id, _)| id.clone()).collect();
    assert_eq!(answered, called, "each call has one result, in order");
    assert_eq!(messages.last().unwrap()["parts"][0]["text"], "All done.");
    let answers = messages
        .iter()
        .filter(|message| message["role"] == "assistant")
        .count();
    assert_eq!(answers, TURNS + 1);
    assert!(
        reported.turn_ends <= answers,
        "{} turns ended",
        reported.turn_ends
    );
    let seqs: Vec<_> = exported
        .iter()
        .filter_map(|line| line["seq"].as_u64())
        .collect();
    assert!(seqs.is_sorted_by(|a, b| a < b), "{seqs:?}");

    let log = bed.read("log");
    let mut done: HashMap<&str, usize> = HashMap::new();
    for line in log.lines() {
        *done.entry(line).or_default() += 1;
    }
    let mut unknown = 0;
    for (id, text) in &results {
        let is_interrupted = text.starts_with("[interrupted");
        let has_effect = !id.ends_with("k2");
        let times = done.get(id.as_str()).copied().unwrap_or(0);
        assert!(times <= 1, "{id} was made {times} times");
        if let Some(failed) = reported.ends.get(id) {
            assert!(
                !is_interrupted && (!failed || !has_effect),
                "{id} was reported as ended: {text}"
            );
        }
        if !is_interrupted && (id.ends_with("k0") || id.ends_with("k3")) {
            assert_eq!(times, 1, "{id} has a result: {text}");
        }
        if is_interrupted && has_effect {
            unknown += 1;
            assert!(text.contains("outcome unknown"), "{id}: {text}");
            if times == 1 {
                assert!(
                    text.contains("changed since") && text.contains("log"),
                    "{id}: {text}"
                );
            }
        }
        if id.ends_with("k1") && !is_interrupted {
            let turn = id.trim_start_matches('t').trim_end_matches("k1");
            assert_eq!(bed.read(&format!("f{turn}.txt")), format!("{turn}\n"));
        }
    }
    let strangers: HashSet<_> = done
        .keys()
        .filter(|id| !called.iter().any(|call| call == *id))
        .collect();
    assert!(strangers.is_empty(), "{strangers:?}");
    unknown
}

#[test]
fn a_session_survives_any_kill() {
    // The duration of an undisturbed run limits when kills are useful.
    let bed = Bed::new(script("haft-kills-none"));
    let begun = Instant::now();
    let ran = bed.run(&[]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let whole = begun.elapsed();
    let begun = Instant::now();
    let threads: Vec<_> = (0..THREADS)
        .map(|_| {
            let seed = fastrand::u64(..);
            std::thread::spawn(move || {
                let mut random = fastrand::Rng::with_seed(seed);
                let (mut kills, mut unknown, mut sessions) = (0, 0, 0);
                while kills < KILLS / THREADS {
                    let (more, lost) = killed_again_and_again(&mut random, whole.mul_f64(0.35));
                    kills += more;
                    unknown += lost;
                    sessions += 1;
                }
                (kills, unknown, sessions)
            })
        })
        .collect();
    let (mut kills, mut unknown, mut sessions) = (0, 0, 0);
    for thread in threads {
        let (more, lost, several) = thread.join().unwrap();
        kills += more;
        unknown += lost;
        sessions += several;
    }
    println!(
        "{kills} kills in {sessions} sessions, {unknown} calls of unknown outcome, {:?}",
        begun.elapsed()
    );
    assert!(kills >= KILLS);
    assert!(
        unknown > 0,
        "no kill came while a call ran: the test proves nothing"
    );
}

/// After a line of `--json` was printed, its event is in the record, no matter how soon
/// haft is killed.
#[test]
fn printed_events_are_recorded_before_a_kill() {
    let turns = || {
        let look = json!({ "path": "notes.txt" });
        let change = json!({ "command": "echo done >> log" });
        vec![
            ModelReply::calling("c1", "read", &look).into(),
            ModelReply::calling("c2", "bash", &change).into(),
            ModelReply::text("Both.")
                .call("c3", "read", &look)
                .call("c4", "bash", &change)
                .into(),
            Turn::text("All done."),
        ]
    };
    let (mut starts, mut is_over) = (0, false);
    for killed_at in 0.. {
        let bed = Bed::new(turns());
        std::fs::write(bed.work("notes.txt"), "a note\n").unwrap();
        let mut child = bed.command(&["run", "Go", "--json"]).spawn().unwrap();
        let mut printed = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut seen: Vec<Value> = Vec::new();
        while seen.len() <= killed_at {
            let Some(line) = printed.next() else {
                is_over = true;
                break;
            };
            let event: Value = serde_json::from_str(&line.unwrap()).unwrap();
            let kind = event["type"].as_str().unwrap();
            if !matches!(kind, "message_update" | "tool_update") {
                seen.push(event);
            }
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let session = seen[0]["session"].as_str().unwrap();
        let exported = lines(&bed.says(&["sessions", "export", session]));
        for event in &seen {
            let kind = event["type"].as_str().unwrap();
            starts += usize::from(matches!(kind, "turn_start" | "tool_start"));
            let is_recorded = exported.iter().any(|line| {
                line["seq"] == event["seq"] && line.to_string().contains(&format!("\"{kind}\""))
            });
            assert!(
                is_recorded,
                "killed at {killed_at}: {event} is not in {exported:#?}"
            );
        }
        if is_over {
            break;
        }
    }
    assert!(starts > 20, "{starts}");
}

/// An orphaned command may write until it is killed, which is reported too. If changes are
/// recorded, it cannot: nothing changes without a record.
#[test]
fn changes_by_a_command_after_the_kill_are_reported() {
    for record in [false, true] {
        changes_after_a_kill(record);
    }
}

fn changes_after_a_kill(record: bool) {
    // `: >` and no program, because bash would report its end to the pipe that is closed
    // with haft, and end of that.
    let command = "trap 'sleep 0.1; echo late > late.txt; exit' TERM; : > begun; sleep 300 & wait";
    let call = ModelReply::calling("c1", "bash", &json!({ "command": command }));
    let bed = Bed::new(vec![call.into(), Turn::text("I see.")])
        .and(&format!("effects: {{ record: {record} }}\n"));
    let mut child = bed.command(&["run", "Go"]).spawn().unwrap();
    let deadline = Instant::now() + Duration::from_secs(20);
    while !bed.work("begun").exists() {
        assert!(Instant::now() < deadline, "no command runs");
        std::thread::sleep(Duration::from_millis(2));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let resumed = bed.resume(&[]);
    assert_eq!(
        (resumed.code, resumed.reason()),
        (Some(0), "done"),
        "{resumed:?}"
    );
    let results = results(&bed.messages());
    assert!(results[0].1.contains("begun"), "{results:?}");
    assert_eq!(results[0].1.contains("late.txt"), !record, "{results:?}");
    assert_eq!(bed.work("late.txt").exists(), !record);
}
