//! Git configurations: commands may change what is harmless in them, whoever else works on
//! them at the same time, and nothing else.

use crate::bed::{Bed, Level, Who, beds, beds_at, in_each};
use crate::client::Server;
use crate::left;
use crate::turn;
use rustix::process::Signal;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const NAME: &str = "export GIT_AUTHOR_NAME=t GIT_AUTHOR_EMAIL=t@t GIT_COMMITTER_NAME=t GIT_COMMITTER_EMAIL=t@t GIT_CONFIG_COUNT=2 GIT_CONFIG_KEY_0=init.defaultBranch GIT_CONFIG_VALUE_0=main GIT_CONFIG_KEY_1=protocol.file.allow GIT_CONFIG_VALUE_1=always;";

fn made(bed: &Bed, script: &str) {
    let made = bed.free(&format!("set -e; {NAME} {script}"));
    assert!(made.status.success(), "{made:?}");
}

fn repository(bed: &Bed) {
    made(
        bed,
        "git init -q .; echo one > f; git add f; git commit -qm one; git init -q --bare remote.git",
    );
}

/// What the user's own git reads.
fn read(bed: &Bed, folder: &str, name: &str) -> String {
    let output = bed.free(&format!("git -C {folder} config --get {name}"));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

#[track_caller]
fn runs(bed: &Bed, text: &str, script: &str) {
    assert!(text.contains("fine\n"), "{}: {script}: {text}", bed.name());
    assert!(
        !text.contains("[protected"),
        "{}: {script}: {text}",
        bed.name()
    );
}

#[test]
fn git_changes_what_is_harmless_in_its_configuration() {
    let _turn = turn::shared();
    in_each(beds(), |bed| {
        repository(bed);
        let mut server = bed.serve();
        for script in [
            "git config user.name 'A B' && git config --add color.ui always && git config --unset color.ui",
            "git remote add origin ./remote.git && git push -qu origin main && git fetch -q",
            "git remote set-url origin ../x.git && git remote set-url origin ./remote.git",
            "git branch -q side && git branch -qu origin/main side && git branch -m side moved && git branch -qD moved",
            "git remote rename origin up && git remote rename up origin && git remote add two ./two && git remote remove two",
            "git init -q . && git stash list && git worktree add -q wt && git worktree remove wt",
            "git config alias.st 'status -sb' && git st && git config --rename-section alias color && git config --remove-section color",
        ] {
            let text = server
                .bash(&format!("set -e; {NAME} {script}; echo fine"))
                .text;
            runs(bed, &text, script);
        }
        assert_eq!(read(bed, ".", "user.name"), "A B");
        assert_eq!(read(bed, ".", "branch.main.remote"), "origin");
        assert_eq!(read(bed, ".", "remote.origin.url"), "./remote.git");
        // `git init` tries permissions out.
        assert_eq!(read(bed, ".", "core.fileMode"), "true");
        assert!(!bed.has("work/.git/config.lock"), "{}", bed.name());
    });
}

/// Each call is a new haft process, for which everything was there from the start.
#[test]
fn git_changes_the_configuration_of_what_earlier_commands_made() {
    let _turn = turn::shared();
    in_each(beds_at(&[Level::Full]), |bed| {
        let script = |script: &str| format!("set -e; {NAME} {script}; echo fine");
        for step in [
            "git init -q . && git config user.name x && git remote add a ./b && git commit -q --allow-empty -m one",
            "git config user.name y",
            "git init -q sub && git -C sub config user.name x && git -C sub remote add a ../b",
            "git -C sub config user.name y && git -C sub commit -q --allow-empty -m one",
            "git clone -q . copy",
            "git -C copy remote set-url origin ./other && git -C copy config user.name y",
            "git submodule add -q ./sub module && git commit -qm module",
            "git -C module config user.name y && git submodule sync -q && git submodule update -q --init",
            "git submodule deinit -qf module && git submodule update -q --init",
            "git worktree add -q tree && cd tree && git commit -q --allow-empty -m two",
            "cd tree && git config user.email y && git branch -m leaf",
        ] {
            let text = bed.bash(&script(step)).text;
            runs(bed, &text, step);
        }
        for folder in [".", "sub", "copy", "module"] {
            assert_eq!(
                read(bed, folder, "user.name"),
                "y",
                "{}: {folder}",
                bed.name()
            );
        }
        // The same in one session, in which commands made the repositories.
        made(bed, "rm -rf .git .gitmodules sub copy module tree");
        let mut server = bed.serve();
        for step in [
            "git init -q . && git init -q sub",
            "git config user.name y && git -C sub config user.name y",
            "git remote add a ./b && git -C sub remote add a ../b && git -C sub branch -m other",
        ] {
            let text = server.bash(&script(step)).text;
            runs(bed, &text, step);
            let is_first = step.contains("init");
            assert!(is_first || !text.contains("[changed: .git"), "{text}");
        }
        let text = server.bash("git worktree add ../other").text;
        assert!(
            text.contains("[this may have been refused by the sandbox"),
            "{text}"
        );
        assert!(!bed.has("other"), "{}", bed.name());
    });
}

#[test]
fn what_makes_git_run_programs_is_refused_and_named() {
    let _turn = turn::shared();
    in_each(beds(), |bed| {
        repository(bed);
        made(
            bed,
            "git init -q m; git -C m commit -q --allow-empty -m m; git submodule add -q ./m s; \
             git worktree add -q wt; git config extensions.worktreeConfig true; git config --worktree core.bare false; \
             git config core.hooksPath /dev/null",
        );
        let configs = [
            ".git/config",
            ".git/config.worktree",
            ".git/modules/s/config",
            "remote.git/config",
        ];
        let before = configs.map(|config| bed.read(&format!("work/{config}")));
        let mut server = bed.serve();
        for (script, name, path) in [
            (
                "git config core.fsmonitor evil",
                "core.fsmonitor",
                ".git/config",
            ),
            (
                "git config CORE.sshCommand evil",
                "core.sshcommand",
                ".git/config",
            ),
            (
                "git config --unset core.hooksPath",
                "core.hookspath",
                ".git/config",
            ),
            ("git config alias.x '!evil'", "alias.x", ".git/config"),
            (
                "git config include.path ../evil",
                "include.path",
                ".git/config",
            ),
            (
                "git config filter.x.clean evil",
                "filter.x.clean",
                ".git/config",
            ),
            ("git remote add e ext::evil", "remote.e.url", ".git/config"),
            (
                "git -C wt config core.pager evil",
                "core.pager",
                ".git/config",
            ),
            (
                "git config --worktree core.pager evil",
                "core.pager",
                ".git/config.worktree",
            ),
            (
                "git -C s config core.editor evil",
                "core.editor",
                ".git/modules/s/config",
            ),
            (
                "git -C s config core.worktree /",
                "core.worktree",
                ".git/modules/s/config",
            ),
            (
                "git -C remote.git config receive.procReceiveRefs x",
                "receive.procreceiverefs",
                "remote.git/config",
            ),
            (
                "cp .git/config .git/config.lock; echo '[core] pager = x' >> .git/config.lock; sed -i s/x/y/ .git/config; true",
                "",
                "",
            ),
        ] {
            let text = server.bash(script).text;
            let note = format!(
                "[protected: {path} was not changed: commands must not set, change or remove {name}, "
            );
            assert!(
                name.is_empty() || text.contains(&note),
                "{}: {script}: {text}",
                bed.name()
            );
        }
        if bed.is_full() {
            let after = configs.map(|config| bed.read(&format!("work/{config}")));
            assert_eq!(after, before, "{}", bed.name());
        }
    });
}

/// What the user has closed for another reason stays closed.
#[test]
fn a_configuration_that_is_protected_twice_does_not_change() {
    let _turn = turn::shared();
    in_each(beds_at(&[Level::Full]), |bed| {
        repository(bed);
        let before = bed.read("work/.git/config");
        let script = "git config user.name x";
        for (flags, config) in [
            (&["--sandbox", "read-only"][..], ""),
            (&[], "tools:\n  protect: [.git/config]\n"),
            (&[], "tools:\n  protect: [.git]\n"),
        ] {
            bed.user(config);
            let text = bed.bash_with(flags, script).text;
            assert!(text.contains("Exit code: "), "{config}: {text}");
            assert_eq!(bed.read("work/.git/config"), before, "{config}: {text}");
        }
        // Without recording, haft hears of git's calls all the same.
        bed.user("effects: { record: false }\n");
        let text = bed
            .bash(&format!("{script} && git init -q . && echo fine"))
            .text;
        runs(bed, &text, script);
        assert_eq!(read(bed, ".", "user.name"), "x");
        assert_eq!(read(bed, ".", "core.fileMode"), "true");
        let text = bed.bash("git config core.pager evil").text;
        assert!(text.contains("core.pager"), "{text}");
        assert_eq!(read(bed, ".", "core.pager"), "");
    });
}

/// Threads that rename harmless and harmful locks over the configuration, change them while
/// they do, and put links and folders in their place.
const RACE: &str = r#"
import os, threading, time
good = open('.git/config').read()
big = '# ' + 'x' * 6000 + '\n'
texts = [good + big, good + '[user]\n\tname = a\n', good + '# ' + 'y' * 9000 + '\n[color]\n\tui = always\n']
evil = '[core]\n\tfsmonitor = evil\n'
lock = '.git/config.lock'
end = time.time() + 8
done, refused = [0], [0]
def attempt(number):
    while (done[0] < 20 or refused[0] < 5) and time.time() < end:
        for at, act in enumerate([plain, swapped, harmful, linked, direct]):
            try:
                act(number + at)
            except OSError:
                pass
def new(text):
    fd = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_EXCL)
    os.write(fd, text.encode())
    return fd
