use super::Markdown;
use crate::styled_text::{Line, Styling};
use proptest::prelude::*;

fn shown(lines: &[Line]) -> Vec<String> {
    lines.iter().map(Line::text).collect()
}

fn all(text: &str, columns: usize) -> Vec<String> {
    let mut markdown = Markdown::new(columns, Styling::Plain);
    let mut lines = markdown.push(text);
    lines.extend(markdown.finish());
    shown(&lines)
}

const EVERYTHING: &str = "\
# A *heading* with `code`
A paragraph that is long enough to be wrapped, **bold**, _soft_ and ~~gone~~,
with a [link](https://example.org/a) and <https://example.org>.
Second\x20\x20
line after a hard break.

- one
- two with
  a second line

  and a paragraph
  ```rust
  fn nested() {}

  let x = 1;
  ```
  - deep
    - deeper
- [ ] open
- [x] done

1. first
1. second

3. third

```diff
+ came

- went
```
> quoted text that goes on for long enough to be wrapped at some point
> > twice

| name | count |
|:-----|------:|
| a `b` | 1 |
| 日本 | 200 |

Setext
------

    indented code

---
[ref]: https://example.org
1986. It was a year
12. and the next
<details>hidden</details>

last `line";

#[test]
fn renders_all_elements() {
    assert_eq!(
        all(EVERYTHING, 40),
        [
            "# A heading with code",
            "A paragraph that is long enough to be",
            "wrapped, bold, soft and gone, with a",
            "link (https://example.org/a) and",
            "https://example.org. Second",
            "line after a hard break.",
            "",
            "• one",
            "• two with a second line",
            "",
            "  and a paragraph",
            "",
            "  ```rust",
            "  fn nested() {}",
            "  ",
            "  let x = 1;",
            "  ```",
            "  • deep",
            "    • deeper",
            "• [ ] open",
            "• [x] done",
            "",
            "1. first",
            "2. second",
            "",
            "3. third",
            "",
            "```diff",
            "+ came",
            "",
            "- went",
            "```",
            "│ quoted text that goes on for long",
            "│ enough to be wrapped at some point",
            "│ ",
            "│ │ twice",
            "",
            "name │ count",
            "─────┼──────",
            "a b  │     1",
            "日本 │   200",
            "",
            "## Setext",
            "",
            "indented code",
            "",
            "────────────────────────────────────────",
            "[ref]: https://example.org",
            "1986. It was a year",
            "1987. and the next",
            "<details>hidden</details>",
            "",
            "last `line",
        ]
    );
}

#[test]
fn code_is_unchanged() {
    let long = "x".repeat(200);
    let lines = all(&format!("```\n  {long}\n\n\tlast\n```\n"), 40);
    assert_eq!(lines[1], format!("  {long}"));
    assert_eq!(lines[2..4], ["", "\tlast"]);
    // A block without an end is closed.
    assert_eq!(all("```rust\nfn", 40), ["```rust", "fn", "```"]);
    // A shorter fence inside a longer one is code.
    assert_eq!(
        all("````md\n```\nx\n```\n````\nafter", 40),
        ["````md", "```", "x", "```", "````", "after"]
    );
}

#[test]
fn unfinished_text_is_shown_once() {
    let mut markdown = Markdown::new(40, Styling::Plain);
    assert!(markdown.push("one\ntwo").is_empty());
    assert_eq!(shown(&markdown.pending()), ["one two"]);
    assert_eq!(shown(&markdown.push("\n\nthree")), ["one two"]);
    assert_eq!(shown(&markdown.pending()), ["", "three"]);
    assert_eq!(
        shown(&markdown.push("\n```\ncode\nmo")),
        ["", "three", "```", "code"]
    );
    assert_eq!(shown(&markdown.pending()), ["mo"]);
    assert_eq!(shown(&markdown.finish()), ["mo", "```"]);
}

#[test]
fn a_wide_table_is_shrunk_and_a_wider_one_becomes_a_list() {
    let table = "| one | two |\n|---|---|\n| a long cell with words | b |\n";
    assert_eq!(
        all(table, 20),
        [
            "one            │ two",
            "───────────────┼────",
            "a long cell    │ b",
            "with words     │",
        ]
    );
    let many = format!(
        "{}\n{}\n{}\n",
        "| heading ".repeat(6),
        "|---".repeat(6),
        "| content ".repeat(6)
    );
    assert_eq!(all(&many, 30)[0], "heading: content");
}

#[test]
fn escapes_control_characters() {
    let mut markdown = Markdown::new(40, Styling::Plain);
    let mut lines =
        markdown.push("a \x1b[2J `\x1b]0;x\x07` [l](http://x\x1b[1m)\n\n```\x1b\n\x1b[2J\n");
    lines.extend(markdown.finish());
    for line in lines {
        assert!(!line.render(Styling::Plain).contains(['\x1b', '\x07']));
    }
}

/// Pieces that are significant to a block parser.
const PIECES: &[&str] = &[
    "\n", "\n", "\n\n", "- ", "1. ", "2) ", "# ", "> ", "---", "===", "  ", "word ", "日本 ", "**",
    "_", "`", "[x](u)", "<b>", "\r\n", "\\",
];
const CODE: &[&str] = &["```", "~~~", "    "];
/// CommonMark drops cells without a column.
const TABLES: &[&str] = &["| a | b |\n|---|---|\n", "| c |"];

fn texts(kinds: &[&[&'static str]]) -> impl Strategy<Value = String> + use<> {
    let pieces = prop::sample::select(kinds.concat());
    prop::collection::vec(pieces, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn the_result_does_not_depend_on_how_the_text_is_split(
        text in prop_oneof![texts(&[PIECES, CODE, TABLES]), Just(EVERYTHING.to_owned())],
        cuts in prop::collection::vec(1usize..12, 1..20),
    ) {
        let whole = all(&text, 40);
        let letters: Vec<char> = text.chars().collect();
        let mut markdown = Markdown::new(40, Styling::Plain);
        let mut lines = Vec::new();
        let mut rest = letters.as_slice();
        for size in cuts.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (piece, left) = rest.split_at((*size).min(rest.len()));
            lines.extend(markdown.push(&piece.iter().collect::<String>()));
            // Previewing has no side effects.
            let _ = markdown.pending();
            rest = left;
        }
        lines.extend(markdown.finish());
        prop_assert_eq!(shown(&lines), whole);
    }

    #[test]
    fn no_word_is_lost(text in texts(&[PIECES, CODE])) {
        // Only words contain these letters. A word without a space before it may be broken.
        let letters = |text: &str| text.matches(['w', 'o', 'r', 'd', '日', '本']).count();
        prop_assert_eq!(letters(&all(&text, 30).join("\n")), letters(&text), "{}", text);
    }

    #[test]
    fn no_row_but_code_is_too_wide(text in texts(&[PIECES, TABLES]), columns in 12usize..60) {
        prop_assume!(!text.contains("    ") && !text.contains("```"));
        let mut markdown = Markdown::new(columns, Styling::Plain);
        let mut lines = markdown.push(&text);
        lines.extend(markdown.finish());
        for line in lines.iter().flat_map(|line| line.rows(columns)) {
            let deep = line.text().chars().filter(|c| matches!(c, '│' | '•' | '.')).count();
            prop_assert!(deep > 2 || line.width() <= columns, "{:?}", line.text());
        }
    }
}
