//! Analysis of a command line: its commands, and how certain they are.
//!
//! There are three degrees. A line of literal words joined by `&& || ; |` and newlines is
//! *analysed*. A line with anything else is *read* if every command in it is known,
//! including those run by wrappers. Otherwise the line is *unreadable*.

use super::shell::{DEPTH, Dialect, Hidden, Input, MOVING, Script, Simple, Word};
use super::wrapper::{self, Inside};

/// A command line that has been parsed.
#[derive(Debug)]
pub(crate) struct CommandLine {
    /// Its simple commands and the commands that those run. For an unreadable line, only
    /// those that are known.
    pub(super) commands: Vec<Vec<Word>>,
    /// Reason why the line was not analysed.
    pub(super) obstacle: Option<String>,
    /// Reason why some command in the line is not known.
    pub(super) unreadable: Option<String>,
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
        script.note(why);
        script.fault(why);
    } else if !argv.is_empty() {
        script.commands.push(Simple {
            words: argv.iter().map(Word::literal).collect(),
            input: Input::Inherited,
            depth: 0,
            dialect: Dialect::Bash,
        });
    }
    finished(script)
}

/// Searches every command for commands that it runs.
fn finished(mut script: Script) -> CommandLine {
    let mut at = 0;
    while let Some(command) = script.commands.get(at).cloned() {
        at += 1;
        if let Some(why) = wrapper::obstacle(&command.words) {
            script.note(&why);
        }
        script.moves |= moves(&command.words);
        if let Err(why) = look_into(&command, &mut script) {
            script.note(&why);
            script.fault(why);
        }
        while let Some(hidden) = script.hidden.pop() {
            read_hidden(hidden, command.depth + 1, &mut script);
        }
    }
    while let Some(hidden) = script.hidden.pop() {
        read_hidden(hidden, 1, &mut script);
    }
    if at < script.commands.len() {
        return finished(script);
    }
    if script.moves && script.relies {
        script.fault("a variable for a folder may hold more than one word");
    }
    if script.startup && script.interactive {
        script.fault("the variable ENV decides what is run");
    }
    CommandLine {
        commands: script
            .commands
            .into_iter()
            .map(|command| command.words)
            .collect(),
        obstacle: script.obstacle,
        unreadable: script.unreadable,
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

fn look_into(command: &Simple, script: &mut Script) -> Result<(), String> {
    let depth = command.depth + 1;
    for inside in wrapper::inside(command, &script.documents)? {
        if depth > DEPTH {
            return Err("commands run each other too deeply".to_owned());
        }
        match inside {
            Inside::Words(words) if words.is_empty() => {}
            Inside::Words(words) => script.push_again(Simple {
                words,
                input: command.input.clone(),
                depth,
                dialect: command.dialect,
            })?,
            // Text run by a plain `sh` is parsed as `sh` again.
            Inside::Line(line, Dialect::Bash) => script.read(&line, command.dialect, depth),
            Inside::Line(line, dialect) => script.read(&line, dialect, depth),
            Inside::Hidden(hidden) => read_hidden(hidden, depth, script),
            Inside::Evaluates => script.evaluate(),
            Inside::Assigns(value) => script.assign(&value),
            Inside::Exports => script.export(),
            Inside::Relies => script.relies = true,
            Inside::Arrays => script.array(),
            Inside::Lists => script.list(),
            Inside::Interactive => script.interactive = true,
        }
    }
    Ok(())
}

fn read_hidden(hidden: Hidden, depth: usize, script: &mut Script) {
    match hidden {
        Hidden::Line(line) => script.read(&line, Dialect::Bash, depth),
        Hidden::Expanded(text) => script.read_expanded(&text, depth),
        Hidden::Startup => script.startup = true,
    }
}
