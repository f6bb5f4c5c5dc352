//! Programs with their own ways to specify the command they run.

use super::{Inside, options, table, texts, unclear, unknown};
use crate::policy::shell::{Dialect, Word};

/// Returns what such a program runs; `None` for any other program.
pub(super) fn inside(name: &str, words: &[Word]) -> Option<Result<Vec<Inside>, String>> {
    Some(match name {
        "env" => env(name, words),
        "xargs" => xargs(name, words),
        "find" => find(name, words),
        "parallel" => parallel(name, words),
        "git" => git(words),
        // A part of git as a program of its own.
        _ if let Some(command) = name.strip_prefix("git-") => {
            let program = ["git", command].into_iter().map(Word::literal);
            let words = program.chain(words.iter().cloned()).collect();
            Ok(vec![Inside::Words(words)])
        }
        _ => return None,
    })
}

fn env(name: &str, words: &[Word]) -> Result<Vec<Inside>, String> {
    let splits = |word: &Word| {
        let prefix = word.prefix();
        prefix.starts_with("--split") || split_string(prefix).is_some()
    };
    let Some((first, behind)) = words.split_first().filter(|(first, _)| splits(first)) else {
        let parsed = options::parse(name, words, &table::ENV)?;
        if parsed.has("S") || parsed.has("split-string") {
            return Err(unclear(name));
        }
        return parsed.run(name);
    };
    // The text is split into words, which are options of `env` again.
    let option = first.known().ok_or_else(|| unclear(name))?;
    let glued = match option.split_once('=') {
        Some((_, text)) if option.starts_with("--") => Some(text),
        _ if option.starts_with("--") => None,
        _ => split_string(option).filter(|text| !text.is_empty()),
    };
    let (text, behind) = match (glued, behind.split_first()) {
        (Some(text), _) => (text, behind),
        (None, Some((next, behind))) => (next.known().ok_or_else(|| unclear(name))?, behind),
        (None, None) => return Err(unclear(name)),
    };
    // `env` splits at more kinds of blanks than a shell does.
    let is_blank = |c: char| c.is_control() && !matches!(c, '\t' | '\n');
    if text.contains(['\\', '$', '#']) || text.contains(is_blank) {
        return Err(unclear(name));
    }
    let mut again: Vec<Word> = shlex::split(text)
        .ok_or_else(|| unclear(name))?
        .into_iter()
        .map(Word::literal)
        .collect();
    again.extend(behind.iter().cloned());
    // Each round takes two words and leaves a shorter text.
    env(name, &again)
}

/// Returns the text after the S in single-letter options, if one of them is -S. The rest of
/// the word after u and C is their value.
fn split_string(option: &str) -> Option<&str> {
    let letters = option.strip_prefix('-')?;
    let (flags, text) = letters.split_once('S')?;
    flags
        .chars()
        .all(|flag| table::ENV.flags.contains(flag))
        .then_some(text)
}

fn xargs(name: &str, words: &[Word]) -> Result<Vec<Inside>, String> {
    let parsed = options::parse(name, words, &table::XARGS)?;
    let marks = parsed.options.iter().filter(|(option, _)| option == "I");
    let mut command = parsed.command.to_vec();
    if command.is_empty() {
        return Ok(Vec::new());
    }
    let mut replaces = false;
    for (_, value) in marks {
        let mark = value
            .as_ref()
            .and_then(Word::known)
            .filter(|mark| !mark.is_empty());
        let mark = mark.ok_or_else(|| unclear(name))?;
        command = command.iter().map(|word| word.without(mark)).collect();
        replaces = true;
    }
    // These options cancel -I if they come after it.
    let adds = ["n", "L", "l", "max-args", "max-lines"];
    if !replaces || adds.iter().any(|option| parsed.has(option)) {
        command.push(Word::unknown());
    }
    Ok(vec![Inside::Words(command)])
}

const EXEC: &[&str] = &["-exec", "-execdir", "-ok", "-okdir"];

