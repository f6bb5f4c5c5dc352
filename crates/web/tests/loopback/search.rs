//! Searching, with responses shaped like the real ones.

use crate::bed::{Bed, duckduckgo, failure, page, read};
use crate::http_server::{Server, Step, answer, json as json_answer};
use haft::{Reply, Runtime};
use haft_web::Secret;
use haft_web::search::{Engine, EngineKind};
use serde_json::json;

#[expect(clippy::disallowed_methods, reason = "a test reads its own files")]
fn fixture(name: &str) -> String {
    let path = format!("{}/tests/fixtures/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(path).expect(name)
}

fn results() -> Step {
    page("text/html; charset=UTF-8", fixture("duckduckgo.html"))
}

fn captcha(status: &str) -> Step {
    let headers = [("content-type", "text/html")];
    answer(status, &headers, fixture("duckduckgo-captcha.html"))
}

fn session(engines: Vec<Engine>) -> Runtime {
    Bed {
        engines,
        ..Bed::default()
    }
    .session()
}

async fn search(runtime: &Runtime, query: &str) -> Reply {
    runtime.call("web_search", json!({ "query": query })).await
}

fn keyed(kind: EngineKind, server: &Server) -> Engine {
    let key = Some(Secret::new("hunter2"));
    Engine::new(kind, Some(&server.base()), key).expect("an engine")
}

#[tokio::test]
async fn results_are_read_from_the_page() {
    let server = Server::new([results(), results()]).await;
    let runtime = session(vec![duckduckgo(&server.base())]);
    let reply = search(&runtime, "spindle oil & \"more\"").await;
    assert_eq!(
        read(&reply),
        "Search results for: \"spindle oil & \"more\"\"

1. **Which oil for a spindle? & other questions**
   URL: https://www.lathe.example/oil?grade=10&off=5%25
   Use ISO 10 for fast spindles; oil with <additives> only if the maker says so.

2. **Spindle oil, again**
   URL: https://forum.example/t/4711
   Seventeen pages of opinions.

3. **Spindle (tool)**
   URL: https://wiki.example/Spindle_(tool)"
    );
    assert_eq!(reply.details()["engine"], "duckduckgo");
    let seen = &server.seen()[0];
    assert_eq!(
        seen.line,
        "GET /lite/?q=spindle+oil+%26+%22more%22 HTTP/1.1"
    );
    assert!(
        seen.header("user-agent")
            .is_some_and(|name| name.starts_with("haft/"))
    );
    let arguments = json!({ "query": "x", "max_results": 1 });
    let text = read(&runtime.call("web_search", arguments).await);
    assert!(text.contains("1. ") && !text.contains("2. "), "{text}");
}

#[tokio::test]
async fn a_captcha_is_never_an_empty_result() {
    for status in ["200 OK", "202 Accepted", "403 Forbidden"] {
        let server = Server::new([captcha(status)]).await;
        let (text, outcome) =
            failure(&search(&session(vec![duckduckgo(&server.base())]), "x").await);
        let code = status.split_once(' ').expect("a status").0;
        assert!(
            text.starts_with(&format!(
                "web search failed: duckduckgo: blocked: it answered HTTP {code} with a captcha\n"
            )),
            "{text}"
        );
        assert!(text.contains("tools.web.engines"), "{text}");
        assert_eq!(outcome, "blocked");
    }
    // No results only if the page says so, not because nothing was recognised.
    let none = page("text/html", fixture("duckduckgo-none.html"));
    let server = Server::new([none]).await;
    let reply = search(&session(vec![duckduckgo(&server.base())]), "qwzx").await;
    assert_eq!(read(&reply), "No results found.");
    for other in [
        page("text/html", "<p>Maintenance"),
        answer("202 Accepted", &[], ""),
        page("text/html", ""),
    ] {
        let server = Server::new([other]).await;
        let reply = search(&session(vec![duckduckgo(&server.base())]), "x").await;
        let (text, _) = failure(&reply);
        assert!(
            text.contains("unknown format") || text.contains("blocked"),
            "{text}"
        );
    }
}

#[tokio::test]
async fn requests_to_engines_with_a_key() {
    let server = Server::new([json_answer("200 OK", &fixture("brave.json"))]).await;
    let text = read(&search(&session(vec![keyed(EngineKind::Brave, &server)]), "a b").await);
    assert!(text.contains("1. **Spindle oil & grease**\n   URL: https://lathe.example/oil\n   Use ISO 10 for fast spindles.\n\n2. **Wiki**"), "{text}");
    let seen = server.only();
    assert_eq!(seen.line, "GET /res/v1/web/search?q=a+b&count=10 HTTP/1.1");
    assert_eq!(seen.header("x-subscription-token"), Some("hunter2"));

    let server = Server::new([json_answer("200 OK", &fixture("tavily.json"))]).await;
    let text = read(&search(&session(vec![keyed(EngineKind::Tavily, &server)]), "a b").await);
    assert!(
        text.contains("1. **Oil**\n   URL: https://lathe.example/oil\n   Use ISO 10."),
        "{text}"
    );
    let seen = server.only();
    assert_eq!(seen.line, "POST /search HTTP/1.1");
    assert_eq!(seen.header("authorization"), Some("Bearer hunter2"));
    assert_eq!(seen.json(), json!({ "query": "a b", "max_results": 10 }));

    let server = Server::new([json_answer("200 OK", &fixture("searxng.json"))]).await;
    let base = format!("{}/search/", server.base());
    let engine = Engine::new(EngineKind::Searxng, Some(&base), None).expect("an engine");
    let text = read(&search(&session(vec![engine]), "a b").await);
    assert!(text.ends_with("1. **Vec<Oil> and other oils**\n   URL: https://lathe.example/oil\n   Oil for spindles."), "{text}");
    assert_eq!(server.only().line, "GET /search?q=a+b&format=json HTTP/1.1");
}

#[tokio::test]
async fn the_next_engine_is_tried_if_one_fails() {
    let blocked = Server::new([captcha("202 Accepted")]).await;
    let broken = Server::new([answer("500 Oops", &[], "")]).await;
    let refusing = Server::new([json_answer("401 Unauthorized", "{}")]).await;
    let good = Server::new([json_answer("200 OK", &fixture("brave.json"))]).await;
    let runtime = session(vec![
        duckduckgo(&blocked.base()),
        Engine::new(EngineKind::Searxng, Some(&broken.base()), None).expect("an engine"),
        keyed(EngineKind::Tavily, &refusing),
        keyed(EngineKind::Brave, &good),
    ]);
    let reply = search(&runtime, "x").await;
    assert!(read(&reply).contains("Spindle oil"));
    assert_eq!(reply.details()["engine"], "brave");
    assert_eq!(
        reply.details()["failed"],
        json!([
            "duckduckgo: blocked: it answered HTTP 202 with a captcha",
            "searxng: it answered HTTP 500 Internal Server Error",
            "tavily: it rejected the API key (HTTP 401)"
        ])
    );
    // An engine without results is not final either.
    let none = Server::new([page("text/html", fixture("duckduckgo-none.html"))]).await;
    let good = Server::new([json_answer("200 OK", &fixture("tavily.json"))]).await;
    let runtime = session(vec![
        duckduckgo(&none.base()),
        keyed(EngineKind::Tavily, &good),
    ]);
    assert_eq!(search(&runtime, "x").await.details()["engine"], "tavily");
}

#[tokio::test]
async fn replies_contain_no_keys() {
    for (kind, step) in [
        (
            EngineKind::Brave,
            json_answer("422 No", "{\"key\":\"hunter2\"}"),
        ),
        (
            EngineKind::Tavily,
            json_answer("200 OK", "hunter2 is no key"),
        ),
        (EngineKind::Tavily, Step::Cut),
    ] {
        let server = Server::new([step]).await;
        let reply = search(&session(vec![keyed(kind, &server)]), "x").await;
        let (text, _) = failure(&reply);
        let all = format!("{text} {:?}", reply.details());
        assert!(!all.contains("hunter2"), "{all}");
    }
    // A key stays with its host.
    let other = Server::new([]).await;
    let to = format!("{}/search", other.base());
    let server = Server::new([answer("307 Same", &[("location", &to)], "")]).await;
    failure(&search(&session(vec![keyed(EngineKind::Tavily, &server)]), "x").await);
    assert_eq!(other.connections(), 0);
}

#[tokio::test]
async fn a_busy_engine_is_retried_once() {
    let busy = || answer("429 Too Many", &[("retry-after", "0.1")], "");
    let server = Server::new([busy(), results()]).await;
    read(&search(&session(vec![duckduckgo(&server.base())]), "x").await);
    let server = Server::new([busy(), busy()]).await;
    let (text, _) = failure(&search(&session(vec![duckduckgo(&server.base())]), "x").await);
    assert!(
        text.contains("too many requests: it asks to wait 0.1 s"),
        "{text}"
    );
    assert_eq!(server.seen().len(), 2);
}

#[tokio::test]
async fn invalid_queries_and_engines() {
    let runtime = session(Vec::new());
    for (query, words) in [
        ("", "validation error: parameter \"query\" is empty"),
        ("  ", "validation error: parameter \"query\" is empty"),
        ("x", "web search failed: no engine is configured"),
    ] {
        assert!(search(&runtime, query).await.text().starts_with(words));
    }
    let long = search(&runtime, &"x".repeat(3000)).await.text();
    assert!(long.contains("more than 2000 characters"), "{long}");
    for (kind, base, words) in [
        (EngineKind::Brave, None, "brave needs a key"),
        (EngineKind::Searxng, None, "searxng needs a base_url"),
        (
            EngineKind::DuckDuckGo,
            Some("ftp://x"),
            "the base_url of duckduckgo must be",
        ),
        (
            EngineKind::DuckDuckGo,
            Some("http://me:pw@x/"),
            "the base_url of duckduckgo must be",
        ),
    ] {
        let error = Engine::new(kind, base, None).expect_err("no engine");
        assert!(error.starts_with(words), "{error}");
    }
}

/// The policy allowed only the engine's own host.
#[tokio::test]
async fn an_engine_cannot_redirect_to_another_host() {
    let to = Server::new([]).await;
    let other = format!("http://localhost:{}/", to.port);
    let from = Server::new([answer("302 Found", &[("location", other.as_str())], "")]).await;
    let mut bed = Bed::allowing(&["localhost"]);
    bed.engines = vec![duckduckgo(&from.base())];
    let reply = bed
        .session()
        .call("web_search", json!({ "query": "x" }))
        .await;
    let (text, _) = failure(&reply);
    assert!(text.contains("the target is another host"), "{text}");
    assert_eq!(to.connections(), 0);
}

#[tokio::test]
async fn a_very_long_url_of_a_hit_is_truncated() {
    let url = format!("https://example.org/{}", "x".repeat(5000));
    let found = json!({ "results": [{ "title": "t", "url": url, "content": "c" }] });
    let server = Server::new([json_answer("200 OK", &found.to_string())]).await;
    let engine = Engine::new(EngineKind::Searxng, Some(&server.base()), None).expect("an engine");
    let bed = Bed {
        engines: vec![engine],
        ..Bed::default()
    };
    let text = read(
        &bed.session()
            .call("web_search", json!({ "query": "x" }))
            .await,
    );
    assert!(text.len() < 700 && text.contains("x…"), "{text}");
}

#[test]
fn the_description_names_web_fetch_only_where_it_is_offered() {
    let runtime = session(Vec::new());
    let described = || {
        let all = runtime.definitions().into_iter();
        let mut search = all.filter(|tool| tool.name == "web_search");
        search.next().expect("a tool").description
    };
    assert!(described().contains("; use web_fetch to read a page."));
    assert!(runtime.tools().remove("web_fetch"));
    let alone = described();
    assert!(!alone.contains("web_fetch"), "{alone}");
    assert!(alone.ends_with("a snippet of each result."), "{alone}");
}
