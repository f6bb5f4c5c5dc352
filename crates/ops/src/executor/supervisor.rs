//! The process between haft and a command.
//!
//! It is this binary, started again. It leads a session without a terminal, adopts the
//! orphans of the command's tree, and has one end of a socket to haft. When that socket
//! closes, haft has ended for whatever reason, and the supervisor ends the tree. It has one
//! thread and no async runtime, because it must start quickly and may wait for any of its
//! children.

mod confined;
mod start;
mod sweep;

use super::sandbox::{self, SessionLayers, SessionNetwork};
use super::wire::{self, Left, Order, Report};
use super::{Exit, GRACE, Streams, handle};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, WaitId, WaitIdOptions};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::time::Duration;

/// Interval for reaping orphans that have ended; nothing waits for it.
const TICK: Duration = Duration::from_millis(500);

/// Runs the hidden command of the embedding program. The order arrives on standard input.
#[must_use]
pub fn supervise() -> ExitCode {
    match serve() {
        Ok(()) => ExitCode::SUCCESS,
        // The error cannot be reported, but haft sees the socket close.
        Err(_) => ExitCode::FAILURE,
    }
}

fn serve() -> io::Result<()> {
    // At once, because the order may take a while to arrive and a Ctrl-C meanwhile is not
    // meant for this process.
    let _ = rustix::process::setsid();
    let mut socket = UnixStream::from(rustix::stdio::stdin().try_clone_to_owned()?);
    let null = null()?;
    rustix::stdio::dup2_stdin(&null)?;
    // Descriptors inherited from haft's parents must not reach the command.
    super::sandbox::keep_standard_streams_only()?;
    prefer_for_oom_kill();
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    // Does everything that does not need the order before it arrives.
    let malformed = || io::Error::from(io::ErrorKind::InvalidData);
    let prelude = wire::parse_prelude(&wire::read(&mut socket)?).ok_or_else(malformed)?;
    let session = match prelude {
        Some((common, _)) if common.joins_network() => Some(SessionNetwork::receive(&socket)?),
        _ => None,
    };
    // Kept to the end, because they hold the lock on the layers.
    let layers = match prelude {
        Some((_, count)) if count > 0 => Some(SessionLayers::receive(&socket, count)?),
        _ => None,
    };
    let ahead = prelude.map(|(common, _)| {
        let left = sandbox::leave(common, session.as_ref(), layers.as_ref());
        (common, left)
    });
    drop(session);
    let order = Order::parse(&wire::read(&mut socket)?).ok_or_else(malformed)?;
    let input = match order.reads {
        true => Some(handle::receive(&socket)?),
        false => None,
    };
    let listens = match order.notified {
        Some(calls) => Some((handle::receive(&socket)?, calls)),
        None => None,
    };
    match (&order.confinement, ahead) {
        (None, None) => watch_over(&order, input, socket, &null),
        (Some(confinement), Some((common, left))) if confinement.common() == common => {
            let handles = confined::Handles { input, listens };
            confined::enter_sandbox(&order, handles, confinement, left, socket, &null)
        }
        _ => Err(malformed()),
    }
}

fn watch_over(
    order: &Order,
    input: Option<OwnedFd>,
    mut socket: UnixStream,
    null: &File,
) -> io::Result<()> {
    let me = rustix::process::getpid();
    rustix::process::set_child_subreaper(Some(me))?;
    if order.streams == Streams::Merged {
        rustix::stdio::dup2_stderr(rustix::stdio::stdout())?;
    }
    let begun = start::spawn(order, input);
    // From here on, only the command's tree keeps the output open.
    rustix::stdio::dup2_stdout(null)?;
    rustix::stdio::dup2_stderr(null)?;
    let pid = match begun {
        Ok(pid) => pid,
        Err((refusal, detail)) => {
            return socket.write_all(&Report::Failed(refusal, detail).to_bytes());
        }
    };
    let pidfd = rustix::process::pidfd_open(pid, PidfdFlags::empty())?;
    let mut watcher = Watcher {
        me: me.as_raw_pid().unsigned_abs(),
        command: pid,
        pidfd,
        socket,
        status: None,
    };
    watcher.send(&Report::Started(pid.as_raw_pid().unsigned_abs()));
    watcher.run()
}

