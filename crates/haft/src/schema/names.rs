//! What models call things. They carry names from the tools they were trained
//! on; a name is in one of these tables only where it says one thing.

/// Names that mean the same, folded. A name may stand in several groups: it is
/// only taken where the tool has exactly one of them.
pub(super) const GROUPS: &[&[&str]] = &[
    &[
        "path",
        "filepath",
        "file",
        "filename",
        "pathname",
        "absolutepath",
        "relativepath",
        "relativeworkspacepath",
        "absolutefilepath",
        "targetfile",
        "targetpath",
        "dir",
        "directory",
        "folder",
        "dirpath",
        "directorypath",
        "folderpath",
        "targetdirectory",
        "searchpath",
        "searchdirectory",
    ],
    OLD,
    NEW,
    &[
        "content",
        "contents",
        "text",
        "filetext",
        "filecontent",
        "filecontents",
        "data",
        "body",
    ],
    &[
        "pattern",
        "query",
        "search",
        "searchpattern",
        "searchquery",
        "searchterm",
    ],
    &[
        "glob",
        "globpattern",
        "include",
        "includes",
        "includepattern",
        "fileglob",
        "filepattern",
    ],
    &[
        "maxresults",
        "limit",
        "max",
        "maxmatches",
        "headlimit",
        "maxcount",
        "count",
    ],
    &[
        "limit",
        "lines",
        "numlines",
        "maxlines",
        "linecount",
        "linelimit",
        "head",
    ],
    // Without an offset: who says where a window begins also says from where
    // it counts, which is not for a table to ignore.
    &["startline", "firstline", "fromline", "linestart"],
    &["endline", "lastline", "toline", "lineend"],
    &["contextlines", "context", "c"],
    &["casesensitive", "matchcase"],
    &["showhidden", "hidden", "all", "includehidden", "showall"],
    &[
        "command",
        "cmd",
        "script",
        "bash",
        "shell",
        "commandline",
        "shellcommand",
        "bashcommand",
    ],
    &["type", "kind", "filetype", "entrytype"],
    &["url", "uri", "link", "href"],
    &["processid", "pid", "process", "procid"],
    &["action", "operation"],
    &[
        "workingdir",
        "workingdirectory",
        "workdir",
        "cwd",
        "dir",
        "directory",
    ],
    &["chanid", "channelid", "channel", "channelname"],
    &["chatid", "chat", "to", "recipient"],
    &["todos", "todo", "todolist", "todoitems", "tasks", "items"],
    &["status", "state"],
];

/// Parameters that name somebody or something elsewhere. A blank one names nothing, and
/// a whole number names the same however it is written.
pub(super) const IDS: &[&str] = &["chanid", "chatid"];

/// Names that say a folder. They are not taken for a parameter that is a file:
/// a file of that name is not what was asked for.
pub(super) const FOLDERS: &[&str] = &[
    "dir",
    "directory",
    "folder",
    "dirpath",
    "directorypath",
    "folderpath",
    "targetdirectory",
    "searchdirectory",
];

/// What is to be replaced.
pub(super) const OLD: &[&str] = &[
    "oldtext",
    "oldstring",
    "oldstr",
    "old",
    "oldcontent",
    "originaltext",
    "searchtext",
    "searchstring",
    "search",
    "find",
];

/// What comes in its place.
pub(super) const NEW: &[&str] = &[
    "newtext",
    "newstring",
    "newstr",
    "new",
    "newcontent",
    "replacement",
    "replacementtext",
    "replacetext",
    "replacewith",
    "replace",
];

/// A name that says more than which parameter is meant: a unit, a kind of
/// pattern. It is taken only where the description of the parameter has the
/// word; a number in another unit would be a guess.
pub(super) struct Claim {
    pub(super) names: &'static [&'static str],
    pub(super) parameter: &'static str,
    pub(super) word: &'static str,
}

pub(super) const CLAIMS: &[Claim] = &[
    Claim {
        names: &["timeoutseconds", "timeoutsecs", "timeoutsec"],
        parameter: "timeout",
        word: "seconds",
    },
    Claim {
        names: &[
            "timeoutms",
            "timeoutmillis",
            "timeoutmilliseconds",
            "timeoutmsec",
        ],
        parameter: "timeout",
        word: "milliseconds",
    },
    Claim {
        names: &["idleseconds", "idlesecs"],
        parameter: "idle",
        word: "seconds",
    },
    Claim {
        names: &["tailbytes"],
        parameter: "tail",
        word: "bytes",
    },
    Claim {
        names: &["regex", "regexp", "regularexpression"],
        parameter: "pattern",
        word: "regular",
    },
    Claim {
        names: &[
            "glob",
            "globpattern",
            "filepattern",
            "filenamepattern",
            "namepattern",
            "filename",
            "name",
        ],
        parameter: "pattern",
        word: "glob",
    },
    Claim {
        names: &["id", "bashid", "shellid"],
        parameter: "processid",
        word: "process",
    },
    Claim {
        names: &["message", "msg"],
        parameter: "content",
        word: "message",
    },
    Claim {
        names: &["task", "title", "todo", "step"],
        parameter: "content",
        word: "todo",
    },
];

/// Names that say the opposite of a parameter.
pub(super) const OPPOSITES: &[(&[&str], &str)] = &[(
    &["ignorecase", "caseinsensitive", "insensitive", "i"],
    "casesensitive",
)];

/// The same word in full, where a tool has the short one as a value of an enum.
/// Another word is not: what it stands for is for the model to say.
pub(super) const VALUES: &[(&str, &str)] = &[("directory", "dir")];

/// Texts that say why a call is made. They change nothing about it.
pub(super) const REASONS: &[&str] = &[
    "description",
    "explanation",
    "reason",
    "reasoning",
    "rationale",
    "justification",
    "intent",
    "intention",
    "purpose",
    "thought",
    "thoughts",
];

/// Flags that, when false, ask for what every tool does anyway. When true they
/// ask for something else, and that must be said.
pub(super) const OFF: &[&str] = &[
    "requiresapproval",
    "needsapproval",
    "runinbackground",
    "isbackground",
    "background",
    "shouldreadentirefile",
    "readentirefile",
    "replaceall",
    "multiline",
    "dryrun",
    "sudo",
    "isinput",
    "interactive",
    "withescalatedpermissions",
    "dangerouslydisablesandbox",
];

/// Flags that, when true, ask for what a search of ours does anyway.
pub(super) const ON_IN_SEARCH: &[&str] = &["n", "linenumbers", "showlinenumbers"];

/// The one thing some models put all the others into.
pub(super) const WRAPPERS: &[&str] = &["arguments", "args", "parameters", "params", "input"];

/// No name that says something is longer.
const LONGEST: usize = 1_000;

/// Letters and digits only, lower case: `filePath`, `file-path` and `file_path`
/// are one name. What is too long for one becomes something that no name is.
pub(super) fn fold(name: &str) -> String {
    if name.len() > LONGEST {
        return "\0".to_owned();
    }
    name.chars()
        .filter(|c| c.is_alphanumeric())
        .flat_map(char::to_lowercase)
        .collect()
}
