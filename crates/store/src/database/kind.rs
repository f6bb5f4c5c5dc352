//! The schemas of haft's databases.

/// Schema and settings of one kind of database.
#[derive(Debug)]
pub(crate) struct DatabaseKind {
    /// Name of the kind in messages.
    pub(crate) name: &'static str,
    /// SQLite application id, which identifies the file as ours.
    pub(crate) application: i64,
    /// Newest schema version that this program supports.
    pub(crate) schema: i64,
    /// Page size in bytes.
    pub(crate) page: u32,
    /// Cache size of the connection for writing in KiB.
    pub(crate) cache: u32,
    /// SQL that creates the tables.
    pub(crate) tables: &'static str,
    /// SQL that creates tables which older databases lack, and the name of one of them to
    /// check for.
    pub(crate) later_tables: Option<(&'static str, &'static str)>,
    /// Names of tables that must exist.
    pub(crate) required_tables: &'static [&'static str],
}

/// Files in namespaces. The application id is "haft".
pub(crate) const STORE: DatabaseKind = DatabaseKind {
    name: "store",
    application: 0x6861_6674,
    schema: 1,
    page: 8192,
    cache: 2000,
    tables: crate::files::TABLES,
    later_tables: None,
    required_tables: &["files", "parts"],
};

/// Sessions and their records. The application id is "hafs".
pub(crate) const SESSIONS: DatabaseKind = DatabaseKind {
    name: "session database",
    application: 0x6861_6673,
    schema: 1,
    page: 4096,
    // Records are rarely read after they are written.
    cache: 256,
    tables: crate::sessions::TABLES,
    later_tables: Some(("files", crate::sessions::LATER_TABLES)),
    required_tables: &[
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

/// All kinds, for detecting which one a file is.
pub(crate) const ALL: [&DatabaseKind; 2] = [&STORE, &SESSIONS];
