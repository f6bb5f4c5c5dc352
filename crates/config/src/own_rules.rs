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
use crate::own_file::{Form, OwnFile, with_items};
use crate::policy;
use haft::Rule;
use std::path::Path;

/// The file that the user's permanent answers go to.
#[derive(Debug, Clone)]
pub struct OwnRules {
    file: OwnFile,
    environment: Environment,
}

impl OwnRules {
    /// Returns the file named with `--config`, or else the user's own; `None` if there is no
    /// config folder.
    #[must_use]
    pub fn new(flags: &Flags, environment: &Environment) -> Option<Self> {
        Some(Self {
            file: OwnFile::find(flags, environment)?,
            environment: environment.clone(),
        })
    }
}

impl haft::OwnRules for OwnRules {
    fn file(&self) -> &Path {
        &self.file.0
    }

    fn add(&self, rules: &[Rule]) -> Result<(), String> {
        let written: Vec<String> = rules.iter().map(ToString::to_string).collect();
        self.insert(&written).map_err(|failure| failure.to_string())
    }
}

impl OwnRules {
    fn insert(&self, rules: &[String]) -> Result<(), Failure> {
        let shown = self.file.shown();
        self.file.edit(|old| {
            let known = self.rules_in(old, &shown)?;
            let missing: Vec<String> = rules
                .iter()
                .filter(|rule| !known.contains(rule))
                .cloned()
                .collect();
            if missing.is_empty() {
                return Ok(None);
            }
            let new = with_items(old, "policy", &missing, Form::List).filter(|new| {
                let wanted: Vec<String> = missing.iter().chain(&known).cloned().collect();
                self.rules_in(new, &shown)
                    .is_ok_and(|rules| rules == wanted)
                    && without_policy(new) == without_policy(old)
            });
            let new = new.ok_or_else(|| {
                Failure::failed(format!(
                    "{shown} cannot be edited automatically; add this under `policy` yourself: - {}",
                    missing.join(", - ")
                ))
            })?;
            Ok(Some(new))
        })
    }

    /// Returns the rules in a text, as they are printed.
    fn rules_in(&self, text: &str, shown: &str) -> Result<Vec<String>, Failure> {
        let text = text.to_owned();
        let layer = Layer::parse(Role::User, &self.file.0, shown, text, &self.environment)?;
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

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test makes its own files")]
mod tests {
    use super::*;
    use crate::sources::FILE;

    const RULE: &str = "{ allow: bash, command: git push }";

    fn own(text: Option<&str>) -> (tempfile::TempDir, OwnRules) {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(FILE);
        if let Some(text) = text {
            std::fs::write(&file, text).unwrap();
        }
        let environment = crate::environment::of_test();
        let file = OwnFile(file);
        (folder, OwnRules { file, environment })
    }

    fn added(text: &str) -> Result<String, String> {
        let (_folder, own) = own(Some(text));
        own.insert(&[RULE.to_owned()])
            .map_err(|failure| failure.to_string())?;
        Ok(std::fs::read_to_string(&own.file.0).unwrap())
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
            assert_eq!(std::fs::read_to_string(&own.file.0).unwrap(), text);
        }
    }

    #[test]
    fn a_missing_file_is_created_for_its_owner_only() {
        use std::os::unix::fs::PermissionsExt;
        let (folder, mut own) = own(None);
        own.file.0 = folder.path().join("new/haft.yaml");
        own.insert(&[RULE.to_owned()]).unwrap();
        let facts = std::fs::metadata(&own.file.0).unwrap();
        assert_eq!(facts.permissions().mode() & 0o777, 0o600);
        assert_eq!(
            std::fs::read_dir(own.file.0.parent().unwrap())
                .unwrap()
                .count(),
            1
        );
    }

    #[test]
    fn a_link_stays_a_link_and_its_target_keeps_its_mode() {
        use std::os::unix::fs::PermissionsExt;
        let (folder, mut own) = own(Some("model: m\n"));
        let target = own.file.0.clone();
        std::fs::set_permissions(&target, std::fs::Permissions::from_mode(0o640)).unwrap();
        own.file.0 = folder.path().join("link.yaml");
        std::os::unix::fs::symlink(&target, &own.file.0).unwrap();
        own.insert(&[RULE.to_owned()]).unwrap();
        assert!(std::fs::symlink_metadata(&own.file.0).unwrap().is_symlink());
        assert!(std::fs::read_to_string(&target).unwrap().contains(RULE));
        let mode = std::fs::metadata(&target).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o640);
    }
}
