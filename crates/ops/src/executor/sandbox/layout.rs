//! The list of mounts, in mounting order. Touches the disk only to find out the kind of
//! each path.

use super::known_paths::{self, Kind};
use super::plan::{ancestors_in, changed};
use super::{Network, Plan, Result};
use crate::scope::{Reading, Writing};
use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

/// Kind of mount on a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum MountKind {
    /// The folder itself with missing folders added, read-only.
    Scaffold,
    /// A layer over a cache folder, writable.
    Layer,
    /// The path itself, read-only, so that no program in it can be started.
    Inert,
    /// The folder itself, so that it can be neither renamed nor removed.
    Pin,
    /// An empty folder that contains only the mount points below it.
    Cover,
    /// The private temp folder.
    Temp,
    /// The path itself, writable.
    Writable,
    /// The path itself, read-only, wherever it is.
    Readable,
    /// The path itself, read-only, in a writable folder.
    Protected,
    /// The path itself, writable even inside a hidden folder, because it belongs to this
    /// program.
    Own,
    /// Nothing, because the path is secret.
    Hidden,
}

/// A mount and its path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) path: PathBuf,
    pub(super) used: MountKind,
    pub(super) kind: Kind,
    /// Mount points to create in this mount, because the real folder that contains them is
    /// no longer visible.
    pub(super) points: Vec<(PathBuf, Kind)>,
    /// Whether no program in it can be started.
    pub(super) is_inert: bool,
}

/// Returns the mounts, outer ones first.
///
/// # Errors
/// A path has changed since the plan was made.
pub(super) fn entries(plan: &Plan) -> Result<Vec<Entry>> {
    let mut wanted: Vec<(PathBuf, MountKind)> = Vec::new();
    let mut add = |path: &Path, used| wanted.push((path.to_owned(), used));
    for path in &plan.sockets {
        add(path, MountKind::Cover);
    }
    for path in known_paths::TEMP {
        add(&known_paths::real(Path::new(path)), MountKind::Temp);
    }
    if matches!(plan.reading, Reading::RootsAndSystem | Reading::Roots) {
        for path in outside_system() {
            add(&path, MountKind::Cover);
        }
    }
    if plan.network == Network::On {
        // On many systems a link into `/run`. Name resolution needs it.
        add(
            &known_paths::real(Path::new("/etc/resolv.conf")),
            MountKind::Readable,
        );
    }
    if plan.roots.iter().any(|root| root == Path::new("/")) {
        // Device settings and control groups do not belong to any project.
        add(Path::new("/sys"), MountKind::Protected);
    }
    for scaffold in &plan.scaffolds {
        add(&scaffold.folder, MountKind::Scaffold);
    }
    for path in &plan.layers {
        add(path, MountKind::Layer);
    }
    for path in &plan.inert {
        add(path, MountKind::Inert);
    }
    for path in &plan.readable {
        add(path, MountKind::Readable);
    }
    for path in plan.hidden.iter().chain(&plan.denied) {
        add(path, MountKind::Hidden);
    }
    for path in &plan.own {
        add(path, MountKind::Own);
    }
    for root in &plan.roots {
        add(
            root,
            match plan.writing {
                Writing::Nothing => MountKind::Readable,
                Writing::Roots | Writing::Anywhere => MountKind::Writable,
            },
        );
    }
    for path in &plan.protected {
        add(path, MountKind::Protected);
    }
    // A folder that contains a mount can still be renamed, and takes the mount with it, out
    // of reach of the next command's rules. A folder that is itself a mount cannot be
    // renamed.
    let hidden = plan.hidden.iter().chain(&plan.denied);
    let mounted = plan.protected.iter().chain(hidden).chain(&plan.roots);
    let above: HashSet<&Path> = mounted
        .flat_map(|path| ancestors_in(&plan.roots, path))
        .chain(plan.pinned.iter().map(PathBuf::as_path))
        .collect();
    for folder in above {
        add(folder, MountKind::Pin);
    }
    arrange(wanted, &plan.inert, known_paths::kind)
}

