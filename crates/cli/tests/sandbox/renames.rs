//! Paths that a command redirects: the folders it can write, and places where git or the
//! user would find what it made.

use crate::bed::{Bed, Level, beds_at, in_each};
use crate::git::PLUGIN;
use crate::left;
use crate::turn;
use serde_json::json;
use std::time::Duration;

fn free(bed: &Bed, script: &str) {
    let made = bed.free(script);
    assert!(made.status.success(), "{script}: {made:?}");
}

/// A command can rename a work folder inside another root, and put a link in its place.
#[test]
fn a_root_inside_another_cannot_be_redirected() {
    let _turn = turn::shared();
    for swap in [
        "cd ../..; mv org org2 && ln -s ../out org",
        "cd ..; mv app app2 && ln -s ../../out/app app",
        "cd ../..; mv org org2 && mkdir org && ln -s ../../out/app org/app",
    ] {
        in_each(beds_at(&[Level::Full, Level::Partial]), |bed| {
            bed.user(&format!("tools: {{roots: [{}]}}\n", bed.at("work")));
            bed.file("work/org/app/x", "");
            bed.file("out/app/x", "");
            let mut server = bed.serve_with(&["--dir", &bed.at("work/org/app")]);
            assert_eq!(server.bash("ls").text, "x\n");
            let swapped = server.bash(swap);
            let next = server.bash("echo pwned >> f; echo wrote");
            assert!(!bed.has("out/app/f"), "{}: {swap}: {next:?}", bed.name());
            if bed.is_full() {
                assert!(bed.has("work/org/app/f"), "{swap}: {swapped:?} {next:?}");
                return;
            }
            assert!(
                next.is_error
                    && next.has("org/app was moved, replaced or removed while haft was running"),
                "{}: {swap}: {next:?}",
                bed.name()
            );
            // Restored, it is the same folder again.
            free(
                bed,
                "if test -e org2; then rm -rf org && mv org2 org; else rm -f org/app && mv org/app2 org/app; fi",
            );
            let back = server.bash("echo fine >> f; echo wrote");
            assert!(back.text.contains("wrote"), "{}: {back:?}", bed.name());
            assert!(bed.has("work/org/app/f"));
        });
    }
}

const HOOK: &str = "printf '#!/bin/sh\\necho ran >> %s\\n' \"$PWD/ran\" > hh/_/pre-commit; chmod +x hh/_/pre-commit";

/// A missing path can also be created by turning a parent folder into a link.
#[test]
fn a_missing_path_cannot_be_created_by_a_link() {
    let _turn = turn::shared();
    in_each(beds_at(&[Level::Full, Level::Partial]), |bed| {
        bed.file("home/plugin.py", PLUGIN);
        bed.user(&format!(
            "tools:\n  protect: [deep/er/file, deeper/er/file]\n  plugins:\n    - {{path: /usr/bin/python3, args: [{}]}}\n",
            bed.at("home/plugin.py")
        ));
        free(
            bed,
            "git init -q . && git config core.hooksPath .husky/_ && git config include.path ../cfg/extra && mkdir .husky && touch .husky/kept",
        );
        let mut server = bed.serve_with(&["--approve", "auto"]);
        let name = bed.name();
        let hook = format!("mv .husky hh; mkdir -p hh/_; {HOOK}; ln -s hh .husky; true");
        let answer = server.bash(&hook);
        assert!(!bed.has("work/.husky/_/pre-commit"), "{name}: {answer:?}");
        if bed.is_full() {
            assert!(bed.has("work/.husky/kept"), "{name}: {answer:?}");
        } else {
            assert!(
                answer.has(".husky/_ must not be written"),
                "{name}: {answer:?}"
            );
        }
        free(
            bed,
            "git -c user.name=n -c user.email=e commit -q --allow-empty -m x && ! test -e ran",
        );
        let answer =
            server.bash("mkdir c2; printf '[core]\\nhooksPath = c2\\n' > c2/extra; ln -s c2 cfg");
        assert!(
            answer.has("cfg/extra must not be written"),
            "{name}: {answer:?}"
        );
        assert!(!bed.has("work/cfg"), "{name}");
        let made = |at: &str| format!("mkdir -p x9/er; echo evil > x9/er/file; ln -s x9 {at}");
        let answer = server.bash(&made("deep"));
        assert!(
            answer.has("deep/er/file must not be written"),
            "{name}: {answer:?}"
        );
        let what = made("deeper");
        let answer = server.tool("make", &json!({ "what": what }));
        assert!(
            answer.has("deeper/er/file must not be written"),
            "{name}: {answer:?}"
        );
        // A link further down, and a link to a link.
        let answer = server.bash("mkdir deep; ln -s ../x9/er deep/er");
        assert!(
            answer.has("deep/er/file must not be written"),
            "{name}: {answer:?}"
        );
        free(bed, "rmdir deep");
        let answer = server.bash("ln -s x9 x8; ln -s x8 deep");
        assert!(
            answer.has("deep/er/file must not be written"),
            "{name}: {answer:?}"
        );
        assert!(
            !bed.has("work/deep/er/file") && !bed.has("work/deeper"),
            "{name}"
        );
        assert_eq!(bed.read("work/x9/er/file"), "evil\n", "{name}");
    });
}

