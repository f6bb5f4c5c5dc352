//! Programs with their own ways to say which command they run.

use super::{Inside, options, table, texts, unclear, unknown};
use crate::policy::shell::{Dialect, Word};

/// What such a program runs; `None` if it is not one.
pub(super) fn inside(name: &str, words: &[Word]) -> Option<Result<Vec<Inside>, String>> {
    Some(match name {
        "env" => env(name, words),
        "xargs" => xargs(name, words),
        "find" => find(name, words),
        "parallel" => parallel(name, words),
        "git" => git(words),
        _ => return None,
    })
}

fn env(name: &str, words: &[Word]) -> Result<Vec<Inside>, String> {
    let mut rest = words;
    while let Some((first, behind)) = rest.split_first()
        && first.known() == Some("-")
    {
        rest = behind;
    }
    let splits = |word: &Word| {
        let prefix = word.prefix();
        prefix.starts_with("--split") || (prefix.starts_with('-') && prefix.contains('S'))
    };
    let Some((first, behind)) = rest.split_first().filter(|(first, _)| splits(first)) else {
        let parsed = options::parse(name, rest, &table::ENV)?;
        if parsed.has("S") || parsed.has("split-string") {
            return Err(unclear(name));
        }
        return parsed.run(name);
    };
    // The text is split into words, and those are options of `env` again.
    let option = first.known().ok_or_else(|| unclear(name))?;
    let glued = match option.split_once('=') {
        Some((_, text)) if option.starts_with("--") => Some(text),
        _ if option.starts_with("--") => None,
        _ => option
            .split_once('S')
            .map(|(_, text)| text)
            .filter(|text| !text.is_empty()),
    };
    let (text, behind) = match (glued, behind.split_first()) {
        (Some(text), _) => (text, behind),
        (None, Some((next, behind))) => (next.known().ok_or_else(|| unclear(name))?, behind),
        (None, None) => return Err(unclear(name)),
    };
    if text.contains(['\\', '$', '#']) {
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
    if !replaces {
        command.push(Word::unknown());
    }
    Ok(vec![Inside::Words(command)])
}

const EXEC: &[&str] = &["-exec", "-execdir", "-ok", "-okdir"];

fn find(name: &str, words: &[Word]) -> Result<Vec<Inside>, String> {
    let mut inside = Vec::new();
    let mut rest = words;
    while let Some((word, behind)) = rest.split_first() {
        rest = behind;
        let runs = match word.known() {
            Some(text) => EXEC.contains(&text),
            None if word.splits() => return Err(unclear(name)),
            // It may be an option that runs the words behind it.
            None if EXEC.iter().any(|option| word.can_be(option)) => match behind.first() {
                Some(next) if next.known().is_none() => return Err(unclear(name)),
                Some(next) => !next.prefix().starts_with(['-', '(', ')', '!', ',']),
                None => false,
            },
            None => false,
        };
        if !runs {
            continue;
        }
        let ends = behind.iter().position(|word| word.known() == Some(";"));
        let command = behind
            .get(..ends.unwrap_or(behind.len()))
            .unwrap_or_default();
        inside.push(Inside::Words(
            command.iter().map(|word| word.without("{}")).collect(),
        ));
        // Without a semicolon, another command may begin behind a plus sign.
        let is_plus = |word: &Word| word.known() == Some("+");
        let plus = command.iter().position(is_plus).unwrap_or(command.len());
        rest = behind.get(plus..).unwrap_or_default();
        if inside.len() > MANY {
            return Err(unknown(name));
        }
    }
    Ok(inside)
}

/// Maximum number of commands of one `find`.
const MANY: usize = 32;

/// Its words are text for a shell, with others put in.
fn parallel(name: &str, words: &[Word]) -> Result<Vec<Inside>, String> {
    let parsed = options::parse(name, words, &table::PARALLEL)?;
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

/// Settings of git that hold a command.
fn is_command_key(key: &str) -> bool {
    const NAMES: &[&str] = &[
        "core.pager",
        "core.editor",
        "core.sshcommand",
        "core.askpass",
        "core.fsmonitor",
        "core.gitproxy",
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

fn git(words: &[Word]) -> Result<Vec<Inside>, String> {
    let mut inside = Vec::new();
    let mut rest = words;
    // Options of git itself, up to its command.
    let command = loop {
        let Some((word, behind)) = rest.split_first() else {
            return Ok(inside);
        };
        rest = behind;
        match word.known() {
            // What it is then is for the rules about git to say.
            None => return Ok(inside),
            Some("-c") => {
                let Some((setting, behind)) = rest.split_first() else {
                    return Ok(inside);
                };
                rest = behind;
                inside.extend(setting_of_git(setting)?);
            }
            Some(text) if text.starts_with("--config-env") => return Err(unclear("git")),
            Some("-C" | "--git-dir" | "--work-tree" | "--namespace" | "--super-prefix") => {
                rest = rest.get(1..).unwrap_or_default();
            }
            Some(text) if text.starts_with('-') => {}
            Some(text) => break text,
        }
    };
    let line = |text: &str| Inside::Line(text.to_owned(), Dialect::Posix);
    let known = |at: usize| rest.get(at).and_then(Word::known);
    match command {
        "bisect" if known(0) == Some("run") => {
            inside.push(Inside::Words(rest.get(1..).unwrap_or_default().to_vec()));
        }
        "submodule" => {
            let at = rest.iter().position(|word| word.known() == Some("foreach"));
            let behind = at.and_then(|at| rest.get(at + 1..)).unwrap_or_default();
            let is_option = |word: &&Word| word.prefix().starts_with('-');
            let options = behind.iter().take_while(is_option).count();
            let text = texts("git", behind.get(options..).unwrap_or_default())?;
            inside.push(line(&text.join(" ")));
        }
        "rebase" | "filter-branch" => {
            for (at, word) in rest.iter().enumerate() {
                let (option, glued) = match word.prefix().split_once('=') {
                    Some((option, _)) => (option, true),
                    None => (word.prefix(), false),
                };
                let is_short = option.starts_with("-x") && !option.starts_with("--");
                if !is_short && option != "--exec" && !option.ends_with("-filter") {
                    continue;
                }
                let text = match (glued, is_short && option.len() > 2) {
                    (true, _) => word
                        .known()
                        .and_then(|text| text.split_once('='))
                        .map(|p| p.1),
                    (false, true) => word.known().and_then(|text| text.strip_prefix("-x")),
                    (false, false) => known(at + 1),
                };
                inside.push(line(text.ok_or_else(|| unclear("git"))?));
            }
        }
        "config" => {
            let mut texts = rest.iter().filter_map(Word::known);
            if let Some(text) = texts.find_map(|text| text.strip_prefix('!')) {
                inside.push(line(text));
            }
        }
        _ => {}
    }
    Ok(inside)
}

/// The command in `-c key=value`.
fn setting_of_git(setting: &Word) -> Result<Option<Inside>, String> {
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
    let text = text.strip_prefix('!').unwrap_or(text);
    Ok(Some(Inside::Line(text.to_owned(), Dialect::Posix)))
}
