//! Ways out that somebody found. Each was one.

use crate::bed::{Bed, Level, beds, beds_at, in_each};
use crate::turn;
use serde_json::json;
use std::time::{Duration, Instant};

fn git(bed: &Bed, script: &str) {
    let made = bed.free(&format!("git -c init.defaultBranch=main {script}"));
    assert!(made.status.success(), "{made:?}");
}

/// What is taken out of the way is what the command made, and not what a link
/// leads to that it put in the way.
#[test]
fn moving_out_follows_no_link() {
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

/// In a home that is the work folder, haft's own settings cannot be made.
#[test]
fn a_home_is_no_way_to_the_settings() {
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

/// Whatever makes git look elsewhere for what it obeys, there or not.
#[test]
fn git_cannot_be_led_elsewhere() {
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
        for made in [
            "mkdir .git/hooks; echo evil > .git/hooks/pre-commit",
            "echo ../evil > .git/commondir",
            "echo evil > .git/config.worktree",
        ] {
            let answer = server.bash(made);
            assert!(answer.has("was moved to"), "{made}: {answer:?}");
        }
        for gone in ["hooks", "commondir", "config.worktree"] {
            assert!(!bed.has(&format!("work/.git/{gone}")), "{gone}");
        }
        // A hook that is a link leads to what runs.
        bed.file("work/scripts/pc", "kept");
        git(
            bed,
            "--version && mkdir .git/hooks && ln -s ../../scripts/pc .git/hooks/pre-commit",
        );
        let did = server.tries(&["echo evil >> scripts/pc"]);
        assert!(did.is_empty(), "{did:?}");
    });
}

/// A root that could be made to lead elsewhere is none.
#[test]
fn a_root_leads_through_nothing_that_can_be_written() {
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

/// What a background process makes after its command is told at the next one.
#[test]
fn what_comes_late_is_told_and_taken_away() {
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
        // What a command did itself is told once, whoever else watches.
        assert!(server.bash("git init -q .").has("[new: .git "));
        assert!(!server.bash("true").has("[new: "));
    });
}

/// Limits and priorities of others are a way to end them.
#[test]
fn no_other_process_is_limited() {
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

/// A FIFO that takes the place of a file while haft looks holds nobody up.
#[test]
fn a_fifo_in_the_place_of_git_holds_nobody_up() {
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
            // It may be refused, as what is there changes; it does not wait.
            server.call(&json!({ "command": "echo", "timeout": 5 }));
        }
        assert!(flip.try_wait().unwrap().is_none(), "nothing was swapped");
        flip.kill().unwrap();
        flip.wait().unwrap();
    });
}

/// A project below `/tmp` is where commands find it whatever they did before.
#[test]
fn a_work_folder_in_temp_cannot_be_put_out_of_reach() {
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

/// Searches from above do not see the machine's temp folders either.
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
