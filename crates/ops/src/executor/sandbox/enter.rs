//! Applies the confinement step by step. No step can be undone. After an error the process
//! must exit without having run anything.

use super::busy::{again, is_passing};
use super::cgroup::ControlGroup;
use super::{
    CommonConfinement, Counting, Entered, Error, Level, Limits, Memory, Network, Plan, Result,
    Role, SessionLayers, SessionNetwork, Stage, Strength, landlock_rules, mounts, network,
    privileges, seccomp, syscalls,
};
use rustix::io::Errno;
use rustix::process::{DumpableBehavior, Pid, Resource, Rlimit, Signal, getrlimit, setrlimit};
use rustix::thread::UnshareFlags;
use std::os::fd::OwnedFd;
use std::path::Path;

/// Confines the calling process, which must have one thread and an environment without
/// secrets.
///
/// A process that receives [`Role::RunCommand`] is confined like the command: it can reach
/// only the files and sockets that the command can, and what it has already open. Its other
/// descriptors are closed when the command starts, and its own entries in `/proc` can no
/// longer be opened.
///
/// `layers` are the copies of the cache layers that the first stage made.
///
/// # Errors
/// The kernel refused a step. The process is then partly confined and must exit.
pub fn enter(plan: &Plan, strength: Strength, stage: Stage, layers: &[OwnedFd]) -> Result<Entered> {
    match (strength.level, stage) {
        (_, Stage::Outer) => {
            let common = CommonConfinement {
                strength,
                network: plan.network,
                limits: plan.limits,
            };
            leave(common, None, None)
        }
        (Level::Full, Stage::Inner) => {
            // The command's umask must not apply to mount points: it may remove all
            // permissions.
            let umask = rustix::process::umask(rustix::fs::Mode::empty());
            // Each mount stays open until all are made. A project with hundreds of
            // repositories needs more descriptors than the usual limit.
            let files = getrlimit(Resource::Nofile);
            let all = Rlimit {
                current: files.maximum,
                maximum: files.maximum,
            };
            let _ = setrlimit(Resource::Nofile, all);
            let built = mounts::build(plan, layers);
            rustix::process::umask(umask);
            let layered = built?;
            setrlimit(Resource::Nofile, files).map_err(step("limit"))?;
            confine(plan, strength, &layered)?;
            die_with_parent()?;
            Ok(Entered {
                role: Role::RunCommand,
                control_group: None,
                layers: Vec::new(),
            })
        }
        (Level::Partial, Stage::Inner) => {
            let entered = without_namespaces(plan, strength)?;
            die_with_parent()?;
            Ok(entered)
        }
    }
}

/// Runs the first stage, which needs no plan and so can run before there is one. `session` is
/// the network to join, if the command shares one; `layers` are the cache layers to copy.
///
/// # Errors
/// Same as [`enter`].
pub fn leave(
    common: CommonConfinement,
    session: Option<&SessionNetwork>,
    layers: Option<&SessionLayers>,
) -> Result<Entered> {
    // From haft's own user namespace, the only one from which both can be reached.
    let layers = layers.map(SessionLayers::take).transpose()?;
    // Before the namespaces, because afterwards the group is out of reach. Also without
    // namespaces, because a confined process can no longer remove the group, and the
    // command can kill it.
    let control_group = control_group(common.limits);
    if common.strength.level == Level::Full {
        new_namespaces(common.network, session)?;
        privileges::keep_for_mounting()?;
        limit(Resource::Nproc, u64::from(common.limits.processes))?;
    }
    Ok(Entered {
        role: Role::StartInner,
        control_group,
        layers: layers.unwrap_or_default(),
    })
}

fn without_namespaces(plan: &Plan, strength: Strength) -> Result<Entered> {
    if !rustix::process::geteuid().is_root() {
        // The kernel counts all processes of the user.
        let others = everything_running()?;
        limit(
            Resource::Nproc,
            others.saturating_add(plan.limits.processes.into()),
        )?;
    }
    confine(plan, strength, &[])?;
    Ok(Entered {
        role: Role::RunCommand,
        control_group: None,
        layers: Vec::new(),
    })
}

/// Only between the two supervisors: the signal is sent when the *thread* that started the
/// child ends, and haft's threads come and go.
fn die_with_parent() -> Result<()> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(step("death with the parent"))
}

