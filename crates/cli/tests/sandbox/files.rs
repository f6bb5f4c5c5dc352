//! Files that a command can read and write, in each mode, by any method.

use crate::bed::{Bed, CANARY, Level, Who, beds, beds_at, in_each};
use crate::client::Server;
use crate::turn;

const SECRETS: [&str; 11] = [
    ".ssh/id",
    ".gnupg/key",
    ".aws/credentials",
    ".azure/token",
    ".kube/config",
    ".docker/config.json",
    ".config/gcloud/key",
    ".netrc",
    ".git-credentials",
    ".npmrc",
    ".pypirc",
];

/// All scripts fail, and their targets are unchanged.
#[track_caller]
fn refused(bed: &Bed, server: &mut Server, scripts: &[&str]) {
    let did = server.tries(scripts);
    assert!(did.is_empty(), "{}: {did:#?}", bed.name());
    bed.outside_is_whole();
}

#[test]
fn nothing_outside_can_be_written() {
    let _turn = turn::shared();
    in_each(beds(), |bed| {
        let mut server = bed.serve();
        let out = bed.at("out");
        let home = bed.at("home");
        let scripts: Vec<String> = [
            "echo x > OUT/canary.txt",
            "echo x >> OUT/new",
            "echo x > ../out/canary.txt",
            "echo x > a/../../out/new",
            "mkdir -p a && echo x > a/../../out/new",
            "ln -s OUT link && echo x > link/new",
            "ln -s OUT/canary.txt file && echo x > file",
            "ln OUT/canary.txt hard && echo x > hard",
            "echo x > mine && mv -f mine OUT/canary.txt",
            "echo x > mine && mv -fT mine OUT/canary.txt",
            "mv OUT/canary.txt stolen",
            "rm -f OUT/canary.txt && test ! -e OUT/canary.txt",
            "truncate -s 0 OUT/canary.txt",
            "mkdir OUT/d",
            "mkfifo OUT/p",
            "echo x > /proc/self/root/OUT/canary.txt",
            "echo x > /proc/self/cwd/../out/new",
            "echo x > /proc/1/root/OUT/new",
            "cd /proc/self/root && echo x > .OUT/new",
            "exec 3< OUT && echo x > /proc/self/fd/3/new",
            "exec 3< OUT/canary.txt && echo x > /proc/self/fd/3",
            "mkdir -p m && mount --bind OUT m && echo x > m/new",
            "mount -o remount,rw / && echo x > OUT/new",
            "mount -o remount,rw,bind OUT && echo x > OUT/new",
            "umount -l / && echo x > OUT/new",
            "mknod dev b 8 0",
            "mknod dev c 1 1",
            "chroot / true",
            "echo x > HOME/.bashrc",
            "echo x > /etc/haft-test",
            "echo x > /usr/haft-test",
            "python3 -c \"import os; d = os.open('OUT', os.O_PATH); os.open('new', os.O_CREAT | os.O_WRONLY, dir_fd=d)\"",
            "python3 -c \"import os; os.rename('OUT', 'moved')\"",
            "python3 -c \"import ctypes; assert ctypes.CDLL(None).syscall(425, 1, 0) >= 0\"",
            "cp /bin/sh mine && chown 0:0 mine && chmod u+s mine && ./mine -pc 'echo x > OUT/new'",
        ]
        .iter()
        .map(|script| script.replace("OUT", &out).replace("HOME", &home))
        .collect();
        let scripts: Vec<&str> = scripts.iter().map(String::as_str).collect();
        refused(bed, &mut server, &scripts);
        if bed.is_full() {
            let (mode, time) = (
                format!("chmod 777 {out}/canary.txt"),
                format!("touch -d 2001-01-01 {out}/canary.txt"),
            );
            refused(bed, &mut server, &[&mode, &time]);
        }
        assert!(!bed.has("home/.bashrc"));
        // The sandbox refuses it: without it the same works.
        let free = bed.free(&format!("echo x > {out}/new && rm {out}/new && cd /proc/self/root && echo x > .{out}/new && rm {out}/new"));
        assert!(free.status.success(), "{free:?}");
        let works = server.tries(&[
            "echo x > inside && mkdir -p a/b && mv inside a/b && ln a/b/inside hard && rm -r a",
            "echo x > $TMPDIR/t && echo x > /dev/null && cat $TMPDIR/t",
            "mkfifo fifo && ln -s hard soft && chmod 700 hard && touch -d 2001-01-01 hard",
            &format!("cat {out}/canary.txt"),
        ]);
        assert_eq!(works.len(), 4, "{}: {works:#?}", bed.name());
        let denied = server.bash(&format!("echo x > {out}/new"));
        assert!(
            denied.has(&format!(
                "[this may have been refused by the sandbox ({})",
                bed.level.name()
            )),
            "{denied:?}"
        );
    });
}

