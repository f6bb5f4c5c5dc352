//! Calls that were let go on, and may not have happened yet.
//!
//! A path is resolved before its call happens. If a folder is moved in between, by a call
//! of another thread, the path leads somewhere else. So a move of a folder waits until the
//! calls before it have happened, and the calls after it wait for the move.

use super::raw::{Listener, Notification};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

/// Time to wait for the calls of other threads, which take microseconds. Some wait for long:
/// opening a FIFO, for example.
const PATIENCE: Duration = Duration::from_millis(100);

/// Time to wait for threads that do not wait themselves. A busy machine may not let them run
/// for a while.
const PATIENCE_IF_BUSY: Duration = Duration::from_secs(3);

/// Time between two looks.
const STEP: Duration = Duration::from_micros(50);

/// Time on a processor after which a thread has left a call about names of files.
const LONGEST_CALL: Duration = Duration::from_micros(500);

/// Number of calls from which on those that are over are forgotten now and then.
const MANY: usize = 256;

#[derive(Debug, Default)]
pub(super) struct Underway {
    calls: HashMap<u32, Begun>,
    /// Number of calls that were left when those that are over were last forgotten.
    left: usize,
    /// Notifications that arrived while others were waited for.
    arrived: VecDeque<Notification>,
}

/// The last call of a thread.
#[derive(Debug)]
struct Begun {
    number: i64,
    arguments: [u64; 6],
    /// Time that the thread had spent on a processor when it was first seen running.
    spent: Option<Duration>,
}

impl Underway {
    /// Notes a call that goes on.
    pub(super) fn begins(&mut self, thread: u32, number: i64, arguments: [u64; 6]) {
        if self.calls.len() >= MANY.max(2 * self.left) {
            self.calls.retain(|thread, begun| !begun.is_over(*thread));
            self.left = self.calls.len();
        }
        let begun = Begun {
            number,
            arguments,
            spent: None,
        };
        self.calls.insert(thread, begun);
    }

    /// Returns a notification that arrived while others were waited for.
    pub(super) fn arrived(&mut self) -> Option<Notification> {
        self.arrived.pop_front()
    }

    /// Waits until the noted calls have happened, apart from those of one thread. Returns
    /// `false` if haft cannot find out.
    pub(super) fn settle(&mut self, except: Option<u32>, listener: &Listener) -> bool {
        if let Some(thread) = except {
            // It makes another one.
            self.calls.remove(&thread);
        }
        let start = Instant::now();
        loop {
            // A thread that makes another call has left the one before.
            while is_ready(listener)
                && let Ok(call) = listener.receive()
            {
                self.calls.remove(&call.thread);
                self.arrived.push_back(call);
            }
            self.calls.retain(|thread, begun| !begun.is_over(*thread));
            if self.calls.is_empty() {
                return true;
            }
            let is_busy = self.calls.values().any(|begun| begun.spent.is_some());
            let patience = match is_busy {
                true => PATIENCE_IF_BUSY,
                false => PATIENCE,
            };
            if start.elapsed() > patience {
                self.calls.clear();
                return false;
            }
            std::thread::sleep(STEP);
        }
    }
}

fn is_ready(listener: &Listener) -> bool {
    let mut fds = [PollFd::new(listener, PollFlags::IN)];
    let polled = poll(&mut fds, Some(&Timespec::default()));
    let [seen] = fds.map(|fd| fd.revents());
    polled.is_ok() && seen.contains(PollFlags::IN)
}

impl Begun {
    fn is_over(&mut self, thread: u32) -> bool {
        let Some(text) = read(thread, "syscall") else {
            // The thread has ended.
            return true;
        };
        if let Some(present) = present(&text) {
            self.spent = None;
            return present != (self.number, self.arguments);
        }
        // It runs: in the call, or after it.
        let Some(spent) = spent(thread) else {
            return false;
        };
        let first = *self.spent.get_or_insert(spent);
        spent.saturating_sub(first) > LONGEST_CALL
    }
}

/// Returns the call in which a thread waits; `None` if it runs.
fn present(text: &str) -> Option<(i64, [u64; 6])> {
    let mut words = text.split_whitespace();
    let number = words.next()?.parse().ok()?;
    let mut arguments = [0; 6];
    for (argument, word) in arguments.iter_mut().zip(words) {
        *argument = u64::from_str_radix(word.trim_start_matches("0x"), 16).ok()?;
    }
    Some((number, arguments))
}

fn spent(thread: u32) -> Option<Duration> {
    let text = read(thread, "schedstat")?;
    let nanos = text.split_whitespace().next()?.parse().ok()?;
    Some(Duration::from_nanos(nanos))
}

#[expect(
    clippy::disallowed_methods,
    reason = "files of the kernel about a process"
)]
fn read(thread: u32, name: &str) -> Option<String> {
    std::fs::read_to_string(format!("/proc/{thread}/{name}")).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_waits_elsewhere_or_is_gone_has_left_its_call() {
        let begun = |number, arguments| Begun {
            number,
            arguments,
            spent: None,
        };
        // There is no such thread.
        assert!(begun(257, [0; 6]).is_over(u32::MAX));
        let (waits, end) = std::sync::mpsc::channel::<()>();
        let (send, receive) = std::sync::mpsc::channel();
        let waiting = std::thread::spawn(move || {
            send.send(rustix::thread::gettid()).unwrap();
            end.recv().ok();
        });
        let thread = receive.recv().unwrap().as_raw_nonzero().get();
        let thread = thread.cast_unsigned();
        let (number, arguments) = loop {
            let text = read(thread, "syscall").unwrap();
            match present(&text) {
                Some(present) => break present,
                None => std::thread::yield_now(),
            }
        };
        assert!(begun(libc::SYS_openat, [0; 6]).is_over(thread));
        assert!(!begun(number, arguments).is_over(thread));
        drop(waits);
        waiting.join().unwrap();
        let begin = Instant::now();
        while !begun(number, arguments).is_over(thread) {
            assert!(begin.elapsed() < Duration::from_secs(10));
        }
    }
}
