//! Treating similar texts as the same.

use crate::text::decode::{is_deceptive, prefix};

/// Maximum length of a line to compare completely.
const MAX_COMPARED: usize = 2_000;

/// Returns the ASCII character that a typographic one stands for.
pub(crate) fn plain(c: char) -> char {
    match c {
        '\u{2018}'..='\u{201b}' | '\u{2032}' | '\u{b4}' => '\'',
        '\u{201c}'..='\u{201f}' | '\u{2033}' | '\u{ab}' | '\u{bb}' => '"',
        '\u{2010}'..='\u{2015}' | '\u{2212}' => '-',
        '\u{a0}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => ' ',
        _ => c,
    }
}

/// Names a character, for those that are easily confused.
pub(super) fn name(c: char) -> String {
    let name = match c {
        ' ' => return "a space".to_owned(),
        '\t' => return "a tab".to_owned(),
        '\'' => "apostrophe",
        '"' => "quotation mark",
        '-' => "hyphen-minus",
        '\u{2018}' => "left single quotation mark",
        '\u{2019}' => "right single quotation mark",
        '\u{201c}' => "left double quotation mark",
        '\u{201d}' => "right double quotation mark",
        '\u{ab}' | '\u{bb}' => "angle quotation mark",
        '\u{b4}' => "acute accent",
        '\u{2032}' => "prime",
        '\u{2033}' => "double prime",
        '\u{2010}' => "hyphen",
        '\u{2011}' => "non-breaking hyphen",
        '\u{2012}' => "figure dash",
        '\u{2013}' => "en dash",
        '\u{2014}' => "em dash",
        '\u{2015}' => "horizontal bar",
        '\u{2212}' => "minus sign",
        '\u{a0}' => "no-break space",
        '\u{202f}' => "narrow no-break space",
        '\u{3000}' => "ideographic space",
        '\u{ad}' => "soft hyphen",
        '\u{200b}' => "zero width space",
        '\u{200c}' => "zero width non-joiner",
        '\u{200d}' => "zero width joiner",
        '\u{feff}' => "byte order mark",
        _ => "",
    };
    let code = u32::from(c);
    match (is_deceptive(c) || c.is_whitespace() || c.is_control(), name) {
        (true, "") => format!("U+{code:04X}"),
        (true, name) => format!("U+{code:04X} ({name})"),
        (false, "") => format!("{c} (U+{code:04X})"),
        (false, name) if c.is_ascii() => format!("{c} ({name})"),
        (false, name) => format!("{c} (U+{code:04X} {name})"),
    }
}

/// Returns the significant characters with their index: without whitespace, invisible
/// characters, typography and case.
pub(super) fn loose(text: &str) -> impl Iterator<Item = (usize, char)> {
    text.chars().enumerate().filter_map(|(index, c)| {
        let c = plain(c);
        if c.is_whitespace() || is_deceptive(c) {
            return None;
        }
        Some((index, lower(c)))
    })
}

/// Maps one character to one, so that indices stay the same.
pub(super) fn lower(c: char) -> char {
    if c.is_ascii() {
        c.to_ascii_lowercase()
    } else {
        c.to_lowercase().next().unwrap_or(c)
    }
}

/// Returns a hash that loosely equal lines share; 0 for a blank line.
///
/// FNV-1a is good enough to find candidates, which are compared completely later.
pub(super) fn key(line: &str) -> u64 {
    const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
    let step = |hash: u64, value: u64| (hash ^ value).wrapping_mul(0x0000_0100_0000_01b3);
    let hash = if line.is_ascii() {
        let bytes = line.bytes().filter(|byte| !matches!(byte, b' ' | 9..=13));
        bytes.fold(OFFSET, |hash, byte| {
            step(hash, u64::from(byte.to_ascii_lowercase()))
        })
    } else {
        loose(line).fold(OFFSET, |hash, (_, c)| step(hash, u64::from(u32::from(c))))
    };
    if hash == OFFSET { 0 } else { hash }
}

/// Returns the similarity of two lines from 0 to 1: their common prefix and suffix, and the
/// byte pairs they share in between.
pub(super) fn similarity(a: &str, b: &str) -> f32 {
    if a == b {
        return 1.0;
    }
    let (a, b) = (a.trim(), b.trim());
    if a == b {
        return 0.98;
    }
    let (a, b) = (
        prefix(a, MAX_COMPARED).as_bytes(),
        prefix(b, MAX_COMPARED).as_bytes(),
    );
    if a.is_empty() || b.is_empty() {
        return 0.0;
    }
    let start = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    let rest = |side: &'_ [u8]| side.get(start..).unwrap_or_default().to_vec();
    let (mut a_rest, mut b_rest) = (rest(a), rest(b));
    let end = a_rest
        .iter()
        .rev()
        .zip(b_rest.iter().rev())
        .take_while(|(a, b)| a == b)
        .count();
    a_rest.truncate(a_rest.len() - end);
    b_rest.truncate(b_rest.len() - end);
    let shared = start + end + shared_pairs(&a_rest, &b_rest);
    0.96 * (2 * shared) as f32 / (a.len() + b.len()) as f32
}

fn shared_pairs(a: &[u8], b: &[u8]) -> usize {
    let sorted = |side: &[u8]| {
        let mut pairs: Vec<[u8; 2]> = side
            .windows(2)
            .filter_map(|pair| match pair {
                [x, y] => Some([x.to_ascii_lowercase(), y.to_ascii_lowercase()]),
                _ => None,
            })
            .collect();
        pairs.sort_unstable();
        pairs
    };
    let (a, b) = (sorted(a), sorted(b));
    let (mut a, mut b) = (a.iter().peekable(), b.iter().peekable());
    let mut shared = 0;
    while let (Some(x), Some(y)) = (a.peek(), b.peek()) {
        match x.cmp(y) {
            std::cmp::Ordering::Less => drop(a.next()),
            std::cmp::Ordering::Greater => drop(b.next()),
            std::cmp::Ordering::Equal => {
                shared += 1;
                a.next();
                b.next();
            }
        }
    }
    shared
}
