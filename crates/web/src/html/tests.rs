//! Tests of single elements; whole pages are in `tests/fixtures`.

use super::text;
use proptest::prelude::*;
use std::time::{Duration, Instant};

fn main(html: &str) -> String {
    let text = text(
        html,
        &"https://example.org/a/b".parse().expect("an address"),
    );
    assert_eq!(text.rest, "", "{html}");
    text.main
}

#[test]
fn whitespace_and_line_breaks() {
    for (html, expected) in [
        ("", ""),
        ("a", "a"),
        ("  a \n b\t\t<b> c</b>d", "a b **c**d"),
        ("a<br>b<br/>c", "a\nb\nc"),
        ("<p>a<p>b</p>c", "a\n\nb\n\nc"),
        ("<div>a</div><div>b</div>", "a\nb"),
        ("<p>a</p>\n\n\n<p> </p><p>b</p>", "a\n\nb"),
        ("a&nbsp;b &lt;i&gt; &copy; &#x41; &amp", "a b <i> © A &"),
        ("a<!-- <p>b -->c", "ac"),
        ("a<hr>b", "a\n\n---\n\nb"),
        ("x<sup>2</sup>", "x^2"),
        ("so\u{ad}ft\u{200b}er \u{202e}x\u{e0041}", "softer x"),
        ("a\u{0}b\u{1b}[31mc", "ab[31mc"),
        ("<ruby>a<rt>b\u{1b}\u{202e}\u{e0041}c</rt></ruby>", "a(bc)"),
        ("<del>a</del> <q>b</q> <s> </s>", "~~a~~ \"b\""),
    ] {
        assert_eq!(main(html), expected, "{html:?}");
    }
}

#[test]
fn links_are_absolute_and_not_redundant() {
    for (html, expected) in [
        ("<a href=c>x</a>", "[x](https://example.org/a/c)"),
        (
            "<a href='/c?d=1&amp;e=2'> x </a>y",
            "[x](https://example.org/c?d=1&e=2) y",
        ),
        ("<a href='//other.org'>x</a>", "[x](https://other.org/)"),
        (
            "<base href='https://other.org/z/'><a href=c>x</a>",
            "[x](https://other.org/z/c)",
        ),
        ("<a href='#x'>x</a>", "x"),
        ("<a href='javascript:x()'>x</a>", "x"),
        ("<a name=x>x</a>", "x"),
        ("<a href=c></a>y", "y"),
        (
            "<a href='https://x.org/'>https://x.org</a>",
            "https://x.org/",
        ),
        (
            "<a href='c(d)'>x</a>",
            "[x](https://example.org/a/c%28d%29)",
        ),
        (
            "<a href=c><img alt=y src=z></a>",
            "[[Image: y]](https://example.org/a/c)",
        ),
        (
            "<a href=c><p>x</p><p>y</p></a>",
            "x\n\ny (https://example.org/a/c)",
        ),
        (
            "<a href=c>x<a href=d>y</a>",
            "[x](https://example.org/a/c)[y](https://example.org/a/d)",
        ),
        (
            "<code><a href=c>x</a></code>",
            "[`x`](https://example.org/a/c)",
        ),
        ("<h2>x <a href='#x'>¶</a></h2>", "## x"),
        ("<h2>x <a href='#x'> Perma<b>link </b></a></h2>", "## x"),
        ("<img alt=''><img src=x><img alt=' a\n b '>", "[Image: a b]"),
    ] {
        assert_eq!(main(html), expected, "{html:?}");
    }
}

#[test]
fn code_keeps_its_layout() {
    for (html, expected) in [
        ("<pre>\n  a\n\n    b  \n</pre>", "```\n  a\n\n    b\n```"),
        ("<pre>a<br>b</pre>", "```\na\nb\n```"),
        ("<pre>\ta\r\n\tb</pre>", "```\n\ta\n\tb\n```"),
        ("<pre>a ``` b</pre>", "````\na ``` b\n````"),
        (
            "<pre class='language-rust'><code>x</code></pre>",
            "```rust\nx\n```",
        ),
        ("<pre> </pre>", ""),
        ("a <code> b </code>c", "a `b` c"),
        ("<code>a`b</code>", "`` a`b ``"),
        (
            "<ul><li>x<pre>a\n b</pre>y</ul>",
            "- x\n\n  ```\n  a\n   b\n  ```\n\n  y",
        ),
        ("<pre>a<span class=lineno>1</span>b</pre>", "```\nab\n```"),
    ] {
        assert_eq!(main(html), expected, "{html:?}");
    }
}

