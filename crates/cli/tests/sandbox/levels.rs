//! Machines without a mechanism: nothing runs without it unless the user allows it, and all
//! front ends report the same level.

use crate::bed::{Level, beds_at, in_each};
use crate::turn;

fn doctor(bed: &crate::bed::Bed) -> String {
    let output = bed.haft(&["doctor"]).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn without_a_sandbox_nothing_runs() {
    let _turn = turn::shared();
    in_each(beds_at(&[Level::None]), |bed| {
        let shown = doctor(bed);
        let line = shown
            .lines()
            .find(|line| line.starts_with("sandbox: none — "))
            .unwrap_or_else(|| panic!("{shown}"));
        let reason = line.split_once(" — ").unwrap().1;
        for mode in ["workspace", "strict", "read-only"] {
            let answer = bed.bash_with(&["--sandbox", mode], "touch ran");
            assert!(
                answer.is_error && answer.has("was not run") && answer.has(reason),
                "{mode} {reason}: {answer:?}"
            );
            // Approval cannot override this.
            let answer = bed.bash_with(&["--sandbox", mode, "--approve", "auto"], "touch ran");
            assert!(answer.is_error && answer.has(reason), "{answer:?}");
        }
        let mut server = bed.serve();
        assert!(server.bash("touch ran").is_error);
        assert!(!bed.has("work/ran"), "{}", bed.name());
        let answer = bed.bash_with(&["--sandbox", "off"], "touch ran; echo ran");
        assert_eq!(answer.text, "ran\n");
        assert_eq!(answer.details["sandbox"], "off");
        assert!(bed.has("work/ran"));
        bed.nothing_but(&server);
    });
}

#[test]
fn each_level_is_reported() {
    let _turn = turn::shared();
    in_each(beds_at(&[Level::Full, Level::Partial]), |bed| {
        let shown = doctor(bed);
        let line = if bed.is_full() {
            "sandbox: full (namespaces, landlock v"
        } else {
            "sandbox: partial — protected folders inside the workspace are not enforced for commands"
        };
        assert!(
            shown.lines().any(|one| one.starts_with(line)),
            "{}: {shown}",
            bed.name()
        );
        assert!(
            shown.contains("processes: limited to ") || shown.contains("processes: not limited ("),
            "{shown}"
        );
        assert!(shown.contains("bash works"), "{shown}");
        for mode in ["workspace", "strict", "read-only"] {
            let answer = bed.bash_with(&["--sandbox", mode], "exit 3");
            assert_eq!(answer.details["sandbox"], bed.level.name(), "{answer:?}");
            assert_eq!(answer.details["exit_code"], 3, "{answer:?}");
        }
        assert_eq!(
            bed.bash_with(&["--sandbox", "off"], "true").details["sandbox"],
            "off"
        );
        // A level below full is reported at the start.
        let output = bed
            .haft(&["call", "bash", "command=true"])
            .output()
            .unwrap();
        let reply = String::from_utf8(output.stderr).unwrap();
        assert_eq!(
            reply.contains("sandbox: partial"),
            !bed.is_full(),
            "{reply}"
        );
    });
}

#[test]
fn commands_need_approval_where_paths_cannot_be_protected() {
    let _turn = turn::shared();
    in_each(beds_at(&[Level::Full, Level::Partial]), |bed| {
        bed.user("tools:\n  protect: [secret]\n");
        bed.file("work/secret/f", "kept");
        let answer = bed.bash("touch ran");
        assert_eq!(
            answer.is_error,
            !bed.is_full(),
            "{}: {answer:?}",
            bed.name()
        );
        assert_eq!(bed.has("work/ran"), bed.is_full());
        if !bed.is_full() {
            assert!(answer.has("tools.protect"), "{answer:?}");
            let mut server = bed.serve();
            assert!(server.bash("touch ran").is_error);
            let never = bed.bash_with(&["--approve", "never"], "touch ran");
            assert!(never.is_error, "{never:?}");
            assert!(!bed.has("work/ran"));
        }
        let answer = bed.bash_with(&["--approve", "auto"], "touch ran; echo x > secret/f");
        assert!(!answer.is_error, "{answer:?}");
        assert!(bed.has("work/ran"));
        if bed.is_full() {
            assert_eq!(bed.read("work/secret/f"), "kept");
        } else {
            assert!(answer.has("[protected: secret"), "{answer:?}");
        }
    });
}
