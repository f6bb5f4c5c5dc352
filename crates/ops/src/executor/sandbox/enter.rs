//! The steps in their order. Each is final for the process that takes it, and
//! an error means that this process must end without having run anything.

use super::busy::{again, is_passing};
use super::cgroup::Cage;
use super::{
    Counting, Entered, Error, Level, Limits, Memory, Network, Plan, Result, Role, Stage, Strength,
    Surface, calls, files, mounts, privileges, system,
};
use rustix::io::Errno;
use rustix::process::{DumpableBehavior, Pid, Resource, Rlimit, Signal, getrlimit, setrlimit};
use rustix::thread::UnshareFlags;

/// Confines the calling process, which must have one thread and an environment
/// without secrets.
///
/// A process that gets [`Role::RunCommand`] is confined like the command: it
/// reaches no file and no socket that the command does not, and only what it
/// has open already. Its other descriptors are closed when the command starts,
/// and its own entries in `/proc` can no longer be opened.
///
/// # Errors
/// Any step that the kernel refuses. The process is then half confined and has
/// to end.
pub fn enter(plan: &Plan, strength: Strength, stage: Stage) -> Result<Entered> {
    match (strength.level, stage) {
        (_, Stage::Outer) => leave(Surface {
            strength,
            network: plan.network,
            limits: plan.limits,
        }),
        (Level::Full, Stage::Inner) => {
            // The command's umask is not for what is mounted on: it may leave nothing.
            let umask = rustix::process::umask(rustix::fs::Mode::empty());
            // Each mount is held open until all are made, and a project with hundreds of
            // repositories needs more of them than a process usually has.
            let files = getrlimit(Resource::Nofile);
            let all = Rlimit {
                current: files.maximum,
                maximum: files.maximum,
            };
            let _ = setrlimit(Resource::Nofile, all);
            let built = mounts::build(plan);
            rustix::process::umask(umask);
            built?;
            setrlimit(Resource::Nofile, files).map_err(step("limit"))?;
            confine(plan, strength)?;
            die_with_parent()?;
            Ok(Entered {
                role: Role::RunCommand,
                cage: None,
            })
        }
        (Level::Partial, Stage::Inner) => {
            let entered = without_namespaces(plan, strength)?;
            die_with_parent()?;
            Ok(entered)
        }
    }
}

/// The first stage, which needs no plan and so can be taken before there is one.
///
/// # Errors
/// As [`enter`].
pub fn leave(surface: Surface) -> Result<Entered> {
    // Before the namespaces: afterwards the group is out of reach. Without them
    // too: who is confined can no longer remove it, and can be killed by the
    // command.
    let cage = cage(surface.limits);
    if surface.strength.level == Level::Full {
        new_namespaces(surface.network)?;
        privileges::keep_for_mounting()?;
        limit(Resource::Nproc, u64::from(surface.limits.processes))?;
    }
    Ok(Entered {
        role: Role::StartInner,
        cage,
    })
}

fn without_namespaces(plan: &Plan, strength: Strength) -> Result<Entered> {
    if !rustix::process::geteuid().is_root() {
        // The kernel counts everything that the user runs.
        let others = everything_running()?;
        limit(
            Resource::Nproc,
            others.saturating_add(plan.limits.processes.into()),
        )?;
    }
    confine(plan, strength)?;
    Ok(Entered {
        role: Role::RunCommand,
        cage: None,
    })
}

/// Only between the two supervisors: the signal is sent when the *thread* ends
/// that started the child, and haft's threads come and go.
fn die_with_parent() -> Result<()> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(step("death with the parent"))
}

/// Makes the process for [`Stage::Inner`] without starting the binary again,
/// which saves about a millisecond. The new one gets `None`; both go on from
/// here with the same memory.
///
/// # Errors
/// A process with more than one thread, and what the kernel refuses.
pub fn split() -> Result<Option<Pid>> {
    again(system::split, |error| is_passing(&(*error).into())).map_err(step("split the supervisor"))
}

/// The limit on processes of root. Where there is none to be had, `doctor` says
/// so; it is no reason to run nothing.
fn cage(limits: Limits) -> Option<Cage> {
    if limits.counting == Counting::Always && rustix::process::geteuid().is_root() {
        Cage::enter(limits.processes).ok()
    } else {
        None
    }
}

/// New namespaces, in which the user is who it was.
fn new_namespaces(network: Network) -> Result<()> {
    let user = rustix::process::geteuid().as_raw();
    let group = rustix::process::getegid().as_raw();
    let mut flags =
        UnshareFlags::NEWUSER | UnshareFlags::NEWNS | UnshareFlags::NEWPID | UnshareFlags::NEWIPC;
    if network == Network::Off {
        flags |= UnshareFlags::NEWNET;
    }
    again(
        || system::leave_namespaces(flags),
        |error| is_passing(&(*error).into()),
    )
    .map_err(step("new namespaces"))?;
    write("/proc/self/setgroups", "deny")?;
    write("/proc/self/uid_map", &format!("{user} {user} 1"))?;
    write("/proc/self/gid_map", &format!("{group} {group} 1"))
}

fn confine(plan: &Plan, strength: Strength) -> Result<()> {
    // Whatever folder was the current one is seen through the old mounts.
    rustix::process::chdir(plan.work_dir()).map_err(step("work folder"))?;
    // Whatever haft or its parents left open ends with this program.
    system::keep_standard_streams_only().map_err(step("descriptors"))?;
    limit(Resource::Core, 0)?;
    if let Memory::Bytes(bytes) = plan.limits.memory {
        limit(Resource::As, bytes)?;
    }
    privileges::drop_all()?;
    files::restrict(plan, strength)?;
    calls::restrict(strength.level, plan.network)?;
    // The supervisor's own memory, environment and descriptors. Starting the
    // command lifts it for the command.
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)
        .map_err(step("close the supervisor"))
}

/// Never raises what is lower already.
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

/// How many threads the whole machine runs.
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

fn step(step: &'static str) -> impl FnOnce(Errno) -> Error {
    move |error| Error::Step {
        step,
        path: None,
        source: error.into(),
    }
}