#[test]
fn directory_listings_keep_their_links() {
    for (html, expected) in [
        (
            "<pre><a href='../'>../</a>\n<a href=long-name.deb>long-na..&gt;</a>  01-Feb  70M\n</pre>",
            "```\n../ (https://example.org/)\nlong-na..> (https://example.org/a/long-name.deb)  01-Feb  70M\n```",
        ),
        (
            "<pre><img alt=Icon> <a href='?C=N'>Name</a> <a href='?C=M'>Date</a><hr><img> <a href='/'>Up</a>\n<img> <a href=x>x</a>  9K</pre>",
            "```\n Name Date\n Up (https://example.org/)\n x (https://example.org/a/x)  9K\n```",
        ),
        // In code, links are single words.
        (
            "<pre>fn <a href=a>a</a>()\nfn <a href=b>b</a>()\n<a href=c>c</a></pre>",
            "```\nfn a()\nfn b()\nc\n```",
        ),
    ] {
        assert_eq!(main(html), expected, "{html:?}");
    }
}

#[test]
fn lists_and_quotations_nest() {
    for (html, expected) in [
        (
            "<ul><li>a<li>b<ul><li>c</ul><li>d</ul>e",
            "- a\n- b\n  - c\n- d\n\ne",
        ),
        ("<ol start=9><li>a</li><li>b</li></ol>", "9. a\n10. b"),
        ("<ol><li><p>a</p><p>b</p></li></ol>", "1. a\n\n   b"),
        ("<li>a<li>b", "- a\n- b"),
        (
            "x<blockquote>a<blockquote>b</blockquote></blockquote>",
            "x\n\n> a\n>\n> > b",
        ),
        ("<dl><dt>a<dd>b<dt>c<dd>d</dl>", "a\n: b\nc\n: d"),
        ("<ul><li></li><li>a</li></ul>", "- a"),
    ] {
        assert_eq!(main(html), expected, "{html:?}");
    }
}

#[test]
fn data_tables_stay_tables() {
    for (html, expected) in [
        (
            "<table><tr><th>a<th>b<tr><td>1|2<td>3</table>x",
            "| a | b |\n| --- | --- |\n| 1\\|2 | 3 |\n\nx",
        ),
        (
            "<table><tr><td rowspan=2>a<td>b<tr><td>c</table>",
            "| a | b |\n| --- | --- |\n| a | c |",
        ),
        (
            "<table><tr><td colspan=2>a<tr><td>b<td>c</table>",
            "| a |  |\n| --- | --- |\n| b | c |",
        ),
        ("<table><tr><td>a<td>b</table>", "a\nb"),
        ("<table><tr><td>a<tr><td>b</table>", "a\nb"),
        (
            "<table role=presentation><tr><td>a<td>b<tr><td>c<td>d</table>",
            "a\nb\nc\nd",
        ),
        (
            "<table><tr><td><table><tr><td>a<td>b<tr><td>c<td>d</table><td>e<tr><td>f<td>g</table>",
            "| a | b |\n| --- | --- |\n| c | d |\n\ne\nf\ng",
        ),
    ] {
        assert_eq!(main(html), expected, "{html:?}");
    }
}

