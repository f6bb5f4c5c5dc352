//! `haft plugin new`: creates a folder with a working plugin.

use crate::args::Shared;
use crate::args::plugin::New;
use crate::exit::{Exit, Failure};
use crate::output::{self, Paint};
use crate::text;
use haft::ops::text::spelling::hint;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Placeholder for the tool's name, in texts and file names.
const NAME: &str = "{{name}}";

/// Maximum length of a tool's name that model APIs accept.
const MAX_NAME: usize = 64;

/// Skeleton for one language.
struct Language {
    name: &'static str,
    files: &'static [Skeleton],
    /// Command that builds it, in its folder, if needed.
    build: Option<&'static str>,
    start: Start,
}

/// Way in which haft runs it.
enum Start {
    /// As a plugin: a program and its arguments.
    Plugin(&'static str, &'static [&'static str]),
    /// As a Lua tool, which haft finds in a `tools` folder.
    Lua,
}

/// A file of a skeleton.
struct Skeleton {
    path: &'static str,
    content: &'static str,
    is_script: bool,
}

/// Includes a file of `skeletons` under another name.
macro_rules! skeleton {
    ($language:literal, $file:literal, $path:literal, $is_script:literal) => {
        Skeleton {
            path: $path,
            content: include_str!(concat!("../../../skeletons/", $language, "/", $file)),
            is_script: $is_script,
        }
    };
}

/// Includes a file that is not executable.
macro_rules! text {
    ($language:literal, $path:literal) => {
        skeleton!($language, $path, $path, false)
    };
}

/// Includes an executable file.
macro_rules! script {
    ($language:literal, $path:literal) => {
        skeleton!($language, $path, $path, true)
    };
}

const LANGUAGES: &[Language] = &[
    Language {
        name: "python",
        files: &[script!("python", "tool.py"), text!("python", "README.md")],
        build: None,
        start: Start::Plugin("python3", &["./{{name}}/tool.py"]),
    },
    Language {
        name: "typescript",
        files: &[
            script!("typescript", "tool.ts"),
            text!("typescript", "README.md"),
        ],
        build: None,
        start: Start::Plugin("deno", &["run", "./{{name}}/tool.ts"]),
    },
    Language {
        name: "go",
        files: &[
            text!("go", "main.go"),
            text!("go", "go.mod"),
            text!("go", "README.md"),
        ],
        build: Some("go build -o {{name}} ."),
        start: Start::Plugin("./{{name}}/{{name}}", &[]),
    },
    Language {
        name: "rust",
        files: &[
            text!("rust", "src/main.rs"),
            // Named differently here, because cargo would exclude a folder with a
            // Cargo.toml from the package.
            skeleton!("rust", "Cargo.toml.template", "Cargo.toml", false),
            text!("rust", "README.md"),
        ],
        build: Some("cargo build --release"),
        start: Start::Plugin("./{{name}}/target/release/{{name}}", &[]),
    },
    Language {
        name: "bash",
        files: &[script!("bash", "tool.sh"), text!("bash", "README.md")],
        build: None,
        start: Start::Plugin("bash", &["./{{name}}/tool.sh"]),
    },
    Language {
        name: "ruby",
        files: &[script!("ruby", "tool.rb"), text!("ruby", "README.md")],
        build: None,
        start: Start::Plugin("ruby", &["./{{name}}/tool.rb"]),
    },
    Language {
        name: "lua",
        files: &[
            text!("lua", "tools/{{name}}.lua"),
            text!("lua", "README.md"),
        ],
        build: None,
        start: Start::Lua,
    },
];

/// Creates the folder and prints the next steps.
pub(crate) fn run(shared: &Shared, args: &New) -> Result<Exit, Failure> {
    let language = language(&args.language)?;
    check_name(&args.name)?;
    let folder = haft_config::folder(&shared.flags(), crate::env::read())?.join(&args.name);
    let created = write(language, &args.name, &folder)?;
    let paint = Paint::for_stdout();
    let mut out = String::new();
    for path in created {
        out.push_str(&format!("created {}/{path}\n", args.name));
    }
    if !shared.quiet {
        out.push_str(&next(language, &args.name, paint));
    }
    output::raw(&out)?;
    Ok(Exit::Done)
}

fn language(name: &str) -> Result<&'static Language, Failure> {
    let requested = match name.to_ascii_lowercase().as_str() {
        "py" | "python3" => "python",
        "ts" | "deno" | "javascript" | "js" => "typescript",
        "golang" => "go",
        "rs" => "rust",
        "sh" | "shell" => "bash",
        "rb" => "ruby",
        other => other,
    }
    .to_owned();
    let found = LANGUAGES.iter().find(|language| language.name == requested);
    found.ok_or_else(|| {
        let names: Vec<&str> = LANGUAGES.iter().map(|language| language.name).collect();
        let hint = hint(&requested, &names);
        Failure::usage(format!("no skeleton for language \"{name}\"{hint}")).hint(format!(
            "available: {}; a plugin may be written in any language",
            names.join(", ")
        ))
    })
}

/// Checks that a name is valid in every language and for every model.
fn check_name(name: &str) -> Result<(), Failure> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let begins = name.chars().next().is_some_and(|c| c.is_ascii_alphabetic());
    if begins && name.chars().all(plain) && name.len() <= MAX_NAME {
        return Ok(());
    }
    Err(Failure::usage(format!(
        "invalid tool name \"{name}\": it must start with a letter and contain only letters, \
         digits, _ and -, at most {MAX_NAME} characters"
    )))
}

