//! The way a person gets there: `executor` in their own settings.

use crate::host::{Host, Shell};
use std::process::Command;

struct Person {
    host: Host,
    folder: tempfile::TempDir,
}

impl Person {
    fn new() -> Self {
        let person = Self {
            host: Host::new(Shell::Own),
            folder: tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap(),
        };
        for name in ["here", "there", "config/haft"] {
            std::fs::create_dir_all(person.folder.path().join(name)).unwrap();
        }
        let mut options = Host::options(person.host.keys.path());
        options.push(format!("Port={}", person.host.port));
        let settings = serde_json::json!({
            "executor": {
                "ssh": "127.0.0.1",
                "dir": person.folder.path().join("there"),
                "options": options,
            }
        });
        let file = person.folder.path().join("config/haft/haft.yaml");
        std::fs::write(file, settings.to_string()).unwrap();
        person
    }

    fn haft(&self, words: &[&str]) -> (Option<i32>, String) {
        let output = Command::new(env!("CARGO_BIN_EXE_haft"))
            .args(words)
            .current_dir(self.folder.path().join("here"))
            .env("HOME", self.folder.path())
            .env("XDG_CONFIG_HOME", self.folder.path().join("config"))
            .env("XDG_STATE_HOME", self.folder.path().join("state"))
            .env("PERSON_VARIABLE", "of this machine")
            .output()
            .unwrap();
        let text = [output.stdout, output.stderr].concat();
        (
            output.status.code(),
            String::from_utf8_lossy(&text).into_owned(),
        )
    }
}

#[test]
fn commands_run_there_and_files_are_read_here() {
    let person = Person::new();
    let script = "command=pwd; echo ${PERSON_VARIABLE-nothing} $SSH_CONNECTION > made; exit 4";
    let (code, text) = person.haft(&["call", "bash", script, "--sandbox", "off"]);
    assert_eq!(code, Some(0), "{text}");
    let there = person.folder.path().join("there");
    assert_eq!(
        text,
        format!("{}\n\nExit code: 4\n", there.display()),
        "{text}"
    );
    let made = std::fs::read_to_string(there.join("made")).unwrap();
    assert!(made.starts_with("nothing"), "{made}");
    let (code, text) = person.haft(&["call", "read", "path=made", "--sandbox", "off"]);
    assert_eq!(
        (code, text.contains("not found")),
        (Some(1), true),
        "{text}"
    );
}

#[test]
fn without_a_sandbox_there_somebody_has_to_say_yes() {
    let person = Person::new();
    let (code, text) = person.haft(&["call", "bash", "command=touch ran"]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("where nothing confines them"), "{text}");
    assert!(!person.folder.path().join("there/ran").exists());
    let (code, text) = person.haft(&["call", "bash", "command=touch ran", "--approve", "auto"]);
    assert_eq!(code, Some(0), "{text}");
    assert!(person.folder.path().join("there/ran").exists());
    let (code, text) = person.haft(&["doctor"]);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("commands: on 127.0.0.1, by ssh"), "{text}");
    assert!(text.contains("file tools stay on this machine"), "{text}");
}

#[test]
fn a_project_cannot_send_commands_elsewhere() {
    let person = Person::new();
    std::fs::write(
        person.folder.path().join("here/haft.yaml"),
        "executor: { ssh: evil.example }\n",
    )
    .unwrap();
    let (_, text) = person.haft(&["config", "show"]);
    assert!(text.contains("haft.yaml:1: executor is ignored"), "{text}");
    std::fs::write(
        person.folder.path().join("config/haft/haft.yaml"),
        "executor: { ssh: host, prot: 22 }\n",
    )
    .unwrap();
    let (code, text) = person.haft(&["call", "bash", "command=true"]);
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains("not \"prot\""), "{text}");
}