/// A dangling link does not stop commands, and its target counts.
#[test]
fn the_target_of_a_dangling_link_is_watched() {
    let _turn = turn::shared();
    in_each(beds_at(&[Level::Full, Level::Partial]), |bed| {
        let name = bed.name();
        free(
            bed,
            "git init -q . && rm -rf .git/hooks && ln -s ../githooks .git/hooks && ln -s round .git/round && git config core.hooksPath .git/round",
        );
        let mut server = bed.serve();
        assert_eq!(server.bash("echo fine").text, "fine\n", "{name}");
        free(bed, "git config --unset core.hooksPath");
        let answer = server.bash("mkdir githooks; echo evil > githooks/pre-commit");
        assert!(
            answer.has("githooks must not be written"),
            "{name}: {answer:?}"
        );
        assert!(!bed.has("work/githooks"), "{name}");
        // A command creates one itself.
        let answer = server.bash("mkdir sub; cd sub; ln -s nowhere .git");
        assert!(!answer.is_error, "{name}: {answer:?}");
        let mut inner = bed.serve_with(&["--dir", &bed.at("work/sub")]);
        assert_eq!(inner.bash("echo fine").text, "fine\n", "{name}");
    });
}

/// A protected path reached through several links is protected at each of them.
#[test]
fn every_link_on_the_way_to_a_protected_path_is_restored() {
    let _turn = turn::shared();
    let cases = [
        // A link in the middle of a chain.
        (
            "ln -s real a; ln -s a hk; git init -q .; git config core.hooksPath hk",
            "a",
            "real",
        ),
        // Disabled hooks.
        (
            "ln -s /dev/null nh; git init -q .; git config core.hooksPath nh",
            "nh",
            "/dev/null",
        ),
        // A work tree with another name, where relative hook paths start.
        (
            "git init -q --bare real/b; ln -s real t; git -C real/b config core.bare false; \
             git -C real/b config core.worktree ../../t; git -C real/b config core.hooksPath hk",
            "t",
            "real",
        ),
        // A parent folder.
        (
            "ln -s real lnk; mkdir real/hooks; git init -q .; git config core.hooksPath lnk/hooks",
            "lnk",
            "real",
        ),
        (
            "git init -q .; rm -rf .git/hooks; ln -s real a; ln -s ../a .git/hooks",
            "a",
            "real",
        ),
        (
            "git init -q .; echo true > real/hk; ln -s real sl; ln -s ../../sl/hk .git/hooks/pre-commit",
            "sl",
            "real",
        ),
        (
            "git init -q t; mv t/.git r.git; ln -s r.git a; ln -s a .git",
            "a",
            "r.git",
        ),
        (
            "git init -q --separate-git-dir=real/r.git .; ln -s real sl; echo gitdir: sl/r.git > .git",
            "sl",
            "real",
        ),
        (
            "git init -q .; touch real/cfg; ln -s real/cfg a; ln -s a inc; git config include.path ../inc",
            "a",
            "real/cfg",
        ),
        (
            "echo 'tools: {protect: [conf]}' > haft.yaml; touch real/f; ln -s real/f a; ln -s a conf",
            "a",
            "real/f",
        ),
        (
            "echo 'tools: {protect: [l/f]}' > haft.yaml; touch real/f; ln -s real l",
            "l",
            "real",
        ),
        (
            "echo 'tools: {protect: [x]}' > real/haft.yaml; ln -s real d; ln -s d/haft.yaml haft.yaml",
            "d",
            "real",
        ),
    ];
    for (setup, link, target) in cases {
        in_each(beds_at(&[Level::Full, Level::Partial]), |bed| {
            let name = bed.name();
            free(bed, &format!("mkdir real; {setup}"));
            let mut server = bed.serve();
            for attack in [
                format!("mkdir e; ln -sfn e {link}"),
                format!("rm {link}; mkdir {link}"),
            ] {
                let answer = server.bash(&attack);
                let now = std::fs::read_link(bed.path(&format!("work/{link}")));
                assert_eq!(
                    now.ok().as_deref(),
                    Some(std::path::Path::new(target)),
                    "{name}: {setup}: {attack}: {answer:?}"
                );
            }
            let path = format!("path={link}");
            let delete = ["call", "--toolset", "workspace", "delete", &path];
            let deleted = bed.haft(&delete).output().unwrap();
            assert!(!deleted.status.success(), "{name}: {setup}: {deleted:?}");
        });
    }
}

