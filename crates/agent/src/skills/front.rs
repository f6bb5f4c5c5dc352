//! The front matter of a `SKILL.md`.

use haft::ops::text::decode::{lf, prefix, visible};
use haft::ops::text::front as matter;
use serde::Deserialize;

/// The most bytes of it.
const LARGEST: usize = 16 << 10;

/// The longest name.
const NAME: usize = 64;

/// The longest description, in bytes.
const DESCRIPTION: usize = 1024;

/// What it says.
pub(super) struct Front {
    pub(super) name: String,
    pub(super) description: String,
}

/// The keys that mean something here. Others are somebody else's.
#[derive(Deserialize)]
struct Keys {
    name: Option<String>,
    description: Option<String>,
}

/// Reads it. A skill without a name has that of its folder.
pub(super) fn read(text: &str, folder: &str) -> Result<Front, String> {
    let text = lf(text);
    let Some(front) = split(&text).0 else {
        return Err("it does not begin with front matter (--- name, description ---)".to_owned());
    };
    if front.len() > LARGEST {
        return Err(format!("its front matter has more than {LARGEST} bytes"));
    }
    let keys = |front: &str| -> Result<Option<Keys>, _> {
        let options = serde_saphyr::options! {
            with_snippet: false,
            alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: 1_000 },
            budget: serde_saphyr::budget! { max_depth: 24, flow_nesting_limit: 24 },
        };
        serde_saphyr::from_str_with_options(front, options)
    };
    let keys = matter::read(front, keys).map_err(|error| {
        let error = error.to_string();
        let first = error.lines().next().unwrap_or_default();
        format!(
            "its front matter is not valid YAML: {}",
            visible(prefix(first, 200))
        )
    })?;
    let keys = keys.unwrap_or(Keys {
        name: None,
        description: None,
    });
    let name = keys.name.unwrap_or_else(|| folder.to_owned());
    let name = name.trim();
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if name.is_empty() || name.len() > NAME || !name.chars().all(fits) {
        return Err(format!(
            "its name has to be of at most {NAME} letters, digits, - _ and .: \"{}\"",
            visible(prefix(name, NAME))
        ));
    }
    let description = keys.description.unwrap_or_default();
    let description = description.split_whitespace().collect::<Vec<_>>().join(" ");
    if description.is_empty() {
        return Err("it has no description".to_owned());
    }
    let mut shown = visible(prefix(&description, DESCRIPTION));
    if description.len() > DESCRIPTION {
        shown.push('…');
    }
    Ok(Front {
        name: name.to_owned(),
        description: shown,
    })
}

/// The front matter and what follows it.
pub(super) fn split(text: &str) -> (Option<&str>, &str) {
    let Some(rest) = text.strip_prefix("---\n") else {
        return (None, text);
    };
    if let Some(body) = rest.strip_prefix("---\n") {
        return (Some(""), body);
    }
    let mut from = 0;
    while let Some(found) = rest.get(from..).and_then(|rest| rest.find("\n---")) {
        let end = from + found;
        let after = rest.get(end + 4..).unwrap_or_default();
        // A line of its own, not the beginning of a longer one.
        let line = after.split('\n').next().unwrap_or_default();
        if line.trim().is_empty() {
            let body = after.get(line.len()..).unwrap_or_default();
            return (rest.get(..end), body.trim_start_matches('\n'));
        }
        from = end + 4;
    }
    (None, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn why(text: &str) -> String {
        read(text, "folder").err().unwrap_or_default()
    }

    #[test]
    fn what_it_says() {
        let front = read(
            "---\r\nname: pdf\r\ndescription: >\r\n  Fill in\r\n  forms.\r\nlicense: MIT\r\nmetadata: { a: [1, 2] }\r\n---\r\n\r\nBody\r\n",
            "folder",
        );
        let front = front.unwrap();
        assert_eq!(
            (front.name.as_str(), front.description.as_str()),
            ("pdf", "Fill in forms.")
        );
        let colon = read("---\ndescription: Deploys: to prod\n---\n", "folder").unwrap();
        assert_eq!(colon.description, "Deploys: to prod");
        let front = read("---\ndescription: x\n---\n", "folder").unwrap();
        assert_eq!(front.name, "folder");
        assert_eq!(split("---\na: 1\n----\nb\n---\nBody").1, "Body");
    }

    #[test]
    fn what_is_wrong_with_it() {
        assert!(why("# No front").contains("front matter"));
        assert!(why("---\nname: a\n").contains("front matter"));
        assert!(why("---\nname: a\n---\n").contains("no description"));
        assert!(why("---\nname: [a\n---\n").contains("not valid YAML"));
        assert!(why("---\nname: \"a\\u001b[2J\"\ndescription: x\n---\n").contains("its name"));
        assert!(why("---\nname: ../etc\ndescription: x\n---\n").contains("its name"));
        assert!(
            why(&format!(
                "---\nname: {}\ndescription: x\n---\n",
                "a".repeat(65)
            ))
            .contains("its name")
        );
        let long = format!(
            "---\nname: a\ndescription: x\nmore: {}\n---\n",
            "y".repeat(LARGEST)
        );
        assert!(why(&long).contains("more than"));
        let hidden = read("---\ndescription: \"a\\u202eb\\u0007\"\n---\n", "f").unwrap();
        assert_eq!(hidden.description, "a\\u{202e}b\\x07");
    }

    #[test]
    fn bombs_are_refused() {
        let mut bomb = "---\na0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
        for n in 1..12 {
            let last = format!("*a{}", n - 1);
            let list = [last.as_str(); 9].join(", ");
            bomb.push_str(&format!("a{n}: &a{n} [{list}]\n"));
        }
        bomb.push_str("description: x\n---\n");
        assert!(why(&bomb).contains("not valid YAML"), "{}", why(&bomb));
        let deep = format!(
            "---\ndescription: x\na: {}1{}\n---\n",
            "[".repeat(2000),
            "]".repeat(2000)
        );
        assert!(why(&deep).contains("not valid YAML"), "{}", why(&deep));
    }
}
