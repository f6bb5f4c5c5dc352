//! Converts permission rules of other programs. A rule keeps its meaning or becomes
//! stricter; rules that would allow more are dropped.

use crate::draft::Draft;
use crate::secrets;
use serde_json::{Map, Value, json};
use std::path::Path;

/// Effect of a rule on the calls it matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Allow,
    Ask,
    Deny,
}

impl Verdict {
    pub(crate) fn by_name(name: &str) -> Option<Self> {
        match name {
            "allow" => Some(Self::Allow),
            "ask" => Some(Self::Ask),
            "deny" => Some(Self::Deny),
            _ => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }
}

/// Creates a rule about all calls of a tool.
pub(crate) fn tool(verdict: Verdict, tool: &str) -> Value {
    json!({ verdict.name(): tool })
}

/// Creates a rule about some calls of a tool.
pub(crate) fn narrowed(verdict: Verdict, of: &str, key: &str, value: &str) -> Value {
    let mut rule = Map::new();
    rule.insert(verdict.name().to_owned(), of.into());
    rule.insert(key.to_owned(), value.into());
    rule.into()
}

/// Adds final rules that ask before calls with these effects, as the other program does
/// if none of its rules matches.
pub(crate) fn ask_by_default(draft: &mut Draft, program: &str, effects: &[&str]) {
    for effect in effects {
        let what = match *effect {
            "write" => "file changes",
            "execute" => "commands and MCP tools",
            _ => "the web",
        };
        draft.rule(
            &format!("{program} asks before {what}"),
            json!({ "ask": "*", "effect": effect }),
        );
    }
}

/// Commands that a pattern matches.
#[derive(Debug, PartialEq, Eq)]
enum Commands {
    All,
    /// All that start with these words.
    StartingWith(Vec<String>),
    /// Exactly these words.
    Exactly(Vec<String>),
    /// All that start with these words, followed by a word with this prefix.
    Prefix(Vec<String>, String),
    /// Some of those that start with these words.
    Some(Vec<String>),
}

/// Characters that haft rejects in the words of a rule, because they are special to a
/// shell.
const SHELL: &[char] = &[
    '|', '&', ';', '<', '>', '$', '`', '*', '?', '[', ']', '{', '}', '(', ')', '"', '\'', '\\',
];

fn commands(pattern: &str) -> Commands {
    let pattern = pattern.trim();
    let words: Vec<&str> = pattern.split_ascii_whitespace().collect();
    let takes = secrets::password_flags(&words);
    let is_plain = |word: &&str| {
        let bare = word.trim_end_matches(':');
        !word.contains(SHELL)
            && !secrets::holds_secret(word)
            && secrets::glued(bare, &takes).is_none()
    };
    let follows = |at: usize| at.checked_sub(1).and_then(|before| words.get(before));
    let plain: Vec<String> = words
        .iter()
        .enumerate()
        .take_while(|(at, word)| {
            is_plain(word) && follows(*at).is_none_or(|before| !takes.contains(before))
        })
        .map(|(_, word)| (*word).to_owned())
        .collect();
    let Some(odd) = words.get(plain.len()) else {
        return match plain.is_empty() {
            true => Commands::All,
            false => Commands::Exactly(plain),
        };
    };
    let is_last = words.len() == plain.len() + 1;
    match odd.strip_suffix('*') {
        Some("") if is_last && plain.is_empty() => Commands::All,
        Some("") if is_last => Commands::StartingWith(plain),
        Some(start) if is_last && is_plain(&start.trim_end_matches(':')) => {
            match start.strip_suffix(':') {
                Some("") if plain.is_empty() => Commands::All,
                Some("") => Commands::StartingWith(plain),
                Some(word) => {
                    let word = word.to_owned();
                    Commands::StartingWith(plain.into_iter().chain([word]).collect())
                }
                None => Commands::Prefix(plain, start.to_owned()),
            }
        }
        _ => Commands::Some(plain),
    }
}

/// Adds a rule about commands. With `over_denials`, rules below this one deny some of the
/// same commands, so asking about more than the pattern matches would loosen them.
pub(crate) fn command(
    draft: &mut Draft,
    what: &str,
    verdict: Verdict,
    pattern: &str,
    over_denials: bool,
) {
    const WORDS: &str = "haft compares whole words from the start of a command";
    let about = |verdict, words: &[String]| narrowed(verdict, "bash", "command", &words.join(" "));
    match (verdict, commands(pattern)) {
        (_, Commands::All) => draft.rule(what, tool(verdict, "bash")),
        (_, Commands::StartingWith(words)) => draft.rule(what, about(verdict, &words)),
        (Verdict::Allow, Commands::Exactly(words)) => draft.skip(
            what,
            format!(
                "haft has no rule for exactly these words; if any arguments are fine, add {{ allow: bash, command: {} }}",
                words.join(" ")
            ),
        ),
        (Verdict::Allow, Commands::Prefix(words, last)) => {
            let words: Vec<String> = words.into_iter().chain([last]).collect();
            draft.stricter_rules(what, [about(verdict, &words)], WORDS);
        }
        (Verdict::Allow, Commands::Some(_)) => draft.skip(
            what,
            format!("{WORDS} and has no wildcards in them; such commands ask"),
        ),
        (Verdict::Ask | Verdict::Deny, some) => {
            let strict = match over_denials {
                true => Verdict::Deny,
                false => verdict,
            };
            let (words, why) = match some {
                Commands::Exactly(words) => (
                    words,
                    "haft has no rule for exactly these words, so it applies with any arguments"
                        .to_owned(),
                ),
                Commands::Prefix(words, last) => {
                    let whole: Vec<String> = words.iter().cloned().chain([last]).collect();
                    let why = format!(
                        "haft compares whole words; to match only `{}`, write that as its command",
                        whole.join(" ")
                    );
                    (words, why)
                }
                Commands::Some(words) => (
                    words,
                    format!("{WORDS}, so it applies to all of these; replace it by a narrower rule"),
                ),
                Commands::All | Commands::StartingWith(_) => (Vec::new(), WORDS.to_owned()),
            };
            let rule = match words.is_empty() {
                true => tool(strict, "bash"),
                false => about(strict, &words),
            };
            draft.stricter_rules(what, [rule], &why);
        }
    }
}

/// Converts a path pattern in gitignore syntax, as used by Claude Code; `None` if haft
/// has no such glob.
pub(crate) fn from_gitignore(
    pattern: &str,
    verdict: Verdict,
    home: Option<&Path>,
) -> Option<String> {
    let pattern = pattern.trim();
    if pattern.is_empty() || pattern.contains("${") || pattern.contains(['!', '\\', '{']) {
        return None;
    }
    let folder = |glob: String| match glob.strip_suffix('/') {
        Some(folder) => format!("{folder}/**"),
        None => glob,
    };
    if let Some(absolute) = pattern.strip_prefix("//") {
        return Some(folder(format!("/{absolute}")));
    }
    if let Some(below) = pattern.strip_prefix("~/") {
        let home = home?.to_str()?;
        return Some(folder(format!("{home}/{below}")));
    }
    let below = pattern
        .strip_prefix("./")
        .or_else(|| pattern.strip_prefix('/'));
    let glob = below.unwrap_or(pattern);
    if glob.is_empty() || glob.starts_with("../") || glob == ".." {
        return None;
    }
    // Without a slash it matches the name in every folder. An `allow` rule is limited to
    // the work folder, which promises less.
    let is_name = below.is_none() && !glob.trim_end_matches('/').contains('/');
    match is_name && verdict != Verdict::Allow {
        true => Some(folder(format!("**/{glob}"))),
        false => Some(folder(glob.to_owned())),
    }
}

/// Converts a path pattern in which `*` also matches `/`, as used by opencode.
pub(crate) fn from_wildcard(
    pattern: &str,
    verdict: Verdict,
    home: Option<&Path>,
) -> Option<String> {
    let pattern = match pattern
        .strip_prefix("~/")
        .or(pattern.strip_prefix("$HOME/"))
    {
        Some(below) => format!("{}/{below}", home?.to_str()?),
        None => pattern.to_owned(),
    };
    if pattern.is_empty() || pattern.contains("${") || pattern.contains(['[', '{', '\\', '!']) {
        return None;
    }
    if verdict == Verdict::Allow {
        // Narrower: a star does not match `/`, unless it is the whole last component.
        return Some(match pattern.strip_suffix("/*") {
            Some(folder) => format!("{folder}/**"),
            None => pattern,
        });
    }
    // A star that is a whole component matches any number of components. For a star
    // inside a component the rule covers the whole folder.
    let parts: Vec<&str> = pattern.split('/').collect();
    let mut glob: Vec<String> = Vec::new();
    for (at, part) in parts.iter().enumerate() {
        let is_last = at + 1 == parts.len();
        match *part {
            "*" | "**" => glob.push("**".to_owned()),
            part if part.contains('*') && !is_last => {
                glob.push("**".to_owned());
                return Some(glob.join("/"));
            }
            part if part.starts_with('*') && part.matches('*').count() == 1 => {
                glob.push("**".to_owned());
                glob.push(part.to_owned());
            }
            part if part.contains('*') => {
                glob.push("**".to_owned());
                return Some(glob.join("/"));
            }
            part => glob.push(part.to_owned()),
        }
    }
    Some(glob.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn command_patterns_are_classified() {
        for (pattern, expected) in [
            ("*", Commands::All),
            ("", Commands::All),
            (":*", Commands::All),
            ("git log:*", Commands::StartingWith(words("git log"))),
            ("git log *", Commands::StartingWith(words("git log"))),
            ("ls:*", Commands::StartingWith(words("ls"))),
            ("npm test", Commands::Exactly(words("npm test"))),
            ("rm*", Commands::Prefix(Vec::new(), "rm".to_owned())),
            ("git * main", Commands::Some(words("git"))),
            ("* --force", Commands::Some(Vec::new())),
            ("echo \"a\":*", Commands::Some(words("echo"))),
            (
                "curl -H ghp_0123456789abcdefghij:*",
                Commands::Some(words("curl -H")),
            ),
            ("mysql -psecret db:*", Commands::Some(words("mysql"))),
            ("mysql -psecret:*", Commands::Some(words("mysql"))),
        ] {
            assert_eq!(commands(pattern), expected, "{pattern}");
        }
    }

    #[test]
    fn path_patterns_never_allow_more() {
        let home = Some(Path::new("/home/me"));
        for (pattern, verdict, glob) in [
            (".env", Verdict::Deny, Some("**/.env")),
            (".env", Verdict::Allow, Some(".env")),
            ("./.env", Verdict::Deny, Some(".env")),
            ("./secrets/**", Verdict::Deny, Some("secrets/**")),
            ("build/", Verdict::Deny, Some("**/build/**")),
            ("~/.zshrc", Verdict::Deny, Some("/home/me/.zshrc")),
            ("//etc/**", Verdict::Deny, Some("/etc/**")),
            ("/src/**", Verdict::Allow, Some("src/**")),
            ("../other/**", Verdict::Allow, None),
        ] {
            let found = from_gitignore(pattern, verdict, home);
            assert_eq!(found.as_deref(), glob, "{pattern}");
        }
        for (pattern, verdict, glob) in [
            ("*.env", Verdict::Deny, Some("**/*.env")),
            ("src/*", Verdict::Deny, Some("src/**")),
            ("src/*", Verdict::Allow, Some("src/**")),
            ("src/a*b", Verdict::Deny, Some("src/**")),
            ("src/a*/b", Verdict::Deny, Some("src/**")),
            ("~/x/*", Verdict::Ask, Some("/home/me/x/**")),
        ] {
            let found = from_wildcard(pattern, verdict, home);
            assert_eq!(found.as_deref(), glob, "{pattern}");
        }
    }
}
