//! How much, how long, and how it is packed.

use crate::bed::{Bed, failure, fetch, page, reaching, read};
use crate::http_server::{Server, Step, answer};
use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
use haft_web::client::{Client, HttpError, Settings};
use haft_web::fetch::{Ask, Fetcher, Trouble};
use haft_web::guard::Entries;
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

/// A frame that repeats one byte: as small as they get.
fn zstd(byte: u8, blocks: usize) -> Vec<u8> {
    // Magic number; a header without a size of the content, with a window of 128 KiB.
    let mut bytes = vec![0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x38];
    for at in 0..blocks {
        let is_last = u32::from(at + 1 == blocks);
        // A block of the kind that is one byte, 128 KiB times.
        let header = is_last | (1 << 1) | ((128 << 10) << 3);
        bytes.extend_from_slice(&header.to_le_bytes()[..3]);
        bytes.push(byte);
    }
    bytes
}

/// The same for brotli, in the shortest of its forms: nothing but what is not packed.
fn brotli(text: &[u8]) -> Vec<u8> {
    assert!((1..=1 << 16).contains(&text.len()));
    let length = u32::try_from(text.len() - 1).expect("a length");
    // A window of 16 bits (one bit 0); not the last block (0); four nibbles of length
    // (00); the length itself in 16 bits; not packed (1).
    let bits: u64 = (u64::from(length) << 4) | (1 << 20);
    let mut bytes = bits.to_le_bytes()[..3].to_vec();
    bytes.extend_from_slice(text);
    // The last block, which is empty.
    bytes.push(0b11);
    bytes
}

/// What a compressor makes of 64 MiB of the digit 0.
const BROTLI_BOMB: [u8; 106] = [
    203, 255, 255, 63, 248, 37, 96, 226, 177, 64, 32, 247, 254, 143, 255, 255, 127, 240, 75, 0,
    196, 97, 17, 128, 238, 253, 31, 255, 255, 255, 224, 151, 0, 136, 195, 2, 0, 221, 251, 63, 254,
    255, 255, 193, 47, 1, 16, 135, 5, 0, 186, 247, 127, 252, 255, 255, 131, 95, 2, 32, 14, 11, 0,
    116, 239, 255, 248, 255, 255, 7, 191, 4, 64, 28, 22, 0, 232, 222, 255, 241, 255, 255, 15, 126,
    9, 128, 56, 44, 0, 208, 189, 255, 203, 255, 255, 63, 252, 18, 0, 113, 88, 0, 160, 123, 255, 7,
];

/// What it makes of the text below.
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
async fn answers_are_unpacked() {
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
async fn what_cannot_be_unpacked_says_why() {
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
        (
            "compress",
            b"x".to_vec(),
            "packed in a way that is not known: compress",
        ),
        ("gzip,gzip,gzip,gzip", b"x".to_vec(), "it is packed 4 times"),
    ] {
        let server = Server::new([packed(encoding, bytes)]).await;
        let (text, outcome) = failure(&fetch(&reaching(&server), &server.base()).await);
        assert!(text.contains(words), "{encoding}: {text}");
        assert_eq!(outcome, "no_answer");
    }
}

/// A few kilobytes that hold gigabytes.
#[tokio::test]
async fn bombs_are_cut_at_the_limit() {
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
async fn bodies_without_end_are_cut() {
    let server = Server::new([Step::Endless]).await;
    let reply = fetch(&reaching(&server), &server.base()).await;
    let text = read(&reply);
    assert!(text.starts_with("xxxx") && text.len() < 60_000);
    assert!(text.contains("[The page is too large"));
    assert_eq!(reply.details()["outcome"], "too_large");
}

#[tokio::test]
async fn lengths_that_lie() {
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

/// Time is over for whoever does not answer, stops in the middle, or never comes to an
/// end of it.
#[tokio::test]
async fn slow_answers_are_not_waited_for() {
    for step in [Step::Hang, Step::Stall, Step::Drip] {
        let server = Server::new([step]).await;
        let client = Client::new(Settings {
            allow: Entries::parse(["127.0.0.1"]).expect("entries"),
            ..Settings::default()
        });
        let fetcher = Fetcher::new(client.expect("a client"), None);
        let begun = Instant::now();
        let ask = Ask {
            time: Duration::from_millis(700),
            reads_on: false,
            may_reach: &|_| true,
        };
        let url = server.base().parse().expect("an address");
        let trouble = fetcher.fetch(&url, ask).await.expect_err("too slow");
        assert!(
            matches!(trouble, Trouble::NoAnswer(HttpError::TimedOut { .. })),
            "{trouble}"
        );
        let took = begun.elapsed();
        assert!(took < Duration::from_secs(4), "{took:?}");
    }
}

/// The session's own limit is the shorter one, and the reply is the tool's.
#[tokio::test]
async fn the_session_s_limit_holds() {
    let server = Server::new([Step::Hang]).await;
    let client = Client::new(Settings {
        allow: Entries::parse(["127.0.0.1"]).expect("entries"),
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
async fn a_page_of_20_000_nested_tags_is_a_page() {
    let body = "<div>".repeat(20_000) + "<p>deep</p>";
    let server = Server::new([page("text/html", body)]).await;
    let runtime = Bed::allowing(&["127.0.0.1"]).session();
    assert_eq!(read(&fetch(&runtime, &server.base()).await), "deep");
}

/// A film is not fetched to find out that it is one.
#[tokio::test]
async fn what_is_not_for_reading_is_not_read_to_its_end() {
    let head = b"HTTP/1.1 200 OK\r\ncontent-type: video/mp4\r\ncontent-length: 4000000000\r\n\r\n\0\0\0\x18ftypmp42".to_vec();
    let server = Server::new([Step::Answer(head)]).await;
    let (text, outcome) = failure(&fetch(&reaching(&server), &server.base()).await);
    assert!(text.contains("is a video, video/mp4 (3.7GB)"), "{text}");
    assert_eq!(outcome, "not_text");
}

#[tokio::test]
async fn a_page_that_is_all_tags_is_cut_too() {
    let body = "<b>".repeat(1_200_000) + "end";
    let server = Server::new([page("text/html", body + &"x".repeat(300))]).await;
    let reply = fetch(&reaching(&server), &server.base()).await;
    assert_eq!(reply.details()["outcome"], "too_large");
}
