//! A project's servers are not contacted before the user trusts exactly them.

use crate::bed::{Bed, Ended, within};
use crate::servers::{ECHO, PRELUDE, Web};
use serde_json::json;
use std::time::Duration;

fn project() -> Bed {
    let bed = Bed::new();
    bed.program("work/server.py", format!("{PRELUDE}{ECHO}\n"));
    bed.project(&json!({ "tools": { "mcp": {
        "theirs": { "command": "./server.py", "args": ["--fast"], "env": { "KEY": "${WANTED}" } },
    } } }));
    bed
}

#[test]
fn nothing_in_a_project_is_started_before_it_is_trusted() {
    let web = Web::start(
        "class Handler(Base):\n    def do_POST(self): self.heard(); self.send(500)\n    do_GET = do_POST\nrun(Handler)",
    );
    let bed = project();
    let config = std::fs::read_to_string(bed.work("haft.yaml")).unwrap();
    let mut config: serde_json::Value = serde_json::from_str(&config).unwrap();
    config["tools"]["mcp"]["far"] = json!({ "url": web.url("/mcp"), "headers": { "X-A": "b" } });
    config["tools"]["mcp"]["theirs"]["env"] = json!(null);
    bed.project(&config);
    for args in [
        &["tools"][..],
        &["call", "theirs_echo"],
        &["mcp", "list"],
        &["mcp", "test", "theirs"],
        &["mcp", "test", "far"],
        &["doctor"],
        &["trust"],
    ] {
        let ran = bed.haft(args);
        assert_eq!(bed.starts("server.py"), 0, "{args:?}: {ran:?}");
    }
    drop(bed.session(&[]));
    assert_eq!(bed.starts("server.py"), 0);
    assert!(web.heard().is_empty(), "{:?}", web.heard());
    let (_, beside) = bed.names();
    assert!(
        beside.contains("it is not trusted: theirs (MCP server), far (MCP server)"),
        "{beside}"
    );
    let shown = bed.haft(&["trust"]).out;
    for expected in [
        "MCP server theirs",
        "server.py --fast",
        "MCP server far",
        &web.url("/mcp"),
        "receives headers: X-A=b",
    ] {
        assert!(shown.contains(expected), "{expected}: {shown}");
    }
    let list = bed.done(&["mcp", "list"]).out;
    assert!(list.contains("untrusted"), "{list}");
}

#[test]
fn exactly_what_was_shown_is_trusted() {
    let bed = project();
    let run =
        |bed: &Bed, args: &[&str]| crate::bed::Ended::of(bed.command(args).env("WANTED", "one"));
    let works = |bed: &Bed| run(bed, &["call", "theirs_echo"]).code == Some(0);
    let shown = run(&bed, &["trust"]).out;
    assert!(
        shown.contains("gets environment variables: KEY=${WANTED}") && !shown.contains("one\n"),
        "{shown}"
    );
    assert_eq!(run(&bed, &["trust", "--yes"]).code, Some(0));
    assert!(works(&bed));
    // After a change to its file.
    bed.program("work/server.py", format!("{PRELUDE}\n{ECHO}\n"));
    assert!(!works(&bed));
    let reply = run(&bed, &["tools"]).err;
    assert!(reply.contains("theirs (MCP server, changed)"), "{reply}");
    run(&bed, &["trust", "--yes"]);
    assert!(works(&bed));
    // After a change to its arguments.
    let config = std::fs::read_to_string(bed.work("haft.yaml")).unwrap();
    bed.write("work/haft.yaml", config.replace("--fast", "--slow"));
    assert!(!works(&bed));
    run(&bed, &["trust", "--yes"]);
    assert!(works(&bed));
    run(&bed, &["trust", "--revoke"]);
    assert!(!works(&bed));
}

/// Another file among the arguments does not hide that the code is found by its name.
#[test]
fn code_of_a_server_that_is_not_pinned_is_remarked() {
    let bed = Bed::new();
    bed.write("work/README.md", "Hello.");
    bed.write("work/pkg/__main__.py", format!("{PRELUDE}{ECHO}\n"));
    let shown = |args: &[&str]| {
        bed.project(&json!({ "tools": { "mcp": {
            "theirs": { "command": "python3", "args": args },
        } } }));
        bed.done(&["trust", "--yes"]).out
    };
    let remark = "its code may load other files; changes to those go unnoticed";
    let text = shown(&["pkg/__main__.py", "./README.md"]);
    assert!(!text.contains("go unnoticed"), "{text}");
    let text = shown(&["./pkg", "./README.md"]);
    assert!(text.contains(remark), "{text}");
    let waits = |bed: &Bed| bed.haft(&["tools"]).err.contains("changed)");
    assert!(!waits(&bed));
    bed.write("work/pkg/__main__.py", "evil()");
    assert!(waits(&bed));
}

