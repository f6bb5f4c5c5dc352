//! The system calls that change files, and how to read their arguments.

use libc::c_long;

/// Open flags with which a file is certainly a new one, as git's locks are.
pub(super) const IS_NEW: i32 = libc::O_CREAT | libc::O_EXCL;

/// Open flags with which a file may be created or changed.
pub(super) const WRITES: i32 = libc::O_WRONLY | libc::O_RDWR | libc::O_CREAT | libc::O_TRUNC;

/// `open` calls whose flags the filter can see, with the position of the flags.
pub(super) const OPENS: &[(c_long, u32)] = &[
    (libc::SYS_openat, 2),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_open, 1),
];

/// Calls that libc does not name on every system yet; the numbers are the same on all.
const FCHMODAT2: c_long = 452;
const SETXATTRAT: c_long = 463;
const REMOVEXATTRAT: c_long = 466;

/// Calls that are always notified.
pub(super) const ALWAYS: &[c_long] = &[
    // Its flags are in memory, where no filter can read them.
    libc::SYS_openat2,
    libc::SYS_unlinkat,
    libc::SYS_renameat,
    libc::SYS_renameat2,
    libc::SYS_truncate,
    libc::SYS_linkat,
    libc::SYS_symlinkat,
    libc::SYS_mkdirat,
    libc::SYS_mknodat,
    // Creates the file of a UNIX socket.
    libc::SYS_bind,
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    FCHMODAT2,
    libc::SYS_fchown,
    libc::SYS_fchownat,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    SETXATTRAT,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
    REMOVEXATTRAT,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_creat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_unlink,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_rmdir,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_rename,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_link,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_symlink,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_mkdir,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_mknod,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_chmod,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_chown,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_lchown,
];

/// Of these, the calls with which git changes a configuration, or with which a command could
/// create one.
pub(super) const OF_GIT: &[c_long] = &[
    libc::SYS_openat2,
    libc::SYS_renameat,
    libc::SYS_renameat2,
    libc::SYS_linkat,
    libc::SYS_symlinkat,
    libc::SYS_mknodat,
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    FCHMODAT2,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_creat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_rename,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_link,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_symlink,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_mknod,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_chmod,
];

/// Folder from which a relative path starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Base {
    /// The working directory.
    Cwd,
    /// An open folder.
    Fd(i32),
}

/// A file that a call names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// By a path in the memory of the process.
    Path {
        base: Base,
        address: u64,
        empty: Empty,
    },
    /// By a descriptor.
    Open(i32),
}

/// Meaning of an empty path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Empty {
    /// The call fails.
    Fails,
    /// The file that the base is.
    IsBase,
}

/// Whether a link at the end of a path is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Last {
    Followed,
    Kept,
    /// Followed. If the path is recorded, the caller looks whether there is one.
    Unknown,
}

/// Effect of a call on a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Act {
    CreateFolder,
    /// Creates anything but a folder and a symbolic link.
    Create,
    /// Creates it as a symbolic link.
    CreateLink,
    Remove,
    Content,
    Attributes,
    /// Attributes too, of which only the permissions.
    Mode(u32),
}

/// What a move does with something at the new path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    Replace,
    Exchange,
    /// Anything else, such as failing.
    Other,
}

/// A system call that changes files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Call {
    Open {
        place: Place,
        flags: i32,
    },
    /// `openat2`, whose flags are in a structure at `how`.
    Open2 {
        place: Place,
        how: u64,
    },
    Change {
        place: Place,
        last: Last,
        act: Act,
    },
    Rename {
        from: Place,
        to: Place,
        way: Way,
    },
    /// Gives a file another name.
    Link {
        from: Place,
        last: Last,
        to: Place,
    },
    /// `bind`, whose path is in a structure of this length.
    Bind {
        address: u64,
        length: u64,
    },
}

