//! Many calls: no growth, and the time of one call.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::process::{Worker, tool};

fn resident(id: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS:"))
        .unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

fn open_files(id: u32) -> usize {
    std::fs::read_dir(format!("/proc/{id}/fd")).unwrap().count()
}

#[test]
fn two_thousand_calls_leave_nothing_behind() {
    let body = "if input.fail then error('no ' .. input.text) end
        local co = coroutine.wrap(function() return pcall(haft.json.decode, haft.json.encode(input)) end)
        return select(2, co())";
    let mut worker = Worker::pure(&tool(body));
    let begun = Instant::now();
    worker.describe();
    let start = begun.elapsed();
    let text = "t".repeat(2000);
    let mut times = Vec::new();
    let mut warm = (0, 0);
    for call in 0..2000 {
        let params = json!({"text": text, "list": [1, 2, {"three": null}], "fail": call % 10 == 0});
        let begun = Instant::now();
        let (_, error) = worker.call(&params);
        times.push(begun.elapsed());
        assert_eq!(error, call % 10 == 0);
        if call == 500 {
            warm = (resident(worker.id()), open_files(worker.id()));
        }
    }
    let (memory, files) = (resident(worker.id()), open_files(worker.id()));
    times.sort();
    let median = times[times.len() / 2];
    println!(
        "start {start:?}, call: median {median:?}, 99 % {:?}; {memory} KiB",
        times[times.len() * 99 / 100]
    );
    assert!(median < Duration::from_millis(20), "{median:?}");
    assert_eq!(files, warm.1);
    assert!(
        memory < warm.0 + 2048,
        "{} KiB grew to {memory} KiB",
        warm.0
    );
}
