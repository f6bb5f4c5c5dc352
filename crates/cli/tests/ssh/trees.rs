//! Processes that a command leaves on the host, and that they end when they should.

use crate::host::Shell;
use crate::stage::{Stage, bash, gone, local, marked, target, text};
use haft_ops::executor::{Ended, Executor, Exit, Ssh, Streams};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// Time by which processes must have ended after a run. A shell on the host looks for
/// them, so a busy machine gets more time.
fn soon() -> Duration {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap();
    let waiting: f32 = load.split(' ').next().unwrap().parse().unwrap();
    let cores = std::thread::available_parallelism().unwrap().get();
    if waiting < 3.0 * f32::from(u16::try_from(cores).unwrap()) {
        Duration::from_millis(1500)
    } else {
        Duration::from_secs(10)
    }
}

/// Process trees that are hard to end. Each prints `ready` once it runs.
const STUBBORN: [(&str, &str); 7] = [
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
    ("flood", "yes >&2 & setsid yes & echo > ready; yes"),
];

#[tokio::test]
async fn a_tree_dies_when_the_caller_cancels() {
    for shell in [Shell::Own, Shell::Bash] {
        for (name, script) in STUBBORN {
            let stage = Stage::with(shell);
            let cancel = CancellationToken::new();
            let stop = async {
                stage.wait_for("ready").await;
                cancel.cancel();
                Instant::now()
            };
            let launch = stage.bash(script);
            let (finished, asked) = tokio::join!(stage.ssh.run(launch, &|_, _| {}, &cancel), stop);
            let took = asked.elapsed();
            let finished = finished.unwrap();
            assert_eq!(finished.ended, Ended::Cancelled, "{name}");
            assert!(took < soon(), "{name} took {took:?}");
            assert_eq!(finished.survivors, [], "{name}");
            stage.gone(soon()).await;
        }
    }
}

#[tokio::test]
async fn a_tree_dies_at_the_timeout_and_the_reply_says_so() {
    let stage = Stage::new();
    for (name, script, status) in [
        ("polite", "echo hi; sleep 1000", Exit::Signal(15)),
        ("deaf", STUBBORN[4].1, Exit::Signal(9)),
    ] {
        let mut launch = stage.bash(script);
        // Connecting takes part of the time.
        launch.limit = Some(Duration::from_secs(2));
        let begun = Instant::now();
        let finished = stage.run(launch).await;
        let took = begun.elapsed();
        assert_eq!(finished.ended, Ended::TimedOut, "{name}");
        assert!(
            took < Duration::from_secs(2) + soon(),
            "{name} took {took:?}"
        );
        assert_eq!(finished.status, status, "{name}");
        stage.gone(soon()).await;
    }
}

#[tokio::test]
async fn a_polite_tree_has_time_to_clean_up() {
    let stage = Stage::new();
    let script = "trap 'echo bye; exit 3' TERM; echo > ready; \
        while :; do sleep 0.01; done";
    let cancel = CancellationToken::new();
    let stop = async {
        stage.wait_for("ready").await;
        cancel.cancel();
    };
    let launch = stage.bash(script);
    let (finished, ()) = tokio::join!(stage.ssh.run(launch, &|_, _| {}, &cancel), stop);
    let finished = finished.unwrap();
    assert_eq!(finished.status, Exit::Code(3));
    assert!(text(&finished).ends_with("bye\n"));
}

#[tokio::test]
async fn a_tree_dies_when_the_run_is_dropped() {
    let stage = Stage::new();
    let cancel = CancellationToken::new();
    let watch = |_, _: &[u8]| {};
    tokio::select! {
        _ = stage.ssh.run(stage.bash(STUBBORN[4].1), &watch, &cancel) => panic!("it ended"),
        _ = stage.wait_for("ready") => {}
    }
    stage.gone(soon()).await;
}

