//! Tools get a home folder, the root or a system folder only if it is named.

use crate::scratch::{Ended, Scratch};
use std::path::Path;

/// Commands that give tools the work folder.
const GIVING: [&[&str]; 6] = [
    &["call", "ls"],
    &["call", "bash", "command=echo x > .bashrc"],
    &["mcp"],
    &["mcp", "--http", "0"],
    &["run", "Go"],
    &["run", "Go", "--json"],
];

fn haft_in(scratch: &Scratch, folder: &Path, args: &[&str]) -> Ended {
    let mut command = scratch.command(args);
    Ended::from(command.current_dir(folder).output().unwrap())
}

fn is_refused(ended: &Ended, folder: &Path) {
    assert_eq!(ended.code, Some(2), "{}: {ended:?}", folder.display());
    assert_eq!(ended.out, "", "{}", folder.display());
    assert!(
        ended.err.contains("refusing to use ") && ended.err.contains("--dir"),
        "{}: {ended:?}",
        folder.display()
    );
}

#[test]
fn tools_do_not_get_a_home_or_the_system_unasked() {
    let scratch = Scratch::new();
    let link = scratch.work("link");
    std::os::unix::fs::symlink(scratch.home(""), &link).unwrap();
    let own = std::path::PathBuf::from("/root");
    for folder in [
        scratch.home("").as_path(),
        &link,
        &scratch.work("../home"),
        Path::new("/"),
        Path::new("/etc"),
        Path::new("/usr"),
        Path::new("/tmp"),
        Path::new("/home"),
        own.as_path(),
    ] {
        // An ordinary user cannot enter all of them.
        if std::fs::read_dir(folder).is_err() {
            continue;
        }
        for args in GIVING {
            is_refused(&haft_in(&scratch, folder, args), folder);
        }
    }
    assert!(!scratch.home(".bashrc").exists());
    assert!(!scratch.home(".local/state/haft/sessions.db").exists());
}

/// They are started to list their tools, before any client gets them.
#[test]
fn programs_that_are_only_asked_for_their_tools_cannot_write_a_home() {
    let scratch = Scratch::new();
    scratch.file(
        "plugin.py",
        "import os\nfor name in ('.bashrc', 'x'):\n    try: open(os.path.join(os.environ['HOME'], name), 'w')\n    except OSError: pass\n",
    );
    let plugin = scratch.work("plugin.py");
    let plugin = plugin.display();
    scratch.user(&format!(
        "tools: {{plugins: [{{path: python3, args: [{plugin}]}}], mcp: {{m: {{command: python3, args: [{plugin}]}}}}}}\n"
    ));
    for args in [
        &["tools"][..],
        &["why", "bash", "command=ls"],
        &["mcp", "test", "m"],
    ] {
        haft_in(&scratch, &scratch.home(""), args);
        for name in [".bashrc", "x"] {
            assert!(!scratch.home(name).exists(), "{args:?} wrote {name}");
        }
    }
}

#[test]
fn a_named_folder_is_allowed() {
    let scratch = Scratch::new();
    let home = scratch.home("");
    let path = home.to_str().unwrap().to_owned();
    let works = |ended: Ended| assert_eq!(ended.code, Some(0), "{ended:?}");
    works(haft_in(&scratch, &home, &["call", "ls", "--dir", "."]));
    works(haft_in(&scratch, &home, &["call", "ls", "--dir", &path]));
    works(scratch.haft(&["call", "ls", "--dir", "/"]));
    works(scratch.haft_with(&[("HAFT_DIR", &path)], &["call", "ls"]));
    scratch.file("mine.yaml", format!("tools: {{work_dir: {path}}}\n"));
    works(scratch.haft(&["call", "ls", "--config", "mine.yaml"]));
    scratch.user("tools: {work_dir: ~/}\n");
    works(scratch.haft(&["call", "ls"]));
    works(haft_in(&scratch, &home, &["call", "ls"]));
}

/// The user must name it, not a project.
#[test]
fn a_project_cannot_name_it() {
    let scratch = Scratch::new();
    let above = scratch.home("").parent().unwrap().to_owned();
    std::fs::write(above.join("haft.yaml"), "tools: {work_dir: home}\n").unwrap();
    is_refused(&haft_in(&scratch, &above, &["call", "ls"]), &above);
    // A project inside such a folder is not refused.
    std::fs::create_dir(scratch.home("project")).unwrap();
    let ended = haft_in(&scratch, &scratch.home("project"), &["call", "ls"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let temp = tempfile::tempdir_in("/tmp").unwrap();
    let ended = haft_in(&scratch, temp.path(), &["call", "ls"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
}

#[test]
fn looking_works_everywhere() {
    let scratch = Scratch::new();
    for folder in [&scratch.home(""), Path::new("/")] {
        for args in [
            &["tools"][..],
            &["tools", "bash"],
            &["why", "ls"],
            &["doctor"],
            &["help"],
            &["--version"],
            &["trust"],
            &["config", "show"],
            &["sessions", "list"],
            &["mcp", "list"],
        ] {
            let ended = haft_in(&scratch, folder, args);
            assert_eq!(ended.code, Some(0), "{args:?} {ended:?}");
        }
    }
}