/// `a/../b` has another target once `a` is a link, so no command can make it one.
#[test]
fn a_folder_before_dot_dot_does_not_become_a_link() {
    let _turn = turn::shared();
    let cases = [
        "mkdir x; git init -q .; git config core.hooksPath x/../real",
        "git init -q .; git config core.hooksPath x/../real",
        "mkdir x; git init -q .; touch real/cfg; git config include.path ../x/../real/cfg",
        "mkdir x; git init -q --separate-git-dir=real/r.git .; echo gitdir: x/../real/r.git > .git",
        "mkdir x; echo 'tools: {protect: [x/../real]}' > haft.yaml",
    ];
    for setup in cases {
        in_each(beds_at(&[Level::Full, Level::Partial]), |bed| {
            let name = bed.name();
            free(bed, &format!("mkdir real; {setup}"));
            let mut server = bed.serve();
            let answer = server.bash("mkdir -p e/s e/real; rmdir x; ln -s e/s x; true");
            let is_link = bed.path("work/x").is_symlink();
            assert!(!is_link, "{name}: {setup}: {answer:?}");
        });
    }
    in_each(beds_at(&[Level::Full]), |bed| {
        free(
            bed,
            "mkdir real; touch x; git init -q .; git config core.hooksPath x/../real",
        );
        let answer = bed
            .serve()
            .bash("mkdir -p e/s e/real; rm -f x; ln -s e/s x; true");
        assert!(
            !bed.path("work/x").is_symlink(),
            "{}: {answer:?}",
            bed.name()
        );
    });
}

/// Links in a circle have no target until a command changes one of them.
#[test]
fn every_link_of_a_circle_is_restored() {
    let _turn = turn::shared();
    in_each(beds_at(&[Level::Full, Level::Partial]), |bed| {
        free(
            bed,
            "git init -q .; ln -s b a; ln -s a b; git config core.hooksPath a",
        );
        let mut server = bed.serve();
        let answer = server.bash("mkdir e; ln -sfn e b");
        let target = std::fs::read_link(bed.path("work/b")).ok();
        let expected = Some(std::path::Path::new("a"));
        assert_eq!(target.as_deref(), expected, "{}: {answer:?}", bed.name());
    });
}

