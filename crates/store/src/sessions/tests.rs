//! What can only be arranged from inside.

use super::*;

fn said(length: usize) -> Batch {
    let message = NewMessage {
        role: "user".to_owned(),
        body: "x".repeat(length),
        usage: None,
    };
    Batch {
        messages: vec![message],
        ..Batch::default()
    }
}

fn new() -> New {
    New {
        id: None,
        kind: Kind::Agent,
        work_dir: "/work".into(),
        toolset: String::new(),
        provider: String::new(),
        model: String::new(),
        title: None,
        parent: None,
        system: None,
    }
}

/// SQLite's own word for a full disk.
#[test]
fn a_full_disk_is_told_and_nothing_is_half() {
    let binary = std::env::current_exe().unwrap();
    let folder = tempfile::TempDir::new_in(binary.parent().unwrap()).unwrap();
    let sessions = Sessions::open(folder.path().join("sessions.db")).unwrap();
    let bound = |pages: i64| {
        let set = format!("PRAGMA max_page_count = {pages}");
        let set = move |connection: &Connection| Ok(connection.query_row(&set, [], |_| Ok(()))?);
        sessions.inner.desk.wait(Haste::Light, set).unwrap();
    };
    let session = sessions.begin(new()).unwrap();
    session.commit_blocking(said(10)).unwrap();
    bound(40);
    let text = session
        .commit_blocking(said(1 << 20))
        .unwrap_err()
        .to_string();
    assert!(
        text.starts_with("the session database ")
            && text.ends_with(
                "cannot grow: no space left; nothing was changed; free some space and try again"
            ),
        "{text}"
    );
    assert_eq!(sessions.look(session.id()).unwrap().messages.len(), 1);
    // One that fits is recorded, whoever asks at the same time.
    let (answer, answered) = std::sync::mpsc::channel();
    let held = sessions.begin(new()).unwrap();
    std::thread::scope(|scope| {
        for length in [1 << 20, 10, 1 << 20, 20] {
            let (session, answer) = (held.clone(), answer.clone());
            scope.spawn(move || answer.send((length, session.commit_blocking(said(length)))));
        }
    });
    drop(answer);
    for (length, result) in answered {
        assert_eq!(result.is_ok(), length < 100, "{length}: {result:?}");
    }
    bound(10_000);
    session.commit_blocking(said(1 << 20)).unwrap();
    assert_eq!(sessions.look(session.id()).unwrap().messages.len(), 2);
    assert_eq!(sessions.look(held.id()).unwrap().messages.len(), 2);
}

#[test]
fn a_title_is_a_line() {
    let body = |text: &str| serde_json::json!({ "content": [{ "text": text }] }).to_string();
    assert_eq!(title_of(&body(" a\n b\tc ")).as_deref(), Some("a b c"));
    let long = title_of(&body(&"é ".repeat(500))).unwrap();
    assert_eq!(
        (long.chars().count(), long.ends_with('…')),
        (TITLE + 1, true)
    );
    for none in ["", "{}", "[]", &body("  ")] {
        assert_eq!(title_of(none), None);
    }
}

#[test]
fn a_moment_is_kept_whatever_the_clock_says() {
    let epoch = SystemTime::UNIX_EPOCH;
    for wanted in [
        epoch,
        epoch + Duration::from_millis(1_794_717_367_005),
        epoch - Duration::from_millis(1),
        epoch - Duration::from_secs(3_000_000_000),
        epoch + Duration::from_secs(1 << 45),
    ] {
        assert_eq!(time(millis(wanted)), wanted);
    }
    // The ends of what a number can hold are moments as well, and no panic.
    for number in [i64::MIN, i64::MAX] {
        let _ = time(number);
    }
}
