//! With any umask haft's own files are private, and usable.

use crate::scratch::Scratch;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Runs the command in a shell with this umask.
fn under(scratch: &Scratch, umask: &str, args: &[&str]) -> Command {
    let haft = scratch.command(&[]);
    let mut command = Command::new("sh");
    command
        .arg("-c")
        .arg(format!("umask {umask}; exec \"$0\" \"$@\""))
        .arg(haft.get_program())
        .args(args)
        .current_dir(scratch.work(""))
        .env_clear()
        .env("HOME", scratch.home(""))
        .env("PATH", "/usr/bin:/bin")
        .stdin(Stdio::null());
    command
}

fn below(folder: &Path, all: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.is_symlink() {
            below(&path, all);
        }
        all.push(path);
    }
}

/// Every file below haft's state folder is 0600 and every folder 0700.
fn are_private(scratch: &Scratch, umask: &str) -> Vec<String> {
    let state = scratch.home(".local/state/haft");
    let mut all = vec![state.clone()];
    below(&state, &mut all);
    for path in &all {
        // A file that is gone meanwhile is skipped.
        let Ok(about) = std::fs::symlink_metadata(path) else {
            continue;
        };
        let expected = if about.is_dir() { 0o700 } else { 0o600 };
        let mode = about.permissions().mode() & 0o7777;
        // In a layer, commands and the kernel choose the modes; its folder is closed.
        let in_layer = path.strip_prefix(state.join("caches")).ok();
        let mut parents = in_layer
            .and_then(Path::parent)
            .into_iter()
            .flat_map(Path::iter);
        if parents.any(|name| name == "upper" || name == "work") {
            continue;
        }
        assert_eq!(
            mode,
            expected,
            "umask {umask}: {} is {mode:o}",
            path.display()
        );
    }
    let names = all.iter().filter_map(|path| path.strip_prefix(&state).ok());
    names.map(|name| name.display().to_string()).collect()
}

/// A client of `haft mcp`.
struct Client {
    child: Child,
    replies: BufReader<std::process::ChildStdout>,
}

impl Client {
    fn start(scratch: &Scratch, umask: &str) -> Self {
        let mut child = under(scratch, umask, &["mcp", "--log", "off"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let replies = BufReader::new(child.stdout.take().unwrap());
        let mut client = Self { child, replies };
        client.ask(1, "initialize", &json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } }));
        client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        client
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.child.stdin.as_mut().unwrap(), "{message}").unwrap();
    }

    fn ask(&mut self, id: u64, method: &str, params: &Value) -> Value {
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        loop {
            let mut line = String::new();
            assert_ne!(self.replies.read_line(&mut line).unwrap(), 0, "it ended");
            let reply: Value = serde_json::from_str(&line).unwrap();
            if reply["id"] == id {
                return reply["result"].clone();
            }
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

#[test]
fn hafts_files_are_private_under_any_umask() {
    for umask in ["000", "022", "077", "0777"] {
        let scratch = Scratch::new();
        scratch.file(
            "tools/one.lua",
            "return { name = 'one', description = 'd', input_schema = {type = 'object', properties = {}}, execute = function(input) return 'x' end }\n",
        );
        scratch.file(
            "p.sh",
            "while read -r line; do case $line in *describe*) echo '{\"name\":\"two\",\"description\":\"d\"}';; *) echo said >&2; echo '{\"content\":\"ran\"}';; esac; done\n",
        );
        scratch.file(
            "haft.yaml",
            "tools: {plugins: [{path: bash, args: [./p.sh]}]}\n",
        );
        let done = |args: &[&str]| {
            let output = under(&scratch, umask, args).output().unwrap();
            assert!(
                output.status.success(),
                "umask {umask} {args:?}: {output:?}"
            );
        };
        done(&["trust", "--yes"]);
        done(&["call", "two"]);
        let mut client = Client::start(&scratch, umask);
        let long = json!({ "name": "bash", "arguments": { "command": "seq 1 100000; umask" } });
        let reply = client.ask(2, "tools/call", &long);
        assert_eq!(reply["isError"], false, "umask {umask}: {reply}");
        let write = json!({ "name": "write", "arguments": { "path": "new.txt", "content": "x" } });
        let reply = client.ask(3, "tools/call", &write);
        assert_eq!(reply["isError"], false, "umask {umask}: {reply}");
        let names = are_private(&scratch, umask).join("\n");
        for expected in [
            "trust.json",
            "trust.lock",
            "sessions.db",
            "sessions.db-wal",
            "sessions.db-shm",
            "outputs/",
            "plugins/known/",
            ".log",
        ] {
            assert!(names.contains(expected), "{expected} is not among\n{names}");
        }
        drop(client);
        // The token of the HTTP server.
        let mut server = under(&scratch, umask, &["mcp", "--http", "0"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut printed = BufReader::new(server.stdout.take().unwrap());
        printed.read_line(&mut line).unwrap();
        server.kill().unwrap();
        server.wait().unwrap();
        assert!(line.contains("token"), "umask {umask}: {line}");
        let names = are_private(&scratch, umask).join("\n");
        assert!(names.contains("token"), "{names}");
        // Commands run, also where folders have to be made to get to the work folder.
        let temp = tempfile::tempdir_in("/tmp").unwrap();
        let output = under(&scratch, umask, &["call", "bash", "command=umask"])
            .current_dir(temp.path())
            .output()
            .unwrap();
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(printed.trim(), format!("{umask:0>4}"), "{output:?}");
        // Files that a tool writes follow the user's umask.
        let mode = std::fs::metadata(scratch.work("new.txt"))
            .unwrap()
            .permissions()
            .mode();
        let umask = u32::from_str_radix(umask, 8).unwrap();
        assert_eq!(mode & 0o777, 0o666 & !umask);
        // They can be used again with an ordinary umask.
        assert_eq!(scratch.haft(&["call", "two"]).code, Some(0));
        assert_eq!(scratch.haft(&["sessions", "list"]).code, Some(0));
    }
}
