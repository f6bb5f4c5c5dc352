//! Models copy paths from the output of commands. In a tree of absolute paths they refer to
//! the real files, and the prompt explains the folders.

use crate::session::Bed;
use serde_json::{Value, json};

const DEEP: &str = "tools: {toolset: deepagents}\n";

impl Bed {
    /// The real path of a file in the work folder, as a command prints it.
    fn real(&self, below: &str) -> String {
        let work = std::fs::canonicalize(self.work("")).unwrap();
        work.join(below).to_string_lossy().into_owned()
    }

    #[track_caller]
    fn deep(&self, backend: &str, tool: &str, arguments: &Value) -> crate::session::Answer {
        let config = self.config(&format!("{DEEP}backend: {backend}\n"));
        self.call(&["--config", &config], tool, arguments)
    }

    fn prompt(&self, backend: &str, flags: &[&str]) -> String {
        let config = self.config(&format!("{DEEP}{backend}\n"));
        let args = [&["--config", &config, "tools", "--prompt"], flags].concat();
        let output = self.command(&args).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    }
}

#[test]
fn a_path_through_a_link_to_the_work_folder_means_the_file_in_it() {
    for by_shell in [false, true] {
        let bed = Bed::new();
        let link = bed.work("").with_extension("link");
        std::os::unix::fs::symlink(bed.work(""), &link).unwrap();
        let file = link.join("src/new.py").to_string_lossy().into_owned();
        let config = bed.config(&format!("{DEEP}backend: filesystem\n"));
        let dir = link.to_string_lossy().into_owned();
        let mut args = vec!["--config", &config, "call", "write_file"];
        if !by_shell {
            args.extend(["--dir", &dir]);
        }
        let mut command = bed.command(&args);
        command.env("PWD", &link).current_dir(&link);
        if !by_shell {
            command.env_remove("PWD").current_dir("/");
        }
        let output = command
            .args([&format!("file_path={file}"), "content=1"])
            .output()
            .unwrap();
        assert!(output.status.success(), "{by_shell} {output:?}");
        assert_eq!(std::fs::read(bed.work("src/new.py")).unwrap(), b"1");
        let entries = std::fs::read_dir(bed.work("")).unwrap().count();
        assert_eq!(entries, 1, "nothing else was made");
        std::fs::remove_file(link).unwrap();
    }
}

#[test]
fn a_path_of_the_real_work_folder_means_the_file_in_it() {
    let bed = Bed::new();
    let new = json!({ "file_path": bed.real("src/new.py"), "content": "old\n" });
    let written = bed.deep("filesystem", "write_file", &new);
    assert_eq!(
        written.json(),
        json!({ "status": "success", "path": "/src/new.py" })
    );
    assert_eq!(std::fs::read(bed.work("src/new.py")).unwrap(), b"old\n");
    let entries = std::fs::read_dir(bed.work("")).unwrap().count();
    assert_eq!(entries, 1, "nothing else was made");

    let there = json!({ "file_path": bed.real("src/new.py") });
    let read = bed.deep("filesystem", "read_file", &there).json();
    assert_eq!(read["content"], "     1\told");
    let edit =
        json!({ "file_path": bed.real("src/new.py"), "old_string": "old", "new_string": "new" });
    let edited = bed.deep("filesystem", "edit_file", &edit).json();
    assert_eq!(edited["path"], "/src/new.py");
    let listed = bed
        .deep("filesystem", "ls", &json!({ "path": bed.real("src/") }))
        .json();
    assert_eq!(listed["entries"][0]["path"], "/src/new.py");
    let root = bed
        .deep("filesystem", "ls", &json!({ "path": bed.real("") }))
        .json();
    assert_eq!(root["entries"][0]["path"], "/src");
    for arguments in [
        json!({ "pattern": "*.py", "path": bed.real("src") }),
        json!({ "pattern": bed.real("**/*.py") }),
    ] {
        let found = bed.deep("filesystem", "glob", &arguments).json();
        assert_eq!(found["entries"][0]["path"], "/src/new.py", "{arguments}");
    }
    for arguments in [
        json!({ "pattern": "new", "path": bed.real("src") }),
        json!({ "pattern": "new", "glob": bed.real("src/*.py") }),
    ] {
        let found = bed.deep("filesystem", "grep", &arguments).json();
        assert_eq!(found["result"], "/src/new.py", "{arguments}");
    }
    let deleted = bed.deep("filesystem", "delete_file", &there);
    assert_eq!(
        deleted.json(),
        json!({ "status": "success", "path": "/src/new.py" })
    );
    assert!(!bed.work("src/new.py").exists());
}

