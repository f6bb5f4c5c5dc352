//! Exit codes and timeouts of commands, and failures to start.

use crate::stage::{Stage, text};
use haft_ops::Error;
use haft_ops::executor::sandbox::Level;
use haft_ops::executor::{Ended, Executor, Exit, Launch, Refusal, Streams};
use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

#[tokio::test]
async fn exit_codes_and_signals_are_distinguished() {
    let stage = Stage::new();
    for (script, status) in [
        ("exit 0", Exit::Code(0)),
        ("exit 1", Exit::Code(1)),
        ("exit 255", Exit::Code(255)),
        ("kill -9 $$", Exit::Signal(9)),
        ("kill -TERM $$", Exit::Signal(15)),
        ("no-such-command-anywhere", Exit::Code(127)),
        ("/", Exit::Code(126)),
        ("if then", Exit::Code(2)),
        ("true & wait", Exit::Code(0)),
    ] {
        let finished = stage.run(stage.bash(script)).await;
        assert_eq!(finished.status, status, "{script}");
        assert_eq!(finished.ended, Ended::Itself, "{script}");
        assert_eq!(finished.survivors, [], "{script}");
    }
}

#[tokio::test]
async fn a_command_sees_what_it_was_given_and_nothing_else() {
    let stage = Stage::new();
    let script = "pwd -P; env | cut -d= -f1 | grep -v -x -e _ -e SHLVL -e PWD | sort; \
        cat; tty; (: </dev/tty)";
    let finished = stage.run(stage.bash(script)).await;
    let dir = stage.folder.path().canonicalize().unwrap();
    let text = text(&finished);
    let mut lines = text.lines();
    assert_eq!(lines.next().unwrap(), dir.to_str().unwrap());
    assert_eq!(lines.next(), Some("HAFT_TEST_MARK"));
    assert_eq!(lines.next(), Some("PATH"));
    assert_eq!(lines.next(), Some("not a tty"));
    assert!(lines.next().unwrap().contains("/dev/tty: No such device"));
    assert_eq!(lines.next(), None);
}

/// Neither files that this process opened nor those it inherited: pipes of other runs would
/// keep those from ending.
#[tokio::test]
async fn no_descriptor_reaches_a_command_but_its_streams() {
    let stage = Stage::new();
    let open = std::fs::File::open("/dev/zero").unwrap();
    rustix::io::fcntl_setfd(&open, rustix::io::FdFlags::empty()).unwrap();
    let beside = stage.local.start(stage.bash("sleep 300")).await.unwrap();
    let finished = stage.run(stage.bash("echo /proc/$$/fd/*")).await;
    let count = text(&finished).split_whitespace().count();
    // Bash itself has the folder open while it lists it.
    assert!(count <= 4, "{}", text(&finished));
    drop((beside, open));
}

#[tokio::test]
async fn words_reach_a_program_without_a_shell() {
    let stage = Stage::new();
    let finished = stage
        .run(stage.direct(&["printf", "%s|", "$(id)", "; id", ""]))
        .await;
    assert_eq!(text(&finished), "$(id)|; id||");
    let finished = stage.run(stage.direct(&["/bin/sh", "-c", "echo $0"])).await;
    assert_eq!(text(&finished), "/bin/sh\n");
}

async fn refused(stage: &Stage, launch: Launch) -> (Refusal, String) {
    for begin in [true, false] {
        let error = if begin {
            stage.local.start(launch.clone()).await.err()
        } else {
            stage.try_run(launch.clone()).await.err()
        };
        if let (false, Some(error)) = (begin, error) {
            let text = error.to_string();
            let Error::CannotStart { refusal, .. } = error else {
                panic!("{error}");
            };
            return (refusal, text);
        }
    }
    panic!("it began");
}

#[tokio::test]
async fn a_command_that_does_not_start_is_explained() {
    let stage = Stage::new();
    let plain = stage.path("plain");
    std::fs::write(&plain, "no program").unwrap();
    std::fs::set_permissions(&plain, PermissionsExt::from_mode(0o600)).unwrap();
    for (words, expected) in [
        (&["no-such-program"][..], Refusal::Missing),
        (&["/no/such/program"], Refusal::Missing),
        (&["./plain"], Refusal::NotExecutable),
        (&["/usr"], Refusal::NotExecutable),
        (&[""], Refusal::Missing),
        (&[], Refusal::Missing),
        (&["echo", "a\0b"], Refusal::Other),
    ] {
        let (refusal, text) = refused(&stage, stage.direct(words)).await;
        assert_eq!(refusal, expected, "{words:?} {text}");
    }
    let long = "x".repeat(2 << 20);
    for launch in [stage.bash(&long), stage.direct(&["echo", &long])] {
        let (refusal, text) = refused(&stage, launch).await;
        assert_eq!(refusal, Refusal::TooLong);
        assert!(text.len() < 200, "{text}");
    }
    let mut crowded = stage.bash("true");
    crowded.environment = vec![("A".into(), OsString::from(long)); 1];
    assert_eq!(refused(&stage, crowded).await.0, Refusal::TooLong);

    let mut nowhere = stage.bash("true");
    nowhere.dir = stage.path("gone");
    assert_eq!(refused(&stage, nowhere).await.0, Refusal::NoDirectory);

    let mut confined = stage.bash("touch ran");
    confined.confinement = Some(stage.confinement(Level::Full));
    std::fs::remove_dir(stage.path("temp")).unwrap();
    let (refusal, text) = refused(&stage, confined).await;
    assert_eq!(refusal, Refusal::Unconfined, "{text}");
    assert!(!stage.path("ran").exists(), "it ran unconfined");
    stage.gone(Duration::from_secs(1)).await;
}

