//! The variables of a git configuration that commands may change.
//!
//! A variable that is not listed here may make git run a program, read another configuration,
//! look for files elsewhere, throw commits away or print what a command wants the user to see,
//! now or in a version to come.

use super::variables::Variable;

/// Sections in which no key matters, with any subsection.
const SECTIONS: [&str; 6] = ["advice", "author", "color", "column", "committer", "status"];

/// Keys without a subsection.
const KEYS: [(&str, &[&str]); 33] = [
    ("am", &["keepcr", "messageid", "threeway"]),
    ("apply", &["ignorewhitespace", "whitespace"]),
    (
        "blame",
        &[
            "blankboundary",
            "coloring",
            "date",
            "ignorerevsfile",
            "markignoredlines",
            "markunblamablelines",
            "showemail",
            "showroot",
        ],
    ),
    ("branch", &["autosetupmerge", "autosetuprebase", "sort"]),
    (
        "checkout",
        &[
            "defaultremote",
            "guess",
            "thresholdforparallelism",
            "workers",
        ],
    ),
    ("clean", &["requireforce"]),
    ("commit", &["cleanup", "status", "verbose"]),
    (
        "core",
        &[
            "abbrev",
            "autocrlf",
            "bare",
            "bigfilethreshold",
            "checkstat",
            "commentchar",
            "commentstring",
            "commitgraph",
            "compression",
            "deltabasecachelimit",
            "eol",
            "filemode",
            "filesreflocktimeout",
            "fsync",
            "fsyncmethod",
            "fsyncobjectfiles",
            "ignorecase",
            "logallrefupdates",
            "loosecompression",
            "multipackindex",
            "notesref",
            "packedgitlimit",
            "packedgitwindowsize",
            "packedrefstimeout",
            "precomposeunicode",
            "preloadindex",
            "quotepath",
            "safecrlf",
            "sparsecheckout",
            "sparsecheckoutcone",
            "splitindex",
            "symlinks",
            "trustctime",
            "untrackedcache",
            "warnambiguousrefs",
            "whitespace",
        ],
    ),
    (
        "diff",
        &[
            "algorithm",
            "autorefreshindex",
            "colormoved",
            "colormovedws",
            "context",
            "dirstat",
            "dstprefix",
            "ignoresubmodules",
            "indentheuristic",
            "interhunkcontext",
            "mnemonicprefix",
            "noprefix",
            "relative",
            "renamelimit",
            "renames",
            "srcprefix",
            "statgraphwidth",
            "statnamewidth",
            "submodule",
            "suppressblankempty",
            "wordregex",
            "wserrorhighlight",
        ],
    ),
    ("feature", &["experimental", "manyfiles"]),
    (
        "fetch",
        &[
            "all",
            "negotiationalgorithm",
            "output",
            "parallel",
            "prune",
            "prunetags",
            "recursesubmodules",
            "showforcedupdates",
            "unpacklimit",
            "writecommitgraph",
        ],
    ),
    (
        "gc",
        &[
            "aggressivedepth",
            "aggressivewindow",
            "auto",
            "autodetach",
            "autopacklimit",
            "bigpackthreshold",
            "cruftpacks",
            "maxcruftsize",
            "packrefs",
            "writecommitgraph",
        ],
    ),
    (
        "grep",
        &[
            "column",
            "extendedregexp",
            "fallbacktonoindex",
            "fullname",
            "linenumber",
            "patterntype",
            "threads",
        ],
    ),
    ("i18n", &["commitencoding", "logoutputencoding"]),
    (
        "index",
        &[
            "recordendofindexentries",
            "recordoffsettable",
            "skiphash",
            "sparse",
            "threads",
            "version",
        ],
    ),
    ("init", &["defaultbranch"]),
    ("lfs", &["repositoryformatversion"]),
    (
        "log",
        &[
            "abbrevcommit",
            "date",
            "decorate",
            "diffmerges",
            "excludedecoration",
            "follow",
            "graphcolors",
            "initialdecorationset",
            "mailmap",
            "showroot",
        ],
    ),
    ("maintenance", &["auto", "autodetach"]),
    (
        "merge",
        &[
            "autostash",
            "branchdesc",
            "conflictstyle",
            "defaulttoupstream",
            "directoryrenames",
            "ff",
            "log",
            "renamelimit",
            "renames",
            "renormalize",
            "stat",
            "suppressdest",
            "verbosity",
        ],
    ),
    (
        "notes",
        &["displayref", "mergestrategy", "rewritemode", "rewriteref"],
    ),
    (
        "pack",
        &[
            "compression",
            "depth",
            "packsizelimit",
            "threads",
            "window",
            "windowmemory",
        ],
    ),
    ("pull", &["ff", "rebase"]),
    (
        "push",
        &[
            "autosetupremote",
            "default",
            "followtags",
            "useforceifincludes",
        ],
    ),
    (
        "rebase",
        &[
            "abbreviatecommands",
            "autosquash",
            "autostash",
            "backend",
            "forkpoint",
            "missingcommitscheck",
            "rebasemerges",
            "reschedulefailedexec",
            "stat",
            "updaterefs",
        ],
    ),
    ("rerere", &["autoupdate", "enabled"]),
    ("showbranch", &["default"]),
    ("stash", &["showincludeuntracked", "showpatch", "showstat"]),
    (
        "submodule",
        &["active", "fetchjobs", "propagatebranches", "recurse"],
    ),
    ("tag", &["sort"]),
    ("user", &["email", "name", "useconfigonly"]),
    ("versionsort", &["suffix"]),
    ("worktree", &["guessremote", "userelativepaths"]),
];

