//! Words of the shell itself that run text, name commands or evaluate names.

use super::options::{self, Extra, Spec};
use super::{Inside, assignment, is_run, setting, texts, unclear, unknown};
use crate::policy::shell::{Dialect, Word};

const NONE: Spec = Spec {
    names: &[],
    flags: "",
    values: "",
    long_flags: &[],
    long_values: &[],
    operands: 0,
    extra: Extra::Nothing,
};

/// What such a word runs; `None` if it is not one.
pub(super) fn inside(name: &str, words: &[Word]) -> Option<Result<Vec<Inside>, String>> {
    Some(match name {
        "command" => command(name, words),
        "trap" => trap(name, words),
        "alias" => alias(name, words),
        "hash" => hash(name, words),
        "mapfile" | "readarray" => mapfile(name, words),
        "jobs" => jobs(name, words),
        "read" => read(name, words),
        "declare" | "typeset" | "local" | "readonly" | "export" => declare(name, words),
        "unset" => variables(name, words),
        "let" => evaluate(name, words),
        "printf" | "test" | "[" | "wait" => named(name, words),
        "enable" | "bind" | "complete" | "compgen" => loaded(name, words),
        "fc" => Err(unknown(name)),
        _ => return None,
    })
}

fn command(name: &str, words: &[Word]) -> Result<Vec<Inside>, String> {
    let spec = Spec {
        flags: "pvV",
        ..NONE
    };
    let parsed = options::parse(name, words, &spec)?;
    if parsed.has("v") || parsed.has("V") {
        return Ok(Vec::new());
    }
    parsed.run(name)
}

/// The text that a signal runs.
fn trap(name: &str, words: &[Word]) -> Result<Vec<Inside>, String> {
    let mut words = words.iter();
    loop {
        let Some(word) = words.next() else {
            return Ok(Vec::new());
        };
        match texts(name, std::slice::from_ref(word))?.first() {
            Some(&("--" | "-l" | "-p" | "-P")) => {}
            Some(&("-" | "")) | None => return Ok(Vec::new()),
            Some(text) if text.chars().all(|c| c.is_ascii_digit()) => return Ok(Vec::new()),
            Some(text) => return Ok(vec![Inside::Line((*text).to_owned(), Dialect::Bash)]),
        }
    }
}

/// What the new names run, with any words behind them.
fn alias(name: &str, words: &[Word]) -> Result<Vec<Inside>, String> {
    let mut inside = Vec::new();
    for text in texts(name, words)? {
        let Some((_, value)) = text.split_once('=') else {
            continue;
        };
        let mut words: Vec<Word> = value.split_whitespace().map(Word::literal).collect();
        words.push(Word::unknown());
        inside.push(Inside::Line(value.to_owned(), Dialect::Bash));
        inside.push(Inside::Words(words));
    }
    Ok(inside)
}

/// `hash -p PROGRAM NAME`: the name runs the program from now on.
fn hash(name: &str, words: &[Word]) -> Result<Vec<Inside>, String> {
    let spec = Spec {
        flags: "rdtl",
        values: "p",
        ..NONE
    };
    let parsed = options::parse(name, words, &spec)?;
    let programs = parsed.options.into_iter().filter_map(|(_, value)| value);
    Ok(programs
        .map(|program| Inside::Words(vec![program, Word::unknown()]))
        .collect())
}

fn mapfile(name: &str, words: &[Word]) -> Result<Vec<Inside>, String> {
    let spec = Spec {
        flags: "t",
        values: "dnOsuCc",
        ..NONE
    };
    let parsed = options::parse(name, words, &spec)?;
    let mut inside = Vec::new();
    for (_, value) in parsed.options.iter().filter(|(option, _)| option == "C") {
        let text = value.as_ref().and_then(Word::known);
        let text = text.ok_or_else(|| format!("the text that \"{name}\" runs is not literal"))?;
        let mut words: Vec<Word> = text.split_whitespace().map(Word::literal).collect();
        words.push(Word::unknown());
        inside.push(Inside::Line(text.to_owned(), Dialect::Bash));
        inside.push(Inside::Words(words));
    }
    inside.extend(variables(name, parsed.command)?);
    Ok(inside)
}

