//! Tests that need access to internals.

use super::*;

fn message(length: usize) -> Batch {
    let new_message = NewMessage {
        role: "user".to_owned(),
        body: "x".repeat(length),
        usage: None,
    };
    Batch {
        messages: vec![new_message],
        ..Batch::default()
    }
}

fn new() -> NewSession {
    NewSession {
        id: None,
        kind: SessionKind::Agent,
        work_dir: "/work".into(),
        toolset: String::new(),
        provider: String::new(),
        model: String::new(),
        title: None,
        parent: None,
        system: None,
    }
}

/// Simulates a full disk with a limit of pages.
#[test]
fn a_full_disk_is_reported_and_no_batch_is_partial() {
    let binary = std::env::current_exe().unwrap();
    let folder = tempfile::TempDir::new_in(binary.parent().unwrap()).unwrap();
    let sessions = Sessions::open(folder.path().join("sessions.db")).unwrap();
    let limit_pages = |pages: i64| {
        let set = format!("PRAGMA max_page_count = {pages}");
        let set = move |connection: &Connection| Ok(connection.query_row(&set, [], |_| Ok(()))?);
        sessions.inner.writer.wait(Urgency::Volatile, set).unwrap();
    };
    let session = sessions.begin(new()).unwrap();
    session.commit_blocking(message(10)).unwrap();
    limit_pages(40);
    let text = session
        .commit_blocking(message(1 << 20))
        .unwrap_err()
        .to_string();
    assert!(
        text.starts_with("the session database ")
            && text.ends_with(
                "cannot grow: no space left; nothing was changed; free some space and try again"
            ),
        "{text}"
    );
    assert_eq!(sessions.load(session.id()).unwrap().messages.len(), 1);
    // A batch that fits is recorded, even if larger ones are submitted at the same time.
    let (answer, answered) = std::sync::mpsc::channel();
    let other = sessions.begin(new()).unwrap();
    std::thread::scope(|scope| {
        for length in [1 << 20, 10, 1 << 20, 20] {
            let (session, answer) = (other.clone(), answer.clone());
            scope.spawn(move || answer.send((length, session.commit_blocking(message(length)))));
        }
    });
    drop(answer);
    for (length, result) in answered {
        assert_eq!(result.is_ok(), length < 100, "{length}: {result:?}");
    }
    limit_pages(10_000);
    session.commit_blocking(message(1 << 20)).unwrap();
    assert_eq!(sessions.load(session.id()).unwrap().messages.len(), 2);
    assert_eq!(sessions.load(other.id()).unwrap().messages.len(), 2);
}

#[test]
fn a_title_is_one_line() {
    let body = |text: &str| serde_json::json!({ "content": [{ "text": text }] }).to_string();
    assert_eq!(title_of(&body(" a\n b\tc ")).as_deref(), Some("a b c"));
    let long = title_of(&body(&"é ".repeat(500))).unwrap();
    assert_eq!(
        (long.chars().count(), long.ends_with('…')),
        (MAX_TITLE + 1, true)
    );
    for none in ["", "{}", "[]", &body("  ")] {
        assert_eq!(title_of(none), None);
    }
}

#[test]
fn a_time_is_preserved_whatever_the_clock_says() {
    let epoch = SystemTime::UNIX_EPOCH;
    for expected in [
        epoch,
        epoch + Duration::from_millis(1_794_717_367_005),
        epoch - Duration::from_millis(1),
        epoch - Duration::from_secs(3_000_000_000),
        epoch + Duration::from_secs(1 << 45),
    ] {
        assert_eq!(time(millis(expected)), expected);
    }
    // The extreme numbers are valid times, and do not panic.
    for number in [i64::MIN, i64::MAX] {
        let _ = time(number);
    }
}
