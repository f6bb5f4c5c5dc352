//! Files that control git or haft, and paths that the user protects: at level full a
//! command cannot change them, at level partial a change is reported; and git keeps
//! working.

use crate::bed::{Bed, Level, beds, beds_at, in_each};
use crate::turn;

const NAME: &str = "-c user.name=t -c user.email=t@t -c init.defaultBranch=main";

fn repository(bed: &Bed) {
    let made = bed.free(&format!("git {NAME} init -q . && echo one > f && git add f && git {NAME} commit -qm one && mkdir -p .git/hooks"));
    assert!(made.status.success(), "{made:?}");
    bed.file("work/.git/hooks/kept", "kept");
    bed.file("work/haft.yaml", "# kept\n");
}

const ATTACKS: [&str; 11] = [
    "echo evil > .git/hooks/pre-commit",
    "echo evil >> .git/config",
    "git config core.pager evil",
    "rm -f .git/hooks/kept && test ! -e .git/hooks/kept",
    "mv .git/hooks .git/h2",
    "mv .git git2",
    "rm -rf .git; test ! -e .git/config",
    "echo evil > c && mv -f c .git/config",
    "ln -sfn /nowhere .git/hooks && test -L .git/hooks",
    "echo 'sandbox: off' > haft.yaml",
    "echo x > y && mv -f y haft.yaml",
];

#[test]
fn files_that_control_git_and_haft_are_protected() {
    let _turn = turn::shared();
    in_each(beds(), |bed| {
        repository(bed);
        let config = bed.read("work/.git/config");
        let mut server = bed.serve();
        if bed.is_full() {
            let did = server.tries(&ATTACKS);
            assert!(did.is_empty(), "{}: {did:#?}", bed.name());
            assert_eq!(bed.read("work/.git/config"), config);
            assert_eq!(bed.read("work/.git/hooks/kept"), "kept");
            assert_eq!(bed.read("work/haft.yaml"), "# kept\n");
            assert!(!bed.has("work/.git/hooks/pre-commit"));
            let text = server.bash("echo evil > .git/hooks/pre-commit").text;
            assert!(text.contains("Exit code: 1"), "{text}");
        } else {
            for (script, path) in [
                ("echo evil > .git/hooks/pre-commit", ".git/hooks"),
                ("echo '[x]' >> .git/config", ".git/config"),
                ("echo 'sandbox: off' > haft.yaml", "haft.yaml"),
            ] {
                let text = server.bash(script).text;
                let note = format!("[protected: {path}");
                assert!(
                    text.contains(&note) && text.contains(" was changed by the command]"),
                    "{}: {text}",
                    bed.name()
                );
            }
            // Unchanged paths are not reported.
            let text = server.bash("echo two > f; git status --short").text;
            assert!(!text.contains("[protected"), "{text}");
        }
    });
}

#[test]
fn git_works() {
    let _turn = turn::shared();
    in_each(beds(), |bed| {
        repository(bed);
        let mut server = bed.serve();
        let text = server
            .bash(&format!(
                "set -e; echo two > f; git add f; git {NAME} commit -qm two; git log --oneline | wc -l; \
                 git checkout -q -b other; git {NAME} stash list; git tag t; git branch -D other -q 2>/dev/null || true; echo fine"
            ))
            .text;
        assert!(
            text.starts_with("2\n") && text.ends_with("fine\n"),
            "{}: {text}",
            bed.name()
        );
        let text = server.bash(&format!("git {NAME} init -q made && git clone -q . copy && git -C copy log --oneline | wc -l")).text;
        assert!(text.starts_with("2\n"), "{}: {text}", bed.name());
        // New repositories are reported: git uses their configuration.
        for name in ["made", "copy"] {
            assert!(bed.has(&format!("work/{name}/.git/config")), "{text}");
        }
    });
}

#[test]
fn new_files_are_reported() {
    let _turn = turn::shared();
    in_each(beds(), |bed| {
        let mut server = bed.serve();
        let text = server.bash(&format!("git {NAME} init -q .")).text;
        assert!(
            text.contains("[new: .git (a repository: "),
            "{}: {text}",
            bed.name()
        );
        // Kept or moved out: it is reported, and has no effect.
        let text = server.bash("echo 'sandbox: off' > haft.yaml").text;
        let named = ["[new: haft.yaml (it is not trusted)]"];
        assert!(
            named.iter().any(|note| text.contains(note)),
            "{}: {text}",
            bed.name()
        );
        let details = bed.bash_with(&["--quiet"], "true").details;
        assert_eq!(details["sandbox"], bed.level.name());
        let text = server.bash("echo other > f").text;
        assert_eq!(text, "(no output)", "{}", bed.name());
    });
}

