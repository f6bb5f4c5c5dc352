//! Bytes as text, by whatever says how they are encoded.

use crate::html::{Name, Tag, Tree};
use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252};
use haft_ops::text::decode::lf;

/// How much of the beginning of a page is searched for what it says of itself.
const LOOKED_AT: usize = 4 << 10;

/// Decodes a body: by its byte order mark, what the server says, what the page says,
/// or, where nobody says anything, as UTF-8 if it is that.
pub(super) fn decode(bytes: &[u8], content_type: &str) -> String {
    let (encoding, skip) = match Encoding::for_bom(bytes) {
        Some((encoding, length)) => (encoding, length),
        None => (
            named(content_type)
                .or_else(|| in_page(bytes))
                .unwrap_or_else(|| guess(bytes)),
            0,
        ),
    };
    let body = bytes.get(skip..).unwrap_or_default();
    let (text, _) = encoding.decode_without_bom_handling(body);
    lf(&text).into_owned()
}

/// Whether a server says that each character has two bytes or more, so that there are
/// zeros in what is text all the same.
pub(super) fn is_said_wide(content_type: &str) -> bool {
    named(content_type).is_some_and(|encoding| encoding == UTF_16LE || encoding == UTF_16BE)
}

/// The encoding that a `content-type` names.
fn named(content_type: &str) -> Option<&'static Encoding> {
    content_type
        .split(';')
        .skip(1)
        .filter_map(|parameter| parameter.split_once('='))
        .find(|(name, _)| name.trim().eq_ignore_ascii_case("charset"))
        .and_then(|(_, label)| {
            Encoding::for_label(label.trim().trim_matches(['"', '\'']).as_bytes())
        })
}

/// The encoding that the beginning of a page names: `<meta charset=…>`, `<?xml
/// encoding=…?>`.
fn in_page(bytes: &[u8]) -> Option<&'static Encoding> {
    let start = bytes.get(..LOOKED_AT).unwrap_or(bytes);
    let start = String::from_utf8_lossy(start);
    let is_marked_up = start.trim_start().starts_with('<');
    if !is_marked_up {
        return None;
    }
    let of_xml = start
        .split_once("?>")
        .filter(|(front, _)| front.trim_start().starts_with("<?xml"))
        .and_then(|(front, _)| after(front, "encoding"));
    let encoding = of_xml.or_else(|| of_meta(&Tree::parse(&start)))?;
    // It was read byte by byte, so it is not what it says.
    if encoding == UTF_16LE || encoding == UTF_16BE {
        return Some(UTF_8);
    }
    Some(encoding)
}

/// What the first `<meta>` says that says anything of it. Scripts have an attribute of
/// that name too, and words of a page may look like one.
fn of_meta(tree: &Tree) -> Option<&'static Encoding> {
    tree.elements(Tag::Meta).find_map(|node| {
        if let Some(label) = tree.attribute(node, Name::Charset) {
            return Encoding::for_label(label.as_bytes());
        }
        let kind = tree.attribute(node, Name::HttpEquiv)?.trim();
        let is_type = kind.eq_ignore_ascii_case("content-type");
        after(
            tree.attribute(node, Name::Content).filter(|_| is_type)?,
            "charset",
        )
    })
}

/// The encoding that is named behind a key and a sign of equality.
fn after(text: &str, key: &str) -> Option<&'static Encoding> {
    let text = text.to_ascii_lowercase();
    let (_, rest) = text.split_once(key)?;
    let label = rest.trim_start().strip_prefix('=')?.trim_start();
    let label = label.trim_start_matches(['"', '\'']);
    let end = label.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | ':')));
    Encoding::for_label(label.get(..end.unwrap_or(label.len()))?.as_bytes())
}

/// UTF-8, unless there is more that it cannot be than what it must be: a page may have a
/// bad byte, and in another encoding hardly two letters look like one of UTF-8.
fn guess(bytes: &[u8]) -> &'static Encoding {
    let (mut good, mut bad) = (0usize, 0usize);
    let mut chunks = bytes.utf8_chunks().peekable();
    while let Some(chunk) = chunks.next() {
        good += chunk.valid().chars().filter(|c| !c.is_ascii()).count();
        let invalid = chunk.invalid();
        // A body that was cut may end within a character.
        let is_begun = std::str::from_utf8(invalid).is_err_and(|error| error.error_len().is_none());
        let is_cut = chunks.peek().is_none() && is_begun;
        bad += usize::from(!invalid.is_empty() && !is_cut);
    }
    if good >= bad { UTF_8 } else { WINDOWS_1252 }
}

#[cfg(test)]
mod tests {
    use super::decode;

    #[test]
    fn whoever_knows_best_is_believed() {
        for (bytes, content_type, text) in [
            (&b"gr\xc3\xbcn"[..], "text/plain", "grün"),
            (b"gr\xfcn", "text/plain", "grün"),
            (b"gr\xfcn", "text/plain; charset=ISO-8859-1", "grün"),
            (b"gr\xc3\xbcn", "text/html; Charset=\"utf-8\"", "grün"),
            (
                b"\xef\xbb\xbfgr\xc3\xbcn",
                "text/plain; charset=latin1",
                "grün",
            ),
            (b"\xff\xfeg\0r\0\xfc\0n\0", "text/plain", "grün"),
            (
                b"<meta charset=shift_jis>\x93\xfa",
                "text/html",
                "<meta charset=shift_jis>日",
            ),
            (
                b"<?xml version='1.0' encoding='koi8-r'?>\xc4\xc1",
                "text/xml",
                "<?xml version='1.0' encoding='koi8-r'?>да",
            ),
            (
                b"<meta charset=utf-16>\xc3\xbc",
                "text/html",
                "<meta charset=utf-16>ü",
            ),
            (b"a\r\nb", "text/plain; charset=nonsense", "a\nb"),
            (b"cut \xc3", "text/plain", "cut \u{fffd}"),
            (b"gr\xc3\xbcn \xc3\xa4\xff", "text/plain", "grün ä\u{fffd}"),
            (b"gr\xfcn \xe4 \xc3\xbc", "text/plain", "grün ä Ã¼"),
            (b"g\0r\0\xfc\0n\0", "text/plain; charset=utf-16le", "grün"),
            (
                b"<title>charset=koi8-r</title><script charset=koi8-r></script><!-- <meta charset=koi8-r> -->\xc3\xbc",
                "text/html",
                "<title>charset=koi8-r</title><script charset=koi8-r></script><!-- <meta charset=koi8-r> -->ü",
            ),
            (
                b"<meta name=d content='charset=koi8-r'><META http-equiv=Content-Type content='text/html; charset=ISO-8859-1'>\xc3\xbc",
                "text/html",
                "<meta name=d content='charset=koi8-r'><META http-equiv=Content-Type content='text/html; charset=ISO-8859-1'>Ã¼",
            ),
        ] {
            assert_eq!(decode(bytes, content_type), text, "{content_type}");
        }
    }
}
