//! Full disks, limits, special files, names and floods.

use crate::{Yard, read, text};
use serde_json::{Value, json};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::process::Command;
use std::time::{Duration, Instant};

/// Peak memory of a command, in MiB.
fn peak(yard: &Yard, tool: &str, arguments: &serde_json::Value) -> (u64, serde_json::Value) {
    // The shell reports its child's high-water mark through /proc before it ends.
    let haft = env!("CARGO_BIN_EXE_haft");
    let script = format!(
        "import resource,subprocess,sys\nout=subprocess.run([{haft:?},'call','--json',{tool:?},sys.argv[1]],capture_output=True).stdout\nsys.stdout.buffer.write(out)\nprint(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss//1024)"
    );
    let output = yard
        .around("python3")
        .args(["-c", &script, &arguments.to_string()])
        .output()
        .unwrap();
    let out = String::from_utf8(output.stdout).unwrap();
    let mut lines = out.lines();
    let reply = serde_json::from_str(lines.next().unwrap_or_default())
        .unwrap_or_else(|_| panic!("{out} {:?}", output.stderr));
    (lines.next().unwrap().parse().unwrap(), reply)
}

#[test]
fn a_file_size_limit_is_an_error_and_not_the_end() {
    let yard = Yard::new();
    // The record of the call fits, but the file it would create does not.
    let old = format!("old{}", "y".repeat(900 << 10));
    std::fs::write(yard.work().join("f.txt"), &old).unwrap();
    let limited = |tool: &str, arguments: &Value| {
        let haft = env!("CARGO_BIN_EXE_haft");
        let script = format!("ulimit -f 1024; exec {haft} call --json {tool} -");
        let mut command = yard.around("bash");
        command.args(["-c", &script]);
        let output = yard.call_in(command, arguments);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert_eq!(read(yard.work().join("f.txt")), old.as_bytes());
        assert_eq!(yard.litter(), Vec::<String>::new());
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let edit = json!({ "path": "f.txt", "old_text": "old", "new_text": "x".repeat(300 << 10) });
    let printed = limited("edit", &edit);
    assert!(printed.contains("file too large"), "{printed}");
    let write = json!({ "path": "f.txt", "content": "x".repeat(2 << 20) });
    let printed = limited("write", &write);
    assert!(
        printed.contains("could not be recorded, so it was not made"),
        "{printed}"
    );
}

#[test]
fn a_full_disk_leaves_the_old_file_and_the_next_write_works() {
    if !rustix::process::geteuid().is_root() {
        return eprintln!("skipped: only root can mount a small disk");
    }
    let yard = Yard::new();
    let disk = yard.work().join("disk");
    std::fs::create_dir(&disk).unwrap();
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=256k", "none"])
        .arg(&disk)
        .status();
    if !mounted.is_ok_and(|status| status.success()) {
        return eprintln!("skipped: no right to mount");
    }
    let outcome = std::panic::catch_unwind(|| {
        std::fs::write(disk.join("f.txt"), "A".repeat(200 << 10)).unwrap();
        let full = yard.call(
            "write",
            &json!({ "path": "disk/f.txt", "content": "B".repeat(150 << 10) }),
        );
        assert_eq!(full["is_error"], true);
        assert!(text(&full).contains("no space"), "{full}");
        assert_eq!(read(disk.join("f.txt")), "A".repeat(200 << 10).as_bytes());
        let small = yard.call(
            "write",
            &json!({ "path": "disk/g.txt", "content": "small" }),
        );
        assert_eq!(small["is_error"], false, "{small}");
        assert_eq!(yard.litter(), Vec::<String>::new());
    });
    Command::new("umount").arg(&disk).status().unwrap();
    outcome.unwrap();
}

/// Each system call of a write fails once: the result is an error, never a false success or
/// a damaged file.
#[test]
fn a_failing_system_call_is_an_error_and_never_a_false_success() {
    let yard = Yard::new();
    let target = yard.work().join("f.txt");
    let new = "new ".repeat(10_000);
    let mut failures = 0;
    for call in [
        "write", "fsync", "renameat", "fchmod", "openat2", "openat", "flock",
    ] {
        for nth in 1..=3 {
            std::fs::write(&target, "old").unwrap();
            std::fs::set_permissions(&target, std::fs::Permissions::from_mode(0o640)).unwrap();
            let injected = format!("--inject={call}:error=EIO:when={nth}");
            let mut command = yard.around("strace");
            command
                .args(["-f", "-qq", "-o", "/dev/null", "-P"])
                .arg(yard.work())
                .arg("-P")
                .arg(&target)
                .args([
                    "-e",
                    &format!("trace={call}"),
                    &injected,
                    env!("CARGO_BIN_EXE_haft"),
                    "call",
                    "--json",
                    "write",
                    "-",
                ])
                .current_dir(yard.work())
                .env("HOME", yard.out())
                .stdout(std::process::Stdio::piped())
                .stderr(std::process::Stdio::piped());
            let output = yard.call_in(command, &json!({ "path": "f.txt", "content": new }));
            let found = read(&target);
            let success = output.status.code() == Some(0);
            if success {
                assert_eq!(
                    found,
                    new.as_bytes(),
                    "{call} {nth}: said done, and it is not: {output:?}"
                );
            } else {
                failures += 1;
            }
            assert!(
                found == b"old" || found == new.as_bytes(),
                "{call} {nth}: {} bytes",
                found.len()
            );
            assert_eq!(
                std::fs::metadata(&target).unwrap().mode() & 0o777,
                0o640,
                "{call} {nth}"
            );
        }
    }
    assert!(
        failures >= 4,
        "only {failures} injections hit: the test proves nothing"
    );
}

#[test]
fn a_write_is_synced_before_it_is_renamed_and_renamed_before_it_is_acknowledged() {
    let yard = Yard::new();
    let trace = yard.out().join("trace");
    let mut command = yard.around("strace");
    command
        .args([
            "-f",
            "-y",
            "-qq",
            "-e",
            "trace=openat,write,fsync,renameat,renameat2",
            "-o",
        ])
        .arg(&trace)
        .args([env!("CARGO_BIN_EXE_haft"), "call", "write", "-"])
        .current_dir(yard.work())
        .env("HOME", yard.out())
        .stdout(std::process::Stdio::piped());
    let output = yard.call_in(command, &json!({ "path": "f.txt", "content": "hello" }));
    assert!(output.status.success(), "{output:?}");
    let trace = String::from_utf8(read(&trace)).unwrap();
    let place = |what: &str, also: &str| {
        trace
            .lines()
            .position(|line| line.contains(what) && line.contains(also))
            .unwrap_or_else(|| panic!("no {what} {also} in\n{trace}"))
    };
    let order = [
        place("openat(", "O_EXCL"),
        place("write(", "hello"),
        place("fsync(", ".haft-"),
        place("renameat", "f.txt"),
        trace
            .lines()
            .enumerate()
            .skip(place("renameat", "f.txt"))
            .find(|(_, line)| line.contains("fsync("))
            .map(|(at, _)| at)
            .unwrap(),
        place("write(1", "Successfully"),
    ];
    assert!(order.is_sorted(), "{order:?}\n{trace}");
}

#[test]
fn special_files_answer_at_once() {
    let yard = Yard::new();
    Command::new("mkfifo")
        .arg(yard.work().join("pipe"))
        .status()
        .unwrap();
    std::os::unix::fs::symlink("/dev/zero", yard.work().join("zero")).unwrap();
    std::fs::write(yard.work().join("a.txt"), "needle\n").unwrap();
    let begun = Instant::now();
    for path in [
        "pipe",
        "zero",
        "/dev/zero",
        "/dev/random",
        "/dev/stdin",
        "/dev/tty",
        "/proc/kmsg",
        "/proc/self/mem",
    ] {
        let reply = yard.call("read", &json!({ "path": path }));
        assert_eq!(reply["is_error"], true, "{path}: {reply}");
    }
    for tool in ["write", "edit"] {
        let reply = yard.call(
            tool,
            &json!({ "path": "pipe", "content": "x", "old_text": "a", "new_text": "b" }),
        );
        assert_eq!(reply["is_error"], true, "{tool}: {reply}");
    }
    let reply = yard.call("grep", &json!({ "pattern": "needle" }));
    assert!(text(&reply).contains("a.txt:1:needle"), "{reply}");
    assert!(
        begun.elapsed() < Duration::from_secs(20),
        "{:?}",
        begun.elapsed()
    );
}

#[test]
fn a_huge_file_needs_little_memory() {
    let yard = Yard::new();
    // A sparse line of 3 GB, then a normal one.
    let file = std::fs::File::create(yard.work().join("huge.txt")).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, "x".repeat(10_000).as_bytes(), 0).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, b"\nlast\n", 3 << 30).unwrap();
    let (memory, reply) = peak(&yard, "read", &json!({ "path": "huge.txt" }));
    assert!(memory < 64, "{memory} MiB");
    assert!(
        text(&reply).contains("[Line 1 is 3221225472 bytes long; its first"),
        "{}",
        text(&reply).chars().rev().take(300).collect::<String>()
    );
    let (memory, reply) = peak(&yard, "read", &json!({ "path": "huge.txt", "offset": 2 }));
    assert!(memory < 64, "{memory} MiB");
    assert_eq!(text(&reply), "last");
    let (memory, reply) = peak(
        &yard,
        "grep",
        &json!({ "pattern": "last", "path": "huge.txt" }),
    );
    assert!(memory < 96, "{memory} MiB: {reply}");
}

