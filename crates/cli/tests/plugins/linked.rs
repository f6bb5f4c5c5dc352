//! Links in haft's own folders: their targets are as protected as those folders, and
//! programs are started from there.

use crate::bed::{Bed, Ended};
use serde_json::{Value, json};
use std::os::unix::fs::symlink;
use std::path::Path;

const CONFIG: &str = "home/.config/haft";
const OWN: &str = "home/.config/haft/tools";

/// A plugin that needs only a shell.
const PLUGIN: &str = "#!/bin/bash\nwhile read -r line; do case \"$line\" in\n*describe*) echo '{\"name\":\"own\",\"description\":\"Runs.\"}';;\n*) echo '{\"content\":[{\"type\":\"text\",\"text\":\"fine\"}]}';; esac; done\n";

/// haft, started outside the work folder.
fn haft_in(bed: &Bed, folder: &str, args: &[&str]) -> Ended {
    Ended::of(bed.command(args).current_dir(bed.path(folder)))
}

fn bash(bed: &Bed, folder: &str, command: &str) -> Ended {
    let command = json!({ "command": command }).to_string();
    haft_in(bed, folder, &["call", "bash", &command])
}

fn write(bed: &Bed, folder: &str, path: &str) -> Ended {
    let file = json!({ "path": path, "content": "#!/bin/sh\necho evil\n" }).to_string();
    haft_in(bed, folder, &["call", "write", &file])
}

fn text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

#[test]
fn no_tool_writes_the_target_of_the_users_tools_folder() {
    let bed = Bed::new();
    let program = "#!/bin/sh\necho mine\n";
    bed.program("home/dotfiles/tools/mine", program);
    symlink(bed.path("home/dotfiles/tools"), bed.path(OWN)).unwrap();
    let plant = "printf '#!/bin/sh\\necho evil\\n' > tools/evil; chmod +x tools/evil; echo 'echo evil' >> tools/mine; mv tools old";
    let ran = bash(&bed, "home/dotfiles", plant);
    assert!(ran.out.contains("Read-only file system"), "{ran:?}");
    for path in ["tools/evil", "tools/mine"] {
        let ran = write(&bed, "home/dotfiles", path);
        assert!(ran.out.contains("protected"), "{path}: {ran:?}");
    }
    assert_eq!(text(&bed.path("home/dotfiles/tools/mine")), program);
    assert!(!bed.path("home/dotfiles/tools/evil").exists());
    assert_eq!(bed.reply_text("mine", &json!({})), "mine");
    // The rest of that folder belongs to the project.
    let ran = write(&bed, "home/dotfiles", "notes");
    assert_eq!(ran.code, Some(0), "{ran:?}");
}

#[test]
fn no_tool_writes_the_target_of_a_file_in_the_users_tools() {
    let bed = Bed::new();
    let program = "#!/bin/sh\necho mine\n";
    bed.program("home/dotfiles/mine", program);
    bed.write("home/dotfiles/page.md", "Mine.");
    std::fs::create_dir_all(bed.path(OWN)).unwrap();
    // One behind two links, a page, and a dangling link.
    symlink("mine", bed.path("home/dotfiles/hop")).unwrap();
    for (name, target) in [("mine", "hop"), ("mine.md", "page.md"), ("new", "new")] {
        let target = bed.path("home/dotfiles").join(target);
        symlink(target, bed.path(OWN).join(name)).unwrap();
    }
    for path in ["mine", "page.md", "new", "hop"] {
        let ran = write(&bed, "home/dotfiles", path);
        assert!(ran.out.contains("protected"), "{path}: {ran:?}");
    }
    let evil = "printf '#!/bin/sh\\necho evil\\n' > evil; chmod +x evil; cp evil mine; echo evil > page.md; cp evil new; ln -sfn evil hop";
    let ran = bash(&bed, "home/dotfiles", evil);
    assert_eq!(bed.reply_text("mine", &json!({})), "mine", "{ran:?}");
    assert_eq!(text(&bed.path("home/dotfiles/page.md")), "Mine.");
    let (names, _) = bed.names();
    assert!(!names.contains(&"new".to_owned()), "{names:?} {ran:?}");
    let hop = std::fs::read_link(bed.path("home/dotfiles/hop")).unwrap();
    assert_eq!(hop, Path::new("mine"), "{ran:?}");
}

