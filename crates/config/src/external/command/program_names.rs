//! Knowledge about programs and variables by name: which load code from their current
//! folder, and which words of a command line are code.

use super::launcher;
use std::path::Path;

/// Interpreters whose first word that is not a flag is a file with code, and which load
/// nothing from their current folder unless that code does.
const STEADY: [&str; 12] = [
    "python", "pypy", "node", "nodejs", "ruby", "perl", "bash", "sh", "dash", "zsh", "ksh", "fish",
];

/// Interpreters that look for code in their current folder, as Lua does in `./?.lua`.
const LOOSE: [&str; 34] = [
    "gawk",
    "lua",
    "luajit",
    "texlua",
    "luau",
    "php",
    "rscript",
    "tclsh",
    "wish",
    "expect",
    "guile",
    "osascript",
    "julia",
    "racket",
    "raku",
    "runghc",
    "runhaskell",
    "ghci",
    "scala",
    "groovy",
    "kotlin",
    "clojure",
    "clj",
    "bb",
    "erl",
    "escript",
    "octave",
    "ocaml",
    "dart",
    "crystal",
    "pwsh",
    "irb",
    "pry",
    "hhvm",
];

/// Interpreter flags without a value that load nothing.
const HARMLESS: [&str; 26] = [
    "-u",
    "-B",
    "-E",
    "-I",
    "-s",
    "-S",
    "-O",
    "-OO",
    "-P",
    "-q",
    "-b",
    "-bb",
    "-e",
    "-x",
    "-eu",
    "-ex",
    "-eux",
    "-w",
    "-W0",
    "--no-warnings",
    "--no-deprecation",
    "--enable-source-maps",
    "--experimental-strip-types",
    "--use-system-ca",
    "--norc",
    "--noprofile",
];

/// Letters of such flags that can be combined in one word, for all interpreters.
const BUNDLED: &str = "uBEsSOPqbweTlf";

/// Programs that load code from their current folder, or run another one that may.
const RUNNERS: [&str; 108] = [
    "npm",
    "npx",
    "pnpm",
    "pnpx",
    "yarn",
    "bun",
    "bunx",
    "deno",
    "tsx",
    "ts-node",
    "nodemon",
    "vite-node",
    "babel-node",
    "swc-node",
    "sucrase-node",
    "ts-node-esm",
    "ts-node-dev",
    "jiti",
    "esno",
    "tsm",
    "esr",
    "esbuild-runner",
    "corepack",
    "uv",
    "uvx",
    "pipx",
    "poetry",
    "pdm",
    "hatch",
    "pixi",
    "rye",
    "conda",
    "mamba",
    "micromamba",
    "pipenv",
    "tox",
    "nox",
    "pytest",
    "go",
    "cargo",
    "make",
    "gmake",
    "just",
    "task",
    "rake",
    "bundle",
    "gradle",
    "gradlew",
    "mvn",
    "ant",
    "sbt",
    "bazel",
    "dotnet",
    "java",
    "jbang",
    "swift",
    "zig",
    "mix",
    "elixir",
    "iex",
    "composer",
    "nix",
    "nix-shell",
    "devbox",
    "mise",
    "rtx",
    "asdf",
    "direnv",
    "docker-compose",
    "env",
    "sudo",
    "doas",
    "nice",
    "nohup",
    "timeout",
    "xargs",
    "setsid",
    "stdbuf",
    "time",
    "exec",
    "busybox",
    "watchexec",
    "gunicorn",
    "uvicorn",
    "hypercorn",
    "celery",
    "flask",
    "streamlit",
    "fastmcp",
    "ipython",
    "jupyter",
    "dotenv",
    "dotenvx",
    "env-cmd",
    "teller",
    "nx",
    "turbo",
    "gulp",
    "grunt",
    "vite",
    "vitest",
    "jest",
    "mocha",
    "electron",
    "pm2",
    "concurrently",
    "lein",
    "rails",
];

/// Programs among these that run the program in their arguments and have no code
/// themselves.
const WRAPPERS: [&str; 9] = [
    "env", "sudo", "doas", "nice", "nohup", "timeout", "setsid", "stdbuf", "time",
];

/// Like the above, but with a name too common to be recognised among another program's
/// arguments.
const RUNNERS_BY_FIRST_WORD: [&str; 12] = [
    "mcp", "r", "zx", "unittest", "doctest", "coverage", "debugpy", "pdb", "trace", "profile",
    "cprofile", "runpy",
];

