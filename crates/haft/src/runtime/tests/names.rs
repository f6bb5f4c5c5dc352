//! File names that are printed in escaped form, and work folders that were moved.

use super::*;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

const ODD: [&[u8]; 10] = [
    b"new\nline",
    b"tab\there",
    b"esc\x1b[31m",
    b"bad\xff bytes",
    b"bad\xfe\nboth",
    "bidi\u{202e}txt".as_bytes(),
    b"back\\slash",
    b"back\\n and\nline",
    "gr\u{f6}\u{df}e\r".as_bytes(),
    b"quote'\"\x07",
];

fn session(toolset: &str, dir: &std::path::Path) -> Runtime {
    Runtime::builder()
        .dir(dir)
        .toolset(toolset)
        .every_tool()
        .build()
        .unwrap()
}

async fn reply_text(runtime: &Runtime, tool: &str, arguments: Value) -> String {
    runtime.call(tool, arguments).await.text()
}

#[tokio::test]
async fn names_printed_by_a_listing_can_be_read() {
    let temp = tempfile::TempDir::new().unwrap();
    std::fs::create_dir(temp.path().join("d\x07ir")).unwrap();
    for (number, name) in ODD.iter().enumerate() {
        for folder in ["", "d\x07ir"] {
            let path = temp.path().join(folder).join(OsStr::from_bytes(name));
            std::fs::write(path, format!("content {number}\n")).unwrap();
        }
    }
    let standard = session("standard", temp.path());
    let mut seen = 0;
    for (folder, prefix) in [(".", ""), (r"d\u{7}ir", r"d\u{7}ir/")] {
        let listed = reply_text(&standard, "ls", json!({ "path": folder })).await;
        for line in listed.lines().filter(|line| !line.contains("ir/")) {
            let name = line.split("  ").next().unwrap();
            let path = format!("{prefix}{name}");
            let text = reply_text(&standard, "read", json!({ "path": path })).await;
            assert!(text.contains("content"), "{path}: {text}");
            seen += 1;
        }
    }
    assert_eq!(seen, 2 * ODD.len());
    let found = reply_text(&standard, "find", json!({ "type": "file" })).await;
    for path in found.lines() {
        let edit = json!({ "path": path, "old_text": "content", "new_text": "content" });
        let text = reply_text(&standard, "read", json!({ "path": path })).await;
        assert!(text.contains("content"), "{path}: {text}");
        let text = reply_text(&standard, "edit", edit).await;
        assert!(!text.contains("not found"), "{path}: {text}");
    }
    let wrote = json!({ "path": r"new\nline", "content": "changed" });
    reply_text(&standard, "write", wrote).await;
    let name = temp.path().join("new\nline");
    assert_eq!(std::fs::read_to_string(&name).unwrap(), "changed");
    // A file whose literal name is the printed one takes precedence; a new file may have
    // such a name too.
    std::fs::write(temp.path().join(r"new\nline"), "literal").unwrap();
    let text = reply_text(&standard, "read", json!({ "path": r"new\nline" })).await;
    assert!(text.contains("literal"), "{text}");
    reply_text(
        &standard,
        "write",
        json!({ "path": r"un\nknown", "content": "x" }),
    )
    .await;
    assert!(temp.path().join(r"un\nknown").exists());

    // A new file in a folder with such a name, and the folder itself.
    for path in [r"d\u{7}ir/new", r"d\u{7}ir/more/deep", r"./d\u{7}ir/o\nld"] {
        let text = reply_text(&standard, "write", json!({ "path": path, "content": "x" })).await;
        assert!(text.contains("Successfully"), "{text}");
    }
    for name in ["d\x07ir/new", "d\x07ir/more/deep", "d\x07ir/o\\nld"] {
        assert!(temp.path().join(name).exists(), "{name}");
    }
    assert!(!temp.path().join(r"d\u{7}ir").exists());
    let text = reply_text(&standard, "read", json!({ "path": r"d\u{7}ir/" })).await;
    assert!(text.contains("directory"), "{text}");
    let text = reply_text(&standard, "ls", json!({ "path": r"d\u{7}ir/" })).await;
    assert!(text.contains("new"), "{text}");

    let workspace = session("workspace", temp.path());
    let listed = reply_text(&workspace, "list", json!({ "path": "." })).await;
    let listed: Value = serde_json::from_str(&listed).unwrap();
    for entry in listed["files"].as_array().unwrap() {
        if entry["type"] == "file" {
            let text = reply_text(&workspace, "read", json!({ "path": entry["path"] })).await;
            assert!(text.contains(r#""success":true"#), "{entry}: {text}");
        }
    }
    let deep = session("deepagents", temp.path());
    let listed = reply_text(&deep, "ls", json!({ "path": "/" })).await;
    let listed: Value = serde_json::from_str(&listed).unwrap();
    for entry in listed["entries"].as_array().unwrap() {
        if entry["is_dir"] == false {
            let text = reply_text(&deep, "read_file", json!({ "file_path": entry["path"] })).await;
            assert!(text.contains(r#""status":"success""#), "{entry}: {text}");
        }
    }
}

#[tokio::test]
async fn a_moved_work_folder_is_neither_read_nor_written() {
    for (toolset, write, read) in [
        ("standard", ("write", "path"), ("ls", "path")),
        ("workspace", ("write", "path"), ("list", "path")),
        ("ah", ("write", "path"), ("read", "path")),
        ("deepagents", ("write_file", "file_path"), ("ls", "path")),
    ] {
        let temp = tempfile::TempDir::new().unwrap();
        let (work, moved) = (temp.path().join("work"), temp.path().join("moved"));
        std::fs::create_dir(&work).unwrap();
        let runtime = session(toolset, &work);
        let slash = if toolset == "deepagents" { "/" } else { "" };
        let file = |(tool, name): (&'static str, &str), path: &str| {
            let mut arguments = json!({ name: format!("{slash}{path}") });
            if tool.starts_with("write") {
                arguments["content"] = "x".into();
            }
            let runtime = runtime.clone();
            async move { reply_text(&runtime, tool, arguments).await }
        };
        file(write, "before").await;
        assert!(work.join("before").exists(), "{toolset}");
        std::fs::rename(&work, &moved).unwrap();
        for replaced in [false, true] {
            if replaced {
                std::fs::create_dir(&work).unwrap();
            }
            for text in [file(write, "after").await, file(read, "before").await] {
                assert!(
                    text.contains("was moved, replaced or removed while haft was running"),
                    "{toolset}: {text}"
                );
                assert!(text.contains("restart haft"), "{toolset}: {text}");
            }
        }
        assert!(!moved.join("after").exists() && !work.join("after").exists());
        // After moving it back, it is the same folder again.
        std::fs::remove_dir(&work).unwrap();
        std::fs::rename(&moved, &work).unwrap();
        file(write, "after").await;
        assert!(work.join("after").exists(), "{toolset}");
    }
}
