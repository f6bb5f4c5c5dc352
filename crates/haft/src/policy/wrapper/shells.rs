//! Shells, and programs that pass text to a shell.

use super::builtins::changes_text;
use super::options::{self, Parsed, Spec};
use super::{Inside, table, texts, unclear, unknown};
use crate::policy::shell::{Dialect, Input, Simple, Word};

/// Shells whose language is not supported here.
const OTHERS: &[&str] = &["csh", "fish", "ksh", "mksh", "tcsh", "zsh"];

/// The long options of bash, without their dashes.
const LONG_NAMES: &[&str] = &[
    "debug",
    "debugger",
    "dump-po-strings",
    "dump-strings",
    "help",
    "init-file",
    "login",
    "noediting",
    "noprofile",
    "norc",
    "posix",
    "pretty-print",
    "protected",
    "rcfile",
    "restricted",
    "verbose",
    "version",
    "wordexp",
];

/// Returns what such a program runs; `None` for any other program.
pub(super) fn inside(
    name: &str,
    words: &[Word],
    command: &Simple,
    documents: &[Option<Word>],
) -> Option<Result<Vec<Inside>, String>> {
    let input = |dialect| stdin(name, &command.input, documents, dialect);
    Some(match name {
        "bash" | "rbash" => shell(name, words, Dialect::Bash, input),
        "sh" | "dash" | "ash" => shell(name, words, Dialect::Posix, input),
        name if OTHERS.contains(&name) => match words.first().map(file) {
            Some(true) => Ok(Vec::new()),
            _ => Err(unknown(name)),
        },
        "eval" => {
            let words = match words.split_first() {
                Some((first, rest)) if first.known() == Some("--") => rest,
                _ => words,
            };
            texts(name, words).map(|texts| vec![Inside::Line(texts.join(" "), Dialect::Bash)])
        }
        "." | "source" => match words.first() {
            None => Ok(Vec::new()),
            Some(word) if file(word) => Ok(Vec::new()),
            Some(_) => Err(unknown_file(name)),
        },
        "exec" => exec(name, words, &command.input, input),
        "watch" => watch(name, words),
        "script" => texts_of(name, words, &table::SCRIPT, &["c", "command"]),
        "su" | "runuser" => su(name, words),
        "flock" => flock(name, words),
        "ssh" => ssh(name, words, input),
        _ => return None,
    })
}

/// Whether a word names a script in a file.
fn file(word: &Word) -> bool {
    let (prefix, suffix) = (word.prefix(), word.suffix());
    let is_device = |part: &str| matches!(part, "dev" | "proc");
    let is_device = prefix.contains('/') && prefix.split('/').any(is_device);
    // Names that the kernel gives to open files, also relative to their folder.
    let last = suffix.rsplit('/').next().unwrap_or_default();
    let is_made_up = ["stdin", "cmdline", "environ", "comm"].contains(&last);
    let is_open_file = is_made_up || last.chars().all(|c| c.is_ascii_digit());
    !word.splits()
        && !word.is_pattern()
        && !is_device
        && !is_open_file
        && !prefix.starts_with('-')
        && (word.known().is_some() || suffix.contains('/'))
}

fn unknown_file(name: &str) -> String {
    format!("the script that \"{name}\" runs is not in a file with a literal name")
}

fn not_literal(name: &str) -> String {
    format!("the text given to \"{name}\" is not literal")
}

