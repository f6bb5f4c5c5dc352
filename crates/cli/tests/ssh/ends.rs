//! Exit codes, timeouts and the environment of commands.

use crate::host::Shell;
use crate::stage::{Stage, text};
use haft_ops::executor::{Ended, Executor, Exit, Stream, Streams};
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::time::{Duration, Instant};

#[tokio::test]
async fn exit_codes_and_signals_are_distinguished() {
    for shell in [Shell::Own, Shell::Bash] {
        let stage = Stage::with(shell);
        for (script, status) in [
            ("exit 0", Exit::Code(0)),
            ("exit 1", Exit::Code(1)),
            ("exit 255", Exit::Code(255)),
            ("exit 137", Exit::Code(137)),
            ("exit 143", Exit::Code(143)),
            ("kill -9 $$", Exit::Signal(9)),
            ("kill -TERM $$", Exit::Signal(15)),
            ("kill -SEGV $$", Exit::Signal(11)),
            ("no-such-command-anywhere", Exit::Code(127)),
            ("/", Exit::Code(126)),
        ] {
            let finished = stage.run(stage.bash(script)).await;
            assert_eq!(finished.status, status, "{shell:?} {script}");
            assert_eq!(finished.ended, Ended::Itself, "{script}");
            assert_eq!(finished.survivors, [], "{script}");
        }
    }
}

#[tokio::test]
async fn a_command_sees_what_it_was_given_and_nothing_else() {
    for shell in [Shell::Own, Shell::Bash] {
        let stage = Stage::with(shell);
        let mut launch = stage.direct(&["env", "-0"]);
        let strange = OsString::from_vec((1..=255).collect());
        launch.environment.push(("STRANGE".into(), strange.clone()));
        launch.environment.push(("EMPTY".into(), "".into()));
        launch
            .environment
            .push(("HOME".into(), "/else where".into()));
        let finished = stage.run(launch).await;
        let mut seen: Vec<OsString> = finished
            .output
            .head
            .split(|&byte| byte == 0)
            .filter(|part| !part.is_empty())
            .map(|part| OsString::from_vec(part.to_vec()))
            .collect();
        let value = |name: &str| {
            let requested = format!("{name}=");
            seen.iter().find_map(|one| {
                one.to_string_lossy()
                    .strip_prefix(&requested)
                    .map(str::to_owned)
            })
        };
        assert_eq!(value("EMPTY").as_deref(), Some(""));
        assert_eq!(value("HOME").as_deref(), Some("/else where"));
        assert_eq!(
            value("PATH").as_deref(),
            Some("/usr/local/bin:/usr/bin:/bin")
        );
        let mut whole = OsString::from("STRANGE=");
        whole.push(strange);
        assert!(seen.contains(&whole), "{seen:?}");
        seen.retain(|one| {
            let one = one.to_string_lossy();
            let name = one.split('=').next().unwrap_or_default().to_owned();
            let known = [
                "EMPTY",
                "HAFT_RUN",
                "HAFT_TEST_MARK",
                "HOME",
                "LOGNAME",
                "PATH",
                "SHELL",
                "STRANGE",
                "USER",
            ];
            // Variables that bash sets for its children.
            let added = shell == Shell::Bash && ["_", "SHLVL"].contains(&name.as_str());
            !known.contains(&name.as_str()) && !added
        });
        assert_eq!(seen, Vec::<OsString>::new(), "{shell:?}");
    }
}

#[tokio::test]
async fn it_runs_in_its_folder_and_reads_nothing() {
    let stage = Stage::new();
    // The last number: its three descriptors, and the folder that ls has open.
    let script = "pwd -P; cat; tty; (: </dev/tty) 2>/dev/null || echo none; \
        ls /proc/self/fd | wc -l";
    for streams in [Streams::Merged, Streams::Separate] {
        let mut launch = stage.bash(script);
        launch.streams = streams;
        let finished = stage.run(launch).await;
        let dir = stage.folder.path().canonicalize().unwrap();
        let expected = format!("{}\nnot a tty\nnone\n4\n", dir.display());
        assert_eq!(text(&finished), expected);
    }
}

