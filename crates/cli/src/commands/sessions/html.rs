//! Formats a session as a self-contained HTML page without scripts.

use super::transcript::{self, Part, moment};
use haft::ops::text::decode::visible;

/// End of the page.
pub(super) const END: &str = "</main>\n</body>\n</html>\n";

const STYLE: &str = "\
:root{color-scheme:light dark}
body{font:16px/1.5 system-ui,sans-serif;margin:0}
main{max-width:50rem;margin:auto;padding:1rem}
h1{font-size:1.3rem;margin:2rem 0 0}
h2{font-size:.85rem;margin:1.5rem 0 .2rem;opacity:.7}
p.about{font-size:.85rem;opacity:.7;margin:.2rem 0 1rem}
.words{white-space:pre-wrap;overflow-wrap:anywhere}
.you{border-left:3px solid #48c;padding-left:.7rem}
.thinking{opacity:.7;font-style:italic}
details{margin:.4rem 0;border:1px solid #8886;border-radius:.4rem;padding:.2rem .6rem}
details.failed{border-color:#c44}
pre{white-space:pre-wrap;overflow-wrap:anywhere;font-size:.85rem;margin:.3rem 0}
.unknown{color:#b60}
";

/// Start of the page, with the title from the first part.
pub(super) fn begin(first: &Part) -> String {
    let title = match first {
        Part::Session(info) => info.title.clone().unwrap_or_else(|| info.id.clone()),
        _ => "session".to_owned(),
    };
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n\
         <title>{}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n",
        safe(&title)
    )
}

/// Formats a part.
pub(super) fn of(piece: &Part) -> String {
    match piece {
        Part::Session(info) => format!(
            "<h1>{}</h1>\n<p class=\"about\">{} · {}</p>\n",
            safe(info.title.as_deref().unwrap_or("Session")),
            safe(&info.id),
            safe(&transcript::about(info))
        ),
        Part::Words { text, .. } if text.is_empty() => String::new(),
        Part::Words {
            who, time, text, ..
        } => format!(
            "<h2>{who} · {}</h2>\n<div class=\"words {who}\">{}</div>\n",
            moment(*time),
            safe(text)
        ),
        Part::Call { tool, arguments } => format!(
            "<details><summary>{}</summary><pre>{}</pre></details>\n",
            safe(tool),
            safe(arguments)
        ),
        Part::Result {
            tool,
            text,
            is_error,
        } => {
            let (class, word) = match is_error {
                true => (" class=\"failed\"", "failed"),
                false => ("", "result"),
            };
            format!(
                "<details{class}><summary>{} {word}</summary><pre>{}</pre></details>\n",
                safe(tool),
                safe(text)
            )
        }
        Part::Changes { summary, lines } => format!(
            "<details class=\"changed\"><summary>changed: {}</summary><pre>{}</pre></details>\n",
            safe(summary),
            safe(&lines.join("\n"))
        ),
        Part::Unknown { call_id, note } => {
            format!("<p class=\"unknown\">call {}: {note}</p>\n", safe(call_id))
        }
    }
}

/// Escapes characters that are special in HTML.
fn safe(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in visible(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            other => out.push(other),
        }
    }
    out
}
