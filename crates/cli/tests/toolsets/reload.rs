//! A changed plugin file takes effect without a new session.

use crate::session::Bed;
use serde_json::json;
use std::time::{Duration, Instant};

fn script(name: &str) -> String {
    format!(
        r#"import json, sys
for line in sys.stdin:
    request = json.loads(line)
    if request["type"] == "describe":
        answer = {{"name": "{name}", "description": "Says its name."}}
    else:
        answer = {{"content": [{{"type": "text", "text": "I am {name}"}}]}}
    print(json.dumps(answer), flush=True)
"#
    )
}

#[test]
fn a_changed_configuration_changes_the_tools() {
    let bed = Bed::new();
    bed.file("tool.py", script("alpha"));
    let path = bed.work("tool.py").to_string_lossy().into_owned();
    let flag = format!("python3 {path}");
    let mut session = bed.session(&["--plugin", &flag]);
    assert!(session.tools().contains(&"alpha".to_owned()));
    assert_eq!(session.done("alpha", &json!({})).text, "I am alpha");
    bed.file("tool.py", script("beta"));
    let begun = Instant::now();
    while !session.tools().contains(&"beta".to_owned()) {
        assert!(
            begun.elapsed() < Duration::from_secs(20),
            "{:?}",
            session.tools()
        );
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(!session.tools().contains(&"alpha".to_owned()));
    assert_eq!(session.done("beta", &json!({})).text, "I am beta");
    let reported = "notifications/tools/list_changed";
    assert!(
        session
            .notifications
            .iter()
            .any(|method| method == reported),
        "{:?}",
        session.notifications
    );
    // Earlier notifications do not reappear in the next session.
    drop(session);
    let mut session = bed.session(&["--plugin", &flag]);
    assert_eq!(session.done("beta", &json!({})).text, "I am beta");
}

/// A changed plugin of a project needs trust again.
#[test]
fn a_changed_plugin_of_a_project_needs_trust_again() {
    let bed = Bed::new();
    bed.file("tool.py", script("alpha"));
    bed.file(
        "haft.yaml",
        "tools:\n  plugins:\n    - {path: python3, args: [./tool.py]}\n",
    );
    assert!(bed.command(&["trust", "--yes"]).status().unwrap().success());
    let mut session = bed.session(&[]);
    assert_eq!(session.done("alpha", &json!({})).text, "I am alpha");
    bed.file("tool.py", script("beta"));
    let begun = Instant::now();
    while session.tools().contains(&"alpha".to_owned()) {
        assert!(
            begun.elapsed() < Duration::from_secs(20),
            "{:?}",
            session.tools()
        );
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(!session.tools().contains(&"beta".to_owned()));
}
