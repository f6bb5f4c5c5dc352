//! The mistakes: what models really send instead of the exact text. Each turns a task into
//! a case, or into none where the mistake is not possible.

mod calls;

use crate::case::{Case, Content, Form, PathForm};
use crate::tasks::{Encoding, Task};
use crate::texts as t;
use std::collections::BTreeMap;

/// Words that are help after a mistake with whitespace.
const WHITESPACE: &[&str] = &["whitespace", "indentation", "spaces wanted", "tab found"];

/// Returns the cases of a task, one for each possible mistake.
pub(crate) fn all(task: &Task) -> Vec<Case> {
    let mut cases = Vec::new();
    exact(task, &mut cases);
    copied(task, &mut cases);
    whitespace(task, &mut cases);
    characters(task, &mut cases);
    different(task, &mut cases);
    cut(task, &mut cases);
    calls::repeated(task, &mut cases);
    calls::arguments(task, &mut cases);
    cases
}

/// Returns the case in which everything is right.
fn base(task: &Task, mistake: &str) -> Case {
    Case {
        task: task.name.clone(),
        mistake: mistake.to_owned(),
        files: BTreeMap::from([(task.path.clone(), Content::of(&task.before))]),
        path: task.path.clone(),
        path_form: PathForm::Usual,
        old: task.old.clone(),
        new: task.new.clone(),
        form: Form::Plain,
        after: Some(Content::of(&task.after)),
        after_all: None,
        place: task.place,
        help: Vec::new(),
    }
}

/// Adds a case with both texts changed, if that changes the old one.
fn both(
    task: &Task,
    cases: &mut Vec<Case>,
    mistake: &str,
    help: &[&str],
    f: impl Fn(&str) -> String,
) {
    texts(task, cases, mistake, help, f(&task.old), f(&task.new));
}

fn texts(
    task: &Task,
    cases: &mut Vec<Case>,
    mistake: &str,
    help: &[&str],
    old: String,
    new: String,
) {
    if old == task.old || old.trim().is_empty() {
        return;
    }
    let mut case = base(task, mistake);
    (case.old, case.new) = (old, new);
    case.help = help.iter().map(|word| (*word).to_owned()).collect();
    cases.push(case);
}

/// Adds a case whose only right answer is a refusal.
fn refusal(
    task: &Task,
    cases: &mut Vec<Case>,
    mistake: &str,
    help: &[&str],
    old: String,
    new: String,
) {
    texts(task, cases, mistake, help, old, new);
    if let Some(case) = cases.last_mut().filter(|case| case.mistake == mistake) {
        case.after = None;
    }
}

fn exact(task: &Task, cases: &mut Vec<Case>) {
    cases.push(base(task, "none"));
    let mut case = base(task, "CRLF sent");
    case.old = case.old.replace('\n', "\r\n");
    case.new = case.new.replace('\n', "\r\n");
    if case.old != task.old {
        cases.push(case);
    }
    // The whole file as the old text.
    let mut case = base(task, "whole file");
    case.old.clone_from(&task.view);
    case.new = task.view.replacen(&task.old, &task.new, 1);
    // Text that a model sees of other encodings cannot be matched.
    if task.encoding != Encoding::Latin1 {
        cases.push(case);
    }
}

fn copied(task: &Task, cases: &mut Vec<Case>) {
    let help = &["line number"];
    let first = task.place.0;
    for (mistake, width, separator) in [
        ("line numbers, cat -n", 6, "\t"),
        ("line numbers, tab", 0, "\t"),
        ("line numbers, colon", 0, ": "),
        ("line numbers, bar", 4, "| "),
        ("line numbers, arrow", 5, "\u{2192}"),
    ] {
        both(task, cases, mistake, help, |text| {
            t::numbered(text, first, width, separator)
        });
    }
    let old = t::numbered(&task.old, first, 6, "\t");
    texts(
        task,
        cases,
        "line numbers, old only",
        help,
        old,
        task.new.clone(),
    );
    let escaped = &["backslash", "\\n"];
    if task.old.contains('\n') {
        both(task, cases, "newlines as \\n", escaped, |text| {
            text.replace('\n', "\\n")
        });
        let old = task.old.replace('\n', "\\n");
        texts(
            task,
            cases,
            "newlines as \\n, old only",
            escaped,
            old,
            task.new.clone(),
        );
    }
    both(task, cases, "quotes as \\\"", escaped, |text| {
        text.replace('"', "\\\"")
    });
    both(task, cases, "escaped like JSON", escaped, t::json_escaped);
    both(task, cases, "tabs as \\t", escaped, |text| {
        text.replace('\t', "\\t")
    });
    both(task, cases, "HTML entities", &["entities"], t::entities);
    let fenced = |text: &str| format!("```\n{text}\n```");
    both(task, cases, "code fence", &["```", "fence"], fenced);
    let old = task
        .old
        .lines()
        .map(|line| format!("-{line}"))
        .collect::<Vec<_>>()
        .join("\n");
    let new = task
        .new
        .lines()
        .map(|line| format!("+{line}"))
        .collect::<Vec<_>>()
        .join("\n");
    texts(task, cases, "diff markers", &["wanted"], old, new);
}

