//! Plugins have the file rules of commands, keep network access, and end with haft.

use crate::bed::{Bed, alive, within};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use std::time::Duration;

const TRY: &str = r"
import socket
def attempt(what):
    try: return 'done ' + str(what())
    except Exception as error: return 'refused ' + type(error).__name__
def connect(port):
    socket.create_connection(('127.0.0.1', port), 5).close()
    return 'connected'
def call(m):
    p = m['params']
    text('\n'.join([
        attempt(lambda: open(p['outside'], 'w').write('x')),
        attempt(lambda: open(p['secret']).read()),
        attempt(lambda: open('inside.txt', 'w').write('x')),
        attempt(lambda: open(os.environ['TMPDIR'] + '/t', 'w').write('x')),
        attempt(lambda: open('/tmp/' + p['name'], 'w').write('x')),
        attempt(lambda: connect(p['port'])),
    ]))
serve(tool('one'), call)
";

#[test]
fn a_plugin_keeps_to_the_rules_of_commands_and_has_the_network() {
    let bed = Bed::with(&[("p", TRY)]);
    bed.write("home/.ssh/id_ed25519", "CANARY");
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let name = bed
        .path("")
        .file_name()
        .unwrap()
        .to_string_lossy()
        .into_owned();
    let printed = bed.reply_text(
        "one",
        &json!({
            "outside": bed.path("outside/x"), "secret": bed.path("home/.ssh/id_ed25519"),
            "name": name, "port": listener.local_addr().unwrap().port(),
        }),
    );
    let lines: Vec<&str> = printed.lines().collect();
    assert!(lines[0].starts_with("refused"), "{printed}");
    assert!(
        lines[1].starts_with("refused") && !printed.contains("CANARY"),
        "{printed}"
    );
    assert_eq!(
        &lines[2..],
        ["done 1", "done 1", "done 1", "done connected"],
        "{printed}"
    );
    assert!(!bed.path("outside/x").exists());
    assert!(bed.work("inside.txt").exists());
    assert!(
        !std::path::Path::new("/tmp").join(name).exists(),
        "/tmp is its own"
    );
}

#[test]
fn programs_in_the_config_folder_run_and_settings_stay_protected() {
    let bed = Bed::new();
    let settings = bed.path("home/.config/haft/haft.yaml");
    let helper = "def attempt(path):\n    try: return open(path).read()\n    except OSError: return 'closed'\n";
    let serves = |name: &str| {
        let settings = settings.display();
        format!("serve(tool('{name}'), lambda m: text(attempt('{settings}')))")
    };
    let script = |body: &str| std::fs::read_to_string(bed.python("draft", body)).unwrap();
    let alone = script(&format!("{helper}{}", serves("alone")));
    bed.program("home/.config/haft/alone", &alone);
    // A plugin that needs files beside it.
    let beside = format!("from helper import attempt\n{}", serves("beside"));
    bed.program("home/.config/haft/plugins/beside", script(&beside));
    bed.write("home/.config/haft/plugins/helper.py", helper);
    let own = "home/.config/haft/tools";
    let program = format!("#!/bin/bash\ncat {} || echo closed\n", settings.display());
    bed.program(&format!("{own}/program"), program);
    bed.write(&format!("{own}/program.md"), "d");
    let module = "return {name = 'module', description = 'd', input_schema = {type = 'object'}, execute = function() return 'closed' end}";
    bed.write(&format!("{own}/module.lua"), module);
    bed.configure(&json!({ "tools": { "plugins": ["./alone", "./plugins/beside"] } }));
    for mode in ["workspace", "strict", "read-only"] {
        for tool in ["alone", "beside", "program", "module"] {
            let answer = bed.call_with(&["--sandbox", mode], tool, &json!({}));
            assert!(!answer.is_error, "{mode} {tool}: {answer:?}");
            assert!(answer.text.ends_with("closed"), "{mode} {tool}: {answer:?}");
        }
    }
}

/// Whether commands are fully confined here: otherwise a change is only reported.
fn is_full(bed: &Bed) -> bool {
    let ran = bed.done(&["call", "bash", "--json", "command=true"]);
    let reply: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    reply["details"]["sandbox"] == "full"
}

/// The note about a file created at a protected path, and where it is now.
#[track_caller]
fn moved_out(bed: &Bed, printed: &str) {
    let note =
        "[protected: later/on must not be written; what the command made there was moved to ";
    let (_, to) = printed
        .split_once(note)
        .unwrap_or_else(|| panic!("{printed}"));
    assert!(!bed.work("later/on").exists(), "{printed}");
    let to = to.split_once(']').unwrap().0;
    assert_eq!(std::fs::read_to_string(to).unwrap(), "mine", "{printed}");
}