#[test]
fn a_folder_of_that_name_in_the_tree_comes_first() {
    let bed = Bed::new();
    let inside = bed.real("");
    let inside = inside.trim_matches('/');
    bed.file(&format!("{inside}/here.txt"), "inside\n");
    let read = bed.deep(
        "filesystem",
        "read_file",
        &json!({ "file_path": bed.real("here.txt") }),
    );
    assert_eq!(read.json()["content"], "     1\tinside");
}

#[test]
fn rules_about_a_path_hold_however_it_is_written() {
    let bed = Bed::new();
    bed.file("secret/key", "s3cr3t");
    let rule = format!("{DEEP}policy: [{{deny: read_file, path: \"secret/**\"}}]\n");
    let config = bed.config(&rule);
    for path in ["/secret/key".to_owned(), bed.real("secret/key")] {
        let read = bed.call(
            &["--config", &config],
            "read_file",
            &json!({ "file_path": path }),
        );
        assert!(read.is_error && !read.text.contains("s3cr3t"), "{read:?}");
    }
    let written = bed.deep(
        "filesystem",
        "write_file",
        &json!({ "file_path": bed.real("../outside/x"), "content": "" }),
    );
    assert!(
        written.text.contains("Path traversal not allowed"),
        "{written:?}"
    );
}

#[test]
fn files_that_are_not_on_the_disk_are_not_written_by_paths_of_the_disk() {
    let bed = Bed::new();
    let config = bed.config(&format!("{DEEP}backend: state\n"));
    let mut session = bed.session(&["--config", &config]);
    let note = json!({ "file_path": bed.real("notes.md"), "content": "x" });
    let refused = session.call("write_file", &note);
    assert!(refused.is_error, "{refused:?}");
    let message = refused.json()["message"].as_str().unwrap().to_owned();
    assert_eq!(
        message,
        format!(
            "Path is outside the file tools' tree: {}",
            bed.real("notes.md")
        )
    );
    assert!(
        refused.json()["hint"]
            .as_str()
            .unwrap()
            .contains("start from /"),
        "{refused:?}"
    );
    // Without commands the model cannot know the folder, so the path is a virtual one.
    let config = bed.config(&format!("{DEEP}backend: state\nexecution: none\n"));
    let mut session = bed.session(&["--config", &config]);
    session.done("write_file", &note);
}

#[test]
fn the_prompt_says_where_files_are_and_what_commands_see() {
    let bed = Bed::new();
    let work = bed.real("");
    let work = work.trim_end_matches('/');
    let prompt = bed.prompt("backend: filesystem", &[]);
    assert!(
        prompt.contains("- Paths are absolute, and / is the work folder."),
        "{prompt}"
    );
    assert!(
        prompt.contains("- execute starts in the folder that the other tools call /: their /src/a.py is src/a.py in a command."),
        "{prompt}"
    );
    assert!(!prompt.contains(work), "{prompt}");
    let prompt = bed.prompt("backend: state", &[]);
    assert!(
        prompt.contains(
            "- execute starts in the work folder, on the disk of this machine. The other tools do not see it."
        ),
        "{prompt}"
    );
    assert!(
        prompt.contains("- Paths are absolute and begin with /. There is no `..`"),
        "{prompt}"
    );
    assert!(!prompt.contains("/ is the work folder"), "{prompt}");
    assert!(
        prompt.contains("- Files below / are not on the disk: commands cannot see them."),
        "{prompt}"
    );
    let prompt = bed.prompt("backend: {routes: {/memories: store, /: filesystem}}", &[]);
    assert!(
        prompt.contains("Files below /memories are not on the disk"),
        "{prompt}"
    );
    assert!(
        prompt.contains("the other tools call /: their /src/a.py"),
        "{prompt}"
    );
    let prompt = bed.prompt("backend: {kind: filesystem, virtual: false}", &[]);
    assert!(
        prompt.contains(&format!("{work} is the work folder."))
            && prompt.contains(&format!(
                "- execute starts in {work}; paths mean the same in a command."
            )),
        "{prompt}"
    );
    for (backend, flags) in [
        ("execution: none", &[][..]),
        ("backend: state", &["--preset", "readonly"]),
    ] {
        let prompt = bed.prompt(backend, flags);
        assert!(!prompt.contains("execute"), "{prompt}");
    }
}

