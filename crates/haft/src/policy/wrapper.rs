//! Programs whose arguments are another command, and builtins that change the meaning of
//! the words after them. A rule about the first word does not cover what they do, so the
//! commands that they run are looked for.

mod builtins;
mod options;
mod programs;
mod shells;
mod table;

use super::shell::{Dialect, Hidden, Simple, Word, is_number, is_run, run_by};

/// Programs that run their arguments or their input.
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
    "choom",
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
    "logsave",
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
    "ssh-agent",
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
    "uclampset",
    "unbuffer",
    "unshare",
    "valgrind",
    "watch",
    "x86_64",
    "xargs",
    "xvfb-run",
    "zsh",
];

/// Wrappers that run a command unchanged, with no other rights and in no other place. A rule
/// about all commands applies to the command, not to them.
const TRANSPARENT: &[&str] = &[
    "bash", "builtin", "chronic", "command", "dash", "env", "eval", "exec", "ionice", "nice",
    "nohup", "setsid", "sh", "stdbuf", "time", "timeout", "unbuffer", "xargs",
];

/// Whether a wrapper adds nothing to the commands that were found in it.
pub(super) fn is_transparent(words: &[Word]) -> bool {
    let Some((first, rest)) = words.split_first() else {
        return false;
    };
    // A program of that name in another folder is another program.
    let Some(name) = first.known().filter(|name| TRANSPARENT.contains(name)) else {
        return false;
    };
    // Other options of a shell read more files.
    let is_plain = |word: &Word| {
        let letters = word.known().and_then(|text| text.strip_prefix('-'));
        letters.is_some_and(|letters| {
            letters.contains('c') && letters.chars().all(|c| "ceux".contains(c))
        })
    };
    !matches!(name, "bash" | "dash" | "sh") || rest.first().is_none_or(is_plain)
}

/// Options that make `find` write or remove files.
const FIND: &[&str] = &["-delete", "-fprint", "-fprint0", "-fprintf", "-fls"];

/// Returns why a simple command does more than its first words tell, if it does.
pub(super) fn excess(words: &[Word]) -> Option<&'static str> {
    let is_find = words.first()?.program()? == "find";
    let mut known = words.iter().filter_map(Word::known);
    let acts = is_find && known.any(|word| FIND.contains(&word));
    acts.then_some("\"find\" acts on what it finds")
}

pub(super) fn is_wrapper(name: &str) -> bool {
    WRAPPERS.contains(&name) || is_loader(name)
}

/// Whether the program is the dynamic loader.
fn is_loader(name: &str) -> bool {
    name.starts_with("ld.so") || (name.starts_with("ld-") && name.contains(".so"))
}

/// Whether a word names a program through an open or running file, such as
/// `/proc/self/exe`: which program that is cannot be known.
fn is_open_file(word: &Word, name: &str) -> bool {
    let mut folders = word
        .prefix()
        .split('/')
        .filter(|part| !matches!(*part, "" | "."));
    let is_special = word.prefix().starts_with('/')
        && folders
            .next()
            .is_some_and(|folder| matches!(folder, "proc" | "dev"));
    let has_path = word.is_folder() || word.prefix().contains('/') || word.suffix().contains('/');
    let is_number = !name.is_empty() && name.chars().all(|c| c.is_ascii_digit());
    is_special || (has_path && (name == "exe" || is_number))
}

/// Something that a command runs.
#[derive(Debug)]
pub(super) enum Inside {
    /// A command with these words.
    Words(Vec<Word>),
    /// Text that a shell reads.
    Line(String, Dialect),
    /// The value of a variable that is run later.
    Hidden(Hidden),
    /// A variable that is evaluated as arithmetic.
    Evaluates,
    /// A variable gets the value of this word.
    Assigns(Word),
    /// A variable with this name gets another value.
    Sets(String),
    /// The output of a program becomes variables.
    Exports,
    /// A folder in a variable is assumed to be one word.
    Relies,
    /// There is an array.
    Arrays,
    /// An unknown value becomes an array, if the variable is one.
    Lists,
    /// A shell reads the file that `ENV` names.
    Interactive,
}

/// Returns the commands that a command runs; the error is why they are not known.
pub(super) fn inside(command: &Simple, documents: &[Option<Word>]) -> Result<Vec<Inside>, String> {
    let words = &command.words;
    let Some((first, rest)) = words.split_first() else {
        return Ok(Vec::new());
    };
    let Some(name) = first.program() else {
        let start = match first.prefix() {
            "" => String::new(),
            prefix => format!(" (it begins with \"{prefix}\")"),
        };
        return Err(format!("the name of a command is not literal{start}"));
    };
    if is_open_file(first, name) {
        return Err(format!(
            "the program behind \"{}\" is not known",
            first.prefix()
        ));
    }
    let mut inside = inside_of(name, rest, command, documents)?;
    if first.is_folder() {
        inside.push(Inside::Relies);
    }
    Ok(inside)
}

/// Returns what the program with this name runs.
fn inside_of(
    name: &str,
    rest: &[Word],
    command: &Simple,
    documents: &[Option<Word>],
) -> Result<Vec<Inside>, String> {
    if let Some(inside) = shells::inside(name, rest, command, documents) {
        return inside;
    }
    if let Some(inside) = builtins::inside(name, rest) {
        return inside;
    }
    if let Some(inside) = programs::inside(name, rest) {
        return inside;
    }
    match table::spec(name) {
        Some(spec) => options::parse(name, rest, spec).and_then(|parsed| parsed.run(name)),
        None if is_wrapper(name) => Err(unknown(name)),
        None => Ok(Vec::new()),
    }
}

/// Returns the reason that the words after a wrapper cannot be classified.
fn unclear(name: &str) -> String {
    format!("a word behind \"{name}\" is not literal, and may be an option or a command")
}

/// Returns the reason that the command of a wrapper is not known.
fn unknown(name: &str) -> String {
    format!("\"{name}\" runs a command that cannot be made out")
}

/// Returns the texts of words that are all literal.
fn texts<'w>(name: &str, words: &'w [Word]) -> Result<Vec<&'w str>, String> {
    let texts: Option<Vec<&str>> = words.iter().map(Word::known).collect();
    texts.ok_or_else(|| format!("the text that \"{name}\" runs is not literal"))
}

/// Returns the text that setting a variable runs later.
fn setting(name: &str, value: Option<&str>) -> Result<Vec<Inside>, String> {
    Ok(run_by(name, value)?
        .map(Inside::Hidden)
        .into_iter()
        .collect())
}

/// Returns the name and value of `name=value`, as far as they are known. The result of
/// `name+=text` is not known.
fn assignment(word: &Word) -> Option<(&str, Option<&str>)> {
    let (name, _) = word.prefix().split_once('=')?;
    if let Some(name) = name.strip_suffix('+') {
        return Some((name, None));
    }
    let value = word.known().and_then(|text| text.split_once('='));
    Some((name, value.map(|(_, value)| value)))
}
