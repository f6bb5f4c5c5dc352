//! Suggesting the rule that would make a question unnecessary.

use super::judge::{PolicyInput, Subject};
use super::pattern::lexical;
use super::rule::{Rule, RuleDraft, RuleLocation, Verdict};
use crate::Access;

/// Returns a narrow rule that allows the part. The caller checks whether it helps.
pub(super) fn rule(act: &PolicyInput<'_>, subject: &Subject, place: &RuleLocation) -> Option<Rule> {
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

/// Returns the program and the next word, if that looks like a subcommand.
fn beginning(words: &[String]) -> Vec<String> {
    let is_command = |word: &&String| {
        word.starts_with(|c: char| c.is_ascii_lowercase())
            && word
                .chars()
                .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
    };
    let second = words.get(1).filter(is_command);
    words.first().into_iter().chain(second).cloned().collect()
}
