//! Programs whose words are another command, and words of the shell that change
//! what the words behind them mean. A rule about the first word says nothing
//! about what they do, so the commands that they run are looked for.

mod builtins;
mod options;
mod programs;
mod shells;
mod table;

use super::shell::{Dialect, Hidden, Simple, Word, is_number, is_run, run_by};

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
pub(super) fn obstacle(words: &[Word]) -> Option<String> {
    let name = words.first()?.program()?;
    let any = |options: &[&str]| {
        let mut known = words.iter().filter_map(Word::known);
        known.any(|word| options.contains(&word))
    };
    if is_wrapper(name) {
        return Some(format!("\"{name}\" runs another command"));
    }
    // Arrays have indices, and the shell evaluates those even in quotes.
    if STATE.contains(&name)
        || (matches!(name, "printf" | "test" | "[" | "wait")
            && words
                .iter()
                .any(|word| word.prefix().starts_with("-v") || word.prefix().starts_with("-p")))
    {
        return Some(format!("\"{name}\" changes the shell"));
    }
    if name == "find" && any(FIND) {
        return Some("\"find\" acts on what it finds".to_owned());
    }
    // A line that git could not be followed in is not analysed anyway.
    if name == "git" && programs::git(words.get(1..)?).is_ok_and(|inside| !inside.is_empty()) {
        return Some("\"git\" runs another command".to_owned());
    }
    None
}

pub(super) fn is_wrapper(name: &str) -> bool {
    WRAPPERS.contains(&name) || is_loader(name)
}

/// The program that loads programs.
fn is_loader(name: &str) -> bool {
    name.starts_with("ld.so") || (name.starts_with("ld-") && name.contains(".so"))
}

/// Whether a word names a program by a file that is open or running, such as
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
    /// A command of these words.
    Words(Vec<Word>),
    /// What a shell reads.
    Line(String, Dialect),
    /// The value of a variable that is run later.
    Hidden(Hidden),
    /// A variable, as arithmetic.
    Evaluates,
    /// A variable gets a value that is in this word.
    Assigns(Word),
    /// What a program prints becomes variables.
    Exports,
    /// A folder in a variable is taken for one word.
    Relies,
    /// There is an array.
    Arrays,
    /// A value that is not known becomes an array, if the variable is one.
    Lists,
    /// A shell that reads the file that `ENV` names.
    Interactive,
}

/// The commands that a command runs. An error says why they are not known.
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

/// What the program of this name runs.
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

/// The words that follow cannot be told apart.
fn unclear(name: &str) -> String {
    format!("a word behind \"{name}\" is not literal, and may be an option or a command")
}

/// Nothing is known of what a wrapper does with its words.
fn unknown(name: &str) -> String {
    format!("\"{name}\" runs a command that cannot be made out")
}

/// The texts of words that are all known.
fn texts<'w>(name: &str, words: &'w [Word]) -> Result<Vec<&'w str>, String> {
    let texts: Option<Vec<&str>> = words.iter().map(Word::known).collect();
    texts.ok_or_else(|| format!("the text that \"{name}\" runs is not literal"))
}

/// What setting a variable runs later.
fn setting(name: &str, value: Option<&str>) -> Result<Vec<Inside>, String> {
    Ok(run_by(name, value)?
        .map(Inside::Hidden)
        .into_iter()
        .collect())
}

/// The name and the value of `name=value`, as far as they are known. What `name+=text`
/// adds to is not known.
fn assignment(word: &Word) -> Option<(&str, Option<&str>)> {
    let (name, _) = word.prefix().split_once('=')?;
    if let Some(name) = name.strip_suffix('+') {
        return Some((name, None));
    }
    let value = word.known().and_then(|text| text.split_once('='));
    Some((name, value.map(|(_, value)| value)))
}