#[test]
fn a_folder_of_hooks_is_protected_however_it_is_spelled() {
    let _turn = turn::shared();
    in_each(beds_at(&[Level::Full]), |bed| {
        free(
            bed,
            "git init -q .; mkdir -p hk/sub; git config core.hooksPath hk/sub/..",
        );
        let answer = bed.serve().bash("echo true > hk/pre-commit");
        assert!(!bed.has("work/hk/pre-commit"), "{}: {answer:?}", bed.name());
    });
    // The hooks folder is the work tree itself.
    in_each(beds_at(&[Level::Full, Level::Partial]), |bed| {
        free(
            bed,
            "git init -q .; mkdir real; echo true > real/pc; ln -s real/pc a; ln -s a pre-commit; \
             git config core.hooksPath \"$PWD\"",
        );
        let answer = bed
            .serve()
            .bash("mkdir e; echo true > e/pc; ln -sfn e/pc a");
        let target = std::fs::read_link(bed.path("work/a")).ok();
        let expected = Some(std::path::Path::new("real/pc"));
        assert_eq!(target.as_deref(), expected, "{}: {answer:?}", bed.name());
    });
}

/// A background process creates the file again as soon as it is moved out. The check after
/// its end moves it out for good.
#[test]
fn a_background_process_does_not_outlast_the_last_check() {
    const AGAIN: &str = r#"
import os, time
end = time.time() + 3
while time.time() < end:
    with open(".git/new", "w") as file: file.write("../e.git")
    while os.path.lexists(".git/commondir") and time.time() < end: pass
    os.rename(".git/new", ".git/commondir")
open("done", "w").close()
"#;
    let _turn = turn::shared();
    in_each(beds_at(&[Level::Full, Level::Partial]), |bed| {
        let name = bed.name();
        // Many folders, so that checking them takes a while.
        free(bed, "git init -q .; mkdir -p n/{1..20}/{1..50}");
        bed.file("work/again.py", AGAIN);
        let mut server = bed.serve();
        let first = server.bash("(python3 again.py > /dev/null 2>&1 &); sleep 0.5");
        assert!(first.has(".git/commondir"), "{name}: {first:?}");
        let second = server.bash("until [ -e done ]; do sleep 0.05; done");
        let third = server.bash("true");
        assert!(
            !bed.has("work/.git/commondir"),
            "{name}: {first:?} {second:?} {third:?}"
        );
    });
}

/// A command can remove the permission to search a folder, so that haft finds nothing in
/// it, and restore it in the next command.
#[test]
fn a_folder_that_cannot_be_searched_stays_protected() {
    let _turn = turn::shared();
    for mode in ["400", "600", "000"] {
        in_each(beds_at(&[Level::Full]), |bed| {
            let name = bed.name();
            bed.user("policy:\n  - {deny: \"*\", path: \"app/**/*.env\"}\n  - {deny: \"*\", path: app/key}\n");
            bed.file("work/app/x/a.env", "SECRET");
            bed.file("work/app/key", "SECRET");
            free(
                bed,
                "git init -q .; git config core.hooksPath hk; mkdir hk; git init -q sub/deep",
            );
            let mut server = bed.serve();
            server.bash(&format!("chmod {mode} .git sub app app/x"));
            let answer = server.bash(
                "chmod 755 .git sub app app/x; cat app/x/a.env app/key; for git in .git sub/deep/.git; do \
                 echo ../e > $git/commondir; echo '[x]' >> $git/config; echo true > $git/hooks/pre-commit; \
                 done; echo true > hk/pre-commit",
            );
            assert!(!answer.has("SECRET"), "{name} {mode}: {answer:?}");
            free(
                bed,
                "chmod 755 .git sub app app/x; ! grep '\\[x\\]' .git/config sub/deep/.git/config",
            );
            for made in [
                ".git/commondir",
                ".git/hooks/pre-commit",
                "sub/deep/.git/commondir",
                "sub/deep/.git/hooks/pre-commit",
                "hk/pre-commit",
            ] {
                assert!(
                    !bed.has(&format!("work/{made}")),
                    "{name} {mode}: {made}: {answer:?}"
                );
            }
        });
    }
}

