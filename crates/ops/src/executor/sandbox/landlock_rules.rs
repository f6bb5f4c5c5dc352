//! Applies the same rules with Landlock. It needs no namespaces, and still protects where a
//! mount was forgotten.

use super::known_paths::{self, Kind};
use super::{Error, Level, Network, Plan, Result, Strength};
use crate::scope::{Reading, Writing};
use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, LandlockStatus,
    PathBeneath, PathFd, Ruleset, RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetStatus,
    Scope,
};
use rustix::fs::FileType;
use std::path::{Path, PathBuf};

/// The newest version whose rights were tested.
pub(super) const NEWEST: u8 = 7;

/// Before version 3, a file could be truncated without the right to write it.
pub(super) const OLDEST: u8 = 3;

/// Devices that a command may use if `/dev` is the machine's own. Terminals are excluded,
/// because the folder also contains those of the user's other windows.
const DEVICES: [&str; 5] = ["null", "zero", "full", "random", "urandom"];

/// Returns the kernel's version, at most the newest supported one. The check applies a rule
/// to the calling process, about something that a command never does, so it is only for a
/// throwaway process.
pub(super) fn version() -> Result<u8> {
    let status = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::MakeBlock)
        .and_then(Ruleset::create)
        .and_then(RulesetCreated::restrict_self)
        .map_err(not_enforced)?;
    match status.landlock {
        LandlockStatus::Available { effective_abi, .. } => {
            let known = effective_abi as i32;
            Ok(u8::try_from(known).unwrap_or(NEWEST).min(NEWEST))
        }
        LandlockStatus::NotEnabled => Err(not_enforced("the kernel has it switched off")),
        LandlockStatus::NotImplemented => Err(not_enforced("the kernel does not have it")),
    }
}

/// Applies the rules to the calling process. Everything in this version is required, so a
/// kernel older than the probed one is an error.
/// `layered` are the cache folders that have a layer.
pub(super) fn restrict(plan: &Plan, strength: Strength, layered: &[&Path]) -> Result<()> {
    if strength.landlock < OLDEST {
        return Err(not_enforced("the kernel's version is too old"));
    }
    let version = ABI::from(i32::from(strength.landlock.min(NEWEST)));
    let read = AccessFs::from_read(version);
    // Commands never create devices.
    let write = AccessFs::from_all(version) & !(AccessFs::MakeBlock | AccessFs::MakeChar);

    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(version))
        .map_err(not_enforced)?;
    // With namespaces, a command without network is in a network of its own, where it may use
    // all ports.
    let is_isolated = strength.level == Level::Full && plan.network != Network::On;
    if strength.landlock >= 4 && plan.network != Network::On && !is_isolated {
        rules = rules
            .handle_access(AccessNet::from_all(version))
            .map_err(not_enforced)?;
    }
    if strength.landlock >= 6 {
        let scope = match is_isolated {
            // Abstract UNIX sockets belong to a network. Those of the session's other commands
            // may be used.
            true => Scope::Signal.into(),
            false => Scope::from_all(version),
        };
        rules = rules.scope(scope).map_err(not_enforced)?;
    }
    let mut rules = rules.create().map_err(not_enforced)?;

    // With its own mounts, those prevent programs from being started.
    let inert: &[PathBuf] = match strength.level {
        Level::Full => &[],
        Level::Partial => &plan.inert,
    };
    for path in readable(plan, strength.level)? {
        let rights = without_starting(plan, inert, &path, read);
        rules = allow(plan, rules, &path, rights)?;
        if rights != read {
            for path in everything_but(&path, inert) {
                rules = allow(plan, rules, &path, AccessFs::Execute.into())?;
            }
        }
    }
    for path in writable(plan, strength.level) {
        let rights = without_starting(plan, inert, &path, write);
        rules = allow(plan, rules, &path, rights)?;
    }
    for path in layered {
        rules = allow(plan, rules, path, read | write)?;
    }
    let status = rules.restrict_self().map_err(not_enforced)?;
    if status.ruleset == RulesetStatus::FullyEnforced {
        Ok(())
    } else {
        Err(not_enforced("not all of it is enforced"))
    }
}

fn not_enforced(reason: impl ToString) -> Error {
    Error::NotEnforced {
        mechanism: "landlock",
        reason: reason.to_string(),
    }
}

