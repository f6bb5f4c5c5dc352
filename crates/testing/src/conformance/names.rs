//! Names that a careless backend would misinterpret.

use super::Files;
use haft_ops::backend::{Expect, Kind};
use haft_ops::{Access, Error, FilePath};
use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

fn path(files: &Files<'_>, bytes: &[u8]) -> FilePath {
    let path = Path::new(OsStr::from_bytes(bytes));
    files
        .scope
        .resolve_as(&path.to_string_lossy(), path, Access::Write)
        .unwrap()
}

/// Each name is used for a file in the root and one in a folder, with the name as its content.
pub(super) async fn any_name_is_preserved(files: &Files<'_>) {
    let long = "n".repeat(255);
    let mut names: Vec<&[u8]> = vec![
        b"new\nline",
        b"tab\tand\rreturn",
        b" ",
        b" leading and trailing ",
        b"'; DROP TABLE files; --",
        b"\"quoted\"",
        b"back\\slash",
        b"*?[a]{b,c}",
        b"-rf",
        b"~",
        b"...",
        b"\x01\x7f",
        "\u{e9}".as_bytes(),
        "\u{202e}txt.exe".as_bytes(),
        "\u{1f980}".as_bytes(),
        long.as_bytes(),
    ];
    // Other systems' disks normalise or reject such names, which a backend cannot change.
    if cfg!(target_os = "linux") {
        names.extend([
            &b"caf\xe9"[..],
            b"\xff\xfe",
            b"case",
            b"CASE",
            "e\u{301}".as_bytes(),
        ]);
    }
    names.sort_unstable();
    for name in &names {
        for folder in [&b""[..], b"folder/"] {
            let path = path(files, &[folder, name].concat());
            let written = files
                .backend
                .write(&path, name.to_vec(), Expect::Absent)
                .await;
            assert!(
                written.is_ok_and(|written| written.created),
                "{path:?} must be a distinct name"
            );
        }
    }
    for folder in [".", "folder"] {
        let entries = files.backend.list(&files.path(folder)).await.unwrap();
        let listed: Vec<_> = entries
            .iter()
            .filter(|entry| entry.stat.kind == Kind::File)
            .map(|entry| entry.name.as_bytes())
            .collect();
        assert_eq!(
            listed, names,
            "names must be listed unchanged, in byte order"
        );
    }
    for name in &names {
        let path = path(files, &[b"folder/", *name].concat());
        let mut bytes = Vec::new();
        let mut content = files.backend.read(&path).await.unwrap();
        content.reader.read_to_end(&mut bytes).unwrap();
        assert_eq!(bytes, *name);
        files.backend.remove(&path).await.unwrap();
        assert!(matches!(
            files.backend.stat(&path).await,
            Err(Error::NotFound { .. })
        ));
    }
}

/// `!`, `-` and `.` sort before the slash and `0` after it, so the files in a folder do not sort
/// next to the folder's name.
pub(super) async fn names_around_the_slash_stay_apart(files: &Files<'_>) {
    for name in ["a!", "a-/z", "a.b", "a/0", "a/x/y", "a0", "aa", "a!b/c"] {
        files.put(name, name).await;
    }
    assert_eq!(
        files.names(".").await,
        ["a", "a!", "a!b", "a-", "a.b", "a0", "aa"]
    );
    assert_eq!(files.names("a").await, ["0", "x"]);
    assert_eq!(files.names("a-").await, ["z"]);
    assert_eq!(files.names("a!b").await, ["c"]);
    assert!(matches!(
        files.get("a").await,
        Err(Error::IsDirectory { .. })
    ));
    assert_eq!(files.get("a!").await.unwrap(), b"a!");
    assert_eq!(files.get("a/x/y").await.unwrap(), b"a/x/y");
}

pub(super) async fn wildcards_are_literal(files: &Files<'_>) {
    for name in ["%/own", "_/own", "*/own", "?/own", "z/other", "zz/other"] {
        files.put(name, name).await;
    }
    for folder in ["%", "_", "*", "?"] {
        assert_eq!(files.names(folder).await, ["own"], "{folder}");
    }
    for name in ["%/other", "_/other", "*/other", "?/other", "z%", "_z"] {
        assert!(
            matches!(files.get(name).await, Err(Error::NotFound { .. })),
            "{name}"
        );
    }
}

pub(super) async fn siblings_with_a_common_prefix_stay_apart(files: &Files<'_>) {
    for name in ["a/x", "ab/y", "abc", "b/a/x"] {
        files.put(name, name).await;
    }
    assert_eq!(files.names("a").await, ["x"]);
    assert_eq!(files.names("ab").await, ["y"]);
    assert_eq!(files.names("b").await, ["a"]);
    for folder in ["ab/a", "c", "a/y/z"] {
        let listed = files.backend.list(&files.path(folder)).await;
        assert!(matches!(listed, Err(Error::NotFound { .. })), "{folder}");
    }
}

pub(super) async fn files_have_no_children(files: &Files<'_>) {
    files.put("d/f", "x").await;
    for below in ["d/f/x", "d/f/x/y"] {
        let unlink = files.scope.resolve(below, Access::Unlink).unwrap();
        let path = files.path(below);
        let results = [
            files.backend.read(&path).await.map(drop),
            files.backend.stat(&path).await.map(drop),
            files.backend.list(&path).await.map(drop),
            files.backend.remove(&unlink).await,
        ];
        for result in results {
            assert!(
                matches!(result, Err(Error::NotADirectory { .. })),
                "{below}: {result:?}"
            );
        }
    }
}
