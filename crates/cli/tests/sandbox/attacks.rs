//! Sandbox escapes that once worked.

use crate::bed::{Bed, Level, beds, beds_at, in_each};
use crate::turn;
use serde_json::json;
use std::time::{Duration, Instant};

fn git(bed: &Bed, script: &str) {
    let made = bed.free(&format!("git -c init.defaultBranch=main {script}"));
    assert!(made.status.success(), "{made:?}");
}

/// Moves out what the command created, not the target of a link that it put in its place.
#[test]
fn moving_out_does_not_follow_links() {
    let _turn = turn::shared();
    in_each(beds_at(&[Level::Full]), |bed| {
        bed.file("home/.ssh/id_rsa", "CANARY");
        bed.file(
            "work/haft.yaml",
            "tools:\n  protect: [k/id_rsa, o/canary.txt]\n",
        );
        let linked = bed.bash("ln -s ~/.ssh k; ln -s ../out o");
        assert!(linked.has("k/id_rsa must not be written"), "{linked:?}");
        assert!(linked.has("o/canary.txt must not be written"), "{linked:?}");
        assert!(!bed.has("work/k") && !bed.has("work/o"), "{linked:?}");
        assert_eq!(bed.read("home/.ssh/id_rsa"), "CANARY");
        bed.outside_is_whole();
        let made = bed.bash("mkdir k; echo made > k/id_rsa");
        assert!(made.has("k/id_rsa must not be written"), "{made:?}");
        assert!(!bed.has("work/k/id_rsa"));
    });
}

/// In a home folder used as work folder, haft's settings cannot be created.
#[test]
fn a_home_as_work_folder_does_not_expose_the_settings() {
    let _turn = turn::shared();
    in_each(beds_at(&[Level::Full]), |bed| {
        let home = bed.at("home");
        std::fs::remove_dir_all(bed.path("home/.config/haft")).unwrap_or_default();
        let script = "(trap '' TERM; for i in $(seq 300); do mkdir -p .config/haft; echo 'sandbox: off' > .config/haft/haft.yaml; sleep 0.01; done) >/dev/null 2>&1 & echo started";
        let begun = bed.bash_with(&["--dir", &home], script);
        assert!(begun.has("started"), "{begun:?}");
        assert!(!bed.has("home/.config/haft/haft.yaml"));
        let next = bed.bash_with(&["--dir", &home], "true");
        assert_eq!(next.details["sandbox"], "full", "{next:?}");
        bed.nothing_left();
    });
}

/// Everything that makes git read its configuration from elsewhere, whether it exists or
/// not.
#[test]
fn git_cannot_be_redirected() {
    let _turn = turn::shared();
    in_each(beds_at(&[Level::Full]), |bed| {
        git(
            bed,
            "init -q --template= . && mkdir -p scripts .git/modules/libs/foo .git/hooks2 && cp .git/HEAD .git/config .git/modules/libs/foo && git init -q --bare bare.git && mkdir -p a/b/c/d/e/deep && git init -q a/b/c/d/e/deep",
        );
        let mut server = bed.serve();
        let did = server.tries(&[
            "echo evil >> .git/config",
            "echo evil >> .git/modules/libs/foo/config",
            "echo evil > bare.git/hooks/post-update",
            "echo evil >> bare.git/config",
            "echo evil >> a/b/c/d/e/deep/.git/config",
        ]);
        assert!(did.is_empty(), "{did:?}");
        for record in [true, false] {
            bed.user(&format!("effects: {{ record: {record} }}\n"));
            let mut server = bed.serve();
            // Nothing of it exists, not even while the command runs.
            for (made, path) in [
                ("echo evil > @; ls @", ".git/commondir"),
                (
                    "echo evil > .git/new; mv -T .git/new @; ls @",
                    ".git/commondir",
                ),
                (
                    "echo evil > .git/new; ln .git/new @; ls @",
                    ".git/commondir",
                ),
                ("ln -s @ way; echo evil > way; ls @", ".git/commondir"),
                ("mkfifo @; ls @", ".git/config.worktree"),
                ("ln -s ../scripts @; ls @", ".git/hooks"),
                ("mv -T scripts @; ls @", ".git/hooks"),
                (
                    "mkdir .git/hooks; echo evil > @; ls @",
                    ".git/hooks/pre-commit",
                ),
                (
                    "cd .git; mkdir hooks; cd hooks; cp /bin/true pre-commit; ls pre-commit",
                    ".git/hooks/pre-commit",
                ),
            ] {
                let answer = server.bash(&made.replace('@', path));
                let note = format!("[protected: {path} was not created, because git would obey it");
                assert!(answer.has(&note), "{made}: {answer:?}");
                assert!(answer.has("ls: cannot access"), "{made}: {answer:?}");
            }
        }
        for gone in ["hooks", "commondir", "config.worktree"] {
            assert!(!bed.has(&format!("work/.git/{gone}")), "{gone}");
        }
        // The target of a hook that is a link.
        bed.file("work/scripts/pc", "kept");
        git(
            bed,
            "--version && mkdir .git/hooks && ln -s ../../scripts/pc .git/hooks/pre-commit",
        );
        let did = server.tries(&["echo evil >> scripts/pc"]);
        assert!(did.is_empty(), "{did:?}");
    });
}

