//! Files that control git, wherever they are and whichever program changes them; and
//! changes at protected paths by programs that keep running between calls.

use crate::bed::{Bed, Level, beds, beds_at, in_each};
use crate::turn;
use serde_json::json;

const NAME: &str = "export GIT_AUTHOR_NAME=t GIT_AUTHOR_EMAIL=t@t GIT_COMMITTER_NAME=t GIT_COMMITTER_EMAIL=t@t GIT_CONFIG_COUNT=2 GIT_CONFIG_KEY_0=init.defaultBranch GIT_CONFIG_VALUE_0=main GIT_CONFIG_KEY_1=protocol.file.allow GIT_CONFIG_VALUE_1=always;";

fn made(bed: &Bed, script: &str) {
    let made = bed.free(&format!("set -e; {NAME} {script}"));
    assert!(made.status.success(), "{made:?}");
}

#[test]
fn a_repository_of_any_name_stays_protected_for_the_session() {
    let _turn = turn::shared();
    in_each(beds_at(&[Level::Full]), |bed| {
        made(
            bed,
            "git init -q --separate-git-dir in.git one; git -C one commit -q --allow-empty -m one; git init -q --bare bare",
        );
        let before = [bed.read("work/in.git/config"), bed.read("work/bare/config")];
        let mut server = bed.serve();
        for git in ["in.git", "bare"] {
            // Everything that identifies a repository is removed ...
            let text = server
                .bash(&format!(
                    "mkdir s-{git} && mv {git}/HEAD {git}/objects {git}/refs s-{git}/ && echo moved"
                ))
                .text;
            assert!(text.contains("moved"), "{}: {text}", bed.name());
            // ... and neither a command nor a file tool can use that.
            let did = server.tries(&[
                &format!("echo evil >> {git}/config"),
                &format!("echo evil > {git}/hooks/post-commit"),
                &format!("mv {git} g"),
            ]);
            assert!(did.is_empty(), "{}: {did:?}", bed.name());
            for path in ["config", "hooks/post-commit", "commondir"] {
                let path = format!("{git}/{path}");
                let answer = server.tool("write", &json!({ "path": path, "content": "evil" }));
                assert!(
                    answer.is_error && answer.has("protected"),
                    "{path}: {answer:?}"
                );
            }
            server.bash(&format!("mv s-{git}/* {git}/"));
        }
        assert_eq!(
            [bed.read("work/in.git/config"), bed.read("work/bare/config")],
            before
        );
        made(bed, "git -C one status; git -C bare rev-parse");
    });
}

#[test]
fn a_new_repository_is_reported() {
    let _turn = turn::shared();
    in_each(beds(), |bed| {
        bed.file("work/kept/f", "x");
        let mut server = bed.serve();
        let named = |text: &str, path: &str| {
            text.contains(&format!(
                "[new: {path} (a repository: git obeys its hooks and config)]"
            ))
        };
        let git = |script: &str| format!("{NAME} {script}");
        let text = server.bash(&git("git init -q deep/er/made")).text;
        assert!(named(&text, "deep/er/made/.git"), "{}: {text}", bed.name());
        let text = server.bash(&git("git init -q --bare here")).text;
        assert!(named(&text, "here"), "{}: {text}", bed.name());
        let text = server
            .bash("mkdir p && echo 'gitdir: ../here' > p/.git")
            .text;
        assert!(named(&text, "p/.git"), "{}: {text}", bed.name());
        // Created piece by piece, or moved into place whole.
        let text = server
            .bash("mkdir x && echo evil > x/config; mkdir x/objects x/refs")
            .text;
        assert!(named(&text, "x"), "{}: {text}", bed.name());
        let text = server
            .bash("mkdir -p $TMPDIR/y/objects $TMPDIR/y/refs; touch $TMPDIR/y/HEAD; cp -r $TMPDIR/y kept/y")
            .text;
        assert!(named(&text, "kept/y"), "{}: {text}", bed.name());
        // Reported once; later only changes in it.
        let text = server.bash("true").text;
        assert!(!text.contains("[new"), "{}: {text}", bed.name());
        let text = server
            .bash("git -C deep/er/made config core.pager evil")
            .text;
        assert!(
            text.contains("[changed: deep/er/made/.git/config (git obeys it)]"),
            "{}: {text}",
            bed.name()
        );
        // A command made it, so it can be removed.
        let text = server.bash("rm -rf deep here x p kept/y && echo gone").text;
        assert!(text.starts_with("gone\n"), "{}: {text}", bed.name());
    });
}

