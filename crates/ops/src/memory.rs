//! How much address space this process takes for itself.

use rustix::process::{Resource, getrlimit};

/// Whether somebody has limited the address space of this process (`ulimit -v`).
#[must_use]
pub fn is_limited() -> bool {
    getrlimit(Resource::As).current.is_some()
}

/// Takes little address space, if that is limited: the memory allocator of glibc
/// reserves 64 MiB for almost every thread, used or not, and would have reserved all of
/// it long before it is needed. To be called before the first thread is started.
pub fn be_modest() {
    if is_limited() {
        one_arena();
    }
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(unsafe_code, reason = "`mallopt` has no safe wrapper")]
fn one_arena() {
    // SAFETY: numbers only, and the process has one thread. If it is refused, memory is
    // reserved as before.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 1);
    }
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn one_arena() {}
