//! The cases: what the sandbox must prevent and allow.

use crate::bed::{Bed, CANARY, Who, found, helper};
use haft_ops::executor::sandbox::{
    Counting, Enforcement, Error, Execution, Level, Limits, Memory, Network, Plan, Processes,
    probe, processes,
};
use haft_ops::scope::Mode;
use std::net::{TcpListener, UdpSocket};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::time::Duration;

type Case = (&'static str, fn(Who, Level));

const CASES: &[Case] = &[
    ("files", files),
    ("restarted", restarted),
    ("secrets", secrets),
    ("protected", protected),
    ("pointers", pointers),
    ("git", git),
    ("repositories", repositories),
    ("other_names", other_names),
    ("network_off", network_off),
    ("network_on", network_on),
    ("processes", seeing_processes),
    ("signals", signals),
    ("calls", calls),
    ("fork_bomb", fork_bomb),
    ("memory", memory),
    ("environment", environment),
    ("temp", temp),
    ("devices", devices),
    ("inert", inert),
    ("strict", strict),
    ("read_only", read_only),
    ("privileges", privileges),
    ("home_as_work", home_as_work),
    ("work_in_temp", work_in_temp),
    ("death", death),
    ("whole_disk", whole_disk),
    ("nested_roots", nested_roots),
    ("probed_inside", probed_inside),
    ("controls", controls),
];

pub(crate) fn run(filter: Option<&str>) {
    let wanted = |name: &str| filter.is_none_or(|filter| name.contains(filter));
    if wanted("levels") {
        levels();
    }
    println!("{}", found());
    let mut failed = Vec::new();
    for who in Who::all() {
        for level in [Level::Full, Level::Partial] {
            for (name, case) in CASES.iter().filter(|(name, _)| wanted(name)) {
                println!("sandbox {name} {who:?} {level:?}");
                if std::panic::catch_unwind(|| case(who, level)).is_err() {
                    failed.push(format!("{name} {who:?} {level:?}"));
                }
            }
        }
    }
    assert!(failed.is_empty(), "failed: {failed:#?}");
    println!("test result: ok.");
}

fn levels() {
    if matches!(found(), Enforcement::None { .. }) {
        println!("skipped: {}", found());
        return;
    }
    let none = probe(&helper(None));
    assert_eq!(none.to_string(), "sandbox: none — switched off for a test");
    assert!(matches!(none.strength(), Err(Error::Unavailable { .. })));
    let partial = probe(&helper(Some(Level::Partial)));
    assert_eq!(
        partial.to_string(),
        "sandbox: partial — protected folders inside the workspace are not enforced for commands"
    );
    assert_eq!(partial.strength().unwrap().level, Level::Partial);
    let limits = |counting| Limits {
        processes: 100,
        counting,
        memory: Memory::Unlimited,
    };
    let here = helper(Some(Level::Full));
    println!(
        "{}",
        processes(&here, &found(), limits(Counting::WhereFree))
    );
    let counted = processes(&here, &found(), limits(Counting::Always));
    println!("{counted}");
    match counted {
        Processes::Limited(count) => assert_eq!(count, 100),
        Processes::NotLimited { reason } => assert!(reason.contains("root")),
    }
    // A plan that confines nothing and a Landlock version that is too old are refused.
    assert!(matches!(
        Bed::new(Who::Root, Level::Partial).map(|mut bed| {
            bed.mode = Mode::Off;
            bed.plan()
        }),
        Some(Err(Error::Unconfined))
    ));
    let bed = Bed::new(Who::Root, Level::Partial).unwrap();
    let bytes = bed.plan().unwrap().to_bytes();
    let sent = Plan::from_bytes(&bytes).unwrap();
    assert_eq!(sent.protected(), bed.plan().unwrap().protected());
    let mut demanding = bed;
    demanding.strength.landlock = 2;
    assert_eq!(demanding.sh("true").code, 125);
}

fn files(who: Who, level: Level) {
    let Some(mut bed) = Bed::new(who, level) else {
        return;
    };
    bed.write("more/x", "x");
    bed.roots = vec![bed.path("more")];
    bed.yes("echo hi > new && mkdir -p a/b && mv a c && rm -r c && cat new");
    bed.yes("echo hi > $BASE/more/new && ln new2 new3 2>/dev/null; ln new new2");
    bed.yes("cat $BASE/out/canary.txt > /dev/null; cat $BASE/home/plain; ls /usr > /dev/null");
    for script in [
        "echo x > $BASE/out/canary.txt",
        "echo x > $BASE/out/new",
        "rm $BASE/out/canary.txt",
        "mv $BASE/out/canary.txt stolen",
        "mkdir $BASE/out/d",
        "ln -s /x $BASE/out/l",
        "truncate -s 0 $BASE/out/canary.txt",
        "echo x > $BASE/home/.bashrc",
        "ln -s $BASE/out o; echo x > o/new",
        "ln $BASE/out/canary.txt hard && echo x > hard",
        "echo x > /etc/haft-box-test",
        "echo x > /usr/haft-box-test",
        "cd /; echo x > haft-box-test",
    ] {
        bed.no(script);
    }
    if level == Level::Full {
        // Landlock cannot restrict these.
        bed.no("chmod 777 $BASE/out/canary.txt");
        bed.no("touch -d 2001-01-01 $BASE/out/canary.txt");
    }
    assert_eq!(bed.read("out/canary.txt").as_deref(), Some(CANARY));
    assert_eq!(std::fs::read_dir(bed.path("out")).unwrap().count(), 1);
    assert_eq!(
        bed.yes("pwd").trim_end(),
        bed.path("work").to_str().unwrap()
    );
}

/// Starts the second supervisor as a separate program.
fn restarted(who: Who, level: Level) {
    let Some(mut bed) = Bed::new(who, level) else {
        return;
    };
    bed.way = "restart";
    for counting in [Counting::Always, Counting::WhereFree] {
        bed.limits.counting = counting;
        bed.yes("echo hi > new");
        bed.no("echo x > $BASE/out/new");
        assert_eq!(bed.act(&["unshare"]), r#"Some("EPERM")"#);
    }
}

fn secrets(who: Who, level: Level) {
    let Some(bed) = Bed::new(who, level) else {
        return;
    };
    std::os::unix::fs::symlink(bed.path("home/.ssh/id"), bed.path("work/l")).unwrap();
    for script in [
        "cat ~/.ssh/id",
        "cat ~/.netrc && test -s ~/.netrc",
        "cat l",
        "cat $BASE/own/database",
        "cat ~/.ssh/../.ssh/id",
        "cat /proc/self/root$HOME/.ssh/id",
        "echo x > ~/.ssh/authorized_keys",
        "echo x > $BASE/own/outputs/1.txt",
        "rm $BASE/own/outputs/1.txt",
        "grep -r canary ~/.ssh $BASE/own",
    ] {
        let text = match bed.sh(&format!("echo started; {script}")) {
            // Reading succeeds, but the file that hides the secret one is empty.
            ran if script.contains(".netrc") => ran.text,
            _ => bed.no(script),
        };
        assert!(!text.contains(CANARY), "{script}");
    }
    assert!(!bed.sh("ls -a ~/.ssh").text.contains("id"));
    assert_eq!(bed.yes("cat $BASE/own/outputs/1.txt"), "kept output\n");
    assert_eq!(bed.read("home/.ssh/id").as_deref(), Some(CANARY));
}

fn protected(who: Who, level: Level) {
    let Some(mut bed) = Bed::new(who, level) else {
        return;
    };
    bed.write("work/a/secret/f", "kept");
    bed.write("work/a/other/f", "x");
    bed.write("work/haft.yaml", "kept");
    bed.write("work/nested/.git/hooks/pre-commit", "kept");
    bed.write("work/nested/.git/config", "kept");
    bed.protect = vec!["a/secret".into(), "later".into()];
    let plan = bed.plan().unwrap();
    assert!(
        plan.watched()
            .iter()
            .any(|watched| watched.path == bed.path("work/later"))
    );
    assert!(
        plan.watched()
            .iter()
            .any(|watched| watched.path == bed.path("work/.git"))
    );
    assert!(plan.protected().contains(&bed.path("work/a/secret")));
    if level == Level::Partial {
        println!("skipped: only namespaces make a folder inside the workspace read-only");
        return;
    }
    for script in [
        "echo x > a/secret/f",
        "echo x > a/secret/new",
        "rm a/secret/f",
        "rm -rf a/secret",
        "mv a/secret a/s2",
        "mv a b",
        "rm -rf a",
        "ln a/secret/f l && echo x > l",
        "cp -l a/secret/f l2 && echo x > l2",
        "chmod 777 a/secret/f",
        "touch -d 2001-01-01 a/secret/f",
        "mount --bind . a/secret",
        "umount a/secret",
        "unshare -Urm umount a/secret",
        "echo x > haft.yaml",
        "mv haft.yaml y",
        "rm haft.yaml",
        "echo x > haft.tmp && mv haft.tmp haft.yaml",
        "echo x > nested/.git/hooks/pre-commit",
        "echo x > nested/.git/config",
        "mv nested/.git nested/g",
        "mv nested n2",
    ] {
        bed.no(script);
    }
    bed.yes("cat a/secret/f && mkdir -p a/other && echo x > a/other/f2 && echo x > a/new && mkdir later && mkdir nested/ok");
    assert_eq!(bed.read("work/a/secret/f").as_deref(), Some("kept"));
    assert_eq!(bed.read("work/haft.yaml").as_deref(), Some("kept"));
    assert_eq!(
        bed.read("work/nested/.git/hooks/pre-commit").as_deref(),
        Some("kept")
    );
    assert_eq!(
        std::fs::read_dir(bed.path("work/a/secret"))
            .unwrap()
            .count(),
        1
    );
}

/// Protected paths behind a pointer file or a link.
fn pointers(who: Who, level: Level) {
    let Some(mut bed) = Bed::new(who, level) else {
        return;
    };
    bed.write("work/.git", "gitdir: store/git\n");
    bed.write("work/store/git/hooks/pre-commit", "kept");
    bed.write("work/store/git/config", "kept");
    bed.write("work/real/f", "kept");
    std::os::unix::fs::symlink("real", bed.path("work/link")).unwrap();
    bed.protect = vec!["link".into()];
    let plan = bed.plan().unwrap();
    assert!(
        plan.watched()
            .iter()
            .any(|watched| watched.path == bed.path("work/link"))
    );
    for name in [
        "work/.git",
        "work/store/git/hooks",
        "work/store/git/config",
        "work/real",
    ] {
        assert!(
            plan.protected().contains(&bed.path(name)),
            "{name} {plan:?}"
        );
    }
    if level == Level::Full {
        for script in [
            "echo x > .git",
            "rm .git",
            "echo x > store/git/hooks/pre-commit",
            "mv store s",
            "mv store/git store/g",
            "echo x > link/f",
            "rm -rf real",
        ] {
            bed.no(script);
        }
    }
    // A link that appears where the plan saw a folder makes the run fail.
    let bytes = plan.to_bytes();
    std::fs::rename(bed.path("work/real"), bed.path("work/moved")).unwrap();
    std::os::unix::fs::symlink(bed.path("out"), bed.path("work/real")).unwrap();
    if level == Level::Full {
        let ran = bed.run_with(&bytes, &["true"]);
        assert_eq!(ran.code, 125, "{}", ran.text);
    }
}

fn git(who: Who, level: Level) {
    let Some(bed) = Bed::new(who, level) else {
        return;
    };
    if std::process::Command::new("git")
        .arg("--version")
        .output()
        .is_err()
    {
        println!("skipped: no git");
        return;
    }
    let me = "git -c user.name=n -c user.email=e@x";
    // A new repository, then the same one again, which is now protected.
    bed.yes(&format!(
        "git init -q . && echo 1 > f && git add f && {me} commit -qm one"
    ));
    bed.yes(&format!(
        "echo 2 > f && {me} commit -qam two && git checkout -qb side && {me} commit -q --allow-empty -m s \
         && git stash list && git gc -q && git log --oneline | wc -l"
    ));
    bed.yes("git init -q other && git clone -q . copy && test -f copy/f && git -C copy log -1 > /dev/null");
    bed.yes("git clone -q . other/copy && git -C other/copy status");
    bed.yes(&format!(
        "git worktree add -q wt && cd wt && echo w > w && git add w && {me} commit -qm w && cd .. \
         && git worktree remove wt && {me} merge -q wt && echo s >> f && {me} stash -q && {me} stash pop -q && git checkout -q f"
    ));
    bed.yes(&format!(
        "{me} commit -q --allow-empty -m r1 && {me} rebase -q -x 'echo ran >> rebased' HEAD~2 && grep -q ran rebased \
         && {me} rebase -q --onto HEAD~1 HEAD"
    ));
    if level == Level::Full {
        bed.no("git config core.pager evil");
        bed.no("echo evil > .git/hooks/post-commit");
        bed.no("mv .git g");
        bed.no("git -C copy config core.pager evil");
        assert!(!bed.read("work/.git/config").unwrap().contains("evil"));
    }
}

/// Repositories whose folder has another name, and what their configuration names.
fn repositories(who: Who, level: Level) {
    let Some(bed) = Bed::new(who, level) else {
        return;
    };
    let made = bed.free(
        "cd $BASE/work && export GIT_AUTHOR_NAME=n GIT_AUTHOR_EMAIL=e GIT_COMMITTER_NAME=n GIT_COMMITTER_EMAIL=e
         git init -q --separate-git-dir in.git one && git -C one commit -q --allow-empty -m one
         git init -q --bare deep/bare && mkdir -p two/three && echo 'gitdir: ../../in.git' > two/three/.git
         git -C one worktree add -q ../tree && git -C one config core.hooksPath ../myhooks
         git -C one config include.path $BASE/work/more.cfg && echo made",
    );
    assert_eq!(made.lines().last(), Some("made"), "{made}");
    bed.write("work/more.cfg", "[core]\n\tpager = cat\n");
    bed.write("work/myhooks/post-commit", "#!/bin/sh\n");
    let plan = bed.plan().unwrap();
    for name in [
        "in.git/config",
        "in.git/hooks",
        "deep/bare/config",
        "deep/bare/hooks",
        "one/.git",
        "two/three/.git",
        "tree/.git",
        "in.git/worktrees/tree/gitdir",
        "in.git/worktrees/tree/commondir",
        "more.cfg",
        "myhooks",
    ] {
        let path = bed.path(&format!("work/{name}"));
        assert!(plan.protected().contains(&path), "{name} {plan:?}");
    }
    if level == Level::Partial {
        return;
    }
    for git in ["in.git", "deep/bare"] {
        for script in [
            "mv @/HEAD h; echo evil >> @/config",
            "mv @/HEAD @/objects @/refs .; echo evil >> @/config",
            "mv @/HEAD h; echo evil > @/hooks/post-commit",
            "mv @/HEAD h; rm -f @/config",
            "ln @/config x && echo evil >> x",
            "echo evil > x && mv -f x @/config",
            // If `mv` copies the folder instead, the copy is another repository.
            "mv @ g && echo evil >> g/config",
        ] {
            let script = script.replace('@', git);
            bed.no(&script);
            bed.free(
                &"cd $BASE/work; for f in HEAD objects refs; do test -e $f && mv $f @/; done; test -e h && mv h @/HEAD"
                    .replace('@', git),
            );
        }
    }
    bed.no("echo evil > myhooks/post-commit");
    bed.no("echo evil > more.cfg");
    bed.no("echo 'gitdir: /tmp/x' > two/three/.git");
    bed.no("mv two two2");
    for name in ["in.git/config", "deep/bare/config", "more.cfg"] {
        let text = bed.read(&format!("work/{name}")).unwrap();
        assert!(!text.contains("evil"), "{name}: {text}");
    }
}

/// A protected file with a second hard link. The kernel does not allow hard links across
/// mounts, so only links that existed before matter.
fn other_names(who: Who, level: Level) {
    let Some(bed) = Bed::new(who, level) else {
        return;
    };
    if level == Level::Partial {
        return;
    }
    bed.write("work/.git/config", "kept");
    bed.write("work/.git/hooks/post-commit", "kept");
    let text = bed.no("ln .git/config x");
    assert!(text.contains("cross-device"), "{text}");
    let text = bed.no("ln .git/hooks/post-commit x");
    assert!(text.contains("cross-device"), "{text}");
}

fn network_off(who: Who, level: Level) {
    let Some(mut bed) = Bed::new(who, level) else {
        return;
    };
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    udp.set_read_timeout(Some(Duration::from_millis(50)))
        .unwrap();
    let tcp_address = tcp.local_addr().unwrap().to_string();
    let udp_address = udp.local_addr().unwrap().to_string();
    let refused = |text: String| {
        assert!(
            text == r#"Some("EPERM")"#
                || text == r#"Some("EACCES")"#
                || text == r#"Some("ENOENT")"#,
            "{who:?} {level:?} {text}"
        );
    };
    let denied = r#"Some("EPERM")"#;
    match level {
        // The command has a loopback of its own, where nothing listens.
        Level::Full => {
            assert_eq!(bed.act(&["tcp", &tcp_address]), r#"Some("ECONNREFUSED")"#);
            bed.act(&["udp", &udp_address]);
        }
        Level::Partial => {
            assert_eq!(bed.act(&["tcp", &tcp_address]), denied);
            assert_eq!(bed.act(&["udp", &udp_address]), denied);
        }
    }
    assert!(udp.recv(&mut [0; 8]).is_err());
    bed.no(&format!(
        "exec 3<>/dev/tcp/127.0.0.1/{}",
        tcp.local_addr().unwrap().port()
    ));
    assert_eq!(bed.act(&["pair"]), "ok");
    let mut families = vec![libc::AF_PACKET, libc::AF_VSOCK, libc::AF_ALG];
    if level == Level::Partial {
        families.push(libc::AF_NETLINK);
    }
    for family in families {
        assert_eq!(bed.act(&["family", &family.to_string()]), denied);
    }
    // Raw sockets need a right that no command has, and other netlink protocols are refused.
    assert_ne!(bed.act(&["family", &libc::AF_INET.to_string()]), "ok");
    assert_eq!(bed.act(&["audit"]), denied);
    // Sockets in the folders of services and sessions.
    let runtime = bed.path("runtime");
    std::fs::create_dir(&runtime).unwrap();
    bed.sockets = vec![runtime.clone()];
    let mut places = vec![Path::new("/tmp").to_owned(), runtime];
    if rustix::process::geteuid().is_root() {
        places.push("/run".into());
    }
    for place in places {
        let path = place.join(format!("haft-box-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let _listener = UnixListener::bind(&path).unwrap();
        rustix::fs::chmod(&path, 0o777.into()).unwrap();
        bed.give();
        refused(bed.act(&["unix", path.to_str().unwrap()]));
        std::fs::remove_file(&path).unwrap();
    }
    let name = format!("haft-box-{}", std::process::id());
    let address = {
        use std::os::linux::net::SocketAddrExt;
        std::os::unix::net::SocketAddr::from_abstract_name(&name).unwrap()
    };
    let _listener = UnixListener::bind_addr(&address).unwrap();
    assert_ne!(bed.act(&["abstract", &name]), "ok");
    if level == Level::Full {
        // Commands may use sockets among their own processes.
        assert_eq!(bed.act(&["listen", "own.sock"]), "ok");
    }
}

fn network_on(who: Who, level: Level) {
    let Some(mut bed) = Bed::new(who, level) else {
        return;
    };
    bed.network = Network::On;
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    assert_eq!(
        bed.act(&["tcp", &tcp.local_addr().unwrap().to_string()]),
        "ok"
    );
    assert_eq!(bed.act(&["udp", "127.0.0.1:9"]), "ok");
    assert_eq!(
        bed.act(&["family", &libc::AF_PACKET.to_string()]),
        r#"Some("EPERM")"#
    );
    let path = format!("/tmp/haft-box-on-{}", std::process::id());
    let _ = std::fs::remove_file(&path);
    let _listener = UnixListener::bind(&path).unwrap();
    rustix::fs::chmod(path.as_str(), 0o777.into()).unwrap();
    assert_ne!(bed.act(&["unix", &path]), "ok");
    std::fs::remove_file(&path).unwrap();
    if Path::new("/etc/resolv.conf").exists() {
        bed.yes("cat /etc/resolv.conf");
    }
}

fn seeing_processes(who: Who, level: Level) {
    let Some(bed) = Bed::new(who, level) else {
        return;
    };
    let mut canary = std::process::Command::new(if who == Who::Nobody { "setpriv" } else { "env" });
    if who == Who::Nobody && rustix::process::geteuid().is_root() {
        canary.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
    }
    let mut outside = canary
        .args(["sleep", "30"])
        .env("SECRET", CANARY)
        .spawn()
        .unwrap();
    let text = bed.sh("cat /proc/*/environ /proc/[0-9]*/task/*/environ | tr '\\0' '\\n'; cat /proc/1/environ; ls -l /proc/*/fd /proc/*/cwd; true").text;
    assert!(!text.contains(CANARY), "{text}");
    bed.no(&format!("cat /proc/{}/environ", outside.id()));
    if level == Level::Full {
        let text = bed.yes("echo /proc/[0-9]*; cat /proc/1/comm");
        let count = text.matches("/proc/").count();
        assert!((2..5).contains(&count), "{text}");
        bed.no("cat /proc/1/environ");
        bed.no("cat /proc/1/mem");
        bed.no("ls -l /proc/1/fd/");
    }
    for script in [
        "echo x > /proc/sys/kernel/core_pattern",
        "echo 1 > /proc/sys/vm/drop_caches",
        "echo b > /proc/sysrq-trigger",
    ] {
        bed.no(script);
    }
    let _ = outside.kill();
    let _ = outside.wait();
}

fn signals(who: Who, level: Level) {
    let Some(bed) = Bed::new(who, level) else {
        return;
    };
    let mut outside = std::process::Command::new("sleep");
    if who == Who::Nobody && rustix::process::geteuid().is_root() {
        outside = std::process::Command::new("setpriv");
        outside.args(["--reuid=65534", "--regid=65534", "--clear-groups", "sleep"]);
    }
    let mut outside = outside.arg("30").spawn().unwrap();
    std::thread::sleep(Duration::from_millis(50));
    let pid = outside.id().to_string();
    assert_ne!(bed.act(&["signal", &pid]), "ok");
    if level == Level::Full || bed.strength.landlock >= 6 {
        let _ = bed.act(&["signal-all"]);
    }
    std::thread::sleep(Duration::from_millis(50));
    assert!(outside.try_wait().unwrap().is_none(), "a signal got out");
    let _ = outside.kill();
    let _ = outside.wait();
}

fn calls(who: Who, level: Level) {
    let Some(bed) = Bed::new(who, level) else {
        return;
    };
    for call in [
        "ptrace", "io_uring", "bpf", "keyctl", "newuser", "unshare", "paste",
    ] {
        assert_eq!(
            bed.act(&[call]),
            r#"Some("EPERM")"#,
            "{call} {who:?} {level:?}"
        );
    }
    for call in [
        libc::SYS_mount,
        libc::SYS_setns,
        libc::SYS_pivot_root,
        libc::SYS_fsopen,
    ] {
        assert_eq!(
            bed.act(&["call", &call.to_string()]),
            r#"Some("EPERM")"#,
            "{call}"
        );
    }
    assert_eq!(bed.act(&["clone3"]), r#"Some("ENOSYS")"#);
    #[cfg(target_arch = "x86_64")]
    assert_eq!(bed.act(&["x32"]), "", "another ABI is killed");
    bed.no("unshare -U true");
    bed.no("unshare -m true");
    bed.no("mount -t tmpfs x $BASE/work");
    // Threads still start.
    bed.yes("git --version > /dev/null && sort --parallel=2 /etc/passwd > /dev/null");
}

fn fork_bomb(who: Who, level: Level) {
    let Some(mut bed) = Bed::new(who, level) else {
        return;
    };
    bed.limits.processes = 40;
    bed.limits.counting = Counting::Always;
    let counted = processes(&helper(Some(Level::Full)), &found(), bed.limits);
    if who == Who::Root && counted != Processes::Limited(40) {
        println!("skipped: {counted}");
        return;
    }
    let text = bed.act(&["fork", "150"]);
    let (made, failed) = text.split_once(' ').unwrap_or_else(|| panic!("{text}"));
    let (made, failed): (u32, u32) = (made.parse().unwrap(), failed.parse().unwrap());
    if level == Level::Partial && who == Who::Nobody {
        // The count includes everything that runs on the machine.
        assert_eq!(made + failed, 150);
    } else {
        assert!((20..40).contains(&made), "{text}");
    }
    if level == Level::Full {
        let mut child = bed
            .command(&["bash", "-c", ":(){ :|:& };:; sleep 30"])
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        let mut pipe = child.stdin.take().unwrap();
        std::io::Write::write_all(&mut pipe, &bed.plan().unwrap().to_bytes()).unwrap();
        std::thread::sleep(Duration::from_millis(700));
        let most = alive(":(){");
        child.kill().unwrap();
        child.wait().unwrap();
        std::thread::sleep(Duration::from_millis(500));
        assert!((2..=45).contains(&most), "{most}");
        assert_eq!(alive(":(){"), 0);
        // The next command removes the group that the killed one left behind.
        bed.yes("true");
    }
    let groups = Path::new("/sys/fs/cgroup/pids");
    if who == Who::Root && groups.exists() {
        let left = std::fs::read_dir(groups)
            .unwrap()
            .flatten()
            .filter(|entry| {
                // A group whose supervisor is alive belongs to another process.
                let name = entry.file_name().to_string_lossy().into_owned();
                name.strip_prefix("haft-box-")
                    .is_some_and(|pid| !Path::new("/proc").join(pid).exists())
            })
            .count();
        assert_eq!(left, 0, "groups are left behind");
    }
}

fn memory(who: Who, level: Level) {
    let Some(mut bed) = Bed::new(who, level) else {
        return;
    };
    bed.limits.memory = Memory::Bytes(4 << 30);
    assert_eq!(bed.act(&["allocate", "68719476736"]), r#"Some("ENOMEM")"#);
    bed.limits.memory = Memory::Unlimited;
    assert_eq!(bed.yes("ulimit -c"), "0\n");
}

/// Folders from which no program can be started.
fn inert(who: Who, level: Level) {
    use std::os::unix::fs::PermissionsExt;
    let Some(mut bed) = Bed::new(who, level) else {
        return;
    };
    let program = |name: &str, text: &str| {
        bed.write(name, text);
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(bed.path(name), mode).unwrap();
    };
    for folder in ["work", "work/src", "more", "project", "own/outputs", "out"] {
        program(&format!("{folder}/run.sh"), "#!/bin/sh\necho ran\n");
    }
    program("work/.git/HEAD", "ref: refs/heads/main\n");
    program("work/.git/hooks/pre-commit", "#!/bin/sh\necho ran\n");
    std::fs::copy("/bin/true", bed.path("work/true")).unwrap();
    bed.give();
    bed.roots = vec![bed.path("more")];
    let shut = [
        "./run.sh",
        "src/run.sh",
        ".git/hooks/pre-commit",
        "$BASE/more/run.sh",
        "$BASE/project/run.sh",
        "$BASE/own/outputs/run.sh",
        "./true",
    ];
    // Commands can start these programs.
    for program in shut {
        bed.yes(program);
    }
    bed.execution = Execution::OutsideRoots {
        nor: vec![bed.path("project"), bed.path("own/outputs")],
        except: Vec::new(),
    };
    for mode in [Mode::Workspace, Mode::ReadOnly, Mode::Strict] {
        bed.mode = mode;
        for program in shut {
            let text = bed.no(program);
            let is_covered = mode == Mode::Strict && text.contains("No such file");
            assert!(
                is_covered || text.contains("Permission denied"),
                "{program}: {text}"
            );
        }
    }
    bed.mode = Mode::Workspace;
    for script in [
        "cp run.sh new.sh && ./new.sh",
        "ln -s $PWD/run.sh $TMPDIR/link && $TMPDIR/link",
        "cd / && exec $BASE/work/run.sh",
        "env $BASE/work/run.sh",
        "find . -name run.sh -exec {} \\; | grep ran",
    ] {
        bed.no(script);
    }
    if level == Level::Full {
        bed.no("for loader in /lib64/ld-linux*.so.* /lib/ld-linux*.so.*; do $loader ./true && exit 0; done; exit 1");
    }
    // Everything else works as usual.
    assert_eq!(bed.yes("$BASE/out/run.sh"), "ran\n");
    assert_eq!(bed.yes("sh ./run.sh"), "ran\n");
    assert_eq!(bed.yes("cp run.sh $TMPDIR/x && $TMPDIR/x"), "ran\n");
    bed.yes("ls $BASE/project > /dev/null && echo hi > new && cat new $BASE/more/run.sh");
    bed.no("echo x > $BASE/project/new");
    // Exceptions apply to each folder separately.
    bed.execution = Execution::OutsideRoots {
        nor: vec![bed.path("project")],
        except: vec![bed.path("more")],
    };
    assert_eq!(bed.yes("$BASE/more/run.sh"), "ran\n");
    bed.no("./run.sh");
    bed.no("$BASE/project/run.sh");
}

fn environment(who: Who, level: Level) {
    let Some(bed) = Bed::new(who, level) else {
        return;
    };
    let text = bed.yes("env; ls -l /proc/self/fd/");
    assert!(text.contains("TMPDIR="), "{text}");
    // The standard streams, and the descriptor that `ls` itself opened.
    assert_eq!(text.matches(" -> ").count(), 4, "{text}");
    assert_eq!(
        bed.yes("id -u").trim_end(),
        match (who, rustix::process::geteuid().is_root()) {
            (Who::Root, _) => "0".to_owned(),
            (Who::Nobody, true) => "65534".to_owned(),
            (Who::Nobody, false) => rustix::process::geteuid().as_raw().to_string(),
        }
    );
}

fn temp(who: Who, level: Level) {
    let Some(bed) = Bed::new(who, level) else {
        return;
    };
    bed.yes("echo mine > $TMPDIR/t && test -w $TMPDIR && mktemp > /dev/null");
    assert_eq!(bed.read("temp/t").as_deref(), Some("mine\n"));
    let path = format!("/tmp/haft-box-secret-{}", std::process::id());
    std::fs::write(&path, CANARY).unwrap();
    if level == Level::Full {
        bed.yes("test -f /tmp/t && test -f /var/tmp/t");
        bed.no(&format!("cat {path}"));
        bed.no("ls /run/* && ls -A /run | grep .");
    }
    if level == Level::Partial {
        bed.no(&format!("echo x >> {path}"));
    }
    assert_eq!(std::fs::read_to_string(&path).unwrap(), CANARY);
    std::fs::remove_file(&path).unwrap();
}

fn devices(who: Who, level: Level) {
    let Some(bed) = Bed::new(who, level) else {
        return;
    };
    bed.yes("echo x > /dev/null && head -c 4 /dev/urandom > /dev/null && head -c 4 /dev/zero > /dev/null && cat <(echo x)");
    bed.no("head -c 1 /dev/tty");
    if level == Level::Full {
        bed.yes("echo x > /dev/shm/x && test -c /dev/ptmx && script -qc true /dev/null || ! command -v script");
        assert!(!bed.sh("ls /dev").text.contains("vda"));
    }
    for disk in ["/dev/vda", "/dev/sda", "/dev/nvme0n1"] {
        if Path::new(disk).exists() {
            bed.no(&format!("head -c 512 {disk}"));
        }
    }
    bed.no("mknod n b 1 0");
}

fn strict(who: Who, level: Level) {
    let Some(mut bed) = Bed::new(who, level) else {
        return;
    };
    bed.mode = Mode::Strict;
    bed.yes("echo x > new && cat new && cat /etc/passwd > /dev/null && ls /usr/bin > /dev/null && echo t > $TMPDIR/t");
    bed.yes("cat $BASE/own/outputs/1.txt && echo $PWD");
    for script in [
        "cat $BASE/out/canary.txt",
        "cat $BASE/home/plain",
        "ls $BASE/out",
        "ls /var/lib",
        "ls /root",
        "cat $BASE/home/.ssh/id",
    ] {
        bed.no(script);
    }
    if level == Level::Full {
        bed.no("stat $BASE/out/canary.txt");
    }
}

fn read_only(who: Who, level: Level) {
    let Some(mut bed) = Bed::new(who, level) else {
        return;
    };
    bed.write("work/f", "kept");
    bed.mode = Mode::ReadOnly;
    bed.yes("cat f && cat $BASE/home/plain && echo x > $TMPDIR/x && echo x > /dev/null");
    for script in [
        "echo x > f",
        "echo x > new",
        "rm f",
        "mkdir d",
        "echo x > $BASE/out/n",
        "cat ~/.ssh/id",
    ] {
        bed.no(script);
    }
    assert_eq!(bed.read("work/f").as_deref(), Some("kept"));
}

fn privileges(who: Who, level: Level) {
    let Some(bed) = Bed::new(who, level) else {
        return;
    };
    let text = bed.yes("grep -E '^(Cap|NoNewPrivs|Seccomp:)' /proc/self/status");
    for line in text.lines() {
        let value = line.split_whitespace().last().unwrap();
        match line.split(':').next().unwrap() {
            "NoNewPrivs" => assert_eq!(value, "1"),
            "Seccomp" => assert_eq!(value, "2"),
            // A user without capabilities cannot remove them from the bounding set, but
            // cannot gain them from it either.
            "CapBnd" if level == Level::Partial && who == Who::Nobody => {}
            _ => assert_eq!(value, "0000000000000000", "{text}"),
        }
    }
}

/// A home folder as the work folder still hides its keys.
fn home_as_work(who: Who, level: Level) {
    let Some(mut bed) = Bed::new(who, level) else {
        return;
    };
    bed.roots = vec![bed.path("home")];
    if level == Level::Partial {
        let text = bed.sh("true").text;
        assert!(text.contains("cannot be hidden"), "{text}");
        return;
    }
    bed.yes("echo x > ~/new");
    bed.no("cat ~/.ssh/id");
    bed.no("echo x > ~/.ssh/new");
    bed.no("rm -rf ~/.ssh ~/.netrc");
    bed.no("mv ~/.config/gcloud ~/g");
    // Otherwise the next command would find it under a name that is not hidden.
    bed.no("mv ~/.config ~/c");
    assert!(
        bed.plan()
            .unwrap()
            .watched()
            .iter()
            .any(|watched| watched.path == bed.path("home/.aws"))
    );
    assert_eq!(bed.read("home/.ssh/id").as_deref(), Some(CANARY));
}

/// A project in `/tmp`.
fn work_in_temp(who: Who, level: Level) {
    let Some(mut bed) = Bed::at(Path::new("/tmp"), who, level) else {
        return;
    };
    bed.write("work/haft.yaml", "kept");
    bed.yes("echo x > new && echo t > $TMPDIR/t && test -d $BASE/work");
    bed.no("echo x > $BASE/out/new");
    assert_eq!(bed.read("work/new").as_deref(), Some("x\n"));
    if level == Level::Full {
        bed.no("echo x > haft.yaml");
        bed.no("cat $BASE/out/canary.txt");
    }
    bed.mode = Mode::Strict;
    bed.yes("echo y > new");
    bed.no("cat $BASE/out/canary.txt");
    bed.mode = Mode::ReadOnly;
    bed.yes("cat new");
    bed.no("echo y > new2");
}

/// No process outlives the supervisor, whatever it does to avoid being killed.
fn death(who: Who, level: Level) {
    let Some(bed) = Bed::new(who, level) else {
        return;
    };
    if level == Level::Partial {
        println!("skipped: without a PID namespace haft's lifeline ends the command");
        return;
    }
    for way in ["split", "restart"] {
        let mut bed = Bed::new(who, level).unwrap();
        bed.way = way;
        let mark = format!("31.{}{}", std::process::id(), way.len());
        let script = format!(
            "trap '' TERM; setsid sleep {mark} & (sleep {mark} &) ; touch ready; sleep {mark}"
        );
        let mut child = bed
            .command(&["bash", "-c", &script])
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        let mut pipe = child.stdin.take().unwrap();
        std::io::Write::write_all(&mut pipe, &bed.plan().unwrap().to_bytes()).unwrap();
        let ready = bed.path("work/ready");
        for _ in 0..500 {
            if ready.exists() {
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        assert!(ready.exists() && alive(&mark) >= 2, "{way}");
        child.kill().unwrap();
        child.wait().unwrap();
        std::thread::sleep(Duration::from_millis(500));
        assert_eq!(alive(&mark), 0, "{way}");
    }
    drop(bed);
}

/// Returns the number of processes whose command line contains the mark.
fn alive(mark: &str) -> usize {
    std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok())
        .filter(|line| String::from_utf8_lossy(line).contains(mark))
        .count()
}

/// With the whole disk as a root, paths that are never writable stay so.
fn whole_disk(who: Who, level: Level) {
    let Some(mut bed) = Bed::new(who, level) else {
        return;
    };
    bed.write("work/haft.yaml", "kept");
    bed.roots = vec!["/".into()];
    if level == Level::Partial {
        assert_eq!(bed.sh("true").code, 125);
        return;
    }
    bed.yes("echo x > $BASE/out/new");
    for script in [
        "cat ~/.ssh/id",
        "echo x > haft.yaml",
        "mv $BASE/work $BASE/work2",
        "mv $BASE $BASE-2",
        "echo x > /proc/sys/kernel/core_pattern",
        "echo never > /sys/kernel/mm/transparent_hugepage/enabled",
        "echo x > /run/new",
    ] {
        bed.no(script);
    }
}

/// A root inside a root does not allow moving what is protected in the inner one.
fn nested_roots(who: Who, level: Level) {
    let Some(mut bed) = Bed::new(who, level) else {
        return;
    };
    bed.write("work/in/haft.yaml", "kept");
    bed.roots = vec!["in".into()];
    bed.yes("echo x > in/new && mv in/new out");
    if level == Level::Full {
        bed.no("mv in out2");
        bed.no("echo x > in/haft.yaml");
    }
}

/// If namespaces are refused, the probe finds what is left and reports why.
fn probed_inside(who: Who, level: Level) {
    let Some(bed) = Bed::new(who, level) else {
        return;
    };
    let inside = |words: &str| bed.sh(&format!("$SELF --rehearse {words}")).text;
    let version = bed.strength.landlock;
    assert_eq!(inside("landlock"), format!("yes {version}\n"));
    let full = inside(&format!("full {version}"));
    assert!(full.starts_with("no new namespaces: "), "{full}");
    assert!(inside(&format!("partial {version}")).starts_with("yes "));
    assert!(inside("partial 2").starts_with("no "));
}

/// Without the sandbox all of it works, so it is the sandbox that refuses it above.
fn controls(who: Who, level: Level) {
    let Some(bed) = Bed::new(who, level) else {
        return;
    };
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = tcp.local_addr().unwrap().to_string();
    let path = format!("/tmp/haft-box-control-{}", std::process::id());
    let _listener = UnixListener::bind(&path).unwrap();
    rustix::fs::chmod(path.as_str(), 0o777.into()).unwrap();
    let ran = bed.free(&format!(
        "cat ~/.ssh/id && echo x > $BASE/out/new && $SELF --act tcp {address} && \
         $SELF --act udp 127.0.0.1:9 && $SELF --act unix {path} && $SELF --act signal $$"
    ));
    std::fs::remove_file(&path).unwrap();
    assert!(ran.starts_with(&format!("{CANARY}ok\nok\nok\n")), "{ran}");
}