#[tokio::test]
async fn an_invalid_supervisor_is_an_error() {
    let stage = Stage::new();
    for (path, argument) in [
        ("/no/such/haft", "x"),
        ("/bin/true", "x"),
        ("/bin/sleep", "0.1"),
    ] {
        let local = haft_ops::executor::Local::new(path.into(), vec![argument.into()]);
        let error = local.start(stage.bash("true")).await.unwrap_err();
        let Error::CannotStart { refusal, .. } = error else {
            panic!("{error}");
        };
        assert_eq!(refusal, Refusal::NoSupervisor, "{path}");
    }
}

#[tokio::test]
async fn the_streams_come_in_order_of_arrival_or_apart() {
    let stage = Stage::new();
    let script = "for i in $(seq 200); do echo out $i; echo err $i >&2; done";
    let mut launch = stage.bash(script);
    let merged = stage.run(launch.clone()).await;
    let expected: String = (1..=200).map(|i| format!("out {i}\nerr {i}\n")).collect();
    assert_eq!(text(&merged), expected);
    assert_eq!(merged.output.total_lines, 400);

    launch.streams = Streams::Separate;
    let apart = stage.run(launch).await;
    assert_eq!(apart.output.total_lines, 200);
    assert_eq!(apart.error.total_lines, 200);
    assert!(apart.error.head.starts_with(b"err 1\nerr 2\n"));
}

#[tokio::test]
async fn output_is_seen_while_the_command_runs() {
    let stage = Stage::new();
    // The command continues only after its first line was seen.
    let go = stage.path("go");
    let launch = stage.bash("echo first; until [ -e go ]; do sleep 0.01; done; echo second");
    let cancel = tokio_util::sync::CancellationToken::new();
    let seen = std::sync::Mutex::new(Vec::new());
    let watch = |_, bytes: &[u8]| {
        seen.lock().unwrap().extend_from_slice(bytes);
        std::fs::write(&go, "").unwrap();
    };
    let finished = stage.local.run(launch, &watch, &cancel).await.unwrap();
    assert_eq!(finished.status, Exit::Code(0));
    assert_eq!(seen.into_inner().unwrap(), b"first\nsecond\n");
}

#[tokio::test]
async fn a_question_that_cannot_be_answered_ends_the_run() {
    let stage = Stage::new();
    let begun = Instant::now();
    for script in [
        "mkfifo -m 600 said; printf 'Password:'; (read x <> said)",
        "mkfifo typed; printf 'Passphrase for key: ' >&2; (read x <> typed)",
        "mkfifo -m 600 keys; printf 'Your name? '; read x <> keys",
    ] {
        let finished = stage.run(stage.bash(script)).await;
        assert_eq!(finished.ended, Ended::Waiting, "{script}");
        let text = finished.waiting_for_input.unwrap();
        assert!(
            ["Password:", "Your name?", "Passphrase for key:"].contains(&text.as_str()),
            "{text}"
        );
    }
    assert!(begun.elapsed() < Duration::from_secs(12));
    stage.gone(Duration::from_secs(1)).await;
}

#[tokio::test]
async fn progress_is_not_a_question() {
    let stage = Stage::new();
    for script in [
        "printf 'Waiting for the server... '; sleep 2.6; echo up",
        "printf 'Result: '; sleep 2.6 | cat; echo up",
        "printf 'Password strength: '; timeout 2.6 bash -c 'while :; do :; done'; echo up",
        // Nothing reads stdin.
        "printf 'Waiting for login: '; sleep 2.6; echo up",
        // The reader already has its input, from a pipe, a file or a string.
        "yes | (read x; printf 'Continue? [Y/n] '; sleep 2.6; echo up)",
        "(sleep 2.6; echo y) | (printf 'Continue? [Y/n] '; read x; echo up)",
        "echo y > said; (printf 'Password: '; read x; sleep 2.6; echo up) < said",
        "(printf 'Press any key '; read x; sleep 2.6; echo up) <<< y",
        "read -p 'Password: ' x; echo up",
        "read -p 'Password: ' x </dev/tty; echo up",
    ] {
        let finished = stage.run(stage.bash(script)).await;
        assert_eq!(finished.ended, Ended::Itself, "{script}");
        assert!(text(&finished).ends_with("up\n"), "{script}");
    }
}