#[tokio::test]
async fn hostile_words_and_folders_arrive_as_they_are() {
    let stage = Stage::new();
    let every: Vec<u8> = (1..=255).collect();
    let mut words: Vec<OsString> = ["printf", "%s|"].map(OsString::from).to_vec();
    let hostile = [
        "", " ", "-n", "--", "$(id)", "; id", "a'b\"c", "`id`", "\\", "\\'", "%s", "\n", "x\n\n",
        "*", "~", "!!", "#", "é\u{1b}",
    ];
    words.extend(hostile.map(OsString::from));
    words.push(OsString::from_vec(every.clone()));
    let finished = stage.run(stage.direct(&words)).await;
    let mut expected: Vec<u8> = hostile
        .iter()
        .flat_map(|word| format!("{word}|").into_bytes())
        .collect();
    expected.extend(every);
    expected.push(b'|');
    assert_eq!(finished.output.head, expected);

    for name in ["-", "a b", "$(touch pwned)", "'\"", "new\nline", "x\n", "é"] {
        let folder = stage.path(name);
        std::fs::create_dir(&folder).unwrap();
        let mut launch = stage.bash("pwd -P");
        launch.dir = folder.clone();
        let finished = stage.run(launch).await;
        let folder = folder.canonicalize().unwrap();
        assert_eq!(
            text(&finished),
            format!("{}\n", folder.display()),
            "{name:?}"
        );
    }
    assert!(!stage.path("pwned").exists());
    let long = format!("echo {}", "x".repeat(120 << 10));
    assert_eq!(
        stage.run(stage.bash(&long)).await.output.total_bytes,
        (120 << 10) + 1
    );
}

#[tokio::test]
async fn a_command_in_the_background_is_like_any_other() {
    let stage = Stage::new();
    let mut launch = stage.bash(
        "echo $$; echo oops >&2; echo > ready; trap 'exit 5' TERM; while :; do sleep 0.01; done",
    );
    launch.streams = Streams::Separate;
    launch.keep.disk.as_mut().unwrap().when = haft_ops::executor::When::Always;
    let running = stage.ssh.start(launch).await.unwrap();
    stage.wait_for("ready").await;
    let mut pulse = running.pulse();
    pulse.wait_for(|pulse| pulse.bytes > 6).await.unwrap();
    let output = running.log(Stream::Output).unwrap().tail(100).unwrap();
    assert_eq!(
        String::from_utf8(output).unwrap(),
        format!("{}\n", running.pid())
    );
    assert!(running.finished().is_none());
    let begun = Instant::now();
    running.kill(Duration::from_secs(2)).await;
    assert!(begun.elapsed() < Duration::from_secs(2));
    let end = running.finished().unwrap();
    let finished = end.as_ref().as_ref().unwrap();
    assert_eq!(
        (finished.status, finished.ended),
        (Exit::Code(5), Ended::Cancelled)
    );
    let error = running.log(Stream::Error).unwrap().tail(100).unwrap();
    // Its shell may print a remark about the killed sleep.
    assert!(error.starts_with(b"oops\n"), "{error:?}");
    stage.gone(Duration::from_secs(1)).await;

    let running = stage.ssh.start(stage.bash("exit 3")).await.unwrap();
    let mut end = running.end();
    let end = end
        .wait_for(Option::is_some)
        .await
        .unwrap()
        .clone()
        .unwrap();
    assert_eq!(end.as_ref().as_ref().unwrap().status, Exit::Code(3));
    let dropped = stage
        .ssh
        .start(stage.bash("setsid sleep 1000 & wait"))
        .await
        .unwrap();
    drop(dropped);
    stage.gone(Duration::from_secs(1)).await;
}