/// Whether no program can be started from this mount. What a program was given to read
/// inside such a folder is exempt: its files may be in the folder it works in.
fn is_inert(path: &Path, used: MountKind, inert: &[PathBuf]) -> bool {
    match used {
        MountKind::Inert => true,
        MountKind::Pin | MountKind::Writable | MountKind::Protected => {
            inert.iter().any(|folder| path.starts_with(folder))
        }
        MountKind::Readable => inert.iter().any(|folder| folder == path),
        MountKind::Scaffold
        | MountKind::Layer
        | MountKind::Cover
        | MountKind::Temp
        | MountKind::Own
        | MountKind::Hidden => false,
    }
}

/// Returns the folders at the top of the disk that `strict` does not list.
fn outside_system() -> Vec<PathBuf> {
    let kept = |path: &Path| {
        known_paths::SYSTEM
            .iter()
            .chain(&["/proc", "/dev"])
            .any(|folder| path == Path::new(folder))
    };
    known_paths::names(Path::new("/"))
        .into_iter()
        .filter(|path| !kept(path) && known_paths::kind(path) == Kind::Folder)
        .collect()
}

fn arrange(
    mut wanted: Vec<(PathBuf, MountKind)>,
    inert: &[PathBuf],
    kind: impl Fn(&Path) -> Kind,
) -> Result<Vec<Entry>> {
    // Keep only the strongest use of each path.
    wanted.sort_by_cached_key(|(path, used)| {
        (path.components().count(), path.clone(), Reverse(*used))
    });
    wanted.dedup_by(|(later, _), (earlier, _)| later == earlier);
    let mut kept: Vec<Entry> = Vec::new();
    // Index of each path. With thousands of repositories, comparing all pairs takes longer
    // than mounting.
    let mut places: HashMap<PathBuf, usize> = HashMap::new();
    for (path, used) in wanted {
        let kind = match (kind(&path), used) {
            // Mounted where a scaffold, or the mount around it, has a place for it.
            (Kind::Nothing | Kind::Folder, MountKind::Layer) => Kind::Folder,
            // Without it, the folder just cannot be written.
            (found, MountKind::Layer | MountKind::Scaffold) if found != Kind::Folder => continue,
            (found, _) => found,
        };
        match (kind, used) {
            // Skipping it would leave it open to the command.
            (Kind::Link | Kind::Shut, _)
            | (Kind::Nothing, MountKind::Protected | MountKind::Writable | MountKind::Own) => {
                return Err(changed(&path));
            }
            // Missing, or not accessible to this user, as whom the command runs.
            (Kind::Nothing, _) => continue,
            (Kind::Folder | Kind::File, _) => {}
        }
        // The innermost mount that contains this one.
        let outer = path.ancestors().skip(1).find_map(|above| places.get(above));
        let outer = outer.copied();
        let around = outer.and_then(|at| kept.get(at));
        let is_inert = is_inert(&path, used, inert);
        // What is not visible cannot be started either.
        let is_seen = |entry: &Entry| {
            !matches!(
                entry.used,
                MountKind::Hidden | MountKind::Cover | MountKind::Temp
            )
        };
        let must_be_inert =
            is_inert && around.is_none_or(|entry| is_seen(entry) && !entry.is_inert);
        if !must_be_inert && !is_needed(used, around.map(|entry| entry.used)) {
            continue;
        }
        if let Some(entry) = outer.and_then(|at| kept.get_mut(at))
            && matches!(
                entry.used,
                MountKind::Hidden | MountKind::Cover | MountKind::Temp | MountKind::Layer
            )
            && let Ok(below) = path.strip_prefix(&entry.path)
        {
            entry.points.push((below.to_owned(), kind));
        }
        places.insert(path.clone(), kept.len());
        kept.push(Entry {
            path,
            used,
            kind,
            points: Vec::new(),
            is_inert,
        });
    }
    Ok(kept)
}

