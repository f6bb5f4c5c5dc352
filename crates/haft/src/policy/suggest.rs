//! Suggesting the rule that would make a question unnecessary.

use super::judge::{CUT, DecidedBy, JudgedPart, Judgement, PolicyInput, Subject};
use super::pattern::lexical;
use super::rule::{Rule, RuleDraft, RuleLocation, Verdict};
use super::{Policy, RuleOwner};
use crate::Access;
use std::fmt;

/// Maximum number of rules that are suggested for one call.
const MAX_SUGGESTED: usize = 5;

/// Rules that would make a question unnecessary.
#[derive(Debug, Clone)]
pub struct Suggestion {
    rules: Vec<Rule>,
}

impl Suggestion {
    /// Suggests one rule.
    pub(super) fn of(rule: Rule) -> Self {
        Self { rules: vec![rule] }
    }

    /// Suggests a rule for each part that is not allowed; `None` if no rules can express one.
    pub(super) fn about(
        act: &PolicyInput<'_>,
        judgement: &Judgement,
        place: &RuleLocation,
    ) -> Option<Self> {
        let open = judgement.parts.iter();
        let open = open.filter(|part| part.verdict != Verdict::Allow);
        let mut rules: Vec<Rule> = Vec::new();
        for part in open {
            // A rule without a subject would cover everything.
            if part.subject == Subject::Call {
                return None;
            }
            let rule = rule(act, &part.subject, place)?;
            let is_known = |known: &Rule| known.to_string() == rule.to_string();
            if !rules.iter().any(is_known) {
                rules.push(rule);
            }
        }
        (!rules.is_empty() && rules.len() <= MAX_SUGGESTED).then_some(Self { rules })
    }

    /// Adds the rules of another suggestion.
    #[must_use]
    pub(crate) fn and(mut self, other: Self) -> Self {
        self.rules.extend(other.rules);
        self
    }

    /// Returns the rules.
    #[must_use]
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }
}

/// Formats the rules as in a configuration file.
impl fmt::Display for Suggestion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, rule) in self.rules.iter().enumerate() {
            if at > 0 {
                f.write_str(", ")?;
            }
            rule.fmt(f)?;
        }
        Ok(())
    }
}

impl Policy {
    /// Returns rules that would allow a call which needs approval now, if they were the
    /// first rules of the user's file; `None` if no rules would help.
    #[must_use]
    pub fn suggest(&self, act: &PolicyInput<'_>, place: &RuleLocation) -> Option<Suggestion> {
        let mut with = self.clone();
        let mut rules: Vec<Rule> = Vec::new();
        loop {
            let judgement = with.judge(act);
            let is_open = |part: &JudgedPart| {
                part.verdict != Verdict::Allow || matches!(part.by, DecidedBy::Danger(_))
            };
            match judgement.verdict {
                Verdict::Allow if !judgement.parts.iter().any(is_open) => break,
                Verdict::Allow if rules.len() < MAX_SUGGESTED => {}
                Verdict::Review | Verdict::Ask if rules.len() < MAX_SUGGESTED => {}
                _ => return None,
            }
            let known: Vec<String> = rules.iter().map(ToString::to_string).collect();
            let mut open = judgement.parts.iter().filter(|part| is_open(part));
            let rule = open.find_map(|part| {
                if matches!(part.by, DecidedBy::Unreadable { .. }) {
                    return None;
                }
                let rule = rule(act, &part.subject, place)?;
                (!known.contains(&rule.to_string())).then_some(rule)
            })?;
            with = with.with_first(rule.clone(), RuleOwner::User);
            rules.push(rule);
        }
        (!rules.is_empty()).then_some(Suggestion { rules })
    }
}

/// Returns a narrow rule that allows the part. The caller checks whether it helps.
fn rule(act: &PolicyInput<'_>, subject: &Subject, place: &RuleLocation) -> Option<Rule> {
    let mut draft = RuleDraft::new(Verdict::Allow, act.tool, place.clone());
    match subject {
        Subject::Call => {}
        Subject::Command(words) => draft.command = Some(beginning(words)),
        Subject::Path(given, access) => {
            // The real path, if known: the rule must use that name.
            let mut names = act.names.iter().filter(|(name, _)| name == given);
            let path = names
                .next_back()
                .map_or_else(|| act.work_dir.join(given), |(_, path)| path.clone());
            let path = lexical(&path);
            let shown = path.strip_prefix(act.work_dir).unwrap_or(&path).to_str()?;
            if shown.is_empty() || shown.contains(['*', '?', '[', ']', '{', '}', '\\']) {
                return None;
            }
            // Reading a folder includes reading everything in it.
            let is_folder = *access == Access::Read && haft_ops::scope::is_folder(&path);
            draft.path = Some(format!("{shown}{}", if is_folder { "/**" } else { "" }));
        }
        Subject::Host(host) => draft.host = Some(host.clone()),
        Subject::Line(..) => return None,
    }
    Rule::new(draft).ok()
}

/// Programs that run a script or a program that their arguments name.
const RUNNERS: [&str; 18] = [
    "bash", "bun", "bunx", "dash", "deno", "java", "lua", "node", "npx", "perl", "php", "pipx",
    "python", "ruby", "Rscript", "sh", "uvx", "zsh",
];

/// Returns the words that say what a command does: the program, and a subcommand or the script
/// that it runs.
fn beginning(words: &[String]) -> Vec<String> {
    let Some((program, rest)) = words.split_first() else {
        return Vec::new();
    };
    let is_command = |word: &&String| {
        word.starts_with(|c: char| c.is_ascii_lowercase())
            && word
                .chars()
                .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
    };
    let is_whole = rest.iter().all(|word| word != CUT);
    let all = || words.iter().filter(|word| *word != CUT).cloned().collect();
    let name = program.rsplit('/').next().unwrap_or(program);
    let name = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    let count = if RUNNERS.contains(&name) {
        // Options may hold the code itself, as `-c` does.
        match rest.first() {
            Some(word) if word.starts_with('-') && is_whole => return all(),
            _ => 1,
        }
    } else if name == "git" && rest.first().is_some_and(|word| word.starts_with('-')) {
        // The subcommand may come after options; without it, the rule would allow all.
        return all();
    } else {
        match rest.first().filter(is_command).map(String::as_str) {
            // `npm run build`
            Some("run" | "exec" | "x" | "dlx") if name != "cargo" && name != "go" => 2,
            Some(_) => 1,
            None => 0,
        }
    };
    let more = rest.iter().take_while(|word| *word != CUT).take(count);
    std::iter::once(program).chain(more).cloned().collect()
}