/// Programs whose arguments name what runs on another machine or in a container.
const ELSEWHERE: [&str; 5] = ["docker", "podman", "nerdctl", "kubectl", "ssh"];

/// Programs with options that name commands to run, or that run their arguments.
const COMMANDERS: [&str; 44] = [
    "awk",
    "bwrap",
    "chroot",
    "chrt",
    "cpulimit",
    "dbus-run-session",
    "dumb-init",
    "ed",
    "emacs",
    "entr",
    "ex",
    "fakeroot",
    "find",
    "firejail",
    "flock",
    "gdb",
    "git",
    "gosu",
    "ionice",
    "less",
    "m4",
    "man",
    "mawk",
    "nawk",
    "nsenter",
    "nvim",
    "openssl",
    "parallel",
    "perf",
    "prlimit",
    "rsync",
    "runuser",
    "screen",
    "script",
    "sed",
    "setpriv",
    "socat",
    "strace",
    "su",
    "tar",
    "taskset",
    "tmux",
    "unshare",
    "vim",
];

/// Prefixes of variables that determine where code is loaded from.
const LOADERS: [&str; 52] = [
    "PATH",
    "HOME",
    "XDG_",
    "PYTHONPATH",
    "PYTHONHOME",
    "PYTHONSTARTUP",
    "PYTHONUSERBASE",
    "PYTHONPYCACHEPREFIX",
    "PYTHONEXECUTABLE",
    "PYTHONPLATLIBDIR",
    "TS_NODE_",
    "GCONV_PATH",
    "GTK_",
    "VIRTUAL_ENV",
    "NODE_PATH",
    "NODE_COMPILE_CACHE",
    "NODE_REPL_EXTERNAL_MODULE",
    "PERL5LIB",
    "PERL5DB",
    "PERLLIB",
    "PERL_USE_UNSAFE_INC",
    "PERL_MM_",
    "RUBYLIB",
    "RUBYPATH",
    "GEM_",
    "BUNDLE_",
    "LUA_",
    "LUAJIT_",
    "R_",
    "JULIA_",
    "CLASSPATH",
    "LD_",
    "DYLD_",
    "BASH_ENV",
    "ENV",
    "ZDOTDIR",
    "FPATH",
    "PHPRC",
    "PHP_INI_SCAN_DIR",
    "DOTNET_STARTUP_HOOKS",
    "OPENSSL_CONF",
    "OPENSSL_ENGINES",
    "OPENSSL_MODULES",
    "GIT_EXEC_PATH",
    "GIT_CONFIG_GLOBAL",
    "GUILE_",
    "TCLLIBPATH",
    "ERL_LIBS",
    "AWKPATH",
    "PSMODULEPATH",
    "NPM_CONFIG_",
    "npm_config_",
];

/// Suffixes of variables that hold flags for an interpreter.
const FLAGS: [&str; 4] = ["OPT", "OPTS", "OPTIONS", "FLAGS"];

/// Suffixes of variables that name a command.
const COMMAND_VARIABLES: [&str; 8] = [
    "EDITOR", "VISUAL", "PAGER", "BROWSER", "SHELL", "ASKPASS", "_COMMAND", "_WRAPPER",
];

/// Words of a command line that are code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Code {
    /// Whether code may be loaded from the current folder.
    pub(super) is_from_folder: bool,
    /// Index of the first argument that is data.
    pub(super) rest: usize,
}

/// Source of the code that a command line runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::external) enum CodeSource {
    /// The program itself.
    Program,
    /// A file named by the argument at this index. With `perl -e` it is a text, which is
    /// not the name of a file.
    File(usize),
    /// A text or a module in the argument at this index or the next, as with `-c` and `-m`.
    Text(usize),
    /// Not known from the command line.
    Unknown,
}

/// Whether a program of this name runs the script in its arguments.
pub(crate) fn is_interpreter(name: &str) -> bool {
    STEADY.contains(&name) || LOOSE.contains(&name)
}

fn is_runner(name: &str) -> bool {
    RUNNERS.contains(&name) || RUNNERS_BY_FIRST_WORD.contains(&name)
}

/// Whether interpreters load code from the value of this variable.
pub(in crate::external) fn is_loader(name: &str) -> bool {
    let is_begun = |known: &&str| match known.ends_with('_') {
        true => name.starts_with(*known),
        false => name == *known,
    };
    LOADERS.iter().any(is_begun) || holds_flags(name)
}

