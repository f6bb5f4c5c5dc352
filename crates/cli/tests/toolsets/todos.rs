//! A list that is far too long is stored, counted and returned in part.

use crate::session::Bed;
use serde_json::json;

#[test]
fn twenty_thousand_todos() {
    let bed = Bed::new();
    let mut session = bed.session(&["--toolset", "deepagents"]);
    let todos: Vec<_> = (0..20_000)
        .map(|number| json!({ "content": format!("step {number}"), "status": "pending" }))
        .collect();
    let written = session.done("write_todos", &json!({ "todos": todos }));
    assert_eq!(
        written.json(),
        json!({ "status": "success", "count": 20_000 })
    );
    let read = session.done("read_todos", &json!({}));
    assert!(read.text.len() < 101_000, "{}", read.text.len());
    let read = read.json();
    assert_eq!(read["total"], 20_000);
    assert_eq!(read["truncated"], true);
    let shown = read["todos"].as_array().unwrap();
    assert_eq!(shown.as_slice(), &todos[..shown.len()]);
    // All of it can be paged, starting where the reply ended.
    let path = read["output_path"].as_str().unwrap();
    let rest = json!({ "file_path": path, "offset": 19_999 });
    let last = session.done("read_file", &rest).json();
    let last = last["content"].as_str().unwrap();
    assert!(last.contains("step 19999"), "{last}");
}

#[test]
fn a_refused_list_changes_nothing() {
    let bed = Bed::new();
    let mut session = bed.session(&["--toolset", "deepagents"]);
    let one = json!([{ "content": "one", "status": "in_progress" }]);
    session.done("write_todos", &json!({ "todos": one }));
    for wrong in [
        json!([{ "content": "two", "status": "done" }]),
        json!([{ "content": "two", "status": "pending" }, { "content": "", "status": "pending" }]),
        json!([{ "content": "two" }]),
        json!([{ "status": "pending" }]),
        json!("nothing"),
        json!(7),
    ] {
        let answer = session.call("write_todos", &json!({ "todos": wrong }));
        assert!(answer.is_error, "{wrong}: {}", answer.text);
        let message = answer.json()["message"].as_str().unwrap().to_owned();
        assert!(message.starts_with("validation error: "), "{message}");
    }
    assert_eq!(
        session.done("read_todos", &json!({})).json(),
        json!({ "todos": one })
    );
}
