//! Names that models use for parameters. They remember names from the tools they were
//! trained on. A name is in one of these tables only if it has a single meaning.

/// Groups of folded names with the same meaning. A name may be in several groups; it is
/// only accepted if the tool has exactly one parameter of them.
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
    // Not in a group with `offset`: a line number is counted from 1, and a table cannot
    // convert it.
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

/// Parameters with an id of something elsewhere. A blank id means that none is given, and
/// an integer is the same id in any notation.
pub(super) const IDS: &[&str] = &["chanid", "chatid"];

/// Names that mean a folder. They are not accepted for a parameter that is a file.
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

/// Names for the text to replace.
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

/// Names for the replacement.
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

/// A name that states a unit or a kind of pattern. It is only accepted if the description
/// of the parameter contains that word; a number in another unit would be a guess.
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

/// Names that mean the opposite of a parameter.
pub(super) const OPPOSITES: &[(&[&str], &str)] = &[(
    &["ignorecase", "caseinsensitive", "insensitive", "i"],
    "casesensitive",
)];

/// Words that are the long form of an enum value. Other words are not converted: only the
/// model knows what it meant.
pub(super) const VALUES: &[(&str, &str)] = &[("directory", "dir")];

/// Texts that explain why a call is made. They do not change it.
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

/// Flags that are already the default if false. If true, they ask for something that the
/// tool cannot do, so they are reported.
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

/// Flags that are already the default of our search if true.
pub(super) const ON_IN_SEARCH: &[&str] = &["n", "linenumbers", "showlinenumbers"];

/// Names of a field that some models wrap all arguments in.
pub(super) const WRAPPERS: &[&str] = &["arguments", "args", "parameters", "params", "input"];

/// Maximum length of a name, in bytes.
const LONGEST: usize = 1_000;

/// Reduces a name to lower-case letters and digits, so that `filePath`, `file-path` and
/// `file_path` are equal. A name that is too long becomes one that matches nothing.
pub(super) fn fold(name: &str) -> String {
    if name.len() > LONGEST {
        return "\0".to_owned();
    }
    name.chars()
        .filter(|c| c.is_alphanumeric())
        .flat_map(char::to_lowercase)
        .collect()
}
