//! Names that are not printed as they are, and folders that are not where they were.

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

async fn said(runtime: &Runtime, tool: &str, arguments: Value) -> String {
    runtime.call(tool, arguments).await.text()
}

#[tokio::test]
async fn what_a_listing_prints_can_be_read() {
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
        let listed = said(&standard, "ls", json!({ "path": folder })).await;
        for line in listed.lines().filter(|line| !line.contains("ir/")) {
            let name = line.split("  ").next().unwrap();
            let path = format!("{prefix}{name}");
            let text = said(&standard, "read", json!({ "path": path })).await;
            assert!(text.contains("content"), "{path}: {text}");
            seen += 1;
        }
    }
    assert_eq!(seen, 2 * ODD.len());
    let found = said(&standard, "find", json!({ "type": "file" })).await;
    for path in found.lines() {
        let edit = json!({ "path": path, "old_text": "content", "new_text": "content" });
        let text = said(&standard, "read", json!({ "path": path })).await;
        assert!(text.contains("content"), "{path}: {text}");
        let text = said(&standard, "edit", edit).await;
        assert!(!text.contains("not found"), "{path}: {text}");
    }
    let wrote = json!({ "path": r"new\nline", "content": "changed" });
    said(&standard, "write", wrote).await;
    let name = temp.path().join("new\nline");
    assert_eq!(std::fs::read_to_string(&name).unwrap(), "changed");
    // A file that has the printed name as its own is meant by it; and a new file may
    // have one.
    std::fs::write(temp.path().join(r"new\nline"), "literal").unwrap();
    let text = said(&standard, "read", json!({ "path": r"new\nline" })).await;
    assert!(text.contains("literal"), "{text}");
    said(
        &standard,
        "write",
        json!({ "path": r"un\nknown", "content": "x" }),
    )
    .await;
    assert!(temp.path().join(r"un\nknown").exists());

    // A new file in a folder that has such a name, and the folder itself.
    for path in [r"d\u{7}ir/new", r"d\u{7}ir/more/deep", r"./d\u{7}ir/o\nld"] {
        let text = said(&standard, "write", json!({ "path": path, "content": "x" })).await;
        assert!(text.contains("Successfully"), "{text}");
    }
    for name in ["d\x07ir/new", "d\x07ir/more/deep", "d\x07ir/o\\nld"] {
        assert!(temp.path().join(name).exists(), "{name}");
    }
    assert!(!temp.path().join(r"d\u{7}ir").exists());
    let text = said(&standard, "read", json!({ "path": r"d\u{7}ir/" })).await;
    assert!(text.contains("directory"), "{text}");
    let text = said(&standard, "ls", json!({ "path": r"d\u{7}ir/" })).await;
    assert!(text.contains("new"), "{text}");

    let workspace = session("workspace", temp.path());
    let listed = said(&workspace, "list", json!({ "path": "." })).await;
    let listed: Value = serde_json::from_str(&listed).unwrap();
    for entry in listed["files"].as_array().unwrap() {
        if entry["type"] == "file" {
            let text = said(&workspace, "read", json!({ "path": entry["path"] })).await;
            assert!(text.contains(r#""success":true"#), "{entry}: {text}");
        }
    }
    let deep = session("deepagents", temp.path());
    let listed = said(&deep, "ls", json!({ "path": "/" })).await;
    let listed: Value = serde_json::from_str(&listed).unwrap();
    for entry in listed["entries"].as_array().unwrap() {
        if entry["is_dir"] == false {
            let text = said(&deep, "read_file", json!({ "file_path": entry["path"] })).await;
            assert!(text.contains(r#""status":"success""#), "{entry}: {text}");
        }
    }
}

#[tokio::test]
async fn a_work_folder_that_was_moved_is_not_written_behind_its_name() {
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
            async move { said(&runtime, tool, arguments).await }
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
        // Moved back, it is the same folder again.
        std::fs::remove_dir(&work).unwrap();
        std::fs::rename(&moved, &work).unwrap();
        file(write, "after").await;
        assert!(work.join("after").exists(), "{toolset}");
    }
}
