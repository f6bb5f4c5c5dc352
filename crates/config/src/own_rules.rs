//! Adding rules to the user's own file, when they answer a question with "always".
//!
//! The file is edited as text, so that comments and layout stay. Before it is replaced, the
//! new text is parsed: it must contain the new rules before the old ones and otherwise say
//! the same as before. If it does not, the file stays as it is.

use crate::environment::Environment;
use crate::failure::Failure;
use crate::flags::Flags;
use crate::layer::{Layer, Role};
use crate::node::{self, Content, Node};
use crate::sources::FILE;
use crate::{policy, read};
use haft::Rule;
use haft::ops::private;
use std::io::Write;
use std::path::{Path, PathBuf};

/// The file that the user's permanent answers go to.
#[derive(Debug, Clone)]
pub struct OwnRules {
    file: PathBuf,
    environment: Environment,
}

impl OwnRules {
    /// Returns the file named with `--config`, or else the user's own; `None` if there is no
    /// config folder.
    #[must_use]
    pub fn new(flags: &Flags, environment: &Environment) -> Option<Self> {
        let named = flags.config.clone();
        let named = named.or_else(|| environment.variable("HAFT_CONFIG").map(PathBuf::from));
        let file = match named {
            Some(named) => std::path::absolute(named).ok()?,
            None => environment.folders().config?.join(FILE),
        };
        Some(Self {
            file,
            environment: environment.clone(),
        })
    }
}

impl haft::OwnRules for OwnRules {
    fn file(&self) -> &Path {
        &self.file
    }

    fn add(&self, rules: &[Rule]) -> Result<(), String> {
        let written: Vec<String> = rules.iter().map(ToString::to_string).collect();
        self.insert(&written).map_err(|failure| failure.to_string())
    }
}

impl OwnRules {
    #[expect(
        clippy::disallowed_methods,
        reason = "the user's own file, outside every scope"
    )]
    fn insert(&self, rules: &[String]) -> Result<(), Failure> {
        // A file that is a link stays one.
        let file = haft::ops::scope::real(&self.file).unwrap_or_else(|| self.file.clone());
        let shown = self.file.display().to_string();
        let fail =
            |error: std::io::Error| Failure::failed(format!("cannot write {shown}: {error}"));
        let folder = file.parent().unwrap_or(Path::new("/"));
        if !folder.is_dir() {
            private::folder(folder).map_err(fail)?;
        }
        // Locked, so that two processes cannot overwrite each other's rules.
        let folder_handle = std::fs::File::open(folder).map_err(fail)?;
        folder_handle.lock().map_err(fail)?;
        let old = read::read(&file, &shown, read::Links::Followed)?;
        let mode = old.is_some().then(|| std::fs::metadata(&file)).transpose();
        let mode = mode.map_err(fail)?.map(|facts| facts.permissions());
        let old = old.unwrap_or_default();
        let known = self.rules_in(&old, &shown)?;
        let missing: Vec<String> = rules
            .iter()
            .filter(|rule| !known.contains(rule))
            .cloned()
            .collect();
        if missing.is_empty() {
            return Ok(());
        }
        let new = with_rules(&old, &missing).filter(|new| {
            let wanted: Vec<String> = missing.iter().chain(&known).cloned().collect();
            self.rules_in(new, &shown)
                .is_ok_and(|rules| rules == wanted)
                && without_policy(new) == without_policy(&old)
        });
        let new = new.ok_or_else(|| {
            Failure::failed(format!(
                "{shown} cannot be edited automatically; add this under `policy` yourself: - {}",
                missing.join(", - ")
            ))
        })?;
        let replace = || -> std::io::Result<()> {
            let mut temporary = tempfile::Builder::new()
                .prefix(".haft-")
                .suffix(".tmp")
                .tempfile_in(folder)?;
            temporary.write_all(new.as_bytes())?;
            if let Some(mode) = mode {
                temporary.as_file().set_permissions(mode)?;
            }
            temporary.as_file().sync_all()?;
            temporary.persist(&file)?;
            folder_handle.sync_all()
        };
        replace().map_err(fail)
    }

    /// Returns the rules in a text, as they are printed.
    fn rules_in(&self, text: &str, shown: &str) -> Result<Vec<String>, Failure> {
        let text = text.to_owned();
        let layer = Layer::parse(Role::User, &self.file, shown, text, &self.environment)?;
        let rules = policy::rules(&layer)?.rules;
        Ok(rules.iter().map(ToString::to_string).collect())
    }
}

/// Returns everything that a text sets except the rules; `None` if it cannot be parsed.
fn without_policy(text: &str) -> Option<Vec<(String, serde_json::Value)>> {
    let root = node::parse(text).ok()?;
    let entries = match root {
        Node {
            content: Content::Map(entries),
            ..
        } => entries,
        _ => Vec::new(),
    };
    let others = entries
        .into_iter()
        .filter(|(name, _)| name.text != "policy");
    Some(
        others
            .map(|(name, node)| (name.text, node.plain()))
            .collect(),
    )
}

