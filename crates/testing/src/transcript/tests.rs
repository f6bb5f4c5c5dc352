//! Tests of the runner with a fake route that starts no process.

use super::*;
use async_trait::async_trait;
use serde_json::Value;
use std::sync::{Arc, Mutex};

/// `note` remembers a text and returns all texts of its session, `put` writes a file, and any
/// other tool fails.
#[derive(Default)]
struct Fake {
    keeps_session: bool,
    /// Configuration of each session that was started.
    started: Arc<Mutex<Vec<Option<String>>>>,
    ends_badly: bool,
}

struct Notes {
    texts: Vec<String>,
    keeps: bool,
    work: std::path::PathBuf,
    ends_badly: bool,
}

#[async_trait]
impl Route for Fake {
    fn keeps_session(&self) -> bool {
        self.keeps_session
    }

    async fn open(&self, folders: &SectionFolders) -> Result<Box<dyn Session>, String> {
        let config = folders
            .config()
            .map(|path| std::fs::read_to_string(path).unwrap());
        self.started.lock().unwrap().push(config);
        Ok(Box::new(Notes {
            texts: Vec::new(),
            keeps: self.keeps_session,
            work: folders.work(),
            ends_badly: self.ends_badly,
        }))
    }
}

#[async_trait]
impl Session for Notes {
    async fn call(&mut self, tool: &str, arguments: &Value) -> Result<ToolReply, String> {
        let text = arguments["text"].as_str().unwrap_or_default();
        match tool {
            "note" => self.texts.push(text.to_owned()),
            "put" => std::fs::write(self.work.join("put.txt"), text).unwrap(),
            "die" => return Err("it died".to_owned()),
            _ => {
                return Ok(ToolReply {
                    text: format!("no {tool}"),
                    is_error: true,
                });
            }
        }
        let reply = self.texts.join("\n");
        if !self.keeps {
            self.texts.clear();
        }
        Ok(ToolReply {
            text: reply,
            is_error: false,
        })
    }

    async fn close(self: Box<Self>) -> Result<(), String> {
        if self.ends_badly {
            return Err("it ended badly".to_owned());
        }
        Ok(())
    }
}

async fn run_by(page: &str, route: &Fake) -> Report {
    let below = tempfile::tempdir().unwrap();
    run(page, below.path(), route).await
}

/// Pages are written with `'''` in these tests.
async fn problems(page: &str) -> Vec<String> {
    let report = run_by(&page.replace("'''", "```"), &Fake::default()).await;
    report.problems
}

#[tokio::test]
async fn a_wrong_reply_is_reported_with_its_line() {
    let page = "# Page\n\n'''call note\n{\"text\": \"hello $DIR\"}\n'''\n\n'''reply\nhello $DIR\n'''\n\n\
        '''call note\n{\"text\": \"hello\"}\n'''\n\n'''reply\ngoodbye\n'''\n";
    assert_eq!(
        problems(page).await,
        ["line 15: note replied:\nhello\n--- instead of:\ngoodbye\n"]
    );
}

#[tokio::test]
async fn a_wrong_error_flag_is_reported() {
    let page = "'''call note\n{\"text\": \"x\"}\n'''\n'''reply error\nx\n'''\n\
        '''call gone\n{}\n'''\n'''reply\nno gone\n'''\n\
        '''call gone\n{}\n'''\n'''reply error\nno gone\n'''\n";
    let problems = problems(page).await;
    let [first, second] = problems.as_slice() else {
        panic!("{problems:?}");
    };
    assert!(first.starts_with("line 4: note replied:\n"), "{first}");
    assert!(
        second.starts_with("line 10: gone replied error:\n"),
        "{second}"
    );
}

#[tokio::test]
async fn an_unknown_block_is_reported() {
    for info in [
        "cal note",
        "call",
        "call note twice",
        "reply eror",
        "file",
        "file a.txt escapd",
        "after a.txt escapd",
        "config backend",
        "bash",
    ] {
        let problems = problems(&format!("one\n\n'''{info}\n{{}}\n'''\n")).await;
        let expected = format!("line 3: unknown block `{info}`");
        assert_eq!(problems, [expected]);
    }
    assert!(problems("'''sh\nls\n'''\n\n'''\nx\n'''\n").await.is_empty());
}

#[tokio::test]
async fn replies_and_calls_come_in_pairs() {
    let page = "'''reply\nx\n'''\n'''call note\n{}\n'''\n## Next\n'''reply\nx\n'''\n";
    assert_eq!(
        problems(page).await,
        [
            "line 1: a reply without a call",
            "line 8: a reply without a call",
            "line 4: a call without a reply",
        ]
    );
    let twice = "'''call note\n{}\n'''\n'''reply\n'''\n'''reply\n'''\n";
    assert_eq!(problems(twice).await, ["line 6: a reply without a call"]);
    let open = "'''call note\n{}\n'''\n'''reply\n'''\n\n'''call note\n{}\n";
    assert_eq!(problems(open).await, ["line 7: the block is not closed"]);
}

