//! Other processes are out of reach: hidden if the kernel can hide them, and never
//! signalled, traced or read. System calls that change the kernel are refused.

use crate::bed::{CANARY, beds, in_each};
use crate::client::Server;
use crate::turn;
use rustix::process::{Pid, Signal};
use serde_json::json;
use std::process::Child;
use std::time::{Duration, Instant};

/// A process of the same user outside the sandbox, with a secret.
struct Victim(Child);

/// Another one, in haft's own namespaces.
struct Neighbour(u32);

impl Neighbour {
    fn alive(&self) -> bool {
        std::fs::exists(format!("/proc/{}", self.0)).unwrap()
    }
}

impl Drop for Neighbour {
    fn drop(&mut self) {
        let pid = i32::try_from(self.0).ok().and_then(Pid::from_raw);
        let _ = rustix::process::kill_process(pid.unwrap(), Signal::KILL);
    }
}

impl Victim {
    fn alive(&mut self) -> bool {
        self.0.try_wait().unwrap().is_none()
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn other_processes_are_out_of_reach() {
    let _turn = turn::shared();
    in_each(beds(), |bed| {
        // In haft's user namespace; otherwise it would be out of reach anyway.
        let both = "sleep 1000 & echo $! > ../tmp/victim; exec \"$@\"";
        let victim = bed
            .program("sleep")
            .arg("1000")
            .env("STOLEN", CANARY)
            .spawn()
            .unwrap();
        let mut victim = Victim(victim);
        let mut command = bed.program("bash");
        command
            .env("PROVIDER_API_KEY", CANARY)
            .env("STOLEN_TOKEN", CANARY);
        command.args(["-c", both, "bash", &bed.at("bin/haft"), "mcp"]);
        let mut server = Server::start(command);
        let beside = Neighbour(bed.read("tmp/victim").trim().parse().unwrap());
        let pids = [
            victim.0.id().to_string(),
            beside.0.to_string(),
            server.pid().to_string(),
            std::process::id().to_string(),
            "1".to_owned(),
            "$PPID".to_owned(),
        ];
        let me = [&pids[0], &pids[1], &pids[2], &pids[3]];
        let mut scripts: Vec<String> = Vec::new();
        for pid in me {
            scripts.push(format!("kill -0 {pid}"));
            scripts.push(format!("kill -9 {pid}"));
            scripts.push(format!(
                "python3 -c 'import ctypes; assert ctypes.CDLL(None).ptrace(16, {pid}, 0, 0) == 0'"
            ));
            scripts.push(format!(
                "python3 -c 'import os, signal; signal.pidfd_send_signal(os.pidfd_open({pid}), 9)'"
            ));
        }
        for pid in &pids {
            scripts.push(format!("grep -qa {CANARY} /proc/{pid}/environ"));
            scripts.push(format!("head -c1 /proc/{pid}/mem"));
            scripts.push(format!("test -e /proc/{pid}/root/etc && ls /proc/{pid}/fd/0 /proc/{pid}/cwd/ && test {pid} -ne 1 && test {pid} -ne $PPID"));
        }
        scripts.push(format!(
            "grep -qa {CANARY} /proc/*/environ /proc/*/task/*/environ"
        ));
        let scripts: Vec<&str> = scripts.iter().map(String::as_str).collect();
        let did = server.tries(&scripts);
        assert!(did.is_empty(), "{}: {did:#?}", bed.name());
        // Killing everything affects only the command itself.
        // It may kill its supervisor too; then its exit status is unknown.
        let text = server.bash("(kill -9 -1); echo after").text;
        let ends = ["after", "Exit code: 137", "Exit code: unknown"];
        assert!(ends.iter().any(|end| text.contains(end)), "{text}");
        assert!(victim.alive(), "{}", bed.name());
        assert!(server.lives(), "{}", bed.name());
        assert!(beside.alive(), "{}", bed.name());
        let seen = server.bash("ls /proc | grep -c '^[0-9]*$'").text;
        if bed.is_full() {
            assert!(seen.trim().parse::<u32>().unwrap() < 10, "{seen}");
        }
        // Without the sandbox it works, so the test is meaningful.
        let free = format!(
            "kill -0 {0} && grep -qa {CANARY} /proc/{0}/environ && echo reached",
            victim.0.id()
        );
        let free = bed.bash_with(&["--sandbox", "off"], &free).text;
        if bed.is_full() {
            assert_eq!(free, "reached\n");
        }
    });
}

/// A command that kills everything it can, perhaps its supervisor too, and keeps running is
/// ended as well.
#[test]
fn a_command_that_kills_everything_is_ended() {
    let _turn = turn::shared();
    in_each(beds(), |bed| {
        let mut server = bed.serve();
        for flight in [
            "",
            "os.setsid()",
            "if os.fork(): os._exit(0)\nos.setsid()\nif os.fork(): os._exit(0)",
        ] {
            let script = format!(
                "python3 -c 'import os, time\n{flight}\ntry: os.kill(-1, 9)\nexcept OSError: pass\ntime.sleep(1000)' & wait; sleep 1000"
            );
            let begun = Instant::now();
            let answer = server.call(&json!({ "command": script, "timeout": 1 }));
            assert!(
                begun.elapsed() < Duration::from_secs(3),
                "{} {answer:?}",
                bed.name()
            );
            assert_eq!(server.bash("echo next").text, "next\n");
            // In a namespace it is harmless, and may run until the session ends.
            if answer.is_error {
                bed.nothing_but(&server);
            }
        }
        server.signal(Signal::KILL);
        server.ended(Duration::from_secs(2));
        bed.nothing_left();
    });
}

#[test]
fn kernel_changing_calls_are_refused() {
    let _turn = turn::shared();
    in_each(beds(), |bed| {
        let mut server = bed.serve();
        let calls = [
            ("io_uring_setup", "425, 1, 0"),
            ("userfaultfd", "323, 1"),
            ("bpf", "321, 0, 0, 0"),
            ("keyctl", "250, 0, -3, 0"),
            ("add_key", "248, 0, 0, 0, 0, -3"),
            ("perf_event_open", "298, 0, 0, -1, -1, 0"),
            ("unshare", "272, 0x10000000"),
            ("setns", "308, 0, 0"),
            ("mount", "165, 0, 0, 0, 0, 0"),
            ("process_vm_readv", "310, 1, 0, 0, 0, 0, 0"),
            ("clone3", "435, 0, 0"),
            ("ptrace", "101, 0, 0, 0"),
            ("kexec_load", "246, 0, 0, 0, 0"),
            ("init_module", "175, 0, 0, 0"),
        ];
        if std::env::consts::ARCH == "x86_64" {
            let code: Vec<String> = calls
                .iter()
                .map(|(name, words)| {
                    format!("(\"{name}\", libc.syscall({words}), ctypes.get_errno())")
                })
                .collect();
            let script = format!(
                "python3 -c 'import ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\nfor one in [{}]: print(*one)'",
                code.join(", ")
            );
            let text = server.bash(&script).text;
            for (name, _) in calls {
                // EPERM or ENOSYS, never EINVAL or EFAULT, which come from the system call
                // itself.
                let refused = [1, 38].map(|errno| format!("{name} -1 {errno}"));
                assert!(
                    text.lines()
                        .any(|line| refused.iter().any(|one| one == line)),
                    "{} {name}: {text}",
                    bed.name()
                );
            }
        } else {
            println!("skipped: the numbers of calls are those of x86-64");
        }
        let did = server.tries(&[
            "unshare -U true",
            "unshare -r true",
            "unshare -m true",
            "unshare -n true",
            "dmesg",
            "sysctl -w kernel.hostname=x",
            "hostname x",
            "echo 1 > /proc/sys/vm/drop_caches",
            "date -s 2001-01-01",
        ]);
        assert!(did.is_empty(), "{}: {did:?}", bed.name());
    });
}