/// `~/.config/haft -> ~/dotfiles/hop -> real`, and the same one folder up.
#[test]
fn no_tool_changes_a_link_on_the_way_to_the_users_settings() {
    for (link, target, settings) in [
        (CONFIG, "real", "real/haft.yaml"),
        ("home/.config", "real", "real/haft/haft.yaml"),
    ] {
        let bed = Bed::new();
        std::fs::remove_dir_all(bed.path(link)).unwrap();
        bed.write(&format!("home/dotfiles/{settings}"), "sandbox: strict\n");
        let loose = settings.replacen("real", "fake", 1);
        bed.write(&format!("home/dotfiles/{loose}"), "sandbox: off\n");
        symlink(target, bed.path("home/dotfiles/hop")).unwrap();
        symlink(bed.path("home/dotfiles/hop"), bed.path(link)).unwrap();
        let evil = bash(&bed, "home/dotfiles", "ln -sfn fake hop; ls -l hop");
        assert!(evil.out.contains("the link was put back"), "{evil:?}");
        let shown = bed.done(&["config", "show", "--json"]).out;
        let shown: Value = serde_json::from_str(&shown).unwrap();
        assert_eq!(shown["sandbox"]["value"], "strict", "{shown}");
        let ran = bash(&bed, "home/dotfiles", "rm hop; mkdir hop; mv real away");
        assert_eq!(
            std::fs::read_link(bed.path("home/dotfiles/hop")).ok(),
            Some(Path::new(target).to_owned()),
            "{ran:?}"
        );
        assert!(bed.path("home/dotfiles").join(settings).exists());
    }
}

/// Files behind a link that do not belong to haft stay writable.
#[test]
fn a_link_above_the_settings_closes_nothing_else() {
    let bed = Bed::new();
    std::fs::create_dir_all(bed.path("home/dotfiles/config")).unwrap();
    std::fs::remove_dir_all(bed.path("home/.config")).unwrap();
    symlink("dotfiles/config", bed.path("home/.config")).unwrap();
    bed.configure(&json!({}));
    let home = bed.path("home");
    let dir = ["--dir", home.to_str().unwrap()];
    let file = json!({ "path": ".config/other/x", "content": "x" }).to_string();
    let ran = bed.haft(&[&dir[..], &["call", "write", &file]].concat());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let command = json!({ "command": "echo y > .config/other/y" }).to_string();
    let ran = bed.haft(&[&dir[..], &["call", "bash", &command]].concat());
    assert!(bed.path("home/.config/other/y").exists(), "{ran:?}");
}

#[test]
fn a_users_tool_that_leads_to_a_secret_place_is_skipped() {
    let bed = Bed::new();
    bed.write("home/.ssh/id_rsa", "SECRETKEY");
    bed.program("home/.ssh/run", "#!/bin/sh\necho SECRETKEY\n");
    bed.program(&format!("{OWN}/paged"), "#!/bin/sh\ncat ~/.ssh/id_rsa\n");
    bed.program(&format!("{OWN}/plain"), "#!/bin/sh\ncat ~/.ssh/id_rsa\n");
    let key = bed.path("home/.ssh/id_rsa");
    symlink(&key, bed.path(&format!("{OWN}/paged.md"))).unwrap();
    symlink(bed.path("home/.ssh/run"), bed.path(&format!("{OWN}/run"))).unwrap();
    let ran = bed.done(&["tools", "--prompt"]);
    assert!(!ran.out.contains("SECRETKEY"), "{ran:?}");
    for name in ["paged.md", "run"] {
        let reply = format!("tools/{name}: it leads to a secret place");
        assert!(ran.err.contains(&reply), "{reply}: {ran:?}");
    }
    let answer = bed.call("plain", &json!({}));
    assert!(!answer.text.contains("SECRETKEY"), "{answer:?}");
    // The whole folder.
    std::fs::rename(bed.path(OWN), bed.path("home/.ssh/tools")).unwrap();
    symlink(bed.path("home/.ssh/tools"), bed.path(OWN)).unwrap();
    let (names, beside) = bed.names();
    assert!(!names.contains(&"plain".to_owned()), "{names:?}");
    assert!(beside.contains("leads to a secret place"), "{beside}");
}

#[test]
fn a_skipped_tool_makes_nothing_readable_for_others() {
    let bed = Bed::new();
    let run = bed.program("work/run.sh", "#!/bin/sh\necho RAN\n");
    bed.program(&format!("{OWN}/start"), "#!/bin/sh\n./run.sh\n");
    symlink(&run, bed.path(&format!("{OWN}/deploy"))).unwrap();
    let answer = bed.call("start", &json!({}));
    assert!(
        answer.beside.contains("tools/deploy: it is a link"),
        "{answer:?}"
    );
    assert!(!answer.text.contains("RAN"), "{answer:?}");
}

