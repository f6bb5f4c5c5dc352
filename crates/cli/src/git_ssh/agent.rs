//! The user's ssh agent and known hosts, for commands.
//!
//! haft listens on a socket of its own, in a folder that commands can read, and passes to the
//! agent only what ssh needs to log in. So a command can neither change, remove nor lock keys,
//! nor sign anything else, such as commits. The keys themselves never leave the agent.

use crate::output;
use haft::ops::private;
use haft_config::Settings;
use std::ffi::OsStr;
use std::fs::OpenOptions;
use std::io::{self, Read, Write};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Maximum size of a message in bytes, as in OpenSSH.
const MAX_MESSAGE: usize = 256 << 10;

/// Maximum number of connections at a time; more are closed at once.
const MAX_CONNECTIONS: usize = 64;

/// Maximum size of the known hosts that are copied.
const MAX_KNOWN_HOSTS: u64 = 4 << 20;

/// Maximum length of a socket's path in bytes.
const MAX_PATH: usize = 107;

/// Numbers of messages in the agent's protocol.
mod message {
    pub(super) const FAILURE: u8 = 5;
    pub(super) const LIST_KEYS: u8 = 11;
    pub(super) const SIGN: u8 = 13;
    pub(super) const EXTENSION: u8 = 27;
}

/// Message of ssh with which a user logs in.
const LOGIN: u8 = 50;

/// Files for ssh in commands.
pub(super) struct Access {
    /// The folder around them.
    pub(super) folder: PathBuf,
    /// Copy of the user's known hosts.
    pub(super) known_hosts: PathBuf,
    /// Socket that leads to the agent, if one is running.
    pub(super) socket: Option<PathBuf>,
}

/// Returns the files for this process, which are made at the first use.
pub(super) fn access(settings: &Settings, agent: Option<&OsStr>) -> Option<&'static Access> {
    static ACCESS: OnceLock<Option<Access>> = OnceLock::new();
    let note = |text: String| {
        if !settings.quiet {
            output::note(&text);
        }
    };
    let make = || {
        let state = settings.folders.state.as_deref()?;
        let folder = state.join("agent");
        let known = settings.folders.home.as_deref();
        let known = known.map(|home| home.join(".ssh/known_hosts"));
        let known_hosts = match copy_known_hosts(known.as_deref(), &folder) {
            Ok(copy) => copy,
            Err(error) => {
                note(format!(
                    "git over ssh is not set up: {}: {error}",
                    folder.display()
                ));
                return None;
            }
        };
        let socket = match agent {
            None => Err(io::Error::other(
                "SSH_AUTH_SOCK is not set; start an agent with `eval $(ssh-agent)` and add a key with `ssh-add`",
            )),
            Some(agent) => listen(&folder, PathBuf::from(agent)),
        };
        let socket = socket
            .map_err(|error| note(format!("ssh_agent: commands cannot use the agent: {error}")))
            .ok();
        Some(Access {
            folder,
            known_hosts,
            socket,
        })
    };
    ACCESS.get_or_init(make).as_ref()
}

/// Copies the known hosts into the folder.
#[expect(
    clippy::disallowed_methods,
    reason = "the user's file, and haft's own in its state folder"
)]
fn copy_known_hosts(from: Option<&Path>, folder: &Path) -> io::Result<PathBuf> {
    private::folder(folder)?;
    let mut content = Vec::new();
    if let Some(file) = from.and_then(|path| std::fs::File::open(path).ok())
        && file.metadata()?.is_file()
    {
        file.take(MAX_KNOWN_HOSTS).read_to_end(&mut content)?;
    }
    let (to, fresh) = (folder.join("known_hosts"), folder.join(random_name()));
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    private::file(&options, &fresh)?.write_all(&content)?;
    std::fs::rename(&fresh, &to)?;
    Ok(to)
}

fn random_name() -> String {
    let mut bytes = [0_u8; 4];
    let _ = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty());
    format!("{:08x}", u32::from_be_bytes(bytes))
}

/// Listens in the folder until the process ends.
fn listen(folder: &Path, agent: PathBuf) -> io::Result<PathBuf> {
    let socket = folder.join(random_name());
    if socket.as_os_str().len() > MAX_PATH {
        return Err(io::Error::other(format!(
            "the path of a socket in {} would be too long; set XDG_STATE_HOME to a shorter one",
            folder.display()
        )));
    }
    remove_stale(folder);
    let listener = UnixListener::bind(&socket)?;
    let accept = move || {
        static OPEN: AtomicUsize = AtomicUsize::new(0);
        for client in listener.incoming().flatten() {
            if OPEN.fetch_add(1, Ordering::Relaxed) >= MAX_CONNECTIONS {
                OPEN.fetch_sub(1, Ordering::Relaxed);
                continue;
            }
            let agent = agent.clone();
            let started = spawn(move || {
                // Both sides see the connection close.
                let _ = serve(client, &agent);
                OPEN.fetch_sub(1, Ordering::Relaxed);
            });
            if started.is_err() {
                OPEN.fetch_sub(1, Ordering::Relaxed);
            }
        }
    };
    spawn(accept)?;
    Ok(socket)
}

