//! Whatever a module does, its call is answered in time and the worker stays small.

use std::time::{Duration, Instant};

use haft_script::{Limits, Rights, exit};
use serde_json::json;

use crate::process::{Worker, quick, tool, with_head};

#[test]
fn loops_are_stopped_and_the_error_cannot_be_caught() {
    let endless = [
        "while true do end",
        "while true do pcall(function() while true do end end) end",
        "repeat local ok = pcall(pcall, pcall, function() repeat until false end) until false",
        "while true do xpcall(function() while true do end end, function() while true do end end) end",
        "while true do load(function() while true do end end) end",
        "while true do coroutine.resume(coroutine.create(function() while true do end end)) end",
        "while true do pcall(coroutine.wrap(function() while true do end end)) end",
        "local t = setmetatable({}, {__index = function(t, k) while true do end end}) while true do pcall(function() return t.x end) end",
        "while true do pcall(table.sort, {3, 2, 1}, function() while true do end end) end",
        "while true do pcall(string.gsub, 'x', 'x', function() while true do end end) end",
        "return kept()",
    ];
    for body in endless {
        // A coroutine created while loading has limits too.
        let head =
            "kept = coroutine.wrap(function() coroutine.yield() while true do end end) kept()";
        let mut worker = Worker::load(
            &with_head(
                head,
                &format!("if input.fine then return 'fine' end {body}"),
            ),
            Rights::Pure,
            quick(),
        );
        let begun = Instant::now();
        assert_eq!(
            worker.failure(),
            "tools/x.lua:3: stopped after 0.15 s, which is the limit"
                .replace(":3", if body.contains("kept") { ":1" } else { ":3" }),
            "{body}"
        );
        assert!(
            begun.elapsed() < Duration::from_secs(3),
            "{body}: {:?}",
            begun.elapsed()
        );
        assert_eq!(
            worker.call(&json!({"fine": true})),
            ("fine".to_owned(), false),
            "{body}"
        );
    }
}

#[test]
fn instructions_are_counted_for_each_call() {
    let limits = Limits {
        instructions: 1_000_000,
        ..Limits::default()
    };
    let mut worker = Worker::load(
        &tool("for i = 1, input.n do end return 'done'"),
        Rights::Pure,
        limits,
    );
    for _ in 0..5 {
        assert_eq!(
            worker.call(&json!({"n": 900_000})),
            ("done".to_owned(), false)
        );
    }
    let stopped =
        "tools/x.lua:3: stopped after 1000000 instructions, which is the limit".to_owned();
    assert_eq!(
        worker.call(&json!({"n": 10_000_000_000_u64})),
        (stopped, true)
    );
}

#[test]
fn code_that_no_hook_can_stop_ends_the_process() {
    let stuck = [
        "return (('a'):rep(30) .. 'b'):find(('a?'):rep(30) .. ('a'):rep(30) .. 'c')",
        "return (''):rep(1e18)",
        "setmetatable({}, {__gc = function() while true do end end}) collectgarbage()",
        "local x <close> = setmetatable({}, {__close = function() while true do end end}) while true do end",
        "while true do pcall(string.find, ('a'):rep(40), ('a?'):rep(40) .. ('a'):rep(40) .. 'b') end",
    ];
    for body in stuck {
        let mut worker = Worker::load(&tool(body), Rights::Pure, quick());
        let begun = Instant::now();
        let message = worker.failure();
        assert!(
            message.starts_with(
                "tools/x.lua: took longer than 0.15 s, which is the limit, and did not stop"
            ),
            "{message}"
        );
        assert_eq!(worker.code(), Some(i32::from(exit::OVERDUE)));
        let took = begun.elapsed();
        assert!(
            took >= Duration::from_millis(340) && took < Duration::from_secs(3),
            "{body}: {took:?}"
        );
    }
}

#[test]
fn a_worker_that_is_stuck_can_simply_be_killed() {
    let mut worker = Worker::pure(&tool("haft.update('in') return (''):rep(1e18)"));
    worker.begin("c", &json!({}));
    assert_eq!(worker.receive()["type"], "update");
    worker.kill();
    let status = worker.wait();
    assert_eq!(
        std::os::unix::process::ExitStatusExt::signal(&status),
        Some(9)
    );
}

#[test]
fn a_finalizer_does_not_keep_the_process_from_ending() {
    let mut worker = Worker::pure(&with_head(
        "kept = setmetatable({}, {__gc = function() while true do end end})",
        "return 1",
    ));
    assert_eq!(worker.success(), "1");
    let begun = Instant::now();
    worker.close();
    assert_eq!(worker.code(), Some(0));
    assert!(begun.elapsed() < Duration::from_millis(900));
}

