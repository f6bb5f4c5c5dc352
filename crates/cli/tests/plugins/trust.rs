//! Nothing of a project runs before the user has trusted exactly that.

use crate::bed::{Bed, Ended, within};
use serde_json::json;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::time::Duration;

/// A project with a tool of every kind, each of which leaves a canary when it runs.
fn hostile() -> Bed {
    let bed = Bed::new();
    let canary = |name: &str| format!("#!/bin/bash\ntouch canary-{name}\n");
    let plugin = format!(
        "{}while read -r line; do case $line in *describe*) echo '{{\"name\":\"evil_plugin\",\"description\":\"d\"}}';; *) echo '{{\"content\":\"evil '$1'\"}}';; esac; done\n",
        canary("plugin")
    );
    bed.program("work/evil_plugin", plugin);
    bed.program(
        "work/tools/evil_program",
        format!("{}echo ran\n", canary("program")),
    );
    bed.program(
        "work/tools/paged",
        format!("{}echo paged\n", canary("paged")),
    );
    bed.write("work/tools/paged.md", "Has a page.");
    // All that Lua can do at load time is fail with a message.
    bed.write("work/tools/evil_lua.lua", "error('CANARY OF LUA')");
    bed.project(&json!({ "tools": { "plugins": [{ "path": "./evil_plugin", "args": ["one"] }] } }));
    bed
}

const NOTHING: [PathBuf; 0] = [];

fn canaries(bed: &Bed) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(bed.work("")).unwrap().flatten();
    let names = entries.map(|entry| entry.path());
    names
        .filter(|path| path.to_string_lossy().contains("canary-"))
        .collect()
}

#[test]
fn nothing_runs_before_it_is_trusted() {
    let bed = hostile();
    for args in [
        &["tools"][..],
        &["tools", "--json"],
        &["tools", "--prompt"],
        &["call", "bash", "echo=x"],
        &["call", "evil_plugin"],
        &["call", "evil_program"],
        &["call", "paged"],
        &["why", "bash", "{\"command\":\"ls\"}"],
        &["doctor"],
        &["config", "show"],
        &["trust"],
        &["--help"],
        &["help", "tools"],
        &[],
    ] {
        let ran = bed.haft(args);
        assert_eq!(canaries(&bed), NOTHING, "{args:?}");
        assert!(!ran.err.contains("CANARY OF LUA"), "{args:?}: {ran:?}");
    }
    let mut session = bed.session(&[]);
    let names: Vec<String> = session
        .tools()
        .iter()
        .map(|tool| tool["name"].to_string())
        .collect();
    assert!(
        !names
            .iter()
            .any(|name| name.contains("evil") || name.contains("paged")),
        "{names:?}"
    );
    session.reply_text("bash", &json!({ "command": "echo hello" }));
    let beside = session.beside();
    for item in [
        "evil_plugin (plugin)",
        "evil_program (program)",
        "paged (program)",
        "evil_lua (lua)",
    ] {
        assert!(beside.contains(item), "{item}: {beside}");
    }
    drop(session);
    assert_eq!(canaries(&bed), NOTHING);
    assert_eq!(bed.haft(&["call", "evil_plugin"]).code, Some(2));
}

