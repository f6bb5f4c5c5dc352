//! Finding the name that the user or the model probably meant.

/// Minimum similarity of two names.
const ALIKE: f64 = 0.6;
/// Maximum length of a name to compare. A longer one is not a typo, and comparing takes
/// time and memory proportional to the product of both lengths.
const LONGEST: usize = 256;

/// Returns the candidates most similar to `wanted`, best first, at most `most`. Ignores
/// case and separators; a name that contains the other counts as similar. If two file names
/// share an extension, only the part before it is compared.
pub fn closest(
    wanted: &str,
    candidates: impl IntoIterator<Item = String>,
    most: usize,
) -> Vec<String> {
    if wanted.len() > LONGEST {
        return Vec::new();
    }
    let folded = fold(wanted);
    if folded.is_empty() {
        return Vec::new();
    }
    let mut scored: Vec<(f64, String)> = candidates
        .into_iter()
        .filter(|candidate| candidate.len() <= LONGEST)
        .filter_map(|candidate| {
            let other = fold(&candidate);
            let (wanted_part, other_part) = differing(&folded, &other);
            let contains = wanted_part.len() >= 3
                && other_part.len() >= 3
                && (other_part.contains(wanted_part) || wanted_part.contains(other_part));
            let score = strsim::normalized_damerau_levenshtein(wanted_part, other_part);
            let score = if contains { score.max(ALIKE) } else { score };
            (score >= ALIKE && candidate != wanted).then_some((score, candidate))
        })
        .collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    scored
        .into_iter()
        .take(most)
        .map(|(_, candidate)| candidate)
        .collect()
}

/// Returns `; did you mean "…"?` with the most similar candidate, to end a message about an
/// unknown name. Empty if no candidate is similar.
pub fn hint(wanted: &str, candidates: impl IntoIterator<Item = impl AsRef<str>>) -> String {
    let candidates = candidates.into_iter();
    let candidates = candidates.map(|candidate| candidate.as_ref().to_owned());
    match closest(wanted, candidates, 1).first() {
        Some(near) => format!("; did you mean \"{near}\"?"),
        None => String::new(),
    }
}

/// Returns the parts of two names to compare, without a shared extension.
fn differing<'a>(one: &'a str, other: &'a str) -> (&'a str, &'a str) {
    match (one.rsplit_once('.'), other.rsplit_once('.')) {
        (Some((one, its)), Some((other, others)))
            if its == others && !one.is_empty() && !other.is_empty() =>
        {
            (one, other)
        }
        _ => (one, other),
    }
}

fn fold(name: &str) -> String {
    name.chars()
        .filter(|c| c.is_alphanumeric() || *c == '.')
        .flat_map(char::to_lowercase)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{closest, hint};

    fn among(wanted: &str) -> Vec<String> {
        closest(
            wanted,
            ["path", "offset", "limit", "Cargo.toml", "src"].map(str::to_owned),
            2,
        )
    }

    #[test]
    fn a_typo_is_recognised() {
        assert_eq!(among("pth"), ["path"]);
        assert_eq!(among("ofset"), ["offset"]);
        assert_eq!(among("cargo.tml"), ["Cargo.toml"]);
    }

    #[test]
    fn a_hint_ends_a_message() {
        let known = ["path", "offset"];
        assert_eq!(hint("pth", known), "; did you mean \"path\"?");
        assert_eq!(hint("zebra", known), "");
    }

    #[test]
    fn a_name_too_long_to_be_a_typo_is_not_compared() {
        let long = "path".repeat(1 << 20);
        assert!(among(&long).is_empty());
        assert!(closest("path", [long], 1).is_empty());
    }

    #[test]
    fn a_shared_extension_does_not_make_names_similar() {
        let files = || ["long.txt", "notes.txt", "a.txt"].map(str::to_owned);
        assert_eq!(closest("nope.txt", files(), 3), ["notes.txt"]);
        assert_eq!(closest("note.txt", files(), 3), ["notes.txt"]);
        assert!(closest("b.txt", files(), 3).is_empty());
        assert_eq!(closest("long.tx", files(), 3), ["long.txt"]);
    }

    #[test]
    fn unrelated_names_are_not_suggested() {
        assert!(among("zebra").is_empty());
        assert!(among("").is_empty());
        assert!(
            among("path").is_empty(),
            "the name itself is not a suggestion"
        );
    }
}