/// Returns the peak memory of a process, in bytes.
fn peak(id: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmHWM:"))
        .unwrap();
    line.split_whitespace()
        .nth(1)
        .unwrap()
        .parse::<u64>()
        .unwrap()
        << 10
}

#[test]
fn memory_bombs_are_refused() {
    let bombs = [
        "return ('x'):rep(1e10)",
        "return ('x'):rep(1 << 30)",
        "local t = {} while true do t[#t + 1] = {} end",
        "local s = 'x' while true do s = s .. s end",
        "local t = {} for i = 1, 1e9 do t[i] = ('x'):rep(1e6) .. i end",
        "local parts = {} for i = 1, 60 do parts[i] = ('x'):rep(1 << 20) end return #table.concat(parts) + #table.concat(parts)",
        "local t = {} for i = 1, 30 do t[i] = ('x'):rep(1e8) end",
        "return (('x'):rep(1 << 20):gsub('x', ('y'):rep(1000)))",
        "return string.format('%s', ('x'):rep(40 << 20)) .. 'x'",
        "local t while true do collectgarbage('stop') t = {t} end",
        "return haft.json.decode('[' .. ('[],'):rep(2000000) .. '[]]')",
        "while true do local t = {} pcall(function() while true do t[#t + 1] = {} end end) end",
    ];
    for body in bombs {
        let limits = Limits {
            instructions: 20_000_000,
            ..Limits::default()
        };
        let source = tool(&format!("if input.fine then return 'fine' end {body}"));
        let mut worker = Worker::load(&source, Rights::Pure, limits);
        let message = worker.failure();
        assert!(
            [
                "out of memory: a module may use 64 MiB",
                "resulting string too large",
                "stopped after 20000000 instructions"
            ]
            .iter()
            .any(|expected| message.contains(expected)),
            "{message} for {body}"
        );
        let used = peak(worker.id());
        assert!(used < 160 << 20, "{} MiB for {body}", used >> 20);
        let (text, error) = worker.call(&json!({"fine": true}));
        assert!(!error && text == "fine", "{text} for {body}");
    }
}

#[test]
fn a_module_that_keeps_its_memory_gets_a_fresh_process() {
    let source = with_head(
        "kept = {}",
        "while true do kept[#kept + 1] = ('x'):rep(100000) .. #kept end",
    );
    let mut worker = Worker::pure(&source);
    assert!(worker.failure().starts_with("tools/x.lua: out of memory"));
    assert_eq!(worker.code(), Some(i32::from(exit::FULL)));
}

#[test]
fn memory_that_was_freed_can_be_used_again() {
    let mut worker = Worker::pure(&tool("return #('x'):rep(30 << 20)"));
    for _ in 0..6 {
        assert_eq!(worker.success(), "31457280");
    }
}

#[test]
fn deep_nesting_is_an_error_not_a_crash() {
    let deep = [
        "local function f() return 1 + f() end return f()",
        "local function f() local ok, e = pcall(f) return ok, e end f() error('survived')",
        "local function f(s) return (s:gsub('.', f)) end return f('x')",
        "local function n(d) if d == 0 then return 'no' end return coroutine.wrap(function() return n(d - 1) end)() end return n(100000)",
        "local t = {} for i = 1, 100000 do t = setmetatable({}, {__index = t}) end return t.x.y",
        "local t = setmetatable({}, {}) getmetatable(t).__index = function(_, k) return t[k] end return t.x",
        "return load(('('):rep(100000))()",
        "return load('return ' .. ('{'):rep(100000))()",
        "return select('#', table.unpack({}, 1, 1e7))",
        "local s = setmetatable({}, {__tostring = function(s) return tostring(s) end}) return tostring(s)",
        "return (('x'):rep(300000):find(('(x'):rep(40)))",
        "local co co = coroutine.wrap(function() return co() end) return co()",
        "local function f() error(setmetatable({}, {__tostring = function() return f() end})) end f()",
        "return xpcall(function() local function f() return 1 + f() end return f() end, function(m) return m .. nil end) and '' or error('handled')",
    ];
    for body in deep {
        let mut worker = Worker::pure(&tool(&format!(
            "if input.fine then return 'fine' end {body}"
        )));
        let message = worker.failure();
        assert!(
            !message.is_empty() && message.len() < 20_000,
            "{message} for {body}"
        );
        assert_eq!(
            worker.call(&json!({"fine": true})),
            ("fine".to_owned(), false),
            "{body} ({message})"
        );
    }
}