fn find(name: &str, words: &[Word]) -> Result<Vec<Inside>, String> {
    let mut inside = Vec::new();
    let mut copied = 0;
    let mut rest = words;
    while let Some((word, behind)) = rest.split_first() {
        rest = behind;
        let runs = match word.known() {
            Some(text) => EXEC.contains(&text),
            None if word.is_folder() => {
                inside.push(Inside::Relies);
                false
            }
            None if word.splits() => return Err(unclear(name)),
            // A pattern may become the option and the command.
            None if word.is_pattern()
                && EXEC.iter().any(|option| word.can_be(option))
                && behind.iter().any(is_end) =>
            {
                return Err(unclear(name));
            }
            // The word may be an option that runs the words after it, if something can end
            // them.
            None if EXEC.iter().any(|option| word.can_be(option)) && can_end(behind) => {
                match behind.first() {
                    Some(next) if next.known().is_none() => return Err(unclear(name)),
                    Some(next) => !next.prefix().starts_with(['-', '(', ')', '!', ',']),
                    None => false,
                }
            }
            None => false,
        };
        if !runs {
            continue;
        }
        let ends = behind.iter().position(|word| word.known() == Some(";"));
        let command = behind
            .get(..ends.unwrap_or(behind.len()))
            .unwrap_or_default();
        copied += command.len();
        if inside.len() >= MANY || copied > COPIED {
            return Err(unknown(name));
        }
        inside.push(Inside::Words(
            command.iter().map(|word| word.without("{}")).collect(),
        ));
        // Another command may start after a plus sign, or after what may be a semicolon.
        let end = command.iter().position(is_end).unwrap_or(command.len());
        rest = behind.get(end..).unwrap_or_default();
    }
    Ok(inside)
}

/// Whether a command of at least one word can end within these words.
fn can_end(words: &[Word]) -> bool {
    words.iter().skip(1).any(is_end)
}

/// Whether a word can be the end of a command.
fn is_end(word: &Word) -> bool {
    word.splits() || word.is_pattern() || word.can_be(";") || word.can_be("+")
}

/// Maximum number of commands of one `find`.
const MANY: usize = 32;
/// Maximum number of words in all of them.
const COPIED: usize = 20_000;

/// Handles `parallel`: its words are text for a shell, with others inserted.
fn parallel(name: &str, words: &[Word]) -> Result<Vec<Inside>, String> {
    let parsed = options::parse(name, words, &table::PARALLEL)?;
    // Any text may then be a placeholder.
    if parsed.has("I") {
        return Err(unknown(name));
    }
    let ends = parsed.command.iter().position(|word| {
        let prefix = word.prefix();
        prefix.starts_with(":::")
    });
    let command = parsed.command.get(..ends.unwrap_or(parsed.command.len()));
    let text = texts(name, command.unwrap_or_default())?.join(" ");
    let is_plain = |c: char| c.is_alphanumeric() || " _-./=:,@+%{}".contains(c);
    if text.trim().is_empty() || !text.chars().all(is_plain) {
        return Err(unknown(name));
    }
    let mut words: Vec<Word> = text
        .split_whitespace()
        .map(|word| match word.contains('{') {
            true => Word::unknown(),
            false => Word::literal(word),
        })
        .collect();
    words.push(Word::unknown());
    Ok(vec![Inside::Words(words)])
}

/// Whether a setting of git contains a command.
fn is_command_key(key: &str) -> bool {
    const NAMES: &[&str] = &[
        "core.pager",
        "core.editor",
        "core.sshcommand",
        "core.askpass",
        "core.fsmonitor",
        "core.gitproxy",
        "core.alternaterefscommand",
        "interactive.difffilter",
        "uploadpack.packobjectshook",
        "sequence.editor",
        "diff.external",
    ];
    let key = key.to_ascii_lowercase();
    let last = key.rsplit('.').next().unwrap_or_default();
    NAMES.contains(&key.as_str())
        || ["alias.", "pager.", "credential.", "filter.", "gpg."]
            .iter()
            .any(|section| key.starts_with(section))
        || ["cmd", "command", "driver", "textconv", "helper", "program"].contains(&last)
}

/// Options of git itself without a value in the next word.
const GIT_FLAGS: &[&str] = &[
    "-p",
    "-P",
    "-h",
    "-v",
    "--paginate",
    "--no-pager",
    "--bare",
    "--help",
    "--version",
    "--no-replace-objects",
    "--no-lazy-fetch",
    "--no-optional-locks",
    "--no-advice",
    "--literal-pathspecs",
    "--glob-pathspecs",
    "--noglob-pathspecs",
    "--icase-pathspecs",
    "--html-path",
    "--man-path",
    "--info-path",
];

/// Options of git itself with a value, in the same word or the next one.
const GIT_VALUES: &[&str] = &["--git-dir", "--work-tree", "--namespace", "--attr-source"];

