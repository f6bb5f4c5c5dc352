//! Decodes bytes to text.

use crate::html::{Attribute, Tag, Tree};
use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252};
use haft_ops::text::decode::lf;

/// Number of bytes at the start of a page that are searched for its declared encoding.
const SNIFF_BYTES: usize = 4 << 10;

/// Decodes a body by its byte order mark, otherwise by the server's header, otherwise by the
/// page's own declaration. Without any of these it guesses, preferring UTF-8.
pub(super) fn decode(bytes: &[u8], content_type: &str) -> String {
    let (encoding, skip) = match Encoding::for_bom(bytes) {
        Some((encoding, length)) => (encoding, length),
        None => (
            declared_in_header(content_type)
                .or_else(|| declared_in_page(bytes))
                .unwrap_or_else(|| guess(bytes)),
            0,
        ),
    };
    let body = bytes.get(skip..).unwrap_or_default();
    let (text, _) = encoding.decode_without_bom_handling(body);
    lf(&text).into_owned()
}

/// Whether the server declares UTF-16, so that zero bytes do not mean binary data.
pub(super) fn declares_utf16(content_type: &str) -> bool {
    declared_in_header(content_type)
        .is_some_and(|encoding| encoding == UTF_16LE || encoding == UTF_16BE)
}

/// Returns the encoding declared in a `content-type`.
fn declared_in_header(content_type: &str) -> Option<&'static Encoding> {
    content_type
        .split(';')
        .skip(1)
        .filter_map(|parameter| parameter.split_once('='))
        .find(|(name, _)| name.trim().eq_ignore_ascii_case("charset"))
        .and_then(|(_, label)| {
            Encoding::for_label(label.trim().trim_matches(['"', '\'']).as_bytes())
        })
}

/// Returns the encoding declared at the beginning of a page: `<meta charset=…>` or `<?xml
/// encoding=…?>`.
fn declared_in_page(bytes: &[u8]) -> Option<&'static Encoding> {
    let start = bytes.get(..SNIFF_BYTES).unwrap_or(bytes);
    let start = String::from_utf8_lossy(start);
    let is_marked_up = start.trim_start().starts_with('<');
    if !is_marked_up {
        return None;
    }
    let declared_in_xml = start
        .split_once("?>")
        .filter(|(front, _)| front.trim_start().starts_with("<?xml"))
        .and_then(|(front, _)| encoding_after(front, "encoding"));
    let encoding = declared_in_xml.or_else(|| declared_in_meta(&Tree::parse(&start)))?;
    // The declaration was readable as ASCII, so the page cannot be UTF-16.
    if encoding == UTF_16LE || encoding == UTF_16BE {
        return Some(UTF_8);
    }
    Some(encoding)
}

/// Returns the encoding of the first `<meta>` that declares one. Scripts also have a `charset`
/// attribute, and the text of a page may look like a declaration.
fn declared_in_meta(tree: &Tree) -> Option<&'static Encoding> {
    tree.elements(Tag::Meta).find_map(|node| {
        if let Some(label) = tree.attribute(node, Attribute::Charset) {
            return Encoding::for_label(label.as_bytes());
        }
        let kind = tree.attribute(node, Attribute::HttpEquiv)?.trim();
        let is_type = kind.eq_ignore_ascii_case("content-type");
        encoding_after(
            tree.attribute(node, Attribute::Content)
                .filter(|_| is_type)?,
            "charset",
        )
    })
}

/// Returns the encoding named after a key and an equals sign.
fn encoding_after(text: &str, key: &str) -> Option<&'static Encoding> {
    let text = text.to_ascii_lowercase();
    let (_, rest) = text.split_once(key)?;
    let label = rest.trim_start().strip_prefix('=')?.trim_start();
    let label = label.trim_start_matches(['"', '\'']);
    let end = label.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | ':')));
    Encoding::for_label(label.get(..end.unwrap_or(label.len()))?.as_bytes())
}

/// Guesses UTF-8 unless it is invalid more often than it is used: a page may contain a bad byte,
/// but text in another encoding rarely contains valid UTF-8 sequences.
fn guess(bytes: &[u8]) -> &'static Encoding {
    let (mut good, mut bad) = (0usize, 0usize);
    let mut chunks = bytes.utf8_chunks().peekable();
    while let Some(chunk) = chunks.next() {
        good += chunk.valid().chars().filter(|c| !c.is_ascii()).count();
        let invalid = chunk.invalid();
        // A truncated body may end inside a character.
        let is_incomplete =
            std::str::from_utf8(invalid).is_err_and(|error| error.error_len().is_none());
        let is_truncated = chunks.peek().is_none() && is_incomplete;
        bad += usize::from(!invalid.is_empty() && !is_truncated);
    }
    if good >= bad { UTF_8 } else { WINDOWS_1252 }
}

#[cfg(test)]
mod tests {
    use super::decode;

    #[test]
    fn encoding_is_taken_from_the_most_reliable_source() {
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