/// Keys of a remote. The last one belongs to a program that many people use beside git.
const OF_REMOTE: [&str; 9] = [
    "fetch",
    "followremotehead",
    "gh-resolved",
    "prune",
    "prunetags",
    "push",
    "skipdefaultupdate",
    "skipfetchall",
    "tagopt",
];

const OF_SUBMODULE: [&str; 5] = [
    "active",
    "branch",
    "fetchrecursesubmodules",
    "ignore",
    "shallow",
];

/// Ways of updating a submodule that are not commands.
const UPDATES: [&str; 4] = ["checkout", "merge", "none", "rebase"];

/// Commands and options of an alias that is certain to run nothing else.
const ALIASED: [&str; 14] = [
    "add",
    "blame",
    "branch",
    "checkout",
    "cherry-pick",
    "commit",
    "diff",
    "fetch",
    "log",
    "restore",
    "show",
    "stash",
    "status",
    "switch",
];
const ALIAS_OPTIONS: [&str; 16] = [
    "--all",
    "--amend",
    "--branch",
    "--cached",
    "--decorate",
    "--graph",
    "--list",
    "--no-edit",
    "--oneline",
    "--short",
    "--staged",
    "--stat",
    "-a",
    "-b",
    "-s",
    "-sb",
];

/// Whether a command may set a variable to this value, or change it from this value.
pub(super) fn is_harmless(variable: &Variable) -> bool {
    let (section, subsection, key) = variable.parts();
    let value = variable.value.as_deref();
    let is = |list: &[&str]| list.iter().any(|known| known.as_bytes() == key);
    if SECTIONS.iter().any(|known| known.as_bytes() == section) {
        return true;
    }
    match (section, subsection) {
        (b"remote", None) => key == b"pushdefault" && value.is_some_and(is_plain_address),
        (b"alias", None) => value.is_some_and(is_plain_alias),
        (b"remote", Some(_)) => match key {
            b"url" | b"pushurl" => value.is_some_and(is_plain_address),
            _ => is(&OF_REMOTE),
        },
        // Editors and hosting services keep keys of their own here. Of git's, only these name
        // anything but a branch.
        (b"branch", Some(_)) => match key {
            b"remote" | b"pushremote" => value.is_some_and(is_plain_address),
            _ => key != b"mergeoptions",
        },
        (b"submodule", Some(_)) => match key {
            b"url" => value.is_some_and(is_plain_address),
            b"update" => {
                value.is_some_and(|value| UPDATES.iter().any(|known| known.as_bytes() == value))
            }
            _ => is(&OF_SUBMODULE),
        },
        // With any other value, git does not find the repository at all.
        (b"core", None) if key == b"bare" => value.is_none_or(is_switch),
        (section, None) => KEYS
            .iter()
            .any(|(known, keys)| known.as_bytes() == section && is(keys)),
        _ => false,
    }
}

/// Whether git takes a value for true or false.
fn is_switch(value: &[u8]) -> bool {
    const SWITCHES: [&[u8]; 9] = [
        b"", b"0", b"1", b"false", b"no", b"off", b"on", b"true", b"yes",
    ];
    SWITCHES.contains(&value.to_ascii_lowercase().as_slice())
}

/// Whether an address, or the name of a remote, makes git use one of its own ways of
/// transport. `NAME::ADDRESS` and an unknown scheme start the program `git-remote-NAME`, and
/// what begins with a hyphen could be taken for an option.
fn is_plain_address(value: &[u8]) -> bool {
    const SCHEMES: [&[u8]; 8] = [
        b"file", b"ftp", b"ftps", b"git", b"git+ssh", b"http", b"https", b"ssh",
    ];
    if value.is_empty() || value.starts_with(b"-") {
        return false;
    }
    let find = |what: &[u8]| memchr::memmem::find(value, what);
    if find(b"::").is_some_and(|at| is_scheme(value.get(..at).unwrap_or_default())) {
        return false;
    }
    match find(b"://") {
        Some(at) => {
            let scheme = value.get(..at).unwrap_or_default();
            !is_scheme(scheme) || SCHEMES.contains(&scheme)
        }
        None => true,
    }
}

fn is_scheme(text: &[u8]) -> bool {
    let of_scheme = |byte: &u8| byte.is_ascii_alphanumeric() || b"+-._".contains(byte);
    text.iter().all(of_scheme)
}

fn is_plain_alias(value: &[u8]) -> bool {
    let mut words = value
        .split(|byte| *byte == b' ')
        .filter(|word| !word.is_empty());
    let has = |list: &[&str], word: &[u8]| list.iter().any(|known| known.as_bytes() == word);
    words.next().is_some_and(|command| has(&ALIASED, command))
        && words.all(|word| has(&ALIAS_OPTIONS, word))
}