#[test]
fn a_long_cell_is_moved_below_the_table() {
    let long = "word ".repeat(1000);
    let rows = "<tr><td>a<td>b".repeat(4);
    let read = main(&format!(
        "<table>{rows}<tr><td>c<td>{long}<tr><td>d<td>e</table>f"
    ));
    assert!(read.starts_with("| a | b |\n| --- | --- |\n"), "{read}");
    assert!(
        read.contains("| c | [1: below the table] |\n| d | e |\n\n[1] word word"),
        "{read}"
    );
    assert!(read.ends_with("word\n\nf"), "{read}");
    assert_eq!(read.matches("word").count(), 1000);
    // A table used for layout is not a data table.
    let page = format!("<table><tr><td>a<td>b<tr><td>c<td>{long}</table>");
    let read = text(&page, &"https://example.org/".parse().expect("an address"));
    assert!(!read.main.contains('|') && !read.rest.contains('|'));
}

#[test]
fn hidden_content_is_not_rendered() {
    for html in [
        "a<p hidden>b</p>",
        "a<p style='Display : None'>b</p>",
        "a<p aria-hidden=true>b</p>",
        "a<script>document.write('<p>b</p>')</script>",
        "a<style>b</style><template><p>b</p></template><svg><text>b</text></svg>",
        "a<noscript><p>b</noscript><iframe>b</iframe><button>b</button><select><option>b</select>",
        "<title>b</title>a",
    ] {
        let read = main(html);
        assert!(!read.replace("# b\n\n", "").contains('b'), "{html}: {read}");
        assert!(read.ends_with('a'), "{html}: {read}");
    }
}

#[test]
fn malformed_pages_are_rendered() {
    for (html, expected) in [
        ("<p>a</div></b></table>b", "ab"),
        ("<b>a<p>b</b>c</p>", "a\n\nb\n\nc"),
        ("<a href=x", ""),
        ("<p title='a", ""),
        ("</p></p>a", "a"),
        ("<html><html><body><body>a</html>b", "ab"),
        ("<td>a<td>b", "a\nb"),
        ("<ul>a</ul>", "a"),
        ("a<![CDATA[b]]>c<?php d ?>e", "ace"),
        ("<svg/>a<foo/>b", "ab"),
    ] {
        assert_eq!(main(html), expected, "{html:?}");
    }
}

/// However deeply a page nests and however much it could expand, rendering is bounded in time and
/// size, on a small stack.
#[test]
fn bombs_are_bounded() {
    let many = 20_000;
    let row = "<tr><td>x<td>y";
    let bombs = [
        "<div>".repeat(many) + "end",
        "<b><i><a href=x>".repeat(many) + "end",
        "<blockquote>".repeat(many) + &"<p>x".repeat(many) + "end",
        "<ul><li>".repeat(many) + "end",
        "<table><tr><td>".repeat(many) + "end",
        "<li>".repeat(400) + &"</ul></li></td>".repeat(100_000) + "end",
        format!("<table><tr><td rowspan=65000>{}", "x".repeat(80)) + &row.repeat(many * 5),
        "<table>".to_owned() + &"<tr><td colspan=1000>x<td>y".repeat(many),
        "<pre><pre>".repeat(many) + "end",
        "<p".to_owned() + &" class=x".repeat(many) + ">end",
        "&amp;".repeat(many * 10),
        "<sup>".repeat(390) + &"x<b>y</b>".repeat(many * 8) + "end",
        "<a href='#x'><table><tr><td>".repeat(130) + &"x<b>y</b>".repeat(many) + "end",
        "<i>".repeat(390) + &"<tr><td>".repeat(many * 10) + "end",
        format!("<base href='/{}/'>", "x".repeat(60_000))
            + &"<a href=y>z</a>".repeat(many * 5)
            + "end",
        "<".repeat(many * 10),
    ];
    let read = move || {
        for bomb in bombs {
            let start = Instant::now();
            let url = "https://example.org/".parse().expect("an address");
            let read = text(&bomb, &url);
            let took = start.elapsed();
            // A debug build; release builds are measured in bench/.
            assert!(took < Duration::from_secs(10), "{took:?}");
            assert!(read.main.len() + read.rest.len() < 20 << 20);
            if bomb.ends_with("end") {
                assert!(read.main.contains("end") || read.rest.contains("end"));
            }
        }
    };
    let thread = std::thread::Builder::new().stack_size(256 << 10);
    thread
        .spawn(read)
        .expect("a thread")
        .join()
        .expect("an end");
}

