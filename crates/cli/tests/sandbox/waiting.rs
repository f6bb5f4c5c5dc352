//! A command that prompts for input gets none, so it ends soon, and the reply contains the
//! prompt. A slow command keeps running.

use crate::bed::{beds, in_each};
use crate::turn;
use serde_json::json;
use std::time::{Duration, Instant};

#[test]
fn a_prompt_ends_the_command() {
    let _turn = turn::shared();
    in_each(beds(), |bed| {
        let mut server = bed.serve();
        let at_terminal = "python3 -c 'import os, pty, sys, time\npid, fd = pty.fork()\nif pid == 0: os.execvp(\"bash\", [\"bash\", \"-c\", \"read -p \\\"Passphrase: \\\" x\"])\nwhile True:\n    try: data = os.read(fd, 100)\n    except OSError: break\n    if not data: break\n    os.write(1, data)'";
        let name = at_terminal.replace("Passphrase: ", "Your name? ");
        let shell = "python3 -c 'import pty; pty.spawn([\"python3\", \"-q\"])'";
        let mut asked = vec![
            (
                "mkfifo one; printf 'Password: '; read x <> one",
                "Password:",
            ),
            (
                "mkfifo two; echo first; printf 'Continue? [y/N] '; setsid sleep 60 & read x <> two",
                "Continue? [y/N]",
            ),
            (at_terminal, "Passphrase:"),
            (&name, "Your name?"),
            (shell, ">>>"),
        ];
        if !bed.is_full() {
            println!(
                "skipped: {}: a terminal of one's own takes namespaces",
                bed.name()
            );
            asked.truncate(2);
        }
        let begun = Instant::now();
        let ids: Vec<u64> = asked
            .iter()
            .map(|(script, _)| server.ask(&json!({ "command": script, "timeout": 30 })))
            .collect();
        let slow = server.ask_to_be_told(
            &json!({ "command": "yes | (read x; printf 'Really? [y/N] '; sleep 6; echo done)", "timeout": 30 }),
        );
        for (id, (script, question)) in ids.into_iter().zip(asked) {
            let answer = server.answer(id);
            let took = begun.elapsed();
            assert!(
                took > Duration::from_millis(1_500) && took < Duration::from_secs(6),
                "{script}: {took:?} {answer:?}"
            );
            let note = format!("[the command seems to wait for input: '{question}']");
            assert!(
                answer.is_error && answer.has(&note),
                "{} {script}: {answer:?}",
                bed.name()
            );
            assert!(answer.has(question), "{answer:?}");
        }
        let answer = server.answer(slow);
        // Its output, and then that it still runs.
        assert!(
            server.progress_count(slow) >= 2,
            "{}",
            server.progress_count(slow)
        );
        assert_eq!(answer.text, "Really? [y/N] done\n", "{}", bed.name());
        assert!(begun.elapsed() > Duration::from_secs(5));
        bed.nothing_but(&server);
    });
}

/// Programs that would prompt see that they cannot, and end by themselves.
#[test]
fn there_is_no_input_and_no_terminal() {
    let _turn = turn::shared();
    in_each(beds(), |bed| {
        let mut server = bed.serve();
        let begun = Instant::now();
        let editor = server.bash("git init -q edited && cd edited && git -c user.name=a -c user.email=a@b commit --allow-empty");
        assert!(editor.has("no editor here"), "{editor:?}");
        let text = server.bash("cat; read x || echo none; tty; echo x > /dev/tty || echo no terminal; python3 -c 'input()' 2>&1 | tail -1; git log 2>&1 | head -1; less /etc/hostname >/dev/null; true").text;
        assert!(begun.elapsed() < Duration::from_secs(4), "{text}");
        assert!(text.starts_with("none\nnot a tty\n"), "{text}");
        assert!(
            text.contains("no terminal\n") && text.contains("EOFError"),
            "{text}"
        );
        bed.nothing_but(&server);
    });
}
