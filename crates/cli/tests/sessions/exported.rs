//! Exports: JSON lines for programs, pages for readers.

use crate::bed::{Bed, lines};
use serde_json::Value;

#[test]
fn lines_hold_everything_in_order() {
    let bed = Bed::new();
    drop(bed.agent("k3f9x2m4p7qz"));
    let text = bed.says(&["sessions", "export", "k3f9x2m4p7qz"]);
    let lines = lines(&text);
    let kinds: Vec<&str> = lines
        .iter()
        .map(|line| line["type"].as_str().unwrap())
        .collect();
    assert_eq!(
        kinds.join(" "),
        "session message message call call event message message session message"
    );
    let first = &lines[0];
    assert_eq!(
        (&first["version"], &first["kind"]),
        (&1.into(), &"agent".into())
    );
    for name in ["id", "work_dir", "toolset", "provider", "model", "created"] {
        assert!(
            first[name].as_str().is_some_and(|text| !text.is_empty()),
            "{name}: {first}"
        );
    }
    assert_eq!(first["parent"], Value::Null);
    assert_eq!(
        lines[1]["message"]["content"][0]["text"],
        "fix <b>it</b> & \u{1b}[31mmore"
    );
    assert_eq!(lines[2]["parent"], lines[1]["id"]);
    assert_eq!(
        (&lines[3]["call_id"], &lines[3]["duration_ms"]),
        (&"t1".into(), &5.into())
    );
    assert_eq!(lines[3]["reply"]["content"][0]["text"], "looked");
    assert_eq!(lines[5]["event"]["type"], "turn_start");
    assert_eq!(lines[8]["parent"], "k3f9x2m4p7qz");
    // Exactly as it was recorded.
    assert!(
        text.contains(
            r#""message":{"role":"assistant","parts":[{"type":"text","text":"Done."}]}}"#
        )
    );
    assert!(!text.contains('\u{1b}'), "JSON escapes it");
}

#[test]
fn a_page_runs_nothing() {
    let bed = Bed::new();
    drop(bed.agent("k3f9x2m4p7qz"));
    let page = bed.says(&["sessions", "export", "k3f9x2m4p7qz", "--format", "html"]);
    assert!(page.starts_with("<!doctype html>") && page.ends_with("</html>\n"));
    assert!(
        !page.contains("<script") && !page.contains("<b>") && !page.contains("src="),
        "{page}"
    );
    assert!(
        page.contains("&lt;/pre&gt;&lt;script&gt;alert(1)&lt;/script&gt;"),
        "{page}"
    );
    assert!(
        page.contains("fix &lt;b&gt;it&lt;/b&gt; &amp; \\x1b[31mmore"),
        "{page}"
    );
    assert_eq!(
        page.matches("<h1>").count(),
        2,
        "a heading for each session"
    );
    assert_eq!(
        page.matches("<details").count(),
        page.matches("</details>").count()
    );
}

#[test]
fn markdown_is_for_readers() {
    let bed = Bed::new();
    drop(bed.agent("k3f9x2m4p7qz"));
    let page = bed.says(&["sessions", "export", "k3f9x2m4p7qz", "--format", "md"]);
    for part in [
        "# fix <b>it</b> & \\x1b[31mmore\n",
        "## You\n\n",
        "## Thinking\n\n> hm\n",
        "**write**\n\n```json\n{\"path\":\"a.txt\"}\n```\n",
        "Result:\n\n````text\n```\nSuccessfully",
    ] {
        assert!(page.contains(part), "{part:?}:\n{page}");
    }
    let ended = bed.haft(&["sessions", "export", "k3f9x2m4p7qz", "--format", "pdf"]);
    assert_eq!((ended.code, ended.out.as_str()), (Some(2), ""), "{ended:?}");
}

#[test]
fn a_fork_is_another_session() {
    let bed = Bed::new();
    drop(bed.agent("k3f9x2m4p7qz"));
    let id = bed.says(&["sessions", "fork", "k3f9x2m4p7qz", "--at", "16777217"]);
    let lines = lines(&bed.says(&["sessions", "export", id.trim()]));
    assert_eq!(lines.len(), 2);
    assert_eq!(lines[0]["forked_from"], "k3f9x2m4p7qz");
    assert_eq!(lines[1]["id"], 16_777_217);
    let ended = bed.haft(&["sessions", "fork", "k3f9x2m4p7qz", "--at", "5"]);
    assert_eq!((ended.code, ended.out.as_str()), (Some(2), ""), "{ended:?}");
    assert!(ended.err.contains("has no message 5"), "{ended:?}");
}
