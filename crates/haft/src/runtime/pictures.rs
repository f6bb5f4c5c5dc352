//! Checks the images of a reply before it is recorded or sent: a provider rejects every
//! later request of a conversation that contains a damaged image.

use crate::{Content, Reply};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use haft_ops::picture::{self, Picture};
use haft_ops::text::size::size;
use haft_ops::text::sniff::{image_type, kind_name};
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Maximum time for decoding all images of a reply.
const MAX_TIME: Duration = Duration::from_secs(30);

const TOO_LATE: &str = "the call was cancelled, or decoding took too long";

/// Decodes all images that an external tool returned. An image that cannot be decoded is
/// replaced by a text with the reason, a large one is scaled, and the media type is set
/// from the bytes. A reply without any content left is an error.
pub(super) async fn check(reply: &mut Reply, cancel: &CancellationToken) {
    let is_picture = |block: &&Content| matches!(block, Content::Image { .. });
    let total = reply.content.iter().filter(is_picture).count();
    if total == 0 {
        return;
    }
    let end = Instant::now() + MAX_TIME;
    let mut number = 0;
    let mut is_something_left = false;
    for block in std::mem::take(&mut reply.content) {
        let Content::Image { data, media_type } = block else {
            is_something_left |= block.as_text().is_none_or(|text| !text.trim().is_empty());
            reply.content.push(block);
            continue;
        };
        number += 1;
        let which = match total {
            1 => "the image".to_owned(),
            _ => format!("image {number} of {total}"),
        };
        let decoded = match cancel.is_cancelled() || Instant::now() >= end {
            true => Err(TOO_LATE.to_owned()),
            false => tokio::select! {
                decoded = tokio::task::spawn_blocking(move || decode(data, &media_type)) => {
                    decoded.unwrap_or_else(|_| Err("decoding it failed".to_owned()))
                }
                () = cancel.cancelled() => Err(TOO_LATE.to_owned()),
                () = tokio::time::sleep_until(end) => Err(TOO_LATE.to_owned()),
            },
        };
        let (note, picture) = match decoded {
            Ok((picture, None)) => (None, Some(picture)),
            Ok((picture, Some(scaled))) => (Some(format!("[{which} was {scaled}]")), Some(picture)),
            Err(why) => (Some(format!("[{which} was left out: {why}]")), None),
        };
        is_something_left |= picture.is_some();
        let note = note.map(|text| Content::Text { text });
        reply.content.extend(note.into_iter().chain(picture));
    }
    reply.is_error |= !is_something_left;
}

