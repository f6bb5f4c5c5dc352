//! Brace expansion as in bash: `{a,b}`, nested, `{1..3}`, `{a..e}`.
//!
//! Done before a glob is compiled, so that braces mean the same in every backend, whichever
//! glob library it uses.

/// Maximum number of results of one pattern.
pub const MAX_RESULTS: usize = 1_000;

/// Maximum size of all results of one pattern together, in bytes.
pub const MAX_RESULT_BYTES: usize = 1 << 20;

/// Maximum nesting depth of braces.
pub const MAX_DEPTH: usize = 64;

/// The reason why a pattern was not expanded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unexpanded {
    /// The pattern expands to more than [`MAX_RESULTS`] patterns.
    #[error("braces expand to more than {MAX_RESULTS} patterns")]
    TooMany,
    /// The results together are longer than [`MAX_RESULT_BYTES`].
    #[error("braces expand to more than {MAX_RESULT_BYTES} bytes of patterns")]
    TooLong,
    /// Braces are nested deeper than [`MAX_DEPTH`].
    #[error("braces are nested more than {MAX_DEPTH} deep")]
    TooDeep,
}

/// Expands the braces of a pattern, in bash's order.
///
/// `x{a}.txt`, `{}` and an unbalanced `{a,b` stay unchanged. A backslash makes the brace or
/// comma after it literal; it stays in the result, because the glob compiler reads it too.
///
/// # Errors
/// If the result would be too many, too long or too deeply nested patterns.
pub fn expand(pattern: &str) -> Result<Vec<String>, Unexpanded> {
    let braces = Braces::find(pattern)?;
    braces.expand(pattern, 0, pattern.len())
}

/// Escapes the braces that [`expand`] left, for a glob library that would interpret or
/// reject them.
#[must_use]
pub fn escape(expanded: &str) -> String {
    let mut escaped = String::with_capacity(expanded.len());
    let mut chars = expanded.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => {
                escaped.push(c);
                escaped.extend(chars.next());
                continue;
            }
            '{' | '}' => escaped.push('\\'),
            _ => {}
        }
        escaped.push(c);
    }
    escaped
}

/// The positions of all pairs of braces and their commas.
///
/// Found in one pass with a stack, so that thousands of unclosed braces take linear time.
struct Braces {
    /// Sorted by their opening brace.
    pairs: Vec<Pair>,
}

struct Pair {
    open: usize,
    close: usize,
    commas: Vec<usize>,
}

impl Braces {
    fn find(pattern: &str) -> Result<Self, Unexpanded> {
        let mut open: Vec<Pair> = Vec::new();
        let mut pairs: Vec<Pair> = Vec::new();
        let mut escaped = false;
        for (at, byte) in pattern.bytes().enumerate() {
            if std::mem::take(&mut escaped) {
                continue;
            }
            match byte {
                b'\\' => escaped = true,
                b'{' => open.push(Pair {
                    open: at,
                    close: at,
                    commas: Vec::new(),
                }),
                b',' => {
                    if let Some(pair) = open.last_mut() {
                        pair.commas.push(at);
                    }
                }
                b'}' => {
                    if let Some(mut pair) = open.pop() {
                        pair.close = at;
                        pairs.push(pair);
                    }
                }
                _ => {}
            }
        }
        pairs.sort_by_key(|pair| pair.open);
        let mut nested: Vec<usize> = Vec::new();
        for pair in &pairs {
            while nested.last().is_some_and(|close| *close < pair.open) {
                nested.pop();
            }
            nested.push(pair.close);
            if nested.len() > MAX_DEPTH {
                return Err(Unexpanded::TooDeep);
            }
        }
        Ok(Self { pairs })
    }

    /// Returns the first pair that opens in `from..to`.
    fn first_in(&self, from: usize, to: usize) -> Option<&Pair> {
        let index = self.pairs.partition_point(|pair| pair.open < from);
        self.pairs.get(index).filter(|pair| pair.open < to)
    }

