//! Modules with access to the machine.

use std::time::{Duration, Instant};

use haft_script::{Limits, Rights, exit};
use serde_json::json;

use crate::process::{Worker, quick, tool};

fn full(body: &str) -> Worker {
    Worker::load(&tool(body), Rights::Full, Limits::default())
}

#[test]
fn the_standard_library_is_there() {
    let body = r#"
        assert(os.getenv("SECRET_OF_THE_TEST") == "leaked")
        local name = os.tmpname()
        local file = assert(io.open(name, "w")) file:write("written") file:close()
        local read = assert(io.open(name)):read("a")
        assert(os.remove(name) and require("string") == string and package.path)
        assert(load(string.dump(function() return 5 end))() == 5)
        local pipe = io.popen("echo from a program") local said = pipe:read("l") pipe:close()
        return read .. " " .. said .. " " .. tostring(select(3, os.execute("exit 3")))"#;
    assert_eq!(full(body).success(), "written from a program 3");
}

#[test]
fn the_protocol_is_out_of_reach() {
    let body = r#"
        print("printed") io.write("written\n") io.stdout:write("to stdout\n") io.output():write("to output\n")
        os.execute("echo of a program; cat; cat /dev/stdin; echo >&1 and more")
        return tostring(io.read("a")) .. tostring(io.stdin:read("l")) .. tostring(io.popen("cat"):read("a"))"#;
    let mut worker = full(body);
    assert_eq!(worker.call(&json!({})), ("nil".to_owned(), false));
    assert_eq!(worker.call(&json!({})), ("nil".to_owned(), false));
    let notes = worker.notes();
    for line in [
        "printed",
        "written",
        "to stdout",
        "to output",
        "of a program",
        "and more",
    ] {
        assert_eq!(
            notes.lines().filter(|noted| *noted == line).count(),
            2,
            "{line}: {notes}"
        );
    }
}

#[test]
fn leaving_is_an_error() {
    let mut worker = full("if input.fine then return 'fine' end os.exit(3)");
    assert_eq!(
        worker.failure(),
        "tools/x.lua:3: os.exit is not for tools: return a result"
    );
    assert_eq!(
        worker.call(&json!({"fine": true})),
        ("fine".to_owned(), false)
    );
}

#[test]
fn debug_only_has_traceback() {
    let body =
        "local ok, trace = xpcall(function() error('deep') end, debug.traceback) return trace";
    let trace = full(body).success();
    assert!(
        trace.starts_with("tools/x.lua:3: deep\nstack traceback:")
            && trace.contains("tools/x.lua:3: in"),
        "{trace}"
    );
    assert_eq!(
        full("return tostring(debug.sethook) .. tostring(debug.getregistry)").success(),
        "nilnil"
    );
}

#[test]
fn the_limits_hold() {
    let mut worker = Worker::load(
        &tool("while true do pcall(function() while true do end end) end"),
        Rights::Full,
        quick(),
    );
    assert_eq!(
        worker.failure(),
        "tools/x.lua:3: stopped after 0.15 s, which is the limit"
    );
    let mut worker = full("return ('x'):rep(1 << 28)");
    assert!(worker.failure().contains("out of memory"));
}

#[test]
fn a_program_that_does_not_end_does_not_keep_the_worker() {
    for body in [
        "return os.execute('sleep 4')",
        "return io.popen('sleep 4'):read('a')",
    ] {
        let mut worker = Worker::load(&tool(body), Rights::Full, quick());
        let begun = Instant::now();
        assert!(worker.failure().contains("did not stop"));
        let status = worker.wait();
        // Exiting may have to wait for a stream that the module reads from.
        let killed = std::os::unix::process::ExitStatusExt::signal(&status) == Some(9);
        assert!(
            status.code() == Some(i32::from(exit::OVERDUE)) || killed,
            "{status}"
        );
        assert!(
            begun.elapsed() < Duration::from_secs(3),
            "{body}: {:?}",
            begun.elapsed()
        );
    }
}
