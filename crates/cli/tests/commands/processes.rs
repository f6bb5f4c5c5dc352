//! Processes in the background.

use crate::stage::{Stage, local, marked};
use haft_ops::Error;
use haft_ops::exec::After;
use haft_ops::executor::sandbox::Level;
use haft_ops::executor::{Ended, Executor, Exit, Launch, Refusal, Streams};
use haft_ops::processes::{MAX_ACTIVE, Processes, State, Until, WaitOutcome, Waited};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

const LONG: Duration = Duration::from_secs(20);

struct Table {
    stage: Stage,
    processes: Processes,
}

fn table() -> Table {
    let stage = Stage::new();
    let executor: Arc<dyn Executor> = Arc::new(local());
    let processes = Processes::new(executor, stage.path("logs"), 1 << 20);
    Table { stage, processes }
}

impl Table {
    fn script(&self, script: &str) -> Launch {
        let mut launch = self.stage.bash(script);
        launch.streams = Streams::Separate;
        launch.limit = None;
        launch
    }

    async fn start(&self, script: &str) -> String {
        let status = self
            .processes
            .start(script.to_owned(), self.script(script), After::nothing())
            .await;
        status.unwrap().id
    }

    async fn wait(&self, id: &str, until: Until, limit: Duration) -> Waited {
        let cancel = CancellationToken::new();
        self.processes
            .wait(id, &until, limit, &cancel)
            .await
            .unwrap()
    }

    fn state(&self, id: &str) -> State {
        self.processes.status(id).unwrap().state
    }
}

#[tokio::test]
async fn a_life_from_start_to_list() {
    let table = table();
    let id = table
        .start("echo out; echo err >&2; echo > ready; sleep 300")
        .await;
    assert_eq!(id, "proc-1");
    table.stage.wait_for("ready").await;
    table.wait(&id, Until::Log("out".into()), LONG).await;
    table.wait(&id, Until::Log("err".into()), LONG).await;
    assert_eq!(table.state(&id), State::Running);
    let log = table.processes.log(&id, 4096).await.unwrap();
    assert_eq!(
        (log.output, log.error),
        (b"out\n".to_vec(), b"err\n".to_vec())
    );
    let killed = table.processes.kill(&id).await.unwrap();
    let State::Ended { status, by, at, .. } = killed.state.clone() else {
        panic!("{killed:?}");
    };
    assert_eq!((status, by), (Exit::Signal(15), Ended::Cancelled));
    assert!(at >= killed.started);
    tokio::time::sleep(Duration::from_millis(20)).await;
    assert_eq!(table.state(&id), killed.state, "the end changed");
    assert_eq!(table.processes.kill(&id).await.unwrap().state, killed.state);
    assert_eq!(table.processes.list().len(), 1);
    assert_eq!(table.processes.log(&id, 2).await.unwrap().output, b"t\n");
    let error = table.processes.status("proc-7").unwrap_err();
    assert_eq!(error.to_string(), "process not found: proc-7");
}

#[tokio::test]
async fn a_process_that_ends_at_once_has_ended() {
    let table = table();
    let id = table.start("exit 3").await;
    let waited = table.wait(&id, Until::Exit, LONG).await;
    assert_eq!(waited.outcome, WaitOutcome::Met);
    let State::Ended { status, by, .. } = waited.status.state else {
        panic!("{waited:?}");
    };
    assert_eq!((status, by), (Exit::Code(3), Ended::Itself));

    let missing = table.stage.direct(&["no-such-program"]);
    let error = table
        .processes
        .start("x".into(), missing, After::nothing())
        .await
        .unwrap_err();
    assert!(matches!(
        error,
        Error::CannotStart {
            refusal: Refusal::Missing,
            ..
        }
    ));
    assert_eq!(table.processes.list().len(), 1);
    let mut confined = table.script("touch ran");
    confined.confinement = Some(table.stage.confinement(Level::Full));
    std::fs::remove_dir(table.stage.path("temp")).unwrap();
    let error = table
        .processes
        .start("x".into(), confined, After::nothing())
        .await
        .unwrap_err();
    assert!(matches!(
        error,
        Error::CannotStart {
            refusal: Refusal::Unconfined,
            ..
        }
    ));
    assert!(!table.stage.path("ran").exists());
}