def plain(number):
    os.close(new(texts[number % 3]))
    os.rename(lock, '.git/config')
    done[0] += 1
def swapped(number):
    fd = new(texts[number % 3])
    change = threading.Thread(target=lambda: os.pwrite(fd, (evil + '#').encode(), 0))
    change.start()
    try:
        os.rename(lock, '.git/config')
    finally:
        change.join()
        os.close(fd)
def harmful(number):
    os.close(new(good + evil))
    try:
        os.rename(lock, '.git/config')
    except PermissionError:
        refused[0] += 1
    finally:
        os.unlink(lock)
def linked(number):
    with open('bad', 'w') as file:
        file.write(good + evil)
    os.close(new(texts[number % 3]))
    swap = threading.Thread(target=lambda: (os.unlink(lock), os.symlink('../bad', lock)))
    swap.start()
    try:
        os.rename(lock, '.git/config')
    finally:
        swap.join()
        os.path.lexists(lock) and os.unlink(lock)
def direct(number):
    with open('.git/config', 'a') as file:
        file.write(evil)
threads = [threading.Thread(target=attempt, args=(n,)) for n in range(6)]
[t.start() for t in threads]
[t.join() for t in threads]
print('published', done[0])
"#;

#[test]
fn the_users_git_never_sees_a_harmful_value() {
    let _turn = turn::shared();
    in_each(beds_at(&[Level::Full]), |bed| {
        repository(bed);
        bed.file("work/race.py", RACE);
        let mut server = bed.serve();
        let begun = bed.read("work/.git/config");
        let is_over = AtomicBool::new(false);
        let start = Instant::now();
        let goes_on =
            || !is_over.load(Ordering::Relaxed) && start.elapsed() < Duration::from_secs(40);
        std::thread::scope(|scope| {
            // Reads in small steps, as git does and slower.
            scope.spawn(|| {
                let mut seen = BTreeSet::new();
                while goes_on() {
                    let config = bed.read("work/.git/config");
                    assert!(!config.contains("evil"), "{}: {config}", bed.name());
                    assert!(config.starts_with(&begun), "{}: {config}", bed.name());
                    seen.insert(config);
                    std::thread::sleep(Duration::from_micros(500));
                }
                // None of them is a mixture.
                assert!(
                    (2..=4).contains(&seen.len()),
                    "{}: {}",
                    bed.name(),
                    seen.len()
                );
            });
            let id =
                server.ask(&serde_json::json!({ "command": "python3 race.py", "timeout": 30 }));
            scope.spawn(|| {
                while goes_on() {
                    let output = bed.free("git config --get core.fsmonitor; git config --list >&2");
                    assert_eq!(output.stdout, b"", "{}: {output:?}", bed.name());
                    assert!(output.status.success(), "{}: {output:?}", bed.name());
                }
            });
            let answer = server.answer(id);
            is_over.store(true, Ordering::Relaxed);
            let count = answer
                .text
                .lines()
                .find_map(|line| line.strip_prefix("published "));
            let count: u32 = count
                .unwrap_or_else(|| panic!("{answer:?}"))
                .parse()
                .unwrap();
            assert!(count > 0, "{}: {answer:?}", bed.name());
            assert!(answer.has("core.fsmonitor"), "{}: {answer:?}", bed.name());
        });
    });
}

