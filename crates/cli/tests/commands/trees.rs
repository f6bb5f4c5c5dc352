//! Processes that a command leaves behind, and that they end when they should.

use crate::stage::{LEVELS, Stage, environment, local, marked, text};
use haft_ops::executor::sandbox::Level;
use haft_ops::executor::{Ended, Executor, Exit};
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// Time by which processes must have ended after a run.
const SOON: Duration = Duration::from_secs(1);

/// Process trees that are hard to end. Each prints `ready` once it runs.
const STUBBORN: [(&str, &str); 8] = [
    ("plain", "sleep 1000 & sleep 1000 & echo > ready; wait"),
    (
        "setsid",
        "setsid sleep 1000 & setsid bash -c 'setsid sleep 1000 & echo > ready; wait' & wait",
    ),
    (
        "nohup",
        "nohup sleep 1000 & nohup bash -c 'sleep 1000 & wait' & echo > ready; wait",
    ),
    (
        "twice",
        "(setsid bash -c '(sleep 1000 &) ; (setsid sleep 1000 &)' &) ; echo > ready; sleep 1000",
    ),
    (
        "deaf",
        "trap '' TERM HUP INT; (trap '' TERM; setsid sleep 1000) & echo > ready; while :; do sleep 1000; done",
    ),
    (
        "stopped",
        "setsid bash -c 'echo > ready; kill -STOP $$' & wait; sleep 1000",
    ),
    (
        "chain",
        "f() { setsid bash -c \"$1\" & exit; }; \
         export S='[ -e ready ] || echo > ready; setsid bash -c \"$S\" & exit'; (eval \"$S\") & sleep 1000",
    ),
    ("flood", "yes >&2 & setsid yes & echo > ready; yes"),
];

/// Every tree in every kind of confinement.
fn everywhere() -> Vec<(Option<Level>, (&'static str, &'static str))> {
    LEVELS
        .into_iter()
        .flat_map(|level| STUBBORN.map(|tree| (level, tree)))
        .collect()
}

#[tokio::test]
async fn a_tree_dies_at_the_time_limit() {
    for (level, (name, script)) in everywhere() {
        let stage = Stage::at(level);
        let mut launch = stage.bash(script);
        launch.limit = Some(Duration::from_secs(1));
        let begun = Instant::now();
        let finished = stage.run(launch).await;
        let took = begun.elapsed();
        assert_eq!(finished.ended, Ended::TimedOut, "{level:?} {name}");
        assert!(
            took < Duration::from_secs(2),
            "{level:?} {name} took {took:?}"
        );
        assert!(stage.path("ready").exists(), "{level:?} {name} never stood");
        assert_eq!(
            marked(&stage.mark),
            Vec::<String>::new(),
            "{level:?} {name}"
        );
        assert_eq!(finished.survivors, [], "{level:?} {name}");
    }
}

#[tokio::test]
async fn a_tree_dies_when_the_caller_cancels() {
    for (level, (name, script)) in everywhere() {
        let stage = Stage::at(level);
        let cancel = CancellationToken::new();
        let stop = async {
            stage.wait_for("ready").await;
            cancel.cancel();
            Instant::now()
        };
        let launch = stage.bash(script);
        let (finished, asked) = tokio::join!(stage.local.run(launch, &|_, _| {}, &cancel), stop);
        let finished = finished.unwrap();
        assert_eq!(finished.ended, Ended::Cancelled, "{level:?} {name}");
        assert!(
            asked.elapsed() < SOON,
            "{level:?} {name} took {:?}",
            asked.elapsed()
        );
        assert_eq!(
            marked(&stage.mark),
            Vec::<String>::new(),
            "{level:?} {name}"
        );
    }
}

#[tokio::test]
async fn a_tree_dies_when_the_run_is_dropped() {
    for level in LEVELS {
        let stage = Stage::at(level);
        let cancel = CancellationToken::new();
        let watch = |_, _: &[u8]| {};
        tokio::select! {
            _ = stage.local.run(stage.bash(STUBBORN[4].1), &watch, &cancel) => panic!("it ended"),
            _ = stage.wait_for("ready") => {}
        }
        stage.gone(SOON).await;
    }
}

