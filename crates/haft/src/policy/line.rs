//! Analysis of a command line: its commands, and how certain they are.
//!
//! A line is *read* if every command in it is known, including those in substitutions, in
//! compound commands and behind wrappers. Otherwise it is *unreadable*. A line that is read
//! may still do something that its commands do not tell, such as setting `PATH`.

use super::shell::{DEPTH, Dialect, Hidden, Input, MOVING, Script, Simple, Word};
use super::wrapper::{self, Inside};

/// A command line that has been parsed.
#[derive(Debug)]
pub(crate) struct CommandLine {
    /// Its simple commands and the commands that those run. For an unreadable line, only
    /// those that are known.
    pub(super) commands: Vec<FoundCommand>,
    /// Reason why some command in the line is not known.
    pub(super) unreadable: Option<String>,
    /// Reason why the commands may do more than they seem to.
    pub(super) doubt: Option<String>,
    /// Reason why a rule that allows the commands does not cover the line.
    pub(super) excess: Option<String>,
    /// Files that redirections write.
    pub(super) targets: Vec<Word>,
    /// Whether relative names may start from another folder than the work folder.
    pub(super) folder: Folder,
}

impl CommandLine {
    /// Returns why no rule about commands can allow the line.
    pub(super) fn limit(&self) -> Option<&str> {
        let all = [&self.unreadable, &self.doubt, &self.excess];
        all.into_iter().find_map(Option::as_deref)
    }
}

/// Folder that relative names of a line start from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Folder {
    /// The work folder.
    Work,
    /// One in the work folder.
    Below,
    Unknown,
}

/// A simple command of a line.
#[derive(Debug)]
pub(super) struct FoundCommand {
    pub(super) words: Vec<Word>,
    /// Whether its output becomes part of another command.
    pub(super) substituted: bool,
    /// Index of the command that runs it, which comes before it.
    pub(super) parent: Option<usize>,
    /// Whether it only runs other commands of the line.
    pub(super) is_transparent: bool,
}

/// Parses a line for a shell. `elsewhere` means that it runs in a folder whose real name is
/// not known.
pub(crate) fn read(line: &str, elsewhere: bool) -> CommandLine {
    let mut script = Script::default();
    script.moves = elsewhere;
    script.read(line, Dialect::Bash, 0);
    finished(script)
}

/// Parses a program and its arguments, which no shell interprets.
pub(crate) fn program(argv: &[String], elsewhere: bool) -> CommandLine {
    let mut script = Script::default();
    script.moves = elsewhere;
    let size = argv.iter().map(|word| word.len() + 1).sum::<usize>();
    if let Err(why) = script.charge(size) {
        script.fault(why);
    } else if !argv.is_empty() {
        script.commands.push(Simple {
            words: argv.iter().map(Word::literal).collect(),
            input: Input::Inherited,
            depth: 0,
            substituted: false,
            parent: None,
            dialect: Dialect::Bash,
        });
    }
    finished(script)
}

/// Searches every command for commands that it runs.
fn finished(mut script: Script) -> CommandLine {
    let mut at = 0;
    let mut transparent = Vec::new();
    let mut folder = match script.moves {
        true => Folder::Unknown,
        false => Folder::Work,
    };
    loop {
        let Some(command) = script.commands.get(at).cloned() else {
            // Text in variables may contain further commands.
            match script.hidden.pop() {
                Some(hidden) => read_hidden(hidden, 1, &mut script),
                None => break,
            }
            continue;
        };
        at += 1;
        if let Some(why) = wrapper::excess(&command.words) {
            script.exceed(why);
        }
        script.moves |= moves(&command.words);
        folder = folder.max(folder_after(&command.words));
        script.substituted = command.substituted;
        script.parent = Some(at - 1);
        let runs = look_into(&command, &mut script).unwrap_or_else(|why| {
            script.fault(why);
            false
        });
        transparent.push(runs && wrapper::is_transparent(&command.words));
        while let Some(hidden) = script.hidden.pop() {
            read_hidden(hidden, command.depth + 1, &mut script);
        }
        script.substituted = false;
        script.parent = None;
    }
    if script.moves && script.relies {
        script.fault("a variable for a folder may hold more than one word");
    }
    if script.startup && script.interactive {
        script.fault("the variable ENV decides what is run");
    }
    let commands = script.commands.into_iter().zip(transparent);
    CommandLine {
        commands: commands
            .map(|(command, is_transparent)| FoundCommand {
                words: command.words,
                substituted: command.substituted,
                parent: command.parent,
                is_transparent,
            })
            .collect(),
        unreadable: script.unreadable,
        doubt: script.doubt,
        excess: script.excess,
        targets: script.targets,
        folder,
    }
}

