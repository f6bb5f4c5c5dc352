//! Folders that a command has shut with `chmod`: links and files in them count for the next
//! command and the next session as if the folder were open.

use crate::bed::{Bed, CANARY, Level, beds_at, in_each};
use crate::turn;
use serde_json::json;

/// A project in which writing `scripts/target` would change something protected.
struct Project {
    name: &'static str,
    /// Run without haft, in the work folder.
    made: &'static str,
    /// The user's configuration.
    config: &'static str,
    /// Folders to shut, one at a time.
    folders: &'static [&'static str],
}

const PROJECTS: [Project; 8] = [
    Project {
        name: "a hook that is a link",
        made: "git init -q . && git config core.hooksPath conf/hooks && mkdir -p conf/hooks \
               && ln -s ../../scripts/target conf/hooks/pre-commit",
        config: "",
        folders: &["conf", "conf/hooks", ".git"],
    },
    Project {
        name: "a hook folder that is a link",
        made: "git init -q . && git config core.hooksPath conf/hooks && mkdir conf \
               && ln -s ../scripts conf/hooks",
        config: "",
        folders: &["conf", ".git"],
    },
    Project {
        name: "an included configuration that is a link",
        made: "git init -q . && git config include.path ../conf/more && mkdir conf \
               && ln -s ../scripts/target conf/more",
        config: "",
        folders: &["conf", ".git"],
    },
    Project {
        name: "a repository whose hooks are elsewhere",
        made: "git init -q sub/deep/inner && git -C sub/deep/inner config core.hooksPath \"$PWD/scripts\"",
        config: "",
        folders: &["sub", "sub/deep", "sub/deep/inner", "sub/deep/inner/.git"],
    },
    Project {
        name: "a repository that a pointer names",
        made: "mkdir away && git init -q --separate-git-dir away/in.git sub/tree \
               && git -C sub/tree config core.hooksPath \"$PWD/scripts\"",
        config: "",
        folders: &["sub", "away", "away/in.git", "sub/tree"],
    },
    Project {
        name: "a protected link",
        made: "mkdir -p sub/deep && ln -s ../../scripts/target sub/deep/link",
        config: "tools: { protect: [sub/deep/link] }\n",
        folders: &["sub", "sub/deep"],
    },
    Project {
        name: "a protected file with a second name",
        made: "mkdir -p sub/deep && ln scripts/target sub/deep/file",
        config: "tools: { protect: [sub/deep] }\n",
        folders: &["sub", "sub/deep"],
    },
    Project {
        name: "one of the user's tools",
        made: "mkdir -p sub/deep ~/.config/haft/tools && ln -s ../../scripts/target sub/deep/tool \
               && ln -s \"$PWD/sub/deep/tool\" ~/.config/haft/tools/tool",
        config: "",
        folders: &["sub", "sub/deep"],
    },
];

fn free(bed: &Bed, script: &str) {
    let made = bed.free(script);
    assert!(made.status.success(), "{}: {script}: {made:?}", bed.name());
}

#[test]
fn what_a_shut_folder_leads_to_stays_protected() {
    let _turn = turn::shared();
    for project in PROJECTS {
        in_each(beds_at(&[Level::Full]), |bed| {
            bed.user(project.config);
            free(bed, "mkdir scripts && echo kept > scripts/target");
            free(bed, project.made);
            let other_modes = ["400", "100"].map(|mode| (project.folders[0], mode));
            let folders = project.folders.iter().map(|folder| (*folder, "000"));
            for (folder, mode) in folders.chain(other_modes) {
                let case = format!("{}: {}: {mode} {folder}", bed.name(), project.name);
                // A command can do this, except to folders that are themselves protected.
                free(bed, &format!("chmod {mode} {folder}"));
                let answer = bed.bash(
                    "echo pwned >> scripts/target; echo pwned > scripts/n; \
                     cat scripts/n > scripts/target; echo ran",
                );
                assert!(answer.has("ran"), "{case}: {answer:?}");
                assert_eq!(bed.read("work/scripts/target"), "kept\n", "{case}");
                let text = bed.free(&format!("stat -c %a {folder}")).stdout;
                assert_eq!(
                    String::from_utf8_lossy(&text)
                        .trim()
                        .trim_start_matches('0'),
                    mode.trim_start_matches('0'),
                    "{case}"
                );
                free(bed, &format!("chmod 755 {folder}; rm -f scripts/n"));
            }
        });
    }
}

/// File tools replace a file, so a second name of it is not written through.
#[test]
fn file_tools_see_what_a_shut_folder_leads_to() {
    let _turn = turn::shared();
    for project in PROJECTS
        .iter()
        .filter(|one| !one.name.contains("second name"))
    {
        in_each(beds_at(&[Level::Full]), |bed| {
            bed.user(project.config);
            free(bed, "mkdir scripts && echo kept > scripts/target");
            free(bed, project.made);
            for folder in project.folders {
                let case = format!("{}: {}: {folder}", bed.name(), project.name);
                free(bed, &format!("chmod 0 {folder}"));
                let mut server = bed.serve();
                let path = json!({ "path": "scripts/target", "content": "pwned\n" });
                let reply = server.tool("write", &path);
                assert_eq!(
                    bed.read("work/scripts/target"),
                    "kept\n",
                    "{case}: {reply:?}"
                );
                free(bed, &format!("chmod 755 {folder}"));
            }
        });
    }
}