/// Returns the commands that git runs because of its arguments.
pub(super) fn git(words: &[Word]) -> Result<Vec<Inside>, String> {
    let mut inside = Vec::new();
    let mut rest = words;
    // Options of git itself, before its subcommand.
    let (at, command) = loop {
        let Some((word, behind)) = rest.split_first() else {
            return Ok(inside);
        };
        rest = behind;
        if word.splits() || word.is_pattern() {
            return Err(unclear("git"));
        }
        if let Some((option, _)) = word.prefix().split_once('=')
            && GIT_VALUES.contains(&option)
        {
            continue;
        }
        let text = word.known().ok_or_else(|| unclear("git"))?;
        if text == "-c" {
            let (setting, behind) = rest.split_first().ok_or_else(|| unclear("git"))?;
            rest = behind;
            inside.extend(setting_of_git(setting)?);
        } else if text == "-C" || GIT_VALUES.contains(&text) {
            let (value, behind) = rest.split_first().ok_or_else(|| unclear("git"))?;
            if value.splits() || value.is_pattern() {
                return Err(unclear("git"));
            }
            rest = behind;
        } else if text.starts_with('-') {
            if !GIT_FLAGS.contains(&text) {
                return Err(format!("the option {text} of \"git\" is not known"));
            }
        } else {
            break (words.len() - behind.len() - 1, text);
        }
    };
    // A rule names the subcommand, whatever options of git come before it.
    if at > 0 {
        let program = std::iter::once(Word::literal("git"));
        let plain = words.get(at..).unwrap_or_default().iter().cloned();
        inside.push(Inside::Words(program.chain(plain).collect()));
    }
    let line = |text: &str| Inside::Line(text.to_owned(), Dialect::Posix);
    let first = || match rest.first() {
        Some(word) => word.known().map(Some).ok_or_else(|| unclear("git")),
        None => Ok(None),
    };
    match command {
        "bisect" if first()? == Some("run") => {
            inside.push(Inside::Words(rest.get(1..).unwrap_or_default().to_vec()));
        }
        "submodule" => {
            first()?;
            let at = rest.iter().position(|word| word.known() == Some("foreach"));
            let behind = at.and_then(|at| rest.get(at + 1..)).unwrap_or_default();
            let is_option = |word: &&Word| word.prefix().starts_with('-');
            let options = behind.iter().take_while(is_option).count();
            let text = texts("git", behind.get(options..).unwrap_or_default())?;
            if at.is_some() {
                inside.push(line(&text.join(" ")));
            }
        }
        "rebase" | "filter-branch" => {
            for (at, word) in rest.iter().enumerate() {
                let next = || rest.get(at + 1).and_then(Word::known);
                if let Some(text) = given_to_run(command, word, next)? {
                    inside.push(line(text));
                }
            }
        }
        "config" => inside.extend(set_by_git(rest)?),
        _ => {}
    }
    Ok(inside)
}

/// Returns the text that an option of `git rebase` or `git filter-branch` passes to a
/// shell.
fn given_to_run<'w>(
    command: &str,
    word: &'w Word,
    next: impl Fn() -> Option<&'w str>,
) -> Result<Option<&'w str>, String> {
    let Some(text) = word.known() else {
        // It may be such an option, unless its start rules that out.
        let prefix = word.prefix();
        return match !prefix.is_empty() && !prefix.starts_with('-') && !word.splits() {
            true => Ok(None),
            false => Err(unclear("git")),
        };
    };
    let required = |text: Option<&'w str>| text.map(Some).ok_or_else(|| unclear("git"));
    if let Some(long) = text.strip_prefix("--") {
        let (option, glued) = match long.split_once('=') {
            Some((option, value)) => (option, Some(value)),
            None => (long, None),
        };
        // Long options can be abbreviated.
        let runs = match command {
            "rebase" => option.starts_with('e') && "exec".starts_with(option),
            _ => option.ends_with("-filter") || option == "setup",
        };
        return match runs {
            true => required(glued.or_else(next)),
            false => Ok(None),
        };
    }
    // The rest of the word after a letter with a value is that value.
    let Some((before, behind)) = text.strip_prefix('-').and_then(|text| text.split_once('x'))
    else {
        return Ok(None);
    };
    if command != "rebase" || before.contains(['C', 's', 'X', 'S']) {
        return Ok(None);
    }
    match behind {
        "" => required(next()),
        text => Ok(Some(text)),
    }
}

