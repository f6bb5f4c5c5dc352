//! `execute_bash`.

use crate::bed::Server;
use serde_json::json;

#[test]
fn scripts_run_over_the_same_files_as_python() {
    let mut server = Server::alone(&[]);
    server.python("open('/in.csv', 'w').write('a,1\\nb,2\\n')");
    let answer = server.bash(
        "set -euo pipefail\n\
         cut -d, -f2 /in.csv | paste -sd+ > /sum\n\
         cat /sum; jq -n '1+1'; awk 'BEGIN { print 2 * 3 }'\n\
         python3 -c 'print(open(\"/sum\").read().strip() + \"!\")'",
    );
    assert_eq!(
        answer.text("stdout"),
        "1+2\n2\n6\n1+2!\n",
        "{}",
        answer.json
    );
    assert_eq!(answer.json["files_written"], json!(["/sum"]));
    let answer = server.bash("false");
    assert!(answer.is_error);
    assert_eq!(answer.json["exit_code"], 1);
    let answer = server.bash("echo \"open");
    assert!(
        answer.text("message").starts_with("parse error"),
        "{}",
        answer.json
    );
}

#[test]
fn files_are_moved_and_removed() {
    let mut server = Server::alone(&[]);
    server.bash("mkdir -p /d/e; echo 1 > /d/e/f; echo 2 > /g");
    let answer = server.bash("mv /d /m; rm /g; find / -type f | sort; test -e /d || echo gone");
    assert_eq!(answer.text("stdout"), "/m/e/f\ngone\n", "{}", answer.json);
    assert_eq!(answer.json["files_written"], json!(["/m/e/f"]));
    assert_eq!(answer.json["files_removed"], json!(["/d/e/f", "/g"]));
    let answer = server.bash("cat /m/e/f; cat /g");
    assert_eq!(answer.text("stdout"), "1\n");
}

#[test]
fn incomplete_output_is_an_error() {
    let mut server = Server::alone(&["--timeout", "5"]);
    // The note about the limit may be redirected.
    for command in ["seq 200000 | wc -l", "seq 200000 2>/dev/null | wc -l"] {
        let answer = server.bash(command);
        assert!(answer.is_error, "{command}: {}", answer.json);
        assert!(
            answer
                .text("message")
                .starts_with("the output is incomplete")
        );
    }
    // These have no limit any more, or do not exist.
    let answer = server.bash("yes | head -c 1000000 | wc -c");
    assert_eq!(answer.text("stdout"), "1000000\n", "{}", answer.json);
    let answer = server.bash("head -c 10 /dev/urandom | wc -c");
    assert_eq!(answer.text("stdout"), "10\n", "{}", answer.json);
    for command in ["zip a.zip b", "unzip a.zip", "bc", "git status"] {
        let answer = server.bash(command);
        assert_eq!(answer.json["exit_code"], 127, "{command}: {}", answer.json);
        assert!(answer.text("hint").contains("execute_python"));
    }
}

/// Words that are syntax, or that end the shell they are in.
const NOT_COMMANDS: &str = "! [[ ]] { } break case continue coproc do done elif else esac exec \
    exit fi for function if in logout return select then time until while yes";

/// Arguments of commands: missing files, files instead of folders, and folders instead of
/// files.
const BAD: [&str; 12] = [
    "/no/x",
    "/no/x /no/y",
    "/d/f /no/x",
    "/no/x /d/f",
    "x /d/f /no/x",
    "/d",
    "/d/f/x",
    "-f /no/x",
    "-d /no/x",
    "-o /no/x /d/f",
    "cf /no/x.tar /d/f",
    "xf /d/t.tar -C /d/f",
];

#[test]
fn a_bad_path_ends_only_its_command() {
    let mut server = Server::alone(&["--timeout", "20"]);
    let names = server.bash("{ compgen -c; compgen -b; } | sort -u");
    let names: Vec<&str> = names.text("stdout").split_whitespace().collect();
    assert!(names.len() > 150 && names.contains(&"tee"), "{names:?}");
    for name in names {
        if NOT_COMMANDS.split_whitespace().any(|word| word == name) {
            continue;
        }
        let mut script = String::new();
        for bad in BAD {
            script.push_str("rm -rf /d; mkdir /d; echo a > /d/f; tar cf /d/t.tar -C /d f\n");
            script.push_str(&format!("echo a | {name} {bad} > /dev/null 2>&1\n"));
        }
        let answer = server.bash(&format!("{script}\necho end"));
        assert_eq!(answer.text("stdout"), "end\n", "{name}: {}", answer.json);
    }
}