/// Whether a mount changes anything, given the one around it.
fn is_needed(used: MountKind, around: Option<MountKind>) -> bool {
    match used {
        MountKind::Hidden => !matches!(
            around,
            Some(MountKind::Hidden | MountKind::Cover | MountKind::Temp)
        ),
        MountKind::Cover | MountKind::Temp => match around {
            Some(MountKind::Hidden) => false,
            Some(MountKind::Cover | MountKind::Temp) => used == MountKind::Temp,
            _ => true,
        },
        MountKind::Own => true,
        MountKind::Layer => matches!(
            around,
            None | Some(
                MountKind::Scaffold | MountKind::Layer | MountKind::Cover | MountKind::Temp
            )
        ),
        MountKind::Scaffold => around.is_none(),
        // Needed only if the mount around it is not inert, which the caller checks.
        MountKind::Inert => false,
        // Everything outside the roots is read-only already.
        MountKind::Protected | MountKind::Pin => {
            matches!(around, Some(MountKind::Writable | MountKind::Pin))
        }
        // Inside another root it is already writable; this mount also pins it.
        MountKind::Writable => !matches!(around, Some(MountKind::Hidden | MountKind::Protected)),
        MountKind::Readable => matches!(
            around,
            Some(
                MountKind::Hidden
                    | MountKind::Layer
                    | MountKind::Cover
                    | MountKind::Temp
                    | MountKind::Writable
                    | MountKind::Readable
                    | MountKind::Pin
                    | MountKind::Inert
            )
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arranged(wanted: &[(&str, MountKind)]) -> Vec<(String, MountKind, Vec<String>)> {
        let wanted = wanted
            .iter()
            .map(|(path, used)| (PathBuf::from(path), *used))
            .collect();
        arrange(wanted, &[], |_| Kind::Folder)
            .unwrap()
            .into_iter()
            .map(|entry| {
                let points = entry
                    .points
                    .iter()
                    .map(|(path, _)| path.display().to_string())
                    .collect();
                (entry.path.display().to_string(), entry.used, points)
            })
            .collect()
    }

    #[test]
    fn a_work_folder_below_a_covered_one_gets_its_mount_point() {
        assert_eq!(
            arranged(&[
                ("/run", MountKind::Cover),
                ("/run/user/1/p", MountKind::Writable),
                ("/run/user/1", MountKind::Cover),
            ]),
            [
                ("/run".into(), MountKind::Cover, vec!["user/1/p".into()]),
                ("/run/user/1/p".into(), MountKind::Writable, vec![]),
            ]
        );
    }

    #[test]
    fn outputs_stay_readable_in_a_folder_of_ours_and_nothing_else_does() {
        assert_eq!(
            arranged(&[
                ("/s/haft", MountKind::Hidden),
                ("/s/haft/out", MountKind::Readable),
                ("/s/haft/w", MountKind::Writable),
            ]),
            [
                ("/s/haft".into(), MountKind::Hidden, vec!["out".into()]),
                ("/s/haft/out".into(), MountKind::Readable, vec![]),
            ]
        );
    }

    #[test]
    fn a_folder_of_the_programs_own_is_writable_inside_a_hidden_one() {
        assert_eq!(
            arranged(&[
                ("/s/haft", MountKind::Hidden),
                ("/s/haft/caches/one", MountKind::Own),
                ("/s/haft/out", MountKind::Readable),
            ]),
            [
                (
                    "/s/haft".into(),
                    MountKind::Hidden,
                    vec!["out".into(), "caches/one".into()]
                ),
                ("/s/haft/out".into(), MountKind::Readable, vec![]),
                ("/s/haft/caches/one".into(), MountKind::Own, vec![]),
            ]
        );
    }

    #[test]
    fn protected_paths_are_mounted_inside_their_pinned_parents() {
        assert_eq!(
            arranged(&[
                ("/w", MountKind::Writable),
                ("/w/a/b", MountKind::Protected),
                ("/w/a", MountKind::Pin),
                ("/elsewhere/hooks", MountKind::Protected),
                ("/w/nested", MountKind::Writable),
            ]),
            [
                ("/w".into(), MountKind::Writable, vec![]),
                ("/w/a".into(), MountKind::Pin, vec![]),
                ("/w/nested".into(), MountKind::Writable, vec![]),
                ("/w/a/b".into(), MountKind::Protected, vec![]),
            ]
        );
    }

    #[test]
    fn a_folder_in_which_nothing_starts_is_mounted_so_wherever_it_is_seen() {
        let wanted = [
            ("/p", MountKind::Inert),
            ("/p/w", MountKind::Inert),
            ("/p/w", MountKind::Writable),
            ("/p/w/hooks", MountKind::Protected),
            ("/p/w/tools", MountKind::Readable),
            ("/covered", MountKind::Cover),
            ("/covered/p", MountKind::Inert),
            ("/out", MountKind::Inert),
            ("/out", MountKind::Readable),
        ];
        let wanted = wanted.map(|(path, used)| (PathBuf::from(path), used));
        let inert = ["/p", "/p/w", "/covered/p", "/out"].map(PathBuf::from);
        let kept = arrange(wanted.to_vec(), &inert, |_| Kind::Folder).unwrap();
        let kept: Vec<_> = kept
            .iter()
            .map(|entry| (entry.path.to_str().unwrap(), entry.used, entry.is_inert))
            .collect();
        assert_eq!(
            kept,
            [
                ("/covered", MountKind::Cover, false),
                ("/out", MountKind::Readable, true),
                ("/p", MountKind::Inert, true),
                ("/p/w", MountKind::Writable, true),
                ("/p/w/hooks", MountKind::Protected, true),
                // Programs that were given to a program can still be started.
                ("/p/w/tools", MountKind::Readable, false),
            ]
        );
    }

    /// Comparing all pairs would take minutes.
    #[test]
    fn ten_thousand_repositories_are_arranged_in_no_time() {
        let begun = std::time::Instant::now();
        let mut wanted = vec![("/w".into(), MountKind::Writable)];
        for number in 0..10_000 {
            let git = PathBuf::from(format!("/w/a/{number}/.git"));
            for name in ["config", "hooks", "info"] {
                wanted.push((git.join(name), MountKind::Protected));
            }
            wanted.push((git, MountKind::Pin));
        }
        let kept = arrange(wanted, &[], |_| Kind::Folder).unwrap();
        assert_eq!(kept.len(), 40_001);
        let took = begun.elapsed();
        assert!(took < std::time::Duration::from_secs(20), "{took:?}");
    }

    #[test]
    fn what_changed_since_the_plan_is_an_error() {
        let one = |used| vec![(PathBuf::from("/w"), used)];
        assert!(arrange(one(MountKind::Protected), &[], |_| Kind::Link).is_err());
        assert!(arrange(one(MountKind::Protected), &[], |_| Kind::Nothing).is_err());
        assert!(arrange(one(MountKind::Hidden), &[], |_| Kind::Link).is_err());
        assert_eq!(
            arrange(one(MountKind::Hidden), &[], |_| Kind::Nothing).unwrap(),
            []
        );
    }

    #[test]
    fn what_is_protected_wins_over_a_pin_and_secret_over_all() {
        assert_eq!(
            arranged(&[
                ("/w", MountKind::Writable),
                ("/w/a", MountKind::Pin),
                ("/w/a", MountKind::Protected),
                ("/w/s", MountKind::Writable),
                ("/w/s", MountKind::Hidden),
            ]),
            [
                ("/w".into(), MountKind::Writable, vec![]),
                ("/w/a".into(), MountKind::Protected, vec![]),
                ("/w/s".into(), MountKind::Hidden, vec![]),
            ]
        );
    }
}