/// Writes the files and returns their names.
#[expect(
    clippy::disallowed_methods,
    reason = "the user's command creates this folder"
)]
fn write(language: &Language, name: &str, folder: &Path) -> Result<Vec<String>, Failure> {
    let cannot = |path: &Path, error: std::io::Error| {
        Failure::failed(format!("cannot create {}: {error}", path.display()))
    };
    // Not `create_dir_all`, so that an existing folder is left unchanged.
    std::fs::create_dir(folder).map_err(|error| {
        if error.kind() == ErrorKind::AlreadyExists {
            Failure::failed(format!(
                "{} already exists; left unchanged",
                folder.display()
            ))
            .hint("choose another name, or remove it first")
        } else {
            cannot(folder, error)
        }
    })?;
    let mut created = Vec::new();
    for file in language.files {
        let below = file.path.replace(NAME, name);
        let path = folder.join(&below);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).map_err(|error| cannot(parent, error))?;
        }
        let mut open = std::fs::OpenOptions::new();
        open.write(true).create_new(true);
        open.mode(if file.is_script { 0o777 } else { 0o666 });
        let content = file.content.replace(NAME, name);
        open.open(&path)
            .and_then(|mut file| file.write_all(content.as_bytes()))
            .map_err(|error| cannot(&path, error))?;
        created.push(below);
    }
    Ok(created)
}

/// Returns the next steps.
fn next(language: &Language, name: &str, paint: Paint) -> String {
    let named = |text: &str| text.replace(NAME, name);
    let (program, arguments) = match language.start {
        Start::Plugin(program, arguments) => (named(program), arguments),
        Start::Lua => {
            return format!(
                "\n{}\n  cd {name}\n  haft trust\n  haft call {name} text=hello\n\n{}\n",
                paint.bold("Test it:"),
                text::wrap(
                    &format!(
                        "haft finds it in tools/ of a project, after `haft trust`, or in \
                         ~/.config/haft/tools/. It needs no entry in haft.yaml; \
                         see {name}/README.md."
                    ),
                    text::WIDTH
                )
                .join("\n"),
            );
        }
    };
    let arguments: Vec<String> = arguments.iter().map(|argument| named(argument)).collect();
    let words = std::iter::once(program.clone())
        .chain(arguments.clone())
        .collect::<Vec<_>>()
        .join(" ");
    let mut out = format!("\n{}\n", paint.bold("Test it:"));
    if let Some(build) = language.build {
        out.push_str(&format!("  (cd {name} && {})\n", named(build)));
    }
    out.push_str(&format!("  haft plugin test {words}\n\n"));
    out.push_str(&format!("{}\n", paint.bold("Register it in haft.yaml:")));
    out.push_str(&format!("tools:\n  plugins:\n    - path: {program}\n"));
    if !arguments.is_empty() {
        let quoted: Vec<String> = arguments
            .iter()
            .map(|argument| format!("\"{argument}\""))
            .collect();
        out.push_str(&format!("      args: [{}]\n", quoted.join(", ")));
    }
    out.push_str(&format!("\n{name}/README.md explains how to adapt it.\n"));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_starts_with_a_letter() {
        for good in ["a", "weather", "my-tool_2", &"a".repeat(64)] {
            assert!(check_name(good).is_ok(), "{good}");
        }
        for bad in [
            "",
            "2a",
            "_a",
            "-a",
            "a b",
            "../a",
            "a/b",
            "ä",
            &"a".repeat(65),
        ] {
            assert!(check_name(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn no_skeleton_keeps_its_placeholder() {
        for language in LANGUAGES {
            for file in language.files {
                let content = file.content.replace(NAME, "x");
                assert!(
                    !content.contains("{{name") && !content.is_empty(),
                    "{} {}",
                    language.name,
                    file.path
                );
            }
        }
    }
}