/// While a background process changes the target of a link, the first target stays
/// protected.
#[test]
fn a_link_that_changes_back_and_forth_protects_its_first_target() {
    const FLIP: &str = r#"
import os, time
end = time.time() + 3
while time.time() < end:
    for target in ("e", "real"):
        os.symlink(target, "new")
        os.rename("new", "hk")
        time.sleep(0.01)
"#;
    let _turn = turn::shared();
    in_each(beds_at(&[Level::Full]), |bed| {
        free(
            bed,
            "mkdir real e; ln -s real hk; git init -q .; git config core.hooksPath hk",
        );
        bed.file("work/flip.py", FLIP);
        let mut server = bed.serve();
        server.bash("(python3 flip.py > /dev/null 2>&1 &); sleep 0.1");
        for _ in 0..5 {
            let answer = server.bash("echo true > real/pre-commit");
            assert!(
                !bed.has("work/real/pre-commit"),
                "{}: {answer:?}",
                bed.name()
            );
        }
    });
}

/// A command that starts while another one's link is at a protected path does not treat the
/// link as original.
#[test]
fn a_link_that_another_command_made_is_not_restored() {
    let _turn = turn::shared();
    in_each(beds_at(&[Level::Full, Level::Partial]), |bed| {
        free(bed, "git init -q .; mkdir cd");
        for is_other_process in [false, true] {
            free(bed, "rm -f a b c");
            let wait = |file: &str| format!("until [ -e {file} ]; do sleep 0.02; done");
            let mut first = bed.serve();
            let mut second = is_other_process.then(|| bed.serve());
            let script = format!("ln -s ../cd .git/commondir; touch a; {}", wait("b"));
            let one = first.ask(&json!({ "command": script }));
            left::until("the link was made", Duration::from_secs(20), || {
                bed.has("work/a")
            });
            let script = format!("touch b; {}", wait("c"));
            let arguments = json!({ "command": script });
            let other = second.as_mut().unwrap_or(&mut first).ask(&arguments);
            let one = first.answer(one);
            free(bed, "touch c");
            let other = second.as_mut().unwrap_or(&mut first).answer(other);
            assert!(
                !bed.path("work/.git/commondir").is_symlink(),
                "{}: {one:?} {other:?}",
                bed.name()
            );
        }
    });
}

/// The work folder is part of a repository, whose hooks and includes are in it.
#[test]
fn a_repository_above_the_work_folder_counts() {
    let _turn = turn::shared();
    in_each(beds_at(&[Level::Full]), |bed| {
        free(
            bed,
            "git init -q .; mkdir -p app/hk app/sub; touch app/inc app/hook; \
             git config core.hooksPath app/hk; git config include.path ../app/inc; \
             ln -s ../../app/hook .git/hooks/pre-commit",
        );
        let mut server = bed.serve_with(&["--dir", &bed.at("work/app")]);
        for file in ["hk/pre-commit", "inc", "hook"] {
            let answer = server.bash(&format!("echo evil > {file}"));
            let content = bed.read(&format!("work/app/{file}"));
            assert_eq!(content, "", "{}: {file}: {answer:?}", bed.name());
            let write = ["call", "--dir", &bed.at("work/app"), "write"];
            let path = format!("path={file}");
            let written = bed.haft(&[&write[..], &[&path, "content=x"]].concat());
            let written = { written }.output().unwrap();
            assert!(
                !written.status.success(),
                "{}: {file}: {written:?}",
                bed.name()
            );
        }
        assert_eq!(server.bash("echo fine > sub/f; cat sub/f").text, "fine\n");
    });
}