/// The number of cells added by spans is bounded over all tables of a page. Beyond that, cells
/// appear once, and no text is lost.
#[test]
fn cells_added_by_spans_are_bounded() {
    let wide = "<td colspan=100 rowspan=1000>".to_owned();
    let once = format!("<tr>{wide}x{wide}y{}", "<tr>".repeat(999));
    for page in [
        format!("<table>{}<tr><td>end<td>z</table>", once.repeat(40)),
        format!("<table>{once}</table>").repeat(40) + "end",
        // Empty rows are not shown but cost the same.
        format!(
            "<table>{}</table>",
            once.replace(">x", &format!(">{}", "x".repeat(90)))
        )
        .repeat(40)
            + "end",
    ] {
        let read = main(&page);
        assert!(read.contains("end"), "{}", read.len());
        assert!(read.contains("span several rows or columns"));
        // Each cell is three bytes; a line has one more and a line break.
        assert!(
            read.len() < 6 * super::table::MAX_ADDED_CELLS,
            "{}",
            read.len()
        );
    }
    let page = format!(
        "<table>{}</table>",
        "<tr>".to_owned() + &"<td>x".repeat(201)
    )
    .replace("</table>", "<tr><td>y</table>");
    assert!(main(&page).ends_with("[The table has more than 200 columns: the rest is left out]"));
}

/// A page that no caller waits for must not keep a thread busy.
#[test]
fn rendering_stops_when_asked_to() {
    let address = "https://example.org/".parse().expect("an address");
    let page = super::Page::parse(&"<p>x".repeat(1000), &address);
    let text = |stop| {
        page.text(&std::sync::atomic::AtomicBool::new(stop))
            .main
            .len()
    };
    assert!(text(false) > 2000);
    assert!(text(true) < 10);
}

/// The resolved URL counts, not the written one; and a base that is too long is ignored.
#[test]
fn very_long_urls_are_left_out() {
    let long = "x".repeat(1500);
    let base = format!("<base href='/{long}/'>");
    let link = |href: &str| format!("{base}<a href='{href}'>z</a>");
    assert_eq!(main(&link(&long)), "z");
    assert_eq!(main(&link("/y")), "[z](https://example.org/y)");
    let base = format!("<base href='/{long}{long}/'>");
    let link = |href: &str| format!("{base}<a href='{href}'>z</a>");
    assert_eq!(main(&link("y")), "z");
    assert_eq!(main(&link("https://a.org/y")), "[z](https://a.org/y)");
}

proptest! {
    /// However the tags are mixed, every visible word of the page appears in the text exactly
    /// once.
    #[test]
    fn no_tag_soup_loses_a_word(soup in proptest::collection::vec(0usize..40, 0..60)) {
        let tags = [
            "<p>", "</p>", "<div>", "</div>", "<ul>", "</ul>", "<li>", "</li>", "<ol>", "<table>",
            "</table>", "<tr>", "</tr>", "<td>", "</td>", "<th rowspan=3>", "<a href=x>", "</a>",
            "<b>", "</b>", "<pre>", "</pre>", "<code>", "</code>", "<h1>", "</h1>", "<blockquote>",
            "</blockquote>", "<br>", "<main>", "</main>", "<nav>", "</nav>", "<article>", "<dd>",
            "<i>", "</i>", "<footer>", "</footer>", "<span class=toc>",
        ];
        let mut page = String::new();
        let mut words = Vec::new();
        for (at, tag) in soup.iter().enumerate() {
            page.push_str(tags[*tag]);
            page.push_str(&format!(" word{at}x "));
            words.push(format!("word{at}x"));
        }
        let read = text(&page, &"https://example.org/".parse().expect("an address"));
        let all = format!("{}\n{}", read.main, read.rest);
        for word in words {
            let count = all.matches(&word).count();
            // A cell that spans several rows appears in each of them.
            prop_assert!(count == 1 || (count > 1 && page.contains("rowspan")), "{count} × {word} in {all:?} of {page:?}");
        }
    }
}