/// Returns an image that can be sent and how it was changed, or why it cannot be sent.
fn decode(data: String, media_type: &str) -> Result<(Content, Option<String>), String> {
    // Base64 is often wrapped at 76 characters.
    let data = match data.contains(|c: char| c.is_ascii_whitespace()) {
        true => data.split_ascii_whitespace().collect(),
        false => data,
    };
    let Ok(bytes) = STANDARD.decode(&data) else {
        return Err("its data is not Base64".to_owned());
    };
    let length = bytes.len();
    let Some(media_type) = image_type(&bytes) else {
        let media_type: String = media_type.escape_default().take(60).collect();
        let kind = kind_name(&bytes).unwrap_or("not a picture haft can read");
        return Err(format!(
            "it came as \"{media_type}\" with {} and is {kind}; models can see PNG, JPEG, GIF and WebP",
            size(length as u64)
        ));
    };
    let broken = |_| {
        let length = size(length as u64);
        format!("this {media_type} of {length} is damaged or too large to decode")
    };
    let Picture {
        bytes,
        media_type: sent,
        size: (width, height),
        original,
    } = picture::prepare(bytes, media_type, "").map_err(broken)?;
    let (before, after) = (original, (width, height));
    let changed = (before != after)
        .then(|| format!("scaled from {}×{} to {width}×{height}", before.0, before.1));
    let data = match bytes.len() == length && sent == media_type {
        true => data,
        false => STANDARD.encode(&bytes),
    };
    let media_type = sent.to_owned();
    Ok((Content::Image { data, media_type }, changed))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A PNG with one gray pixel.
    const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR42mNoAAAAggCB2kUIOwAAAABJRU5ErkJggg==";

    fn image(data: &str, media_type: &str) -> Content {
        Content::Image {
            data: data.to_owned(),
            media_type: media_type.to_owned(),
        }
    }

    async fn checked(blocks: &[Content]) -> Vec<Content> {
        let mut reply = blocks.iter().cloned().fold(Reply::default(), Reply::and);
        check(&mut reply, &CancellationToken::new()).await;
        reply.into_content()
    }

    #[tokio::test]
    async fn a_valid_image_is_unchanged_and_gets_its_real_type() {
        let good = image(PNG, "image/png");
        for media_type in ["image/png", "image/jpeg", "text/html\r\nX: y", ""] {
            assert_eq!(
                checked(&[image(PNG, media_type)]).await,
                std::slice::from_ref(&good)
            );
        }
        let (first, second) = PNG.split_at(40);
        let lines = format!("{first}\r\n{second}\n");
        assert_eq!(checked(&[image(&lines, "image/png")]).await, [good]);
    }

    #[tokio::test]
    async fn an_image_that_cannot_be_decoded_is_replaced_by_text() {
        let text = |text: &str| Content::Text { text: text.into() };
        let bytes = STANDARD.decode(PNG).unwrap();
        let mut flipped = bytes.clone();
        flipped[45] ^= 0xff;
        let cut = STANDARD.encode(&bytes[..bytes.len() - 20]);
        let flipped = STANDARD.encode(flipped);
        let svg = STANDARD.encode("<svg xmlns='http://www.w3.org/2000/svg'/>");
        for (data, why) in [
            ("!!!", "not Base64"),
            ("", "not a picture"),
            ("QQ==", "not a picture"),
            (&*cut, "damaged"),
            (&flipped, "damaged"),
            (&svg, "models can see PNG, JPEG, GIF and WebP"),
            (&STANDARD.encode(b"%PDF-1.7 hello"), "PDF"),
        ] {
            let all = [
                text("a"),
                image(PNG, "image/png"),
                image(data, "image/png"),
                text("b"),
            ];
            let found = checked(&all).await;
            let [first, good, Content::Text { text: note }, last] = &*found else {
                panic!("{data}: {found:?}");
            };
            assert_eq!([first, good, last], [&all[0], &all[1], &all[3]]);
            assert!(
                note.starts_with("[image 2 of 2 was left out: ") && note.contains(why),
                "{data}: {note}"
            );
        }
    }

    #[tokio::test]
    async fn a_reply_without_content_left_is_an_error() {
        let text = |text: &str| Content::Text { text: text.into() };
        let damaged = image("QQ==", "image/png");
        for (blocks, is_error) in [
            (vec![damaged.clone()], true),
            (vec![text("\n"), damaged.clone(), damaged.clone()], true),
            (vec![text("drawn"), damaged.clone()], false),
            (vec![damaged, image(PNG, "image/png")], false),
        ] {
            let mut reply = blocks.iter().cloned().fold(Reply::default(), Reply::and);
            check(&mut reply, &CancellationToken::new()).await;
            assert_eq!(reply.is_error(), is_error, "{reply:?}");
            assert!(reply.text().contains("was left out: "), "{reply:?}");
        }
    }

    #[tokio::test]
    async fn a_claimed_size_allocates_no_memory() {
        // A PNG of 20,000 × 20,000 pixels without data.
        let mut bytes = STANDARD.decode(PNG).unwrap();
        bytes[16..24].copy_from_slice(&[0, 0, 0x4e, 0x20, 0, 0, 0x4e, 0x20]);
        let found = checked(&[image(&STANDARD.encode(bytes), "image/png")]).await;
        assert!(matches!(&*found, [Content::Text { text }] if text.contains("damaged")));
    }

    #[tokio::test]
    async fn nothing_is_decoded_for_a_cancelled_call() {
        let mut reply = Reply::default().and(image(PNG, "image/png"));
        let cancel = CancellationToken::new();
        cancel.cancel();
        check(&mut reply, &cancel).await;
        assert_eq!(
            reply.text(),
            format!("[the image was left out: {TOO_LATE}]")
        );
    }
}