/// A change that the user makes while git in the sandbox prepares another one.
#[test]
fn what_the_user_changes_at_the_same_time_is_not_lost() {
    let _turn = turn::shared();
    in_each(beds(), |bed| {
        repository(bed);
        let script = r#"
import os, time
fd = os.open('.git/config.lock', os.O_RDWR | os.O_CREAT | os.O_EXCL)
os.write(fd, open('.git/config').read().encode() + b'[user]\n\tname = command\n')
open('begun', 'w').close()
while not os.path.exists('go'):
    time.sleep(0.01)
os.rename('.git/config.lock', '.git/config')
"#;
        bed.file("work/slow.py", script);
        for way in [
            "printf '[user]\\n\\tname = user\\n' >> .git/config",
            "cp .git/config c; printf '[user]\\n\\tname = user\\n' >> c; mv c .git/config",
        ] {
            let original = bed.read("work/.git/config");
            let mut server = bed.serve();
            let id =
                server.ask(&serde_json::json!({ "command": "python3 slow.py", "timeout": 30 }));
            left::until("the lock is there", Duration::from_secs(20), || {
                bed.has("work/begun")
            });
            made(bed, way);
            bed.file("work/go", "");
            let answer = server.answer(id);
            assert!(
                answer.has("another program changed it at the same time"),
                "{answer:?}"
            );
            assert_eq!(read(bed, ".", "user.name"), "user", "{}", bed.name());
            made(bed, "rm go begun .git/config.lock");
            bed.file("work/.git/config", original);
        }
    });
}

