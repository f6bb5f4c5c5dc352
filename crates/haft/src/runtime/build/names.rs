//! Session ids and the folders named after them.

use std::path::PathBuf;

/// Returns the folder for outputs or temporary files of a work folder. A later session in
/// the same work folder may read the outputs of an earlier one; a session in another work
/// folder may not.
pub(super) fn folder_for(state: &std::path::Path, kind: &str, dir: &std::path::Path) -> PathBuf {
    let real = absolute(dir);
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    // FNV-1a: stable across versions and machines, unlike the standard hasher.
    for byte in real.as_os_str().as_encoded_bytes() {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    }
    state.join(kind).join(format!("{hash:016x}"))
}

/// Whether an id can be used as a folder name.
pub(in crate::runtime) fn is_plain(id: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    !id.is_empty() && id.len() <= 64 && id.bytes().all(fits)
}

/// Returns a new unique id. Ids sort by time.
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
