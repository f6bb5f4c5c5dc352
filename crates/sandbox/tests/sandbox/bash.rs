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
fn wrong_answers_are_errors() {
    let mut server = Server::alone(&["--timeout", "5"]);
    // What it says of its own bounds may be redirected.
    for command in ["seq 200000 | wc -l", "seq 200000 2>/dev/null | wc -l"] {
        let answer = server.bash(command);
        assert!(answer.is_error, "{command}: {}", answer.json);
        assert!(
            answer
                .text("message")
                .starts_with("the answer is not complete")
        );
    }
    // These have bounds no more, or are not there.
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
