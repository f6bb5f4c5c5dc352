//! The HTML elements that are treated specially, and their properties.

macro_rules! tags {
    ($($name:ident $text:literal),* $(,)?) => {
        /// An element name.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Tag {
            $($name,)*
            /// Any other element.
            Other,
        }

        impl Tag {
            /// Number of variants.
            pub(crate) const COUNT: usize = Self::Other as usize + 1;

            /// Looks up a lower-case element name.
            pub(crate) fn of(name: &[u8]) -> Self {
                $(if name == $text.as_bytes() { return Self::$name; })*
                Self::Other
            }
        }
    };
}

// Frequent ones first, because the lookup is linear.
tags! {
    Div "div", Span "span", A "a", P "p", Li "li", Td "td", Tr "tr", Br "br", Code "code",
    Ul "ul", Img "img", I "i", B "b", Strong "strong", Em "em", H2 "h2", H3 "h3", H1 "h1",
    H4 "h4", H5 "h5", H6 "h6", Th "th", Table "table", Pre "pre", Ol "ol", Script "script",
    Style "style", Link "link", Meta "meta", Svg "svg", Path "path", Section "section",
    Article "article", Aside "aside", Main "main", Nav "nav", Header "header",
    Footer "footer", Html "html", Head "head", Body "body", Title "title", Base "base",
    Noscript "noscript", Template "template", Button "button", Input "input", Form "form",
    Select "select", Option "option", Optgroup "optgroup", Textarea "textarea",
    Label "label", Fieldset "fieldset", Legend "legend", Dl "dl", Dt "dt", Dd "dd",
    Blockquote "blockquote", Hr "hr", Figure "figure", Figcaption "figcaption",
    Details "details", Summary "summary", Thead "thead", Tbody "tbody", Tfoot "tfoot",
    Caption "caption", Colgroup "colgroup", Col "col", Iframe "iframe", Object "object",
    Embed "embed", Video "video", Audio "audio", Source "source", Track "track",
    Canvas "canvas", Math "math", Area "area", Wbr "wbr", Param "param", Kbd "kbd",
    Samp "samp", Tt "tt", Del "del", S "s", Strike "strike", Q "q", Rt "rt", Rp "rp",
    Sup "sup", Address "address", Center "center", Dialog "dialog", Menu "menu",
    Hgroup "hgroup", Search "search", Xmp "xmp", Listing "listing", Plaintext "plaintext",
    Noframes "noframes", Noembed "noembed",
}

impl Tag {
    /// Whether it has neither content nor an end tag.
    pub(crate) fn is_void(self) -> bool {
        use Tag::{
            Area, Base, Br, Col, Embed, Hr, Img, Input, Link, Meta, Param, Source, Track, Wbr,
        };
        matches!(
            self,
            Area | Base
                | Br
                | Col
                | Embed
                | Hr
                | Img
                | Input
                | Link
                | Meta
                | Param
                | Source
                | Track
                | Wbr
        )
    }

    /// Whether it starts on a new line.
    pub(crate) fn is_block(self) -> bool {
        use Tag::{
            Address, Article, Aside, Blockquote, Body, Caption, Center, Dd, Details, Dialog, Div,
            Dl, Dt, Fieldset, Figcaption, Figure, Footer, Form, H1, H2, H3, H4, H5, H6, Header,
            Hgroup, Hr, Html, Legend, Li, Listing, Main, Menu, Nav, Noscript, Ol, P, Plaintext,
            Pre, Search, Section, Summary, Table, Tbody, Td, Tfoot, Th, Thead, Tr, Ul, Xmp,
        };
        matches!(
            self,
            Address
                | Article
                | Aside
                | Blockquote
                | Body
                | Caption
                | Center
                | Dd
                | Details
                | Dialog
                | Div
                | Dl
                | Dt
                | Fieldset
                | Figcaption
                | Figure
                | Footer
                | Form
                | H1
                | H2
                | H3
                | H4
                | H5
                | H6
                | Header
                | Hgroup
                | Hr
                | Html
                | Legend
                | Li
                | Listing
                | Main
                | Menu
                | Nav
                | Noscript
                | Ol
                | P
                | Plaintext
                | Pre
                | Search
                | Section
                | Summary
                | Table
                | Tbody
                | Td
                | Tfoot
                | Th
                | Thead
                | Tr
                | Ul
                | Xmp
        )
    }

    /// Returns the level of a heading.
    pub(crate) fn heading(self) -> Option<usize> {
        Some(match self {
            Self::H1 => 1,
            Self::H2 => 2,
            Self::H3 => 3,
            Self::H4 => 4,
            Self::H5 => 5,
            Self::H6 => 6,
            _ => return None,
        })
    }

    /// Whether none of its content is text to read.
    pub(crate) fn has_no_text(self) -> bool {
        use Tag::{
            Audio, Base, Button, Canvas, Colgroup, Embed, Head, Iframe, Input, Link, Meta, Noembed,
            Noframes, Noscript, Object, Optgroup, Option, Param, Rp, Script, Select, Source, Style,
            Svg, Template, Textarea, Title, Track, Video,
        };
        matches!(
            self,
            Audio
                | Base
                | Button
                | Canvas
                | Colgroup
                | Embed
                | Head
                | Iframe
                | Input
                | Link
                | Meta
                | Noembed
                | Noframes
                | Noscript
                | Object
                | Optgroup
                | Option
                | Param
                | Rp
                | Script
                | Select
                | Source
                | Style
                | Svg
                | Template
                | Textarea
                | Title
                | Track
                | Video
        )
    }
}