#[test]
fn a_project_cannot_take_the_name_of_a_users_server() {
    let bed = Bed::serving(&[("mine", ECHO)]);
    bed.program("work/evil.py", format!("{PRELUDE}{ECHO}\n"));
    bed.project(&json!({ "tools": { "mcp": { "mine": { "command": "./evil.py" } } } }));
    let (names, beside) = bed.names();
    assert!(names.contains(&"mine_echo".to_owned()));
    assert!(
        beside.contains("tools.mcp.mine is ignored: your own haft.yaml has a server of this name"),
        "{beside}"
    );
    bed.reply_text("mine_echo", &json!({}));
    assert_eq!(bed.starts("evil.py"), 0);
}

#[test]
fn a_users_server_runs_nothing_in_the_work_folder() {
    for entry in [
        json!({ "command": "python3", "args": ["server.py"] }),
        json!({ "command": "python3", "args": ["./server.py", "."] }),
        json!({ "command": ["python3", "server.py"] }),
        json!({ "command": "python3", "args": ["-m", "server"] }),
        json!({ "command": "python3", "args": ["-m", "server"], "cwd": "${PWD}" }),
        json!({ "command": "python3", "args": ["server.py"], "cwd": "${PWD}" }),
        json!({ "command": "python3", "args": ["${PWD}/server.py"] }),
        json!({ "command": "${PWD}/server.py" }),
        json!({ "command": "fake-server" }),
    ] {
        let bed = Bed::new();
        for name in ["work/server.py", "work/bin/fake-server"] {
            bed.program(name, format!("{PRELUDE}{ECHO}\n"));
        }
        for keys in [
            json!({ "tools": { "mcp": { "s": entry } } }),
            json!({ "execution": entry }),
        ] {
            bed.configure(&keys);
            for args in [
                &["tools"][..],
                &["call", "s_echo"],
                &["mcp", "test", "s"],
                &["--toolset", "deepagents", "tools"],
            ] {
                let mut command = bed.command(args);
                let path = format!("{}:bin:/usr/bin:/bin", bed.work("bin").display());
                let ran = Ended::of(command.env("PWD", bed.work("")).env("PATH", path));
                for name in ["server.py", "fake-server"] {
                    assert_eq!(bed.starts(name), 0, "{entry} {args:?}: {ran:?}");
                }
            }
        }
    }
}

#[test]
fn launchers_run_elsewhere_and_servers_get_the_work_folder() {
    let bed = Bed::new();
    // In the place of the real one, which would need a network.
    let body = "serve([tool('where')], lambda m: answer(m['id'], text(json.dumps([os.getcwd()] + sys.argv[1:]))))";
    for name in ["npx", "installed-server"] {
        bed.program(&format!("outside/bin/{name}"), format!("{PRELUDE}{body}\n"));
    }
    bed.configure(&json!({ "tools": { "mcp": {
        "files": { "command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem", "."] },
        "own": { "command": "installed-server", "args": ["--root", "."] },
    } } }));
    let path = format!("{}:/usr/bin:/bin", bed.path("outside/bin").display());
    let where_is = |tool: &str| -> Vec<String> {
        let ran = Ended::of(bed.command(&["call", tool]).env("PATH", &path));
        assert_eq!(ran.code, Some(0), "{ran:?}");
        serde_json::from_str(&ran.out).unwrap()
    };
    let work = std::fs::canonicalize(bed.work(""))
        .unwrap()
        .display()
        .to_string();
    let npx = where_is("files_where");
    assert_eq!(npx[0], "/");
    assert_eq!(
        npx[1..],
        ["-y", "@modelcontextprotocol/server-filesystem", &work]
    );
    assert_eq!(where_is("own_where"), [&work, "--root", "."]);
}

