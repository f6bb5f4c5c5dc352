//! Tools cannot write anything that decides about the next session: every possible
//! configuration file, and haft's own folders.

use crate::scratch::{Ended, Scratch};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

const LOOSE: &str = "content=sandbox: off";

fn refused(ended: &Ended) {
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.out.contains("protected"), "{ended:?}");
}

/// The home folder of the account that runs the tests, whatever `HOME` says.
fn account_home() -> PathBuf {
    let uid = rustix::process::getuid().as_raw().to_string();
    let passwd = std::fs::read_to_string("/etc/passwd").unwrap();
    let home = passwd.lines().find_map(|line| {
        let fields: Vec<&str> = line.split(':').collect();
        (fields[2] == uid).then(|| PathBuf::from(fields[5]))
    });
    home.unwrap()
}

fn path(path: &Path) -> String {
    format!("path={}", path.display())
}

#[test]
fn a_named_file_is_not_written() {
    let scratch = Scratch::new();
    scratch.file("my.yaml", "sandbox: workspace\n");
    scratch.file("deep/real.yaml", "sandbox: workspace\n");
    symlink("deep/real.yaml", scratch.work("between.yaml")).unwrap();
    symlink("../between.yaml", scratch.work("deep/link.yaml")).unwrap();
    for (config, written) in [
        ("my.yaml", "my.yaml"),
        ("./deep/../my.yaml", "my.yaml"),
        ("deep/link.yaml", "deep/link.yaml"),
        ("deep/link.yaml", "between.yaml"),
        ("deep/link.yaml", "deep/real.yaml"),
    ] {
        let call = ["call", "write", &format!("path={written}"), LOOSE];
        for more in [&[][..], &["--sandbox", "off"]] {
            let args = [&call[..], more].concat();
            refused(&scratch.haft_with(&[("HAFT_CONFIG", config)], &args));
            refused(&scratch.haft(&[&["--config", config][..], &args].concat()));
        }
    }
    for name in ["my.yaml", "deep/real.yaml"] {
        let text = std::fs::read_to_string(scratch.work(name)).unwrap();
        assert_eq!(text, "sandbox: workspace\n");
    }
    // It can still be read, and only the user's list is shown.
    let flags = ["--config", "my.yaml"];
    assert_eq!(
        scratch.shown("tools.protect", &[], &flags).0,
        serde_json::json!([])
    );
    let read = scratch.haft(&["--config", "my.yaml", "call", "read", "path=my.yaml"]);
    assert_eq!(read.code, Some(0), "{read:?}");
}

#[test]
fn the_target_of_the_users_file_is_not_written() {
    let scratch = Scratch::new();
    scratch.user("");
    let user = scratch.home(".config/haft/haft.yaml");
    std::fs::remove_file(&user).unwrap();
    symlink(scratch.work("dotfile.yaml"), &user).unwrap();
    // Whether it is there or would be new.
    let call = ["call", "write", "path=dotfile.yaml", LOOSE];
    refused(&scratch.haft(&call));
    assert!(!scratch.work("dotfile.yaml").exists());
    scratch.file("dotfile.yaml", "sandbox: workspace\n");
    refused(&scratch.haft(&call));
    let edit = [
        "call",
        "edit",
        "path=dotfile.yaml",
        "old_text=workspace",
        "new_text=off",
    ];
    refused(&scratch.haft(&edit));
    let free = ["call", "write", "path=other.yaml", LOOSE];
    assert_eq!(scratch.haft(&free).code, Some(0));
}

#[test]
fn the_file_of_the_folder_it_was_started_in_is_not_written() {
    let scratch = Scratch::new();
    scratch.file("sub/x", "");
    scratch.user(&format!(
        "tools: {{work_dir: {}/sub}}\n",
        scratch.work("").display()
    ));
    let call = [
        "call",
        "write",
        "path=../haft.yaml",
        LOOSE,
        "--sandbox",
        "off",
    ];
    refused(&scratch.haft(&call));
    assert!(!scratch.work("haft.yaml").exists());
}

#[test]
fn the_own_folders_are_closed_wherever_the_variables_point() {
    let scratch = Scratch::new();
    let elsewhere = scratch.home("xdg").display().to_string();
    let home = scratch.home("").display().to_string();
    let pointing = [
        ("XDG_CONFIG_HOME", elsewhere.as_str()),
        ("XDG_STATE_HOME", elsewhere.as_str()),
    ];
    let file = scratch.home(".config/haft/haft.yaml");
    let state = scratch.home(".local/state/haft/x");
    for variables in [&pointing[..], &[]] {
        for file in [&file, &state] {
            let write = ["--dir", &home, "call", "write", &path(file), LOOSE];
            refused(&scratch.haft_with(variables, &write));
            let write = [&write[..], &["--sandbox", "off"]].concat();
            refused(&scratch.haft_with(variables, &write));
            assert!(!file.exists());
        }
    }
    // Those of the account too, if the variable names another home.
    for below in [".config/haft/none", ".local/state/haft/none"] {
        let file = path(&account_home().join(below));
        for variables in [&pointing[..], &[]] {
            let ended = scratch.haft_with(variables, &["call", "read", &file]);
            assert_eq!(ended.code, Some(1), "{ended:?}");
            assert!(ended.out.contains("secret place"), "{ended:?}");
        }
    }
}

#[test]
fn without_a_home_the_accounts_is_used() {
    let scratch = Scratch::new();
    let home = account_home();
    for value in [None, Some(""), Some("relative"), Some(".")] {
        let haft = |args: &[&str]| {
            let mut command = scratch.command(args);
            // The account belongs to the user who runs the tests; its files are off
            // limits.
            command
                .env("XDG_CONFIG_HOME", scratch.home("xdg"))
                .env("XDG_STATE_HOME", scratch.home("xdg"));
            match value {
                Some(value) => command.env("HOME", value),
                None => command.env_remove("HOME"),
            };
            Ended::from(command.output().unwrap())
        };
        for below in [".config/haft/none", ".local/state/haft/none", ".ssh/none"] {
            let ended = haft(&["call", "read", &path(&home.join(below))]);
            assert_eq!(ended.code, Some(1), "{value:?} {ended:?}");
            assert!(ended.out.contains("secret place"), "{value:?} {ended:?}");
        }
        // `~` refers to the same folder.
        scratch.file("my.yaml", "tools: {protect: [~/kept]}\n");
        let ended = haft(&["--config", "my.yaml", "config", "show", "--json"]);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let all: serde_json::Value = serde_json::from_str(&ended.out).unwrap();
        assert_eq!(
            all["tools.protect"]["value"][0],
            home.join("kept").to_str().unwrap()
        );
    }
}