#[test]
fn a_repository_in_a_folder_that_cannot_be_listed_is_protected() {
    let _turn = turn::shared();
    in_each(beds(), |bed| {
        made(bed, "git init -q sub; git init -q shut/inner");
        // Each call is a new haft process, which knows nothing of the previous one.
        let text = bed.bash("chmod a-r sub && chmod 0 shut && echo done").text;
        assert!(text.contains("done"), "{}: {text}", bed.name());
        let hooks = ["sub/.git/hooks", "shut/inner/.git/hooks"];
        let text = bed
            .bash(&format!(
                "chmod u+rwx sub shut; for h in {}; do echo evil > $h/pre-commit; done; true",
                hooks.join(" ")
            ))
            .text;
        made(bed, "chmod u+rwx sub shut");
        for (folder, hooks) in ["sub", "shut"].into_iter().zip(hooks) {
            let is_written = bed.has(&format!("work/{hooks}/pre-commit"));
            let is_named = text.contains(&format!("[protected: {folder}"));
            assert_eq!(is_written, !bed.is_full(), "{}: {text}", bed.name());
            assert!(!is_written || is_named, "{}: {text}", bed.name());
        }
    });
}

#[test]
fn a_dismantled_repository_is_reported_and_stays_protected() {
    let _turn = turn::shared();
    in_each(beds_at(&[Level::Full]), |bed| {
        made(bed, "git init -q --bare srv");
        let before = bed.read("work/srv/config");
        let text = bed
            .bash("cd srv; mv HEAD xHEAD; mv objects o; mv refs r")
            .text;
        let note = "[changed: srv is a repository and no longer has HEAD, objects and refs";
        assert!(text.contains(note), "{}: {text}", bed.name());
        bed.bash("cd srv; echo evil >> config; echo evil > hooks/update; mv xHEAD HEAD; mv o objects; mv r refs");
        assert_eq!(bed.read("work/srv/config"), before, "{}", bed.name());
        assert!(!bed.has("work/srv/hooks/update"), "{}", bed.name());
    });
}

#[test]
fn the_users_git_configuration_is_protected_in_the_work_folder() {
    let _turn = turn::shared();
    in_each(beds_at(&[Level::Full]), |bed| {
        bed.file("work/gitconfig", "[user]\n\tname = t\n");
        made(bed, "ln -s \"$PWD/gitconfig\" ~/.gitconfig");
        let mut server = bed.serve();
        let did = server.tries(&["echo evil >> gitconfig", "mv gitconfig g"]);
        assert!(did.is_empty(), "{}: {did:?}", bed.name());
        let evil = json!({ "path": "gitconfig", "content": "evil" });
        let answer = server.tool("write", &evil);
        assert!(answer.is_error && answer.has("protected"), "{answer:?}");
    });
}

#[test]
fn ordinary_git_commands_work() {
    let _turn = turn::shared();
    in_each(beds_at(&[Level::Full]), |bed| {
        made(
            bed,
            "git init -q .; echo one > f; git add f; git commit -qm one",
        );
        let mut server = bed.serve();
        for script in [
            "git worktree add -q wt && cd wt && echo w > w && git add w && git commit -qm w",
            "git worktree remove wt && git merge -q wt && git branch -D wt -q",
            "git clone -q . copy && cd copy && git commit -q --allow-empty -m c && git push -q origin HEAD:side",
            "cd copy && git remote add other .. && git config user.name x && git submodule add -q ../.git sub && git commit -qm sub && git submodule update -q",
            "echo two > f && git stash -q && git stash pop -q && git commit -qam two",
            "git checkout -q -b topic HEAD~1 && git commit -q --allow-empty -m t && git rebase -q main",
            "git rebase -q -x 'echo ran > ran' HEAD~1 && test -f ran",
            "rm -rf copy",
        ] {
            let text = server
                .bash(&format!("set -e; {NAME} {script}; echo fine"))
                .text;
            assert!(text.contains("fine\n"), "{}: {script}: {text}", bed.name());
            assert!(
                !text.contains("[left open"),
                "{}: {script}: {text}",
                bed.name()
            );
        }
    });
}