    fn expand(&self, pattern: &str, from: usize, to: usize) -> Result<Vec<String>, Unexpanded> {
        let mut results = vec![String::new()];
        let mut at = from;
        while let Some(pair) = self.first_in(at, to) {
            append(&mut results, part(pattern, at, pair.open))?;
            let inside = part(pattern, pair.open + 1, pair.close);
            if !pair.commas.is_empty() {
                let mut choices = Vec::new();
                let mut start = pair.open + 1;
                for end in pair.commas.iter().copied().chain([pair.close]) {
                    choices.extend(self.expand(pattern, start, end)?);
                    // Every choice becomes a result, so too many choices are too many
                    // results.
                    check(&choices)?;
                    start = end + 1;
                }
                results = product(&results, &choices)?;
            } else if let Some(choices) = sequence(inside)? {
                results = product(&results, &choices)?;
            } else {
                append(&mut results, "{")?;
                let choices = self.expand(pattern, pair.open + 1, pair.close)?;
                results = product(&results, &choices)?;
                append(&mut results, "}")?;
            }
            at = pair.close + 1;
        }
        append(&mut results, part(pattern, at, to))?;
        Ok(results)
    }
}

/// Braces and commas are ASCII, so these ranges never split a character.
fn part(pattern: &str, from: usize, to: usize) -> &str {
    pattern.get(from..to).unwrap_or_default()
}

fn append(results: &mut [String], text: &str) -> Result<(), Unexpanded> {
    let bytes: usize = results.iter().map(|result| result.len() + text.len()).sum();
    if bytes > MAX_RESULT_BYTES {
        return Err(Unexpanded::TooLong);
    }
    for result in results {
        result.push_str(text);
    }
    Ok(())
}

fn product(left: &[String], right: &[String]) -> Result<Vec<String>, Unexpanded> {
    if left.len() * right.len() > MAX_RESULTS {
        return Err(Unexpanded::TooMany);
    }
    let bytes = |all: &[String]| all.iter().map(String::len).sum::<usize>();
    if bytes(left) * right.len() + bytes(right) * left.len() > MAX_RESULT_BYTES {
        return Err(Unexpanded::TooLong);
    }
    Ok(left
        .iter()
        .flat_map(|l| right.iter().map(move |r| format!("{l}{r}")))
        .collect())
}

fn check(choices: &[String]) -> Result<(), Unexpanded> {
    if choices.len() > MAX_RESULTS {
        Err(Unexpanded::TooMany)
    } else {
        Ok(())
    }
}

/// Expands `1..10`, `01..10`, `1..10..2` or `a..e`; `None` for anything else.
fn sequence(inside: &str) -> Result<Option<Vec<String>>, Unexpanded> {
    let mut parts = inside.split("..");
    let (Some(from), Some(to), step, None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return Ok(None);
    };
    let step: Option<i64> = match step {
        None => Some(1),
        Some(step) => step.parse().ok(),
    };
    let Some(step) = step else { return Ok(None) };
    // As in bash, the ends determine the direction, and a step of 0 is 1.
    let step = step.unsigned_abs().max(1);
    let numbers = from.parse::<i64>().ok().zip(to.parse::<i64>().ok());
    if let Some((first, last)) = numbers {
        let padded =
            |text: &str| text.trim_start_matches(['-', '+']).starts_with('0') && text.len() > 1;
        let width = if padded(from) || padded(to) {
            from.len().max(to.len())
        } else {
            0
        };
        let steps = steps(first, last, step)?;
        return Ok(Some(
            steps.map(|value| format!("{value:0width$}")).collect(),
        ));
    }
    match (from.as_bytes(), to.as_bytes()) {
        ([first], [last]) if first.is_ascii_alphabetic() && last.is_ascii_alphabetic() => {
            let steps = steps(i64::from(*first), i64::from(*last), step)?;
            let letters = steps.filter_map(|value| u8::try_from(value).ok());
            // `{Z..a}` includes a backslash and brackets, which the glob compiler would
            // interpret, so only letters are used.
            let letters = letters.filter(u8::is_ascii_alphabetic);
            Ok(Some(
                letters
                    .map(|letter| char::from(letter).to_string())
                    .collect(),
            ))
        }
        _ => Ok(None),
    }
}

fn steps(first: i64, last: i64, step: u64) -> Result<impl Iterator<Item = i64>, Unexpanded> {
    let count = first.abs_diff(last) / step;
    if count >= MAX_RESULTS as u64 {
        return Err(Unexpanded::TooMany);
    }
    let up = first <= last;
    Ok((0..=count).map(move |index| {
        let distance = index * step;
        if up {
            first.saturating_add_unsigned(distance)
        } else {
            first.saturating_sub_unsigned(distance)
        }
    }))
}

#[cfg(test)]
mod tests;