fn whitespace(task: &Task, cases: &mut Vec<Case>) {
    both(
        task,
        cases,
        "indentation removed",
        WHITESPACE,
        t::dedented(&task.old),
    );
    both(task, cases, "indentation + 4 spaces", WHITESPACE, |text| {
        t::indented(text, "    ")
    });
    both(task, cases, "indentation + 1 tab", WHITESPACE, |text| {
        t::indented(text, "\t")
    });
    both(
        task,
        cases,
        "indentation - 2 spaces",
        WHITESPACE,
        t::shallower(&task.old, 2),
    );
    both(task, cases, "tabs as 4 spaces", WHITESPACE, |text| {
        t::untabbed(text, 4)
    });
    both(task, cases, "tabs as 8 spaces", WHITESPACE, |text| {
        t::untabbed(text, 8)
    });
    both(task, cases, "4 spaces as tabs", WHITESPACE, |text| {
        t::tabbed(text, 4)
    });
    both(task, cases, "2 spaces as tabs", WHITESPACE, |text| {
        t::tabbed(text, 2)
    });
    let old = t::dedented(&task.old)(&task.old);
    texts(
        task,
        cases,
        "indentation removed, old only",
        WHITESPACE,
        old,
        task.new.clone(),
    );
    both(
        task,
        cases,
        "first line without indentation",
        WHITESPACE,
        |text| text.trim_start().to_owned(),
    );
    let old = task.old.trim_start().to_owned();
    texts(
        task,
        cases,
        "first line without indentation, old only",
        WHITESPACE,
        old,
        task.new.clone(),
    );
    both(task, cases, "trailing spaces added", WHITESPACE, |text| {
        text.replace('\n', " \n")
    });
    // The file has trailing spaces that were not copied.
    let mut case = base(task, "trailing spaces missing");
    let spaced = |text: &str| {
        text.replace(",\n", ", \n")
            .replace("{\n", "{  \n")
            .replace(".\n", ".\t\n")
    };
    if spaced(&task.old) != task.old {
        let view = spaced(&task.view);
        let after = view.replacen(
            &spaced(&task.old),
            &spaced_like(&task.old, &task.new, spaced),
            1,
        );
        case.files
            .insert(task.path.clone(), Content::of(&task.encoding.encode(&view)));
        case.after = Some(Content::of(&task.encoding.encode(&after)));
        case.help = WHITESPACE.iter().map(|word| (*word).to_owned()).collect();
        cases.push(case);
    }
    let blanks = &["blank line", "wanted"];
    let missing = t::without_blank_lines(&task.old);
    if missing != task.old {
        let mut new = t::without_blank_lines(&task.new);
        if new == missing {
            new.clone_from(&task.new);
        }
        refusal(task, cases, "blank line missing", blanks, missing, new);
    }
    if task.old.trim_end().contains('\n') {
        let extra = task.old.replacen('\n', "\n\n", 1);
        let new = task.new.replacen('\n', "\n\n", 1);
        refusal(task, cases, "blank line added", blanks, extra, new);
    }
    if !task.view.ends_with('\n') && task.view.ends_with(&task.old) {
        both(
            task,
            cases,
            "newline at the end of an open file",
            &["newline"],
            |text| format!("{text}\n"),
        );
    }
    both(task, cases, "spaces inside a line", WHITESPACE, |text| {
        let at = text.find(" = ").or_else(|| text.find(", "));
        at.map_or_else(
            || text.to_owned(),
            |_| text.replacen(" = ", "  = ", 1).replacen(", ", ",", 1),
        )
    });
}

/// New text as it would be with the file's trailing spaces: lines that stay keep theirs.
fn spaced_like(old: &str, new: &str, spaced: impl Fn(&str) -> String) -> String {
    let kept: Vec<&str> = old.split('\n').collect();
    let lines: Vec<String> = new
        .split('\n')
        .enumerate()
        .map(|(index, line)| {
            let stays = kept.contains(&line)
                || kept
                    .get(index)
                    .is_some_and(|_| new.split('\n').count() == kept.len());
            let last = index + 1 == new.split('\n').count();
            if stays && !last {
                spaced(&format!("{line}\n"))
                    .trim_end_matches('\n')
                    .to_owned()
            } else {
                line.to_owned()
            }
        })
        .collect();
    lines.join("\n")
}