/// A root whose path could be redirected is refused.
#[test]
fn a_root_cannot_lead_through_writable_folders() {
    let _turn = turn::shared();
    in_each(beds_at(&[Level::Full]), |bed| {
        bed.user(&format!("tools: {{roots: [{}]}}\n", bed.at("work/shared")));
        let linked = bed.free("ln -s ../out shared");
        assert!(linked.status.success());
        let output = bed
            .haft(&["call", "bash", "command=true"])
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(text.contains("must not lead through a link"), "{text}");
    });
}

/// Files a background process creates after its command are reported with the next command.
#[test]
fn late_changes_are_reported_and_moved_out() {
    let _turn = turn::shared();
    in_each(beds_at(&[Level::Full]), |bed| {
        bed.user("tools: {protect: [locked.txt]}\n");
        let mut server = bed.serve();
        let begun = server.bash(
            "(sleep 0.4; echo evil > locked.txt; echo x > late) >/dev/null 2>&1 & echo started",
        );
        assert!(begun.has("started"), "{begun:?}");
        let since = Instant::now();
        while !bed.has("work/late") {
            assert!(since.elapsed() < Duration::from_secs(10));
            std::thread::sleep(Duration::from_millis(5));
        }
        let next = server.bash("cat locked.txt");
        assert!(next.has("locked.txt must not be written"), "{next:?}");
        assert!(!next.has("evil"), "{next:?}");
        // A command's own changes are reported once, even with other watchers.
        assert!(server.bash("git init -q .").has("[new: .git "));
        assert!(!server.bash("true").has("[new: "));
    });
}

/// Changing limits or priorities can end another process.
#[test]
fn limits_of_other_processes_cannot_be_changed() {
    let _turn = turn::shared();
    in_each(beds(), |bed| {
        let me = std::process::id();
        let mut server = bed.serve();
        let did = server.tries(&[
            &format!("prlimit --pid {me} --nofile=1:1"),
            "prlimit --pid $PPID --nofile=0:0",
        ]);
        assert!(did.is_empty(), "{}: {did:?}", bed.name());
        assert_eq!(server.bash("ulimit -n 100 && ulimit -n").text, "100\n");
    });
}

/// A FIFO that replaces a file while haft reads it does not block haft.
#[test]
fn a_fifo_in_place_of_git_does_not_block() {
    let _turn = turn::shared();
    in_each(beds_at(&[Level::Full]), |bed| {
        bed.file("work/.git", "gitdir: ./x\n");
        bed.file("work/flip.py", "import ctypes, os\nos.mkfifo('f')\nc = ctypes.CDLL(None)\nassert c.renameat2(-100, b'.git', -100, b'f', 2) == 0\nwhile True: c.renameat2(-100, b'.git', -100, b'f', 2)\n");
        let mut flip = bed
            .program("python3")
            .arg("flip.py")
            .current_dir(bed.path("work"))
            .spawn()
            .unwrap();
        let mut server = bed.serve();
        for _ in 0..40 {
            // The call may be refused, because the folder changes; it must not block.
            server.call(&json!({ "command": "echo", "timeout": 5 }));
        }
        assert!(flip.try_wait().unwrap().is_none(), "nothing was swapped");
        flip.kill().unwrap();
        flip.wait().unwrap();
    });
}

/// Commands find a project below `/tmp`, whatever earlier commands did.
#[test]
fn a_work_folder_in_temp_stays_reachable() {
    let _turn = turn::shared();
    in_each(beds_at(&[Level::Full]), |bed| {
        let folder = tempfile::tempdir_in("/tmp").unwrap();
        let work = folder.path().join("w");
        std::fs::create_dir(&work).unwrap();
        for path in [folder.path(), work.as_path()] {
            bed.give_to(path);
        }
        let dir = work.to_str().unwrap();
        let above = folder.path().display();
        bed.bash_with(
            &["--dir", dir],
            &format!("mv {above} /tmp/gone; ln -s /etc {above}"),
        );
        let next = bed.bash_with(&["--dir", dir], "echo x > here; ls");
        assert_eq!(next.text, "here\n");
        assert!(work.join("here").exists());
    });
}

/// Searches from a parent folder skip the machine's temp folders too.
#[test]
fn the_machines_temp_folders_are_not_searched() {
    let _turn = turn::shared();
    in_each(beds_at(&[Level::Full]), |bed| {
        let folder = tempfile::tempdir_in("/var/tmp").unwrap();
        let name = folder.path().file_name().unwrap().to_str().unwrap();
        let glob = format!("pattern={name}");
        let output = bed
            .haft(&["call", "find", "path=/var", &glob])
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(!text.contains(name), "{text}");
    });
}