#[test]
fn what_a_denied_link_in_a_shut_folder_leads_to_stays_hidden() {
    let _turn = turn::shared();
    in_each(beds_at(&[Level::Full]), |bed| {
        bed.user("policy:\n  - { deny: \"*\", path: \"**/*.pem\" }\n  - { deny: \"*\", path: \"**/own/*\" }\n");
        bed.file("work/vault/key", CANARY);
        bed.file("work/vault/two", CANARY);
        bed.file("work/store/three", CANARY);
        free(
            bed,
            "mkdir -p sub/deep && ln -s ../../vault/key sub/deep/a.pem \
             && ln -s ../vault/two sub/b.pem && ln -s ../../store sub/deep/own",
        );
        for folder in ["sub", "sub/deep"] {
            for mode in ["000", "400", "100"] {
                bed.bash(&format!("chmod {mode} {folder}"));
                let answer = bed.bash("cat vault/* store/*; echo end");
                let case = format!("{}: {mode} {folder}", bed.name());
                assert!(
                    answer.has("end") && !answer.has(CANARY),
                    "{case}: {answer:?}"
                );
                free(bed, &format!("chmod 755 {folder}"));
            }
        }
    });
}

/// A folder that the user has shut is not opened by looking into it.
#[test]
fn a_shut_folder_stays_shut() {
    let _turn = turn::shared();
    in_each(beds_at(&[Level::Full]), |bed| {
        bed.user("policy:\n  - { deny: \"*\", path: \"**/*.pem\" }\n");
        bed.file("work/sub/note", "note\n");
        free(bed, "git init -q . && chmod 0 sub");
        assert_eq!(bed.bash("echo fine").text, "fine\n", "{}", bed.name());
        let mode = bed.free("stat -c %a sub").stdout;
        assert_eq!(mode, b"0\n", "{}", bed.name());
    });
}

/// Returns a command that opens and shuts a folder all the time, in the background.
fn toggle(folder: &str) -> String {
    format!(
        "python3 -c 'import os
while True:
    os.chmod(\"{folder}\", 0)
    os.chmod(\"{folder}\", 0o755)' >/dev/null 2>&1 & echo started"
    )
}

#[test]
fn denied_paths_stay_hidden_while_their_folder_is_opened_and_shut() {
    let _turn = turn::shared();
    in_each(beds_at(&[Level::Full]), |bed| {
        bed.file("work/sub/deep/x.pem", CANARY);
        bed.user("policy:\n  - { deny: \"*\", path: \"**/*.pem\" }\n");
        let mut server = bed.serve();
        assert!(server.bash(&toggle("sub")).has("started"), "{}", bed.name());
        for _ in 0..40 {
            let answer = server.bash("for n in 1 2 3 4 5 6 7 8; do cat sub/deep/x.pem; done 2>&1");
            assert!(!answer.has(CANARY), "{}: {answer:?}", bed.name());
        }
    });
}

#[test]
fn hooks_stay_protected_while_their_folder_is_opened_and_shut() {
    let _turn = turn::shared();
    in_each(beds_at(&[Level::Full]), |bed| {
        bed.free("git init -q sub/inner");
        let mut server = bed.serve();
        assert!(server.bash(&toggle("sub")).has("started"), "{}", bed.name());
        for _ in 0..25 {
            // A new process, which has to find the repository.
            bed.bash(
                "for n in 1 2 3 4 5 6; do echo x > sub/inner/.git/hooks/pre-commit; done 2>&1",
            );
        }
        drop(server);
        bed.free("chmod 755 sub");
        assert!(
            !bed.has("work/sub/inner/.git/hooks/pre-commit"),
            "{}",
            bed.name()
        );
    });
}

/// A process that keeps shutting a folder hides nothing: either haft looks into it, or no
/// command runs.
#[test]
fn what_a_folder_leads_to_stays_protected_while_it_is_opened_and_shut() {
    let _turn = turn::shared();
    for project in PROJECTS {
        in_each(beds_at(&[Level::Full]), |bed| {
            bed.user(project.config);
            free(bed, "mkdir scripts && echo kept > scripts/target");
            free(bed, project.made);
            let folder = project.folders[0];
            let case = format!("{}: {}: {folder}", bed.name(), project.name);
            let mut server = bed.serve();
            assert!(server.bash(&toggle(folder)).has("started"), "{case}");
            for _ in 0..4 {
                // A new process knows nothing about the folder.
                bed.bash("for n in 1 2 3 4; do echo pwned >> scripts/target; done 2>&1");
                assert_eq!(bed.read("work/scripts/target"), "kept\n", "{case}");
                server.bash("echo pwned >> scripts/target");
                assert_eq!(bed.read("work/scripts/target"), "kept\n", "{case}");
            }
            drop(server);
            bed.free(&format!("chmod 755 {folder}"));
        });
    }
}

#[test]
fn targets_of_denied_links_stay_hidden_while_their_folder_is_opened_and_shut() {
    let _turn = turn::shared();
    in_each(beds_at(&[Level::Full]), |bed| {
        bed.user("policy:\n  - { deny: \"*\", path: \"**/*.pem\" }\n");
        bed.file("work/sub/vault/key", CANARY);
        free(bed, "mkdir links && ln -s ../sub/vault/key links/a.pem");
        let mut server = bed.serve();
        assert!(
            !server.bash("cat sub/vault/key").has(CANARY),
            "{}",
            bed.name()
        );
        assert!(server.bash(&toggle("sub")).has("started"), "{}", bed.name());
        server.bash("rm -f links/a.pem");
        for _ in 0..20 {
            let answer = server.bash("for n in 1 2 3 4; do cat sub/vault/key; done 2>&1");
            assert!(!answer.has(CANARY), "{}: {answer:?}", bed.name());
        }
        drop(server);
        bed.free("chmod 755 sub");
    });
}