#[test]
fn a_file_is_deleted_by_the_rules_of_writing() {
    let bed = Bed::new();
    bed.file("a.txt", "a");
    bed.file("dir/b.txt", "b");
    bed.file("kept.txt", "k");
    std::os::unix::fs::symlink("kept.txt", bed.work("link")).unwrap();
    let config = bed.config("tools: {toolset: deepagents, protect: [dir]}\n");
    let mut session = bed.session(&["--config", &config]);
    let mut delete = |path: &str| session.call("delete_file", &json!({ "file_path": path }));
    assert_eq!(
        delete("/a.txt").json(),
        json!({ "status": "success", "path": "/a.txt" })
    );
    let gone = delete("/a.txt");
    assert_eq!(gone.json()["message"], "Error: file not found: /a.txt");
    assert!(!delete("/link").is_error && bed.work("kept.txt").exists());
    let folder = delete("/dir");
    assert!(folder.is_error && bed.work("dir").exists(), "{folder:?}");
    let protected = delete("/dir/b.txt");
    assert_eq!(
        protected.json()["message"],
        "path is in a protected directory: /dir/b.txt"
    );
    assert!(bed.work("dir/b.txt").exists());
    drop(session);
    let flags = ["--config", &config, "--sandbox", "read-only"];
    let refused = bed.call(&flags, "delete_file", &json!({ "file_path": "/kept.txt" }));
    assert!(
        refused.is_error && bed.work("kept.txt").exists(),
        "{refused:?}"
    );
    for backend in ["state", "store"] {
        let config = bed.config(&format!("{DEEP}backend: {backend}\n"));
        let mut session = bed.session(&["--config", &config]);
        session.done(
            "write_file",
            &json!({ "file_path": "/x.md", "content": "x" }),
        );
        session.done("delete_file", &json!({ "file_path": "/x.md" }));
        let listed = session.done("ls", &json!({ "path": "/" })).json();
        assert_eq!(listed["entries"], json!([]), "{backend}");
    }
}

#[test]
fn a_command_has_the_time_that_it_asks_for() {
    let bed = Bed::new();
    let slow = json!({ "command": "echo begun; sleep 60", "timeout": 0.3 });
    let ended = bed.deep("filesystem", "execute", &slow).json();
    assert_eq!(ended["exit_code"], -1);
    assert_eq!(ended["output"], "Command timed out after 0.3s\nbegun\n");
    // Zero and negative values mean the default.
    let quick = json!({ "command": "sleep 0.2; echo done", "timeout": 0 });
    assert_eq!(
        bed.deep("filesystem", "execute", &quick).json()["output"],
        "done\n"
    );
    let config = bed.config("tools: {toolset: deepagents, timeout: 1}\n");
    let long = json!({ "command": "sleep 60", "timeout": 50 });
    let ended = bed.call(&["--config", &config], "execute", &long).json();
    assert!(
        ended["output"]
            .as_str()
            .unwrap()
            .starts_with("Command timed out after"),
        "{ended}"
    );
}

#[test]
fn advice_names_only_tools_that_the_preset_has() {
    let bed = Bed::new();
    let config = bed.config("tools: {toolset: standard}\n");
    let mut session = bed.session_of(&["--config", &config], "coding");
    let missing = session.call("read", &json!({ "path": "none.txt" }));
    assert!(
        missing
            .text
            .ends_with("Use bash with ls or find to see what is there."),
        "{missing:?}"
    );
    let folder = session.call("read", &json!({ "path": "." }));
    assert!(
        folder.text.ends_with("Use bash with ls to list it."),
        "{folder:?}"
    );
    let mut session = bed.session_of(&["--config", &config], "readonly");
    let missing = session.call("read", &json!({ "path": "none.txt" }));
    assert!(!missing.text.contains("bash"), "{missing:?}");
}