#[tokio::test]
async fn the_whole_tree_is_killed_however_deaf() {
    let table = table();
    let id = table
        .start("trap '' TERM; setsid bash -c 'trap \"\" TERM; echo > ready; while :; do sleep 1; done' & while :; do sleep 1; done")
        .await;
    table.stage.wait_for("ready").await;
    let begun = Instant::now();
    let killed = table.processes.kill(&id).await.unwrap();
    let took = begun.elapsed();
    assert!(
        took > Duration::from_millis(1900) && took < Duration::from_millis(3000),
        "{took:?}"
    );
    assert!(matches!(
        killed.state,
        State::Ended {
            status: Exit::Signal(9),
            ..
        }
    ));
    assert_eq!(marked(&table.stage.mark), Vec::<String>::new());
}

#[tokio::test]
async fn leftovers_of_an_ended_process_are_killed() {
    let table = table();
    let id = table.start("setsid sleep 300 & exit 5").await;
    table.wait(&id, Until::Exit, LONG).await;
    assert_eq!(marked(&table.stage.mark).len(), 1);
    let killed = table.processes.kill(&id).await.unwrap();
    assert!(matches!(
        killed.state,
        State::Ended {
            status: Exit::Code(5),
            ..
        }
    ));
    assert_eq!(marked(&table.stage.mark), Vec::<String>::new());
}

#[tokio::test]
async fn a_flood_stays_within_its_bound_and_its_tail_is_exact() {
    let table = table();
    let id = table.start("seq 1000000; echo > ready; sleep 300").await;
    table.stage.wait_for("ready").await;
    table.wait(&id, Until::Log("^1000000$".into()), LONG).await;
    let log = table.processes.log(&id, 16).await.unwrap();
    assert_eq!(log.output, b"\n999999\n1000000\n");
    assert_eq!(log.output_bytes, 6_888_896);
    let kept = crate::stage::size(&table.stage.path("logs/proc-1.out"));
    assert!(kept <= 1 << 20, "{kept}");
}

#[tokio::test]
async fn no_more_than_sixteen_and_an_end_makes_room() {
    let table = table();
    for _ in 0..MAX_ACTIVE {
        table.start("sleep 300").await;
    }
    let error = table
        .processes
        .start("x".into(), table.script("true"), After::nothing())
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "too many active processes (16/16), kill some before starting new ones"
    );
    let active = |state: &State| *state == State::Running;
    let running = table
        .processes
        .list()
        .iter()
        .filter(|one| active(&one.state))
        .count();
    assert_eq!(running, 16);
    table.processes.kill("proc-3").await.unwrap();
    assert_eq!(table.start("sleep 300").await, "proc-17");
    let Table { stage, processes } = table;
    drop(processes);
    stage.gone(Duration::from_secs(1)).await;
    assert_eq!(std::fs::read_dir(stage.path("logs")).unwrap().count(), 0);
}

#[tokio::test]
async fn waiting_for_a_line() {
    let table = table();
    let id = table
        .start("printf 'listen'; until [ -e go ]; do sleep 0.01; done; echo ing on 80; until [ -e end ]; do sleep 0.01; done; echo last words >&2")
        .await;
    let short = Duration::from_millis(200);
    let waited = table
        .wait(&id, Until::Log("listening on \\d+".into()), short)
        .await;
    assert_eq!(waited.outcome, WaitOutcome::TimedOut);
    assert!(waited.waited >= short);
    std::fs::write(table.stage.path("go"), "").unwrap();
    let waited = table
        .wait(&id, Until::Log("^listening on \\d+$".into()), LONG)
        .await;
    assert_eq!(waited.outcome, WaitOutcome::Met);
    std::fs::write(table.stage.path("end"), "").unwrap();
    let never = table.wait(&id, Until::Log("nowhere".into()), LONG).await;
    assert_eq!(never.outcome, WaitOutcome::Ended);
    let waited = table.wait(&id, Until::Log("last words".into()), LONG).await;
    assert_eq!(waited.outcome, WaitOutcome::Met);
    let cancel = CancellationToken::new();
    let until = Until::Log("(".into());
    let bad = table.processes.wait(&id, &until, LONG, &cancel).await;
    assert!(matches!(bad, Err(Error::InvalidPattern { .. })));
}

