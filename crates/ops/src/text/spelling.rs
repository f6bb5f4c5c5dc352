//! Which of some names was probably meant.

/// Below this two names have little in common.
const ALIKE: f64 = 0.6;

/// The candidates most like `wanted`, best first, at most `most` of them. Case
/// and separators do not count; a name that contains the other does.
pub fn closest(
    wanted: &str,
    candidates: impl IntoIterator<Item = String>,
    most: usize,
) -> Vec<String> {
    let folded = fold(wanted);
    if folded.is_empty() {
        return Vec::new();
    }
    let mut scored: Vec<(f64, String)> = candidates
        .into_iter()
        .filter_map(|candidate| {
            let other = fold(&candidate);
            let contains = folded.len() >= 3
                && other.len() >= 3
                && (other.contains(&folded) || folded.contains(&other));
            let score = strsim::normalized_damerau_levenshtein(&folded, &other);
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

fn fold(name: &str) -> String {
    name.chars()
        .filter(|c| c.is_alphanumeric() || *c == '.')
        .flat_map(char::to_lowercase)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::closest;

    fn among(wanted: &str) -> Vec<String> {
        closest(
            wanted,
            ["path", "offset", "limit", "Cargo.toml", "src"].map(str::to_owned),
            2,
        )
    }

    #[test]
    fn a_slip_of_the_finger_is_understood() {
        assert_eq!(among("pth"), ["path"]);
        assert_eq!(among("ofset"), ["offset"]);
        assert_eq!(among("cargo.tml"), ["Cargo.toml"]);
    }

    #[test]
    fn something_else_is_not() {
        assert!(among("zebra").is_empty());
        assert!(among("").is_empty());
        assert!(among("path").is_empty(), "the name itself is no suggestion");
    }
}