/// Set-id programs give no extra rights.
#[test]
fn no_program_gains_rights() {
    let _turn = turn::shared();
    in_each(beds(), |bed| {
        if bed.who == Who::User {
            // A set-id program of root: only root can create one.
            if rustix::process::geteuid().is_root() {
                let path = bed.path("bin/id");
                std::fs::copy("/usr/bin/id", &path).unwrap();
                rustix::fs::chmod(&path, rustix::fs::Mode::from_raw_mode(0o4755)).unwrap();
                if bed.is_full() {
                    let free = bed.free(&format!("{} -u", path.display()));
                    assert_eq!(free.stdout, b"0\n");
                }
                let text = bed.bash(&format!("{} -u", path.display())).text;
                assert_eq!(text, "65534\n");
            } else {
                println!("skipped: a set-id program of root's takes root to make");
            }
        }
        let text = bed
            .bash("grep -E 'NoNewPrivs|CapEff|CapPrm|CapAmb' /proc/self/status")
            .text;
        assert_eq!(
            text,
            "CapPrm:\t0000000000000000\nCapEff:\t0000000000000000\nCapAmb:\t0000000000000000\nNoNewPrivs:\t1\n"
        );
    });
}

#[test]
fn secrets_and_hafts_own_folders_cannot_be_read() {
    let _turn = turn::shared();
    in_each(beds(), |bed| {
        for secret in SECRETS {
            bed.file(&format!("home/{secret}"), CANARY);
        }
        bed.user(&format!("# {CANARY}\n"));
        bed.file("home/.local/state/haft/database", CANARY);
        bed.file("home/plain", "plain");
        bed.file("work/inside", "inside");
        let mut server = bed.serve();
        let mut all: Vec<String> = SECRETS
            .iter()
            .map(|secret| format!("$HOME/{secret}"))
            .collect();
        all.push("$HOME/.config/haft/haft.yaml".to_owned());
        all.push("$HOME/.local/state/haft/database".to_owned());
        let ways = [
            "grep -q . PATH",
            "grep -q . /proc/self/rootPATH",
            "ln -sf PATH l && grep -q . l",
            "ln -f PATH h && grep -q . h",
            "echo more >> PATH && grep -q more PATH",
            "rm -rf copied; cp -r $(dirname PATH) copied 2>/dev/null; grep -rq canary copied",
        ];
        for way in ways {
            let scripts: Vec<String> = all.iter().map(|path| way.replace("PATH", path)).collect();
            let scripts: Vec<&str> = scripts.iter().map(String::as_str).collect();
            let did = server.tries(&scripts);
            assert!(did.is_empty(), "{}: {did:?}", bed.name());
        }
        let found = server.bash("cat $HOME/plain; grep -rs canary $HOME; cat $HOME/.ssh/id; true");
        assert!(
            found.text.starts_with("plain") && !found.has(CANARY),
            "{found:?}"
        );
        for secret in SECRETS {
            assert_eq!(
                bed.read(&format!("home/{secret}")),
                CANARY,
                "{}",
                bed.name()
            );
        }
        // Without a sandbox they can be read, so the test is meaningful.
        let free = bed.bash_with(&["--sandbox", "off"], "cat $HOME/.ssh/id $HOME/.netrc");
        assert_eq!(free.text, format!("{CANARY}{CANARY}"));
        assert_eq!(free.details["sandbox"], "off");
    });
}

