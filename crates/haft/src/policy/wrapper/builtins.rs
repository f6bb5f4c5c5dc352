//! Shell builtins that run text, name commands or evaluate names.

use super::options::{self, Extra, Spec};
use super::{Inside, assignment, is_number, is_run, setting, texts, unclear, unknown};
use crate::policy::shell::{Dialect, Word, names_words};

const NONE: Spec = Spec {
    names: &[],
    flags: "",
    values: "",
    long_flags: &[],
    long_values: &[],
    operands: 0,
    extra: Extra::Nothing,
};

/// Returns what a builtin runs; `None` for any other word.
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
        "printf" => printf(name, words),
        "test" | "[" => test(name, words),
        "wait" => wait(name, words),
        "set" => set(name, words),
        "shopt" => shopt(name, words),
        "getopts" => getopts(name, words),
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

/// Handles `trap`: the text that a signal runs.
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

/// Handles `alias`: the command of each new name, with any words after it.
fn alias(name: &str, words: &[Word]) -> Result<Vec<Inside>, String> {
    let mut inside = Vec::new();
    for text in texts(name, words)? {
        let Some((alias, value)) = text.split_once('=') else {
            continue;
        };
        // The name must not be part of the shell's grammar.
        let is_name = |c: char| c.is_alphanumeric() || "_-.".contains(c);
        if !alias.chars().all(is_name) || RESERVED.contains(&alias) {
            return Err("an alias for a word of the shell's grammar".to_owned());
        }
        // The value becomes part of the script, so it must be exactly one command.
        let is_plain = |c: char| c.is_alphanumeric() || " _-./=:,@+%".contains(c);
        let first = value.split(' ').find(|word| !word.is_empty());
        let is_command =
            first.is_some_and(|first| !first.contains('=') && !RESERVED.contains(&first));
        if !is_command || !value.chars().all(is_plain) {
            return Err("an alias is more than one command of literal words".to_owned());
        }
        let mut words: Vec<Word> = value.split_whitespace().map(Word::literal).collect();
        words.push(Word::unknown());
        inside.push(Inside::Words(words));
    }
    Ok(inside)
}

/// Reserved words of the shell's grammar.
const RESERVED: &[&str] = &[
    "time", "if", "then", "else", "elif", "fi", "for", "select", "while", "until", "do", "done",
    "case", "esac", "in", "function", "coproc",
];

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
    inside.push(Inside::Arrays);
    inside.push(Inside::Assigns(Word::unknown()));
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
    let mut inside = variables(name, parsed.command)?;
    for word in arrays.filter_map(|(_, value)| value.as_ref()) {
        inside.extend(variables(name, std::slice::from_ref(word))?);
        inside.push(Inside::Arrays);
    }
    inside.push(Inside::Assigns(Word::unknown()));
    Ok(inside)
}

fn variables(name: &str, words: &[Word]) -> Result<Vec<Inside>, String> {
    words.iter().try_for_each(|word| variable(name, word))?;
    let evaluates = |word: &Word| word.prefix().contains('[') || is_number(word.prefix());
    let evaluates = words.iter().any(evaluates).then_some(Inside::Evaluates);
    let set = words
        .iter()
        .filter_map(|word| word.prefix().split('[').next());
    let set = set.map(|name| Inside::Sets(name.to_owned()));
    Ok(evaluates.into_iter().chain(set).collect())
}

/// Checks the name of a variable that is set or read: the shell evaluates a subscript in
/// it.
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
    // Whether later values become numbers, arrays or other letters.
    let mut converts = false;
    for word in words {
        // A number is evaluated, and so is the name of another variable.
        let letters = word.prefix().strip_prefix(['-', '+']).unwrap_or_default();
        if letters.contains('n') && name != "export" {
            return Err(format!("\"{name}\" gives a variable another name"));
        }
        converts |= letters.contains(['i', 'l', 'u', 'c', 'a', 'A']) && !letters.contains('=');
        let variable = word.prefix().split(['=', '+', '[']).next();
        if let Some(run) = variable.filter(|name| converts && is_run(name)) {
            return Err(format!("the variable {run} decides what is run"));
        }
        if letters.contains('i') || word.prefix().contains('[') || variable.is_some_and(is_number) {
            inside.push(Inside::Evaluates);
        }
        if letters.contains(['a', 'A']) {
            inside.push(Inside::Arrays);
        }
        let Some((variable, value)) = assignment(word) else {
            match word.known() {
                Some(text) if text.contains(['$', '`']) => return Err(unclear(name)),
                None if name == "export" && word.is_output() => {
                    inside.push(Inside::Exports);
                    continue;
                }
                None => return Err(unclear(name)),
                _ => continue,
            }
        };
        inside.push(Inside::Assigns(word.clone()));
        inside.extend(as_array(name, word)?);
        if variable.contains(['$', '`']) {
            return Err(unclear(name));
        }
        let variable = variable.split('[').next().unwrap_or_default();
        inside.push(Inside::Sets(variable.to_owned()));
        inside.extend(setting(variable, value)?);
    }
    Ok(inside)
}

