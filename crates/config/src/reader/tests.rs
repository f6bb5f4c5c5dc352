//! Messages and conventions of the reader.

use super::*;
use crate::node;
use crate::setting::{Map, Setting, TextOr, Whole};

#[derive(Debug, Default, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Section {
    count: Option<Setting<Whole<1, 9>>>,
    shape: Option<Shape>,
    #[serde(default)]
    words: Vec<String>,
    #[serde(default)]
    by_name: Map<TextOr<Section>>,
}

#[derive(Debug, serde::Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
enum Shape {
    Point,
    Circle { radius: Option<bool> },
    Ssh { ssh: String },
}

fn section(text: &str) -> Result<(Section, Vec<String>), String> {
    let values = Values::default();
    let node = node::parse(text).unwrap();
    match read(&node, "top", &values) {
        Ok(section) => {
            let values = values.into_inner().into_iter();
            Ok((section, values.map(|found| found.path).collect()))
        }
        Err(problem) => {
            let at = problem.at.unwrap();
            Err(format!("{}:{}: {problem}", at.line, at.column))
        }
    }
}

#[test]
fn mistakes_are_located_and_explained() {
    for (text, message) in [
        ("[]", "1:1: top must be a map, got a list"),
        (
            "cuont: 1",
            "1:1: unknown key \"cuont\" in top; did you mean \"count\"?",
        ),
        (
            "zebra:",
            "1:1: unknown key \"zebra\" in top; known keys: count, shape, words, by_name",
        ),
        (
            "count: 10",
            "1:8: top.count must be a whole number from 1 to 9, got 10",
        ),
        (
            "count: a",
            "1:8: top.count must be a whole number from 1 to 9, got text",
        ),
        (
            "words: [a, {}]",
            "1:12: top.words[1] must be text, got a map",
        ),
        (
            "shape: 1",
            "1:8: top.shape must be point, circle or ssh, got a number",
        ),
        (
            "shape: cirle",
            "1:8: top.shape must be point, circle or ssh, got \"cirle\"; did you mean \"circle\"?",
        ),
        (
            "shape: {}",
            "1:8: top.shape needs a kind; valid kinds: point, circle, ssh",
        ),
        (
            "shape: {kind: blob}",
            "1:15: top.shape.kind must be point, circle or ssh, got \"blob\"",
        ),
        (
            "shape: {kind: circle, radius: 1}",
            "1:31: top.shape.radius must be true or false, got a number",
        ),
        (
            "shape: {kind: point, x: 1}",
            "1:22: unknown key \"x\" in top.shape; known keys: kind",
        ),
        ("shape: ssh", "1:8: top.shape needs ssh"),
        // Also beside a variable.
        (
            "count: ${N}\nby_name: {a: {words: ['${X}'], cuont: 1}}",
            "2:32: unknown key \"cuont\" in top.by_name.a; did you mean \"count\"?",
        ),
        (
            "by_name:\n  a.b:\n    count: 0",
            "3:12: top.by_name.a.b.count must be a whole number from 1 to 9, got 0",
        ),
    ] {
        assert_eq!(section(text).unwrap_err(), message, "{text}");
    }
}

#[test]
fn forms_of_an_enum() {
    let shape = |text: &str| section(text).unwrap().0.shape.unwrap();
    assert!(matches!(shape("shape: point"), Shape::Point));
    assert!(matches!(shape("shape: {kind: point}"), Shape::Point));
    assert!(matches!(
        shape("shape: circle"),
        Shape::Circle { radius: None }
    ));
    let round = shape("shape: {kind: circle, radius: true}");
    assert!(matches!(round, Shape::Circle { radius: Some(true) }));
    assert!(matches!(shape("shape: {ssh: host}"), Shape::Ssh { ssh } if ssh == "host"));
}

#[test]
fn settings_are_numbered_and_checked_once_they_have_no_variables() {
    let (found, paths) = section("count: ${N}\nby_name: {a: text, b: {words:}}").unwrap();
    assert_eq!(paths, ["top.count", "top.by_name.a", "top.by_name.b"]);
    assert_eq!(found.count.map(|count| count.number), Some(0));
    assert_eq!(found.by_name.0[1].1.number, 2);
    assert!(found.words.is_empty());
    let lookup = |_: &str| Some("secret".to_owned());
    let node = node::parse("${N}").unwrap().expanded(&lookup).unwrap();
    let problem = read::<Whole<1, 9>>(&node, "count", &Values::default()).unwrap_err();
    assert_eq!(
        problem.to_string(),
        "count must be a whole number from 1 to 9, but \"${N}\" expands to something else"
    );
}
