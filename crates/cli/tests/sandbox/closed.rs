//! Paths that rules deny: at level full no command can read them in any way; at level
//! partial commands need approval.

use crate::bed::{Bed, CANARY, Level, beds_at, in_each};
use crate::turn;
use serde_json::json;

const RULES: &str = r#"policy:
  - { allow: "*", path: "secrets/public/**" }
  - { deny: "*", path: "secrets/**" }
  - { deny: "*", path: "**/*.pem" }
  - { deny: "*", path: ".env*" }
  - { deny: bash, path: "only-bash" }
  - { deny: read, path: "only-read" }
  - { deny: "*", effect: read, path: "link.txt" }
"#;

fn fill(bed: &Bed) {
    for file in [
        "secrets/key",
        "secrets/deep/er/key",
        "a/b/x.pem",
        ".env",
        ".env.local",
        "only-bash",
        "behind/the-link",
    ] {
        bed.file(&format!("work/{file}"), format!("{CANARY} {file}\n"));
    }
    bed.file("work/secrets/public/a", "public\n");
    bed.file("work/only-read", "readable\n");
    bed.file("work/open.txt", "open\n");
    std::os::unix::fs::symlink("behind/the-link", bed.path("work/link.txt")).unwrap();
}

#[test]
fn denied_paths_cannot_be_read_by_commands() {
    let _turn = turn::shared();
    in_each(beds_at(&[Level::Full]), |bed| {
        fill(bed);
        bed.file("work/haft.yaml", RULES);
        let mut server = bed.serve();
        for script in [
            "cat secrets/key",
            "cat $PWD/secrets/key secrets/../secrets/key",
            "cat /proc/self/root$PWD/secrets/key /proc/self/cwd/secrets/key",
            "cat secrets/deep/er/key",
            "cd secrets && cat key deep/er/key; cat deep/../key",
            "ln -s secrets way; cat way/key; ls -R way/",
            "cat a/b/x.pem .env .env.local only-bash link.txt behind/the-link",
            "grep -r canary . ; cat $(find . -type f)",
            "tar cf - . | grep -a canary",
            // The folders around a hidden path cannot be moved.
            "mv secrets elsewhere; cat elsewhere/key",
            "mv a c; cat c/b/x.pem; mv a/b d; cat d/x.pem",
            "rm -rf secrets/key secrets/deep a .env; cat secrets/key a/b/x.pem .env",
            "ln secrets/key hard; cat hard; cp -r secrets copy; grep -r canary copy",
            "chmod -R 777 secrets; cat secrets/key",
            "git init -q . 2>/dev/null; git add -A -f . 2>/dev/null; git grep --cached canary",
            "exec 3< secrets/key; cat <&3",
            "umount secrets; umount -l secrets; cat secrets/key; unshare -Urm umount -l secrets; cat secrets/key",
        ] {
            let text = server.bash(script).text;
            assert!(!text.contains(CANARY), "{}: {script}: {text}", bed.name());
        }
        // Other paths stay readable and writable.
        let text = server
            .bash("cat secrets/public/a only-read open.txt && echo more >> secrets/public/a && echo new > new.txt && echo x > a/y && echo fine")
            .text;
        assert_eq!(text, "public\nreadable\nopen\nfine\n", "{}", bed.name());
        assert_eq!(bed.read("work/secrets/public/a"), "public\nmore\n");
        for file in ["secrets/key", "secrets/deep/er/key", "a/b/x.pem", ".env"] {
            let kept = bed.read(&format!("work/{file}"));
            assert_eq!(kept, format!("{CANARY} {file}\n"), "{}", bed.name());
        }
        // New files are hidden from the next command.
        bed.file("work/deep/new/late.pem", CANARY);
        bed.file("work/a/b/z.pem", CANARY);
        let text = server.bash("cat deep/new/late.pem a/b/z.pem").text;
        assert!(!text.contains(CANARY), "{}: {text}", bed.name());
        // Files in a folder that could not be listed are hidden too.
        let text = server
            .bash("mkdir shut; echo canary-5d21 > shut/own.pem; chmod 000 shut")
            .text;
        assert!(!text.contains("Exit code"), "{text}");
        let text = server.bash("chmod 700 shut; cat shut/own.pem").text;
        assert!(!text.contains(CANARY), "{}: {text}", bed.name());
        for mode in ["strict", "read-only"] {
            let text = bed
                .bash_with(
                    &["--sandbox", mode],
                    "cat secrets/key a/b/x.pem .env; cat open.txt",
                )
                .text;
            assert!(
                !text.contains(CANARY) && text.contains("open"),
                "{mode}: {text}"
            );
        }
        // The file tools of the session refuse them too.
        let found = server.tool("read", &json!({ "path": "secrets/key" }));
        assert!(found.is_error && !found.has(CANARY), "{found:?}");
    });
}

