//! Secrets whose characters are escaped: in JSON (`\u0041`, `\/`), in Rust's debug output
//! (`\u{41}`, `\x41`), in a URL (`%41`), and in any nesting of these.

use memchr::memchr3_iter;

/// A secret to search for, whether or not it is escaped.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Spelled(Vec<char>);

impl std::fmt::Debug for Spelled {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Spelled(***)")
    }
}

/// Minimum length of Base64 text to search for.
const SHORTEST: usize = 10;

/// Maximum number of consecutive backslashes to check.
const LONGEST_RUN: usize = 64;

/// Maximum nesting of URL encoding.
const DEEPEST: usize = 2;

impl Spelled {
    /// Creates a search for this secret.
    #[must_use]
    pub fn new(secret: &str) -> Self {
        // Programs that print a text on one line write white space differently.
        let words: Vec<&str> = secret.split_whitespace().collect();
        Self(words.join(" ").chars().collect())
    }

    /// Whether it can occur without escapes in a form that differs from the secret itself.
    #[must_use]
    pub fn has_space(&self) -> bool {
        self.0.contains(&' ')
    }

    /// Replaces the secret by `mark`; `None` if the text does not contain it.
    #[must_use]
    pub fn cut_from(&self, text: &str, mark: &str) -> Option<String> {
        let bytes = text.as_bytes();
        let mut first = [0; 4];
        let first = self.0.first()?.encode_utf8(&mut first).as_bytes().first()?;
        let mut cleaned: Option<String> = None;
        let mut from = 0;
        let mut places = (Vec::new(), Vec::new());
        for start in memchr3_iter(*first, b'\\', b'%', bytes) {
            if start < from {
                continue;
            }
            let Some(end) = self.ends(bytes, start, &mut places) else {
                continue;
            };
            let (Some(before), Some(_)) = (text.get(from..start), text.get(end..)) else {
                continue;
            };
            let cleaned = cleaned.get_or_insert_default();
            cleaned.push_str(before);
            cleaned.push_str(mark);
            from = end;
        }
        let mut cleaned = cleaned?;
        cleaned.push_str(text.get(from..).unwrap_or_default());
        Some(cleaned)
    }

    /// Returns the end of the secret if it starts at `start`.
    fn ends(
        &self,
        bytes: &[u8],
        start: usize,
        (here, next): &mut (Vec<usize>, Vec<usize>),
    ) -> Option<usize> {
        // Different interpretations of the text so far may lead to different positions.
        next.clear();
        here.clear();
        here.push(start);
        for (number, wanted) in self.0.iter().enumerate() {
            for at in here.drain(..) {
                if *wanted == ' ' {
                    next.extend(spaces(bytes, at));
                    continue;
                }
                next.extend(character(bytes, at, *wanted, number == 0));
                match wanted {
                    // Each backslash may stand for itself or be doubled repeatedly.
                    '\\' => {
                        let own = run(bytes, at).min(LONGEST_RUN);
                        next.extend((1..=own).map(|count| at + count));
                    }
                    '%' if bytes.get(at) == Some(&b'%') => next.push(at + 1),
                    _ => {}
                }
                for depth in 0..=DEEPEST {
                    let one = |bytes: &[u8], at: usize| percent(bytes, at, depth);
                    next.extend(each(bytes, at, *wanted, one));
                }
            }
            next.sort_unstable();
            next.dedup();
            std::mem::swap(here, next);
            here.first()?;
        }
        here.last().copied()
    }
}

/// Returns the number of backslashes at a position.
pub(super) fn run(bytes: &[u8], at: usize) -> usize {
    let rest = bytes.get(at..).unwrap_or_default();
    rest.iter().take_while(|byte| **byte == b'\\').count()
}

/// Returns the ends of all white space, in any notation, that starts at `at`.
fn spaces(bytes: &[u8], at: usize) -> Vec<usize> {
    let one = |at: usize| {
        [' ', '\n', '\t', '\r'].into_iter().find_map(|space| {
            let encoded = (0..=DEEPEST)
                .find_map(|depth| each(bytes, at, space, |bytes, at| percent(bytes, at, depth)));
            character(bytes, at, space, true).or(encoded)
        })
    };
    let ends = std::iter::successors(one(at), |at| one(*at));
    ends.take(LONGEST_RUN).collect()
}

