//! Identifiers that cannot be guessed.

use rustix::rand::{GetRandomFlags, getrandom};
use std::io;

/// Number of random bytes in an identifier.
const BYTES: usize = 32;

/// Returns 256 random bits in hexadecimal.
pub(crate) fn id() -> io::Result<String> {
    let mut bytes = [0; BYTES];
    let mut filled = 0;
    while let Some(rest) = bytes.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        filled += getrandom(rest, GetRandomFlags::empty())?;
    }
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    #[test]
    fn no_two_names_are_the_same() {
        let one = super::id().expect("randomness");
        assert_eq!(one.len(), 64);
        assert!(one.bytes().all(|byte| byte.is_ascii_hexdigit()));
        assert_ne!(one, super::id().expect("randomness"));
    }
}
