//! System calls that a command may not use.

use super::{Error, Level, Network, Result};
use libc::c_long;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen as Length, SeccompCmpOp as Compare,
    SeccompCondition as Condition, SeccompFilter, SeccompRule as Rule, TargetArch, sock_filter,
};
use std::collections::BTreeMap;

/// Always refused: inspecting other processes, kernel interfaces with a history of
/// vulnerabilities, and everything that changes mounts, namespaces, the kernel or the
/// clock.
const REFUSED: &[c_long] = &[
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_bpf,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_fanotify_init,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_mount_setattr,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_open_by_handle_at,
    libc::SYS_kexec_load,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_kexec_file_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_syslog,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_vhangup,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
];

/// Flags of `clone` that create a namespace.
const NAMESPACES: [i32; 7] = [
    libc::CLONE_NEWNS,
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
];

/// `ioctl` requests that insert input into a terminal (`TIOCSTI`) or paste on the console
/// (`TIOCLINUX`).
const TERMINAL: [u64; 2] = [0x5412, 0x541c];

#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: (TargetArch, u32) = (TargetArch::x86_64, 0xc000_003e);
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: (TargetArch, u32) = (TargetArch::aarch64, 0xc000_00b7);
#[cfg(target_arch = "riscv64")]
const ARCHITECTURE: (TargetArch, u32) = (TargetArch::riscv64, 0xc000_00f3);

/// Applies the filter to the calling process.
pub(super) fn restrict(level: Level, network: Network) -> Result<()> {
    let program = program(level, network).map_err(|error| not_enforced(error.to_string()))?;
    seccompiler::apply_filter(&program).map_err(|error| not_enforced(error.to_string()))
}

fn not_enforced(reason: String) -> Error {
    Error::NotEnforced {
        mechanism: "seccomp",
        reason,
    }
}

/// Returns the socket families that a command may open. Without hidden folders, it could
/// connect to any UNIX socket of the machine, and some of them start programs outside the
/// sandbox.
fn families(level: Level, network: Network) -> Vec<i32> {
    let mut allowed = Vec::new();
    if level == Level::Full {
        allowed.push(libc::AF_UNIX);
    }
    // At the full level, a command without network has a network of its own.
    if level == Level::Full || network == Network::On {
        allowed.extend([libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK]);
    }
    allowed
}

fn program(level: Level, network: Network) -> Result<BpfProgram, seccompiler::BackendError> {
    let mut rules: BTreeMap<c_long, Vec<Rule>> =
        REFUSED.iter().map(|call| (*call, Vec::new())).collect();
    let mut made = Vec::new();
    for flag in NAMESPACES {
        let flag = u64::from(flag.cast_unsigned());
        made.push(Rule::new(vec![Condition::new(
            0,
            Length::Dword,
            Compare::MaskedEq(flag),
            flag,
        )?])?);
    }
    rules.insert(libc::SYS_clone, made);
    let mut typed = Vec::new();
    for request in TERMINAL {
        typed.push(Rule::new(vec![Condition::new(
            1,
            Length::Dword,
            Compare::Eq,
            request,
        )?])?);
    }
    rules.insert(libc::SYS_ioctl, typed);
    let mut sockets = unless(0, &families(level, network))?;
    if network != Network::On && !sockets.is_empty() {
        // Programs list their interfaces with netlink. Its other protocols are for
        // administrators.
        let equals = |value: i32| u64::from(value.cast_unsigned());
        sockets.push(Rule::new(vec![
            Condition::new(0, Length::Dword, Compare::Eq, equals(libc::AF_NETLINK))?,
            Condition::new(2, Length::Dword, Compare::Ne, equals(libc::NETLINK_ROUTE))?,
        ])?);
    }
    rules.insert(libc::SYS_socket, sockets);
    rules.insert(libc::SYS_socketpair, unless(0, &[libc::AF_UNIX])?);

    // Changing another process's limits can kill it without a signal.
    rules.insert(libc::SYS_prlimit64, unless(0, &[0])?);
    if level == Level::Partial {
        for call in [libc::SYS_setpriority, libc::SYS_ioprio_set] {
            rules.insert(call, unless(1, &[0])?);
        }
        // Without a namespace these objects are shared with the whole machine and outlive
        // the command.
        for call in [
            libc::SYS_shmget,
            libc::SYS_shmat,
            libc::SYS_semget,
            libc::SYS_msgget,
        ] {
            rules.insert(call, Vec::new());
        }
    }

    let (target, audit) = ARCHITECTURE;
    let filter = SeccompFilter::new(
        rules,
        SeccompAction::Allow,
        SeccompAction::Errno(libc::EPERM.cast_unsigned()),
        target,
    )?;
    let mut program = preamble(audit);
    program.extend(BpfProgram::try_from(filter)?);
    Ok(program)
}

/// Returns a rule that matches if an argument is none of these values; with no values,
/// always.
fn unless(argument: u8, values: &[i32]) -> Result<Vec<Rule>, seccompiler::BackendError> {
    let mut conditions = Vec::new();
    for value in values {
        conditions.push(Condition::new(
            argument,
            Length::Dword,
            Compare::Ne,
            u64::from(value.cast_unsigned()),
        )?);
    }
    if conditions.is_empty() {
        Ok(Vec::new())
    } else {
        Ok(vec![Rule::new(conditions)?])
    }
}

/// Adds checks that the filter compiler lacks. The x32 calls of a 64-bit kernel have the
/// same architecture but other numbers, so they would pass every rule. `clone3` has its
/// flags in memory, where no filter can read them; C libraries fall back to `clone` if it
/// does not exist.
fn preamble(audit: u32) -> BpfProgram {
    const LOAD: u16 = 0x20;
    const IF_EQUAL: u16 = 0x15;
    const IF_AT_LEAST: u16 = 0x35;
    const RETURN: u16 = 0x06;
    const NUMBER: u32 = 0;
    const ARCH: u32 = 4;
    const X32: u32 = 0x4000_0000;
    let line = |code, jt, jf, k| sock_filter { code, jt, jf, k };
    let clone3 = u32::try_from(libc::SYS_clone3).unwrap_or(u32::MAX);
    vec![
        line(LOAD, 0, 0, ARCH),
        line(IF_EQUAL, 0, 2, audit),
        line(LOAD, 0, 0, NUMBER),
        line(IF_AT_LEAST, 0, 1, X32),
        line(RETURN, 0, 0, libc::SECCOMP_RET_KILL_PROCESS),
        line(IF_EQUAL, 0, 1, clone3),
        line(
            RETURN,
            0,
            0,
            libc::SECCOMP_RET_ERRNO | libc::ENOSYS.cast_unsigned(),
        ),
    ]
}
