//! Tables of results, as Markdown and as an HTML page.

use crate::classify::Outcome;
use crate::run::{CaseResult, ServerResult};
use anyhow::Result;
use std::fmt::Write as _;

const OUTCOMES: [Outcome; 4] = [
    Outcome::Applied,
    Outcome::Taught,
    Outcome::Unhelped,
    Outcome::Wrong,
];

/// Estimated tokens of a text: a quarter of its bytes.
fn tokens(bytes: usize) -> f64 {
    bytes as f64 / 4.0
}

fn percent<'a>(cases: impl Iterator<Item = &'a CaseResult> + Clone, outcome: Outcome) -> f64 {
    let total = cases.clone().count().max(1);
    100.0 * cases.filter(|case| case.outcome == outcome).count() as f64 / total as f64
}

/// Mean tokens of the replies to refused calls.
fn per_failure(result: &ServerResult) -> f64 {
    let failed = result
        .cases
        .iter()
        .filter(|case| matches!(case.outcome, Outcome::Taught | Outcome::Unhelped));
    let count = failed.clone().count().max(1);
    failed.map(|case| tokens(case.reply.len())).sum::<f64>() / count as f64
}

/// Mean tokens of the replies to edits that were made.
fn per_success(result: &ServerResult) -> f64 {
    let applied = result
        .cases
        .iter()
        .filter(|case| case.outcome == Outcome::Applied);
    let count = applied.clone().count().max(1);
    applied.map(|case| tokens(case.reply.len())).sum::<f64>() / count as f64
}

const HEAD: [&str; 9] = [
    "tool",
    "calls",
    "applied exactly %",
    "refused, teaches %",
    "refused, no help %",
    "wrong %",
    "tokens per failure",
    "tokens per success",
    "tokens of the definition (of all)",
];

fn row(result: &ServerResult) -> Vec<String> {
    let mut row = vec![result.name.clone(), result.cases.len().to_string()];
    for outcome in OUTCOMES {
        row.push(format!("{:.1}", percent(result.cases.iter(), outcome)));
    }
    row.push(format!("{:.0}", per_failure(result)));
    row.push(format!("{:.0}", per_success(result)));
    row.push(format!(
        "{:.0} ({:.0})",
        tokens(result.definition),
        tokens(result.definitions)
    ));
    row
}

/// Returns the table of servers.
pub(crate) fn table(results: &[ServerResult]) -> String {
    let rows: Vec<Vec<String>> = results.iter().map(row).collect();
    markdown(&HEAD, &rows)
}

fn markdown(head: &[&str], rows: &[Vec<String>]) -> String {
    let mut text = format!("| {} |\n|{}\n", head.join(" | "), "---|".repeat(head.len()));
    for row in rows {
        let _ = writeln!(text, "| {} |", row.join(" | "));
    }
    text
}

/// Returns the names of the mistakes in the order of the corpus.
fn mistakes(results: &[ServerResult]) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for case in results.iter().flat_map(|result| &result.cases) {
        if !names.contains(&case.mistake.as_str()) {
            names.push(&case.mistake);
        }
    }
    names
}

fn mistake_rows(results: &[ServerResult]) -> Vec<Vec<String>> {
    let rows = mistakes(results).into_iter().map(|mistake| {
        let mut row = vec![mistake.to_owned()];
        let count = results.first().map_or(0, |result| {
            result
                .cases
                .iter()
                .filter(|case| case.mistake == mistake)
                .count()
        });
        row.push(count.to_string());
        for result in results {
            let cases = result.cases.iter().filter(|case| case.mistake == mistake);
            let shares: Vec<String> = OUTCOMES
                .iter()
                .map(|outcome| format!("{:.0}", percent(cases.clone(), *outcome)))
                .collect();
            row.push(shares.join(" / "));
        }
        row
    });
    rows.collect()
}

/// Returns a table with a row for each mistake: applied / teaches / no help / wrong.
pub(crate) fn by_mistake(results: &[ServerResult]) -> String {
    let mut head = vec!["mistake", "calls"];
    head.extend(results.iter().map(|result| result.name.as_str()));
    markdown(&head, &mistake_rows(results))
}

/// Returns the results as a page that needs nothing else.
pub(crate) fn html(results: &[ServerResult]) -> String {
    let escape = |text: &str| {
        text.replace('&', "&amp;")
            .replace('<', "&lt;")
            .replace('>', "&gt;")
    };
    let table = |head: &[&str], rows: &[Vec<String>]| {
        let cells = |cells: &mut dyn Iterator<Item = String>, tag: &str| {
            cells
                .map(|cell| format!("<{tag}>{}</{tag}>", escape(&cell)))
                .collect::<String>()
        };
        let mut text = format!(
            "<table><thead><tr>{}</tr></thead><tbody>",
            cells(&mut head.iter().map(|cell| (*cell).to_owned()), "th")
        );
        for row in rows {
            let _ = write!(text, "<tr>{}</tr>", cells(&mut row.iter().cloned(), "td"));
        }
        text + "</tbody></table>"
    };
    let rows: Vec<Vec<String>> = results.iter().map(row).collect();
    let mut bars = String::new();
    for result in results {
        let _ = write!(bars, "<p>{}</p><div class=\"bar\">", escape(&result.name));
        for (outcome, class) in OUTCOMES
            .iter()
            .zip(["applied", "taught", "unhelped", "wrong"])
        {
            let share = percent(result.cases.iter(), *outcome);
            let _ = write!(
                bars,
                "<span class=\"{class}\" style=\"width:{share:.1}%\" title=\"{class} {share:.1} %\"></span>"
            );
        }
        bars.push_str("</div>");
    }
    let mut head = vec!["mistake", "calls"];
    head.extend(results.iter().map(|result| result.name.as_str()));
    format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Edits that models get wrong</title><style>{STYLE}</style>\
         <h1>Edits that models get wrong</h1>{bars}{}\
         <p>Tokens are estimated: bytes divided by four.</p>\
         <h2>By mistake</h2><p>Applied exactly / refused and teaches / refused without help / wrong, in per cent.</p>{}</html>\n",
        table(&HEAD, &rows),
        table(&head, &mistake_rows(results)),
    )
}

const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;max-width:75rem;margin:2rem auto;padding:0 1rem}\
table{border-collapse:collapse;margin:1rem 0}th,td{border:1px solid #ccc;padding:.2rem .6rem;text-align:left}\
.bar{display:flex;height:1.4rem;max-width:50rem}.bar+p,p+.bar{margin-top:.2rem}\
.applied{background:#2a9d4a}.taught{background:#9fd3ae}.unhelped{background:#e9c46a}.wrong{background:#c0392b}";

/// Returns every call and its outcome, one JSON object a line.
pub(crate) fn log(results: &[ServerResult]) -> Result<String> {
    let mut text = String::new();
    for result in results {
        for case in &result.cases {
            let mut line = serde_json::to_value(case)?;
            if let Some(fields) = line.as_object_mut() {
                fields.insert("server".to_owned(), result.name.clone().into());
            }
            text.push_str(&line.to_string());
            text.push('\n');
        }
    }
    Ok(text)
}