fn holds_flags(name: &str) -> bool {
    FLAGS.iter().any(|end| name.ends_with(end))
}

/// Whether a variable may make an interpreter load code from the current folder.
pub(super) fn loads(name: &str, value: &str) -> bool {
    if value.is_empty() || !is_loader(name) {
        return false;
    }
    match holds_flags(name) {
        // A bare name may be a module in that folder.
        true => !value.split_whitespace().all(is_harmless),
        // An empty part means that folder too.
        false => value
            .split([':', ';', ' '])
            .any(|part| !part.starts_with('/')),
    }
}

/// Whether a variable may make a program run code that its command line does not name.
pub(in crate::external) fn may_run_code(name: &str, value: &str) -> bool {
    let is_git = name.starts_with("GIT_")
        && !["GIT_AUTHOR_", "GIT_COMMITTER_"]
            .iter()
            .any(|known| name.starts_with(known));
    let is_program = COMMAND_VARIABLES.iter().any(|end| name.ends_with(end));
    let loads =
        is_loader(name) && !(holds_flags(name) && value.split_whitespace().all(is_harmless));
    !value.is_empty() && (loads || is_git || is_program)
}

/// Whether a flag loads no code.
fn is_harmless(word: &str) -> bool {
    let number = word.split_once('=').filter(|(flag, _)| {
        ["--max-", "--stack-", "--inspect"]
            .iter()
            .any(|known| flag.starts_with(known))
    });
    let is_number = number.is_some_and(|(_, value)| {
        !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit())
    });
    // Several in one word, such as `#!/usr/bin/python3 -sP` and `#!/usr/bin/perl -wT`.
    let letters = word.strip_prefix('-').unwrap_or_default();
    let is_bundle = !letters.is_empty() && letters.chars().all(|c| BUNDLED.contains(c));
    HARMLESS.contains(&word) || is_number || is_bundle
}

/// Returns the number of leading flags that load no code.
fn harmless_flags(words: &[&str]) -> usize {
    let mut at = 0;
    while let Some(word) = words.get(at) {
        let is_option = word.starts_with('-') && words.get(at + 1) == Some(&"pipefail");
        at += match word.strip_suffix('o').filter(|_| is_option) {
            // `-euo pipefail`
            Some(flags) if flags == "-" || is_harmless(flags) => 2,
            _ if is_harmless(word) => 1,
            _ => break,
        };
    }
    at
}

/// Returns which words are code for a program of this name.
pub(super) fn code_of(name: &str, arguments: &[String], from: &Path) -> Code {
    let unknown = Code {
        is_from_folder: true,
        rest: arguments.len(),
    };
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    if let Some(run) = launcher::run_by(name, &words) {
        let Some((at, word)) = run.and_then(|at| Some((at, *words.get(at)?))) else {
            return unknown;
        };
        let after = at + 1;
        let plain = word.strip_prefix('@').unwrap_or(word);
        let is_package = !word.starts_with(['.', '/', '~'])
            && !word.contains(':')
            && (plain.len() < word.len() || !plain.contains('/'));
        let package = launcher::package_name(word);
        let program = name_of(Path::new(package));
        let is_program = is_runner(&package.to_ascii_lowercase())
            || RUNNERS.contains(&program.as_str())
            || is_interpreter(&program);
        // Such as `python server.py`, or a subcommand.
        let inner = |arguments| code_of(&program, arguments, from).rest;
        return match is_package {
            true if is_program => Code {
                rest: after + arguments.get(after..).map_or(0, inner),
                ..unknown
            },
            true => Code {
                rest: after,
                ..unknown
            },
            false => unknown,
        };
    }
    if WRAPPERS.contains(&name) {
        return run_by_another(arguments, 0, from).unwrap_or(unknown);
    }
    let is_compose = ["docker", "podman", "nerdctl"].contains(&name) && is_compose(&words);
    if is_runner(name) || LOOSE.contains(&name) || is_compose {
        return unknown;
    }
    let mut rest = 0;
    if STEADY.contains(&name) {
        let at = harmless_flags(&words);
        let script = words.get(at).filter(|word| !word.starts_with('-'));
        if !script.is_some_and(|script| super::super::is_file(&from.join(script))) {
            return unknown;
        }
        rest = at + 1;
    }
    let steady = Code {
        is_from_folder: false,
        rest,
    };
    match runs_elsewhere(name) {
        true => steady,
        false => run_by_another(arguments, rest, from).unwrap_or(steady),
    }
}