#[test]
fn strange_arguments_are_errors_and_nothing_else() {
    let yard = Yard::new();
    let table = [
        ("read", json!({ "path": "" })),
        ("read", json!({ "path": "nul\u{0}byte" })),
        ("read", json!({ "path": "x".repeat(5_000) })),
        ("read", json!({ "path": "a/".repeat(2_000) })),
        ("read", json!({ "path": 5, "offset": "first" })),
        ("ls", json!({ "path": "line\nbreak" })),
        ("grep", json!({ "pattern": "foo(.*" })),
        ("grep", json!({ "pattern": "a{1000}{1000}{1000}" })),
        ("grep", json!({ "pattern": "(a+)\\1" })),
        (
            "grep",
            json!({ "pattern": "x", "glob": "{a,b}".repeat(40) }),
        ),
        ("find", json!({ "pattern": "[" })),
        ("write", json!({ "path": ".", "content": "x" })),
        ("write", json!({ "path": "/", "content": "x" })),
    ];
    for (tool, arguments) in table {
        let begun = Instant::now();
        let reply = yard.call(tool, &arguments);
        assert_eq!(reply["is_error"], true, "{tool} {arguments}: {reply}");
        assert!(
            begun.elapsed() < Duration::from_secs(5),
            "{tool} {arguments}"
        );
    }
    // The command sees no arguments, so nothing runs.
    let deep = serde_json::from_str(&format!("\"{}\"", "[".repeat(5_000))).unwrap();
    let output = yard.call_in(yard.command(&["call", "read", "-"]), &deep);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(read_dir_is_empty(&yard.work()));
}

fn read_dir_is_empty(folder: &std::path::Path) -> bool {
    std::fs::read_dir(folder).unwrap().next().is_none()
}

#[test]
fn other_users_can_read_nothing_of_ours() {
    let yard = Yard::new();
    for at in 0..3_000 {
        std::fs::write(yard.work().join(format!("file-{at:04}.txt")), "x").unwrap();
    }
    let reply = yard.call("ls", &json!({}));
    let kept = reply["details"]["output_path"].as_str().unwrap().to_owned();
    let mut path = std::path::PathBuf::from(&kept);
    assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
    while path.pop() && path.ends_with("haft") == path.to_string_lossy().ends_with("haft") {
        if !path.to_string_lossy().contains("/haft") {
            break;
        }
        assert_eq!(
            std::fs::metadata(&path).unwrap().mode() & 0o777,
            0o700,
            "{}",
            path.display()
        );
    }
    // The note works, in this folder and with the same tools.
    let page = yard.call("grep", &json!({ "pattern": "file-2999", "path": kept }));
    assert!(text(&page).contains("[1 match; searched 1 file]"), "{page}");
}