#[test]
fn an_unfinished_rebase_is_reported() {
    let _turn = turn::shared();
    in_each(beds(), |bed| {
        made(
            bed,
            "git init -q .; for n in 1 2 3; do git commit -q --allow-empty -m $n; done",
        );
        let mut server = bed.serve();
        let note = "[left open: .git/rebase-merge/git-rebase-todo runs `touch pwned` when the rebase is continued";
        let script =
            format!("{NAME} git rebase -q --keep-empty -x false -x 'touch pwned' HEAD~1; true");
        let text = server.bash(&script).text;
        assert!(text.contains(note), "{}: {text}", bed.name());
        let text = server.bash("true").text;
        assert!(!text.contains("[left open"), "{}: {text}", bed.name());
        let text = server
            .bash("echo 'x echo evil' >> .git/rebase-merge/git-rebase-todo")
            .text;
        assert!(text.contains("runs `echo evil`"), "{}: {text}", bed.name());
        let todo = json!({ "path": ".git/rebase-merge/git-rebase-todo", "content": "exec evil\n" });
        assert!(server.tool("write", &todo).is_error, "{}", bed.name());
        let text = server.bash("git rebase --abort && echo gone").text;
        assert!(text.starts_with("gone\n"), "{}: {text}", bed.name());
    });
}

/// A hard link made before the session, or before the file was protected.
#[test]
fn hard_links_of_a_protected_file_are_protected() {
    let _turn = turn::shared();
    in_each(beds_at(&[Level::Full]), |bed| {
        bed.user("tools:\n  protect: [listed]\n");
        made(
            bed,
            "git init -q sub; echo '#!/bin/sh' > sub/.git/hooks/post-commit",
        );
        bed.file("work/listed/deep/f", "kept");
        made(
            bed,
            "mkdir d; ln sub/.git/config d/x; ln sub/.git/hooks/post-commit y; ln listed/deep/f z",
        );
        let config = bed.read("work/sub/.git/config");
        let mut server = bed.serve();
        let attacks = [
            "echo evil >> d/x",
            "echo evil >> y",
            "echo evil >> z",
            "mv d e; echo evil >> e/x",
        ];
        let did = server.tries(&attacks);
        assert!(did.is_empty(), "{}: {did:?}", bed.name());
        assert_eq!(bed.read("work/sub/.git/config"), config);
        assert_eq!(bed.read("work/listed/deep/f"), "kept");
        // The repository of the work folder is protected from the next command on.
        let text = server
            .bash(&format!(
                "{NAME} git init -q . && ln .git/config n && echo made"
            ))
            .text;
        assert!(text.contains("made\n"), "{}: {text}", bed.name());
        let did = server.tries(&["echo evil >> .git/config", "echo evil >> n"]);
        assert!(did.is_empty(), "{}: {did:?}", bed.name());
        assert!(!bed.read("work/.git/config").contains("evil"));
    });
}

pub(crate) const PLUGIN: &str = r#"import json, os, subprocess, sys
for line in sys.stdin:
    message = json.loads(line)
    if message["type"] == "describe":
        print(json.dumps({"name": "make", "description": "x", "parameters": {"type": "object", "properties": {"what": {"type": "string"}}}}), flush=True)
    else:
        subprocess.run(["sh", "-c", message["params"]["what"]])
        print(json.dumps({"content": [{"type": "text", "text": "done"}]}), flush=True)
"#;

#[test]
fn files_a_plugin_creates_at_a_protected_path_are_moved_out_and_reported() {
    let _turn = turn::shared();
    in_each(beds_at(&[Level::Full]), |bed| {
        bed.file("home/plugin.py", PLUGIN);
        bed.user(&format!(
            "tools:\n  protect: [later]\n  plugins:\n    - {{path: /usr/bin/python3, args: [{}]}}\n",
            bed.at("home/plugin.py")
        ));
        made(bed, "git init -q --bare known.git");
        let mut server = bed.serve();
        let mut make = |what: &str| server.tool("make", &json!({ "what": what }));
        let answer = make("true");
        assert_eq!(answer.text, "done", "{}", bed.name());
        let answer = make("echo evil > known.git/config; echo evil > later");
        assert!(
            answer.has("done\n[protected: later must not be written; what the command made there was moved to "),
            "{}: {answer:?}",
            bed.name()
        );
        assert!(!bed.has("work/later"), "{}", bed.name());
        assert!(!bed.read("work/known.git/config").contains("evil"));
        // Files it creates between calls are reported before the next command.
        make(
            "(sleep 0.3; echo evil > later; mkdir -p n/objects n/refs; touch n/config; touch ready) >/dev/null 2>&1 &",
        );
        let text = server
            .bash("while ! test -e ready; do sleep 0.05; done; true")
            .text;
        let later = server.bash("ls later").text;
        let reply = format!("{text}{later}");
        assert!(
            reply.contains("[protected: later must not be written"),
            "{}: {reply}",
            bed.name()
        );
        assert!(
            reply.contains("[new: n (a repository"),
            "{}: {reply}",
            bed.name()
        );
        assert!(!bed.has("work/later"), "{}", bed.name());
    });
}