/// Returns the end of a character, in any notation, that starts at `at`.
fn character(bytes: &[u8], at: usize, wanted: char, is_first: bool) -> Option<usize> {
    let mut buffer = [0; 4];
    let plain = wanted.encode_utf8(&mut buffer).as_bytes();
    let rest = bytes.get(at..)?;
    if rest.starts_with(plain) && !"\\%".contains(wanted) {
        return Some(at + plain.len());
    }
    match rest.first()? {
        b'+' if wanted == ' ' => Some(at + 1),
        b'\\' => {
            let after = at + run(bytes, at);
            let rest = bytes.get(after..)?;
            if rest.first() == Some(&b'u')
                && let Some((code, length)) = unicode(rest)
            {
                if code == u32::from(wanted) {
                    return Some(after + length);
                }
                // The two halves of a surrogate pair.
                let second = after + length;
                let rest = bytes.get(second + run(bytes, second)..)?;
                let (low, low_length) = unicode(rest)?;
                let (high, low) = (code.checked_sub(0xd800)?, low.checked_sub(0xdc00)?);
                let whole = 0x1_0000 + (high << 10) + low;
                let is_pair = high < 0x400 && low < 0x400 && whole == u32::from(wanted);
                return is_pair.then(|| second + run(bytes, second) + low_length);
            }
            let letter = match wanted {
                '\n' => Some(b'n'),
                '\r' => Some(b'r'),
                '\t' => Some(b't'),
                '\0' => Some(b'0'),
                '\u{8}' => Some(b'b'),
                '\u{c}' => Some(b'f'),
                _ => None,
            };
            if letter.is_some() && rest.first().copied() == letter {
                return Some(after + 1);
            }
            if rest.first() == Some(&b'x') {
                return each(bytes, at, wanted, hexadecimal);
            }
            // `\/`, `\"` and `\'`. The escape before the first letter is not part of the
            // secret.
            let is_escaped = rest.starts_with(plain) && !(is_first && wanted.is_alphanumeric());
            is_escaped.then(|| after + plain.len())
        }
        _ => None,
    }
}

/// Returns the end of several bytes that are escaped one by one.
fn each(
    bytes: &[u8],
    mut at: usize,
    wanted: char,
    one: impl Fn(&[u8], usize) -> Option<(u8, usize)>,
) -> Option<usize> {
    for wanted in wanted.encode_utf8(&mut [0; 4]).bytes() {
        let (byte, end) = one(bytes, at)?;
        (byte == wanted).then_some(())?;
        at = end;
    }
    Some(at)
}

/// Decodes `%41`, or `%2541` if it was encoded once more.
fn percent(bytes: &[u8], at: usize, depth: usize) -> Option<(u8, usize)> {
    let mut rest = bytes.get(at..)?.strip_prefix(b"%")?;
    for _ in 0..depth {
        rest = rest.strip_prefix(b"25")?;
    }
    let byte = u8::try_from(hex(rest.get(..2)?)?).ok()?;
    Some((byte, at + 3 + 2 * depth))
}

/// Decodes `\x41`.
pub(super) fn hexadecimal(bytes: &[u8], at: usize) -> Option<(u8, usize)> {
    let after = at + run(bytes, at);
    (after > at).then_some(())?;
    let rest = bytes.get(after..)?.strip_prefix(b"x")?;
    let byte = u8::try_from(hex(rest.get(..2)?)?).ok()?;
    Some((byte, after + 3))
}

/// Decodes `u0041` or `u{41}`, and returns its length.
pub(super) fn unicode(rest: &[u8]) -> Option<(u32, usize)> {
    let rest = rest.strip_prefix(b"u")?;
    if let Some(braced) = rest.strip_prefix(b"{") {
        let length = braced.iter().take(9).position(|byte| *byte == b'}')?;
        return Some((hex(braced.get(..length)?)?, length + 3));
    }
    Some((hex(rest.get(..4)?)?, 5))
}

fn hex(digits: &[u8]) -> Option<u32> {
    let is_hex = !digits.is_empty() && digits.iter().all(u8::is_ascii_hexdigit);
    let digits = std::str::from_utf8(digits).ok().filter(|_| is_hex)?;
    u32::from_str_radix(digits, 16).ok()
}

/// Returns texts of which one is in the Base64 encoding of any text that contains the
/// secret.
#[must_use]
pub fn in_base64(secret: &str) -> Vec<String> {
    let mut all = Vec::new();
    for (before, skipped) in [(0, 0), (1, 2), (2, 3)] {
        let mut bytes = vec![0; before];
        bytes.extend_from_slice(secret.as_bytes());
        for letters in [STANDARD, URL_SAFE] {
            // Only the characters that depend on nothing but the secret.
            let whole = bytes.len() * 8 / 6;
            let text: String = (skipped..whole)
                .filter_map(|at| letters.get(sextet(&bytes, at)))
                .map(|letter| char::from(*letter))
                .collect();
            if text.len() >= SHORTEST {
                all.push(text);
            }
        }
    }
    all
}

const STANDARD: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const URL_SAFE: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// Returns the six bits at a position.
fn sextet(bytes: &[u8], number: usize) -> usize {
    let bit = number * 6;
    let byte = |at: usize| bytes.get(at).copied().map_or(0, usize::from);
    let pair = (byte(bit / 8) << 8) | byte(bit / 8 + 1);
    (pair >> (10 - bit % 8)) & 63
}