/// Options of `git config` without a value in the next word.
const CONFIG_FLAGS: &[&str] = &[
    "--global",
    "--system",
    "--local",
    "--worktree",
    "--get",
    "--get-all",
    "--get-regexp",
    "--get-urlmatch",
    "--replace-all",
    "--add",
    "--append",
    "--all",
    "--regexp",
    "--unset",
    "--unset-all",
    "--list",
    "-l",
    "--edit",
    "-e",
    "--null",
    "-z",
    "--name-only",
    "--show-origin",
    "--show-scope",
    "--show-names",
    "--bool",
    "--int",
    "--bool-or-int",
    "--bool-or-str",
    "--path",
    "--expiry-date",
    "--includes",
    "--no-includes",
    "--fixed-value",
    "--no-type",
];

/// Returns the commands in the values that `git config` sets.
fn set_by_git(words: &[Word]) -> Result<Vec<Inside>, String> {
    let mut inside = Vec::new();
    // Whether the word may be the value of the option before it, and whether the key has
    // been seen. Anything that looks like the key of a command counts as one.
    let (mut is_value, mut has_key) = (false, false);
    for (at, word) in words.iter().enumerate() {
        let may_be_value = std::mem::take(&mut is_value);
        if !has_key && (word.splits() || word.is_pattern()) {
            return Err(unclear("git"));
        }
        if word.prefix().starts_with('-') {
            let renames = word.prefix().starts_with("--ren");
            if renames {
                check_renamed(words.get(at + 1..).unwrap_or_default())?;
            }
            let is_whole = word.prefix().contains('=') || renames;
            is_value = !is_whole
                && !word
                    .known()
                    .is_some_and(|text| CONFIG_FLAGS.contains(&text));
            continue;
        }
        let Some(text) = word.known() else {
            if !has_key && !may_be_value && !is_other_key(word) {
                return Err(unclear("git"));
            }
            has_key |= !may_be_value;
            continue;
        };
        if text == "rename-section" && !has_key {
            check_renamed(words.get(at + 1..).unwrap_or_default())?;
        }
        has_key |= text.contains('.') && !may_be_value;
        if !is_command_key(text) {
            continue;
        }
        let Some(value) = words.get(at + 1) else {
            continue;
        };
        let value = value.known().ok_or_else(|| unclear("git"))?;
        let is_alias = text.to_ascii_lowercase().starts_with("alias.");
        let line = match value.strip_prefix('!') {
            Some(line) => line.to_owned(),
            None if is_alias => format!("git {value}"),
            None => value.to_owned(),
        };
        inside.push(Inside::Line(line, Dialect::Posix));
    }
    Ok(inside)
}

/// Whether a key with an unknown middle certainly contains no command.
fn is_other_key(word: &Word) -> bool {
    let (prefix, suffix) = (word.prefix(), word.suffix());
    prefix.contains('.') && suffix.contains('.') && !is_command_key(&format!("{prefix}{suffix}"))
}

/// Checks the names after `--rename-section`: settings must not become commands.
fn check_renamed(names: &[Word]) -> Result<(), String> {
    let harmless = ["branch.", "remote.", "submodule.", "url."];
    let is_harmless = |word: &Word| {
        let prefix = word.prefix().to_ascii_lowercase();
        harmless.iter().any(|section| prefix.starts_with(section))
    };
    match names.iter().all(is_harmless) {
        true => Ok(()),
        false => Err("\"git config\" may turn other settings into commands".to_owned()),
    }
}

/// Returns the command in `-c key=value`.
fn setting_of_git(setting: &Word) -> Result<Option<Inside>, String> {
    if setting.splits() || setting.is_pattern() {
        return Err(unclear("git"));
    }
    let Some((key, _)) = setting.prefix().split_once('=') else {
        return match setting.known() {
            Some(_) => Ok(None),
            None => Err(unclear("git")),
        };
    };
    if !is_command_key(key) {
        return Ok(None);
    }
    let text = setting.known().and_then(|text| text.split_once('='));
    let (_, text) = text.ok_or_else(|| unclear("git"))?;
    let is_alias = key.to_ascii_lowercase().starts_with("alias.");
    let line = match text.strip_prefix('!') {
        Some(line) => line.to_owned(),
        None if is_alias => format!("git {text}"),
        None => text.to_owned(),
    };
    Ok(Some(Inside::Line(line, Dialect::Posix)))
}