#[test]
fn shells_and_plugin_interpreters_never_come_from_the_work_folder() {
    let _turn = turn::shared();
    in_each(beds_at(&[Level::Full]), |bed| {
        for name in ["bash", "sh", "python3", "ssh"] {
            bed.file(&format!("work/bin/{name}"), "#!/bin/sh\ntouch pwned\n");
        }
        made(bed, "chmod +x bin/*; cp bin/* .");
        bed.file("home/plugin.py", PLUGIN);
        bed.user(&format!(
            "tools:\n  plugins:\n    - {{path: python3, args: [{}]}}\n",
            bed.at("home/plugin.py")
        ));
        for path in [
            format!("{}:/usr/local/bin:/usr/bin:/bin", bed.at("work/bin")),
            ":bin:.:./bin:/usr/local/bin:/usr/bin:/bin".to_owned(),
            // Not even if no other one is found.
            "bin:/tmp".to_owned(),
        ] {
            // With its own name, because `setpriv` looks it up too.
            let mut command = bed.program("/usr/bin/env");
            command.args([&format!("PATH={path}"), &bed.at("bin/haft"), "mcp"]);
            let mut server = crate::client::Server::start(command);
            let text = server.bash("/bin/echo hello").text;
            assert_eq!(text, "hello\n", "{} {path}", bed.name());
            if path.contains("/usr/bin") {
                let answer = server.tool("make", &json!({ "what": "true" }));
                assert_eq!(answer.text, "done", "{} {path}", bed.name());
            }
            assert!(!bed.has("work/pwned"), "{} {path}", bed.name());
        }
    });
}

/// Uses up all available namespaces.
const HELD: &str = r#"echo 10 > /proc/sys/user/max_user_namespaces || exit 99
sh -c 'for i in 1 2 3 4 5 6 7 8 9 10; do unshare -U sleep 300 & echo $! >> holders; done; wait' >/dev/null 2>&1 </dev/null &
until [ "$(for p in $(cat holders 2>/dev/null); do cat /proc/$p/comm; done | grep -c '^sleep$')" = 10 ]; do sleep 0.02; done
exec setpriv --inh-caps=-all --ambient-caps=-all "$@""#;

#[test]
fn a_machine_out_of_namespaces_refuses_one_command_only() {
    let _turn = turn::shared();
    in_each(beds_at(&[Level::Full]), |bed| {
        bed.file("work/.git/config", "kept");
        let mut command = bed.program("unshare");
        command.args([
            "-U",
            "--map-current-user",
            "--keep-caps",
            "sh",
            "-c",
            HELD,
            "sh",
        ]);
        command.args([&bed.at("bin/haft"), "mcp"]);
        let mut server = crate::client::Server::start(command);
        for _ in 0..2 {
            let answer = server.bash("touch ran");
            assert!(
                answer.is_error && answer.has("no room") && answer.has("new namespaces"),
                "{}: {answer:?}",
                bed.name()
            );
        }
        for pid in bed.read("work/holders").lines() {
            let pid = rustix::process::Pid::from_raw(pid.parse().unwrap()).unwrap();
            rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
        }
        // The full sandbox works again, not a weaker one.
        let mut text = String::new();
        for _ in 0..20 {
            text = server.bash("echo evil > .git/config || echo held").text;
            if !text.contains("no room") {
                break;
            }
        }
        assert!(text.contains("held\n"), "{}: {text}", bed.name());
        assert!(!bed.has("work/ran"), "{}", bed.name());
        assert_eq!(bed.read("work/.git/config"), "kept");
    });
}