#[test]
fn a_command_that_cannot_open_its_file_fails() {
    let mut server = Server::alone(&[]);
    server.bash("echo a > /f");
    for command in [
        "tee /no/x < /f",
        "tee -a /no/x < /f",
        "tar cf /no/x.tar /f",
        "tar cf /t.tar /no/x",
        "tar xf /no/x.tar",
        "tar cf /t.tar /f && tar xf /t.tar -C /f",
        "split /f /no/x",
        "split /no/x",
        "join /f /no/x",
        "join /no/x /f",
        "gzip /no/x",
        "gunzip /no/x.gz",
        "bzip2 /no/x",
        "bunzip2 /no/x.bz2",
        "bzcat /no/x.bz2",
        "du /no/x",
        "less /no/x",
        "patch /no/x < /f",
        "rmdir /no/x",
        "cat /no/x",
        "head /no/x",
        "tail /no/x",
        "wc /no/x",
        "sort /no/x",
        "sort -o /no/x /f",
        "uniq /no/x",
        "cut -c1 /no/x",
        "nl /no/x",
        "od /no/x",
        "tac /no/x",
        "paste /no/x",
        "comm /f /no/x",
        "diff /f /no/x",
        "cmp /f /no/x",
        "sed p /no/x",
        "grep a /no/x",
        "awk 1 /no/x",
        "jq . /no/x",
        "md5sum /no/x",
        "base64 /no/x",
        "ls /no/x",
        "stat /no/x",
        "cp /f /no/x",
        "mv /f /no/x",
        "rm /no/x",
        "mkdir /no/x",
        "touch /no/x",
        "cd /no/x",
        "source /no/x",
        "cat < /no/x",
        "cat > /no/x",
        "bash /no/x",
        "python3 /no/x",
        "sh -c 'tee /no/x < /f'",
        "timeout 5 tee /no/x < /f",
        "xargs tee /no/x < /f",
        "env tar cf /no/x.tar /f",
        "join <(cat /f) /no/x",
    ] {
        let answer = server.bash(&format!("{command} > /dev/null\necho \"status $?\""));
        let code = answer.text("stdout").trim().strip_prefix("status ");
        let code: i32 = code.unwrap_or_default().parse().unwrap_or(-1);
        assert!(code > 0, "{command}: {}", answer.json);
        assert!(
            !answer.text("stderr").is_empty(),
            "{command}: {}",
            answer.json
        );
    }
}

#[test]
fn tee_writes_the_files_it_can_and_passes_its_input_on() {
    let mut server = Server::alone(&[]);
    let answer = server.bash(
        "echo a | tee /no/x /f | wc -c; echo \"${PIPESTATUS[@]}\"; echo b | tee -a /f; cat /f; echo second",
    );
    assert_eq!(
        answer.text("stdout"),
        "2\n0 1 0\nb\na\nb\nsecond\n",
        "{}",
        answer.json
    );
    assert_eq!(
        answer.text("stderr"),
        "tee: /no/x: No such file or directory\n"
    );
    let answer = server.bash(
        "printf '\\377\\000\\376' | tee /b | od -An -tx1; od -An -tx1 /b; echo e | tee /dev/stderr",
    );
    assert_eq!(
        answer.text("stdout"),
        " ff 00 fe\n ff 00 fe\ne\n",
        "{}",
        answer.json
    );
    assert_eq!(answer.text("stderr"), "e\n");
}

#[test]
fn isolated_commands_see_the_folder_the_input_and_the_pipes_of_the_script() {
    let mut server = Server::alone(&[]);
    let answer = server.bash(
        "mkdir -p /d; cd /d; echo one > f; tar cf - f | tar tf -; gzip f; gunzip -c f.gz\n\
         join <(echo a 1) <(echo a 2); tar cf >(tar tf -) f.gz; seq 3 | split -l 2 - p; cat pab\n\
         f() { du -a \"$1\" | wc -l; }; f /d; x='two words'; echo \"$x\" > \"$x\"; file \"$x\"",
    );
    assert_eq!(
        answer.text("stdout"),
        "f\none\na 1 2\nf.gz\n3\n4\ntwo words: ASCII text\n",
        "{}",
        answer.json
    );
    assert_eq!(answer.text("stderr"), "");
}
