//! Places that hold keys and passwords.

use std::ffi::OsStr;
use std::path::Path;

/// Keys and credentials in a home folder.
pub const SECRET: [&str; 11] = [
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".kube",
    ".docker",
    ".config/gcloud",
    ".netrc",
    ".git-credentials",
    ".npmrc",
    ".pypirc",
];

/// Passwords and keys of the machine, which root can read.
pub(crate) const SYSTEM_SECRET: [&str; 14] = [
    "/etc/NetworkManager/system-connections",
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/krb5.keytab",
    "/etc/letsencrypt/archive",
    "/etc/pki/tls/private",
    "/etc/ppp/chap-secrets",
    "/etc/security/opasswd",
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/ssl/private",
    "/etc/sudoers",
    "/etc/sudoers.d",
    "/etc/wireguard",
];

/// Folder of the keys by which others recognize the machine.
pub(crate) const HOST_KEYS: &str = "/etc/ssh";

/// Whether a file of that name there is one of them.
pub(crate) fn is_host_key(name: &OsStr) -> bool {
    let name = name.as_encoded_bytes();
    name.starts_with(b"ssh_host_") && name.ends_with(b"_key")
}

/// Files in `/proc/PID` that reveal more than `ps` does.
const SECRET_PROC: [&str; 6] = ["environ", "mem", "root", "cwd", "fd", "task"];

pub(super) fn below_home_is_secret(home: &Path, real: &Path) -> bool {
    real.strip_prefix(home)
        .is_ok_and(|below| SECRET.iter().any(|secret| below.starts_with(secret)))
}

/// Other users' keys are secret too, and `HOME` may point to another folder than the
/// account's.
pub(super) fn is_secret_elsewhere(real: &Path) -> bool {
    if below_home_is_secret(Path::new("/root"), real) {
        return true;
    }
    let Ok(below) = real.strip_prefix("/home") else {
        return false;
    };
    let mut parts = below.components();
    parts.next().is_some()
        && SECRET
            .iter()
            .any(|secret| parts.as_path().starts_with(secret))
}

pub(super) fn is_secret_of_system(real: &Path) -> bool {
    let is_key = |below: &Path| {
        let first = below.iter().next();
        first.is_some_and(is_host_key)
    };
    real.strip_prefix(HOST_KEYS).is_ok_and(is_key)
        || SYSTEM_SECRET.iter().any(|secret| real.starts_with(secret))
}

pub(super) fn is_secret_proc(real: &Path) -> bool {
    let Ok(below) = real.strip_prefix("/proc") else {
        return false;
    };
    let mut parts = below.components();
    let _process = parts.next();
    parts
        .next()
        .is_some_and(|part| SECRET_PROC.iter().any(|secret| part.as_os_str() == *secret))
}
