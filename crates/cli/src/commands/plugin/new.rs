//! `haft plugin new`: a folder with a plugin that works, to begin from.

use crate::args::Shared;
use crate::args::plugin::New;
use crate::exit::{Exit, Failure};
use crate::output::{self, Paint};
use crate::{config, text};
use haft::ops::text::spelling::closest;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Stands for the name of the tool, in texts and in the names of files.
const NAME: &str = "{{name}}";

/// A name is part of what a model calls, which takes no more.
const LONGEST: usize = 64;

/// What one language begins with.
struct Language {
    name: &'static str,
    files: &'static [Skeleton],
    /// How it is made into a program, in its folder, if it has to be.
    build: Option<&'static str>,
    start: Start,
}

/// How haft comes to run it.
enum Start {
    /// As a plugin: a program and its arguments.
    Plugin(&'static str, &'static [&'static str]),
    /// As a Lua tool, which is found where it lies.
    Lua,
}

/// A file of a skeleton.
struct Skeleton {
    path: &'static str,
    content: &'static str,
    is_script: bool,
}

/// A file as it lies below `skeletons`, under the name it gets.
macro_rules! skeleton {
    ($language:literal, $file:literal, $path:literal, $is_script:literal) => {
        Skeleton {
            path: $path,
            content: include_str!(concat!("../../../skeletons/", $language, "/", $file)),
            is_script: $is_script,
        }
    };
}

/// A file that is read.
macro_rules! text {
    ($language:literal, $path:literal) => {
        skeleton!($language, $path, $path, false)
    };
}

/// A file that is run.
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
            // With the ending of its own, cargo would leave the folder out of the
            // package of the command.
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

/// Makes the folder and says how to go on.
pub(crate) fn run(shared: &Shared, args: &New) -> Result<Exit, Failure> {
    let language = language(&args.language)?;
    checked(&args.name)?;
    let folder = config::folder(shared)?.join(&args.name);
    let made = write(language, &args.name, &folder)?;
    let paint = Paint::for_stdout();
    let mut out = String::new();
    for path in made {
        out.push_str(&format!("made {}/{path}\n", args.name));
    }
    if !shared.quiet {
        out.push_str(&next(language, &args.name, paint));
    }
    output::raw(&out)?;
    Ok(Exit::Done)
}

fn language(name: &str) -> Result<&'static Language, Failure> {
    let wanted = match name.to_ascii_lowercase().as_str() {
        "py" | "python3" => "python",
        "ts" | "deno" | "javascript" | "js" => "typescript",
        "golang" => "go",
        "rs" => "rust",
        "sh" | "shell" => "bash",
        "rb" => "ruby",
        other => other,
    }
    .to_owned();
    let found = LANGUAGES.iter().find(|language| language.name == wanted);
    found.ok_or_else(|| {
        let names: Vec<&str> = LANGUAGES.iter().map(|language| language.name).collect();
        let near = closest(&wanted, names.iter().map(|name| (*name).to_owned()), 1);
        let meant = near
            .first()
            .map(|near| format!("; did you mean \"{near}\"?"))
            .unwrap_or_default();
        Failure::usage(format!("there is no skeleton in \"{name}\"{meant}")).hint(format!(
            "there are {}; a plugin may be in any language",
            names.join(", ")
        ))
    })
}

/// A name that is right in every language and for every model.
fn checked(name: &str) -> Result<(), Failure> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let begins = name.chars().next().is_some_and(|c| c.is_ascii_alphabetic());
    if begins && name.chars().all(plain) && name.len() <= LONGEST {
        return Ok(());
    }
    Err(Failure::usage(format!(
        "\"{name}\" cannot be the name of a tool: it begins with a letter and has letters, \
         digits, _ and -, at most {LONGEST}"
    )))
}

/// Writes the files, and says which.
#[expect(
    clippy::disallowed_methods,
    reason = "the person's own command makes a folder where it was asked to"
)]
fn write(language: &Language, name: &str, folder: &Path) -> Result<Vec<String>, Failure> {
    let cannot = |path: &Path, error: std::io::Error| {
        Failure::failed(format!("cannot make {}: {error}", path.display()))
    };
    // Not `create_dir_all`: what is there already stays as it is.
    std::fs::create_dir(folder).map_err(|error| {
        if error.kind() == ErrorKind::AlreadyExists {
            Failure::failed(format!(
                "{} is there already; it stays as it is",
                folder.display()
            ))
            .hint("take another name, or remove it first")
        } else {
            cannot(folder, error)
        }
    })?;
    let mut made = Vec::new();
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
        made.push(below);
    }
    Ok(made)
}

/// What to do with it now.
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
                        "It is found where it lies: in tools/ of a project, after `haft trust`, \
                         or in ~/.config/haft/tools/. haft.yaml needs no lines for it; \
                         {name}/README.md says more."
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
    out.push_str(&format!("{}\n", paint.bold("Register it, in haft.yaml:")));
    out.push_str(&format!("tools:\n  plugins:\n    - path: {program}\n"));
    if !arguments.is_empty() {
        let quoted: Vec<String> = arguments
            .iter()
            .map(|argument| format!("\"{argument}\""))
            .collect();
        out.push_str(&format!("      args: [{}]\n", quoted.join(", ")));
    }
    out.push_str(&format!("\n{name}/README.md says how to make it yours.\n"));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_begins_with_a_letter() {
        for good in ["a", "weather", "my-tool_2", &"a".repeat(64)] {
            assert!(checked(good).is_ok(), "{good}");
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
            assert!(checked(bad).is_err(), "{bad}");
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