/// Returns the meaning of a call, or `None` if it is not one of those above.
pub(super) fn decode(number: c_long, arguments: [u64; 6]) -> Option<Call> {
    let [a, b, c, d, e, _] = arguments;
    let change = |place, last, act| Some(Call::Change { place, last, act });
    match number {
        libc::SYS_openat => Some(Call::Open {
            place: at(a, b),
            flags: int(c),
        }),
        libc::SYS_openat2 => Some(Call::Open2 {
            place: at(a, b),
            how: c,
        }),
        libc::SYS_unlinkat => change(at(a, b), Last::Kept, Act::Remove),
        libc::SYS_renameat => rename(at(a, b), at(c, d), 0),
        libc::SYS_renameat2 => rename(at(a, b), at(c, d), e),
        libc::SYS_truncate => change(here(a), Last::Followed, Act::Content),
        libc::SYS_linkat => Some(Call::Link {
            from: at_or_base(a, b, e),
            last: match int(e) & libc::AT_SYMLINK_FOLLOW {
                0 => Last::Kept,
                _ => Last::Followed,
            },
            to: at(c, d),
        }),
        libc::SYS_symlinkat => change(at(b, c), Last::Kept, Act::CreateLink),
        libc::SYS_mkdirat => change(at(a, b), Last::Kept, Act::CreateFolder),
        libc::SYS_mknodat => change(at(a, b), Last::Kept, Act::Create),
        libc::SYS_bind => Some(Call::Bind {
            address: b,
            length: c,
        }),
        libc::SYS_fchmod => change(Place::Open(int(a)), Last::Kept, Act::Mode(mode(b))),
        libc::SYS_fchown | libc::SYS_fsetxattr | libc::SYS_fremovexattr => {
            change(Place::Open(int(a)), Last::Kept, Act::Attributes)
        }
        libc::SYS_fchmodat => change(at(a, b), Last::Followed, Act::Mode(mode(c))),
        FCHMODAT2 => attributes_at(a, b, d, Act::Mode(mode(c))),
        libc::SYS_fchownat => attributes_at(a, b, e, Act::Attributes),
        SETXATTRAT | REMOVEXATTRAT => attributes_at(a, b, c, Act::Attributes),
        libc::SYS_setxattr | libc::SYS_removexattr => {
            change(here(a), Last::Followed, Act::Attributes)
        }
        libc::SYS_lsetxattr | libc::SYS_lremovexattr => {
            change(here(a), Last::Kept, Act::Attributes)
        }
        #[cfg(target_arch = "x86_64")]
        _ => decode_old(number, arguments),
        #[cfg(not(target_arch = "x86_64"))]
        _ => None,
    }
}

/// Calls that only the first architectures have.
#[cfg(target_arch = "x86_64")]
fn decode_old(number: c_long, [a, b, ..]: [u64; 6]) -> Option<Call> {
    let change = |place, last, act| Some(Call::Change { place, last, act });
    match number {
        libc::SYS_open => Some(Call::Open {
            place: here(a),
            flags: int(b),
        }),
        libc::SYS_creat => Some(Call::Open {
            place: here(a),
            flags: libc::O_CREAT | libc::O_WRONLY | libc::O_TRUNC,
        }),
        libc::SYS_unlink | libc::SYS_rmdir => change(here(a), Last::Kept, Act::Remove),
        libc::SYS_rename => rename(here(a), here(b), 0),
        libc::SYS_link => Some(Call::Link {
            from: here(a),
            last: Last::Kept,
            to: here(b),
        }),
        libc::SYS_symlink => change(here(b), Last::Kept, Act::CreateLink),
        libc::SYS_mkdir => change(here(a), Last::Kept, Act::CreateFolder),
        libc::SYS_mknod => change(here(a), Last::Kept, Act::Create),
        libc::SYS_chmod => change(here(a), Last::Followed, Act::Mode(mode(b))),
        libc::SYS_chown => change(here(a), Last::Followed, Act::Attributes),
        libc::SYS_lchown => change(here(a), Last::Kept, Act::Attributes),
        _ => None,
    }
}

fn rename(from: Place, to: Place, flags: u64) -> Option<Call> {
    let way = match int(flags) {
        0 => Way::Replace,
        flags if flags & libc::RENAME_EXCHANGE.cast_signed() != 0 => Way::Exchange,
        _ => Way::Other,
    };
    Some(Call::Rename { from, to, way })
}

fn attributes_at(base: u64, address: u64, flags: u64, act: Act) -> Option<Call> {
    let last = match int(flags) & libc::AT_SYMLINK_NOFOLLOW {
        0 => Last::Followed,
        _ => Last::Kept,
    };
    Some(Call::Change {
        place: at_or_base(base, address, flags),
        last,
        act,
    })
}

fn at_or_base(base: u64, address: u64, flags: u64) -> Place {
    let empty = match int(flags) & libc::AT_EMPTY_PATH {
        0 => Empty::Fails,
        _ => Empty::IsBase,
    };
    Place::Path {
        base: base_of(base),
        address,
        empty,
    }
}

fn here(address: u64) -> Place {
    Place::Path {
        base: Base::Cwd,
        address,
        empty: Empty::Fails,
    }
}

fn at(base: u64, address: u64) -> Place {
    Place::Path {
        base: base_of(base),
        address,
        empty: Empty::Fails,
    }
}

fn base_of(argument: u64) -> Base {
    match int(argument) {
        libc::AT_FDCWD => Base::Cwd,
        number => Base::Fd(number),
    }
}

fn mode(argument: u64) -> u32 {
    int(argument).cast_unsigned()
}

/// The kernel looks at the lower half of an argument that is an `int`.
#[expect(
    clippy::cast_possible_truncation,
    reason = "the upper half means nothing"
)]
fn int(argument: u64) -> i32 {
    argument as i32
}
