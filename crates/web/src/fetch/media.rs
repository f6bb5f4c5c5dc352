//! Detects the kind of a body, from its bytes first and the server's header second.

use super::charset::declares_utf16;
use haft_ops::text::sniff::{Encoding, encoding, is_binary};

/// How to read a body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Media {
    Html,
    Json,
    Text,
    /// Not text; with a description.
    Binary(String),
}

/// Returns a content type without its parameters.
pub(super) fn essence(content_type: &str) -> String {
    let essence = content_type.split(';').next().unwrap_or_default();
    essence.trim().to_ascii_lowercase()
}

/// Whether the server declares a body that is not text.
pub(super) fn declares_binary(content_type: &str) -> bool {
    let essence = essence(content_type);
    match essence.split_once('/') {
        Some(("image", kind)) => kind != "svg+xml",
        Some(("audio" | "video" | "font", _)) => true,
        Some(("application", kind)) => {
            matches!(
                kind,
                "pdf" | "zip" | "gzip" | "octet-stream" | "x-tar" | "wasm" | "zstd"
            )
        }
        _ => false,
    }
}

/// Detects the kind of a body. Servers are often wrong about it, so the bytes take precedence.
pub(super) fn detect(bytes: &[u8], content_type: &str) -> Media {
    let essence = essence(content_type);
    if let Some(kind) = infer::get(bytes)
        && kind.matcher_type() != infer::MatcherType::Text
    {
        return Media::Binary(describe(kind.mime_type()));
    }
    let is_wide = matches!(encoding(bytes), Encoding::Utf16Le | Encoding::Utf16Be)
        || declares_utf16(content_type);
    if !is_wide && is_binary(bytes) {
        return Media::Binary(describe(&essence));
    }
    if essence == "application/json"
        || essence == "text/json"
        || essence.ends_with("+json")
        || essence == "application/manifest+json"
    {
        return Media::Json;
    }
    match essence.as_str() {
        "text/html" | "application/xhtml+xml" => Media::Html,
        // Text stays text if it is declared as such, even if it looks like HTML.
        essence if essence.starts_with("text/") => Media::Text,
        _ if looks_like_html(bytes) => Media::Html,
        _ => Media::Text,
    }
}

fn looks_like_html(bytes: &[u8]) -> bool {
    let start = bytes.get(..512).unwrap_or(bytes);
    let start = String::from_utf8_lossy(start).to_ascii_lowercase();
    let start = start.trim_start_matches('\u{feff}').trim_start();
    start.starts_with("<!doctype html") || start.starts_with("<html")
}

/// Describes a media type.
fn describe(essence: &str) -> String {
    let shown: String = essence
        .chars()
        .filter(|c| c.is_ascii_graphic())
        .take(60)
        .collect();
    let kind = match essence.split_once('/') {
        Some(("application", "pdf")) => return "a PDF document".to_owned(),
        Some(("image", _)) => "an image",
        Some(("audio", _)) => "an audio file",
        Some(("video", _)) => "a video",
        Some(("font", _)) => "a font",
        Some((
            _,
            "zip" | "gzip" | "x-tar" | "x-7z-compressed" | "zstd" | "x-bzip2" | "x-xz" | "vnd.rar"
            | "x-bzip" | "x-gzip",
        )) => "an archive",
        _ => "binary data",
    };
    match shown.is_empty() {
        true => kind.to_owned(),
        false => format!("{kind}, {shown}"),
    }
}

#[cfg(test)]
mod tests {
    use super::{Media, detect};

    #[test]
    fn the_bytes_take_precedence_over_the_content_type() {
        let binary = |what: &str| Media::Binary(what.to_owned());
        for (bytes, content_type, media) in [
            (&b"<p>x"[..], "text/html; charset=utf-8", Media::Html),
            (b"<p>x", "text/plain", Media::Text),
            (b"x\0y\0", "text/plain; charset=UTF-16LE", Media::Text),
            (b"<!DOCTYPE html><p>x", "", Media::Html),
            (b"  <html><p>x", "application/octet-stream", Media::Html),
            (b"{}", "application/json", Media::Json),
            (b"{}", "application/vnd.api+json", Media::Json),
            (b"a,b", "text/csv", Media::Text),
            (b"plain", "application/octet-stream", Media::Text),
            (b"\xff\xfea\0b\0", "text/plain", Media::Text),
            (b"%PDF-1.7 ...", "text/html", binary("a PDF document")),
            (
                b"\x89PNG\r\n\x1a\n\0\0",
                "text/plain",
                binary("an image, image/png"),
            ),
            (
                b"PK\x03\x04....",
                "application/zip",
                binary("an archive, application/zip"),
            ),
            (
                b"\0\x01\x02",
                "application/wasm",
                binary("binary data, application/wasm"),
            ),
            (b"\0\x01\x02", "", binary("binary data")),
        ] {
            assert_eq!(detect(bytes, content_type), media, "{content_type}");
        }
    }
}