fn shell(
    name: &str,
    words: &[Word],
    dialect: Dialect,
    input: impl Fn(Dialect) -> Result<Vec<Inside>, String>,
) -> Result<Vec<Inside>, String> {
    const FLAGS: &str = "abefhilmnprtuvxBCDEPTcs";
    // Off by default, or harmless when turned off.
    const OFF: &str = "abefhklmnprtuvxCDEHPT";
    const LONG: &[&str] = &[
        "--norc",
        "--noprofile",
        "--login",
        "--posix",
        "--verbose",
        "--noediting",
        "--restricted",
        "--",
        "-",
    ];
    let (mut takes_text, mut reads_input, mut interactive) = (false, false, false);
    let mut rest = words;
    while let Some((word, behind)) = rest.split_first() {
        let Some(text) = word.known() else {
            if takes_text {
                return Err(not_literal(name));
            }
            // The word may be an option, unless it is a file.
            if !file(word) {
                return Err(unclear(name));
            }
            break;
        };
        if text == "--help" || text == "--version" {
            return Ok(Vec::new());
        }
        if text == "--rcfile" || text == "--init-file" {
            let (given, after) = behind.split_first().ok_or_else(|| unknown_file(name))?;
            if !file(given) {
                return Err(unknown_file(name));
            }
            rest = after;
            continue;
        }
        if LONG.contains(&text) {
            rest = behind;
            if text == "--" || text == "-" {
                break;
            }
            continue;
        }
        let Some(letters) = text.strip_prefix(['-', '+']) else {
            break;
        };
        let on = text.starts_with('-');
        let not_known = || format!("the option {text} of \"{name}\" is not known");
        // bash accepts its long options with one dash too, but not everywhere.
        if LONG_NAMES.contains(&letters) {
            return Err(not_known());
        }
        rest = behind;
        for letter in letters.chars() {
            match letter {
                'o' | 'O' => {
                    let value = rest.split_first().filter(|(word, _)| {
                        word.known()
                            .is_some_and(|option| changes_text(option, on).is_none())
                    });
                    (_, rest) = value.ok_or_else(|| unclear(name))?;
                }
                'c' if on => takes_text = true,
                's' if on => reads_input = true,
                'i' if on => interactive = true,
                // bash accepts +c and +s for -c and -s; other shells do not.
                letter if on && FLAGS.contains(letter) => {}
                letter if !on && OFF.contains(letter) => {}
                _ => return Err(not_known()),
            }
        }
    }
    let mut inside = Vec::new();
    if interactive {
        inside.push(Inside::Interactive);
    }
    if takes_text {
        let text = rest.first().ok_or_else(|| unknown(name))?;
        let text = text.known().ok_or_else(|| not_literal(name))?;
        inside.push(Inside::Line(text.to_owned(), dialect));
        return Ok(inside);
    }
    match rest.first() {
        Some(script) if !reads_input => match file(script) {
            true => Ok(inside),
            false => Err(unknown_file(name)),
        },
        // An interactive shell replaces `!` in its input.
        _ if interactive => Err(unknown(name)),
        _ => input(dialect),
    }
}

/// Returns the commands that a shell reads from its input.
fn stdin(
    name: &str,
    input: &Input,
    documents: &[Option<Word>],
    dialect: Dialect,
) -> Result<Vec<Inside>, String> {
    let unclear = || match name {
        "exec" => "\"exec\" changes the input that the shell may read its commands from".to_owned(),
        _ => format!("\"{name}\" reads its commands from input that is not literal"),
    };
    let word = match input {
        Input::Inherited => return Err(unclear()),
        Input::File(word) => {
            return match word.known() == Some("/dev/null") || file(word) {
                true => Ok(Vec::new()),
                false => Err(unclear()),
            };
        }
        Input::Document(id) => documents.get(*id).and_then(Option::as_ref),
        Input::Text(word) => Some(word),
    };
    let text = word.and_then(Word::known).ok_or_else(unclear)?;
    Ok(vec![Inside::Line(text.to_owned(), dialect)])
}

/// Handles `exec`: without a command it changes the input of the shell itself, which the
/// shell may read its commands from.
fn exec(
    name: &str,
    words: &[Word],
    from: &Input,
    input: impl Fn(Dialect) -> Result<Vec<Inside>, String>,
) -> Result<Vec<Inside>, String> {
    let parsed = options::parse(name, words, &table::EXEC)?;
    let is_moved = parsed.command.is_empty() && *from != Input::Inherited;
    let mut inside = parsed.run(name)?;
    if is_moved {
        inside.extend(input(Dialect::Bash)?);
    }
    Ok(inside)
}

fn joined(name: &str, words: &[Word]) -> Result<Inside, String> {
    Ok(Inside::Line(texts(name, words)?.join(" "), Dialect::Posix))
}

fn watch(name: &str, words: &[Word]) -> Result<Vec<Inside>, String> {
    let parsed = options::parse(name, words, &table::WATCH)?;
    if parsed.has("x") || parsed.has("exec") {
        return Ok(vec![Inside::Words(parsed.command.to_vec())]);
    }
    Ok(vec![joined(name, parsed.command)?])
}

/// Parses options anywhere among other words.
fn everywhere<'w>(name: &str, words: &'w [Word], spec: &Spec) -> Result<Parsed<'w>, String> {
    let mut all = Parsed::default();
    let mut rest = words;
    loop {
        let parsed = options::parse(name, rest, spec)?;
        all.options.extend(parsed.options);
        let Some((word, behind)) = parsed.command.split_first() else {
            return Ok(all);
        };
        if word.known().is_none() {
            return Err(unclear(name));
        }
        all.operands.push(word);
        rest = behind;
    }
}

