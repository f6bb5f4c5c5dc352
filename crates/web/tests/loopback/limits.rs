//! Size and time limits of the client.

use crate::client::{client, get};
use crate::http_server::{Server, Step, answer};
use haft_web::client::{Body, HttpError};
use std::time::{Duration, Instant};

#[tokio::test]
async fn a_body_is_read_up_to_its_limit() {
    let server = Server::new([
        answer("200 OK", &[], "x".repeat(1000)),
        answer("200 OK", &[], "x".repeat(1001)),
        Step::Endless,
    ])
    .await;
    let client = client(&["127.0.0.1"]);
    for cut in [false, true, true] {
        let response = client.send(get(&server.base())).await.expect("an answer");
        let Body {
            bytes,
            is_truncated: was,
        } = response.body().await.expect("a body");
        assert_eq!((bytes.len(), was), (1000, cut));
    }
}

#[tokio::test]
async fn chunks_have_the_same_limit() {
    let server = Server::new([Step::Endless]).await;
    let client = client(&["127.0.0.1"]);
    let mut response = client.send(get(&server.base())).await.expect("an answer");
    let mut total = 0;
    let error = loop {
        match response.chunk().await {
            Ok(Some(chunk)) => total += chunk.len(),
            Ok(None) => panic!("the body ended"),
            Err(error) => break error,
        }
    };
    assert!(
        matches!(error, HttpError::TooLarge { .. }) && total <= 1000,
        "{error}"
    );
}

#[tokio::test]
async fn a_wrong_content_length_is_an_error() {
    let long = b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nshort".to_vec();
    let chunked = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nshort\r\n".to_vec();
    let short = b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nlonger".to_vec();
    let server = Server::new([Step::Last(long), Step::Last(chunked), Step::Last(short)]).await;
    let client = client(&["127.0.0.1"]);
    for _ in 0..2 {
        let response = client.send(get(&server.base())).await.expect("an answer");
        let error = response.body().await.expect_err("too short");
        assert!(matches!(error, HttpError::Broken { .. }), "{error}");
    }
    let response = client.send(get(&server.base())).await.expect("an answer");
    assert_eq!(response.body().await.expect("a body").bytes, b"lon");
}

#[tokio::test]
async fn the_time_limit_covers_the_response_and_its_body() {
    for step in [Step::Hang, Step::Stall] {
        let server = Server::new([step]).await;
        let client = client(&["127.0.0.1"]);
        let mut request = get(&server.base());
        request.timeout = Duration::from_millis(200);
        let started = Instant::now();
        let error = match client.send(request).await {
            Ok(response) => response.body().await.expect_err("no end"),
            Err(error) => error,
        };
        assert_eq!(error.to_string(), "timed out after 0.2 s");
        assert!(error.may_have_arrived());
        let took = started.elapsed();
        assert!(
            took >= Duration::from_millis(200) && took < Duration::from_secs(3),
            "{took:?}"
        );
    }
}
