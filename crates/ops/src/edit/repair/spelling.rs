//! Texts that were copied or encoded wrongly as a whole: with line numbers in front, or
//! with escapes that should have been interpreted.

use crate::text::lines;

/// Both texts with one mistake undone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Spelling {
    pub(super) old: String,
    pub(super) new: String,
    /// Description of the repair; empty if the texts are as they came.
    pub(super) note: &'static str,
    /// Number of the first line, if numbers were removed.
    pub(super) number: Option<u64>,
}

/// Returns the texts as they came, then without the mistakes that they show signs of.
pub(super) fn spellings(old: &str, new: &str) -> Vec<Spelling> {
    let mut all = vec![Spelling {
        old: old.to_owned(),
        new: new.to_owned(),
        note: "",
        number: None,
    }];
    all.extend(unnumbered(old, new));
    all.extend(unescaped(old, new));
    all
}

/// Separators between a line number and the line.
const SEPARATORS: [&str; 12] = [
    "\t",
    " | ",
    "| ",
    "|",
    ": ",
    ":",
    "\u{2192} ",
    "\u{2192}",
    " \u{2502} ",
    "\u{2502} ",
    "\u{2502}",
    ") ",
];

/// Splits a line number from a line.
fn number(line: &str) -> Option<(u64, &str)> {
    let rest = line.trim_start_matches(' ');
    let rest = rest.strip_prefix('L').unwrap_or(rest);
    let body = rest.trim_start_matches(|c: char| c.is_ascii_digit());
    let digits = rest.strip_suffix(body).filter(|digits| digits.len() < 9)?;
    Some((digits.parse().ok()?, body))
}

/// Removes the separator from what follows a number; an empty line may have lost a part
/// of it.
fn after<'a>(body: &'a str, separator: &str) -> Option<&'a str> {
    let bare = separator.trim_end();
    match body.strip_prefix(separator) {
        Some(rest) => Some(rest),
        None if body == bare || body.is_empty() => Some(""),
        None => None,
    }
}

/// Removes consecutive line numbers from the old text, and those in the new text.
fn unnumbered(old: &str, new: &str) -> Option<Spelling> {
    let mut bodies = Vec::new();
    let (mut expected, mut first) = (None, 0);
    for line in lines::split(old) {
        let body = match (number(line), expected) {
            (Some((number, body)), None) => {
                (expected, first) = (Some(number), number);
                body
            }
            (Some((number, body)), Some(expected)) if number == expected => body,
            // An empty line may have lost its number.
            (None, Some(_)) if line.trim().is_empty() => "",
            _ => return None,
        };
        expected = expected.map(|number| number + 1);
        bodies.push(body);
    }
    let separator = SEPARATORS.into_iter().find(|separator| {
        bodies.iter().any(|body| body.starts_with(separator))
            && bodies.iter().all(|body| after(body, separator).is_some())
    })?;
    let plain: Vec<&str> = bodies
        .iter()
        .filter_map(|body| after(body, separator))
        .collect();
    // Lines of the file that start with a number themselves cannot be told from numbered
    // ones in the new text.
    let own_numbers = plain
        .iter()
        .any(|line| number(line).is_some_and(|(_, body)| after(body, separator).is_some()));
    let new = without_numbers(new, separator, first, own_numbers)?;
    Some(Spelling {
        old: joined(&plain, old),
        new,
        note: "line numbers removed",
        number: Some(first),
    })
}

/// Removes line numbers from the new text, where lines that were added may have none.
fn without_numbers(new: &str, separator: &str, first: u64, own_numbers: bool) -> Option<String> {
    let split: Vec<&str> = lines::split(new).collect();
    let count = split.len() as u64;
    let mut last = first;
    let mut plain = Vec::new();
    let mut numbered = 0;
    for line in &split {
        let body = number(line).and_then(|(number, body)| {
            let near = (last..=first + 2 * count + 1).contains(&number);
            after(body, separator)
                .filter(|_| near)
                .map(|body| (number, body))
        });
        match body {
            Some((number, body)) => {
                numbered += 1;
                last = number;
                plain.push(body);
            }
            None => plain.push(line),
        }
    }
    let all = split.iter().filter(|line| !line.trim().is_empty()).count();
    match numbered {
        0 => Some(new.to_owned()),
        _ if own_numbers && numbered < all => None,
        _ if own_numbers
            && !plain
                .iter()
                .all(|line| line.is_empty() || number(line).is_some()) =>
        {
            None
        }
        _ => Some(joined(&plain, new)),
    }
}