struct Watcher {
    me: u32,
    command: Pid,
    pidfd: OwnedFd,
    socket: UnixStream,
    /// Exit status of the command's own process.
    status: Option<Exit>,
}

/// Message from haft.
enum Message {
    /// End the tree, with this time between TERM and KILL.
    End(Duration),
    /// haft is gone.
    Closed,
}

impl Watcher {
    /// Ignores write errors: a broken socket will soon be seen as closed.
    fn send(&mut self, report: &Report) {
        let _ = self.socket.write_all(&report.to_bytes());
    }

    fn run(mut self) -> io::Result<()> {
        loop {
            let (socket, command) = self.wait()?;
            if command && self.ended() {
                return Ok(());
            }
            if socket {
                let message = self.read_message();
                let grace = match message {
                    Message::End(grace) => grace,
                    Message::Closed => GRACE,
                };
                let seen = sweep::end(self.me, self.command, grace);
                let status = self.status.or(seen).unwrap_or(Exit::Unknown);
                self.send(&Report::Gone(status));
                return Ok(());
            }
            let left = sweep::clear(self.me, self.command);
            if self.status.is_some() && left == Left::Nothing {
                sweep::reap(self.command);
                return Ok(());
            }
        }
    }

    /// Waits for a message, the end of the command, or a tick.
    fn wait(&self) -> io::Result<(bool, bool)> {
        let mut fds = vec![PollFd::new(&self.socket, PollFlags::IN)];
        if self.status.is_none() {
            fds.push(PollFd::from_borrowed_fd(self.pidfd.as_fd(), PollFlags::IN));
        }
        let tick = Timespec::try_from(TICK).ok();
        match poll(&mut fds, tick.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let came = |at: usize| fds.get(at).is_some_and(|fd| !fd.revents().is_empty());
        Ok((came(0), came(1)))
    }

    /// Reports the end of the command's own process. Returns whether nothing else is
    /// running.
    fn ended(&mut self) -> bool {
        let status = peek(self.command);
        self.status = Some(status);
        let left = sweep::clear(self.me, self.command);
        self.send(&Report::Exited(status, left));
        if left == Left::Nothing {
            sweep::reap(self.command);
        }
        left == Left::Nothing
    }

    fn read_message(&mut self) -> Message {
        let mut message = [0; 4];
        match self.socket.read_exact(&mut message) {
            Ok(()) => Message::End(Duration::from_millis(u32::from_le_bytes(message).into())),
            Err(_) => Message::Closed,
        }
    }
}

/// Returns the exit status of a child without reaping it. Until it is reaped, its pid and
/// process group id are not reused.
fn peek(pid: Pid) -> Exit {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    match rustix::process::waitid(WaitId::Pid(pid), options) {
        Ok(Some(status)) => match (status.exit_status(), status.terminating_signal()) {
            (Some(code), _) => Exit::Code(code),
            (None, Some(signal)) => Exit::Signal(signal),
            (None, None) => Exit::Unknown,
        },
        _ => Exit::Unknown,
    }
}

/// Makes the kernel kill the command first if memory runs out, not the user's programs.
#[expect(
    clippy::disallowed_methods,
    reason = "a file of the kernel about the process itself"
)]
fn prefer_for_oom_kill() {
    // If this fails, the value is already set.
    let _ = std::fs::write("/proc/self/oom_score_adj", "1000");
}

#[expect(
    clippy::disallowed_methods,
    reason = "the only device that a command reads"
)]
fn null() -> io::Result<File> {
    File::options().read(true).write(true).open("/dev/null")
}