#[tokio::test]
async fn a_polite_tree_has_time_to_clean_up() {
    for level in LEVELS {
        let stage = Stage::at(level);
        let script = "trap 'sleep 0.1; echo bye; exit 3' TERM; echo > ready; \
        while :; do sleep 0.01; done";
        let cancel = CancellationToken::new();
        let stop = async {
            stage.wait_for("ready").await;
            cancel.cancel();
        };
        let launch = stage.bash(script);
        let (finished, ()) = tokio::join!(stage.local.run(launch, &|_, _| {}, &cancel), stop);
        let finished = finished.unwrap();
        assert_eq!(finished.status, Exit::Code(3));
        assert!(text(&finished).ends_with("bye\n"));
    }
}

#[tokio::test]
async fn a_child_that_holds_the_pipe_delays_nothing_and_is_named() {
    for level in LEVELS {
        let stage = Stage::at(level);
        let begun = Instant::now();
        // A child is called `bash` until it has become `sleep`.
        let script = "sleep 300 & until read -r name < /proc/$!/comm && [ $name = sleep ]; do :; done; echo hi";
        let finished = stage.run(stage.bash(script)).await;
        let took = begun.elapsed();
        assert!(took < Duration::from_millis(600), "{took:?}");
        assert_eq!(text(&finished), "hi\n");
        assert_eq!(finished.ended, Ended::Itself);
        let names: Vec<_> = finished
            .survivors
            .iter()
            .map(|one| one.name.as_str())
            .collect();
        assert_eq!(names, ["sleep"]);
        let pid = finished.survivors[0].pid.to_string();
        assert!(marked(&stage.mark)[0].starts_with(&pid), "it was let live");
        let Stage { local, mark, .. } = stage;
        drop(local);
        let begun = Instant::now();
        while !marked(&mark).is_empty() {
            assert!(begun.elapsed() < SOON, "it outlived the executor");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

#[tokio::test]
async fn a_survivor_can_go_on_talking_and_its_supervisor_leaves_with_it() {
    for level in LEVELS {
        let stage = Stage::at(level);
        let script = "(until [ -e go ]; do echo tick; sleep 0.01; done; echo > done) & echo hi";
        let finished = stage.run(stage.bash(script)).await;
        assert!(!finished.survivors.is_empty());
        let before = supervisors();
        assert_eq!(before.len(), 1);
        std::fs::write(stage.path("go"), "").unwrap();
        stage.wait_for("done").await;
        let begun = Instant::now();
        while !supervisors().is_empty() {
            assert!(begun.elapsed() < Duration::from_secs(3), "it stays");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

#[tokio::test]
async fn a_supervisor_that_is_killed_does_not_hang_the_run() {
    for level in LEVELS {
        let stage = Stage::at(level);
        let begun = Instant::now();
        let finished = stage
            .run(stage.bash("sleep 1000 & echo hi; kill -9 $PPID; sleep 0.5; echo lives"))
            .await;
        assert!(begun.elapsed() < Duration::from_secs(2));
        // From inside the full sandbox it cannot be killed at all.
        let expected = match level {
            Some(Level::Full) => "hi\nlives\n",
            _ => "hi\n",
        };
        assert_eq!(text(&finished), expected, "{level:?}");
        if level != Some(Level::Full) {
            assert_eq!(finished.status, Exit::Unknown, "{level:?}");
        }
        stage.local.close().await;
        stage.gone(SOON).await;
    }
}

/// Not a test: the next test starts and kills it.
#[tokio::test]
async fn helper_that_runs_a_command_until_it_is_killed() {
    let Some(mark) = std::env::var_os("HAFT_TEST_HELPER") else {
        return;
    };
    let script = std::env::var("HAFT_TEST_SCRIPT").unwrap();
    let level = std::env::var("HAFT_TEST_LEVEL").unwrap();
    let level = LEVELS.into_iter().find(|one| format!("{one:?}") == level);
    let stage = Stage::new();
    let mut launch = stage.bash(&script);
    launch.environment = environment(mark.to_str().unwrap());
    launch.dir = std::env::current_dir().unwrap();
    launch.confinement = level
        .unwrap()
        .map(|level| stage.confinement_in(level, &launch.dir));
    launch.limit = None;
    let mut left = launch.clone();
    left.program = stage.bash("setsid sleep 1000 & :").program;
    stage.run(left).await;
    let background = local();
    let _running = background.start(launch.clone()).await.unwrap();
    stage.run(launch).await;
}

#[tokio::test]
async fn nothing_outlives_haft_when_it_is_killed() {
    for (level, (name, script)) in everywhere() {
        let stage = Stage::at(level);
        let mut helper = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "trees::helper_that_runs_a_command_until_it_is_killed",
            ])
            .args(["--nocapture"])
            .env("HAFT_TEST_HELPER", &stage.mark)
            .env("HAFT_TEST_SCRIPT", script)
            .env("HAFT_TEST_LEVEL", format!("{level:?}"))
            .current_dir(stage.folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        stage.wait_for("ready").await;
        assert!(!marked(&stage.mark).is_empty(), "{level:?} {name}");
        helper.kill().unwrap();
        helper.wait().unwrap();
        stage.gone(SOON).await;
    }
}

#[tokio::test]
async fn five_hundred_runs_leave_nothing() {
    // In a separate process, so that only its own are counted.
    if std::env::var_os("HAFT_TEST_ALONE").is_none() {
        let mut alone = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "trees::five_hundred_runs_leave_nothing",
                "--nocapture",
            ])
            .env("HAFT_TEST_ALONE", "1")
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        for line in BufReader::new(alone.stdout.take().unwrap()).lines() {
            writeln!(std::io::stdout(), "{}", line.unwrap()).unwrap();
        }
        assert!(alone.wait().unwrap().success());
        return;
    }
    for (level, rounds) in LEVELS.into_iter().zip([100, 500, 100]) {
        let stage = Stage::at(level);
        stage.run(stage.bash("echo warm")).await;
        quiet().await;
        let before = descriptors();
        for round in 0..rounds {
            let script = [
                "true",
                "echo some; exit 3",
                "sleep 0 & sleep 0 | cat; kill -9 $$",
            ][round % 3];
            stage.run(stage.bash(script)).await;
        }
        quiet().await;
        assert_eq!(descriptors(), before);
        assert_eq!(marked(&stage.mark), Vec::<String>::new());
        let left: Vec<_> = std::fs::read_dir(stage.folder.path())
            .unwrap()
            .flatten()
            .map(|one| one.file_name())
            .collect();
        let own = if level.is_some() {
            vec!["temp".into()]
        } else {
            Vec::<std::ffi::OsString>::new()
        };
        assert_eq!(left, own);
        if level.is_some() {
            assert_eq!(std::fs::read_dir(stage.path("temp")).unwrap().count(), 0);
        }
    }
}

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

/// Waits until this process has no child left, read or not. A supervisor may wait
/// two seconds for a next command.
async fn quiet() {
    let begun = Instant::now();
    while !children().is_empty() {
        assert!(begun.elapsed() < 4 * SOON, "still there: {:?}", children());
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

fn children() -> Vec<String> {
    let mut found = Vec::new();
    for task in std::fs::read_dir("/proc/self/task").unwrap().flatten() {
        let list = std::fs::read_to_string(task.path().join("children")).unwrap_or_default();
        found.extend(list.split_whitespace().map(str::to_owned));
    }
    found
}

/// The supervisors below this thread's tests.
fn supervisors() -> Vec<String> {
    let list = std::fs::read_to_string("/proc/thread-self/children");
    list.unwrap_or_default()
        .split_whitespace()
        .map(str::to_owned)
        .collect()
}
