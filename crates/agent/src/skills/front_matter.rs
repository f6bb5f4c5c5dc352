//! The front matter of a `SKILL.md`.

use haft::ops::text::decode::{lf, prefix, visible};
use haft::ops::text::front_matter as matter;
use serde::Deserialize;

/// Maximum size in bytes.
const MAX_SIZE: usize = 16 << 10;

/// Maximum length of a name.
const MAX_NAME: usize = 64;

/// Maximum length of a description in bytes.
const MAX_DESCRIPTION: usize = 1024;

/// The validated front matter.
pub(super) struct FrontMatter {
    pub(super) name: String,
    pub(super) description: String,
}

/// The keys that haft uses. Others are ignored.
#[derive(Deserialize)]
struct Keys {
    name: Option<String>,
    description: Option<String>,
}

/// Parses the front matter of a skill. The name defaults to the name of the folder.
pub(super) fn read(text: &str, folder: &str) -> Result<FrontMatter, String> {
    let text = lf(text);
    let Ok((Some(front), _)) = matter::split(&text) else {
        return Err("no front matter (--- name, description ---) at the start".to_owned());
    };
    if front.len() > MAX_SIZE {
        return Err(format!("the front matter has more than {MAX_SIZE} bytes"));
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
            "the front matter is not valid YAML: {}",
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
    if name.is_empty() || name.len() > MAX_NAME || !name.chars().all(fits) {
        return Err(format!(
            "the name must have at most {MAX_NAME} letters, digits, - _ and .: \"{}\"",
            visible(prefix(name, MAX_NAME))
        ));
    }
    let description = keys.description.unwrap_or_default();
    let description = description.split_whitespace().collect::<Vec<_>>().join(" ");
    if description.is_empty() {
        return Err("no description".to_owned());
    }
    let mut shown = visible(prefix(&description, MAX_DESCRIPTION));
    if description.len() > MAX_DESCRIPTION {
        shown.push('…');
    }
    Ok(FrontMatter {
        name: name.to_owned(),
        description: shown,
    })
}

/// Returns the text below the front matter.
pub(super) fn body(text: &str) -> &str {
    matter::split(text).map_or(text, |(_, body)| body)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn why(text: &str) -> String {
        read(text, "folder").err().unwrap_or_default()
    }

    #[test]
    fn name_and_description_are_read() {
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
        assert_eq!(body("---\na: 1\n----\nb\n---\nBody"), "Body");
        assert_eq!(body("---\nBody"), "---\nBody");
    }

    #[test]
    fn problems_are_reported() {
        assert!(why("# No front").contains("front matter"));
        assert!(why("---\nname: a\n").contains("front matter"));
        assert!(why("---\nname: a\n---\n").contains("no description"));
        assert!(why("---\nname: [a\n---\n").contains("not valid YAML"));
        assert!(why("---\nname: \"a\\u001b[2J\"\ndescription: x\n---\n").contains("the name"));
        assert!(why("---\nname: ../etc\ndescription: x\n---\n").contains("the name"));
        assert!(
            why(&format!(
                "---\nname: {}\ndescription: x\n---\n",
                "a".repeat(65)
            ))
            .contains("the name")
        );
        let long = format!(
            "---\nname: a\ndescription: x\nmore: {}\n---\n",
            "y".repeat(MAX_SIZE)
        );
        assert!(why(&long).contains("more than"));
        let hidden = read("---\ndescription: \"a\\u202eb\\u0007\"\n---\n", "f").unwrap();
        assert_eq!(hidden.description, "a\\u{202e}b\\x07");
    }

    #[test]
    fn yaml_bombs_are_rejected() {
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