/// Whether the first command among these words is `compose`, after any options. An
/// option's value may be mistaken for it; then a folder counts that does not matter.
fn is_compose(words: &[&str]) -> bool {
    let begins = |word: &&&str| !["run", "exec", "create", "start"].contains(word);
    words
        .iter()
        .take_while(begins)
        .any(|word| *word == "compose")
}

/// Whether a program runs its arguments elsewhere.
pub(super) fn runs_elsewhere(name: &str) -> bool {
    ELSEWHERE.contains(&name)
}

/// Returns which words are code if a program may run another one named by its arguments,
/// as `flock FILE node SCRIPT` does.
fn run_by_another(arguments: &[String], start: usize, from: &Path) -> Option<Code> {
    for (at, word) in arguments.iter().enumerate().skip(start) {
        let after = at + 1;
        if is_known(word) {
            let arguments = arguments.get(after..).unwrap_or_default();
            let inner = code_of(&name_of(Path::new(word)), arguments, from);
            return Some(Code {
                is_from_folder: true,
                rest: after + inner.rest,
            });
        }
        if has_known(word) {
            return Some(Code {
                is_from_folder: true,
                rest: after,
            });
        }
    }
    None
}

/// Whether a word is a program that runs code named by its arguments.
fn is_known(word: &str) -> bool {
    let name = name_of(Path::new(word));
    RUNNERS.contains(&name.as_str()) || is_interpreter(&name)
}

/// Whether a text contains such a program: `-c 'node server.js'`.
fn has_known(text: &str) -> bool {
    let apart = |c: char| c.is_whitespace() || "=;|&()'\"`".contains(c);
    text.split(apart).any(is_known)
}

/// Returns the source of the code that a program of this name runs.
pub(super) fn code_source(name: &str, arguments: &[String]) -> CodeSource {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    if is_interpreter(name) {
        let at = harmless_flags(&words);
        return match words.get(at) {
            Some(word) if word.starts_with('-') => CodeSource::Text(at),
            Some(_) => CodeSource::File(at),
            None => CodeSource::Unknown,
        };
    }
    let is_wrapper = WRAPPERS.contains(&name);
    // `env --chdir=DIR`: its words start from another folder.
    let goes_elsewhere = |word: &&str| ["-C", "-D"].contains(word) || word.starts_with("--chdir");
    let is_moved = is_wrapper && words.iter().any(goes_elsewhere);
    // `ld-linux-x86-64.so.2 --library-path lib PROGRAM`
    let is_linker = name.starts_with("ld-") || name.starts_with("ld.so");
    if is_runner(name) && !is_wrapper || runs_elsewhere(name) || is_moved || is_linker {
        return CodeSource::Unknown;
    }
    for (at, word) in words.iter().enumerate() {
        if is_known(word) {
            let after = at + 1;
            let rest = arguments.get(after..).unwrap_or_default();
            return match code_source(&name_of(Path::new(word)), rest) {
                CodeSource::File(inner) => CodeSource::File(after + inner),
                CodeSource::Text(inner) => CodeSource::Text(after + inner),
                CodeSource::Program | CodeSource::Unknown => CodeSource::Unknown,
            };
        }
        if has_known(word) {
            return CodeSource::Text(at);
        }
    }
    let path = words
        .iter()
        .position(|word| word.contains('/') && !word.contains('='));
    match path.filter(|_| is_wrapper) {
        Some(at) => CodeSource::File(at),
        None if is_wrapper => CodeSource::Unknown,
        None if COMMANDERS.contains(&name) && !words.is_empty() => CodeSource::Unknown,
        None => CodeSource::Program,
    }
}

/// Returns `python` for `/usr/bin/python3.12`.
pub(crate) fn name_of(program: &Path) -> String {
    let name = program.file_name().unwrap_or_default().to_string_lossy();
    let name = name.to_ascii_lowercase();
    let name = name.strip_suffix(".exe").unwrap_or(&name);
    // Some builds have letters after the version: `python3.13t`.
    let plain = name.trim_end_matches(['d', 'm', 't']);
    let is_version = plain.ends_with(|c: char| c.is_ascii_digit());
    let name = if is_version { plain } else { name };
    let bare = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-');
    match bare.is_empty() {
        true => name.to_owned(),
        false => bare.to_owned(),
    }
}