/// Returns the texts that options pass to a shell.
fn texts_of(
    name: &str,
    words: &[Word],
    spec: &Spec,
    options: &[&str],
) -> Result<Vec<Inside>, String> {
    let parsed = everywhere(name, words, spec)?;
    let mut inside = Vec::new();
    for (option, value) in &parsed.options {
        if options.contains(&option.as_str()) {
            let text = value.as_ref().and_then(Word::known);
            let text =
                text.ok_or_else(|| format!("the text that \"{name}\" runs is not literal"))?;
            inside.push(Inside::Line(text.to_owned(), Dialect::Posix));
        }
        if ["s", "shell"].contains(&option.as_str()) {
            let shell = value.clone().unwrap_or_else(Word::unknown);
            inside.push(Inside::Words(vec![
                shell,
                Word::literal("-c"),
                Word::literal(":"),
            ]));
        }
    }
    let told = parsed.has("help") || parsed.has("version");
    if inside.is_empty() && !told {
        return Err(format!("\"{name}\" starts a shell that reads its input"));
    }
    Ok(inside)
}

fn su(name: &str, words: &[Word]) -> Result<Vec<Inside>, String> {
    texts_of(
        name,
        words,
        &table::SU,
        &["c", "command", "session-command"],
    )
}

fn flock(name: &str, words: &[Word]) -> Result<Vec<Inside>, String> {
    let parsed = options::parse(name, words, &table::FLOCK)?;
    match parsed.command.split_first() {
        Some((first, rest)) if ["-c", "--command"].iter().any(|c| first.can_be(c)) => {
            Ok(vec![joined(name, rest)?])
        }
        Some((first, _)) if first.prefix().starts_with('-') => Err(unclear(name)),
        _ => Ok(vec![Inside::Words(parsed.command.to_vec())]),
    }
}

/// Options of ssh that run or load something other than a command.
const UNFOLLOWED: &[&str] = &[
    "match",
    "include",
    "xauthlocation",
    "pkcs11provider",
    "securitykeyprovider",
];

fn ssh(
    name: &str,
    words: &[Word],
    input: impl Fn(Dialect) -> Result<Vec<Inside>, String>,
) -> Result<Vec<Inside>, String> {
    let parsed = options::parse(name, words, &table::SSH)?;
    let mut options = parsed.options;
    let mut command = parsed.command;
    // Options may also come after the host.
    if command
        .first()
        .is_some_and(|word| word.prefix().starts_with('-'))
    {
        let spec = Spec {
            operands: 0,
            ..table::SSH
        };
        let more = options::parse(name, command, &spec)?;
        options.extend(more.options);
        command = more.command;
    }
    let mut inside = Vec::new();
    for (_, value) in options.iter().filter(|(option, _)| option == "o") {
        let value = value.as_ref().and_then(Word::known);
        let value = value.ok_or_else(|| unclear(name))?;
        let value = value.trim_start();
        let end = value.find(|c: char| !c.is_ascii_alphanumeric());
        let (key, text) = value.split_at(end.unwrap_or(value.len()));
        let key = key.to_ascii_lowercase();
        if key.is_empty() || UNFOLLOWED.contains(&key.as_str()) {
            return Err(unknown(name));
        }
        if key.ends_with("command") {
            let text = text.trim_start_matches([' ', '\t', '=', '\n', '\r', '\x0c']);
            // ssh inserts the host or the user there.
            if text.contains('%') {
                return Err(unknown(name));
            }
            inside.push(Inside::Line(text.to_owned(), Dialect::Posix));
        }
    }
    if command.is_empty() {
        let told = options
            .iter()
            .any(|(option, _)| "VGNQO".contains(option.as_str()));
        if !told {
            inside.extend(input(Dialect::Bash)?);
        }
    } else {
        let text = texts(name, command)?.join(" ");
        let is_plain = |c: char| c.is_ascii_alphanumeric() || " _-./:,@+%".contains(c);
        // A plain command reads the input of ssh.
        inside.push(match text.chars().all(is_plain) {
            true => Inside::Words(text.split_whitespace().map(Word::literal).collect()),
            false => Inside::Line(text, Dialect::Bash),
        });
    }
    Ok(inside)
}