fn allow(
    plan: &Plan,
    rules: RulesetCreated,
    path: &Path,
    rights: BitFlags<AccessFs>,
) -> Result<RulesetCreated> {
    // A path that is missing, or not accessible to this user, needs no rule.
    let Ok(place) = PathFd::new(path) else {
        return Ok(rules);
    };
    plan.is_same(path, &place)?;
    let is_folder = rustix::fs::fstat(&place)
        .is_ok_and(|found| FileType::from_raw_mode(found.st_mode).is_dir());
    let rights = if is_folder {
        rights
    } else {
        rights & AccessFs::from_file(ABI::V7)
    };
    if rights.is_empty() {
        return Ok(rules);
    }
    rules
        .add_rule(PathBeneath::new(place, rights))
        .map_err(not_enforced)
}

/// Returns the rights to a folder, without execution if part of it is inert.
fn without_starting(
    plan: &Plan,
    inert: &[PathBuf],
    path: &Path,
    rights: BitFlags<AccessFs>,
) -> BitFlags<AccessFs> {
    // What a program was given stays executable, even inside such a folder.
    let mut given = plan.readable.iter().chain(&plan.own).chain([&plan.temp]);
    let is_given = given.any(|own| own == path) && !inert.iter().any(|folder| folder == path);
    let is_met = |folder: &PathBuf| folder.starts_with(path) || path.starts_with(folder);
    match inert.iter().any(is_met) && !is_given {
        true => rights & !AccessFs::Execute,
        false => rights,
    }
}

fn readable(plan: &Plan, level: Level) -> Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    match (plan.reading, level) {
        // Secret paths and devices are hidden by mounts.
        (Reading::Anywhere | Reading::NotSecret, Level::Full) => paths.push(PathBuf::from("/")),
        (Reading::Anywhere | Reading::NotSecret, Level::Partial) => {
            paths = everything_but(Path::new("/"), &excluded(plan)?);
        }
        // Commands are programs; with the roots alone none would start.
        (Reading::RootsAndSystem | Reading::Roots, _) => {
            let system = known_paths::SYSTEM.iter().map(Path::new);
            match level {
                Level::Full => paths.extend(system.map(Path::to_owned)),
                Level::Partial => {
                    let excluded = excluded(plan)?;
                    paths.extend(system.flat_map(|path| everything_but(path, &excluded)));
                }
            }
            paths.push(PathBuf::from("/proc"));
        }
    }
    paths.extend(plan.roots.iter().cloned());
    paths.extend(plan.readable.iter().chain(&plan.own).cloned());
    if level == Level::Full && plan.network == Network::On {
        paths.push(PathBuf::from("/etc/resolv.conf"));
    }
    Ok(paths)
}

fn writable(plan: &Plan, level: Level) -> Vec<PathBuf> {
    let mut paths = match plan.writing {
        Writing::Nothing => Vec::new(),
        Writing::Roots | Writing::Anywhere => plan.roots.clone(),
    };
    paths.extend(plan.own.iter().cloned());
    match level {
        Level::Full => {
            paths.push(PathBuf::from("/dev"));
            paths.extend(known_paths::TEMP.iter().map(PathBuf::from));
        }
        Level::Partial => {
            paths.push(plan.temp.clone());
            paths.extend(DEVICES.iter().map(|name| Path::new("/dev").join(name)));
        }
    }
    paths
}

/// Returns the paths to leave out of the allowed folders. Landlock can only allow, so a
/// secret path in an allowed folder would stay reachable.
fn excluded(plan: &Plan) -> Result<Vec<PathBuf>> {
    for path in &plan.hidden {
        if plan.roots.iter().any(|root| path.starts_with(root)) {
            return Err(Error::NotHideable { path: path.clone() });
        }
    }
    let in_roots = |path: &&PathBuf| plan.roots.iter().any(|root| path.starts_with(root));
    let denied = plan.denied.iter().filter(|path| !in_roots(path));
    let mut paths: Vec<PathBuf> = plan.hidden.iter().chain(denied).cloned().collect();
    // Disks can be read as devices, at least by root.
    paths.push(PathBuf::from("/dev"));
    Ok(paths)
}

/// Returns the largest folders that contain no excluded path. The folders above an excluded
/// path are not allowed, because listing them would reveal it.
fn everything_but(folder: &Path, excluded: &[PathBuf]) -> Vec<PathBuf> {
    if excluded.iter().any(|path| folder.starts_with(path)) {
        return Vec::new();
    }
    if !excluded.iter().any(|path| path.starts_with(folder)) {
        return vec![folder.to_owned()];
    }
    known_paths::names(folder)
        .iter()
        .filter(|path| known_paths::kind(path) != Kind::Link)
        .flat_map(|path| everything_but(path, excluded))
        .collect()
}
