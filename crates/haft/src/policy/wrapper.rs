//! Programs whose words are another command, and words of the shell that change
//! what the words behind them mean. A rule about the first word says nothing
//! about what they do.

/// Programs that run what their arguments or their input say.
const WRAPPERS: &[&str] = &[
    ".",
    "ash",
    "at",
    "bash",
    "batch",
    "builtin",
    "busybox",
    "bwrap",
    "capsh",
    "catchsegv",
    "chronic",
    "chroot",
    "chrt",
    "command",
    "coproc",
    "csh",
    "dash",
    "dbus-run-session",
    "doas",
    "entr",
    "env",
    "eval",
    "exec",
    "expect",
    "fakeroot",
    "firejail",
    "fish",
    "flock",
    "gdb",
    "i386",
    "ionice",
    "jobs",
    "ksh",
    "linux32",
    "linux64",
    "ltrace",
    "mksh",
    "newgrp",
    "nice",
    "nohup",
    "nsenter",
    "numactl",
    "parallel",
    "perf",
    "pkexec",
    "prlimit",
    "rbash",
    "rlwrap",
    "rsh",
    "runuser",
    "screen",
    "script",
    "setarch",
    "setpriv",
    "setsid",
    "sg",
    "sh",
    "source",
    "ssh",
    "start-stop-daemon",
    "stdbuf",
    "strace",
    "su",
    "sudo",
    "systemd-run",
    "taskset",
    "tcsh",
    "time",
    "timeout",
    "tmux",
    "torsocks",
    "toybox",
    "unbuffer",
    "unshare",
    "valgrind",
    "watch",
    "x86_64",
    "xargs",
    "xvfb-run",
    "zsh",
];

/// Words of the shell that define, assign or run later.
const STATE: &[&str] = &[
    "alias",
    "bind",
    "compgen",
    "complete",
    "declare",
    "enable",
    "export",
    "fc",
    "getopts",
    "hash",
    "let",
    "local",
    "mapfile",
    "read",
    "readarray",
    "readonly",
    "set",
    "shopt",
    "trap",
    "typeset",
    "unalias",
    "unset",
];

/// What makes `find` more than a search.
const FIND: &[&str] = &[
    "-exec", "-execdir", "-ok", "-okdir", "-delete", "-fprint", "-fprint0", "-fprintf", "-fls",
];

/// Why a simple command is more than its words say, if it is.
pub(super) fn obstacle(words: &[String]) -> Option<String> {
    let first = words.first()?;
    let name = base(first);
    let any = |options: &[&str]| words.iter().any(|word| options.contains(&word.as_str()));
    if WRAPPERS.contains(&name) || name.starts_with("ld-linux") || name.starts_with("ld-musl") {
        return Some(format!("\"{name}\" runs another command"));
    }
    // Arrays have indices, and the shell evaluates those even in quotes.
    if STATE.contains(&name)
        || (matches!(name, "printf" | "test" | "[" | "wait")
            && words
                .iter()
                .any(|word| word.starts_with("-v") || word.starts_with("-p")))
    {
        return Some(format!("\"{name}\" changes the shell"));
    }
    if name == "find" && any(FIND) {
        return Some("\"find\" acts on what it finds".to_owned());
    }
    None
}

/// What a wrapper runs, as far as it can be made out.
pub(super) enum Inside<'a> {
    /// A command of these words.
    Words(&'a [String]),
    /// What a shell reads.
    Line(String),
}

/// Shells, which take a line behind `-c`.
const SHELLS: &[&str] = &[
    "ash", "bash", "csh", "dash", "fish", "ksh", "mksh", "rbash", "sh", "tcsh", "zsh",
];

/// The command within a command, if it is one that runs others. It may be the
/// wrong one: the options of each wrapper are its own.
pub(super) fn inside(words: &[String]) -> Option<Inside<'_>> {
    let (first, rest) = words.split_first()?;
    let name = base(first);
    if name == "eval" {
        return Some(Inside::Line(rest.join(" ")));
    }
    let exec = rest.iter().position(|word| FIND.contains(&word.as_str()));
    if name == "find" {
        return Some(Inside::Words(rest.get(exec? + 1..)?));
    }
    if !WRAPPERS.contains(&name) {
        return None;
    }
    if SHELLS.contains(&name) {
        let is_flag = |word: &String| word.starts_with('-') && word.ends_with('c');
        let line = rest.get(rest.iter().position(is_flag)? + 1)?;
        return Some(Inside::Line(line.clone()));
    }
    // Behind options, settings and numbers.
    let begins = rest.iter().position(|word| {
        !word.starts_with(['-', '+'])
            && !super::line::is_assignment(word)
            && !word.starts_with(|c: char| c.is_ascii_digit())
    })?;
    Some(Inside::Words(rest.get(begins..)?))
}

/// The name of a program without its folder.
pub(super) fn base(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word)
}