/// git also finds a bare repository above the folder it runs in.
#[test]
fn a_bare_repository_above_the_work_folder_counts() {
    let _turn = turn::shared();
    in_each(beds_at(&[Level::Full]), |bed| {
        free(
            bed,
            "git init -q --bare .; mkdir -p app/hk app/sub; touch app/inc; \
             git config core.hooksPath app/hk; git config include.path app/inc",
        );
        let mut server = bed.serve_with(&["--dir", &bed.at("work/app")]);
        for file in ["hk/pre-commit", "inc"] {
            let answer = server.bash(&format!("echo evil > {file}; cat {file}"));
            let is_harmless = !bed.has(&format!("work/app/{file}"))
                || bed.read(&format!("work/app/{file}")).is_empty();
            assert!(is_harmless, "{}: {file}: {answer:?}", bed.name());
        }
        assert_eq!(server.bash("echo fine > sub/f; cat sub/f").text, "fine\n");
    });
}

/// A relative hooks path starts at the repository above, even if the environment names the
/// configuration.
#[test]
fn a_repository_above_counts_for_configurations_of_the_environment() {
    let _turn = turn::shared();
    in_each(beds_at(&[Level::Full]), |bed| {
        free(bed, "git init -q .; mkdir -p app/hk");
        bed.file("elsewhere.cfg", "[core]\n hooksPath = app/hk\n");
        let haft = |args: &[&str]| {
            let dir = ["call", "--dir", &bed.at("work/app")];
            let mut command = bed.haft(&[&dir[..], args].concat());
            command.env("GIT_CONFIG_GLOBAL", bed.at("elsewhere.cfg"));
            command.output().unwrap()
        };
        for args in [
            ["bash", "command=echo evil > hk/pre-commit"].as_slice(),
            &["write", "path=hk/pre-commit", "content=evil"],
        ] {
            let ended = haft(args);
            assert!(
                !bed.has("work/app/hk/pre-commit"),
                "{}: {ended:?}",
                bed.name()
            );
        }
    });
}

/// git copies the hooks and the configuration of a template into each new repository.
#[test]
fn hooks_and_configuration_of_a_template_are_protected() {
    let _turn = turn::shared();
    in_each(beds_at(&[Level::Full]), |bed| {
        free(
            bed,
            "mkdir hk more; touch inc; mkdir -p \"$HOME/tpl\"; ln -s \"$PWD/hk\" \"$HOME/tpl/hooks\"; \
             git config --global init.templateDir \"$HOME/tpl\"; \
             git config -f \"$HOME/tpl/config\" core.hooksPath \"$PWD/more\"; \
             git config -f \"$HOME/tpl/config\" include.path \"$PWD/inc\"",
        );
        let mut server = bed.serve();
        for file in ["hk/pre-commit", "more/pre-commit", "inc"] {
            let answer = server.bash(&format!("echo evil > {file}"));
            let path = format!("work/{file}");
            let is_harmless = !bed.has(&path) || bed.read(&path).is_empty();
            assert!(is_harmless, "{}: {file}: {answer:?}", bed.name());
            let path = format!("path={file}");
            let written = bed.haft(&["call", "write", &path, "content=x"]);
            let written = { written }.output().unwrap();
            assert!(
                !written.status.success(),
                "{}: {file}: {written:?}",
                bed.name()
            );
        }
    });
}

#[test]
fn a_protected_folder_around_the_work_folder_applies_to_commands() {
    let _turn = turn::shared();
    in_each(beds_at(&[Level::Full]), |bed| {
        bed.user(&format!("tools: {{protect: [{}]}}\n", bed.at("work")));
        bed.file("work/app/f", "");
        let mut server = bed.serve_with(&["--dir", &bed.at("work/app")]);
        let answer = server.bash("echo bad > f");
        assert_eq!(bed.read("work/app/f"), "", "{}: {answer:?}", bed.name());
    });
}

#[test]
fn no_command_runs_in_a_folder_that_cannot_be_listed() {
    let _turn = turn::shared();
    in_each(beds_at(&[Level::Full]), |bed| {
        free(bed, "git init -q a; chmod 300 .");
        let answer = bed.bash("chmod 755 .; echo true > a/.git/hooks/pre-commit");
        free(bed, "chmod 755 .");
        assert!(
            !bed.has("work/a/.git/hooks/pre-commit"),
            "{}: {answer:?}",
            bed.name()
        );
    });
}