/// Handles the case that the variable in `name=value` is an array: the shell then parses a
/// value in parentheses again, whatever quotes were around it.
fn as_array(name: &str, word: &Word) -> Result<Option<Inside>, String> {
    let (_, value) = word.prefix().split_once('=').unwrap_or_default();
    if word.is_list() || !(value.is_empty() || value.starts_with('(')) {
        return Ok(None);
    }
    if word.known().is_none() {
        return Ok(Some(Inside::Lists));
    }
    let is_array = value.starts_with('(') && value.ends_with(')');
    if is_array && value.contains(['$', '`', '<', '>', '\\']) {
        return Err(format!(
            "\"{name}\" may read quoted text in parentheses as an array"
        ));
    }
    Ok((is_array && value.contains('[')).then_some(Inside::Evaluates))
}

/// `getopts LETTERS NAME`.
fn getopts(name: &str, words: &[Word]) -> Result<Vec<Inside>, String> {
    let mut inside = variables(name, words.get(1..2).unwrap_or_default())?;
    inside.push(Inside::Assigns(Word::unknown()));
    Ok(inside)
}

/// Handles arithmetic in words.
fn evaluate(name: &str, words: &[Word]) -> Result<Vec<Inside>, String> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let all = texts(name, words)?;
    let mut names = all.iter().flat_map(|text| text.split(|c| !is_part(c)));
    if let Some(run) = names.find(|name| is_run(name)) {
        return Err(format!("the variable {run} decides what is run"));
    }
    match texts(name, words)?
        .iter()
        .any(|text| text.contains(['$', '`']))
    {
        true => Err(format!(
            "\"{name}\" evaluates text that contains a substitution"
        )),
        false => {
            let mut known = words.iter().filter_map(Word::known);
            let unknown = known.any(names_words);
            let unknown = unknown.then(|| Inside::Assigns(Word::unknown()));
            let names = all.iter().flat_map(|text| text.split(|c| !is_part(c)));
            let set = names.map(|name| Inside::Sets(name.to_owned()));
            Ok([Inside::Evaluates]
                .into_iter()
                .chain(unknown)
                .chain(set)
                .collect())
        }
    }
}

/// `printf -v NAME FORMAT …`.
fn printf(name: &str, words: &[Word]) -> Result<Vec<Inside>, String> {
    let Some((first, rest)) = words.split_first() else {
        return Ok(Vec::new());
    };
    if first.splits() || first.is_pattern() {
        return Err(unclear(name));
    }
    let (target, values) = if let Some(glued) = first.prefix().strip_prefix("-v") {
        match (glued, first.known().is_some(), rest.split_first()) {
            (_, false, _) => return Err(unclear(name)),
            ("", true, Some((target, values))) => (target.clone(), values),
            ("", true, None) => return Ok(Vec::new()),
            (glued, true, _) => (Word::literal(glued), rest),
        }
    } else if first.can_be("-v") {
        // The format may be the option.
        match rest.split_first() {
            Some((target, values)) if !values.is_empty() => (target.clone(), values),
            _ => return Ok(Vec::new()),
        }
    } else {
        return Ok(Vec::new());
    };
    let mut inside = variables(name, std::slice::from_ref(&target))?;
    inside.extend(values.iter().cloned().map(Inside::Assigns));
    Ok(inside)
}

