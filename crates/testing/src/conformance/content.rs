//! Content, timestamps and concurrent writers.

use super::{Files, futures_join};
use haft_ops::Error;
use haft_ops::backend::{Expect, Kind};
use std::io::Read;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// File system clocks are coarse, and those of other machines differ.
const SLACK: Duration = Duration::from_secs(60);

fn large(seed: usize) -> Vec<u8> {
    let bytes = (0..5 << 20).map(|index: usize| (index * 31 + index / 251 + seed) as u8);
    bytes.collect()
}

pub(super) async fn large_files_are_complete(files: &Files<'_>) {
    let path = files.path("large");
    let write = |bytes: Vec<u8>, expect| files.backend.write(&path, bytes, expect);
    write(large(1), Expect::Absent).await.unwrap();
    assert!(files.get("large").await.unwrap() == large(1));
    let mut almost = large(1);
    *almost.last_mut().unwrap() ^= 1;
    assert!(
        matches!(
            write(Vec::new(), Expect::Exactly(almost.into())).await,
            Err(Error::Contended { .. })
        ),
        "the last byte must be compared too"
    );
    write(large(2), Expect::Exactly(large(1).into()))
        .await
        .unwrap();
    assert!(files.get("large").await.unwrap() == large(2));
    write(b"small".to_vec(), Expect::Anything).await.unwrap();
    assert_eq!(files.get("large").await.unwrap(), b"small");
}

/// A reader sees one version of a file, not the beginning of one and the end of another.
pub(super) async fn an_open_file_keeps_its_content(files: &Files<'_>) {
    for (name, before) in [("small", b"before".to_vec()), ("large", large(3))] {
        let path = files.path(name);
        let write = |bytes: Vec<u8>| files.backend.write(&path, bytes, Expect::Anything);
        write(before.clone()).await.unwrap();
        let mut replaced = files.backend.read(&path).await.unwrap();
        let mut start = vec![0; 3];
        replaced.reader.read_exact(&mut start).unwrap();
        write(large(4)).await.unwrap();
        replaced.reader.read_to_end(&mut start).unwrap();
        assert!(start == before, "{name}: replaced while it was open");
        let mut removed = files.backend.read(&path).await.unwrap();
        files.backend.remove(&files.path(name)).await.unwrap();
        let mut rest = Vec::new();
        removed.reader.read_to_end(&mut rest).unwrap();
        assert!(rest == large(4), "{name}: removed while it was open");
    }
}

pub(super) async fn timestamps_reflect_changes(files: &Files<'_>) {
    let path = files.path("d/f");
    let start = SystemTime::now();
    files.put("d/f", "one").await;
    let first = files.backend.stat(&path).await.unwrap();
    let modified = first.modified.unwrap();
    assert!(
        modified > start - SLACK && modified < SystemTime::now() + SLACK,
        "the modification time must be the time of the write"
    );
    files.get("d/f").await.unwrap();
    let again = files.backend.stat(&path).await.unwrap();
    assert_eq!(again, first, "reading must not change anything");
    files.put("d/f", "three").await;
    let second = files.backend.stat(&path).await.unwrap();
    assert!(second.modified.unwrap() >= modified);
    assert_eq!(second.size, 5);
    let entries = files.backend.list(&files.path("d")).await.unwrap();
    assert_eq!(entries.len(), 1);
    assert_eq!(
        entries[0].stat, second,
        "a listing must report the same as stat"
    );
    let opened = files.backend.read(&path).await.unwrap().stat;
    assert_eq!(opened, second, "an open file must report the same as stat");
}

pub(super) async fn refusals_change_nothing(files: &Files<'_>) {
    files.put("d/f", "x").await;
    let before = files.backend.stat(&files.path("d/f")).await.unwrap();
    for path in ["d", "d/f/x", "d/f/x/y", "."] {
        for expect in [
            Expect::Anything,
            Expect::Absent,
            Expect::Exactly(Arc::from(&b"x"[..])),
        ] {
            let path = files.path(path);
            let refused = files.backend.write(&path, b"y".to_vec(), expect).await;
            assert!(refused.is_err(), "{path:?}");
        }
    }
    let refused = files
        .backend
        .write(&files.path("d/f"), b"y".to_vec(), Expect::Absent)
        .await;
    assert!(matches!(refused, Err(Error::AlreadyExists { .. })));
    assert_eq!(
        files.backend.stat(&files.path("d/f")).await.unwrap(),
        before
    );
    assert_eq!(files.get("d/f").await.unwrap(), b"x");
    assert_eq!(files.names(".").await, ["d"]);
    assert_eq!(
        files.backend.stat(&files.path("d")).await.unwrap().kind,
        Kind::Directory,
        "a file must not replace a folder"
    );
}

pub(super) async fn writers_do_not_disturb_each_other(files: &Files<'_>) {
    let paths: Vec<_> = (0..32)
        .map(|number| files.path(&format!("d{}/f{number}", number % 4)))
        .collect();
    let writes = paths.iter().zip(0_u8..).map(|(path, number)| {
        let bytes = vec![number; 1000 * usize::from(number)];
        files.backend.write(path, bytes, Expect::Absent)
    });
    for written in futures_join(writes).await {
        assert!(written.unwrap().created);
    }
    for (number, path) in (0_u8..).zip(&paths) {
        let bytes = files.get(path.given()).await.unwrap();
        assert!(bytes == vec![number; 1000 * usize::from(number)]);
    }
    assert_eq!(files.names(".").await, ["d0", "d1", "d2", "d3"]);
}
