//! Variables that decide what runs, or what a program loads.

use super::Hidden;

/// Variables whose value the shell expands and runs.
const EXPANDED: &[&str] = &["PS0", "PS1", "PS2", "PS4"];

/// Variables that name a file, after expansion, whose commands a shell runs at its start.
const STARTUP: &[&str] = &["BASH_ENV", "ENV"];

/// Variables with a command for the shell or for many programs.
const COMMANDS: &[&str] = &[
    "PROMPT_COMMAND",
    "EDITOR",
    "VISUAL",
    "PAGER",
    "MANPAGER",
    "BROWSER",
    "GIT_EDITOR",
    "GIT_SEQUENCE_EDITOR",
    "GIT_PAGER",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "GIT_EXTERNAL_DIFF",
    "GIT_ASKPASS",
    "GIT_PROXY_COMMAND",
    "SHELL",
    "SSH_ASKPASS",
    "LESSOPEN",
    "LESSCLOSE",
];

/// Variables whose value the shell evaluates as arithmetic.
const NUMBERS: &[&str] = &[
    "RANDOM",
    "SECONDS",
    "OPTIND",
    "LINENO",
    "HISTCMD",
    "SRANDOM",
    "EPOCHSECONDS",
    "EPOCHREALTIME",
    "BASHPID",
    "BASH_SUBSHELL",
    "PPID",
    "UID",
    "EUID",
];

/// Whether the shell evaluates the value of this variable.
pub(in crate::policy) fn is_number(name: &str) -> bool {
    NUMBERS.contains(&name)
}

/// Variables that change which command a word runs, or how another shell parses text.
const TABLES: &[&str] = &[
    "BASH_CMDS",
    "BASH_ALIASES",
    "SHELLOPTS",
    "BASHOPTS",
    "MAILPATH",
];

/// Whether a variable is run, or decides what is run.
pub(in crate::policy) fn is_run(name: &str) -> bool {
    EXPANDED.contains(&name)
        || STARTUP.contains(&name)
        || COMMANDS.contains(&name)
        || TABLES.contains(&name)
        || name.starts_with("BASH_FUNC_")
        || name.starts_with("GIT_CONFIG_KEY_")
        || name.starts_with("GIT_CONFIG_VALUE_")
        || name == "GIT_CONFIG_PARAMETERS"
}

/// Returns the text that setting a variable runs later, or why that is not known.
pub(in crate::policy) fn run_by(name: &str, value: Option<&str>) -> Result<Option<Hidden>, String> {
    if !is_run(name) {
        return Ok(None);
    }
    match value {
        Some(value) if EXPANDED.contains(&name) => Ok(Some(Hidden::Expanded(value.to_owned()))),
        Some("") if STARTUP.contains(&name) => Ok(None),
        None if name == "ENV" => Ok(Some(Hidden::Startup)),
        // A quote or a backslash would have another meaning in quotes.
        Some(value) if STARTUP.contains(&name) && !value.contains(['"', '\\', '\n']) => {
            Ok(Some(Hidden::Line(format!(". \"{value}\""))))
        }
        // Text for one of these shells is parsed as such.
        Some("/bin/sh" | "/bin/bash" | "/usr/bin/sh" | "/usr/bin/bash" | "/bin/dash")
            if name == "SHELL" =>
        {
            Ok(None)
        }
        // git adds the host and a command.
        Some(value) if name.starts_with("GIT_SSH") => {
            Ok(Some(Hidden::Line(format!("{value} host :"))))
        }
        Some(value) if COMMANDS.contains(&name) => Ok(Some(Hidden::Line(value.to_owned()))),
        _ => Err(format!("the variable {name} decides what is run")),
    }
}

/// Variables that decide which program a name means, or how words are separated.
const PROGRAMS: &[&str] = &["PATH", "IFS", "HOME", "XDG_CONFIG_HOME", "GCONV_PATH"];

/// Variables of git that name no program, file or folder.
const HARMLESS_OF_GIT: &[&str] = &[
    "GIT_AUTHOR_NAME",
    "GIT_AUTHOR_EMAIL",
    "GIT_AUTHOR_DATE",
    "GIT_COMMITTER_NAME",
    "GIT_COMMITTER_EMAIL",
    "GIT_COMMITTER_DATE",
    "GIT_TERMINAL_PROMPT",
    "GIT_OPTIONAL_LOCKS",
    "GIT_MERGE_AUTOEDIT",
    "GIT_TRACE",
];

/// Whether a variable may make a name mean another program.
pub(in crate::policy) fn changes_programs(name: &str) -> bool {
    let is_gits = name.starts_with("GIT_") && !HARMLESS_OF_GIT.contains(&name);
    PROGRAMS.contains(&name)
        || is_run(name)
        || is_gits
        || name.starts_with("LD_")
        || name.starts_with("DYLD_")
}

/// Variables that make a program load other code or run other programs, by their start.
const LOADING: &[&str] = &[
    "AR",
    "AS",
    "CC",
    "CLASSPATH",
    "CPP",
    "CXX",
    "GOFLAGS",
    "JAVA_TOOL",
    "JDK_JAVA",
    "LUA_",
    "MAKEFLAGS",
    "NODE_OPTIONS",
    "NODE_PATH",
    "NPM_CONFIG",
    "PERL5",
    "PYTEST_ADDOPTS",
    "PYTEST_PLUGINS",
    "PYTHON",
    "RUBYLIB",
    "RUBYOPT",
    "RUSTC",
    "RUSTDOC",
    "_JAVA",
    "npm_config",
];

/// Variables of Python that load nothing.
const HARMLESS_OF_PYTHON: &[&str] = &[
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONHASHSEED",
    "PYTHONIOENCODING",
    "PYTHONUNBUFFERED",
    "PYTHONUTF8",
];

/// Whether a variable may make a program do more than its words tell.
pub(in crate::policy) fn loads_code(name: &str) -> bool {
    let is_cargos =
        name.starts_with("CARGO_") && (name.ends_with("RUNNER") || name.ends_with("LINKER"));
    let loads = LOADING.iter().any(|start| name.starts_with(start));
    is_cargos || (loads && !HARMLESS_OF_PYTHON.contains(&name))
}