/// `jobs -x COMMAND`.
fn jobs(name: &str, words: &[Word]) -> Result<Vec<Inside>, String> {
    let spec = Spec {
        flags: "lnprsx",
        ..NONE
    };
    let parsed = options::parse(name, words, &spec)?;
    match parsed.has("x") {
        true => parsed.run(name),
        false => Ok(Vec::new()),
    }
}

fn read(name: &str, words: &[Word]) -> Result<Vec<Inside>, String> {
    let spec = Spec {
        flags: "ersE",
        values: "adinNptu",
        ..NONE
    };
    let parsed = options::parse(name, words, &spec)?;
    let arrays = parsed.options.iter().filter(|(option, _)| option == "a");
    for word in arrays.filter_map(|(_, value)| value.as_ref()) {
        variable(name, word)?;
    }
    variables(name, parsed.command)
}

fn variables(name: &str, words: &[Word]) -> Result<Vec<Inside>, String> {
    words.iter().try_for_each(|word| variable(name, word))?;
    let has_subscript = words.iter().any(|word| word.prefix().contains('['));
    Ok(has_subscript
        .then_some(Inside::Evaluates)
        .into_iter()
        .collect())
}

/// Checks the name of a variable that gets a value, or is looked at. The shell evaluates
/// a subscript in it.
fn variable(name: &str, word: &Word) -> Result<(), String> {
    let text = word.known().ok_or_else(|| unclear(name))?;
    if text.contains(['$', '`']) {
        return Err(format!(
            "\"{name}\" evaluates a name that contains a substitution"
        ));
    }
    let plain = text.split('[').next().unwrap_or_default();
    match is_run(plain) && name != "unset" {
        true => Err(format!("the variable {plain} decides what is run")),
        false => Ok(()),
    }
}

fn declare(name: &str, words: &[Word]) -> Result<Vec<Inside>, String> {
    let mut inside = Vec::new();
    for word in words {
        // A number is evaluated, and so is the name of another variable.
        let letters = word.prefix().strip_prefix(['-', '+']).unwrap_or_default();
        if letters.contains(['i', 'n']) || word.prefix().contains('[') {
            inside.push(Inside::Evaluates);
        }
        let Some((variable, value)) = assignment(word) else {
            match word.known() {
                Some(text) if text.contains(['$', '`']) => return Err(unclear(name)),
                None if name != "export" => return Err(unclear(name)),
                _ => continue,
            }
        };
        if variable.contains(['$', '`']) {
            return Err(unclear(name));
        }
        inside.extend(setting(
            variable.split('[').next().unwrap_or_default(),
            value,
        )?);
    }
    Ok(inside)
}

/// Arithmetic in words.
fn evaluate(name: &str, words: &[Word]) -> Result<Vec<Inside>, String> {
    match texts(name, words)?
        .iter()
        .any(|text| text.contains(['$', '`']))
    {
        true => Err(format!(
            "\"{name}\" evaluates text that contains a substitution"
        )),
        false => Ok(vec![Inside::Evaluates]),
    }
}

/// `-v NAME` and `-p NAME`.
fn named(name: &str, words: &[Word]) -> Result<Vec<Inside>, String> {
    let option = if name == "wait" { "-p" } else { "-v" };
    for (at, word) in words.iter().enumerate() {
        if word.known() == Some(option) {
            let Some(next) = words.get(at + 1) else {
                continue;
            };
            return variables(name, std::slice::from_ref(next));
        } else if let Some(glued) = word.prefix().strip_prefix(option)
            && name == "printf"
            && at == 0
        {
            return variables(name, &[Word::literal(glued)]);
        }
        // Behind its format `printf` has no options.
        if name == "printf" {
            break;
        }
    }
    Ok(Vec::new())
}

/// Builtins that load code or run text in some of their options.
fn loaded(name: &str, words: &[Word]) -> Result<Vec<Inside>, String> {
    let runs = match name {
        "enable" => 'f',
        "bind" => 'x',
        _ => 'C',
    };
    for word in words {
        let text = word.known().ok_or_else(|| unclear(name))?;
        let letters = text.strip_prefix('-').unwrap_or_default();
        let is_word_list = name.starts_with("comp") && letters.contains('W');
        if letters.contains(runs) || is_word_list {
            return Err(unknown(name));
        }
    }
    Ok(Vec::new())
}
