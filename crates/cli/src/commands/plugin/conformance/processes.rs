//! Finds and kills processes that a plugin leaves behind.

/// A process that is still running.
#[derive(Debug)]
pub(super) struct Leftover {
    pub(super) pid: i32,
    /// Command line, shortened.
    pub(super) name: String,
}

/// Makes orphaned descendants become children of this process, so that they can be found.
#[cfg(target_os = "linux")]
pub(super) fn adopt_orphans() {
    // If this fails, processes that leave their group are not found.
    let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
}

#[cfg(not(target_os = "linux"))]
pub(super) fn adopt_orphans() {}

/// Returns all running descendants of this process.
#[cfg(target_os = "linux")]
#[expect(
    clippy::disallowed_methods,
    reason = "/proc is the kernel's list of processes, not a file in the work folder"
)]
pub(super) fn descendants() -> Vec<Leftover> {
    let processes: Vec<(i32, i32)> = std::fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .filter_map(|entry| {
            let pid: i32 = entry.ok()?.file_name().to_str()?.parse().ok()?;
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
            // The name is in brackets and may itself contain brackets.
            let (_, rest) = stat.rsplit_once(") ")?;
            let mut fields = rest.split(' ');
            let state = fields.next()?;
            let parent = fields.next()?.parse().ok()?;
            (state != "Z").then_some((pid, parent))
        })
        .collect();
    let mut family = vec![rustix::process::getpid().as_raw_nonzero().get()];
    let mut at = 0;
    while let Some(parent) = family.get(at).copied() {
        let children = processes
            .iter()
            .filter(|(pid, of)| *of == parent && !family.contains(pid));
        let children: Vec<i32> = children.map(|(pid, _)| *pid).collect();
        family.extend(children);
        at += 1;
    }
    family
        .into_iter()
        .skip(1)
        .map(|pid| {
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let words = line
                .split(|byte| *byte == 0)
                .filter(|word| !word.is_empty());
            let words: Vec<_> = words.map(String::from_utf8_lossy).collect();
            let name = words.join(" ").chars().take(80).collect();
            Leftover { pid, name }
        })
        .collect()
}

#[cfg(not(target_os = "linux"))]
pub(super) fn descendants() -> Vec<Leftover> {
    Vec::new()
}

/// Kills these processes, and those they start meanwhile.
pub(super) fn kill(mut leftovers: Vec<Leftover>) {
    // A process can start another while it is killed; three rounds are more than any
    // normal one needs.
    for _ in 0..3 {
        if leftovers.is_empty() {
            return;
        }
        for process in &leftovers {
            if let Some(pid) = rustix::process::Pid::from_raw(process.pid) {
                let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
            }
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
        leftovers = descendants();
    }
}
