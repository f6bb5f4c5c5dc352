//! The options of a wrapper, up to the command that it runs.

use super::{Inside, assignment, is_number, is_run, setting, unclear};
use crate::policy::shell::Word;

/// Options of a program, and the words before the command.
#[derive(Debug)]
pub(super) struct Spec {
    pub(super) names: &'static [&'static str],
    /// Letters without a value.
    pub(super) flags: &'static str,
    /// Letters with a value.
    pub(super) values: &'static str,
    /// Long options without a value, or with one after `=`.
    pub(super) long_flags: &'static [&'static str],
    /// Long options with a value.
    pub(super) long_values: &'static [&'static str],
    /// Number of words between the options and the command.
    pub(super) operands: usize,
    pub(super) extra: Extra,
}

/// Other words that may precede the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extra {
    Nothing,
    /// `NAME=value`.
    Assignments,
    /// A number as an option, as in `nice -5`.
    Number,
}

/// The words found before a command.
#[derive(Debug, Default)]
pub(super) struct Parsed<'w> {
    /// Options without their dashes, with their values.
    pub(super) options: Vec<(String, Option<Word>)>,
    /// Values of variables that are run later.
    pub(super) set: Vec<Inside>,
    pub(super) operands: Vec<&'w Word>,
    /// The command that the wrapper runs.
    pub(super) command: &'w [Word],
}

impl Parsed<'_> {
    pub(super) fn has(&self, option: &str) -> bool {
        self.options.iter().any(|(name, _)| name == option)
    }

    /// Returns the command of a wrapper that runs it unchanged.
    pub(super) fn run(self, name: &str) -> Result<Vec<Inside>, String> {
        let starts_shell = ["chroot", "unshare", "nsenter"].contains(&name)
            || (matches!(name, "sudo" | "doas")
                && ["s", "i", "shell", "login"]
                    .iter()
                    .any(|option| self.has(option)));
        let only_tells = self.has("help") || self.has("version");
        if starts_shell && self.command.is_empty() && !only_tells {
            return Err(format!("\"{name}\" starts a shell that reads its input"));
        }
        let mut inside = self.set;
        inside.push(Inside::Words(self.command.to_vec()));
        Ok(inside)
    }
}

/// Separates the options of a wrapper from its command.
pub(super) fn parse<'w>(name: &str, words: &'w [Word], spec: &Spec) -> Result<Parsed<'w>, String> {
    let unknown = |option: &str| format!("the option {option} of \"{name}\" is not known");
    let mut parsed = Parsed::default();
    let mut rest = words;
    let mut options = true;
    while let Some((word, behind)) = rest.split_first() {
        let prefix = word.prefix();
        let is_known = word.known().is_some();
        if word.splits() || word.is_pattern() {
            return Err(unclear(name));
        }
        if options && prefix == "--" && is_known {
            options = false;
        } else if word.known() == Some("-") && spec.extra == Extra::Assignments {
            // `env -` is `env -i`, even after `--`, and ends the options.
            options = false;
        } else if options && prefix.starts_with("--") {
            let (option, value) = match prefix.split_once('=') {
                Some((option, _)) => (option, true),
                None if is_known => (prefix, false),
                None => return Err(unclear(name)),
            };
            let option = option.trim_start_matches('-');
            let takes = spec.long_values.contains(&option);
            let known = matches!(option, "help" | "version") || spec.long_flags.contains(&option);
            if !takes && !known {
                return Err(unknown(prefix));
            }
            let glued = word.known().and_then(|text| text.split_once('='));
            let mut given = glued.map(|(_, value)| Word::literal(value));
            if takes && !value {
                let (next, after) = behind.split_first().ok_or_else(|| unknown(prefix))?;
                if next.splits() || next.is_pattern() {
                    return Err(unclear(name));
                }
                given = Some(next.clone());
                parsed.options.push((option.to_owned(), given));
                rest = after;
                continue;
            }
            parsed.options.push((option.to_owned(), given));
        } else if options && prefix.starts_with('-') && (prefix.len() > 1 || !is_known) {
            let digits = prefix.trim_start_matches(['-', '+']);
            if spec.extra == Extra::Number
                && is_known
                && !digits.is_empty()
                && digits.chars().all(|c| c.is_ascii_digit())
            {
                rest = behind;
                continue;
            }
            rest = letters(word, behind, spec, &mut parsed).ok_or_else(|| unknown(prefix))?;
            continue;
        } else if let Some((variable, value)) =
            assignment(word).filter(|_| spec.extra == Extra::Assignments)
        {
            options = false;
            parsed.set.push(Inside::Assigns(word.clone()));
            parsed.set.push(Inside::Sets(variable.to_owned()));
            if is_number(variable) {
                parsed.set.push(Inside::Evaluates);
            }
            if is_run(variable) {
                parsed.set.extend(setting(variable, value)?);
            }
        } else if parsed.operands.len() < spec.operands {
            if prefix.is_empty() && !is_known && options {
                if name != "timeout" {
                    return Err(unclear(name));
                }
                // It may be an option too, with or without a value.
                let later = [1, 2].into_iter().filter_map(|at| behind.get(at..));
                let later = later.map(|words| Inside::Words(words.to_vec()));
                parsed.set.extend(later);
            }
            options = false;
            parsed.operands.push(word);
        } else {
            break;
        }
        rest = behind;
    }
    parsed.command = rest;
    Ok(parsed)
}

/// Parses single-letter options in one word. Returns the words after them.
fn letters<'w>(
    word: &Word,
    behind: &'w [Word],
    spec: &Spec,
    parsed: &mut Parsed<'w>,
) -> Option<&'w [Word]> {
    let mut letters = word.prefix().chars().skip(1);
    while let Some(letter) = letters.next() {
        if spec.values.contains(letter) {
            let glued: String = letters.collect();
            let is_known = word.known().is_some();
            let (value, rest) = if glued.is_empty() && is_known {
                let (next, rest) = behind.split_first()?;
                if next.splits() || next.is_pattern() {
                    return None;
                }
                (next.clone(), rest)
            } else if is_known {
                (Word::literal(glued), behind)
            } else if glued.is_empty() {
                // If the word ends here, the value is the next word.
                return None;
            } else {
                (Word::unknown(), behind)
            };
            parsed.options.push((letter.to_string(), Some(value)));
            return Some(rest);
        }
        if !spec.flags.contains(letter) {
            return None;
        }
        parsed.options.push((letter.to_string(), None));
    }
    // The rest of the word after a flag must be known too.
    word.known().map(|_| behind)
}