/// Inserts rules as the first ones of `policy`; `None` if the text has an unusual form.
fn with_rules(text: &str, rules: &[String]) -> Option<String> {
    let mut lines: Vec<String> = text.split_inclusive('\n').map(str::to_owned).collect();
    let is_policy = |line: &String| {
        line.strip_prefix("policy")
            .is_some_and(|rest| rest.trim_start().starts_with(':'))
    };
    let Some(at) = lines.iter().position(is_policy) else {
        let mut out = text.to_owned();
        if !out.is_empty() && !out.ends_with('\n') {
            out.push('\n');
        }
        if !out.trim().is_empty() {
            out.push('\n');
        }
        out.push_str("policy:\n");
        out.push_str(&items(rules, "  ", "\n"));
        return Some(out);
    };
    let line = lines.get(at)?.clone();
    let (key, rest) = line.split_once(':')?;
    let end = match line.ends_with("\r\n") {
        true => "\r\n",
        false => "\n",
    };
    let value = rest.split(" #").next().unwrap_or_default().trim();
    if value.is_empty() || value.starts_with('#') {
        let mut next = lines.iter().skip(at + 1);
        let first = next.find(|line| {
            let line = line.trim();
            !line.is_empty() && !line.starts_with('#')
        });
        let indent = first
            .filter(|line| line.trim_start().starts_with('-'))
            .map_or("  ", |line| line.split('-').next().unwrap_or_default())
            .to_owned();
        let has_end = line.ends_with('\n');
        let inserted = items(rules, &indent, end);
        lines.insert(
            at + 1,
            if has_end {
                inserted
            } else {
                format!("{end}{inserted}")
            },
        );
        return Some(lines.concat());
    }
    if value == "[]" {
        let comment = rest
            .trim()
            .strip_prefix("[]")
            .unwrap_or_default()
            .trim_end();
        let line = format!("{key}:{comment}{end}{}", items(rules, "  ", end));
        *lines.get_mut(at)? = line;
        return Some(lines.concat());
    }
    let inner = rest.trim_start().strip_prefix('[')?;
    *lines.get_mut(at)? = format!("{key}: [{}, {}", rules.join(", "), inner.trim_start());
    Some(lines.concat())
}

/// Formats rules as items of a list.
fn items(rules: &[String], indent: &str, end: &str) -> String {
    rules
        .iter()
        .map(|rule| format!("{indent}- {rule}{end}"))
        .collect()
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test makes its own files")]
mod tests {
    use super::*;

    const RULE: &str = "{ allow: bash, command: git push }";

    fn own(text: Option<&str>) -> (tempfile::TempDir, OwnRules) {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(FILE);
        if let Some(text) = text {
            std::fs::write(&file, text).unwrap();
        }
        let environment = crate::environment::of_test();
        (folder, OwnRules { file, environment })
    }

    fn added(text: &str) -> Result<String, String> {
        let (_folder, own) = own(Some(text));
        own.insert(&[RULE.to_owned()])
            .map_err(|failure| failure.to_string())?;
        Ok(std::fs::read_to_string(&own.file).unwrap())
    }

    #[test]
    fn a_rule_comes_first_and_everything_else_stays() {
        for (before, after) in [
            ("", "policy:\n  - RULE\n"),
            ("model: m", "model: m\n\npolicy:\n  - RULE\n"),
            (
                "# mine\npolicy:   # rules\n    # first\n    - { ask: bash }\nmodel: m\n",
                "# mine\npolicy:   # rules\n    - RULE\n    # first\n    - { ask: bash }\nmodel: m\n",
            ),
            (
                "policy:\n- ask: bash\n  command: x\nmodel: m\n",
                "policy:\n- RULE\n- ask: bash\n  command: x\nmodel: m\n",
            ),
            (
                "policy: [] # none\nmodel: m\n",
                "policy: # none\n  - RULE\nmodel: m\n",
            ),
            (
                "policy: [{ ask: bash }] # one\n",
                "policy: [RULE, { ask: bash }] # one\n",
            ),
            ("policy:", "policy:\n  - RULE\n"),
            (
                "model: m\r\npolicy:\r\n  - { ask: bash }\r\n",
                "model: m\r\npolicy:\r\n  - RULE\r\n  - { ask: bash }\r\n",
            ),
        ] {
            let after = after.replace("RULE", RULE);
            assert_eq!(added(before), Ok(after), "{before:?}");
        }
    }

    #[test]
    fn a_rule_that_is_there_is_not_added_again() {
        let text = format!("policy:\n  - {{ ask: bash }}\n  - {RULE}\n");
        assert_eq!(added(&text), Ok(text));
    }

    #[test]
    fn a_file_in_an_unusual_form_stays_as_it_is() {
        for text in [
            "{ model: m, policy: [] }\n",
            "\"policy\": [{ ask: bash }]\n",
            "system_prompt: |\n  x\npolicy: &rules\n  - { ask: bash }\n",
            "model: [\n",
        ] {
            let (_folder, own) = own(Some(text));
            assert!(own.insert(&[RULE.to_owned()]).is_err(), "{text:?}");
            assert_eq!(std::fs::read_to_string(&own.file).unwrap(), text);
        }
    }

    #[test]
    fn a_missing_file_is_created_for_its_owner_only() {
        use std::os::unix::fs::PermissionsExt;
        let (folder, mut own) = own(None);
        own.file = folder.path().join("new/haft.yaml");
        own.insert(&[RULE.to_owned()]).unwrap();
        let facts = std::fs::metadata(&own.file).unwrap();
        assert_eq!(facts.permissions().mode() & 0o777, 0o600);
        assert_eq!(
            std::fs::read_dir(own.file.parent().unwrap())
                .unwrap()
                .count(),
            1
        );
    }

    #[test]
    fn a_link_stays_a_link_and_its_target_keeps_its_mode() {
        use std::os::unix::fs::PermissionsExt;
        let (folder, mut own) = own(Some("model: m\n"));
        let target = own.file.clone();
        std::fs::set_permissions(&target, std::fs::Permissions::from_mode(0o640)).unwrap();
        own.file = folder.path().join("link.yaml");
        std::os::unix::fs::symlink(&target, &own.file).unwrap();
        own.insert(&[RULE.to_owned()]).unwrap();
        assert!(std::fs::symlink_metadata(&own.file).unwrap().is_symlink());
        assert!(std::fs::read_to_string(&target).unwrap().contains(RULE));
        let mode = std::fs::metadata(&target).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o640);
    }
}