/// Forks the process for [`Stage::Inner`] instead of starting the binary again, which saves
/// about a millisecond. Returns `None` in the new process; both continue with the same
/// memory.
///
/// # Errors
/// The process has more than one thread, or the kernel refused.
pub fn split() -> Result<Option<Pid>> {
    again(syscalls::split, |error| is_passing(&(*error).into()))
        .map_err(step("split the supervisor"))
}

/// Limits the number of root's processes. If that is impossible, `doctor` reports it, and
/// commands still run.
fn control_group(limits: Limits) -> Option<ControlGroup> {
    if limits.counting == Counting::Always && rustix::process::geteuid().is_root() {
        ControlGroup::enter(limits.processes).ok()
    } else {
        None
    }
}

/// Enters new namespaces, with the same user id.
fn new_namespaces(network: Network, session: Option<&SessionNetwork>) -> Result<()> {
    let flags = UnshareFlags::NEWNS | UnshareFlags::NEWPID | UnshareFlags::NEWIPC;
    match (network, session) {
        (Network::On, _) => new_user_namespace(flags),
        (Network::Off, _) => {
            new_user_namespace(flags | UnshareFlags::NEWNET)?;
            network::raise_loopback()
        }
        (Network::Session, Some(session)) => {
            session.join()?;
            // In a user namespace of its own, the command has no rights over the network, and
            // its processes are counted separately.
            new_user_namespace(flags)
        }
        (Network::Session, None) => Err(Error::NotEnforced {
            mechanism: "network of the session",
            reason: "it is missing".to_owned(),
        }),
    }
}

/// Enters a new user namespace with the same user id, and the other namespaces in `flags`.
pub(super) fn new_user_namespace(flags: UnshareFlags) -> Result<()> {
    let user = rustix::process::geteuid().as_raw();
    let group = rustix::process::getegid().as_raw();
    again(
        || syscalls::leave_namespaces(flags | UnshareFlags::NEWUSER),
        |error| is_passing(&(*error).into()),
    )
    .map_err(step("new namespaces"))?;
    write("/proc/self/setgroups", "deny")?;
    write("/proc/self/uid_map", &format!("{user} {user} 1"))?;
    write("/proc/self/gid_map", &format!("{group} {group} 1"))
}

fn confine(plan: &Plan, strength: Strength, layered: &[&Path]) -> Result<()> {
    // The current folder still refers to the old mounts.
    rustix::process::chdir(plan.work_dir()).map_err(step("work folder"))?;
    // Closes what haft or its parents left open when the next program starts.
    syscalls::keep_standard_streams_only().map_err(step("descriptors"))?;
    limit(Resource::Core, 0)?;
    if let Memory::Bytes(bytes) = plan.limits.memory {
        limit(Resource::As, bytes)?;
    }
    privileges::drop_all()?;
    landlock_rules::restrict(plan, strength, layered)?;
    seccomp::restrict(strength.level, plan.network)?;
    // Protects the supervisor's memory, environment and descriptors. Starting the command
    // lifts this for the command.
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)
        .map_err(step("close the supervisor"))
}

/// Lowers a limit; never raises one.
fn limit(resource: Resource, wanted: u64) -> Result<()> {
    let held = getrlimit(resource).maximum;
    let wanted = held.map_or(wanted, |held| held.min(wanted));
    setrlimit(
        resource,
        Rlimit {
            current: Some(wanted),
            maximum: Some(wanted),
        },
    )
    .map_err(step("limit"))
}

/// Returns the number of threads on the whole machine.
#[expect(
    clippy::disallowed_methods,
    reason = "one line of the kernel about the machine"
)]
fn everything_running() -> Result<u64> {
    let text = std::fs::read_to_string("/proc/loadavg").map_err(|source| Error::Step {
        step: "count processes",
        path: None,
        source,
    })?;
    text.split_whitespace()
        .nth(3)
        .and_then(|field| field.split_once('/')?.1.parse().ok())
        .ok_or_else(|| Error::NotEnforced {
            mechanism: "limit on processes",
            reason: "the kernel does not say how many there are".to_owned(),
        })
}

#[expect(
    clippy::disallowed_methods,
    reason = "files of the kernel about the process itself"
)]
fn write(path: &'static str, text: &str) -> Result<()> {
    std::fs::write(path, text).map_err(|source| Error::Step {
        step: "write",
        path: Some(path.into()),
        source,
    })
}

pub(super) fn step(step: &'static str) -> impl FnOnce(Errno) -> Error {
    move |error| Error::Step {
        step,
        path: None,
        source: error.into(),
    }
}