#[tokio::test]
async fn processes_without_the_mark_die_too() {
    let stage = Stage::new();
    // These have no mark: one is the command itself, one its orphan.
    let script = "(env -i sleep 987654 &); echo > ready; exec env -i sleep 987654";
    let cancel = CancellationToken::new();
    let stop = async {
        stage.wait_for("ready").await;
        cancel.cancel();
    };
    let launch = stage.bash(script);
    let (finished, ()) = tokio::join!(stage.ssh.run(launch, &|_, _| {}, &cancel), stop);
    assert_eq!(finished.unwrap().ended, Ended::Cancelled);
    let (begun, limit) = (Instant::now(), soon());
    loop {
        let mut left = crate::stage::processes(<[u8]>::is_empty);
        left.retain(|line| line.contains("987654"));
        if left.is_empty() {
            break;
        }
        assert!(begun.elapsed() < limit, "{left:?}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_child_left_behind_delays_nothing_is_named_and_ends_with_the_executor() {
    for streams in [Streams::Merged, Streams::Separate] {
        let stage = Stage::new();
        let mut launch = stage.bash("echo hi");
        launch.streams = streams;
        let begun = Instant::now();
        stage.run(launch.clone()).await;
        let without = begun.elapsed();
        // A child is called `bash` until it has become `sleep`.
        let script = "sleep 300 & until read -r name < /proc/$!/comm && [ $name = sleep ]; do :; done; echo hi";
        launch.program = stage.bash(script).program;
        let begun = Instant::now();
        let finished = stage.run(launch).await;
        let took = begun.elapsed();
        assert!(
            took < without + Duration::from_millis(500),
            "{took:?} {without:?}"
        );
        assert_eq!(text(&finished), "hi\n");
        assert_eq!(finished.ended, Ended::Itself);
        assert_eq!(finished.status, Exit::Code(0));
        let [survivor] = finished.survivors.as_slice() else {
            panic!("{:?}", finished.survivors);
        };
        assert_eq!(survivor.name, "sleep");
        assert!(marked(&stage.mark)[0].starts_with(&survivor.pid.to_string()));
        let Stage {
            ssh, mark, host, ..
        } = stage;
        drop(ssh);
        gone(&mark, soon()).await;
        drop(host);
    }
}

#[tokio::test]
async fn a_survivor_can_go_on_talking_and_ssh_leaves_with_it() {
    let stage = Stage::new();
    let script =
        "(until [ -e go ]; do echo tick; echo tock >&2; sleep 0.01; done; echo > done) & echo hi";
    for streams in [Streams::Merged, Streams::Separate] {
        let mut launch = stage.bash(script);
        launch.streams = streams;
        let finished = stage.run(launch).await;
        assert!(!finished.survivors.is_empty());
        std::fs::write(stage.path("go"), "").unwrap();
        stage.wait_for("done").await;
        let begun = Instant::now();
        let person = |environment: &[u8]| {
            let home = format!("HOME={}\0", stage.host.keys.path().display());
            memchr(environment, home.as_bytes())
        };
        while !crate::stage::processes(person).is_empty() {
            assert!(begun.elapsed() < Duration::from_secs(4), "ssh stays");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        std::fs::remove_file(stage.path("go")).unwrap();
        std::fs::remove_file(stage.path("done")).unwrap();
    }
}

fn memchr(hay: &[u8], needle: &[u8]) -> bool {
    hay.windows(needle.len()).any(|part| part == needle)
}

/// A child that is in `exec` when the command ends is reported or killed, never lost.
#[tokio::test]
async fn a_child_left_at_the_last_moment_is_not_lost() {
    let stage = Stage::new();
    let mut named = 0;
    for _ in 0..20 {
        let finished = stage.run(stage.bash("setsid sleep 1000 & :")).await;
        assert_eq!(finished.status, Exit::Code(0));
        named += finished.survivors.len();
    }
    assert!(named >= 15, "{named} of 20");
    let Stage {
        ssh, mark, host, ..
    } = stage;
    drop(ssh);
    gone(&mark, 2 * soon()).await;
    drop(host);
}

/// Through a connection that another process keeps open.
#[tokio::test]
async fn a_tree_dies_on_a_shared_connection_too() {
    let stage = Stage::new();
    let socket = stage.path("master");
    let mut master = Command::new("ssh");
    for option in crate::host::Host::options(stage.host.keys.path()) {
        master.args(["-o", &option]);
    }
    let port = stage.host.port.to_string();
    let master = master
        .args(["-N", "-M", "-p", &port, "-S"])
        .arg(&socket)
        .arg("127.0.0.1")
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    let _master = Killed(master);
    let mut target = target(stage.host.keys.path(), stage.host.port);
    target
        .options
        .push(format!("ControlPath={}", socket.display()));
    let ssh = Ssh::new(local(), target).unwrap();
    let begun = Instant::now();
    while !socket.exists() {
        assert!(begun.elapsed() < Duration::from_secs(20), "no master");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let cancel = CancellationToken::new();
    let watch = |_, _: &[u8]| {};
    let ended = ssh
        .run(stage.bash("echo hi; exit 255"), &watch, &cancel)
        .await;
    assert_eq!(ended.unwrap().status, Exit::Code(255));
    tokio::select! {
        _ = ssh.run(stage.bash(STUBBORN[4].1), &watch, &cancel) => panic!("it ended"),
        _ = stage.wait_for("ready") => {}
    }
    stage.gone(soon()).await;
}

#[tokio::test]
async fn a_broken_connection_is_reported_and_ends_the_tree() {
    let stage = Stage::new();
    // The session's own sshd: the first one above the command that is named so.
    let script = "echo hi; setsid sleep 1000 & p=$$; \
        while n=$(cat /proc/$p/comm); [ \"$n\" != sshd ]; do \
        p=$(sed -n 's/^PPid:[^0-9]*//p' /proc/$p/status); done; kill -9 $p; sleep 1000";
    let begun = Instant::now();
    let finished = stage.run(stage.bash(script)).await;
    assert!(begun.elapsed() < Duration::from_secs(5));
    assert_eq!(finished.status, Exit::Unknown);
    let text = text(&finished);
    assert!(text.starts_with("hi\n"), "{text}");
    assert!(
        text.ends_with("[the connection to 127.0.0.1 was lost]\n"),
        "{text}"
    );
    stage.gone(soon()).await;
}

/// Not a test: the next test starts and kills it.
#[tokio::test]
async fn helper_that_runs_a_command_until_it_is_killed() {
    let Some(mark) = std::env::var_os("HAFT_TEST_HELPER") else {
        return;
    };
    let keys = std::env::var_os("HAFT_TEST_KEYS").unwrap();
    let port = std::env::var("HAFT_TEST_PORT").unwrap().parse().unwrap();
    let script = std::env::var("HAFT_TEST_SCRIPT").unwrap();
    let ssh = Ssh::new(local(), target(keys.as_ref(), port)).unwrap();
    let dir = std::env::current_dir().unwrap();
    let mut launch = bash(&script, &dir, mark.to_str().unwrap());
    launch.limit = None;
    let left = bash("setsid sleep 1000 & :", &dir, mark.to_str().unwrap());
    let cancel = CancellationToken::new();
    ssh.run(left, &|_, _| {}, &cancel).await.unwrap();
    let _running = ssh.start(launch.clone()).await.unwrap();
    ssh.run(launch, &|_, _| {}, &cancel).await.unwrap();
}

/// Kills a process when dropped.
struct Killed(std::process::Child);

impl Drop for Killed {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

#[tokio::test]
async fn nothing_outlives_haft_when_it_is_killed() {
    for (name, script) in STUBBORN {
        let stage = Stage::new();
        let helper = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "trees::helper_that_runs_a_command_until_it_is_killed",
            ])
            .args(["--nocapture"])
            .env("HAFT_TEST_HELPER", &stage.mark)
            .env("HAFT_TEST_KEYS", stage.host.keys.path())
            .env("HAFT_TEST_PORT", stage.host.port.to_string())
            .env("HAFT_TEST_SCRIPT", script)
            .current_dir(stage.folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let helper = Killed(helper);
        stage.wait_for("ready").await;
        assert!(!marked(&stage.mark).is_empty(), "{name}");
        drop(helper);
        stage.gone(soon()).await;
        let pipes = std::fs::read_dir(stage.host.keys.path().join("pipes")).unwrap();
        assert!(pipes.count() <= 1, "{name}: pipes were left");
    }
}