fn calls(server: &mut Server, bed: &Bed, marker: &str) {
    server.ask(&serde_json::json!({ "command": format!(
        "n=0; while true; do n=$((n + 1)); git config user.name name$n && touch {marker}; done"
    ), "timeout": 30 }));
    left::until("a change is made", Duration::from_secs(20), || {
        bed.has(&format!("work/{marker}"))
    });
}

#[test]
fn a_kill_leaves_the_old_or_the_new_configuration() {
    let _turn = turn::shared();
    in_each(beds_at(&[Level::Full]), |bed| {
        repository(bed);
        // Several pages, the end of which moves with the length of the name.
        let tail: String = (0..400)
            .map(|n| format!("[branch \"b{n}\"]\n\tremote = origin\n"))
            .collect();
        made(bed, "git config user.name name");
        let head = bed.read("work/.git/config");
        bed.file("work/.git/config", format!("{head}{tail}"));
        let is_whole = |text: &str| {
            let rest = text.trim_end_matches('\n').strip_suffix(tail.trim_end());
            let name = rest.and_then(|rest| rest.strip_prefix(head.trim_end()));
            name.is_some_and(|name| name.trim_end().bytes().all(|byte| byte.is_ascii_digit()))
        };
        for round in 0..6 {
            let marker = format!("round{round}");
            let mut server = bed.serve();
            calls(&mut server, bed, &marker);
            std::thread::sleep(Duration::from_millis(3 * round));
            server.signal(Signal::KILL);
            bed.nothing_left();
            let text = bed.read("work/.git/config");
            assert!(is_whole(&text), "{}: {text}", bed.name());
            made(bed, "rm -f .git/config.lock; git config --get user.name");
        }
    });
}

#[test]
fn a_changed_configuration_and_a_removed_repository_can_be_undone() {
    let _turn = turn::shared();
    in_each(beds_at(&[Level::Full]), |bed| {
        repository(bed);
        made(
            bed,
            "echo two > f; git stash -q; git tag t; git gc -q; git commit -q --allow-empty -m two",
        );
        let undo = || {
            let output = bed.haft(&["undo"]).output().unwrap();
            assert!(output.status.success(), "{}: {output:?}", bed.name());
        };
        let before = bed.read("work/.git/config");
        let text = bed
            .bash("git config user.name x && git remote add a b && echo fine")
            .text;
        runs(bed, &text, "git config");
        assert_ne!(bed.read("work/.git/config"), before);
        undo();
        assert_eq!(bed.read("work/.git/config"), before, "{}", bed.name());
        let state = "git fsck --strict --no-dangling && git log --all --format=%H%d && git stash list && git status -s && cat .git/config && ls -A .git/hooks";
        let of = |state: &str| String::from_utf8_lossy(&bed.free(state).stdout).into_owned();
        let before = of(state);
        assert!(before.contains("stash@{0}"), "{before}");
        bed.bash("rm -rf .git");
        assert!(!bed.has("work/.git/HEAD"), "{}", bed.name());
        assert!(bed.has("work/.git/config") && bed.has("work/.git/hooks"));
        undo();
        assert_eq!(of(state), before, "{}", bed.name());
    });
}

/// A repository that another user made cannot be changed by commands either.
#[test]
fn somebody_elses_configuration_stays() {
    let _turn = turn::shared();
    let Some(bed) = Bed::new(Who::User, Level::Full) else {
        return;
    };
    repository(&bed);
    if !rustix::process::geteuid().is_root() {
        println!("skipped: only root can give a file away");
        return;
    }
    let config = bed.path("work/.git/config");
    std::os::unix::fs::chown(&config, Some(0), Some(0)).unwrap();
    let before = std::fs::read(&config).unwrap();
    let text = bed.bash("git config user.name x").text;
    assert!(text.contains("Exit code: "), "{text}");
    assert_eq!(std::fs::read(Path::new(&config)).unwrap(), before);
}