fn spawn(work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let builder = std::thread::Builder::new().name("ssh-agent".to_owned());
    builder.spawn(work).map(drop)
}

/// Removes the sockets of processes that have ended.
#[expect(
    clippy::disallowed_methods,
    reason = "haft's own sockets in its state folder"
)]
fn remove_stale(folder: &Path) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        // A connection to a file is refused too.
        if !entry.file_type().is_ok_and(|kind| kind.is_socket()) {
            continue;
        }
        let refused = UnixStream::connect(entry.path());
        if refused.is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// Answers the requests of one client.
fn serve(mut client: UnixStream, agent: &Path) -> io::Result<()> {
    let mut upstream: Option<UnixStream> = None;
    loop {
        let request = receive(&mut client)?;
        if !is_permitted(&request) {
            send(&mut client, &[message::FAILURE])?;
            continue;
        }
        let agent = match &mut upstream {
            Some(agent) => agent,
            none => none.insert(UnixStream::connect(agent)?),
        };
        send(agent, &request)?;
        let answer = receive(agent)?;
        send(&mut client, &answer)?;
    }
}

fn receive(from: &mut UnixStream) -> io::Result<Vec<u8>> {
    let mut length = [0; 4];
    from.read_exact(&mut length)?;
    let length = usize::try_from(u32::from_be_bytes(length)).unwrap_or(usize::MAX);
    if length > MAX_MESSAGE {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut content = vec![0; length];
    from.read_exact(&mut content)?;
    Ok(content)
}

fn send(to: &mut UnixStream, content: &[u8]) -> io::Result<()> {
    let length = u32::try_from(content.len()).map_err(io::Error::other)?;
    to.write_all(&[&length.to_be_bytes(), content].concat())
}

/// Whether a request only lists keys, logs in, or says to which host a login belongs.
fn is_permitted(request: &[u8]) -> bool {
    match request.split_first() {
        Some((&message::LIST_KEYS, rest)) => rest.is_empty(),
        Some((&message::SIGN, rest)) => is_login(rest).is_some(),
        Some((&message::EXTENSION, rest)) => {
            text(rest).is_some_and(|(name, _)| name == b"session-bind@openssh.com")
        }
        _ => false,
    }
}

/// Returns something if what is to be signed is the login of a user.
fn is_login(request: &[u8]) -> Option<()> {
    let (_key, rest) = text(request)?;
    let (signed, _flags) = text(rest)?;
    let (_session, rest) = text(signed)?;
    let (&LOGIN, rest) = rest.split_first()? else {
        return None;
    };
    let (_user, rest) = text(rest)?;
    let (service, rest) = text(rest)?;
    let (method, _) = text(rest)?;
    let is_known = matches!(
        method,
        b"publickey" | b"publickey-hostbound-v00@openssh.com"
    );
    (service == b"ssh-connection" && is_known).then_some(())
}

/// Splits off a string, which begins with its length.
fn text(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    rest.split_at_checked(usize::try_from(u32::from_be_bytes(*length)).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn string(content: &[u8]) -> Vec<u8> {
        let length = u32::try_from(content.len()).unwrap();
        [&length.to_be_bytes(), content].concat()
    }

    fn sign(data: &[u8]) -> Vec<u8> {
        [&[13][..], &string(b"key"), &string(data), &[0; 4]].concat()
    }

    fn login(service: &[u8], method: &[u8]) -> Vec<u8> {
        let parts = [b"git", service, method].map(string).concat();
        [&string(&[7; 32])[..], &[50], &parts, &[1]].concat()
    }

    #[test]
    fn only_listing_and_logging_in_are_passed_on() {
        let bind = [&[27][..], &string(b"session-bind@openssh.com"), b"x"].concat();
        for request in [
            vec![11],
            bind,
            sign(&login(b"ssh-connection", b"publickey")),
            sign(&login(
                b"ssh-connection",
                b"publickey-hostbound-v00@openssh.com",
            )),
        ] {
            assert!(is_permitted(&request), "{request:?}");
            // Cut off anywhere, it is nothing that the agent should get.
            assert!(!is_permitted(&request[..request.len().min(5) - 1]));
        }
        let other = [&[27][..], &string(b"query")].concat();
        let commit = [b"SSHSIG".to_vec(), string(b"git"), string(b"sha512")].concat();
        for request in [
            vec![],
            vec![11, 0],
            vec![17],
            vec![18],
            vec![19],
            vec![22],
            vec![25],
            other,
            sign(&commit),
            sign(b""),
            sign(&login(b"ssh-userauth", b"publickey")),
            sign(&login(b"ssh-connection", b"password")),
        ] {
            assert!(!is_permitted(&request), "{request:?}");
        }
    }
}