#[test]
fn links_do_not_bypass_a_rule() {
    let _turn = turn::shared();
    in_each(beds_at(&[Level::Full]), |bed| {
        for file in [
            "work/data/v1/secret/key",
            "work/data/v2/private/key",
            "work/deep/v3/a.pem",
            "work/deep/v3/b.key",
            "work/kept/key",
            "work/plain/deep/key",
            "outside/secrets/key",
            "vault/key",
        ] {
            bed.file(file, format!("{CANARY} {file}\n"));
        }
        bed.file("work/data/open", "open\n");
        let link = |to: &str, at: &str| {
            std::os::unix::fs::symlink(to, bed.path(&format!("work/{at}"))).unwrap();
        };
        let vault = bed.path("vault");
        link("data/v1", "cur");
        link("data/v2", "v");
        link("deep/v3", "one");
        link("deep/v3", "two");
        link("kept", "named");
        link("../outside", "ext");
        link(vault.to_str().unwrap(), "safe");
        // Links in a circle, and links to the root.
        link("..", "data/up");
        link("data", "deep/over");
        link("../deep", "data/back");
        link("/", "all");
        bed.file(
            "work/haft.yaml",
            r#"policy:
  - { deny: "*", path: "cur/secret/**" }
  - { deny: "*", path: "*/private/**" }
  - { deny: "*", path: "one/*.pem" }
  - { deny: "*", path: "two/*.key" }
  - { deny: "*", path: "named/**" }
  - { deny: "*", path: "safe/**" }
  - { deny: "*", path: "plain" }
  - { deny: "*", path: "**/none/*.txt" }
  - { deny: "*", path: "**/secrets/**" }
"#,
        );
        let mut server = bed.serve();
        let reads = format!(
            "cat cur/secret/key data/v1/secret/key v/private/key data/v2/private/key \
             one/a.pem deep/v3/a.pem two/b.key deep/v3/b.key named/key kept/key \
             ext/secrets/key ../outside/secrets/key safe/key {}/key plain/deep/key; cat data/open",
            vault.display()
        );
        // The second time from the cache of folders.
        for _ in 0..2 {
            let text = server.bash(&reads).text;
            assert!(!text.contains(CANARY), "{}: {text}", bed.name());
            assert!(text.contains("open"), "{}: {text}", bed.name());
        }
        // Without the link, its target stays hidden.
        let text = server
            .bash("rm safe; mv named elsewhere; rm cur v ext; cat elsewhere/key")
            .text;
        assert!(!text.contains(CANARY), "{}: {text}", bed.name());
        assert!(text.contains("safe must not be changed"), "{text}");
        assert!(text.contains("named must not be changed"), "{text}");
        let text = server.bash(&format!("{reads}; cat elsewhere/key")).text;
        assert!(!text.contains(CANARY), "{}: {text}", bed.name());
        // The links that rules name are restored for the next session too.
        let text = bed
            .bash(&format!("cat {}/key kept/key", vault.display()))
            .text;
        assert!(!text.contains(CANARY), "{}: {text}", bed.name());
    });
}

