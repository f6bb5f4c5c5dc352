//! The mechanical rule that sorts outcomes.

use crate::case::Case;
use crate::mapping::Matches;
use anyhow::Result;
use serde::Serialize;

/// Outcome of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Outcome {
    /// The file is exactly as it should be.
    Applied,
    /// Unchanged, and the reply names the right place or the difference.
    Taught,
    /// Unchanged, and the reply does not help.
    Unhelped,
    /// Changed to something else.
    Wrong,
}

/// Sorts an outcome: `now` is the edited file after the call, `touched` whether any other
/// file changed.
pub(crate) fn outcome(
    case: &Case,
    matches: Matches,
    before: &[u8],
    now: Option<&[u8]>,
    touched: bool,
    reply: &str,
) -> Result<Outcome> {
    let Some(now) = now.filter(|_| !touched) else {
        return Ok(Outcome::Wrong);
    };
    let mut right = Vec::new();
    if let Some(after) = &case.after {
        right.push(after.bytes()?);
    }
    if let (Some(after), Matches::All) = (&case.after_all, matches) {
        right.push(after.bytes()?);
    }
    if right.iter().any(|right| right == now) && now != before {
        return Ok(Outcome::Applied);
    }
    if now != before {
        return Ok(Outcome::Wrong);
    }
    Ok(if teaches(case, before, reply) {
        Outcome::Taught
    } else {
        Outcome::Unhelped
    })
}

/// Whether a refusal names a line of the right place, shows one that the call did not have,
/// or has one of the words that the mistake calls for.
fn teaches(case: &Case, before: &[u8], reply: &str) -> bool {
    let lower = reply.to_lowercase();
    if case
        .help
        .iter()
        .any(|word| lower.contains(&word.to_lowercase()))
    {
        return true;
    }
    let (first, last) = case.place;
    let numbers = reply
        .split(|c: char| !c.is_ascii_digit())
        .filter_map(|word| word.parse::<usize>().ok());
    if lower.contains("line")
        && numbers
            .into_iter()
            .any(|number| (first..=last).contains(&number))
    {
        return true;
    }
    let file = String::from_utf8_lossy(before);
    let marked = found_in(reply);
    file.lines()
        .skip(first.saturating_sub(1))
        .take(last + 1 - first)
        .map(str::trim)
        .filter(|line| line.len() > 7)
        .any(|line| {
            (reply.contains(line) && !case.old.contains(line))
                || marked.as_ref().is_some_and(|marked| marked.contains(line))
        })
}

/// Returns a reply that marks differences inline, as in `{-wanted-}{+found+}`, with only
/// what was found.
fn found_in(reply: &str) -> Option<String> {
    let (mut found, mut rest) = (String::new(), reply);
    while let Some((before, marked)) = rest.split_once("{-") {
        let (_, after) = marked.split_once("-}{+")?;
        let (new, after) = after.split_once("+}")?;
        found.push_str(before);
        found.push_str(new);
        rest = after;
    }
    found.push_str(rest);
    (found != reply).then_some(found)
}

#[cfg(test)]
#[path = "classify/tests.rs"]
mod tests;