#[test]
fn the_folder_behind_a_pointer_is_protected() {
    let _turn = turn::shared();
    for bed in beds_at(&[Level::Full]) {
        // A repository with a worktree, both inside the work folder.
        let made = bed.free(&format!(
            "mkdir main && cd main && git {NAME} init -q . && git {NAME} commit -q --allow-empty -m one && git worktree add -q ../tree 2>/dev/null && mkdir -p .git/hooks"
        ));
        assert!(made.status.success(), "{made:?}");
        let mut command = bed.haft(&["mcp"]);
        command.args(["--dir", &bed.at("work/tree")]);
        bed.user(&format!("tools:\n  roots: [{}]\n", bed.at("work/main")));
        let mut server = crate::client::Server::start(command);
        let git = bed.at("work/main/.git");
        let did = server.tries(&[
            &format!("echo evil > {git}/hooks/post-checkout"),
            &format!("echo evil >> {git}/config"),
            &format!("mv {git} {git}2"),
            "echo \"gitdir: /tmp/evil\" > .git && grep -q evil .git",
        ]);
        assert!(did.is_empty(), "{}: {did:#?}", bed.name());
        let text = server
            .bash(&format!(
                "echo x > f; git add f; git {NAME} commit -qm two && git log --oneline | wc -l"
            ))
            .text;
        assert!(text.starts_with("2\n"), "{}: {text}", bed.name());
    }
}

#[test]
fn paths_the_user_protects_are_protected() {
    let _turn = turn::shared();
    for bed in beds_at(&[Level::Full]) {
        bed.user("tools:\n  protect: [a/secret, single.txt, later/on]\n");
        bed.file("work/a/secret/f", "kept");
        bed.file("work/single.txt", "kept");
        let mut server = bed.serve();
        let did = server.tries(&[
            "echo x > a/secret/f",
            "echo x > a/secret/new",
            "rm -rf a/secret; test ! -e a/secret/f",
            "mv a/secret s2",
            "mv a b && echo x > b/secret/f",
            "mv a b",
            "mkdir c && mv -T c a",
            "ln a/secret/f hard && echo x > hard",
            "cp -l a/secret/f hard2 && echo x > hard2",
            "ln -s a/secret l && echo x > l/f",
            "echo x > single.txt",
            "echo y > y && mv -f y single.txt",
            "rm -f single.txt && test ! -e single.txt",
            "chmod 777 single.txt",
            "echo x > /proc/self/cwd/a/secret/f",
            "python3 -c \"import ctypes, os; assert ctypes.CDLL(None).renameat2(-100, b'a', -100, b'work', 2) == 0\"",
        ]);
        assert!(did.is_empty(), "{}: {did:#?}", bed.name());
        assert_eq!(bed.read("work/a/secret/f"), "kept");
        assert_eq!(bed.read("work/single.txt"), "kept");
        let works = server.tries(&[
            "cat a/secret/f single.txt",
            "echo x > a/other",
            "echo x > secret",
        ]);
        assert_eq!(works.len(), 3, "{}: {works:?}", bed.name());
        // Created at an empty path: moved out and reported.
        let text = server.bash("mkdir -p later && echo mine > later/on").text;
        let (_, to) = text.split_once("[protected: later/on must not be written; what the command made there was moved to ").unwrap_or_else(|| panic!("{text}"));
        assert!(!bed.has("work/later/on"), "{text}");
        let to = to.split_once(']').unwrap().0;
        assert_eq!(std::fs::read_to_string(to).unwrap(), "mine\n");
    }
}

/// The target of a protected link is protected, whatever happens to the link.
#[test]
fn a_protected_link_cannot_be_bypassed() {
    let _turn = turn::shared();
    for bed in beds_at(&[Level::Full]) {
        bed.user("tools:\n  protect: [link]\n");
        bed.file("work/target/f", "kept");
        let linked = bed.free("ln -s target link");
        assert!(linked.status.success());
        let mut server = bed.serve();
        for attack in [
            "rm link",
            "mv link elsewhere",
            "ln -sfn /tmp link",
            "rm link; mkdir link; echo mine > link/f",
        ] {
            let text = server.bash(attack).text;
            assert!(
                text.contains("[protected: link must not be changed; the link was put back]"),
                "{}: {attack}: {text}",
                bed.name()
            );
            let leads = std::fs::read_link(bed.path("work/link")).unwrap();
            assert_eq!(leads, std::path::Path::new("target"), "{attack}");
        }
        // Within one command too, when the link is already gone.
        let did = server.tries(&[
            "rm link; echo evil > target/f",
            "rm link; mv target t2",
            "echo evil > target/f",
            "mv target t2",
        ]);
        assert!(did.is_empty(), "{}: {did:#?}", bed.name());
        assert_eq!(bed.read("work/target/f"), "kept");
    }
}
