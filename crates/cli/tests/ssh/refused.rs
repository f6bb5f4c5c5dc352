//! Commands that do not start, and the error for each.

use crate::host::script;
use crate::stage::{Stage, local, target};
use haft_ops::Error;
use haft_ops::executor::sandbox::{
    Confinement, Controls, Execution, Level, Network, Plan, Request, Strength,
};
use haft_ops::executor::{Ended, Executor, Launch, Refusal, Ssh, Target};
use std::ffi::OsString;
use std::net::TcpListener;
use std::os::unix::ffi::OsStringExt;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

async fn refused(ssh: &Ssh, launch: Launch) -> (Refusal, String) {
    let cancel = CancellationToken::new();
    let run = ssh.run(launch.clone(), &|_, _| {}, &cancel).await;
    let start = ssh.start(launch).await;
    let (Err(run), Err(start)) = (run, start) else {
        panic!("it began");
    };
    assert_eq!(run.to_string(), start.to_string());
    let text = run.to_string();
    let Error::CannotStart { refusal, .. } = run else {
        panic!("{run}");
    };
    (refusal, text)
}

#[tokio::test]
async fn a_command_that_does_not_start_on_the_host_is_explained() {
    let stage = Stage::new();
    std::fs::write(stage.path("plain"), "no program").unwrap();
    for (words, expected) in [
        (&["no-such-program"][..], Refusal::Missing),
        (&["/no/such/program"], Refusal::Missing),
        (&["./plain"], Refusal::NotExecutable),
        (&["/usr"], Refusal::NotExecutable),
        // A shell builtin, not a program.
        (&["haft_say"], Refusal::Missing),
        (&[""], Refusal::Missing),
        (&[], Refusal::Missing),
        (&["echo", "a\0b"], Refusal::Other),
    ] {
        let (refusal, text) = refused(&stage.ssh, stage.direct(words)).await;
        assert_eq!(refusal, expected, "{words:?} {text}");
    }
    let long = stage.bash(&"x".repeat(2 << 20));
    assert_eq!(refused(&stage.ssh, long).await.0, Refusal::TooLong);
    let mut nowhere = stage.bash("true");
    nowhere.dir = stage.path("gone");
    let (refusal, text) = refused(&stage.ssh, nowhere).await;
    assert_eq!(refusal, Refusal::NoDirectory);
    assert!(
        text.contains("no such working directory on 127.0.0.1"),
        "{text}"
    );
    for name in [
        b"A B".to_vec(),
        b"1".to_vec(),
        b"A;id".to_vec(),
        b"\xff".to_vec(),
    ] {
        let mut launch = stage.bash("touch ran");
        launch
            .environment
            .push((OsString::from_vec(name), "x".into()));
        assert_eq!(refused(&stage.ssh, launch).await.0, Refusal::Other);
    }
    let mut confined = stage.bash("touch ran");
    confined.confinement = Some(confinement(&stage));
    let (refusal, text) = refused(&stage.ssh, confined).await;
    assert_eq!(refusal, Refusal::Unconfined);
    assert!(text.contains("no sandbox on 127.0.0.1"), "{text}");
    assert!(!stage.path("ran").exists());
    let pipes = std::fs::read_dir(stage.host.keys.path().join("pipes")).unwrap();
    assert_eq!(pipes.count(), 0, "pipes were left");
}

/// An arbitrary confinement; it is not used.
fn confinement(stage: &Stage) -> Confinement {
    let request = Request {
        rules: haft_ops::scope::Mode::Workspace.rules(),
        work_dir: stage.path("."),
        roots: Vec::new(),
        readable: Vec::new(),
        temp: stage.path("."),
        protect: Vec::new(),
        repositories: Controls::default(),
        homes: Vec::new(),
        own: Vec::new(),
        denied: Vec::new(),
        sockets: Vec::new(),
        execution: Execution::Anywhere,
        network: Network::Off,
        limits: haft::commands::limits(),
    };
    Confinement {
        strength: Strength {
            level: Level::Full,
            landlock: 7,
        },
        plan: Plan::new(&request).unwrap(),
    }
}

