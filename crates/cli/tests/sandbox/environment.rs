//! A command's environment: what programs need, and no secrets of the user, wherever it
//! looks.

use crate::bed::{Bed, CANARY, answer_of, beds, in_each};
use crate::turn;
use serde_json::json;
use std::process::Command;

const SECRET: [&str; 16] = [
    "ANTHROPIC_API_KEY",
    "OPENAI_API_KEY",
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "GITHUB_TOKEN",
    "MY_SECRET",
    "DB_PASSWORD",
    "PGPASSWORD",
    "GOOGLE_APPLICATION_CREDENTIALS",
    "NPM_AUTH",
    "my_token",
    "BASH_ENV",
    "ENV",
    "LD_LIBRARY_PATH",
    "LD_DEBUG_OUTPUT",
];

fn with_secrets(bed: &Bed) -> Command {
    let mut command = bed.haft(&["call", "bash", "-", "--json", "--quiet"]);
    for name in SECRET {
        command.env(name, format!("/{CANARY}"));
    }
    command
        .env("DATABASE_URL", format!("postgres://me:{CANARY}@db/x"))
        .env("SSH_AUTH_SOCK", "/nowhere/agent")
        .env("GIT_AUTHOR_NAME", "author")
        .env("XAUTHORITY", "/nowhere/x")
        .env("KEYBOARD", "passes-not")
        .env("TERM", "xterm")
        .env("USER", "somebody")
        .env("SHELL", "/bin/bash");
    command
}

#[test]
fn secrets_of_the_environment_are_hidden() {
    let _turn = turn::shared();
    in_each(beds(), |bed| {
        // With many processes this is more than a reply can hold.
        let script = "(cat /proc/self/environ /proc/$PPID/environ /proc/1/environ /proc/*/environ 2>/dev/null | tr '\\0' '\\n'; ps axeww 2>/dev/null) > all; env";
        let answer = answer_of(with_secrets(bed), &json!({ "command": script }));
        assert!(!answer.has(CANARY), "{}: {answer:?}", bed.name());
        let all = bed.read("work/all");
        assert!(
            all.contains("ps axeww") && !all.contains(CANARY),
            "{}",
            bed.name()
        );
        let home = format!("HOME={}", bed.at("home"));
        for line in [
            "PATH=/usr/local/bin:/usr/bin:/bin",
            &home,
            "LANG=C.UTF-8",
            "TERM=xterm",
            "USER=somebody",
            "SHELL=/bin/bash",
            "GIT_AUTHOR_NAME=author",
            "XAUTHORITY=/nowhere/x",
        ] {
            assert!(
                answer.text.lines().any(|one| one == line),
                "{} {line}: {answer:?}",
                bed.name()
            );
        }
        assert!(
            answer.text.lines().any(|one| one.starts_with("TMPDIR=/")),
            "{answer:?}"
        );
        // No prompts at a terminal, no pagers.
        for line in ["GIT_TERMINAL_PROMPT=0", "PAGER=cat"] {
            assert!(
                answer.text.lines().any(|one| one == line),
                "{} {line}: {answer:?}",
                bed.name()
            );
        }
    });
}

#[test]
fn the_user_can_grant_a_variable_and_a_project_cannot() {
    let _turn = turn::shared();
    in_each(beds(), |bed| {
        let script = json!({ "command": "echo got $GITHUB_TOKEN $MY_SECRET" });
        bed.user("tools:\n  env: [GITHUB_TOKEN]\n");
        assert_eq!(
            answer_of(with_secrets(bed), &script).text,
            format!("got /{CANARY}\n")
        );
        bed.user("");
        assert_eq!(answer_of(with_secrets(bed), &script).text, "got\n");
        bed.file("work/haft.yaml", "tools:\n  env: [GITHUB_TOKEN]\n");
        let mut command = with_secrets(bed);
        command.stdin(std::process::Stdio::piped());
        let mut child = command.spawn().unwrap();
        std::io::Write::write_all(
            &mut child.stdin.take().unwrap(),
            script.to_string().as_bytes(),
        )
        .unwrap();
        let output = child.wait_with_output().unwrap();
        // Either ignored or refused with the file's name.
        let reply = String::from_utf8_lossy(&output.stdout);
        let why = String::from_utf8_lossy(&output.stderr);
        assert!(
            !reply.contains(CANARY) && !why.contains(CANARY),
            "{reply} {why}"
        );
        assert!(
            reply.contains("got\\n") || why.contains("haft.yaml"),
            "{reply} {why}"
        );
    });
}