/// Root could read these; for other users the tools say that they are secret.
#[test]
fn passwords_and_keys_of_the_machine_cannot_be_read() {
    let _turn = turn::shared();
    let keys = std::fs::read_dir("/etc/ssh")
        .into_iter()
        .flatten()
        .flatten();
    let keys = keys.map(|entry| entry.path().to_str().unwrap().to_owned());
    let mut all: Vec<String> = keys.filter(|key| key.ends_with("_key")).collect();
    all.extend(["/etc/shadow", "/etc/gshadow", "/etc/sudoers"].map(str::to_owned));
    all.retain(|path| std::fs::metadata(path).is_ok());
    if all.is_empty() {
        println!("skipped: this machine has no such file");
        return;
    }
    in_each(beds(), |bed| {
        for mode in ["workspace", "strict", "read-only"] {
            let mut server = bed.serve_with(&["--sandbox", mode]);
            for path in &all {
                let text = server
                    .bash(&format!(
                        "grep -c . {path}; cp {path} $TMPDIR/copy && grep -c . $TMPDIR/copy; true"
                    ))
                    .text;
                let is_read = text
                    .lines()
                    .any(|line| line.parse::<u32>().is_ok_and(|n| n > 0));
                assert!(!is_read, "{} {mode}: {path}: {text}", bed.name());
                let answer = server.tool("read", &serde_json::json!({ "path": path }));
                assert!(answer.is_error && answer.has("secret place"), "{answer:?}");
            }
            let text = server
                .bash("cat /etc/passwd && git --version && echo fine")
                .text;
            assert!(text.ends_with("fine\n"), "{} {mode}: {text}", bed.name());
        }
        let free = bed.bash_with(&["--sandbox", "off"], &format!("grep -c . {}", all[0]));
        let is_refused = free.has("Permission denied");
        assert_eq!(is_refused, bed.who == Who::User, "{free:?}");
    });
}

#[test]
fn each_mode_allows_what_it_should() {
    let _turn = turn::shared();
    in_each(beds(), |bed| {
        let read = format!("cat {}", bed.at("out/canary.txt"));
        let write = format!("echo x > {}", bed.at("out/new"));
        let scripts = [
            read.as_str(),
            write.as_str(),
            "echo x > new",
            "echo x > ${TMPDIR:-/tmp}/t-$$ && rm ${TMPDIR:-/tmp}/t-$$",
            "ls /usr/bin /etc/passwd",
        ];
        for (mode, expected) in [
            ("workspace", [true, false, true, true, true]),
            ("strict", [false, false, true, true, true]),
            ("read-only", [true, false, false, true, true]),
            ("off", [true, true, true, true, true]),
        ] {
            let mut server = bed.serve_with(&["--sandbox", mode]);
            let did = server.tries(&scripts);
            for (script, expected) in scripts.iter().zip(expected) {
                assert_eq!(
                    did.iter().any(|one| one == script),
                    expected,
                    "{} {mode}: {script}",
                    bed.name()
                );
            }
            assert_eq!(bed.has("out/new"), mode == "off", "{} {mode}", bed.name());
            let _ = std::fs::remove_file(bed.path("out/new"));
        }
        // Files that one command puts in the private temp folder are found by the next one,
        // and by nothing else.
        let mut server = bed.serve();
        server.bash("echo mine > /tmp/haft-test-file || echo mine > $TMPDIR/haft-test-file");
        assert_eq!(
            server
                .bash("cat $TMPDIR/haft-test-file")
                .text
                .lines()
                .last(),
            Some("mine")
        );
        assert!(!std::path::Path::new("/tmp/haft-test-file").exists());
    });
}

/// The user configures the sandbox, and a project's file cannot widen it.
#[test]
fn a_project_cannot_widen_the_sandbox() {
    let _turn = turn::shared();
    for bed in beds_at(&[Level::Full]) {
        bed.file(
            "work/haft.yaml",
            format!(
                "sandbox: off\nnetwork: on\ntools:\n  roots: [{}]\n  env: [A_TOKEN]\n",
                bed.at("out")
            ),
        );
        let mut command = bed.haft(&["call", "bash", "-", "--json", "--quiet"]);
        command.env("A_TOKEN", CANARY);
        let script = format!("echo x > {}; env; cat /proc/net/dev", bed.at("out/new"));
        let arguments = serde_json::json!({ "command": script });
        let mut child = command.stdin(std::process::Stdio::piped()).spawn().unwrap();
        std::io::Write::write_all(
            &mut child.stdin.take().unwrap(),
            arguments.to_string().as_bytes(),
        )
        .unwrap();
        let output = child.wait_with_output().unwrap();
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(!printed.contains(CANARY), "{printed}");
        bed.outside_is_whole();
        if printed.is_empty() {
            // Refusing the file is fine too, if the error names the key.
            let why = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(why.contains("haft.yaml"), "{why}");
        } else {
            let reply: serde_json::Value = serde_json::from_str(&printed).unwrap();
            assert_eq!(reply["details"]["sandbox"], "full", "{reply}");
        }
    }
}