#[tokio::test]
async fn an_unreachable_host_is_an_understandable_error() {
    let stage = Stage::new();
    let usual = || target(stage.host.keys.path(), stage.host.port);
    let with = |option: String| {
        let mut target = usual();
        target.options.insert(0, option);
        target
    };
    let closed = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    // Accepts connections and sends nothing.
    let mute = TcpListener::bind("127.0.0.1:0").unwrap();
    let unknown = stage.path("unknown_hosts");
    std::fs::write(&unknown, "").unwrap();
    let changed = stage.path("changed_hosts");
    let other = std::fs::read_to_string(stage.host.key("stranger.pub")).unwrap();
    std::fs::write(&changed, format!("[127.0.0.1]:{} {other}", stage.host.port)).unwrap();
    let cases = [
        (
            Target {
                port: Some(closed),
                ..usual()
            },
            "no SSH server listens on that port",
            "Connection refused",
        ),
        (
            Target {
                port: Some(mute.local_addr().unwrap().port()),
                ..usual()
            },
            "did not answer in time",
            "timed out",
        ),
        (
            with(format!(
                "IdentityFile={}",
                stage.host.key("stranger").display()
            )),
            "accepted none of your keys",
            "Permission denied (publickey",
        ),
        (
            with(format!("UserKnownHostsFile={}", unknown.display())),
            "host key is not known",
            "Host key verification failed",
        ),
        (
            with(format!("UserKnownHostsFile={}", changed.display())),
            "host key has changed",
            "Host key verification failed",
        ),
        (
            Target {
                host: "no-such-host.invalid".into(),
                ..usual()
            },
            "host not found",
            "Could not resolve hostname",
        ),
        (
            Target {
                environment: vec![("PATH".into(), "/nowhere".into())],
                ..usual()
            },
            "did not start it",
            "the program ssh was not found",
        ),
    ];
    for (mut target, why, printed) in cases {
        if why.starts_with("accepted") {
            target.options.retain(|option| !option.ends_with("/user"));
        }
        let ssh = Ssh::new(local(), target).unwrap();
        let begun = Instant::now();
        let (refusal, text) = refused(&ssh, stage.bash("touch ran")).await;
        assert_eq!(refusal, Refusal::Other, "{text}");
        assert!(text.contains(why) && text.contains(printed), "{text}");
        // Twice the connect timeout: it was tried twice.
        assert!(begun.elapsed() < Duration::from_secs(8), "{text}");
    }
    assert!(!stage.path("ran").exists());
}

#[tokio::test]
async fn a_limit_ends_the_wait_for_a_host() {
    let stage = Stage::new();
    let mute = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = mute.local_addr().unwrap().port();
    let ssh = Ssh::new(local(), target(stage.host.keys.path(), port)).unwrap();
    let mut launch = stage.bash("true");
    launch.limit = Some(Duration::from_millis(300));
    let begun = Instant::now();
    let cancel = CancellationToken::new();
    let finished = ssh.run(launch, &|_, _| {}, &cancel).await.unwrap();
    assert_eq!(finished.ended, Ended::TimedOut);
    assert!(begun.elapsed() < Duration::from_millis(1500));
}

#[tokio::test]
async fn an_invalid_host_is_refused_at_once() {
    let stage = Stage::new();
    for host in [
        "",
        "-oProxyCommand=id",
        "a b",
        "a\nb",
        "a\tb",
        "me@-x",
        "a\u{7f}",
    ] {
        let target = Target {
            host: host.into(),
            ..target(stage.host.keys.path(), 1)
        };
        assert!(Ssh::new(local(), target).is_err(), "{host:?}");
    }
    for option in ["-x", "ProxyCommand", "A=b\nc"] {
        let mut target = target(stage.host.keys.path(), 1);
        target.options.push(option.into());
        assert!(Ssh::new(local(), target).is_err(), "{option:?}");
    }
}

/// An account whose shell prints a greeting still works: its stderr before the command is
/// not part of the output.
#[tokio::test]
async fn nothing_of_the_users_environment_reaches_the_command() {
    let stage = Stage::new();
    let marker = stage.path("ssh");
    script(
        &marker,
        "#!/bin/sh\necho \"Warning: hello\" >&2\nexec /usr/bin/ssh \"$@\"\n",
    );
    let mut target = target(stage.host.keys.path(), stage.host.port);
    target.options.push("SendEnv=*".into());
    target.environment[0].1 = format!("{}:/usr/bin:/bin", stage.folder.path().display()).into();
    let ssh = Ssh::new(local(), target).unwrap();
    let mut launch = stage.bash("env");
    launch.streams = haft_ops::executor::Streams::Separate;
    let cancel = CancellationToken::new();
    let finished = ssh.run(launch, &|_, _| {}, &cancel).await.unwrap();
    let text = crate::stage::text(&finished);
    assert!(
        !text.contains("leak") && text.contains("HAFT_TEST_MARK"),
        "{text}"
    );
    assert_eq!(finished.error.total_bytes, 0);
}
