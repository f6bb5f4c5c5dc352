//! Limits of size and time, and compressed responses.

use crate::bed::{Bed, failure, fetch, page, reaching, read};
use crate::http_server::{Server, Step, answer};
use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
use haft_web::client::{Client, HttpError, Settings};
use haft_web::fetch::{FetchError, FetchOptions, Fetcher};
use haft_web::guard::HostPatterns;
use std::io::Write as _;
use std::time::{Duration, Instant};

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).expect("gzip");
    encoder.finish().expect("gzip")
}

fn zlib(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).expect("zlib");
    encoder.finish().expect("zlib")
}

fn deflate(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).expect("deflate");
    encoder.finish().expect("deflate")
}

/// A zstd frame that repeats one byte, as small as possible.
fn zstd(byte: u8, blocks: usize) -> Vec<u8> {
    // Magic number, then a header without a content size and with a window of 128 KiB.
    let mut bytes = vec![0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x38];
    for at in 0..blocks {
        let is_last = u32::from(at + 1 == blocks);
        // An RLE block: one byte, repeated 128 KiB times.
        let header = is_last | (1 << 1) | ((128 << 10) << 3);
        bytes.extend_from_slice(&header.to_le_bytes()[..3]);
        bytes.push(byte);
    }
    bytes
}

/// A brotli stream that contains only uncompressed data.
fn brotli(text: &[u8]) -> Vec<u8> {
    assert!((1..=1 << 16).contains(&text.len()));
    let length = u32::try_from(text.len() - 1).expect("a length");
    // A 16-bit window (one bit 0), not the last block (0), four nibbles of length (00), the
    // length in 16 bits, uncompressed (1).
    let bits: u64 = (u64::from(length) << 4) | (1 << 20);
    let mut bytes = bits.to_le_bytes()[..3].to_vec();
    bytes.extend_from_slice(text);
    // The last block, which is empty.
    bytes.push(0b11);
    bytes
}

/// 64 MiB of the digit 0, compressed.
const BROTLI_BOMB: [u8; 106] = [
    203, 255, 255, 63, 248, 37, 96, 226, 177, 64, 32, 247, 254, 143, 255, 255, 127, 240, 75, 0,
    196, 97, 17, 128, 238, 253, 31, 255, 255, 255, 224, 151, 0, 136, 195, 2, 0, 221, 251, 63, 254,
    255, 255, 193, 47, 1, 16, 135, 5, 0, 186, 247, 127, 252, 255, 255, 131, 95, 2, 32, 14, 11, 0,
    116, 239, 255, 248, 255, 255, 7, 191, 4, 64, 28, 22, 0, 232, 222, 255, 241, 255, 255, 15, 126,
    9, 128, 56, 44, 0, 208, 189, 255, 203, 255, 255, 63, 252, 18, 0, 113, 88, 0, 160, 123, 255, 7,
];

/// The text below, compressed.
const BROTLI_TEXT: [u8; 44] = [
    27, 1, 8, 248, 29, 7, 185, 153, 229, 62, 78, 111, 37, 97, 161, 158, 75, 115, 163, 91, 97, 111,
    13, 66, 198, 146, 54, 7, 145, 202, 176, 84, 0, 7, 152, 66, 234, 130, 55, 22, 3, 232, 201, 3,
];

fn packed(encoding: &str, bytes: impl AsRef<[u8]>) -> Step {
    answer(
        "200 OK",
        &[
            ("content-type", "text/plain"),
            ("content-encoding", encoding),
        ],
        bytes,
    )
}

#[tokio::test]
async fn responses_are_decompressed() {
    let text = "so it is said, and said, and said again. ".repeat(50);
    let plain = text.trim_end();
    for (encoding, bytes) in [
        ("gzip", gzip(text.as_bytes())),
        ("x-gzip", gzip(text.as_bytes())),
        ("GZIP", gzip(text.as_bytes())),
        ("deflate", zlib(text.as_bytes())),
        ("deflate", deflate(text.as_bytes())),
        ("br", brotli(text.as_bytes())),
        ("br", BROTLI_TEXT.to_vec()),
        ("gzip, gzip", gzip(&gzip(text.as_bytes()))),
        ("br, gzip", gzip(&brotli(text.as_bytes()))),
        ("identity", text.clone().into_bytes()),
    ] {
        let server = Server::new([packed(encoding, bytes)]).await;
        let reply = fetch(&reaching(&server), &server.base()).await;
        assert_eq!(read(&reply), plain, "{encoding}");
    }
    let server = Server::new([packed("zstd", zstd(b'x', 1))]).await;
    let reply = fetch(&reaching(&server), &server.base()).await;
    assert!(read(&reply).starts_with(&"x".repeat(51_200)));
}

#[tokio::test]
async fn decompression_errors_say_why() {
    let mut broken = gzip(&b"some text that is long enough to be packed".repeat(20));
    broken.truncate(broken.len() - 12);
    let mut wide = zstd(b'x', 1);
    // A window of 2 GiB.
    wide[5] = 0xa8;
    for (encoding, bytes, words) in [
        ("gzip", b"no gzip".to_vec(), "its gzip data are damaged"),
        ("gzip", broken, "its gzip data are damaged"),
        (
            "br",
            b"\xff\xff\xff\xff".to_vec(),
            "its br data are damaged",
        ),
        ("zstd", b"no zstd".to_vec(), "its zstd data are damaged"),
        ("zstd", wide, "its zstd data are damaged"),
        ("compress", b"x".to_vec(), "unknown encoding compress"),
        (
            "gzip,gzip,gzip,gzip",
            b"x".to_vec(),
            "4 encodings on top of each other",
        ),
    ] {
        let server = Server::new([packed(encoding, bytes)]).await;
        let (text, outcome) = failure(&fetch(&reaching(&server), &server.base()).await);
        assert!(text.contains(words), "{encoding}: {text}");
        assert_eq!(outcome, "no_answer");
    }
}