#[test]
fn without_a_terminal_nothing_becomes_trusted() {
    let bed = hostile();
    let ran = bed.haft(&["trust"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(
        ran.err.contains("cannot prompt without a terminal") && ran.err.contains("pass `--yes`"),
        "{ran:?}"
    );
    // It was shown, with what would run.
    for shown in [
        "plugin evil_plugin (new",
        "program evil_program (new",
        "lua evil_lua (new",
        "tools/evil_lua.lua",
    ] {
        assert!(ran.out.contains(shown), "{shown}: {ran:?}");
    }
    assert!(!bed.path("home/.local/state/haft/trust.json").exists());
    let mut piped = bed.command(&["trust"]);
    piped.stdin(std::fs::File::open(bed.write("yes", "y\ny\n")).unwrap());
    assert_eq!(ran_code(&mut piped), Some(2));
    assert_eq!(bed.haft(&["call", "evil_program"]).code, Some(2));
    assert_eq!(canaries(&bed), NOTHING);
}

fn ran_code(command: &mut std::process::Command) -> Option<i32> {
    Ended::of(command).code
}

#[test]
fn trusted_tools_run_until_they_change() {
    let bed = hostile();
    bed.done(&["trust", "--yes"]);
    assert_eq!(bed.reply_text("evil_plugin", &json!({})), "evil one");
    assert_eq!(bed.reply_text("evil_program", &json!({})), "ran");
    assert_eq!(bed.reply_text("paged", &json!({})), "paged");
    let again = bed.done(&["trust"]);
    assert!(
        again.out.contains("All of it is already trusted"),
        "{again:?}"
    );

    // The arguments of a plugin.
    bed.project(&json!({ "tools": { "plugins": [{ "path": "./evil_plugin", "args": ["two"] }] } }));
    let ran = bed.haft(&["call", "evil_plugin"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.err.contains("evil_plugin (plugin, changed)"), "{ran:?}");
    assert_eq!(bed.reply_text("evil_program", &json!({})), "ran");
    let shown = bed.done(&["trust", "--yes"]);
    assert!(
        shown.out.contains("plugin evil_plugin (changed"),
        "{shown:?}"
    );
    assert_eq!(bed.reply_text("evil_plugin", &json!({})), "evil two");

    // Its environment, its file, a program, the page of a program, a module.
    bed.project(&json!({ "tools": { "plugins": [{ "path": "./evil_plugin", "args": ["two"], "env": { "A": "b" } }] } }));
    assert!(bed.names().1.contains("evil_plugin (plugin, changed)"));
    bed.done(&["trust", "--yes"]);
    for (file, item) in [
        ("evil_plugin", "evil_plugin (plugin, changed)"),
        ("tools/evil_program", "evil_program (program, changed)"),
        ("tools/paged.md", "paged (program, changed)"),
        ("tools/evil_lua.lua", "evil_lua (lua, changed)"),
    ] {
        let path = bed.work(file);
        let content = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, format!("{content}\n# changed\n")).unwrap();
        let (_, beside) = bed.names();
        assert!(beside.contains(item), "{item}: {beside}");
        std::fs::write(&path, content).unwrap();
        let (_, beside) = bed.names();
        assert!(!beside.contains("not run"), "{item}: {beside}");
    }

    // A new page, a new tool.
    bed.write("work/tools/evil_program.md", "---\ndescription: new\n---\n");
    bed.write("work/tools/new.lua", "return {}");
    let (_, beside) = bed.names();
    assert!(
        beside.contains("evil_program (program, changed)") && beside.contains("new (lua)"),
        "{beside}"
    );
}

#[test]
fn the_script_that_a_plugin_is_belongs_to_it() {
    let bed = Bed::new();
    let script = "import sys\nfor line in sys.stdin:\n  print('{\"name\":\"one\",\"description\":\"d\"}' if 'describe' in line else '{\"content\":\"ran\"}', flush=True)\n";
    bed.write("work/plugins/tool.py", script);
    bed.project(
        &json!({ "tools": { "plugins": [{ "path": "python3", "args": ["./plugins/tool.py"] }] } }),
    );
    bed.done(&["trust", "--yes"]);
    assert_eq!(bed.reply_text("one", &json!({})), "ran");
    bed.write("work/plugins/tool.py", format!("{script}# more\n"));
    assert_eq!(bed.haft(&["call", "one"]).code, Some(2));
    let (_, beside) = bed.names();
    assert!(beside.contains("tool (plugin, changed)"), "{beside}");
}

#[test]
fn trust_for_once_and_trust_taken_back() {
    let bed = hostile();
    let ran = bed.done(&["--trust", "call", "evil_program"]);
    assert_eq!(ran.out, "ran\n");
    assert!(!bed.path("home/.local/state/haft/trust.json").exists());
    assert_eq!(bed.haft(&["call", "evil_program"]).code, Some(2));
    bed.done(&["trust", "--yes"]);
    let file = bed.path("home/.local/state/haft/trust.json");
    let mode = std::fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    bed.done(&["call", "evil_program"]);
    let reply = |args: &[&str]| bed.done(args).out;
    assert!(reply(&["trust", "--revoke"]).contains("no longer trusted"));
    assert!(reply(&["trust", "--revoke"]).contains("was not trusted"));
    let ran = bed.haft(&["call", "evil_program"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
}

#[test]
fn programs_swapped_during_a_session_are_not_started() {
    let bed = hostile();
    let plugin = "#!/bin/bash\nwhile read -r line; do case $line in *describe*) echo '{\"name\":\"one\",\"description\":\"d\"}';; *crash*) exit 1;; *) echo '{\"content\":\"good\"}';; esac; done\n";
    bed.program("work/evil_plugin", plugin);
    bed.done(&["trust", "--yes"]);
    let mut session = bed.session(&[]);
    assert_eq!(session.reply_text("one", &json!({})), "good");
    bed.program("work/evil_plugin", plugin.replace("good", "SWAPPED"));
    bed.program("work/tools/evil_program", "#!/bin/bash\necho SWAPPED\n");
    assert!(
        session
            .call("one", &json!({ "how": "crash" }))
            .text
            .contains("exited (code 1)")
    );
    for tool in ["one", "evil_program"] {
        let answer = session.call(tool, &json!({}));
        assert!(
            answer.is_error && !answer.text.contains("SWAPPED"),
            "{tool}: {answer:?}"
        );
        assert!(
            answer.text.contains("it changed since it was trusted"),
            "{tool}: {answer:?}"
        );
    }
    bed.program("work/evil_plugin", plugin);
    assert_eq!(session.reply_text("one", &json!({})), "good");
}

#[test]
fn files_that_a_model_writes_are_not_loaded() {
    let bed = hostile();
    bed.done(&["trust", "--yes"]);
    let mut session = bed.session(&[]);
    let new = "return {name = 'new', description = 'd', input_schema = {type = 'object'}, execute = function() return 'ran' end}";
    session.call("write", &json!({ "path": "tools/new.lua", "content": new }));
    let config = session.call(
        "write",
        &json!({ "path": "haft.yaml", "content": "tools: {}" }),
    );
    assert!(config.is_error, "{config:?}");
    let names = session.tools();
    assert!(!names.iter().any(|tool| tool["name"] == "new"));
    drop(session);
    assert_eq!(bed.haft(&["call", "new"]).code, Some(2));
}

#[test]
fn a_damaged_trust_file_grants_no_trust_and_is_kept() {
    for damaged in [
        "{\"projects\": {",
        "[1, 2]",
        "\"text\"",
        "",
        "{\"projects\": [3]}",
        "\u{0}\u{1}",
    ] {
        let bed = hostile();
        let file = bed.write("home/.local/state/haft/trust.json", damaged);
        assert_eq!(
            bed.haft(&["call", "evil_program"]).code,
            Some(2),
            "{damaged:?}"
        );
        let ran = bed.haft(&["trust", "--yes"]);
        assert_eq!(ran.code, Some(1), "{damaged:?}: {ran:?}");
        assert!(ran.err.contains("is damaged"), "{damaged:?}: {ran:?}");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), damaged);
        assert_eq!(canaries(&bed), NOTHING, "{damaged:?}");
    }
}

#[test]
fn trust_of_one_project_is_not_that_of_another() {
    let bed = hostile();
    bed.done(&["trust", "--yes"]);
    let copy = bed.path("copy");
    let mut command = std::process::Command::new("cp");
    assert!(
        command
            .arg("-r")
            .arg(bed.work(""))
            .arg(&copy)
            .status()
            .unwrap()
            .success()
    );
    let there = copy.to_string_lossy().into_owned();
    let ran = bed.haft(&["--dir", &there, "call", "evil_program"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    // The same through another path to the folder.
    symlink(bed.work(""), bed.path("link")).unwrap();
    let link = bed.path("link").to_string_lossy().into_owned();
    bed.done(&["--dir", &link, "call", "evil_program"]);
}

#[test]
fn trust_at_once_for_two_projects_keeps_both() {
    let bed = hostile();
    let copies: Vec<String> = (0..6)
        .map(|n| {
            let copy = bed.path(&format!("copy{n}"));
            let mut command = std::process::Command::new("cp");
            assert!(
                command
                    .arg("-r")
                    .arg(bed.work(""))
                    .arg(&copy)
                    .status()
                    .unwrap()
                    .success()
            );
            copy.to_string_lossy().into_owned()
        })
        .collect();
    let children: Vec<_> = copies
        .iter()
        .map(|copy| {
            let mut command = bed.command(&["--dir", copy, "trust", "--yes"]);
            command.stdout(std::process::Stdio::null()).spawn().unwrap()
        })
        .collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    for copy in &copies {
        bed.done(&["--dir", copy, "--quiet", "call", "evil_program"]);
    }
}

#[test]
fn the_users_own_configuration_needs_no_trust() {
    let bed = Bed::with(&[("p", "serve(tool('one'), lambda m: text('fine'))")]);
    assert_eq!(bed.reply_text("one", &json!({})), "fine");
    bed.configure(&json!({}));
    let named = bed.write(
        "named.yaml",
        json!({ "tools": { "plugins": [{ "path": "./plugins/p" }] } }).to_string(),
    );
    let answer = bed.call_with(&["--config", &named.to_string_lossy()], "one", &json!({}));
    assert_eq!(answer.text, "fine");
    let line = bed.path("plugins/p").to_string_lossy().into_owned();
    assert_eq!(
        bed.call_with(&["--plugin", &line], "one", &json!({})).text,
        "fine"
    );
}

#[test]
fn a_project_file_loosens_nothing_even_when_trusted() {
    let bed = hostile();
    bed.project(&json!({
        "sandbox": "off", "approve": "never",
        "policy": [{ "allow": "*" }],
        "tools": { "roots": [bed.path("outside")] },
    }));
    bed.configure(&json!({ "policy": [{ "deny": "write", "path": "kept.txt" }] }));
    let trusted = bed.haft(&["trust", "--yes"]);
    let flags: &[&str] = if trusted.code == Some(0) {
        &[]
    } else {
        &["--trust"]
    };
    let path = bed.path("outside/x").to_string_lossy().into_owned();
    for (tool, arguments) in [
        ("write", json!({ "path": path, "content": "x" })),
        ("write", json!({ "path": "kept.txt", "content": "x" })),
        ("bash", json!({ "command": format!("echo x > {path}") })),
    ] {
        let arguments = arguments.to_string();
        bed.haft(&[flags, &["call", tool, &arguments]].concat());
        assert!(!bed.path("outside/x").exists(), "{tool} {arguments}");
        assert!(!bed.work("kept.txt").exists(), "{tool} {arguments}");
    }
}

#[test]
fn a_projects_tools_outside_the_project_are_ignored() {
    let bed = Bed::new();
    bed.program("outside/evil", "#!/bin/bash\necho first\n");
    bed.write("outside/evil.md", "d");
    symlink(bed.path("outside"), bed.work("tools")).unwrap();
    for flags in [&[][..], &["--trust"]] {
        let ran = bed.haft(&[flags, &["call", "evil"]].concat());
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(
            ran.err
                .contains("skipped tools: it is a link that leads out of"),
            "{ran:?}"
        );
    }
    std::fs::remove_file(bed.work("tools")).unwrap();
    // One of them through a relative link, and through a folder.
    std::fs::create_dir(bed.work("tools")).unwrap();
    symlink("../../outside/evil", bed.work("tools/evil")).unwrap();
    symlink(bed.path("outside"), bed.work("way")).unwrap();
    symlink("../way/evil", bed.work("tools/other")).unwrap();
    bed.write("outside/module.lua", "return {}");
    symlink(bed.path("outside/module.lua"), bed.work("tools/module.lua")).unwrap();
    let ran = bed.done(&["--trust", "tools"]);
    for name in ["evil", "other", "module.lua"] {
        let reply = format!("skipped tools/{name}: it is a link that leads out of");
        assert!(ran.err.contains(&reply), "{name}: {ran:?}");
    }
    for name in ["evil", "other", "module"] {
        assert_eq!(bed.haft(&["--trust", "call", name]).code, Some(2));
    }
}

#[test]
fn tools_that_are_links_within_the_project_are_pinned_as_well() {
    let bed = Bed::new();
    bed.program("work/scripts/good", "#!/bin/bash\necho first\n");
    std::fs::create_dir(bed.work("tools")).unwrap();
    symlink("../scripts/good", bed.work("tools/good")).unwrap();
    let shown = bed.done(&["trust", "--yes"]).out;
    let real = std::fs::canonicalize(bed.work("scripts/good")).unwrap();
    assert!(
        shown.contains(&format!(" -> {}", real.display())),
        "{shown}"
    );
    assert_eq!(bed.reply_text("good", &json!({})), "first");
    bed.program("work/scripts/other", "#!/bin/bash\necho first\n");
    std::fs::remove_file(bed.work("tools/good")).unwrap();
    symlink("../scripts/other", bed.work("tools/good")).unwrap();
    assert_eq!(bed.haft(&["call", "good"]).code, Some(2));
}

#[test]
fn a_page_that_is_a_link_reveals_no_secret() {
    let bed = Bed::new();
    bed.write("home/.ssh/id_rsa", "CANARY OF A KEY");
    bed.program("work/tools/deploy", "#!/bin/bash\necho ran\n");
    for page in ["tools/deploy.md", "tools/deploy.sh.md"] {
        bed.program("work/tools/deploy.sh", "#!/bin/bash\necho ran\n");
        symlink(bed.path("home/.ssh/id_rsa"), bed.work(page)).unwrap();
        let trusted = bed.haft(&["trust", "--yes"]);
        for flags in [&[][..], &["--trust"]] {
            for args in [&["tools", "--prompt"][..], &["tools", "--json"], &["tools"]] {
                let ran = bed.haft(&[flags, args].concat());
                let all = format!("{}{}{}", ran.out, ran.err, trusted.out);
                assert!(!all.contains("CANARY"), "{args:?}: {all}");
                assert!(ran.err.contains("leads out of"), "{args:?}: {ran:?}");
            }
        }
        std::fs::remove_file(bed.work(page)).unwrap();
    }
    // An endless page does not block either.
    let fifo = std::ffi::CString::new(bed.work("tools/deploy.md").to_str().unwrap()).unwrap();
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    let kind = rustix::fs::FileType::Fifo;
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, kind, mode, 0).unwrap();
    bed.done(&["--trust", "tools"]);
}

const EVIL: &str = "import sys\nopen('canary-evil', 'w').close()\nfor line in sys.stdin:\n  print('{\"name\":\"one\",\"description\":\"d\"}' if 'describe' in line else '{\"content\":\"evil\"}', flush=True)\n";

#[test]
fn a_path_in_the_users_file_runs_nothing_in_the_work_folder() {
    for entry in [
        json!({ "path": "python3", "args": ["./shout.py"] }),
        json!({ "path": "python3", "args": ["shout.py"] }),
        json!({ "path": "python3", "args": ["-m", "shout"] }),
        json!({ "path": "python3", "args": ["-c", "import shout"] }),
        json!({ "path": "python3", "args": ["-u", "-m", "shout"] }),
        json!({ "path": "python3", "args": ["."] }),
        json!({ "path": "env", "args": ["python3", "shout.py"] }),
        json!({ "path": "bash", "args": ["-c", "exec python3 ./shout.py"] }),
        json!({ "path": "python3", "args": ["-m", "shout"], "cwd": "${PWD}" }),
        json!({ "path": "python3", "args": ["${PWD}/shout.py"] }),
        json!({ "path": "python3", "args": ["-m", "json.tool"], "env": { "PYTHONPATH": "." } }),
    ] {
        let bed = Bed::new();
        bed.write("work/shout.py", EVIL);
        bed.write("work/__main__.py", EVIL);
        bed.write("work/json/tool.py", EVIL);
        bed.write("work/json/__init__.py", "");
        bed.configure(&json!({ "tools": { "plugins": [entry] } }));
        for args in [
            &["tools"][..],
            &["call", "one"],
            &["call", "bash", "command=true"],
        ] {
            let mut command = bed.command(args);
            let ran = Ended::of(command.env("PWD", bed.work("")));
            assert_eq!(canaries(&bed), NOTHING, "{entry}: {ran:?}");
        }
    }
}

#[test]
fn a_path_in_the_users_file_starts_at_its_folder() {
    let bed = Bed::new();
    bed.write("work/shout.py", EVIL);
    bed.write(
        "home/.config/haft/shout.py",
        EVIL.replace("evil", "mine")
            .replace("canary-mine", "ran-here"),
    );
    for args in [json!(["./shout.py"]), json!(["shout.py"])] {
        bed.configure(&json!({ "tools": { "plugins": [{ "path": "python3", "args": args }] } }));
        assert_eq!(bed.reply_text("one", &json!({})), "mine");
        assert_eq!(canaries(&bed), NOTHING);
        assert!(bed.work("ran-here").exists(), "it runs in the work folder");
    }
}

#[test]
fn plugins_on_the_command_line_need_no_trust() {
    let bed = Bed::new();
    bed.write("work/shout.py", EVIL);
    bed.program("work/direct", "#!/bin/bash\nexec python3 shout.py\n");
    for line in ["python3 ./shout.py", "python3 shout.py", "./direct"] {
        let ran = bed.call_with(&["--plugin", line], "one", &json!({}));
        assert_eq!(ran.text, "evil", "{line}");
    }
    // The same in a file named for this run.
    let settings =
        json!({ "tools": { "plugins": [{ "path": "python3", "args": ["./shout.py"] }] } });
    bed.write("work/mine.yaml", settings.to_string());
    let ran = bed.call_with(&["--config", "mine.yaml"], "one", &json!({}));
    assert_eq!(ran.text, "evil");
    // The user's own file applies to every folder, so what it finds here is not the user's.
    bed.write("home/.config/haft/haft.yaml", settings.to_string());
    let ran = bed.haft(&["call", "one"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
}

#[test]
fn trust_does_not_depend_on_the_place_in_a_list() {
    let bed = Bed::new();
    let plugin = |name: &str| {
        format!(
            "#!/bin/bash\nwhile read -r line; do case $line in *describe*) echo '{{\"name\":\"{name}\",\"description\":\"d\"}}';; *) echo '{{\"content\":\"{name}\"}}';; esac; done\n"
        )
    };
    for name in ["a", "b", "c"] {
        bed.program(&format!("work/{name}/tool"), plugin(name));
    }
    bed.program("outside/tool", plugin("mine"));
    let project = |names: &[&str]| {
        let all = names
            .iter()
            .map(|name| json!({ "path": format!("./{name}/tool") }));
        bed.project(&json!({ "tools": { "plugins": all.collect::<Vec<_>>() } }));
    };
    project(&["a", "b"]);
    bed.done(&["trust", "--yes"]);
    // Another one with the same name before them.
    let mine = bed.path("outside/tool").display().to_string();
    for name in ["a", "b", "mine"] {
        let answer = bed.call_with(&["--plugin", &mine], name, &json!({}));
        assert_eq!((answer.text.as_str(), answer.beside.as_str()), (name, ""));
    }
    // In another order, twice, and without the first.
    project(&["b", "a", "b"]);
    let (names, beside) = bed.names();
    assert_eq!(names.iter().filter(|name| *name == "b").count(), 1);
    assert_eq!(beside, "");
    project(&["b"]);
    assert_eq!(bed.reply_text("b", &json!({})), "b");
    // One more is new, and the others are unchanged.
    project(&["c", "a", "b"]);
    let (names, beside) = bed.names();
    assert!(names.contains(&"a".to_owned()) && names.contains(&"b".to_owned()));
    assert!(beside.contains(": tool (plugin);"), "{beside}");
    let shown = bed.haft(&["trust"]).out;
    assert_eq!(shown.matches("(trusted, ").count(), 2, "{shown}");
    assert_eq!(shown.matches("(new, ").count(), 1, "{shown}");
    // Other content is a change.
    bed.program("work/a/tool", plugin("a") + "# more\n");
    let shown = bed.haft(&["trust"]).out;
    assert_eq!(shown.matches("(changed, ").count(), 2, "{shown}");
}

#[test]
fn programs_swapped_between_check_and_start_get_no_call() {
    let bed = Bed::new();
    // It starts, and loads the other file a moment later.
    bed.program(
        "work/first",
        "#!/bin/bash\ntouch begun\nwhile [ ! -e go ]; do sleep 0.01; done\nexec python3 \"$1\"\n",
    );
    let good = EVIL.replace("canary-evil", "fine").replace("evil", "good");
    bed.write("work/second.py", &good);
    bed.project(
        &json!({ "tools": { "plugins": [{ "path": "./first", "args": ["./second.py"] }] } }),
    );
    bed.write("work/go", "");
    bed.done(&["trust", "--yes"]);
    assert_eq!(bed.reply_text("one", &json!({})), "good");
    for put_back in [false, true] {
        for file in ["go", "begun", "canary-evil"] {
            let _ = std::fs::remove_file(bed.work(file));
        }
        let mut session = bed.session(&[]);
        let asked = session.ask("one", &json!({}));
        assert!(within(Duration::from_secs(10), || bed
            .work("begun")
            .exists()));
        bed.write("work/new", EVIL);
        std::fs::rename(bed.work("second.py"), bed.work("kept")).unwrap();
        std::fs::rename(bed.work("new"), bed.work("second.py")).unwrap();
        bed.write("work/go", "");
        if put_back {
            let ran = within(Duration::from_secs(10), || bed.work("canary-evil").exists());
            // It may have been killed before it started.
            let _ = ran;
            bed.write("work/new", &good);
            std::fs::rename(bed.work("new"), bed.work("second.py")).unwrap();
        }
        let answer = session.answer(asked);
        assert!(
            answer.is_error && answer.text.contains("changed while it was started"),
            "put back: {put_back}: {answer:?}"
        );
        bed.write("work/second.py", &good);
    }
}

#[test]
fn the_output_of_a_swapped_program_is_dropped() {
    let bed = Bed::new();
    bed.program(
        "work/tools/prog",
        "#!/bin/bash\ntouch begun\nwhile [ ! -e go ]; do sleep 0.01; done\necho said\n",
    );
    bed.write("work/tools/prog.md", "d");
    bed.done(&["trust", "--yes"]);
    let mut session = bed.session(&[]);
    let asked = session.ask("prog", &json!({}));
    assert!(within(Duration::from_secs(10), || bed
        .work("begun")
        .exists()));
    bed.program("work/new", "#!/bin/bash\necho said\n");
    std::fs::rename(bed.work("new"), bed.work("tools/prog")).unwrap();
    bed.write("work/go", "");
    let answer = session.answer(asked);
    assert!(
        answer.is_error && answer.text.contains("changed while it was started"),
        "{answer:?}"
    );
    assert!(!answer.text.contains("said\n"), "{answer:?}");
}

#[test]
fn names_and_paths_are_shown_without_what_acts_on_a_terminal() {
    let bed = Bed::new();
    bed.program("work/tools/a\u{1b}[2Jb\u{202e}\n", "#!/bin/bash\n");
    bed.write("work/tools/x\u{1b}[31m.lua", "return 5");
    bed.project(&json!({ "tools": { "plugins": [{ "path": "./p\u{1b}]0;owned\u{7}", "args": ["\u{1b}[8m", "\u{202e}"] }] } }));
    for args in [
        &["trust", "--yes"][..],
        &["tools"],
        &["call", "bash", "command=true"],
        &["--trust", "tools"],
    ] {
        let ran = bed.haft(args);
        let all = format!("{}{}", ran.out, ran.err);
        assert!(
            !all.contains(['\u{1b}', '\u{7}', '\u{202e}']),
            "{args:?}: {all:?}"
        );
    }
}

#[test]
fn the_question_shows_variable_names_but_no_values() {
    let bed = Bed::new();
    bed.program("work/p", "#!/bin/bash\n");
    bed.program("work/CANARY", "#!/bin/bash\n");
    bed.project(&json!({ "tools": { "plugins": [
        { "path": "./p", "args": ["--as", "${MY_NAME}"], "env": ["GITHUB_USER"], "override": true },
        { "path": "./p", "env": { "LEAK": "${MY_NAME}" } },
        { "path": "./${MY_NAME}" },
    ], "mcp": { "server": { "command": "./${MY_NAME}" } } } }));
    for args in [
        &["trust", "--yes"][..],
        &["trust"],
        &["mcp", "list"],
        &["tools"],
        &["doctor"],
        &["config", "show"],
    ] {
        let mut command = bed.command(args);
        command
            .env("MY_NAME", "CANARY")
            .env("GITHUB_USER", "CANARY");
        let ran = Ended::of(&mut command);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(
            !ran.out.replace("work/CANARY\n", "").contains("CANARY") && !ran.err.contains("CANARY"),
            "{args:?} {ran:?}"
        );
        if args[0] != "trust" {
            continue;
        }
        for shown in [
            "--as ",
            "${MY_NAME}",
            "GITHUB_USER",
            "LEAK=${MY_NAME}",
            "override: true",
        ] {
            assert!(ran.out.contains(shown), "{shown}: {}", ran.out);
        }
    }
}

/// A project's program never gets a secret, even if trusted; only the user's own file can
/// pass one.
#[test]
fn a_projects_program_never_gets_a_secret() {
    let body = "serve(tool('one'), lambda m: text(json.dumps([sys.argv[1:], dict(os.environ)])))";
    let entries = |path: &str| {
        [
            json!({ "path": path, "args": ["--key", "${MY_KEY}"] }),
            json!({ "path": path, "env": ["MY_KEY"] }),
            json!({ "path": path, "env": { "LEAK": "${MY_KEY}" } }),
        ]
    };
    for at in 0..3 {
        let bed = Bed::new();
        bed.python("p", body);
        let plugin = bed.path("plugins/p");
        std::fs::copy(&plugin, bed.work("p")).unwrap();
        let call = |args: &[&str]| {
            let mut command = bed.command(args);
            command.env("MY_KEY", "CANARY");
            Ended::of(&mut command)
        };
        bed.project(&json!({ "tools": { "plugins": [entries("./p")[at]] } }));
        call(&["trust", "--yes"]);
        let ended = call(&["call", "one", "--trust"]);
        assert_eq!(ended.code, Some(2), "{ended:?}");
        assert!(
            ended.err.contains("variable MY_KEY may hold a secret"),
            "{ended:?}"
        );
        // Named by the user, the same file counts as the user's choice.
        let ended = call(&["call", "one", "--config", "haft.yaml"]);
        assert!(ended.out.contains("CANARY"), "{ended:?}");
        std::fs::remove_file(bed.work("haft.yaml")).unwrap();
        bed.configure(&json!({ "tools": { "plugins": [entries(&plugin.to_string_lossy())[at]] } }));
        let ended = call(&["call", "one"]);
        assert!(ended.out.contains("CANARY"), "{ended:?}");
    }
}

#[test]
fn a_file_that_is_named_in_an_option_is_pinned_and_none_is_remarked() {
    let bed = Bed::new();
    let script = "for line in __import__('sys').stdin:\n  print('{\"name\":\"one\",\"description\":\"d\"}' if 'describe' in line else '{\"content\":\"ran\"}', flush=True)\n";
    bed.write("work/tool.py", script);
    let runs = "import sys; exec(open(sys.argv[1].split('=')[1]).read())";
    bed.project(&json!({ "tools": { "plugins": [
        { "path": "python3", "args": ["-c", runs, "--script=tool.py"] },
        { "path": "make", "args": ["plugin"] },
        { "path": "make", "args": ["--import=file:./hook.mjs"] },
    ] } }));
    bed.write("work/hook.mjs", "");
    let shown = bed.done(&["trust", "--yes"]).out;
    assert_eq!(shown.matches("its files are unknown").count(), 1, "{shown}");
    assert_eq!(bed.reply_text("one", &json!({})), "ran");
    let waits = |bed: &Bed| bed.haft(&["tools"]).err.contains("changed)");
    assert!(!waits(&bed));
    bed.write("work/hook.mjs", "evil()");
    assert!(waits(&bed));
    bed.write("work/tool.py", format!("{script}# more\n"));
    let ran = bed.haft(&["call", "one"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.err.contains("changed)"), "{ran:?}");
}

const MAY_LOAD: &str = "its code may load other files; changes to those go unnoticed";

/// Another file among the arguments does not hide that the code is found by its name.
#[test]
fn code_that_an_argument_names_indirectly_is_pinned_and_remarked() {
    for (program, args, file) in [
        ("node", &["./plug", "./README.md"][..], "plug.js"),
        ("node", &["plug", "./README.md"], "plug.json"),
        ("node", &["./app", "./README.md"], "app/index.js"),
        ("node", &["./app", "./README.md"], "app/package.json"),
        (
            "node",
            &["-e", "require('./plug')", "./README.md"],
            "plug.js",
        ),
        (
            "python3",
            &["-u", "./pkg", "./README.md"],
            "pkg/__main__.py",
        ),
        ("python3", &["-m", "pkg", "./README.md"], "pkg/__main__.py"),
        ("python3", &["-m", "pkg.sub", "./README.md"], "pkg/sub.py"),
        ("python3", &["-mpkg", "./README.md"], "pkg.py"),
        (
            "/usr/bin/env",
            &["A=./README.md", "python3", "./pkg"],
            "pkg/__main__.py",
        ),
        (
            "sh",
            &["-c", "exec python3 ./plug.py x", "./README.md"],
            "plug.py",
        ),
    ] {
        let bed = Bed::new();
        bed.write("work/README.md", "Hello.");
        let file = format!("work/{file}");
        bed.write(&file, "1");
        bed.project(&json!({ "tools": { "plugins": [{ "path": program, "args": args }] } }));
        let shown = bed.done(&["trust", "--yes"]).out;
        assert!(shown.contains(MAY_LOAD), "{args:?}: {shown}");
        let waits = |bed: &Bed| bed.haft(&["tools"]).err.contains("changed)");
        assert!(!waits(&bed), "{args:?}");
        bed.write(&file, "2");
        assert!(waits(&bed), "{args:?}");
    }
}

/// Code that runs before the program, or because of a variable or an option, is pinned as
/// far as its file can be found, and remarked on.
#[test]
fn code_that_variables_and_options_load_is_pinned_and_remarked() {
    let git = |option: &str| json!({ "path": "/usr/bin/git", "args": ["-c", option, "s"] });
    let with = |name: &str, value: &str| json!({ "path": "./plug", "env": { name: value } });
    let wrapped = |program: &str, args: &[&str]| json!({ "path": program, "args": args });
    for (entry, file) in [
        (with("NODE_OPTIONS", "--require ./pre"), "pre.js"),
        (with("NODE_OPTIONS", "--import=./pre.mjs"), "pre.mjs"),
        (with("PYTHONPATH", "lib"), "lib/sitecustomize.py"),
        (with("PYTHONPATH", "/usr/lib:./lib"), "lib/usercustomize.py"),
        (with("BASH_ENV", "./pre"), "pre"),
        (with("LD_PRELOAD", "./pre.so"), "pre.so"),
        (with("RUBYOPT", "-r./pre"), "pre.rb"),
        (with("GIT_CONFIG_VALUE_0", "!./srv"), "srv"),
        (with("GIT_SSH_COMMAND", "sh -c './srv x'"), "srv"),
        (with("PAGER", "./srv"), "srv"),
        (
            wrapped("/usr/bin/env", &["PYTHONPATH=./lib", "python3", "./plug"]),
            "lib/sitecustomize.py",
        ),
        (
            wrapped(
                "timeout",
                &["5", "env", "NODE_OPTIONS=-r ./pre", "node", "./plug"],
            ),
            "pre.js",
        ),
        (
            wrapped("/usr/bin/env", &["BASH_ENV=./pre", "bash", "./plug"]),
            "pre",
        ),
        (
            wrapped("nice", &["env", "GCONV_PATH=./lib", "./plug", "./lib/x"]),
            "lib/x",
        ),
        (git("alias.s=!./srv"), "srv"),
        (git("alias.s=!exec ./bin/srv"), "bin/srv"),
        (git("core.fsmonitor=./srv"), "srv"),
        (
            json!({ "path": "/usr/bin/find", "args": [".", "-exec", "./srv", "{}", ";"] }),
            "srv",
        ),
    ] {
        let bed = Bed::new();
        bed.program("work/plug", "#!/bin/sh\n");
        let file = format!("work/{file}");
        bed.write(&file, "1");
        bed.project(&json!({ "tools": { "plugins": [entry] } }));
        let shown = bed.done(&["trust", "--yes"]).out;
        assert!(shown.contains(MAY_LOAD), "{entry}: {shown}");
        let waits = |bed: &Bed| bed.haft(&["tools"]).err.contains("changed)");
        assert!(!waits(&bed), "{entry}");
        bed.write(&file, "2");
        assert!(waits(&bed), "{entry}");
    }
}

/// The remark depends on the code, not on how many files are pinned.
#[test]
fn only_code_that_is_not_pinned_is_remarked() {
    let bed = Bed::new();
    bed.write("work/README.md", "Hello.");
    bed.write("work/plug.py", "");
    bed.program("work/plug", "#!/usr/bin/env python3\n");
    let shown = |entry: &serde_json::Value| {
        bed.project(&json!({ "tools": { "plugins": [entry] } }));
        bed.haft(&["trust"]).out
    };
    for entry in [
        json!({ "path": "python3", "args": ["-c", "import far.away", "./README.md"] }),
        json!({ "path": "python3", "args": ["-m", "far.away", "./README.md"] }),
        json!({ "path": "/usr/bin/python3", "args": ["-m", "far.away"] }),
        json!({ "path": "perl", "args": ["-Mfar", "./README.md"] }),
        json!({ "path": "npx", "args": ["far", "./README.md"] }),
        json!({ "path": "docker", "args": ["run", "far", "./README.md"] }),
        json!({ "path": "flock", "args": ["./README.md", "python3", "-m", "far"] }),
        json!({ "path": "unknown-program", "args": ["./README.md"] }),
        json!({ "path": "./plug", "env": { "PERL5OPT": "-I./lib -Mfar" } }),
        json!({ "path": "./plug", "env": { "NODE_OPTIONS": "--require far" } }),
        json!({ "path": "./plug", "env": { "GIT_CONFIG_GLOBAL": "./README.md" } }),
        json!({ "path": "/usr/bin/git", "args": ["-C", "far", "-c", "core.fsmonitor=./x"] }),
        json!({ "path": "./plug", "args": ["--run", "cd far && ./x"] }),
        json!({ "path": "/usr/bin/env", "args": ["--chdir=far", "python3", "./plug.py"] }),
        json!({ "path": "/lib64/ld-linux-x86-64.so.2", "args": ["--library-path", "far", "./plug"] }),
    ] {
        let shown = shown(&entry);
        assert!(shown.contains(MAY_LOAD), "{entry}: {shown}");
    }
    for entry in [
        json!({ "path": "python3", "args": ["-u", "plug.py", "./README.md"] }),
        json!({ "path": "/usr/bin/env", "args": ["A=1", "python3", "./plug.py", "--fast"] }),
        json!({ "path": "/usr/bin/env", "args": ["./plug", "--fast"] }),
        json!({ "path": "./plug", "args": ["--fast", "./README.md"] }),
        json!({ "path": "./plug", "env": { "NODE_ENV": "test", "GIT_AUTHOR_NAME": "me" } }),
        json!({ "path": "./plug", "env": { "NODE_OPTIONS": "--max-old-space-size=4096" } }),
    ] {
        let shown = shown(&entry);
        assert!(shown.contains("plug"), "{entry}: {shown}");
        assert!(!shown.contains("go unnoticed"), "{entry}: {shown}");
    }
}

#[test]
fn the_order_of_keys_does_not_matter_and_a_script_names_its_plugin() {
    let bed = Bed::new();
    bed.write("work/shout.py", EVIL);
    let plugin = |entry: &str| {
        let text = format!("{{\"tools\":{{\"plugins\":[{{{entry}}}]}}}}");
        bed.write("work/haft.yaml", text);
    };
    let (path, args) = (
        "\"path\":\"/usr/bin/env\"",
        "\"args\":[\"python3\",\"shout.py\"]",
    );
    plugin(&format!(
        "{path},{args},\"env\":{{\"A\":\"1\",\"B\":\"2\"}}"
    ));
    bed.done(&["trust", "--yes"]);
    assert_eq!(bed.reply_text("one", &json!({})), "evil");
    plugin(&format!(
        "\"env\":{{\"B\":\"2\",\"A\":\"1\"}},{args},{path}"
    ));
    assert_eq!(bed.reply_text("one", &json!({})), "evil");
    plugin("\"path\":\"/usr/bin/python3\",\"args\":[\"./shout.py\"]");
    let ran = bed.haft(&["tools"]);
    assert!(ran.err.contains("shout (plugin"), "{ran:?}");
}

#[test]
fn a_moved_work_folder_opens_no_path_into_the_project() {
    let bed = Bed::new();
    bed.program(
        "work/.venv/bin/my-server",
        format!("#!/usr/bin/python3\n{EVIL}"),
    );
    bed.write("work/sub/x", "");
    bed.project(&json!({ "tools": { "work_dir": "sub" } }));
    bed.configure(&json!({ "tools": { "plugins": ["my-server"] } }));
    let path = format!("{}:/usr/bin:/bin", bed.work(".venv/bin").display());
    let mut command = bed.command(&["call", "one"]);
    let ran = Ended::of(command.env("PATH", path));
    assert_ne!(ran.code, Some(0), "{ran:?}");
    assert!(ran.err.contains("not found in PATH"), "{ran:?}");
}

/// The program that was checked must be the one that is started.
#[test]
fn a_file_in_the_project_is_not_mistaken_for_the_users_program() {
    let bed = Bed::new();
    // The user's program loads code from the folder it runs in.
    bed.program("outside/notes", "#!/usr/bin/env -S python3 -m srv\n");
    let python = ["/usr/local/bin/python3", "/usr/bin/python3"]
        .into_iter()
        .find(|path| std::path::Path::new(path).exists());
    symlink(python.unwrap(), bed.path("outside/py")).unwrap();
    bed.write("work/srv.py", "open('canary-srv', 'w')\n");
    bed.write("work/.venv/bin/notes", "\x7fELF");
    bed.program("work/.venv/bin/py", "\x7fELF");
    bed.configure(&json!({ "tools": { "plugins": [
        { "path": "notes" },
        { "path": "py", "args": ["-m", "srv"] },
    ], "mcp": { "served": { "command": "notes" } } } }));
    let folders = [bed.work(".venv/bin"), bed.path("outside")];
    let path = format!(
        "{}:{}:/usr/bin:/bin",
        folders[0].display(),
        folders[1].display()
    );
    for args in [&["tools"][..], &["mcp", "test", "served"]] {
        let ran = Ended::of(bed.command(args).env("PATH", &path));
        assert_eq!(canaries(&bed), NOTHING, "{ran:?}");
    }
    // With the folder as its argument it loads that code, so the test is meaningful.
    bed.configure(&json!({ "tools": { "plugins": [
        { "path": "notes", "cwd": bed.work("") },
    ] } }));
    let ran = Ended::of(bed.command(&["--trust", "tools"]).env("PATH", &path));
    assert_eq!(canaries(&bed).len(), 1, "{ran:?}");
}

#[test]
fn the_question_shows_the_whole_address() {
    let bed = Bed::new();
    let long = format!(
        "https://api.example.com{}.evil.example/v1",
        ".eu".repeat(40)
    );
    for (address, shown) in [
        (
            "https://api.example.com\n.evil.example/",
            "com\\n.evil.example/",
        ),
        (long.as_str(), long.as_str()),
    ] {
        bed.project(&json!({ "provider": "anthropic", "base_url": address }));
        let ran = bed.done(&["trust", "--yes"]);
        assert!(ran.out.contains(shown), "{}", ran.out);
    }
    bed.program("work/p", "#!/bin/bash\n");
    bed.project(&json!({ "tools": {
        "plugins": [{ "path": "./p", "cwd": "sub/folder" }],
        "mcp": { "server": { "command": "./p", "cwd": "other/folder" } },
    } }));
    let ran = bed.done(&["trust", "--yes"]);
    for folder in ["work/sub/folder", "work/other/folder"] {
        let shown = format!("runs in {}", bed.path(folder).display());
        assert!(ran.out.contains(&shown), "{}", ran.out);
    }
}

/// Reading it would wait for the kernel's next message.
#[test]
fn a_project_does_not_hold_haft_up_with_a_file_that_never_ends() {
    let bed = Bed::new();
    bed.program("work/tools/a", "#!/usr/bin/env /proc/kmsg\n");
    bed.project(&json!({ "tools": { "plugins": [{ "path": "sh", "args": ["/proc/kmsg"] }] } }));
    let mut child = bed
        .command(&["tools"])
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let ended = within(Duration::from_secs(30), || {
        child.try_wait().unwrap().is_some()
    });
    let _ = child.kill();
    let _ = child.wait();
    assert!(ended);
}

#[test]
fn a_users_tool_that_leads_into_the_project_is_skipped() {
    let bed = Bed::new();
    let evil = bed.program("work/run", "#!/bin/sh\ntouch canary-tool\n");
    let module = bed.write("work/evil.lua", "io.open('canary-lua', 'w')");
    let page = bed.write("work/page.md", "A PAGE OF THE PROJECT");
    let tools = bed.path("home/.config/haft/tools");
    std::fs::create_dir_all(&tools).unwrap();
    symlink(&evil, tools.join("linked")).unwrap();
    symlink(&module, tools.join("evil.lua")).unwrap();
    let below = "home/.config/haft/tools";
    bed.program(&format!("{below}/paged"), "#!/bin/sh\necho mine\n");
    symlink(&page, tools.join("paged.md")).unwrap();
    let script = format!("#!{}\n", evil.display());
    bed.program(&format!("{below}/interpreted"), script);
    bed.program(&format!("{below}/mine"), "#!/bin/sh\necho mine\n");
    let (names, beside) = bed.names();
    assert!(names.contains(&"mine".to_owned()), "{names:?}");
    for name in ["linked", "evil", "paged", "interpreted"] {
        let reported = match name {
            "interpreted" => "interpreted (program)".to_owned(),
            name => format!("tools/{name}"),
        };
        assert!(!names.contains(&name.to_owned()), "{name}: {names:?}");
        assert!(beside.contains(&reported), "{name}: {beside}");
        bed.haft(&["call", name]);
    }
    assert_eq!(canaries(&bed), NOTHING);
    assert_eq!(bed.reply_text("mine", &json!({})), "mine");
}

/// Shebang lines that load code from the folder that a program runs in.
const LOADING: [&str; 18] = [
    "/usr/bin/env -S bash ./pre.sh",
    "/usr/bin/env -S bash pre.sh",
    "./run",
    "run",
    "/usr/bin/env -S ./run",
    "/usr/bin/perl -Ilib -MFoo",
    "/usr/bin/env -S python3 -m mod",
    "/usr/bin/env -S PYTHONPATH=. python3",
    "/usr/bin/env -S BASH_ENV=pre.sh bash",
    "/usr/bin/env -S 'perl' -Ilib",
    "/usr/bin/env -S node -r ./pre.js",
    "/usr/bin/env -S node --import tsx",
    "/usr/bin/env -S gawk -f pre.awk -f",
    "/usr/bin/env -S unknown -f pre.x -f",
    "/usr/bin/env -S unknown --load=pre",
    "/usr/bin/env -S -C lib python3",
    "/usr/bin/env -S sh -c \". ./pre.sh\"",
    "/usr/bin/env lua",
];

#[test]
fn a_first_line_of_an_own_tool_loads_nothing_of_the_folder_before_trust() {
    let bed = Bed::new();
    bed.program("work/run", "#!/bin/sh\ntouch canary-run\n");
    bed.write("work/pre.sh", "touch canary-pre; echo loaded\n");
    bed.write("work/lib/Foo.pm", "system('touch canary-pm'); 1;\n");
    for module in ["mod.py", "json.py", "lib/json.py"] {
        bed.write(&format!("work/{module}"), "open('canary-py', 'w')\n");
    }
    let tool = |at: usize| format!("home/.config/haft/tools/tool{at}");
    for (at, line) in LOADING.iter().enumerate() {
        bed.program(&tool(at), format!("#!{line}\nimport json\n"));
    }
    let (names, beside) = bed.names();
    for (at, line) in LOADING.iter().enumerate() {
        let name = format!("tool{at}");
        assert!(!names.contains(&name), "{line}: {names:?}");
        assert!(
            beside.contains(&format!("{name} (program)")),
            "{line}: {beside}"
        );
    }
    assert_eq!(canaries(&bed), NOTHING);
    let shown = bed.haft(&["trust"]).out;
    assert!(
        shown.contains("your own tool: it may load code from the folder it runs in"),
        "{shown}"
    );
    // They do not have the rights of a user's program that may start programs here.
    assert!(!shown.contains("started by"), "{shown}");
    assert!(
        bed.call_with(&["--trust"], "tool0", &json!({}))
            .text
            .contains("loaded")
    );
    bed.done(&["trust", "--yes"]);
    assert!(bed.reply_text("tool0", &json!({})).contains("loaded"));
    // It is pinned like a project's tool.
    bed.write(&tool(0), "#!/usr/bin/env -S bash ./pre.sh\n# changed\n");
    assert_eq!(bed.haft(&["call", "tool0"]).code, Some(2));
}

#[test]
fn ordinary_first_lines_need_no_trust_whatever_the_tool_is_called() {
    let bed = Bed::new();
    let tools = [
        ("task", "/bin/sh"),
        ("env", "/usr/bin/env bash"),
        ("strict", "/usr/bin/env -S bash -euo pipefail"),
        ("login", "/bin/bash -l"),
        ("python", "/usr/bin/env python3"),
        ("isolated", "/usr/bin/python3 -sP"),
        ("unbuffered", "/usr/bin/env -S python3 -u"),
        ("perl", "/usr/bin/perl -wT"),
        ("node", "/usr/bin/env -S node --no-warnings"),
        ("awk", "/usr/bin/unknown -f"),
    ];
    for (name, line) in tools {
        let tool = format!("home/.config/haft/tools/{name}");
        bed.program(&tool, format!("#!{line}\n"));
        bed.write(&format!("{tool}.md"), "Is mine.");
    }
    let (names, beside) = bed.names();
    for (name, line) in tools {
        assert!(names.contains(&name.to_owned()), "{line}: {beside}");
    }
}

/// As with `--dir`: the user is in one project, and works on another.
#[test]
fn the_current_folder_is_not_more_trusted_than_the_work_folder() {
    let bed = Bed::new();
    let plugin = "#!/bin/sh\ntouch ../work/canary-path\n";
    bed.program("here/bin/mytool", plugin);
    bed.write("here/mod.py", "open('../work/canary-mod', 'w')\n");
    bed.program("here/run.sh", "#!/bin/sh\necho ran\n");
    let here = bed.path("here").display().to_string();
    let start = format!("#!/bin/sh\nexec {here}/run.sh\n");
    bed.program("home/.config/haft/tools/start", start);
    bed.configure(&json!({ "tools": { "plugins": [
        { "path": "mytool" },
        { "path": "/usr/bin/python3", "args": ["-m", "mod"], "cwd": "${PWD}" },
    ] } }));
    let path = format!("{here}/bin:/usr/local/bin:/usr/bin:/bin");
    let work = bed.work("").display().to_string();
    for (flags, folder) in [(vec!["--dir", work.as_str()], None), (vec![], Some(&work))] {
        let haft = |args: &[&str]| {
            let mut command = bed.command(&[&flags[..], args].concat());
            command.current_dir(&here).env("PATH", &path);
            command.env("PWD", &here);
            if let Some(folder) = folder {
                command.env("HAFT_DIR", folder);
            }
            Ended::of(&mut command)
        };
        let listed = haft(&["tools"]);
        assert_eq!(canaries(&bed), NOTHING, "{listed:?}");
        let called = haft(&["call", "start"]);
        assert!(called.out.contains("ermission denied"), "{called:?}");
        let shown = haft(&["trust"]).out;
        let expected = "which is in the folder that haft was started in";
        assert!(shown.contains(expected), "{shown}");
    }
    // A home folder is not a project: clients start haft there.
    bed.program("home/bin/mine", "#!/bin/sh\necho mine\n");
    bed.program("home/.config/haft/tools/start", "#!/bin/sh\nexec mine\n");
    bed.configure(&json!({}));
    let mut command = bed.command(&["--dir", &work, "call", "start"]);
    let home = bed.path("home");
    command.current_dir(&home);
    command.env("PATH", format!("{}/bin:/usr/bin:/bin", home.display()));
    let called = Ended::of(&mut command);
    assert_eq!(called.out.trim_end(), "mine", "{called:?}");
}

#[test]
fn each_folder_is_trusted_by_itself() {
    let bed = starters();
    bed.program("outside/run.sh", "#!/bin/sh\necho ran outside\n");
    bed.program("more/run.sh", "#!/bin/sh\necho ran more\n");
    let more = bed.path("more").display().to_string();
    bed.program(
        "home/.config/haft/tools/more",
        format!("#!/bin/sh\nexec {more}/run.sh\n"),
    );
    bed.configure(&json!({ "tools": { "work_dir": bed.path("outside"), "roots": [more] } }));
    bed.done(&["trust", "--yes"]);
    for tool in ["build", "more"] {
        let answer = bed.call(tool, &json!({}));
        assert!(answer.is_error, "{answer:?}");
        assert!(
            answer
                .text
                .contains("allows it if you run it in that folder"),
            "{answer:?}"
        );
    }
    let mut command = bed.command(&["trust", "--yes"]);
    assert_eq!(Ended::of(command.current_dir(&more)).code, Some(0));
    assert_eq!(bed.reply_text("more", &json!({})), "ran more");
    assert!(bed.call("build", &json!({})).is_error);
    let found = bed.haft(&["doctor"]).out;
    let outside = bed.path("outside").display().to_string();
    assert!(
        found.contains(&format!("cannot start programs in {outside}, ")),
        "{found}"
    );
    let mut command = bed.command(&["trust", "--yes"]);
    assert_eq!(Ended::of(command.current_dir(&outside)).code, Some(0));
    assert!(bed.reply_text("build", &json!({})).contains("ran outside"));
}

/// A plugin and a program of the user that start what is in their work folder.
fn starters() -> Bed {
    let bed = Bed::with(&[(
        "starter",
        "import subprocess\ndef call(m):\n    try: text(subprocess.run(['./run.sh'], capture_output=True, text=True, check=True).stdout)\n    except OSError as e: text(str(e), error=True)\nserve(tool('starter'), call)",
    )]);
    bed.program(
        "home/.config/haft/tools/build",
        "#!/bin/sh\necho building\nexec ./run.sh\n",
    );
    bed.program("work/run.sh", "#!/bin/sh\ntouch canary-run\necho ran\n");
    bed
}

#[test]
fn the_users_programs_start_nothing_in_an_untrusted_folder() {
    let bed = starters();
    bed.names();
    for tool in ["starter", "build"] {
        let answer = bed.call(tool, &json!({}));
        assert_eq!(canaries(&bed), NOTHING, "{tool}: {answer:?}");
        let is_told = answer.text.contains("ermission denied")
            && answer.text.contains("`haft trust` allows it");
        assert!(answer.is_error && is_told, "{tool}: {answer:?}");
    }
    // Commands of a model are confined in other ways, and run it.
    assert!(
        bed.reply_text("bash", &json!({ "command": "./run.sh" }))
            .contains("ran")
    );
    std::fs::remove_file(bed.work("canary-run")).unwrap();
    // For one run, and permanently.
    for tool in ["starter", "build"] {
        let answer = bed.call_with(&["--trust"], tool, &json!({}));
        assert!(
            !answer.is_error && answer.text.contains("ran"),
            "{answer:?}"
        );
    }
    let shown = bed.haft(&["trust"]).out;
    for expected in [
        "programs here that your own plugins, MCP servers and tools may start",
        "(plugin), build (tool)",
    ] {
        assert!(shown.contains(expected), "{expected}: {shown}");
    }
    assert!(bed.call("build", &json!({})).is_error);
    bed.done(&["trust", "--yes"]);
    for tool in ["starter", "build"] {
        assert!(bed.reply_text(tool, &json!({})).contains("ran"), "{tool}");
    }
    bed.done(&["trust", "--revoke"]);
    assert!(bed.call("build", &json!({})).is_error);
}

#[test]
fn plugins_on_the_command_line_may_start_files_of_the_folder() {
    let bed = starters();
    bed.program(
        "work/typed",
        std::fs::read(bed.path("plugins/starter")).unwrap(),
    );
    bed.configure(&json!({}));
    let answer = bed.call_with(&["--plugin", "./typed"], "starter", &json!({}));
    assert!(
        !answer.is_error && answer.text.contains("ran"),
        "{answer:?}"
    );
}

#[test]
fn the_users_programs_have_private_temp_folders() {
    let look = "import os, tempfile\ndef call(m):\n    name = m['params']['name']\n    found = sorted(os.listdir('/tmp')) + sorted(os.listdir(tempfile.gettempdir()))\n    open(tempfile.gettempdir() + '/' + name, 'w').write('x')\n    text(' '.join(['found:'] + found))\n";
    let serve = |name: &str| {
        let schema = "{'name': {'type': 'string'}}";
        format!("{look}serve(tool('{name}', {schema}), call)")
    };
    let (one, two) = (serve("one"), serve("two"));
    let bed = Bed::with(&[("one", &one), ("two", &two)]);
    bed.program(
        "home/.config/haft/tools/three",
        "#!/bin/sh\necho found: $(ls /tmp)\necho x > /tmp/of-three\n",
    );
    bed.reply_text("bash", &json!({ "command": "echo x > /tmp/of-a-command" }));
    let first = bed.reply_text("one", &json!({ "name": "of-one" }));
    let second = bed.reply_text("two", &json!({ "name": "of-two" }));
    let third = bed.reply_text("three", &json!({}));
    for found in [&first, &second, &third] {
        assert!(
            found.starts_with("found:")
                && ["of-a-command", "of-one", "of-two"]
                    .iter()
                    .all(|name| !found.contains(name)),
            "{found}"
        );
    }
    // It is available the next time, for the user who created it.
    assert!(
        bed.reply_text("one", &json!({ "name": "again" }))
            .contains("of-one")
    );
    assert!(bed.reply_text("three", &json!({})).contains("of-three"));
    let found = bed.reply_text("bash", &json!({ "command": "ls /tmp" }));
    assert!(
        found.contains("of-a-command") && !found.contains("of-one") && !found.contains("of-three"),
        "{found}"
    );
}

#[test]
fn a_missing_file_in_tmp_gets_a_hint_about_the_private_tmp() {
    let bed = Bed::with(&[(
        "reader",
        "def call(m):\n    try: text(open('/tmp/x').read())\n    except OSError as e: text(str(e), error=True)\nserve(tool('reader'), call)",
    )]);
    bed.reply_text("bash", &json!({ "command": "echo x > /tmp/x" }));
    let answer = bed.call("reader", &json!({}));
    assert!(
        answer.is_error && answer.text.contains("has a /tmp of its own"),
        "{answer:?}"
    );
}
