//! What a session is called, and the folders that are named after it.

use std::path::PathBuf;

/// Outputs and temporary files lie by work folder: a later session in the same
/// folder may read what an earlier one was told of, one in another folder may
/// not.
pub(super) fn folder_for(state: &std::path::Path, kind: &str, dir: &std::path::Path) -> PathBuf {
    let real = absolute(dir);
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    // FNV-1a: stable between versions and machines, which the standard hasher is not.
    for byte in real.as_os_str().as_encoded_bytes() {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    }
    state.join(kind).join(format!("{hash:016x}"))
}

/// Whether an id can be the name of a folder.
pub(in crate::runtime) fn is_plain(id: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    !id.is_empty() && id.len() <= 64 && id.bytes().all(fits)
}

/// Sorts by time, and is not the same twice.
pub(in crate::runtime) fn session_id() -> String {
    use std::hash::{BuildHasher, RandomState};
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap_or_default();
    let random = RandomState::new().hash_one((now, std::process::id()));
    format!("{:011x}-{:08x}", now.as_millis(), random & 0xffff_ffff)
}

pub(in crate::runtime) fn absolute(dir: &std::path::Path) -> PathBuf {
    std::path::absolute(dir).unwrap_or_else(|_| dir.to_owned())
}
