//! The filter that decides which system calls are notified. It sees the open flags, so that
//! opening a file for reading never leaves the kernel.

use super::calls::{ALWAYS, OF_GIT, OPENS, WRITES};
use crate::executor::wire::Notified;
use libc::{c_long, sock_filter};

const LOAD: u16 = 0x20;
const IF_EQUAL: u16 = 0x15;
const IF_ANY_BIT: u16 = 0x45;
const RETURN: u16 = 0x06;

/// Position of the lower half of an argument in the data of a call.
const fn argument(number: u32) -> u32 {
    let half = if cfg!(target_endian = "big") { 4 } else { 0 };
    16 + 8 * number + half
}

/// Returns the filter. The architecture is not checked, because the filter that confines
/// the command kills calls of another one.
pub(super) fn program(notified: Notified) -> Vec<sock_filter> {
    // For each `open`: four lines that decide by its flags.
    const OPEN_BLOCK: usize = 4;
    let always = match notified {
        Notified::Changes => ALWAYS,
        Notified::GitConfigs => OF_GIT,
    };
    let checks = 1 + OPENS.len() + always.len();
    let opens = checks + 1;
    let notify = opens + OPEN_BLOCK * OPENS.len();
    let mut lines = vec![line(LOAD, 0, 0, 0)];
    for (place, (number, _)) in OPENS.iter().enumerate() {
        let target = opens + OPEN_BLOCK * place;
        lines.push(jump(IF_EQUAL, lines.len(), target, word(*number)));
    }
    for number in always {
        lines.push(jump(IF_EQUAL, lines.len(), notify, word(*number)));
    }
    lines.push(line(RETURN, 0, 0, libc::SECCOMP_RET_ALLOW));
    let wanted = match notified {
        Notified::Changes => WRITES,
        Notified::GitConfigs => libc::O_CREAT,
    };
    for (_, flags) in OPENS {
        lines.push(line(LOAD, 0, 0, argument(*flags)));
        // Ignore `O_PATH`.
        let path = libc::O_PATH.cast_unsigned();
        // Backwards jumps do not exist, so the end of the block allows.
        lines.push(jump(IF_ANY_BIT, lines.len(), lines.len() + 2, path));
        lines.push(jump(
            IF_ANY_BIT,
            lines.len(),
            notify,
            wanted.cast_unsigned(),
        ));
        lines.push(line(RETURN, 0, 0, libc::SECCOMP_RET_ALLOW));
    }
    debug_assert_eq!(lines.len(), notify);
    lines.push(line(RETURN, 0, 0, libc::SECCOMP_RET_USER_NOTIF));
    lines
}

fn line(code: u16, jt: u8, jf: u8, k: u32) -> sock_filter {
    sock_filter { code, jt, jf, k }
}

/// Returns an instruction at `from` that continues at `target` if its condition is true.
fn jump(code: u16, from: usize, target: usize, k: u32) -> sock_filter {
    let distance = target.saturating_sub(from + 1);
    line(code, u8::try_from(distance).unwrap_or(u8::MAX), 0, k)
}

fn word(number: c_long) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Interprets the filter for one call.
    fn judge(filter: Notified, number: c_long, arguments: [u64; 6]) -> u32 {
        let mut data = [0_u8; 64];
        data[0..4].copy_from_slice(&word(number).to_ne_bytes());
        for (place, value) in arguments.iter().enumerate() {
            data[16 + 8 * place..24 + 8 * place].copy_from_slice(&value.to_ne_bytes());
        }
        let program = program(filter);
        let (mut at, mut held) = (0, 0_u32);
        loop {
            let now = program[at];
            at += 1;
            let test = match now.code {
                LOAD => {
                    let from = now.k as usize;
                    held = u32::from_ne_bytes(data[from..from + 4].try_into().unwrap());
                    continue;
                }
                IF_EQUAL => held == now.k,
                IF_ANY_BIT => held & now.k != 0,
                RETURN => return now.k,
                code => panic!("{code}"),
            };
            at += usize::from(if test { now.jt } else { now.jf });
        }
    }

    fn notified(number: c_long, arguments: [u64; 6]) -> bool {
        notified_of(Notified::Changes, number, arguments)
    }

    fn notified_of(filter: Notified, number: c_long, arguments: [u64; 6]) -> bool {
        match judge(filter, number, arguments) {
            libc::SECCOMP_RET_USER_NOTIF => true,
            libc::SECCOMP_RET_ALLOW => false,
            other => panic!("{other:x}"),
        }
    }

    #[test]
    fn only_opens_that_can_change_something_are_notified() {
        let openat = |flags: i32| {
            let flags = u64::from(flags.cast_unsigned());
            notified(
                libc::SYS_openat,
                [0, 0, flags | 0xffff_ffff_0000_0000, 0, 0, 0],
            )
        };
        for quiet in [
            libc::O_RDONLY,
            libc::O_DIRECTORY | libc::O_CLOEXEC | libc::O_NONBLOCK,
            libc::O_PATH | libc::O_RDWR | libc::O_CREAT,
        ] {
            assert!(!openat(quiet), "{quiet:o}");
        }
        for loud in [
            libc::O_WRONLY,
            libc::O_RDWR | libc::O_APPEND,
            libc::O_RDONLY | libc::O_CREAT,
            libc::O_RDONLY | libc::O_TRUNC,
            libc::O_TMPFILE | libc::O_RDWR,
        ] {
            assert!(openat(loud), "{loud:o}");
        }
        #[cfg(target_arch = "x86_64")]
        {
            assert!(notified(libc::SYS_open, [0, 1, 0, 0, 0, 0]));
            assert!(!notified(libc::SYS_open, [0, 0, 1, 0, 0, 0]));
        }
    }

    #[test]
    fn without_recording_only_what_git_needs_is_notified() {
        let of_git = |number, arguments| notified_of(Notified::GitConfigs, number, arguments);
        let openat = |flags: i32| {
            let flags = u64::from(flags.cast_unsigned());
            of_git(libc::SYS_openat, [0, 0, flags, 0, 0, 0])
        };
        assert!(openat(
            libc::O_RDWR | libc::O_CREAT | libc::O_EXCL | libc::O_CLOEXEC
        ));
        assert!(openat(libc::O_WRONLY | libc::O_CREAT));
        for quiet in [libc::O_RDONLY, libc::O_RDWR | libc::O_TRUNC, libc::O_EXCL] {
            assert!(!openat(quiet), "{quiet:o}");
        }
        for number in OF_GIT {
            assert!(ALWAYS.contains(number), "{number}");
            assert!(of_git(*number, [0; 6]), "{number}");
        }
        assert!(!of_git(libc::SYS_unlinkat, [0; 6]));
        assert!(!of_git(libc::SYS_mkdirat, [0; 6]));
    }

    #[test]
    fn every_notified_call_can_be_decoded_and_others_pass() {
        for number in ALWAYS {
            assert!(notified(*number, [0; 6]), "{number}");
            assert!(
                super::super::calls::decode(*number, [0; 6]).is_some(),
                "{number}"
            );
        }
        for number in [
            libc::SYS_read,
            libc::SYS_write,
            libc::SYS_execve,
            libc::SYS_close,
        ] {
            assert!(!notified(number, [u64::MAX; 6]), "{number}");
        }
        for (number, _) in OPENS {
            assert!(super::super::calls::decode(*number, [0; 6]).is_some());
        }
    }
}
