//! Ten thousand sessions open quickly.

use crate::bed::{begin, folder, messages, open};
use haft_store::sessions::{Batch, Filter};
use std::time::{Duration, Instant};

#[tokio::test]
async fn ten_thousand_sessions_open_quickly() {
    let folder = folder();
    let sessions = open(&folder);
    let mut last = String::new();
    for number in 0..10_000_u64 {
        let session = begin(&sessions);
        let events = (1..=10).map(|seq| (seq, format!("{{\"n\":{number},\"seq\":{seq}}}")));
        let batch = Batch {
            events: events.collect(),
            ..messages(&["what is it", "this"])
        };
        session.commit_soon(batch).await.unwrap();
        last = session.id().to_owned();
    }
    drop(sessions);
    let begun = Instant::now();
    let sessions = open(&folder);
    let opened = begun.elapsed();
    let (session, loaded) = sessions.resume(&last).unwrap();
    let taken = begun.elapsed();
    session.commit(messages(&["and that"])).await.unwrap();
    let ready = begun.elapsed();
    assert_eq!((loaded.messages.len(), loaded.last_seq), (2, 10));
    let begun = Instant::now();
    let all = sessions.list(&Filter::default()).unwrap();
    let listed = begun.elapsed();
    assert_eq!(all.len(), 10_000);
    assert_eq!(all[0].id, last);
    println!("open {opened:?}, taken {taken:?}, recorded {ready:?}; list {listed:?}");
    // Much more than the milliseconds it needs, because the machine may be busy.
    assert!(ready < Duration::from_secs(1), "{ready:?}");
    assert!(listed < Duration::from_secs(1), "{listed:?}");
}
