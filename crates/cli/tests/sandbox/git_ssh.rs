//! git over ssh: a real sshd and a real agent, from inside the sandbox.

use crate::bed::{Answer, Bed, Level, answer_of, beds_at, in_each};
use serde_json::json;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// An sshd with a repository, which lets in whoever has the key in `home/.ssh`. It listens on
/// 127.0.0.2, a host like any other.
struct Host {
    port: u16,
    folder: TempDir,
    sshd: Child,
}

/// The user's agent, with the key.
struct Agent(Child);

impl Drop for Host {
    fn drop(&mut self) {
        let _ = self.sshd.kill();
        let _ = self.sshd.wait();
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn run(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {output:?}");
}

fn make_key(path: &Path) -> String {
    run(Command::new("ssh-keygen")
        .args(["-q", "-t", "ed25519", "-N", "", "-f"])
        .arg(path));
    std::fs::read_to_string(path.with_extension("pub")).unwrap()
}

impl Host {
    fn start(bed: &Bed) -> Self {
        if rustix::process::geteuid().is_root() {
            // Folder of its unprivileged process, which the package creates at boot.
            std::fs::create_dir_all("/run/sshd").unwrap();
        }
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let at = |name: &str| folder.path().join(name);
        let (own, users) = (make_key(&at("host")), make_key(&at("user")));
        std::fs::write(at("authorized"), users).unwrap();
        run(Command::new("sh").current_dir(folder.path()).args([
            "-c",
            "git init -q -b main source && cd source && echo first > word && git add word && \
             git -c user.name=a -c user.email=a@b.c commit -q -m first && cd .. && \
             git clone -q --bare source repo.git",
        ]));
        let probe = TcpListener::bind("127.0.0.2:0").unwrap();
        let port = probe.local_addr().unwrap().port();
        drop(probe);
        let config = format!(
            "Port {port}\nListenAddress 127.0.0.2\nHostKey {host}\nAuthorizedKeysFile {keys}\n\
             PidFile none\nStrictModes no\nUsePAM no\nPermitRootLogin yes\nPasswordAuthentication no\n",
            host = at("host").display(),
            keys = at("authorized").display(),
        );
        std::fs::write(at("config"), config).unwrap();
        let sshd = Command::new("/usr/sbin/sshd")
            .args(["-D", "-e", "-f"])
            .arg(at("config"))
            .stdin(Stdio::null())
            .stderr(std::fs::File::create(at("log")).unwrap())
            .spawn()
            .unwrap();
        let begun = Instant::now();
        while TcpStream::connect(("127.0.0.2", port)).is_err() {
            assert!(begun.elapsed() < Duration::from_secs(20), "no sshd");
            std::thread::sleep(Duration::from_millis(10));
        }
        bed.file("home/.ssh/known_hosts", format!("[127.0.0.2]:{port} {own}"));
        bed.file("home/.ssh/id", std::fs::read(at("user")).unwrap());
        Self { port, folder, sshd }
    }

    fn url(&self) -> String {
        let user = rustix::process::geteuid().as_raw();
        let output = Command::new("id").arg("-un").output().unwrap();
        let name = String::from_utf8(output.stdout).unwrap();
        let repository = self.folder.path().join("repo.git");
        assert!(!name.trim().is_empty(), "user {user}");
        format!(
            "ssh://{}@127.0.0.2:{}{}",
            name.trim(),
            self.port,
            repository.display()
        )
    }

    /// The subject of the newest commit of the repository.
    fn newest(&self) -> String {
        let output = Command::new("git")
            .arg("-C")
            .arg(self.folder.path().join("repo.git"))
            .args(["log", "-1", "--format=%s", "main"])
            .output()
            .unwrap();
        String::from_utf8(output.stdout).unwrap()
    }
}

impl Agent {
    fn start(bed: &Bed) -> Self {
        let mut command = bed.program("ssh-agent");
        command.args(["-D", "-a", &bed.at("run/agent")]);
        let agent = Self(command.spawn().unwrap());
        let begun = Instant::now();
        while !bed.has("run/agent") {
            assert!(begun.elapsed() < Duration::from_secs(20), "no agent");
            std::thread::sleep(Duration::from_millis(10));
        }
        let added = bed.free(
            "chmod 700 ~/.ssh && chmod 600 ~/.ssh/id && SSH_AUTH_SOCK=$PWD/../run/agent ssh-add -q ~/.ssh/id",
        );
        assert!(added.status.success(), "{added:?}");
        agent
    }

    fn keys(bed: &Bed) -> String {
        let listed = bed.free("SSH_AUTH_SOCK=$PWD/../run/agent ssh-add -L");
        String::from_utf8(listed.stdout).unwrap()
    }
}

/// Runs a command of a user with an agent.
fn bash(bed: &Bed, flags: &[&str], script: &str) -> Answer {
    let mut command = bed.haft(&["call", "bash", "-", "--json", "--approve", "auto"]);
    command
        .args(flags)
        .env("SSH_AUTH_SOCK", bed.path("run/agent"));
    answer_of(command, &json!({ "command": script, "timeout": 60 }))
}

fn full() -> Vec<Bed> {
    beds_at(&[Level::Full])
}

const OPEN: [&str; 2] = ["--network", "127.0.0.2"];

#[test]
fn git_clones_fetches_and_pushes_over_ssh() {
    in_each(full(), |bed| {
        let (host, _agent) = (Host::start(bed), Agent::start(bed));
        let clone = format!("git clone -q {} got && cat got/word", host.url());
        bed.user("ssh_agent: true\n");
        let closed = bash(bed, &[], &clone);
        let refusal = format!(
            "[the sandbox refused connections to 127.0.0.2:{}",
            host.port
        );
        assert!(closed.has(&refusal) && !closed.has("first"), "{closed:?}");
        let cloned = bash(bed, &OPEN, &clone);
        assert!(cloned.has("first"), "{cloned:?}");
        let pushed = bash(
            bed,
            &OPEN,
            "cd got && git config user.name a && git config user.email a@b.c && \
             git commit -q --allow-empty -m second && git push -q origin HEAD:main && \
             git fetch && git log -1 --format=%s origin/main",
        );
        assert!(pushed.has("second"), "{pushed:?}");
        assert_eq!(host.newest(), "second\n");
    });
}

#[test]
fn without_the_users_word_git_has_neither_keys_nor_known_hosts() {
    in_each(full(), |bed| {
        let (host, _agent) = (Host::start(bed), Agent::start(bed));
        let clone = format!("git clone -q {} got; ls got; ssh-add -l", host.url());
        for project in ["", "ssh_agent: true\n"] {
            bed.file("work/haft.yaml", project);
            let flags = [OPEN.as_slice(), &["--trust"]].concat();
            let answer = bash(bed, &flags, &clone);
            assert!(answer.has("Host key verification failed"), "{answer:?}");
            assert!(answer.has("ssh_agent: true"), "{answer:?}");
            assert!(
                answer.has("Could not open a connection to your"),
                "{answer:?}"
            );
        }
    });
}

#[test]
fn commands_can_only_log_in_with_the_agent() {
    in_each(full(), |bed| {
        let (_host, _agent) = (Host::start(bed), Agent::start(bed));
        bed.user("ssh_agent: true\n");
        let keys = Agent::keys(bed);
        let tried = bash(
            bed,
            &[],
            "ssh-add -L > key.pub; cat key.pub; ssh-add -D; ssh-add -d key.pub; \
             echo x > x; ssh-keygen -Y sign -f key.pub -n git x; ls x.sig; \
             ls -a ~/.ssh; cat ~/.ssh/id; known=${GIT_SSH_COMMAND##*UserKnownHostsFile=}; \
             echo x >> ${known%% *}; rm -f $SSH_AUTH_SOCK; ls $SSH_AUTH_SOCK",
        );
        assert!(keys.starts_with("ssh-ed25519 "), "{keys}");
        assert!(tried.has(keys.trim()), "{tried:?}");
        assert!(tried.has("agent refused operation"), "{tried:?}");
        assert!(tried.has("cannot access 'x.sig'"), "{tried:?}");
        assert!(!tried.has("OPENSSH PRIVATE KEY"), "{tried:?}");
        assert!(
            tried.text.matches("Read-only file system").count() >= 2,
            "{tried:?}"
        );
        assert_eq!(Agent::keys(bed), keys);
    });
}
