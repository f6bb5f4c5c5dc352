//! Limits the number of processes of root, to whom `RLIMIT_NPROC` does not apply.

use rustix::fs::{AtFlags, CWD, Mode, OFlags, mkdirat, openat, unlinkat};
use rustix::io::Errno;
use rustix::process::{Pid, getpid};
use std::io::Write;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Prefix of our group names; only a process id follows.
const PREFIX: &str = "haft-box-";

/// A control group for the calling process. When dropped, the process leaves the group and
/// removes it.
#[derive(Debug)]
pub struct ControlGroup {
    above: OwnedFd,
    name: String,
    /// Process that removes the group. A forked copy must not.
    owner: Pid,
    /// Opened while the process was still in haft's namespaces.
    way_back: std::fs::File,
}

impl ControlGroup {
    /// Moves the calling process into a new group that allows this many further processes.
    pub(super) fn enter(processes: u32) -> Result<Self, String> {
        let above = own_group()?;
        let said = |what: &'static str| {
            let above = above.display().to_string();
            move |error: Errno| format!("{what} in {above}: {error}")
        };
        let folder = openat(
            CWD,
            &above,
            OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
            Mode::empty(),
        )
        .map_err(said("no control group"))?;
        remove_left_over(&folder, &above);
        let (way_back, list) = lists(&folder).map_err(said("cannot come back"))?;
        let name = format!("{PREFIX}{}", getpid().as_raw_nonzero());
        match mkdirat(&folder, &name, Mode::from_raw_mode(0o755)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(said("cannot make a group")(error)),
        }
        // From here on, dropping removes the group.
        let control_group = Self {
            above: folder,
            name,
            owner: getpid(),
            way_back,
        };
        let put = |file: &str, text: String| {
            open_to_write(
                &control_group.above,
                &Path::new(&control_group.name).join(file),
            )
            .map_err(said("no pids controller"))
            .and_then(|mut file| {
                file.write_all(text.as_bytes())
                    .map_err(|error| format!("pids controller: {error}"))
            })
        };
        put("pids.max", (u64::from(processes) + 1).to_string())?;
        put(list, "0".to_owned())?;
        Ok(control_group)
    }
}

impl Drop for ControlGroup {
    fn drop(&mut self) {
        if self.owner != getpid() {
            return;
        }
        let _ = self.way_back.write_all(b"0");
        // The last process may still be exiting.
        for _ in 0..1_000 {
            match unlinkat(&self.above, &self.name, AtFlags::REMOVEDIR) {
                Err(Errno::BUSY) => std::thread::sleep(Duration::from_millis(2)),
                _ => break,
            }
        }
    }
}

/// Opens the file that moves a process into a group. Writing to the list of threads moves a
/// single-threaded process without waiting; writing to the list of processes waits for
/// every processor. Only cgroup v1 has both.
fn lists(folder: &OwnedFd) -> rustix::io::Result<(std::fs::File, &'static str)> {
    match open_to_write(folder, Path::new("tasks")) {
        Ok(file) => Ok((file, "tasks")),
        Err(_) => {
            open_to_write(folder, Path::new("cgroup.procs")).map(|file| (file, "cgroup.procs"))
        }
    }
}

fn open_to_write(folder: &OwnedFd, path: &Path) -> rustix::io::Result<std::fs::File> {
    openat(
        folder,
        path,
        OFlags::WRONLY | OFlags::CLOEXEC,
        Mode::empty(),
    )
    .map(std::fs::File::from)
}

/// Removes the groups of supervisors that were killed. Skips those that still contain
/// processes or whose supervisor is alive.
fn remove_left_over(folder: &OwnedFd, above: &Path) {
    for path in super::known_paths::names(above) {
        let pid = path
            .file_name()
            .and_then(|name| name.to_str()?.strip_prefix(PREFIX)?.parse::<i32>().ok())
            .and_then(Pid::from_raw);
        if let (Some(pid), Some(name)) = (pid, path.file_name())
            && rustix::process::test_kill_process(pid) == Err(Errno::SRCH)
        {
            let _ = unlinkat(folder, name, AtFlags::REMOVEDIR);
        }
    }
}

/// Returns the group of the calling process in which processes are counted.
#[expect(
    clippy::disallowed_methods,
    reason = "two tables of the kernel about the process itself"
)]
fn own_group() -> Result<PathBuf, String> {
    let groups = std::fs::read_to_string("/proc/self/cgroup").map_err(|error| error.to_string())?;
    let mounts =
        std::fs::read_to_string("/proc/self/mountinfo").map_err(|error| error.to_string())?;
    find_group(&groups, &mounts).ok_or_else(|| "no pids control group".to_owned())
}

fn find_group(groups: &str, mounts: &str) -> Option<PathBuf> {
    let group = |wanted: fn(&str) -> bool| {
        groups.lines().find_map(|line| {
            let mut fields = line.splitn(3, ':');
            let controllers = fields.nth(1)?;
            let path = fields.next()?;
            wanted(controllers).then(|| path.to_owned())
        })
    };
    let mount = |kind: &str, option: Option<&str>| {
        mounts.lines().find_map(|line| {
            let (left, right) = line.split_once(" - ")?;
            let mut left = left.split(' ').skip(3);
            let (root, point) = (left.next()?, left.next()?);
            let mut right = right.split(' ');
            let found = right.next()? == kind
                && option.is_none_or(|option| {
                    right
                        .nth(1)
                        .is_some_and(|options| options.split(',').any(|one| one == option))
                });
            found.then(|| (root.to_owned(), point.to_owned()))
        })
    };
    let below = |(root, point): (String, String), path: String| {
        let inside = Path::new(&path).strip_prefix(&root).ok()?.to_owned();
        Some(Path::new(&point).join(inside))
    };
    let first = |controllers: &str| controllers.split(',').any(|one| one == "pids");
    if let (Some(path), Some(place)) = (group(first), mount("cgroup", Some("pids"))) {
        return below(place, path);
    }
    below(mount("cgroup2", None)?, group(str::is_empty)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_group_is_found_in_both_layouts() {
        let first = "9:name=systemd:/\n8:pids:/user/a\n0::/\n";
        let mounts = "30 20 0:25 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n\
                      31 20 0:26 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n\
                      32 20 0:27 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
        assert_eq!(
            find_group(first, mounts),
            Some(PathBuf::from("/sys/fs/cgroup/pids/user/a"))
        );
        assert_eq!(
            find_group(
                "0::/user.slice/x\n",
                "32 20 0:27 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw\n"
            ),
            Some(PathBuf::from("/sys/fs/cgroup/user.slice/x"))
        );
        assert_eq!(find_group("0::/\n", ""), None);
    }
}
