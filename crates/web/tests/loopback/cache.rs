//! The page cache.

use crate::bed::{Bed, Book, failure, fetch, read};
use crate::http_server::{Server, Step, answer, redirect};
use haft::Verdict;
use serde_json::json;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

fn marked(body: &str, headers: &[(&str, &str)]) -> Step {
    let mut all = vec![("content-type", "text/plain")];
    all.extend_from_slice(headers);
    answer("200 OK", &all, body)
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder")
}

#[expect(clippy::disallowed_methods, reason = "a test looks at the disk itself")]
fn files(folder: &Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

#[tokio::test]
async fn an_unchanged_page_is_not_sent_again() {
    let server = Server::new([
        marked(
            "one",
            &[
                ("etag", "\"v1\""),
                ("last-modified", "Sun, 01 Nov 2026 10:00:00 GMT"),
            ],
        ),
        answer("304 Not Modified", &[("etag", "\"v1\"")], ""),
        marked("two", &[("etag", "\"v2\"")]),
    ])
    .await;
    let folder = folder();
    let cache = folder.path().join("a/web");
    let bed = || {
        Bed::allowing(&["127.0.0.1"])
            .cached(cache.clone())
            .session()
    };
    for (text, from) in [("one", "server"), ("one", "unchanged"), ("two", "server")] {
        // A new session each time, so that only the disk remembers.
        let reply = fetch(&bed(), &server.base()).await;
        assert_eq!(read(&reply), text);
        assert_eq!(reply.details()["from"], from);
    }
    let seen = server.seen();
    assert_eq!(seen[0].header("if-none-match"), None);
    assert_eq!(seen[1].header("if-none-match"), Some("\"v1\""));
    assert_eq!(
        seen[1].header("if-modified-since"),
        Some("Sun, 01 Nov 2026 10:00:00 GMT")
    );
    let files = files(&cache);
    assert_eq!(files.len(), 1);
    #[expect(clippy::disallowed_methods, reason = "a test looks at the disk itself")]
    let mode = |path: &Path| {
        std::fs::metadata(path)
            .expect("a file")
            .permissions()
            .mode()
            & 0o777
    };
    assert_eq!((mode(&files[0]), mode(&cache)), (0o600, 0o700));
}

#[tokio::test]
async fn cache_control_is_respected() {
    let fresh = [("cache-control", "public, max-age=600")];
    let server = Server::new([marked("one", &fresh)]).await;
    let folder = folder();
    let runtime = Bed::allowing(&["127.0.0.1"])
        .cached(folder.path().join("c"))
        .session();
    assert_eq!(
        fetch(&runtime, &server.base()).await.details()["from"],
        "server"
    );
    let reply = fetch(&runtime, &format!("{}/#x", server.base())).await;
    assert_eq!(
        (read(&reply).as_str(), reply.details()["from"].as_str()),
        ("one", Some("disk"))
    );
    assert_eq!(server.seen().len(), 1);
    // A page with `no-store` is not on the disk.
    let secret = [("cache-control", "no-store, max-age=600")];
    let server = Server::new([marked("hunter2", &secret), marked("again", &secret)]).await;
    read(&fetch(&runtime, &server.base()).await);
    assert_eq!(read(&fetch(&runtime, &server.base()).await), "again");
    assert_eq!(files(&folder.path().join("c")).len(), 1);
    // Errors and truncated pages are not cached.
    let server = Server::new([answer("404 Not Found", &fresh, "gone"), Step::Endless]).await;
    failure(&fetch(&runtime, &server.base()).await);
    read(&fetch(&runtime, &server.base()).await);
    assert_eq!(files(&folder.path().join("c")).len(), 1);
}

#[tokio::test]
async fn continuing_at_an_offset_reads_the_same_page() {
    let long = |word: &str| format!("{word} ").repeat(2000);
    let server = Server::new([marked(&long("one"), &[]), marked(&long("two"), &[])]).await;
    let folder = folder();
    let runtime = Bed::allowing(&["127.0.0.1"])
        .cached(folder.path().join("c"))
        .session();
    let ask = |offset: usize| {
        let arguments = json!({ "url": server.base(), "max_bytes": 1024, "offset": offset });
        let runtime = runtime.clone();
        async move { read(&runtime.call("web_fetch", arguments).await) }
    };
    assert!(ask(0).await.starts_with("one"));
    assert!(ask(1024).await.contains("one"));
    assert_eq!(server.seen().len(), 1);
    assert!(ask(0).await.starts_with("two"));
}

/// The cache is not a way around the rules about hosts.
#[tokio::test]
async fn a_cached_page_is_checked_like_its_server() {
    let two = Server::new([marked("inside", &[("cache-control", "max-age=600")])]).await;
    let to = format!("http://two.example:{}/", two.port);
    let one = Server::new([
        redirect("302 Found", &to),
        redirect("302 Found", &to),
        redirect("302 Found", &to),
    ])
    .await;
    let url = format!("http://one.example:{}/", one.port);
    let folder = folder();
    let book = || {
        Book::default()
            .with("one.example", &[&["127.0.0.1"]])
            .with("two.example", &[&["127.0.0.1"]])
    };
    let bed = |hosts: &[&str]| {
        Bed::allowing(hosts)
            .dns(book().dns())
            .cached(folder.path().join("c"))
    };
    let both = ["one.example", "two.example"];
    assert!(read(&fetch(&bed(&both).session(), &url).await).ends_with("inside"));
    let reply = fetch(&bed(&both).session(), &url).await;
    assert_eq!(reply.details()["from"], "disk");
    // The same without the second host, without both, and with a rule against it.
    let (text, _) = failure(&fetch(&bed(&["one.example"]).session(), &url).await);
    assert!(
        text.contains("not allowed to connect to two.example"),
        "{text}"
    );
    let ruled = bed(&both)
        .rules(&[(Verdict::Deny, Some("two.example"))])
        .session();
    let (_, outcome) = failure(&fetch(&ruled, &url).await);
    assert_eq!(outcome, "redirected");
    let local = Server::new([marked("x", &[("cache-control", "max-age=600")])]).await;
    let allowed = Bed::allowing(&["127.0.0.1"])
        .cached(folder.path().join("c"))
        .session();
    read(&fetch(&allowed, &local.base()).await);
    let none = Bed::default().cached(folder.path().join("c")).session();
    let (_, outcome) = failure(&fetch(&none, &local.base()).await);
    assert_eq!(outcome, "not_allowed");
}

#[tokio::test]
async fn the_cache_stays_small_and_survives_damage() {
    let body = "x".repeat(4 << 20);
    let server =
        Server::new((0..22).map(|_| marked(&body, &[("cache-control", "max-age=600")]))).await;
    let folder = folder();
    let cache = folder.path().join("c");
    let runtime = Bed::allowing(&["127.0.0.1"])
        .cached(cache.clone())
        .session();
    for n in 0..20 {
        read(&fetch(&runtime, &format!("{}/{n}", server.base())).await);
    }
    #[expect(clippy::disallowed_methods, reason = "a test looks at the disk itself")]
    let bytes: u64 = files(&cache)
        .iter()
        .map(|path| std::fs::metadata(path).expect("a file").len())
        .sum();
    assert!(bytes <= 65 << 20, "{bytes}");
    // The last page is cached; after damage it is fetched again.
    let last = format!("{}/19", server.base());
    assert_eq!(fetch(&runtime, &last).await.details()["from"], "disk");
    for path in files(&cache) {
        #[expect(clippy::disallowed_methods, reason = "a test damages its own files")]
        std::fs::write(path, "{\"url\":").expect("a file");
    }
    assert_eq!(fetch(&runtime, &last).await.details()["from"], "server");
    // If nothing can be stored, pages are still fetched.
    let nowhere = Bed::allowing(&["127.0.0.1"]).cached("/proc/nowhere/web".into());
    assert_eq!(
        fetch(&nowhere.session(), &last).await.details()["from"],
        "server"
    );
}
