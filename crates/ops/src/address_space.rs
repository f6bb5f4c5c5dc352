//! Address space that this process reserves.

use rustix::process::{Resource, getrlimit};

/// Whether the address space of this process is limited (`ulimit -v`).
#[must_use]
pub fn is_limited() -> bool {
    getrlimit(Resource::As).current.is_some()
}

/// Reserves less address space if it is limited. The allocator of glibc reserves 64 MiB for
/// almost every thread, used or not, and would reach the limit long before the memory is
/// needed. Must be called before the first thread is started.
pub fn reserve_less() {
    if is_limited() {
        one_arena();
    }
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(unsafe_code, reason = "`mallopt` has no safe wrapper")]
fn one_arena() {
    // SAFETY: passes only numbers, and the process has one thread. On failure memory is
    // reserved as before.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 1);
    }
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn one_arena() {}