fn joined(lines: &[&str], like: &str) -> String {
    let mut text = lines.join("\n");
    if like.ends_with('\n') {
        text.push('\n');
    }
    text
}

/// Interprets escapes in both texts. What a single escape means depends on what was
/// escaped; each reading that fits the text is returned.
fn unescaped(old: &str, new: &str) -> Vec<Spelling> {
    const BREAKS: &str = "\\n read as line breaks";
    const QUOTES: &str = "backslashes before quotation marks removed";
    const ALL: &str = "escapes such as \\n and \\\" interpreted";
    if !old.contains('\\') {
        return Vec::new();
    }
    let one_line = !old.contains('\n');
    let quotes = quoted(old) == Quoted::Escaped;
    let mut all: Vec<Spelling> = Vec::new();
    let mut add = |set: &[char], note, new: Option<String>| {
        let old = interpreted(old, set);
        if let Some(new) = new
            && !all
                .iter()
                .any(|known: &Spelling| known.old == old && known.new == new)
        {
            all.push(Spelling {
                old,
                new,
                note,
                number: None,
            });
        }
    };
    let same = |set: &[char]| Some(interpreted(new, set));
    // A new text with real line breaks was encoded as it should be.
    let broken = |set: &[char]| match (new.contains('\n'), escapes(new, set)) {
        (true, true) => None,
        (true, false) => Some(new.to_owned()),
        (false, _) => Some(interpreted(new, set)).filter(|text| same_parity(old, set, text)),
    };
    if one_line && escapes(old, &['n', 't']) && !quotes {
        add(&['n', 't'], BREAKS, broken(&['n', 't']));
    }
    if one_line && escapes(old, &['n']) && quotes {
        add(&['n', 't', '"', '\''], ALL, broken(&['n', 't', '"', '\'']));
    }
    if !one_line && escapes(old, &['t']) {
        add(&['t'], "\\t read as tabs", same(&['t']));
    }
    if quotes {
        let set = &['"', '\''];
        let new = match quoted(new) {
            Quoted::Mixed => None,
            Quoted::Escaped => same(set),
            Quoted::Plain => Some(new.to_owned()),
        };
        add(set, QUOTES, new);
    }
    let every = &['n', 't', 'r', '"', '\'', '\\'];
    if escapes(old, &['\\']) || (one_line && escapes(old, every)) {
        add(every, ALL, broken(every));
    }
    all
}

/// Whether the quotation marks of a text are escaped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Quoted {
    Plain,
    Escaped,
    Mixed,
}

fn quoted(text: &str) -> Quoted {
    let (mut plain, mut escaped, mut before) = (false, false, ' ');
    for c in text.chars() {
        if c == '"' {
            *(if before == '\\' {
                &mut escaped
            } else {
                &mut plain
            }) = true;
        }
        before = if before == '\\' && c == '\\' { ' ' } else { c };
    }
    match (plain, escaped) {
        (true, true) => Quoted::Mixed,
        (false, true) => Quoted::Escaped,
        _ => Quoted::Plain,
    }
}

/// Whether a text has an escape of one of these characters.
fn escapes(text: &str, set: &[char]) -> bool {
    interpreted(text, set) != text
}

/// Interprets the escapes of these characters.
fn interpreted(text: &str, set: &[char]) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let next = chars.peek().copied().filter(|_| c == '\\');
        match next.filter(|next| set.contains(next)) {
            Some(next) => {
                chars.next();
                plain.push(match next {
                    'n' => '\n',
                    't' => '\t',
                    'r' => '\r',
                    other => other,
                });
            }
            None => {
                plain.push(c);
                // A backslash that stays also keeps the one it escapes.
                if next == Some('\\') {
                    plain.extend(chars.next());
                }
            }
        }
    }
    plain
}

/// Whether the new text has no line with an odd number of quotation marks, unless the old
/// one has. A line break in the middle of a string is a sign that it was meant literally.
fn same_parity(old: &str, set: &[char], new: &str) -> bool {
    let odd = |text: &str| lines::split(text).any(|line| line.matches('"').count() % 2 == 1);
    !odd(new) || odd(&interpreted(old, set))
}
