//! Checks the decisions in docs/policy.md against its example rules.

use super::*;
use crate::environment::of_test;
use haft::{Access, PolicyInput, Resource};
use std::path::Path;

const PAGE: &str = include_str!("../../../../docs/policy.md");

/// Loads the rules of the page as the user's own file.
fn rules() -> Policy {
    let (_, after) = PAGE.split_once("```yaml\n").unwrap();
    let (yaml, _) = after.split_once("```").unwrap();
    let layer = Layer::parse(
        Role::User,
        Path::new(""),
        "haft.yaml",
        yaml.to_owned(),
        &of_test(),
    )
    .unwrap();
    Policy::new(vec![super::rules(&layer).unwrap()])
}

#[test]
fn the_table_in_the_docs_matches_the_decisions() {
    let policy = rules();
    assert_eq!(policy.rules().count(), 8);
    let mut judged = 0;
    for row in PAGE.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = row.split(" | ").collect();
        let [tool, what, verdict] = cells[..] else {
            continue;
        };
        let tool = tool.trim_matches(['|', ' ', '`']);
        let what = what.trim_matches('`');
        let (effect, resource) = match tool {
            "bash" => (Effect::Execute, Resource::Command(what.to_owned())),
            "write" => (
                Effect::Write,
                Resource::Path(what.to_owned(), Access::Write),
            ),
            "read" => (Effect::Read, Resource::Path(what.to_owned(), Access::Read)),
            _ => continue,
        };
        let act = PolicyInput {
            bases: &[],
            tool,
            effect,
            resources: &[resource],
            work_dir: Path::new("/work"),
            names: &[],
        };
        let decided = policy.judge(&act).verdict;
        assert_eq!(
            decided.name(),
            verdict.trim_end_matches([' ', '|']),
            "{row}"
        );
        judged += 1;
    }
    assert_eq!(judged, 17, "number of rows in the table");
    let lines: Vec<u64> = policy.rules().map(|rule| rule.location().line).collect();
    assert_eq!(lines, [2, 3, 4, 5, 6, 7, 8, 9]);
}

#[test]
fn a_printed_rule_can_be_parsed_again() {
    for rule in rules().rules() {
        let text = format!("policy:\n  - {rule}\n");
        let layer = Layer::parse(Role::User, Path::new(""), "haft.yaml", text, &of_test()).unwrap();
        let again = super::rules(&layer).unwrap();
        assert_eq!(again.rules[0].to_string(), rule.to_string());
    }
}