#[test]
fn a_plugin_may_be_a_link_in_the_config_folder() {
    for (link, target) in [
        ("plug.sh", "home/dotfiles/plug.sh"),
        ("plugins", "home/dotfiles/plugins"),
    ] {
        let bed = Bed::new();
        bed.program("home/dotfiles/plug.sh", PLUGIN);
        bed.program("home/dotfiles/plugins/plug.sh", PLUGIN);
        symlink(bed.path(target), bed.path(CONFIG).join(link)).unwrap();
        let path = match link {
            "plugins" => "./plugins/plug.sh",
            _ => "./plug.sh",
        };
        for entry in [
            json!({ "path": path }),
            json!({ "path": "bash", "args": [path] }),
        ] {
            bed.configure(&json!({ "tools": { "plugins": [entry] } }));
            for mode in ["workspace", "strict"] {
                let answer = bed.call_with(&["--sandbox", mode], "own", &json!({}));
                assert_eq!(answer.text, "fine", "{entry} {mode} {answer:?}");
            }
            // It runs in other folders, so tools may not change it here.
            let file = path.trim_start_matches("./");
            let ran = write(&bed, "home/dotfiles", file);
            assert!(ran.out.contains("protected"), "{file}: {ran:?}");
        }
    }
}

#[test]
fn a_home_folder_is_not_a_project() {
    let bed = Bed::new();
    bed.program("home/rt/bin/myrt", "#!/bin/sh\nexec bash \"$@\"\n");
    bed.program(&format!("{CONFIG}/plug.sh"), PLUGIN);
    for entry in [
        json!({ "path": "/usr/bin/env", "args": ["bash", "./plug.sh"] }),
        json!({ "path": bed.path("home/rt/bin/myrt"), "args": ["./plug.sh"] }),
        json!({ "path": "myrt", "args": ["./plug.sh"] }),
    ] {
        let plugins = json!([entry]);
        bed.configure(&json!({ "tools": { "work_dir": bed.work(""), "plugins": plugins } }));
        for folder in [Path::new("/"), &bed.path("home")] {
            let path = format!("{}:/usr/bin:/bin", bed.path("home/rt/bin").display());
            let mut command = bed.command(&["call", "own", "{}"]);
            let ran = Ended::of(command.current_dir(folder).env("PATH", path));
            assert_eq!(ran.out.trim_end(), "fine", "{folder:?} {entry} {ran:?}");
        }
    }
    // A project that moves the work folder is still a project.
    bed.configure(&json!({ "tools": { "plugins": [{ "path": bed.path("home/rt/bin/myrt"), "args": ["./plug.sh"] }] } }));
    std::fs::create_dir_all(bed.path("home/sub")).unwrap();
    bed.write("home/haft.yaml", "tools: {work_dir: sub}");
    let ran = haft_in(&bed, "home", &["call", "own", "{}"]);
    assert!(ran.err.contains("it is not trusted"), "{ran:?}");
}

#[test]
fn a_tool_of_a_folder_of_settings_is_spoken_of_once() {
    let bed = Bed::new();
    bed.program("home/dotfiles/tools/mine", "#!/bin/sh\necho mine\n");
    symlink(bed.path("home/dotfiles/tools"), bed.path(OWN)).unwrap();
    let ran = haft_in(&bed, "home/dotfiles", &["tools"]);
    assert!(ran.err.contains("mine (program)"), "{ran:?}");
    assert!(!ran.err.contains("left out"), "{ran:?}");
}

#[test]
fn trust_explains_what_was_trusted() {
    let bed = Bed::new();
    bed.program(&format!("{OWN}/mine"), "#!/bin/sh\necho mine\n");
    let ran = bed.done(&["trust", "--yes"]);
    assert!(!ran.out.contains("will not run"), "{ran:?}");
    assert!(ran.out.contains("even after those change"), "{ran:?}");
    bed.program("work/tools/ours", "#!/bin/sh\necho ours\n");
    let ran = bed.done(&["trust", "--yes"]);
    assert!(ran.out.contains("will not run until"), "{ran:?}");
}

#[test]
fn a_refused_start_is_explained_even_if_the_tool_continues() {
    let bed = Bed::new();
    bed.program("work/run.sh", "#!/bin/sh\necho ran\n");
    bed.program(&format!("{OWN}/mine"), "#!/bin/sh\n./run.sh\nexit 0\n");
    let answer = bed.call("mine", &json!({}));
    assert!(!answer.is_error, "{answer:?}");
    let hints = answer.text.matches("`haft trust` allows it").count();
    assert_eq!(hints, 1, "{answer:?}");
}
