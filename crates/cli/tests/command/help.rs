//! Help: small enough for any terminal, and its examples work.

use crate::scratch::{Ended, Scratch};
use std::path::Path;
use std::process::{Command, Stdio};

const COMMANDS: &[&[&str]] = &[
    &[],
    &["call"],
    &["tools"],
    &["mcp"],
    &["init"],
    &["config"],
    &["config", "show"],
    &["config", "schema"],
    &["completions"],
    &["demo"],
];

fn help(command: &[&str]) -> String {
    let mut args = command.to_vec();
    args.push("--help");
    let ended = Scratch::new().haft(&args);
    assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""), "{ended:?}");
    ended.out
}

fn examples(help: &str) -> Vec<&str> {
    help.lines()
        .skip_while(|line| *line != "Examples:")
        .skip(1)
        .map(str::trim)
        .collect()
}

#[test]
fn every_help_fits_a_terminal() {
    for command in COMMANDS {
        let help = help(command);
        let first = help.lines().next().unwrap();
        assert!(
            first.ends_with('.') && !first.trim_end_matches('.').contains(". "),
            "{first}"
        );
        // One line is the prompt's.
        assert!(help.lines().count() <= 23, "{help}");
        assert!(
            help.lines().all(|line| line.chars().count() <= 80),
            "{help}"
        );
        assert_eq!(examples(&help).len(), 2, "{help}");
    }
}

#[test]
fn every_command_is_in_the_list_of_this_test() {
    let help = help(&[]);
    let listed = help
        .lines()
        .skip_while(|line| !line.starts_with("Usage"))
        .skip(2)
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.split_whitespace().next());
    for name in listed {
        assert!(
            COMMANDS
                .iter()
                .any(|command| command.first() == Some(&name)),
            "{name}"
        );
    }
}

#[test]
fn every_example_works() {
    let folder = Path::new(env!("CARGO_BIN_EXE_haft")).parent().unwrap();
    for command in COMMANDS {
        let scratch = Scratch::new();
        let help = help(command);
        for example in examples(&help) {
            let output = Command::new("/bin/sh")
                .args(["-c", example])
                .current_dir(scratch.work(""))
                .env_clear()
                .env("HOME", scratch.home(""))
                .env("PATH", format!("{}:/usr/bin:/bin", folder.display()))
                .stdin(Stdio::null())
                .output()
                .unwrap();
            let ended = Ended::from(output);
            if ended.err.contains("haft mcp is not part of this build") {
                continue;
            }
            assert_eq!(ended.code, Some(0), "{example}: {ended:?}");
        }
    }
}

#[test]
fn alone_it_says_what_to_do() {
    let ended = Scratch::new().haft(&[]);
    assert_eq!(ended.code, Some(2));
    for step in ["haft demo", "haft call", "haft mcp"] {
        assert!(ended.err.contains(step), "{ended:?}");
    }
}

#[test]
fn the_version_is_one_line() {
    let ended = Scratch::new().haft(&["--version"]);
    assert_eq!(ended.out, format!("haft {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn completions_know_the_commands() {
    let scratch = Scratch::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let ended = scratch.haft(&["completions", shell]);
        assert_eq!(ended.code, Some(0));
        assert!(
            ended.out.contains("config") && ended.out.contains("sandbox"),
            "{shell}"
        );
    }
    scratch.file("haft.bash", scratch.haft(&["completions", "bash"]).out);
    let checked = Command::new("/bin/bash")
        .arg("-n")
        .arg(scratch.work("haft.bash"))
        .status()
        .unwrap();
    assert!(checked.success());
    assert_eq!(scratch.haft(&["completions", "bsh"]).code, Some(2));
}