/// Returns the folder after a command in the work folder.
fn folder_after(words: &[Word]) -> Folder {
    let Some((first, rest)) = words.split_first() else {
        return Folder::Work;
    };
    if !matches!(first.program(), Some("cd" | "pushd" | "popd")) {
        return Folder::Work;
    }
    let is_inside = |word: &Word| {
        let text = word.known().unwrap_or("/");
        !text.starts_with(['/', '-']) && text.split('/').all(|part| part != "..")
    };
    match !rest.is_empty() && rest.iter().all(is_inside) {
        true => Folder::Below,
        false => Folder::Unknown,
    }
}

/// Whether a command can set HOME, PWD, OLDPWD or TMPDIR to a value that is not a single
/// word.
fn moves(words: &[Word]) -> bool {
    let Some((first, rest)) = words.split_first() else {
        return false;
    };
    let name = first.program().unwrap_or_default();
    let any = |test: &dyn Fn(&Word) -> bool| rest.iter().any(test);
    // The letter of an option may be joined with the name: `printf -vHOME`.
    let names = |word: &Word| {
        let is_option = word.prefix().starts_with('-');
        word.names().any(|name| {
            let is_moving =
                |moving: &&str| name == *moving || (is_option && name.ends_with(moving));
            MOVING.iter().any(is_moving) || matches!(name, "cdable_vars" | "physical")
        })
    };
    let is_one_word = |word: &Word| {
        let text = word.known();
        text.is_some_and(|text| !text.contains(char::is_whitespace))
    };
    let has_letter = |letter: char| {
        move |word: &Word| word.prefix().starts_with('-') && word.prefix().contains(letter)
    };
    let starts_with = |starts: &'static [&str]| {
        move |word: &Word| starts.iter().any(|start| word.prefix().starts_with(start))
    };
    match name {
        // With an option, these commands set the real name of the folder.
        "cd" | "pushd" | "popd" => {
            any(&|word| !is_one_word(word))
                || any(&|word| word.prefix().starts_with('-') && word.known() != Some("-"))
        }
        "set" | "bash" | "rbash" | "sh" | "dash" | "ash" => any(&names) || any(&has_letter('P')),
        "find" => any(&starts_with(&["-execdir", "-okdir"])),
        "git" => any(&starts_with(&["-C", "submodule"])),
        "cat" | "echo" | "grep" | "ls" | "test" | "[" => false,
        _ if wrapper::is_wrapper(name) => {
            any(&names) || any(&starts_with(&["-C", "-D", "--ch", "--w"]))
        }
        _ => any(&names),
    }
}

/// Adds the commands that a command runs. Returns whether there are any.
fn look_into(command: &Simple, script: &mut Script) -> Result<bool, String> {
    let depth = command.depth + 1;
    let mut runs = false;
    for inside in wrapper::inside(command, &script.documents)? {
        if depth > DEPTH {
            return Err("commands run each other too deeply".to_owned());
        }
        runs |= match &inside {
            Inside::Words(words) => !words.is_empty(),
            inside => matches!(inside, Inside::Line(..)),
        };
        match inside {
            Inside::Words(words) if words.is_empty() => {}
            Inside::Words(words) => script.push_again(Simple {
                words,
                input: command.input.clone(),
                depth,
                substituted: command.substituted,
                parent: script.parent,
                dialect: command.dialect,
            })?,
            // Text run by a plain `sh` is parsed as `sh` again.
            Inside::Line(line, Dialect::Bash) => script.read(&line, command.dialect, depth),
            Inside::Line(line, dialect) => script.read(&line, dialect, depth),
            Inside::Hidden(hidden) => read_hidden(hidden, depth, script),
            Inside::Evaluates => script.evaluate(),
            Inside::Assigns(value) => script.assign(&value),
            Inside::Sets(name) => script.set(&name),
            Inside::Exports => script.export(),
            Inside::Relies => script.relies = true,
            Inside::Arrays => script.array(),
            Inside::Lists => script.list(),
            Inside::Interactive => script.interactive = true,
        }
    }
    Ok(runs)
}

fn read_hidden(hidden: Hidden, depth: usize, script: &mut Script) {
    match hidden {
        Hidden::Line(line) => script.read(&line, Dialect::Bash, depth),
        Hidden::Expanded(text) => script.read_expanded(&text, depth),
        Hidden::Startup => script.startup = true,
    }
}