/// The user writes the path as they know it, such as `/home/me/work`, where `/home` is a
/// link.
#[test]
fn a_rule_may_name_the_work_folder_through_a_link() {
    let _turn = turn::shared();
    in_each(beds_at(&[Level::Full]), |bed| {
        bed.file("work/a/x.pem", format!("{CANARY}\n"));
        bed.file("work/a/open", "open\n");
        std::os::unix::fs::symlink("work", bed.path("known")).unwrap();
        let known = bed.at("known");
        bed.user(&format!(
            "policy:\n  - {{ deny: \"*\", path: \"{known}/**/*.pem\" }}\n"
        ));
        let mut server = bed.serve();
        let text = server.bash("cat a/x.pem; cat a/open").text;
        assert!(!text.contains(CANARY), "{}: {text}", bed.name());
        assert!(text.contains("open"), "{}: {text}", bed.name());
        for path in ["a/x.pem".to_owned(), format!("{known}/a/x.pem")] {
            let found = server.tool("read", &json!({ "path": path }));
            assert!(
                found.is_error && !found.has(CANARY),
                "{}: {found:?}",
                bed.name()
            );
        }
    });
}

/// The tools of `deepagents` use virtual paths. A folder behind a link is denied by each of
/// its names there and on disk.
#[test]
fn a_virtual_tree_does_not_bypass_a_rule_with_a_link() {
    let _turn = turn::shared();
    in_each(beds_at(&[Level::Full]), |bed| {
        bed.file("work/store/key", format!("{CANARY}\n"));
        bed.file("work/open", "open\n");
        std::os::unix::fs::symlink("store", bed.path("work/secrets")).unwrap();
        std::os::unix::fs::symlink("work", bed.path("known")).unwrap();
        let call = |tool: &str, arguments: &[&str]| {
            let call = ["call", "--toolset", "deepagents", tool];
            let ended = bed.haft(&[&call[..], arguments].concat()).output().unwrap();
            String::from_utf8_lossy(&ended.stdout).into_owned()
        };
        for rule in [
            "secrets/**".to_owned(),
            "secrets".to_owned(),
            "/secrets/**".to_owned(),
            format!("{}/secrets/**", bed.at("work")),
            format!("{}/secrets/**", bed.at("known")),
        ] {
            bed.user(&format!(
                "policy:\n  - {{ deny: \"*\", path: \"{rule}\" }}\n"
            ));
            let found = [
                call("read_file", &["file_path=/store/key"]),
                call("read_file", &["file_path=/secrets/key"]),
                call("grep", &["pattern=canary", "output_mode=content"]),
                call("execute", &["command=cat store/key secrets/key"]),
            ]
            .concat();
            assert!(!found.contains(CANARY), "{}: {rule}: {found}", bed.name());
            let open = call("read_file", &["file_path=/open"]);
            assert!(open.contains("open"), "{}: {rule}: {open}", bed.name());
        }
    });
}

#[test]
fn no_command_runs_in_a_folder_that_is_denied_through_a_link() {
    let _turn = turn::shared();
    in_each(beds_at(&[Level::Full]), |bed| {
        bed.file("work/proj/f", format!("{CANARY}\n"));
        bed.file("work/other/g", format!("{CANARY}\n"));
        std::os::unix::fs::symlink("work", bed.path("known")).unwrap();
        bed.user(&format!(
            "policy:\n  - {{ deny: \"*\", path: \"{}/**\" }}\n",
            bed.at("known")
        ));
        let answer = bed.bash_with(&["--dir", &bed.at("work/proj")], "cat f ../other/g");
        assert!(!answer.has(CANARY), "{}: {answer:?}", bed.name());
        assert!(
            answer.has("denies the folder that commands run in"),
            "{}: {answer:?}",
            bed.name()
        );
    });
}

#[test]
fn commands_are_refused_if_a_path_cannot_be_hidden() {
    let _turn = turn::shared();
    in_each(beds_at(&[Level::Full]), |bed| {
        bed.user("policy:\n  - { deny: \"*\", path: \"**\" }\n");
        let answer = bed.bash("echo ran");
        assert!(answer.is_error, "{answer:?}");
        assert!(
            answer.has("haft.yaml:2") && answer.has("denies the folder that commands run in"),
            "{answer:?}"
        );
        bed.user("policy:\n  - { deny: \"*\", path: \"*.key\" }\n");
        for number in 0..2_001 {
            std::fs::write(bed.path(&format!("work/{number}.key")), "x").unwrap();
        }
        let answer = bed.bash("echo ran");
        assert!(
            answer.is_error && answer.has("denies more than 2000 paths"),
            "{answer:?}"
        );
        assert!(
            answer.has("haft.yaml:2") && answer.has("deny whole folders"),
            "{answer:?}"
        );
        // Linking it to files that commands need does not hide those.
        bed.user("policy:\n  - { deny: \"*\", path: \"*.lnk\" }\n");
        std::os::unix::fs::symlink("/usr", bed.path("work/a.lnk")).unwrap();
        std::os::unix::fs::symlink(".", bed.path("work/b.lnk")).unwrap();
        assert_eq!(bed.bash("echo ran").text, "ran\n", "{}", bed.name());
    });
}