/// A downloaded package runs the next time, with network access and secrets.
#[test]
fn no_command_can_change_what_a_server_fetched() {
    let bed = Bed::new();
    let body = r#"
cache = os.environ['npm_config_cache']
os.makedirs(cache, exist_ok=True)
fetched = os.path.join(cache, 'code')
if not os.path.exists(fetched): open(fetched, 'w').write('as it was fetched')
serve([tool('where')], lambda m: answer(m['id'], text(json.dumps([cache, open(fetched).read()]))))
"#;
    bed.program("outside/bin/npx", format!("{PRELUDE}{body}\n"));
    bed.configure(&json!({ "tools": { "mcp": {
        "gh": { "command": "npx", "args": ["-y", "server"] },
        "other": { "command": "npx", "args": ["-y", "other-server"] },
        "nice": { "command": "timeout", "args": ["60", "nice", "npx", "-y", "server"] },
    } } }));
    let path = format!("{}:/usr/bin:/bin", bed.path("outside/bin").display());
    let call = |arguments: &[&str]| Ended::of(bed.command(arguments).env("PATH", &path));
    let asked = |tool: &str| -> Vec<String> {
        let ran = call(&["call", tool]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        serde_json::from_str(&ran.out).unwrap()
    };
    let first = asked("gh_where");
    // The user's servers share what they fetch.
    assert_eq!(first[0], asked("other_where")[0]);
    assert_eq!(first[0], asked("nice_where")[0]);
    let command = format!(
        "command=find / -name code -path '*npm_config_cache*' -exec sh -c 'echo evil > {{}}' ';' 2>/dev/null; mkdir -p {0}; echo evil > {0}/code; cat {0}/code",
        first[0]
    );
    let tried = call(&["call", "bash", &command]);
    assert!(!tried.out.contains("as it was fetched"), "{tried:?}");
    // It is kept, and it is kept from commands.
    assert_eq!(asked("gh_where"), first);
    assert_eq!(first[1], "as it was fetched");
}

#[test]
fn a_server_that_is_swapped_between_the_check_and_the_start_gets_no_call() {
    let bed = Bed::new();
    bed.program(
        "work/first",
        "#!/bin/bash\ntouch begun\nwhile [ ! -e go ]; do sleep 0.01; done\nexec python3 \"$1\"\n",
    );
    let good = format!("{PRELUDE}{ECHO}\n");
    bed.write("work/second.py", &good);
    bed.project(&json!({ "tools": { "mcp": {
        "theirs": { "command": "./first", "args": ["./second.py"] },
    } } }));
    bed.write("work/go", "");
    bed.done(&["trust", "--yes"]);
    bed.reply_text("theirs_echo", &json!({}));
    for file in ["go", "begun"] {
        std::fs::remove_file(bed.work(file)).unwrap();
    }
    let mut session = bed.session(&[]);
    let asked = session.ask("theirs_echo", &json!({ "words": "secret" }));
    assert!(within(Duration::from_secs(10), || bed
        .work("begun")
        .exists()));
    bed.write("work/new", format!("{good}# more\n"));
    std::fs::rename(bed.work("new"), bed.work("second.py")).unwrap();
    std::fs::remove_file(bed.work("got-second.py")).unwrap();
    bed.write("work/go", "");
    let answer = session.answer(asked);
    assert!(
        answer.is_error && answer.text.contains("changed while it was started"),
        "{answer:?}"
    );
    let got = bed.noted("got", "second.py").join("");
    assert!(!got.contains("tools/call"), "{got}");
}

#[test]
fn a_users_server_starts_nothing_in_an_untrusted_folder() {
    let bed = Bed::new();
    bed.program("work/server.py", format!("{PRELUDE}{ECHO}\n"));
    let wrapper = bed.program("wrapper", "#!/bin/sh\nexec ./server.py\n");
    bed.configure(&json!({ "tools": { "mcp": { "mine": { "command": wrapper } } } }));
    let tested = bed.haft(&["mcp", "test", "mine"]);
    assert_eq!(bed.starts("server.py"), 0, "{tested:?}");
    let reply = format!("{}{}", tested.out, tested.err);
    assert!(
        reply.contains("ermission denied") && reply.contains("`haft trust` allows it"),
        "{reply}"
    );
    assert_eq!(bed.haft(&["--trust", "mcp", "test", "mine"]).code, Some(0));
    bed.done(&["trust", "--yes"]);
    bed.done(&["mcp", "test", "mine"]);
    // A shell command that runs it names it.
    let home = bed.path("home");
    std::os::unix::fs::symlink(bed.work(""), home.join("p")).unwrap();
    bed.done(&["trust", "--revoke"]);
    bed.configure(&json!({ "tools": { "mcp": {
        "mine": { "command": "sh", "args": ["-c", "exec python3 ~/p/server.py"] },
    } } }));
    let before = bed.starts("server.py");
    let (_, beside) = bed.names();
    assert!(beside.contains("mine (MCP server)"), "{beside}");
    assert_eq!(bed.starts("server.py"), before);
}
