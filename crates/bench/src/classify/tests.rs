use super::*;
use crate::case::{Content, Form, PathForm};
use std::collections::BTreeMap;

fn case() -> Case {
    Case {
        task: "a.txt/1".to_owned(),
        mistake: "typing error".to_owned(),
        files: BTreeMap::new(),
        path: "a.txt".to_owned(),
        path_form: PathForm::Usual,
        old: "let totl = 1;".to_owned(),
        new: "let total = 2;".to_owned(),
        form: Form::Plain,
        after: Some(Content::Text("first\nlet total = 2;\n".to_owned())),
        after_all: None,
        place: (2, 2),
        help: vec!["special word".to_owned()],
    }
}

fn after(now: &str, touched: bool, reply: &str) -> Outcome {
    let before = b"first\nlet total = 1;\n";
    let now = Some(now.as_bytes());
    outcome(&case(), Matches::One, before, now, touched, reply).unwrap()
}

#[test]
fn outcomes_follow_the_rule() {
    let (before, right) = ("first\nlet total = 1;\n", "first\nlet total = 2;\n");
    assert_eq!(after(right, false, ""), Outcome::Applied);
    assert_eq!(after(right, true, ""), Outcome::Wrong);
    assert_eq!(
        after("first\nlet total = 2;", false, "done"),
        Outcome::Wrong
    );
    assert_eq!(after(before, false, "not found"), Outcome::Unhelped);
    assert_eq!(after(before, false, "nearest: line 2"), Outcome::Taught);
    assert_eq!(after(before, false, "nearest: line 1"), Outcome::Unhelped);
    assert_eq!(
        after(before, false, "found `let total = 1;`"),
        Outcome::Taught
    );
    assert_eq!(after(before, false, "a special word"), Outcome::Taught);
    let marked = "let {-totl-}{+total+} = 1;";
    assert_eq!(after(before, false, marked), Outcome::Taught);
}