/// A few kilobytes that expand to gigabytes.
#[tokio::test]
async fn decompression_bombs_are_truncated_at_the_limit() {
    let zeros = vec![b'0'; 64 << 20];
    let bomb = gzip(&zeros);
    let bombs = [
        ("gzip", bomb.clone()),
        ("gzip, gzip", gzip(&bomb)),
        ("deflate", zlib(&zeros)),
        ("br", BROTLI_BOMB.to_vec()),
        ("zstd", zstd(b'0', 16 << 10)),
    ];
    for (encoding, bytes) in bombs {
        assert!(bytes.len() < 100_000, "{}", bytes.len());
        let server = Server::new([packed(encoding, bytes)]).await;
        let begun = Instant::now();
        let reply = fetch(&reaching(&server), &server.base()).await;
        assert!(begun.elapsed() < Duration::from_secs(20), "{encoding}");
        let text = read(&reply);
        assert!(
            text.len() < 60_000 && text.contains("too large"),
            "{encoding}"
        );
        assert_eq!(reply.details()["fetched_bytes"], 5 << 20);
        assert_eq!(reply.details()["outcome"], "too_large");
    }
}

#[tokio::test]
async fn endless_bodies_are_truncated() {
    let server = Server::new([Step::Endless]).await;
    let reply = fetch(&reaching(&server), &server.base()).await;
    let text = read(&reply);
    assert!(text.starts_with("xxxx") && text.len() < 60_000);
    assert!(text.contains("[The page is too large"));
    assert_eq!(reply.details()["outcome"], "too_large");
}

#[tokio::test]
async fn wrong_content_lengths() {
    let long =
        b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 100\r\n\r\nshort".to_vec();
    let server = Server::new([Step::Last(long)]).await;
    let (text, outcome) = failure(&fetch(&reaching(&server), &server.base()).await);
    assert!(text.contains("broke"), "{text}");
    assert_eq!(outcome, "no_answer");
    let short =
        b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 3\r\n\r\nlonger".to_vec();
    let server = Server::new([Step::Last(short)]).await;
    assert_eq!(
        read(&fetch(&reaching(&server), &server.base()).await),
        "lon"
    );
}

/// The time limit applies to a server that does not respond, stops in the middle, or never
/// finishes.
#[tokio::test]
async fn slow_responses_time_out() {
    for step in [Step::Hang, Step::Stall, Step::Drip] {
        let server = Server::new([step]).await;
        let client = Client::new(Settings {
            allow: HostPatterns::parse(["127.0.0.1"]).expect("entries"),
            ..Settings::default()
        });
        let fetcher = Fetcher::new(client.expect("a client"), None);
        let begun = Instant::now();
        let options = FetchOptions {
            time: Duration::from_millis(700),
            continues: false,
            may_redirect_to: &|_| true,
        };
        let url = server.base().parse().expect("an address");
        let error = fetcher.fetch(&url, options).await.expect_err("too slow");
        assert!(
            matches!(error, FetchError::NoAnswer(HttpError::TimedOut { .. })),
            "{error}"
        );
        let took = begun.elapsed();
        assert!(took < Duration::from_secs(4), "{took:?}");
    }
}

/// The session's limit is shorter, and the reply still comes from the tool.
#[tokio::test]
async fn the_session_time_limit_applies() {
    let server = Server::new([Step::Hang]).await;
    let client = Client::new(Settings {
        allow: HostPatterns::parse(["127.0.0.1"]).expect("entries"),
        ..Settings::default()
    })
    .expect("a client");
    let mut builder = haft::Runtime::builder()
        .dir(env!("CARGO_TARGET_TMPDIR"))
        .preset("web")
        .timeout(Duration::from_millis(400));
    let searcher = haft_web::Searcher::new(client.clone(), Vec::new());
    for tool in haft_web::tools(Fetcher::new(client, None), searcher) {
        builder = builder.own_tool(tool, haft::Listed::ByPreset);
    }
    let runtime = builder.build().expect("a session");
    let (text, outcome) = failure(&fetch(&runtime, &server.base()).await);
    assert!(text.starts_with("timed out after 0.4 s"), "{text}");
    assert_eq!(outcome, "timed_out");
}

#[tokio::test]
async fn a_page_of_20_000_nested_tags_is_rendered() {
    let body = "<div>".repeat(20_000) + "<p>deep</p>";
    let server = Server::new([page("text/html", body)]).await;
    let runtime = Bed::allowing(&["127.0.0.1"]).session();
    assert_eq!(read(&fetch(&runtime, &server.base()).await), "deep");
}

/// A video is recognised without downloading all of it.
#[tokio::test]
async fn binary_files_are_not_downloaded_completely() {
    let head = b"HTTP/1.1 200 OK\r\ncontent-type: video/mp4\r\ncontent-length: 4000000000\r\n\r\n\0\0\0\x18ftypmp42".to_vec();
    let server = Server::new([Step::Answer(head)]).await;
    let (text, outcome) = failure(&fetch(&reaching(&server), &server.base()).await);
    assert!(text.contains("is a video, video/mp4 (3.7GB)"), "{text}");
    assert_eq!(outcome, "not_text");
}

#[tokio::test]
async fn a_page_of_only_tags_is_truncated() {
    let body = "<b>".repeat(1_200_000) + "end";
    let server = Server::new([page("text/html", body + &"x".repeat(300))]).await;
    let reply = fetch(&reaching(&server), &server.base()).await;
    assert_eq!(reply.details()["outcome"], "too_large");
}
