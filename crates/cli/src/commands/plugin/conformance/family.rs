//! The processes that a program leaves behind.

/// A process that is still there.
#[derive(Debug)]
pub(super) struct Left {
    pub(super) pid: i32,
    /// Its command line.
    pub(super) name: String,
}

/// From now on orphans of what is started become children of this process, so that
/// they are found.
#[cfg(target_os = "linux")]
pub(super) fn adopt() {
    // Where it cannot be had, those that leave their group are not found.
    let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
}

#[cfg(not(target_os = "linux"))]
pub(super) fn adopt() {}

/// All processes below this one that live.
#[cfg(target_os = "linux")]
#[expect(
    clippy::disallowed_methods,
    reason = "the kernel's list of processes is no file of the work folder"
)]
pub(super) fn left() -> Vec<Left> {
    let processes: Vec<(i32, i32)> = std::fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .filter_map(|entry| {
            let pid: i32 = entry.ok()?.file_name().to_str()?.parse().ok()?;
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
            // The name stands in brackets, and may hold any.
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
            Left { pid, name }
        })
        .collect()
}

#[cfg(not(target_os = "linux"))]
pub(super) fn left() -> Vec<Left> {
    Vec::new()
}

/// Ends them, and what they start meanwhile.
pub(super) fn end(mut left_over: Vec<Left>) {
    // A process can start another while it is ended; three rounds are more than any
    // honest one needs.
    for _ in 0..3 {
        if left_over.is_empty() {
            return;
        }
        for process in &left_over {
            if let Some(pid) = rustix::process::Pid::from_raw(process.pid) {
                let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
            }
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
        left_over = left();
    }
}
