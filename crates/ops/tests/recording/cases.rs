//! The cases, at each level and for each kind of user.

use crate::bed::{Bed, block_on, exe, last};
use crate::{kills, scripts};
use haft_ops::effects::{End, SetState, UndoMode};
use haft_ops::executor::Executor;
use haft_ops::executor::sandbox::Level;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

type Case = (&'static str, fn(Level));

const CASES: &[Case] = &[
    ("operations", operations),
    ("paths", paths),
    ("private_temp", private_temp),
    ("shut", shut),
    ("names", names),
    ("calls", calls),
    ("outside", outside),
    ("reads", reads),
    ("threads", threads),
    ("processes", processes),
    ("signals", signals),
    ("listeners", listeners),
    ("deaths", deaths),
    ("survivors", survivors),
    ("cancelled", cancelled),
    ("leftovers", leftovers),
    ("scripts", scripts::all),
    ("kills", kills::all),
];

pub(crate) fn run(words: &[&str]) {
    let filter = words.iter().find(|word| !word.starts_with('-'));
    let wanted = |name: &str| filter.is_none_or(|filter| name.contains(filter));
    let mut failed = Vec::new();
    let who = if rustix::process::geteuid().is_root() {
        "root"
    } else {
        "ordinary user"
    };
    for level in [Level::Full, Level::Partial] {
        for (name, case) in CASES.iter().filter(|(name, _)| wanted(name)) {
            // The long ones once: what differs is covered by the others.
            let is_long = matches!(*name, "scripts" | "kills");
            if is_long && (level == Level::Partial || words.contains(&"--short")) {
                continue;
            }
            let begun = Instant::now();
            if std::panic::catch_unwind(|| case(level)).is_err() {
                failed.push(format!("{name} {level:?} {who}"));
            }
            println!("recording {name} {level:?} {who}: {:?}", begun.elapsed());
        }
    }
    if wanted("sandbox_off") {
        sandbox_off();
    }
    assert!(failed.is_empty(), "failed: {failed:#?}");
    if who == "root" {
        as_ordinary_user(words);
    }
    println!("test result: ok.");
}

/// An undo opens folders that their user has shut, and never touches what a link in their
/// place leads to.
fn shut(level: Level) {
    let Some(bed) = Bed::new(Some(level)) else {
        return;
    };
    let key = bed.path("out/key");
    std::fs::write(&key, "key").unwrap();
    let mode = |mode| std::fs::Permissions::from_mode(mode);
    std::fs::set_permissions(&key, mode(0o600)).unwrap();
    bed.undone("echo x > p; mkdir n; echo z > n/z; chmod 0 n");
    bed.run("ln -s $BASE/out/key z; echo A > a; mkdir q; chmod 0577 q");
    let before = bed.tree();
    bed.run("rm z; chmod 700 q; mv a q/a; chmod 0577 q; mv q z");
    bed.undo(&before, "a shut folder in the place of a link");
    let now = std::fs::metadata(&key).unwrap().permissions().mode();
    assert_eq!(now & 0o7777, 0o600, "{now:o}");
}

/// Runs the cases again without privileges, in a folder of that user.
fn as_ordinary_user(words: &[&str]) {
    let id = Some(65534);
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let own = folder.join(format!("recording-user-{}", std::process::id()));
    std::fs::create_dir_all(&own).unwrap();
    std::os::unix::fs::chown(&own, id, id).unwrap();
    let status = Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .arg(exe())
        .arg("--short")
        .args(words)
        .env("RECORDING_FOLDER", &own)
        .status()
        .unwrap();
    let _ = std::fs::remove_dir_all(&own);
    assert!(status.success(), "as an ordinary user");
}

fn operations(level: Level) {
    let Some(bed) = Bed::new(Some(level)) else {
        return;
    };
    scripts::prepare(&bed);
    for script in [
        "echo new > new",
        "echo more >> a",
        "echo other > a",
        "> d/e/a",
        "rm a",
        "rm -rf d",
        "mv a z",
        "mv a b",
        "mv d z",
        "mv d f",
        "mv d z && echo x > z/a && rm z/e/a && echo y > z/new",
        "mkdir -p p/q/r && echo x > p/q/r/s",
        "rm d/e/a && rmdir d/e",
        "ln a z && echo more >> z",
        "ln a z && rm a && echo other > z",
        "ln -s nowhere z",
        "ln -sfn f l",
        "mkfifo z",
        "chmod 600 a",
        "chmod -R 700 d",
        "truncate -s 1 d/e/a",
        "truncate -s 5G z",
        "cp -a d z && rm -rf d && mv z d",
        "sed -i s/1/2/ a d/a",
        "tar cf t.tar d && rm -rf d && tar xf t.tar && rm t.tar && echo x > d/new",
        "mv a $BASE/root/z",
        "echo x > $BASE/root/a",
        "echo x > a; rm a; mkdir a; echo y > a/b",
        "rm -rf ./* && echo x > a",
        "chmod 000 d/e/a; rm -f d/e/a",
        "umask 077; echo x > z; mkdir zz",
        "exec 5<>a; echo xx >&5; rm a; echo y > a",
        "rm b",
        "echo changed > b",
        "rm b d/b",
    ] {
        bed.undone(script);
    }
    bed.undone("mv ../work/a ../work/a2");
    let (_, counts) = bed.run("! mv $BASE/work $BASE/work2 2>/dev/null");
    assert_eq!((counts.total(), counts.complete), (0, true), "{counts:?}");
    // From a folder that is not recorded, whose files have no states before.
    bed.undone("mkdir -p $TMPDIR/x/y && echo 1 > $TMPDIR/x/y/z && mv $TMPDIR/x moved");
    bed.undone("mv d $TMPDIR/ && mv f/a $TMPDIR/");
}

fn paths(level: Level) {
    let Some(bed) = Bed::new(Some(level)) else {
        return;
    };
    scripts::prepare(&bed);
    for script in [
        "echo x > l/a",
        "echo x > l/new",
        "rm l/a",
        "echo x > l/../a",
        "echo x > d/.././d//./a",
        "ln -s ../a d/up; echo x > d/up",
        "ln -s new-target dangling; echo x > dangling",
        "ln -s $PWD/d abs; echo x > abs/a; rm abs/e/a",
        "echo x > /proc/self/cwd/a",
        "echo x > /proc/self/root$PWD/a",
        "echo x > /proc/thread-self/cwd/a",
        "echo x > /proc/$$/cwd/a",
        "exec 4<d; echo x > /proc/self/fd/4/a",
        "exec 4<a; echo x > /proc/self/fd/4",
        "exec 4<a; echo x > /dev/fd/4",
        "cd d && echo x > a && cd e && rm a && echo y > ../../a",
        "cd l && echo x > a",
        "cd $BASE/root && echo x > ../work/a && echo x > a",
        "mkdir deep && cd deep && echo x > f && mv ../deep ../moved && echo y > g",
        "rmdir f/ 2>/dev/null; mkdir z/; mv d/ y",
        "\"$SELF\" --act at d a",
        "\"$SELF\" --act at l/e new",
    ] {
        bed.undone(script);
    }
}

fn private_temp(level: Level) {
    let Some(bed) = Bed::new(Some(level)) else {
        return;
    };
    scripts::prepare(&bed);
    if level == Level::Full {
        // The link is in a folder that only the command sees.
        bed.undone("ln -s $PWD /tmp/way && echo x > /tmp/way/a && rm /tmp/way/d/a");
        bed.undone("echo x > /tmp/x && ln -s /tmp t && cp t/x a && echo y > t/x");
        let (_, counts) = bed.run("echo x > /tmp/file && rm /tmp/file && mkdir /tmp/d");
        assert_eq!((counts.total(), counts.complete), (0, true));
    }
}

fn names(level: Level) {
    let Some(bed) = Bed::new(Some(level)) else {
        return;
    };
    bed.undone("\"$SELF\" --act names");
    bed.undone("\"$SELF\" --act deep");
    // Paths that are longer than the kernel accepts; at the end, all are short again.
    bed.undone(
        "n=$(printf 'n%.0s' $(seq 200)); top=$PWD; \
         for i in $(seq 30); do mkdir $n; cd $n; done; echo x > f; mv f g; mkdir h; \
         ln -s ../g h/l; chmod 600 g; echo y >> h/l; echo z >> h/../g; cat g | wc -l | grep -qx 3; \
         for i in $(seq 15); do cd -P ..; done; mv $n \"$top/moved\"",
    );
    bed.run("\"$SELF\" --act names; mkdir 'x (deleted)'; echo x > 'x (deleted)/y (deleted)'");
    bed.undone("cd 'x (deleted)' && echo y > 'y (deleted)' && echo z > z");
    bed.undone("rm -rf ./*");
}

fn calls(level: Level) {
    let Some(bed) = Bed::new(Some(level)) else {
        return;
    };
    scripts::prepare(&bed);
    for act in [
        "openat2 a",
        "openat2 l/new",
        "in-root d /a",
        "tmpfile named",
        "exchange a b",
        "exchange d f",
        "exchange a d",
        "exchange a l",
        "fchmod a",
        "truncate a",
        "truncate l/a",
    ] {
        bed.undone(&format!("\"$SELF\" --act {act}"));
    }
    bed.undone("ln -s /a d/abs; \"$SELF\" --act in-root d abs; test -e d/a");
    bed.undone("\"$SELF\" --act exchange d f && echo x > d/a && echo y > f/e/a && rm f/a");
    bed.undone("\"$SELF\" --act empty-path a");
    bed.undone("rm a && \"$SELF\" --act creat a");
    bed.undone("rm a && \"$SELF\" --act deleted a");
    if level == Level::Full {
        bed.undone("\"$SELF\" --act bind socket");
    }
    let (_, counts) = bed.run("\"$SELF\" --act exclusive a");
    assert_eq!((counts.total(), counts.complete), (0, true));
    // Not every file system has extended attributes.
    if rustix::fs::setxattr(
        bed.path("work/b"),
        "user.haft",
        b"old",
        rustix::fs::XattrFlags::empty(),
    )
    .is_ok()
    {
        bed.undone("\"$SELF\" --act xattr a");
        bed.undone("\"$SELF\" --act xattr b");
        bed.undone("\"$SELF\" --act no-xattr b");
        bed.undone("rm b d/b");
    } else {
        println!("skipped: no extended attributes here");
    }
}

/// What cannot be written, and what is not below the roots, is not recorded.
fn outside(level: Level) {
    let Some(bed) = Bed::new(Some(level)) else {
        return;
    };
    let script = "echo x > $BASE/out/x; echo x > /etc/x; echo x > /dev/null; rm -f $BASE/out/y; \
                  ls > /dev/null; cat /etc/passwd > /dev/null";
    let (_, counts) = bed.run(script);
    assert_eq!((counts.total(), counts.complete), (0, true));
    assert!(bed.session.sets().unwrap().is_empty());
}

fn reads(level: Level) {
    let Some(bed) = Bed::new(Some(level)) else {
        return;
    };
    scripts::prepare(&bed);
    let (_, counts) = bed.run("grep -r 1 . ; find / -maxdepth 2 >/dev/null 2>&1; wc -c d/e/a");
    assert_eq!((counts.total(), counts.complete), (0, true));
    assert!(
        !bed.path("state").exists(),
        "a set without changes was kept"
    );
}

fn threads(level: Level) {
    let Some(bed) = Bed::new(Some(level)) else {
        return;
    };
    scripts::prepare(&bed);
    bed.undone("\"$SELF\" --act race a; echo end > b");
    bed.undone("\"$SELF\" --act race missing; echo end > b");
    for script in [
        "\"$SELF\" --act moves; echo end > b",
        "(for i in {1..60}; do rm -f d/a; echo $i > d/a; done) 2>/dev/null & \
         for i in {1..20}; do mv d g; mv g d; done; wait",
    ] {
        for _ in 0..5 {
            let before = bed.tree();
            let (_, counts) = bed.run(script);
            // A machine that is too busy to tell what happened first says so.
            if counts.complete {
                bed.undo(&before, script);
            } else {
                let why = counts.why.unwrap();
                assert!(why.contains("a folder was moved"), "{why}");
                return;
            }
        }
    }
}

fn processes(level: Level) {
    let Some(bed) = Bed::new(Some(level)) else {
        return;
    };
    scripts::prepare(&bed);
    bed.undone("\"$SELF\" --act spawn 300");
    bed.undone(
        "for j in 1 2 3 4; do (for i in {1..100}; do /bin/echo $i > p$j-$i; done) & done; wait",
    );
}

fn signals(level: Level) {
    let Some(bed) = Bed::new(Some(level)) else {
        return;
    };
    bed.undone("\"$SELF\" --act alarms");
}

fn listeners(level: Level) {
    let Some(bed) = Bed::new(Some(level)) else {
        return;
    };
    bed.undone("\"$SELF\" --act listener");
    // Recorded, or the set says that it is not.
    let before = bed.tree();
    let (_, counts) = bed.run("\"$SELF\" --act undumpable secret");
    if counts.complete {
        bed.undo(&before, "a program that cannot be inspected");
    } else {
        assert!(level == Level::Partial, "{counts:?}");
        assert!(counts.why.unwrap().contains("arguments"));
    }
}

/// Processes are killed while their calls are handled.
fn deaths(level: Level) {
    let Some(bed) = Bed::new(Some(level)) else {
        return;
    };
    bed.undone(
        "for i in {1..60}; do \
           (exec -a w bash -c 'while :; do echo x > f$RANDOM; rm -f f*; done') & \
           p=$!; read -t 0.00$((RANDOM % 9)) < <(:) ; kill -KILL $p; wait $p; \
         done 2>/dev/null; echo end > end",
    );
}

/// Processes that outlive the command are recorded until they end.
fn survivors(level: Level) {
    let Some(bed) = Bed::new(Some(level)) else {
        return;
    };
    scripts::prepare(&bed);
    let before = bed.tree();
    let script = "echo early > early; (while [ ! -e go ]; do read -t 0.01 < <(sleep 1) ; done; \
                  echo late > a; rm d/a; echo end > end) >/dev/null 2>&1 & ";
    let (_, counts) = bed.run(script);
    assert_eq!(counts.created, 1, "{counts:?}");
    let state = |bed: &Bed| bed.session.summaries().unwrap().last().unwrap().state;
    assert_eq!(state(&bed), SetState::Running);
    assert!(bed.session.undo(&last(), UndoMode::Careful).is_err());
    // Recorded as created by the command, so that undo removes it.
    std::fs::write(bed.path("work/go"), "").unwrap();
    wait_until(|| state(&bed) == SetState::Done);
    assert!(bed.path("work/end").exists());
    std::fs::remove_file(bed.path("work/go")).unwrap();
    bed.undo(&before, script);
}

/// A command that is ended with its caller is recorded until its last process has ended.
fn cancelled(level: Level) {
    let Some(bed) = Bed::new(Some(level)) else {
        return;
    };
    scripts::prepare(&bed);
    let before = bed.tree();
    let script = "trap 'echo last > last; rm -f a; exit' TERM; echo first > first; \
                  while :; do echo $RANDOM > f$RANDOM; done";
    let recorder = bed.recorder();
    block_on(async {
        let cancel = CancellationToken::new();
        let launch = bed.bash(script, &recorder);
        let first = bed.path("work/first");
        let stop = async {
            while !first.exists() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        // Dropping the future ends the command.
        tokio::select! {
            _ = bed.local.run(launch, &|_, _| {}, &cancel) => panic!("it ended by itself"),
            () = stop => {}
        }
    });
    recorder.finish(End::Interrupted);
    drop(recorder);
    let state = |bed: &Bed| bed.session.summaries().unwrap().last().unwrap().state;
    wait_until(|| state(&bed) == SetState::Interrupted);
    assert!(bed.path("work/last").exists());
    bed.undo(&before, script);
}

/// No thread and no descriptor is left.
fn leftovers(level: Level) {
    let Some(bed) = Bed::new(Some(level)) else {
        return;
    };
    let count = |folder: &str| std::fs::read_dir(folder).unwrap().count();
    let counts = || (count("/proc/self/task"), count("/proc/self/fd"));
    for _ in 0..5 {
        bed.run("echo x > x");
    }
    // The supervisor that waits for the next command ends after two seconds.
    let settled = || {
        wait_until(|| count("/proc/self/task") <= 16 && !has_thread("haft-effects"));
        counts()
    };
    let before = settled();
    for _ in 0..30 {
        bed.run("echo x > x; rm x");
    }
    wait_until(|| !has_thread("haft-effects"));
    let after = counts();
    assert!(after.1 <= before.1 + 2, "{before:?} {after:?}");
}

fn has_thread(name: &str) -> bool {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap().flatten();
    tasks
        .filter_map(|task| std::fs::read_to_string(task.path().join("comm")).ok())
        .any(|found| found.trim_end() == name)
}

fn sandbox_off() {
    let bed = Bed::new(None).unwrap();
    let (_, counts) = bed.run("echo x > x");
    assert!(!counts.complete);
    assert!(counts.why.unwrap().contains("sandbox"));
}

#[track_caller]
fn wait_until(mut check: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !check() {
        assert!(Instant::now() < deadline, "it did not happen");
        std::thread::sleep(Duration::from_millis(5));
    }
}