#[tokio::test]
async fn a_file_with_other_content_is_reported() {
    let page = "'''file a.txt\none\n'''\n'''after a.txt\none\n'''\n'''after a.txt escaped\none\\n\n'''\n\
        '''call put\n{\"text\": \"x\"}\n'''\n'''reply\n'''\n\
        '''after put.txt\nx\n'''\n'''after gone.txt\nx\n'''\n";
    assert_eq!(
        problems(page).await,
        [
            "line 15: put.txt contains \"x\", not \"x\\n\"",
            "line 18: gone.txt contains \"\", not \"x\\n\"",
        ]
    );
}

#[tokio::test]
async fn a_call_without_a_reply_is_reported() {
    let page = "'''call note\n{\"text\": }\n'''\n'''reply\n'''\n\
        '''call die\n{}\n'''\n'''reply\n'''\n";
    let problems = problems(page).await;
    let [first, second] = problems.as_slice() else {
        panic!("{problems:?}");
    };
    assert!(
        first.starts_with("line 1: note: the arguments are not JSON: "),
        "{first}"
    );
    assert_eq!(second, "line 6: die: it died");
}

#[tokio::test]
async fn a_session_that_ends_badly_is_reported() {
    let route = Fake {
        ends_badly: true,
        ..Fake::default()
    };
    let report = run_by("```call note\n{}\n```\n```reply\n```\n", &route).await;
    assert_eq!(report.problems, ["line 1: it ended badly"]);
}

const REMEMBERED: &str = "\
## Notes

```call note
{\"text\": \"one\"}
```

```reply
one
```

<!-- one session -->

```call note
{\"text\": \"two\"}
```

```reply
one
two
```

```call put
{\"text\": \"three\"}
```

```reply
one
two
```

```after put.txt escaped
three
```

### Others

```call gone
{}
```

```reply error
no gone
```

## Next

```call note
{\"text\": \"four\"}
```

```reply
four
```
";

#[tokio::test]
async fn calls_that_need_an_earlier_session_are_skipped_and_counted() {
    let lasting = Fake {
        keeps_session: true,
        ..Fake::default()
    };
    let report = run_by(REMEMBERED, &lasting).await;
    assert_eq!(report.problems, [""; 0]);
    assert_eq!((report.calls, report.skipped), (5, 0));
    assert_eq!(report.succeeded, ["note", "note", "put", "note"]);
    assert_eq!(report.failed, ["gone"]);
    assert_eq!(lasting.started.lock().unwrap().len(), 2);

    let report = run_by(REMEMBERED, &Fake::default()).await;
    assert_eq!(report.problems, [""; 0]);
    assert_eq!((report.calls, report.skipped), (3, 2));
    assert_eq!(report.succeeded, ["note", "note"]);
    assert_eq!(report.failed, ["gone"]);
}

#[tokio::test]
async fn a_configuration_applies_to_the_end_of_its_section() {
    let call = "```call note\n{\"text\": \"x\"}\n```\n";
    let once = format!("{call}```reply\nx\n```\n");
    let page = format!(
        "## One\n{once}```config\nroot: $DIR\n```\n{once}### More\n{call}```reply\nx\nx\n```\n## Two\n{once}"
    );
    let route = Fake {
        keeps_session: true,
        ..Fake::default()
    };
    let report = run_by(&page, &route).await;
    assert_eq!(report.problems, [""; 0]);
    let started = route.started.lock().unwrap();
    let [None, Some(config), None] = started.as_slice() else {
        panic!("{started:?}");
    };
    assert!(
        config.starts_with("root: /") && config.ends_with("/work\n"),
        "{config}"
    );
}

#[test]
fn placeholders_match_variable_text() {
    use super::matching::matches;
    for (expected, text) in [
        ("a [..] c", "a b c"),
        ("[..].txt", "call-1.txt"),
        ("a\n[...]\nz", "a\nb\nc\nz"),
        ("a\n[...]\nz", "a\nz"),
    ] {
        assert!(matches(expected, text), "{expected:?} {text:?}");
    }
    for (expected, text) in [
        ("a [..] c", "a b d"),
        ("a [..] c", "a\nc"),
        ("a\n[...]\nz", "a\nb"),
        ("a", "a\nb"),
    ] {
        assert!(!matches(expected, text), "{expected:?} {text:?}");
    }
}
