//! The process between haft and a command.
//!
//! It is this binary, started again. It leads a session without a terminal, is
//! the parent of whatever the command's tree leaves orphaned, and holds one end
//! of a socket to haft. The end of that socket is the end of haft, however that
//! came about, and then the end of the tree. There is one thread here and no
//! runtime: it has to start fast and it may wait for any child it has.

mod begin;
mod confined;
mod sweep;

use super::sandbox;
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

/// How often orphans that ended are cleared away. Nothing waits for it.
const TICK: Duration = Duration::from_millis(500);

/// What the hidden command of the embedding program does, and all it does. The
/// order comes through standard input.
#[must_use]
pub fn supervise() -> ExitCode {
    match serve() {
        Ok(()) => ExitCode::SUCCESS,
        // Nobody is there to be told: whoever gave the order sees the socket end.
        Err(_) => ExitCode::FAILURE,
    }
}

fn serve() -> io::Result<()> {
    // At once: it may be a while until there is an order, and a Ctrl-C meanwhile
    // is not for us.
    let _ = rustix::process::setsid();
    let mut line = UnixStream::from(rustix::stdio::stdin().try_clone_to_owned()?);
    let null = null()?;
    rustix::stdio::dup2_stdin(&null)?;
    // What haft's own parents left open is no business of a command.
    super::sandbox::keep_standard_streams_only()?;
    first_to_go();
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    // All that can be done without an order is done before one comes.
    let malformed = || io::Error::from(io::ErrorKind::InvalidData);
    let prelude = wire::parse_prelude(&wire::read(&mut line)?).ok_or_else(malformed)?;
    let ahead = prelude.map(|surface| (surface, sandbox::leave(surface)));
    let order = Order::parse(&wire::read(&mut line)?).ok_or_else(malformed)?;
    let input = match order.reads {
        true => Some(handle::receive(&line)?),
        false => None,
    };
    match (&order.confinement, ahead) {
        (None, None) => watch_over(&order, input, line, &null),
        (Some(confinement), Some((surface, left))) if confinement.surface() == surface => {
            confined::go_in(&order, input, confinement, left, line, &null)
        }
        _ => Err(malformed()),
    }
}

fn watch_over(
    order: &Order,
    input: Option<OwnedFd>,
    mut line: UnixStream,
    null: &File,
) -> io::Result<()> {
    let me = rustix::process::getpid();
    rustix::process::set_child_subreaper(Some(me))?;
    if order.streams == Streams::Merged {
        rustix::stdio::dup2_stderr(rustix::stdio::stdout())?;
    }
    let begun = begin::spawn(order, input);
    // From here on only the tree holds the output open.
    rustix::stdio::dup2_stdout(null)?;
    rustix::stdio::dup2_stderr(null)?;
    let pid = match begun {
        Ok(pid) => pid,
        Err((refusal, detail)) => {
            return line.write_all(&Report::Failed(refusal, detail).to_bytes());
        }
    };
    let pidfd = rustix::process::pidfd_open(pid, PidfdFlags::empty())?;
    let mut watcher = Watcher {
        me: me.as_raw_pid().unsigned_abs(),
        command: pid,
        pidfd,
        line,
        status: None,
    };
    watcher.say(&Report::Started(pid.as_raw_pid().unsigned_abs()));
    watcher.turn()
}

struct Watcher {
    me: u32,
    command: Pid,
    pidfd: OwnedFd,
    line: UnixStream,
    /// How the command's own process ended.
    status: Option<Exit>,
}

/// What the line brought.
enum Word {
    /// End the tree, with so long between asking and killing.
    End(Duration),
    /// haft is gone.
    Silence,
}

impl Watcher {
    /// A line that cannot be written to is one that will soon be seen to be shut.
    fn say(&mut self, report: &Report) {
        let _ = self.line.write_all(&report.to_bytes());
    }

    fn turn(mut self) -> io::Result<()> {
        loop {
            let (line, command) = self.wait()?;
            if command && self.ended() {
                return Ok(());
            }
            if line {
                let word = self.listen();
                let grace = match word {
                    Word::End(grace) => grace,
                    Word::Silence => GRACE,
                };
                let seen = sweep::end(self.me, self.command, grace);
                let status = self.status.or(seen).unwrap_or(Exit::Unknown);
                self.say(&Report::Gone(status));
                return Ok(());
            }
            let left = sweep::clear(self.me, self.command);
            if self.status.is_some() && left == Left::Nothing {
                sweep::reap(self.command);
                return Ok(());
            }
        }
    }

    /// Waits for the line, the command's end, or a tick.
    fn wait(&self) -> io::Result<(bool, bool)> {
        let mut fds = vec![PollFd::new(&self.line, PollFlags::IN)];
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

    /// The command's own process ended: says so, and whether that was all.
    fn ended(&mut self) -> bool {
        let status = peek(self.command);
        self.status = Some(status);
        let left = sweep::clear(self.me, self.command);
        self.say(&Report::Exited(status, left));
        if left == Left::Nothing {
            sweep::reap(self.command);
        }
        left == Left::Nothing
    }

    fn listen(&mut self) -> Word {
        let mut word = [0; 4];
        match self.line.read_exact(&mut word) {
            Ok(()) => Word::End(Duration::from_millis(u32::from_le_bytes(word).into())),
            Err(_) => Word::Silence,
        }
    }
}

/// How a child ended, leaving it unread: as long as it is, no stranger gets its
/// number, nor that of its group.
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

/// When memory runs out, the command goes and not what the person works with.
#[expect(
    clippy::disallowed_methods,
    reason = "a file of the kernel about the process itself"
)]
fn first_to_go() {
    // Where it cannot be written, it is so already.
    let _ = std::fs::write("/proc/self/oom_score_adj", "1000");
}

#[expect(clippy::disallowed_methods, reason = "the one device a command reads")]
fn null() -> io::Result<File> {
    File::options().read(true).write(true).open("/dev/null")
}
