//! Recognizes a machine that is out of resources for the moment, as opposed to one that
//! lacks a mechanism.

use std::io;
use std::time::Duration;

/// Pauses before each retry. Either there are resources again soon, or it takes longer than
/// a user would wait for a command to start.
pub(in crate::executor) const PAUSES: [Duration; 5] = [
    Duration::from_millis(5),
    Duration::from_millis(20),
    Duration::from_millis(50),
    Duration::from_millis(100),
    Duration::from_millis(200),
];

/// Kinds of namespaces whose number the kernel can limit.
const NAMESPACES: [&str; 5] = ["user", "mnt", "pid", "ipc", "net"];

/// Whether an error may be gone a moment later: too many processes, open files or
/// namespaces, or no memory.
pub(in crate::executor) fn is_passing(error: &io::Error) -> bool {
    use rustix::io::Errno;
    match Errno::from_io_error(error) {
        Some(Errno::AGAIN | Errno::NOMEM | Errno::MFILE | Errno::NFILE | Errno::TXTBSY) => true,
        // The limit is reached. If the limit is zero, that is permanent.
        Some(Errno::NOSPC) => !NAMESPACES.iter().any(|kind| is_forbidden(kind)),
        _ => false,
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "one number of the kernel about the machine"
)]
fn is_forbidden(kind: &str) -> bool {
    let path = format!("/proc/sys/user/max_{kind}_namespaces");
    std::fs::read_to_string(path).is_ok_and(|text| text.trim() == "0")
}

/// Retries for a while as long as the machine is out of resources.
pub(in crate::executor) fn again<T, E>(
    mut attempt: impl FnMut() -> Result<T, E>,
    is_passing: impl Fn(&E) -> bool,
) -> Result<T, E> {
    for pause in PAUSES {
        match attempt() {
            Err(error) if is_passing(&error) => std::thread::sleep(pause),
            other => return other,
        }
    }
    attempt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::io::Errno;

    #[test]
    fn only_what_passes_is_tried_again() {
        let passing = |error: &io::Error| is_passing(error);
        let mut tries = 0;
        let done = again(
            || {
                tries += 1;
                match tries {
                    1 => Err(Errno::AGAIN.into()),
                    2 => Err(Errno::NOMEM.into()),
                    _ => Ok(tries),
                }
            },
            passing,
        );
        assert_eq!(done.unwrap(), 3);
        for lasting in [Errno::PERM, Errno::NOSYS, Errno::INVAL, Errno::NOENT] {
            let mut tries = 0;
            let refused = again(
                || {
                    tries += 1;
                    Err::<(), io::Error>(lasting.into())
                },
                passing,
            );
            assert!(refused.is_err() && tries == 1, "{lasting}");
        }
    }
}
