//! Drops the privileges of root and of a new user namespace.

use super::{Error, Result};
use rustix::io::Errno;
use rustix::thread::{
    CapabilitiesSecureBits, CapabilitySet, CapabilitySets, capability_is_in_bounding_set,
    clear_ambient_capability_set, configure_capability_in_ambient_set,
    remove_capability_from_bounding_set, set_capabilities, set_capabilities_secure_bits,
    set_no_new_privs,
};

/// Lets the next supervisor mount. Starting a program drops the capabilities of the new
/// user namespace for every user but root, unless they are ambient.
pub(super) fn keep_for_mounting() -> Result<()> {
    let failed = |error: Errno| Error::Step {
        step: "keep capabilities",
        path: None,
        source: error.into(),
    };
    let kept = [CapabilitySet::SYS_ADMIN, CapabilitySet::SETPCAP];
    let mut held = rustix::thread::capabilities(None).map_err(failed)?;
    for one in kept {
        held.inheritable |= one;
    }
    set_capabilities(None, held).map_err(failed)?;
    for one in kept {
        configure_capability_in_ambient_set(one, true).map_err(failed)?;
    }
    Ok(())
}

/// Drops every capability, for this process and whatever it executes.
pub(super) fn drop_all() -> Result<()> {
    let failed = |error: Errno| Error::Step {
        step: "drop capabilities",
        path: None,
        source: error.into(),
    };
    // The two steps that need a capability come first. They fail for a user without one,
    // who has nothing to drop.
    let held = rustix::thread::capabilities(None).map_err(failed)?;
    if held.effective.contains(CapabilitySet::SETPCAP) {
        for number in 0..64 {
            let one = CapabilitySet::from_bits_retain(1 << number);
            match capability_is_in_bounding_set(one) {
                Ok(true) => remove_capability_from_bounding_set(one).map_err(failed)?,
                Ok(false) => {}
                // Past the last capability of this kernel.
                Err(_) => break,
            }
        }
        set_capabilities_secure_bits(
            CapabilitiesSecureBits::NO_ROOT
                | CapabilitiesSecureBits::NO_ROOT_LOCKED
                | CapabilitiesSecureBits::NO_SETUID_FIXUP
                | CapabilitiesSecureBits::NO_SETUID_FIXUP_LOCKED
                | CapabilitiesSecureBits::NO_CAP_AMBIENT_RAISE
                | CapabilitiesSecureBits::NO_CAP_AMBIENT_RAISE_LOCKED,
        )
        .map_err(failed)?;
    }
    clear_ambient_capability_set().map_err(failed)?;
    set_no_new_privs(true).map_err(failed)?;
    set_capabilities(
        None,
        CapabilitySets {
            effective: CapabilitySet::empty(),
            permitted: CapabilitySet::empty(),
            inheritable: CapabilitySet::empty(),
        },
    )
    .map_err(failed)
}