/// The kernel cannot protect a path that does not exist, so it is checked after each call,
/// however the call ended.
#[test]
fn files_of_plugins_and_modules_at_protected_paths_are_moved_out() {
    let make = "def make():\n    os.makedirs('later', exist_ok=True)\n    open('later/on', 'w').write('mine')\n";
    let plugin = format!(
        "{make}def call(m):\n    make()\n    how = m['params']['how']\n    if how == 'hangs': time.sleep(1000)\n    if how == 'dies': os._exit(3)\n    text('made', error=how == 'fails')\nserve(tool('makes', {{'how': {{'type': 'string'}}}}), call)"
    );
    let bed = Bed::with(&[("p", &plugin)]);
    if !is_full(&bed) {
        return;
    }
    bed.write("work/kept", "kept");
    let tools =
        json!({ "plugins": [bed.plugin("p")], "protect": ["later/on", "kept"], "timeout": 2 });
    bed.configure(&json!({ "tools": tools }));
    let module = "return {name = 'module', description = 'd', input_schema = {type = 'object'}, execute = function() os.execute('mkdir -p later'); local f = io.open('later/on', 'w'); f:write('mine'); f:close(); return io.open('kept', 'w') and 'open' or 'closed' end}";
    bed.write("home/.config/haft/tools/module.lua", module);
    let answer = bed.call("module", &json!({}));
    assert!(answer.text.starts_with("closed"), "{answer:?}");
    moved_out(&bed, &answer.text);
    for how in ["works", "fails", "dies", "hangs"] {
        let answer = bed.call("makes", &json!({ "how": how }));
        assert_eq!(answer.is_error, how != "works", "{how}: {answer:?}");
        moved_out(&bed, &answer.text);
    }
    // Not by tools that they call either.
    let answer = bed.call("write", &json!({ "path": "later/on", "content": "x" }));
    assert!(
        answer.is_error && !bed.work("later/on").exists(),
        "{answer:?}"
    );
    assert_eq!(std::fs::read_to_string(bed.work("kept")).unwrap(), "kept");
}

const FAMILY: &str = r"
import subprocess
signal.signal(signal.SIGTERM, signal.SIG_IGN)
def call(m):
    subprocess.Popen(['setsid', 'sleep', '1000'], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    text('started')
serve(tool('one'), call)
";

#[test]
fn nothing_outlives_haft_however_it_ends() {
    for signal in [
        Some(Signal::KILL),
        Some(Signal::TERM),
        Some(Signal::HUP),
        None,
    ] {
        let bed = Bed::with(&[("p", FAMILY)]);
        let mut session = bed.session(&[]);
        assert_eq!(session.reply_text("one", &json!({})), "started");
        let sleeps = || {
            alive(&bed.path(""))
                .iter()
                .any(|line| line.starts_with("sleep"))
        };
        assert!(
            within(Duration::from_secs(5), sleeps),
            "{:?}",
            alive(&bed.path(""))
        );
        match signal {
            Some(signal) => {
                let pid = Pid::from_raw(session.pid().try_into().unwrap()).unwrap();
                kill_process(pid, signal).unwrap();
                session.wait();
            }
            // The client disconnects.
            None => drop(session),
        }
        bed.nobody_left();
    }
}

#[test]
fn an_interrupted_call_leaves_no_processes() {
    let body = FAMILY.replace(
        "text('started')",
        "open('begun', 'w').close(); time.sleep(1000)",
    );
    for signal in [Signal::INT, Signal::TERM, Signal::KILL] {
        let bed = Bed::with(&[("p", &body)]);
        let mut child = bed.command(&["call", "one"]).spawn().unwrap();
        assert!(within(Duration::from_secs(10), || bed
            .work("begun")
            .exists()));
        kill_process(Pid::from_child(&child), signal).unwrap();
        child.wait().unwrap();
        bed.nobody_left();
    }
}

#[test]
fn a_program_keeps_to_the_rules_of_commands() {
    let bed = Bed::new();
    bed.write("home/.ssh/id_ed25519", "CANARY");
    let script = format!(
        "#!/bin/bash\ncat {}\necho x > {}\necho inside > made && echo done\n",
        bed.path("home/.ssh/id_ed25519").display(),
        bed.path("outside/x").display()
    );
    bed.program("home/.config/haft/tools/prog", script);
    bed.write("home/.config/haft/tools/prog.md", "d");
    let printed = bed.reply_text("prog", &json!({}));
    assert!(
        printed.contains("\ndone\n") && !printed.contains("CANARY"),
        "{printed}"
    );
    // It has network access, whatever commands have.
    assert!(
        printed.contains("refused by the sandbox") && !printed.contains("no network"),
        "{printed}"
    );
    assert!(!bed.path("outside/x").exists() && bed.work("made").exists());
}

#[test]
fn a_call_from_the_command_line_leaves_no_processes() {
    let bed = Bed::with(&[("p", FAMILY)]);
    assert_eq!(bed.reply_text("one", &json!({})), "started");
    bed.nobody_left();
    bed.names();
    bed.nobody_left();
}

#[test]
fn denied_files_are_hidden_from_plugins_and_programs() {
    let script = "
def call(m):
    try: text('read ' + open('secrets/key').read() + open('open.txt').read())
    except OSError as error: text(type(error).__name__ + ' ' + open('open.txt').read())
serve(tool('one'), call)
";
    let bed = Bed::with(&[("p", script)]);
    std::fs::create_dir(bed.work("secrets")).unwrap();
    std::fs::write(bed.work("secrets/key"), "CANARY").unwrap();
    std::fs::write(bed.work("open.txt"), "open").unwrap();
    std::fs::write(
        bed.work("haft.yaml"),
        "policy:\n  - { deny: \"*\", path: \"secrets/**\" }\n",
    )
    .unwrap();
    assert_eq!(bed.reply_text("one", &json!({})), "FileNotFoundError open");
}
