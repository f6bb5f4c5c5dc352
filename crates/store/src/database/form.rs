//! The kinds of databases there are.

/// What makes a database one of its kind.
#[derive(Debug)]
pub(crate) struct Form {
    /// What it is called in words for a person.
    pub(crate) word: &'static str,
    /// Marks the file as ours, where `file` and others look.
    pub(crate) application: i64,
    /// The newest schema this version knows.
    pub(crate) schema: i64,
    /// Bytes of a page.
    pub(crate) page: u32,
    /// How many KiB the connection that writes remembers.
    pub(crate) cache: u32,
    /// The statements that make its tables.
    pub(crate) tables: &'static str,
    /// The statements that make those of them that came later, in a database that lacks
    /// them: one of these tables, and what makes it.
    pub(crate) added: Option<(&'static str, &'static str)>,
    /// Their names: what every call needs.
    pub(crate) names: &'static [&'static str],
}

/// Files of several namespaces: "haft".
pub(crate) const STORE: Form = Form {
    word: "store",
    application: 0x6861_6674,
    schema: 1,
    page: 8192,
    cache: 2000,
    tables: crate::files::TABLES,
    added: None,
    names: &["files", "parts"],
};

/// What was said and done: "hafs".
pub(crate) const SESSIONS: Form = Form {
    word: "session database",
    application: 0x6861_6673,
    schema: 1,
    page: 4096,
    // What is added is hardly looked at again.
    cache: 256,
    tables: crate::sessions::TABLES,
    added: Some(("files", crate::sessions::ADDED)),
    names: &[
        "sessions",
        "systems",
        "segments",
        "messages",
        "calls",
        "outcomes",
        "approvals",
        "decisions",
        "states",
        "events",
    ],
};

/// All of them.
pub(crate) const ALL: [&Form; 2] = [&STORE, &SESSIONS];