/// A script that listens on a free port, in a process that it starts, and writes the
/// number to `port` once it does.
const LISTENS: &str = "setsid python3 -c 'import os, socket, time
s = socket.socket()
s.bind((\"127.0.0.1\", 0))
s.listen()
open(\"port.new\", \"w\").write(str(s.getsockname()[1]))
os.rename(\"port.new\", \"port\")
time.sleep(300)' & wait";

#[tokio::test]
async fn a_port_counts_only_if_the_process_listens_on_it() {
    let table = table();
    let other = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = other.local_addr().unwrap().port();
    let id = table.start(LISTENS).await;
    let short = Duration::from_millis(200);
    let waited = table.wait(&id, Until::Port(taken), short).await;
    assert_eq!(
        (waited.outcome, waited.port_taken),
        (WaitOutcome::TimedOut, true)
    );
    let begun = Instant::now();
    let port: u16 = loop {
        let written = std::fs::read_to_string(table.stage.path("port"));
        if let Ok(port) = written.unwrap_or_default().parse() {
            break port;
        }
        assert!(begun.elapsed() < LONG, "it never listened");
        tokio::time::sleep(Duration::from_millis(10)).await;
    };
    let waited = table.wait(&id, Until::Port(port), LONG).await;
    assert_eq!(
        (waited.outcome, waited.port_taken),
        (WaitOutcome::Met, false)
    );
    table.processes.kill(&id).await.unwrap();
    // A process that ended, perhaps because the port was taken, is reported too.
    let waited = table.wait(&id, Until::Port(taken), LONG).await;
    assert_eq!(
        (waited.outcome, waited.port_taken),
        (WaitOutcome::Ended, true)
    );
    drop(other);
    let waited = table.wait(&id, Until::Port(taken), LONG).await;
    assert_eq!(
        (waited.outcome, waited.port_taken),
        (WaitOutcome::Ended, false)
    );
}

#[tokio::test]
async fn a_port_of_a_server_whose_starter_has_exited_is_found() {
    let table = table();
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    let id = table
        .start(&format!(
            "python3 -c 'import os, socket, time
while not os.path.exists(\"go\"): time.sleep(0.01)
s = socket.socket()
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind((\"127.0.0.1\", {port}))
s.listen()
while not os.path.exists(\"end\"): time.sleep(0.01)' > /dev/null 2>&1 & exit 0"
        ))
        .await;
    table.wait(&id, Until::Exit, LONG).await;
    // Its starter has exited and it does not listen yet.
    let short = Duration::from_millis(200);
    let waited = table.wait(&id, Until::Port(port), short).await;
    assert_eq!(waited.outcome, WaitOutcome::TimedOut);
    std::fs::write(table.stage.path("go"), "").unwrap();
    let waited = table.wait(&id, Until::Port(port), LONG).await;
    assert_eq!(waited.outcome, WaitOutcome::Met);
    // The wait ends with the last process of the tree.
    std::fs::write(table.stage.path("end"), "").unwrap();
    let other = table.wait(&id, Until::Port(1), LONG).await;
    assert_eq!(other.outcome, WaitOutcome::Ended);
    assert!(other.waited < LONG);
}

#[tokio::test]
async fn waiting_for_a_port_and_for_silence() {
    let table = table();
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    let id = table
        .start("for i in 1 2 3 4 5; do echo $i; sleep 0.05; done; sleep 300")
        .await;
    let short = Duration::from_millis(150);
    assert_eq!(
        table.wait(&id, Until::Port(port), short).await.outcome,
        WaitOutcome::TimedOut
    );
    let quiet = Until::Idle(Duration::from_millis(300));
    assert_eq!(
        table.wait(&id, quiet.clone(), LONG).await.outcome,
        WaitOutcome::Met
    );
    assert_eq!(
        table.processes.log(&id, 100).await.unwrap().output,
        b"1\n2\n3\n4\n5\n"
    );
    let waited = table.wait(&id, Until::Exit, short).await;
    assert_eq!(waited.outcome, WaitOutcome::TimedOut);
    let (waited, _) = tokio::join!(
        table.wait(&id, Until::Idle(LONG), LONG),
        table.processes.kill(&id)
    );
    assert_eq!(waited.outcome, WaitOutcome::Ended);
    let cancel = CancellationToken::new();
    cancel.cancel();
    let gone = table.processes.wait(&id, &Until::Exit, LONG, &cancel).await;
    assert!(matches!(gone, Err(Error::Cancelled)));
}