/// `test -v NAME`.
fn test(name: &str, words: &[Word]) -> Result<Vec<Inside>, String> {
    let mut inside = Vec::new();
    for (at, word) in words.iter().enumerate() {
        if word.splits() || word.is_pattern() {
            inside.push(Inside::Evaluates);
            inside.push(Inside::Assigns(Word::unknown()));
        } else if word.can_be("-v")
            && let Some(next) = words.get(at + 1)
        {
            match next.known() {
                Some(_) if word.known().is_some() || next.has(&['[']) => {
                    inside.extend(variables(name, std::slice::from_ref(next))?);
                }
                Some(_) => {}
                None => {
                    inside.push(Inside::Evaluates);
                    inside.push(Inside::Assigns(next.clone()));
                }
            }
        }
    }
    Ok(inside)
}

/// `wait -p NAME`.
fn wait(name: &str, words: &[Word]) -> Result<Vec<Inside>, String> {
    let spec = Spec {
        flags: "fn",
        values: "p",
        ..NONE
    };
    // A process id that is not literal cannot be distinguished from an option.
    let options = words
        .iter()
        .take_while(|word| word.prefix().starts_with('-'));
    if options.count() == 0 {
        if words.iter().any(|word| word.has(&['['])) {
            return Err(unclear(name));
        }
        // `wait $PID` may be `wait -p NAME`, which evaluates the name.
        let may_be_option = words
            .iter()
            .any(|word| word.known().is_none() && word.prefix().is_empty());
        return Ok(match may_be_option {
            true => vec![Inside::Evaluates, Inside::Assigns(Word::unknown())],
            false => Vec::new(),
        });
    }
    let parsed = options::parse(name, words, &spec)?;
    let targets = parsed.options.into_iter().filter_map(|(_, value)| value);
    variables(name, &targets.collect::<Vec<_>>())
}

/// Handles `set`: options of the shell, and positional parameters.
fn set(name: &str, words: &[Word]) -> Result<Vec<Inside>, String> {
    let mut rest = words;
    while let Some((word, behind)) = rest.split_first() {
        let text = word.known().ok_or_else(|| unclear(name))?;
        let Some(letters) = text.strip_prefix(['-', '+']) else {
            break;
        };
        let on = text.starts_with('-');
        rest = behind;
        if text == "--" || letters.is_empty() {
            break;
        }
        for letter in letters.chars() {
            let option = match letter {
                'B' => "braceexpand",
                'H' => "histexpand",
                'k' => "keyword",
                'o' => {
                    let Some((option, after)) = rest.split_first() else {
                        continue;
                    };
                    rest = after;
                    option.known().ok_or_else(|| unclear(name))?
                }
                _ => continue,
            };
            if let Some(why) = changes_text(option, on) {
                return Err(why.to_owned());
            }
        }
    }
    Ok(rest.iter().cloned().map(Inside::Assigns).collect())
}

/// Returns why the rest of the script is parsed differently after this shell option is
/// turned on or off, if it is.
pub(super) fn changes_text(option: &str, on: bool) -> Option<&'static str> {
    match (option, on) {
        ("keyword", true) => Some("words behind a command become variables (set -k)"),
        ("history" | "histexpand", true) => Some("the shell replaces ! in the text that follows"),
        ("braceexpand", false) => Some("braces no longer make several words of one (set +B)"),
        ("interactive_comments", false) => Some("comments are no longer comments"),
        ("extquote", false) => Some("quotes in ${ } are no longer quotes"),
        (option, true) if option.starts_with("compat") => {
            Some("the shell reads text as an older version does")
        }
        _ => None,
    }
}

fn shopt(name: &str, words: &[Word]) -> Result<Vec<Inside>, String> {
    let texts = texts(name, words)?;
    let (options, names): (Vec<&str>, Vec<&str>) =
        texts.iter().partition(|text| text.starts_with('-'));
    // Without one of these options it only prints, and with both it fails.
    for (letter, on) in [('s', true), ('u', false)] {
        if !options.iter().any(|option| option.contains(letter)) {
            continue;
        }
        if let Some(why) = names.iter().find_map(|name| changes_text(name, on)) {
            return Err(why.to_owned());
        }
    }
    Ok(Vec::new())
}

/// Handles builtins that load code or run text with some of their options.
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
