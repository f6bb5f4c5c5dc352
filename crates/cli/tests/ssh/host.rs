//! A private sshd on a loopback port, with its own keys.

use std::io::Read;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

pub(crate) struct Host {
    pub(crate) port: u16,
    pub(crate) keys: TempDir,
    sshd: Child,
}

/// Shell that is `/bin/sh` on the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shell {
    Own,
    Bash,
}

impl Host {
    pub(crate) fn new(shell: Shell) -> Self {
        if rustix::process::geteuid().is_root() {
            // Folder of its unprivileged process, which the package creates at boot.
            std::fs::create_dir_all("/run/sshd").unwrap();
        }
        let keys = tempfile::tempdir().unwrap();
        for name in ["host", "user", "stranger"] {
            let made = Command::new("ssh-keygen")
                .args(["-q", "-t", "ed25519", "-N", "", "-f"])
                .arg(keys.path().join(name))
                .status()
                .unwrap();
            assert!(made.success());
        }
        std::fs::copy(keys.path().join("user.pub"), keys.path().join("authorized")).unwrap();
        loop {
            let port = TcpListener::bind("127.0.0.1:0")
                .unwrap()
                .local_addr()
                .unwrap()
                .port();
            std::fs::write(keys.path().join("config"), config(keys.path(), port, shell)).unwrap();
            let public = std::fs::read_to_string(keys.path().join("host.pub")).unwrap();
            let known = format!("[127.0.0.1]:{port} {public}");
            std::fs::write(keys.path().join("known_hosts"), known).unwrap();
            let mut sshd = Command::new("/usr/sbin/sshd")
                .args(["-D", "-e", "-f"])
                .arg(keys.path().join("config"))
                .stdin(Stdio::null())
                .stderr(std::fs::File::create(keys.path().join("log")).unwrap())
                .spawn()
                .unwrap();
            // Another process may have taken the port meanwhile.
            if answers(&mut sshd, port) {
                return Self { port, keys, sshd };
            }
        }
    }

    pub(crate) fn key(&self, name: &str) -> PathBuf {
        self.keys.path().join(name)
    }

    /// Options that make ssh use this server and none of the user's files.
    pub(crate) fn options(keys: &Path) -> Vec<String> {
        let file = |name: &str| keys.join(name).display().to_string();
        vec![
            format!("IdentityFile={}", file("user")),
            format!("UserKnownHostsFile={}", file("known_hosts")),
            "GlobalKnownHostsFile=/dev/null".to_owned(),
            "IdentitiesOnly=yes".to_owned(),
            "StrictHostKeyChecking=yes".to_owned(),
            "ConnectTimeout=3".to_owned(),
        ]
    }
}

fn config(keys: &Path, port: u16, shell: Shell) -> String {
    let keys = keys.display();
    let mut config = format!(
        "Port {port}\nListenAddress 127.0.0.1\nHostKey {keys}/host\n\
         AuthorizedKeysFile {keys}/authorized\nPidFile none\nStrictModes no\nUsePAM no\n\
         PasswordAuthentication no\nPermitRootLogin yes\nMaxStartups 100\n\
         SetEnv HOST_SECRET=leak\nAcceptEnv *\n"
    );
    if shell == Shell::Bash {
        config.push_str("ForceCommand exec bash --posix -c 'IFS= read -r l && eval \"$l\"'\n");
    }
    config
}

/// Whether this server is the one that answers.
fn answers(sshd: &mut Child, port: u16) -> bool {
    let begun = Instant::now();
    while sshd.try_wait().unwrap().is_none() {
        let mut banner = [0; 4];
        if let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port))
            && stream.read_exact(&mut banner).is_ok()
        {
            return &banner == b"SSH-";
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "no sshd");
        std::thread::sleep(Duration::from_millis(5));
    }
    false
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = self.sshd.kill();
        let _ = self.sshd.wait();
    }
}

/// Installs a program that other users may run.
pub(crate) fn script(path: &Path, text: &str) {
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
}