fn characters(task: &Task, cases: &mut Vec<Case>) {
    let help = &["U+", "wanted"];
    both(task, cases, "curly quotes", help, t::curly);
    both(task, cases, "straight quotes", help, t::straight);
    both(task, cases, "hyphens as dashes", help, |text| {
        text.replace(" - ", " \u{2014} ").replace("--", "\u{2013}")
    });
    both(task, cases, "dashes as hyphens", help, |text| {
        text.replace(['\u{2013}', '\u{2014}'], "-")
    });
    both(task, cases, "no-break spaces", help, |text| {
        let body = text.trim_start();
        let indent = text.get(..text.len() - body.len()).unwrap_or_default();
        format!("{indent}{}", body.replacen(' ', "\u{a0}", 1))
    });
    both(task, cases, "decomposed letters", help, t::decomposed);
    both(task, cases, "composed letters", help, t::composed);
    both(task, cases, "zero width space", help, |text| {
        let at = text
            .find(|c: char| c.is_ascii_alphabetic())
            .map_or(0, |at| at + 1);
        let (head, rest) = text.split_at_checked(at).unwrap_or(("", text));
        format!("{head}\u{200b}{rest}")
    });
    let old = task.old.to_uppercase();
    refusal(
        task,
        cases,
        "upper case",
        &["letter case"],
        old,
        task.new.clone(),
    );
    refusal(
        task,
        cases,
        "one letter in another case",
        &["letter case", "wanted"],
        t::swapped_case(&task.old),
        t::swapped_case(&task.new),
    );
    refusal(
        task,
        cases,
        "other quotes",
        &["wanted"],
        task.old.replace('"', "'"),
        task.new.replace('"', "'"),
    );
}

fn different(task: &Task, cases: &mut Vec<Case>) {
    let help = &["wanted", "nearest"];
    refusal(
        task,
        cases,
        "typing error",
        help,
        t::mistyped(&task.old),
        task.new.clone(),
    );
    refusal(
        task,
        cases,
        "invented name",
        help,
        t::renamed(&task.old),
        t::renamed(&task.new),
    );
    let lines: Vec<&str> = task.old.lines().collect();
    if lines.len() > 2 {
        let without: Vec<&str> = lines
            .iter()
            .enumerate()
            .filter(|(index, _)| *index != 1)
            .map(|(_, line)| *line)
            .collect();
        refusal(
            task,
            cases,
            "line missing",
            help,
            without.join("\n"),
            task.new.clone(),
        );
        let mut with = lines.clone();
        with.insert(1, "    invented line of code();");
        refusal(
            task,
            cases,
            "line invented",
            help,
            with.join("\n"),
            task.new.clone(),
        );
        let mut swapped = lines.clone();
        swapped.swap(0, 1);
        refusal(
            task,
            cases,
            "lines swapped",
            help,
            swapped.join("\n"),
            task.new.clone(),
        );
        let short = [
            lines.first().copied().unwrap_or_default(),
            "    ...",
            lines.last().copied().unwrap_or_default(),
        ];
        refusal(
            task,
            cases,
            "ellipsis",
            help,
            short.join("\n"),
            task.new.clone(),
        );
        let comment = [
            lines.first().copied().unwrap_or_default(),
            "    // ... existing code ...",
            lines.last().copied().unwrap_or_default(),
        ];
        refusal(
            task,
            cases,
            "ellipsis as a comment",
            help,
            comment.join("\n"),
            task.new.clone(),
        );
        let joined = task.old.replacen('\n', " ", 1);
        refusal(task, cases, "lines joined", help, joined, task.new.clone());
    }
    let mut case = base(task, "old and new swapped");
    std::mem::swap(&mut case.old, &mut case.new);
    if !task.view.contains(&case.old) {
        case.after = None;
        case.help = vec!["already".to_owned()];
        cases.push(case);
    }
    // The file changed since it was read.
    let mut case = base(task, "file changed elsewhere");
    let moved = format!("First line, added later\n{}", task.view);
    let after = moved.replacen(&task.old, &task.new, 1);
    case.files.insert(
        task.path.clone(),
        Content::of(&task.encoding.encode(&moved)),
    );
    case.after = Some(Content::of(&task.encoding.encode(&after)));
    if moved.matches(&task.old).count() == 1 {
        cases.push(case);
    }
}

fn cut(task: &Task, cases: &mut Vec<Case>) {
    let help = &["rest of the line", "ends inside", "starts inside"];
    let last = task.old.trim_end().lines().last().unwrap_or_default();
    let body = last.trim();
    let whole_lines = task.place.1 - task.place.0 + 1 == task.old.lines().count()
        && task.view.lines().any(|line| line == last);
    // Cut inside the last line; the new text has complete lines.
    for (mistake, keep) in [
        ("old cut in the last line", body.chars().count() * 2 / 3),
        (
            "last character missing",
            body.chars().count().saturating_sub(1),
        ),
    ] {
        if !whole_lines || body.chars().count() < 8 || task.old.ends_with('\n') {
            continue;
        }
        let end = last.len() - last.trim_start().len();
        let kept: String = last.chars().take(end + keep).collect();
        let Some(head) = task.old.strip_suffix(last) else {
            continue;
        };
        let old = format!("{head}{kept}");
        if task.view.matches(&old).count() == 1 && task.new.ends_with(last) {
            texts(task, cases, mistake, help, old, task.new.clone());
        }
    }
    // Cut inside the first line.
    let first = task.old.lines().next().unwrap_or_default();
    let at = first.len() - first.trim_start().len() + 3;
    if whole_lines
        && task.old.len() > at + 6
        && task.new.starts_with(first)
        && let Some(old) = task.old.get(at..)
        && task.view.matches(old).count() == 1
    {
        texts(
            task,
            cases,
            "old cut in the first line",
            help,
            old.to_owned(),
            task.new.clone(),
        );
    }
}