#[test]
fn commands_need_approval_where_paths_cannot_be_hidden() {
    let _turn = turn::shared();
    in_each(beds_at(&[Level::Partial]), |bed| {
        fill(bed);
        bed.file("work/haft.yaml", RULES);
        let answer = bed.bash("cat secrets/key");
        assert!(answer.is_error && !answer.has(CANARY), "{answer:?}");
        assert!(
            answer.has("paths that rules deny cannot be hidden from commands on this machine"),
            "{answer:?}"
        );
        let answer = bed.bash_with(&["--approve", "auto"], "cat open.txt");
        assert_eq!(answer.text, "open\n", "{}", bed.name());
        // Rules about other tools do not ask.
        bed.file(
            "work/haft.yaml",
            "policy: [{ deny: read, path: secrets/** }]\n",
        );
        assert_eq!(bed.bash("cat open.txt").text, "open\n", "{}", bed.name());
    });
}

#[test]
fn why_lists_paths_that_commands_cannot_read() {
    let _turn = turn::shared();
    in_each(beds_at(&[Level::Full, Level::Partial]), |bed| {
        bed.file("work/haft.yaml", RULES);
        let why = |flags: &[&str]| {
            let mut args = vec!["why", "bash", "command=cat secrets/key"];
            args.extend(flags);
            let output = bed.haft(&args).output().unwrap();
            String::from_utf8(output.stdout).unwrap()
        };
        let paths = "secrets/** (haft.yaml:3), **/*.pem (haft.yaml:4), .env* (haft.yaml:5), only-bash (haft.yaml:6), link.txt (haft.yaml:8)";
        let reply = if bed.is_full() {
            format!("commands cannot read: {paths}\n")
        } else {
            format!(
                "commands can read denied paths in the work folder (see `haft doctor`): {paths}\n"
            )
        };
        let text = why(&[]);
        assert!(text.contains(&reply), "{}: {text}", bed.name());
        let text = why(&["--sandbox", "off"]);
        assert!(text.contains("can read denied paths: secrets/**"), "{text}");
    });
}

#[test]
fn every_tool_that_runs_commands_hides_denied_paths() {
    let _turn = turn::shared();
    in_each(beds_at(&[Level::Full]), |bed| {
        fill(bed);
        // From the user's own file, which lies outside the work folder. A virtual tree has
        // other folders with these names than the machine.
        bed.user(&format!(
            "{RULES}  - {{ deny: \"*\", path: \"bin/**\" }}\n  - {{ deny: \"*\", path: \"usr/**\" }}\n"
        ));
        bed.file("work/bin/tool", CANARY);
        let script = "cat secrets/key a/b/x.pem .env bin/tool || true; cat open.txt";
        let mut server = bed.serve_with(&["--toolset", "workspace"]);
        let reply = server.tool("exec", &json!({ "command": script }));
        assert!(reply.has("open") && !reply.has(CANARY), "{reply:?}");
        let start = json!({ "action": "start", "command": script });
        server.tool("process", &start);
        let wait = json!({ "action": "wait", "process_id": "proc-1" });
        server.tool("process", &wait);
        let log = json!({ "action": "log", "process_id": "proc-1" });
        let reply = server.tool("process", &log);
        assert!(reply.has("open") && !reply.has(CANARY), "{reply:?}");
        // Its paths are virtual.
        let mut server = bed.serve_with(&["--toolset", "deepagents"]);
        let reply = server.tool("execute", &json!({ "command": script }));
        assert!(reply.has("open") && !reply.has(CANARY), "{reply:?}");
        let mut server = bed.serve_with(&["--toolset", "ah"]);
        let reply = server.tool("bash", &json!({ "command": script }));
        assert!(reply.has("open") && !reply.has(CANARY), "{reply:?}");
    });
}
