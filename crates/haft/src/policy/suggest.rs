//! The rule that a person would write to be asked no more.

use super::judge::{Act, Subject};
use super::pattern::lexical;
use super::rule::{Draft, Place, Rule, Verdict};
use crate::Access;

/// A narrow rule that allows the subject. Whether it helps is for the caller to
/// find out.
pub(super) fn rule(act: &Act<'_>, subject: &Subject, place: &Place) -> Option<Rule> {
    let mut draft = Draft::new(Verdict::Allow, act.tool, place.clone());
    match subject {
        Subject::Call => {}
        Subject::Command(words) => draft.command = Some(beginning(words)),
        Subject::Path(given, access) => {
            // Where it really is, if that is known: the rule must name it so.
            let mut names = act.names.iter().filter(|(name, _)| name == given);
            let path = names
                .next_back()
                .map_or_else(|| act.work_dir.join(given), |(_, path)| path.clone());
            let path = lexical(&path);
            let shown = path.strip_prefix(act.work_dir).unwrap_or(&path).to_str()?;
            if shown.is_empty() || shown.contains(['*', '?', '[', ']', '{', '}', '\\']) {
                return None;
            }
            // Who may look at a folder may look at what is in it.
            let is_folder = *access == Access::Read && haft_ops::scope::is_folder(&path);
            draft.path = Some(format!("{shown}{}", if is_folder { "/**" } else { "" }));
        }
        Subject::Host(host) => draft.host = Some(host.clone()),
        Subject::Line(..) => return None,
    }
    Rule::new(draft).ok()
}

/// The program, and the word behind it if that looks like one of its commands.
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
