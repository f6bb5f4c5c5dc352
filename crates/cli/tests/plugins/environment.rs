//! Environment of tools: a small part of haft's, without secrets.

use crate::bed::{Bed, Ended};
use serde_json::json;

const SECRETS: [&str; 8] = [
    "OPENAI_API_KEY",
    "AWS_SECRET_ACCESS_KEY",
    "GITHUB_TOKEN",
    "DB_PASSWORD",
    "DATABASE_URL",
    "SSH_AUTH_SOCK",
    "MY_SECRET",
    "HARMLESS",
];

/// Prints everything it can find: its own environment, and that of every process.
const DUMP: &str = r"
def dump():
    found = [k + '=' + v for k, v in os.environ.items()]
    for pid in os.listdir('/proc'):
        for file in ('environ', 'cmdline'):
            try: found.append(open('/proc/' + pid + '/' + file, errors='replace').read())
            except OSError: pass
    return '\n'.join(found)
serve(tool('dump'), lambda m: text(dump()))
";

#[track_caller]
fn clean(what: &str, reply: &str) {
    assert!(reply.contains("PATH="), "{what}: {reply}");
    assert!(!reply.contains("CANARY"), "{what}: {reply}");
}

#[test]
fn tools_do_not_see_haft_secrets() {
    let bed = Bed::with(&[("p", DUMP)]);
    bed.program(
        "home/.config/haft/tools/exe",
        "#!/bin/bash\nenv; cat /proc/self/environ /proc/$PPID/environ /proc/*/environ 2>/dev/null | tr '\\0' '\\n'\n",
    );
    bed.write("home/.config/haft/tools/exe.md", "Dumps.");
    bed.write(
        "home/.config/haft/tools/lua_dump.lua",
        r#"return {name = "lua_dump", description = "d", input_schema = {type = "object", properties = {}},
          execute = function() local p = io.popen("env; cat /proc/*/environ 2>/dev/null"); return p:read("a") end}"#,
    );
    for tool in ["dump", "exe", "lua_dump"] {
        let mut command = bed.command(&["call", tool]);
        for name in SECRETS {
            command.env(name, "CANARY");
        }
        command
            .env("LC_ALL", "C.UTF-8")
            .env("TZ", "UTC")
            .env("USER", "me")
            .env("LANG", "C");
        let ran = Ended::of(&mut command);
        assert_eq!(ran.code, Some(0), "{tool}: {ran:?}");
        clean(tool, &ran.out);
        for usual in ["HOME=", "LC_ALL=", "TZ=", "USER=", "LANG="] {
            assert!(ran.out.contains(usual), "{tool}: {usual} {ran:?}");
        }
    }
}

#[test]
fn configured_variables_are_passed_and_expanded() {
    let body = r"serve(tool(sys.argv[2] if len(sys.argv) > 2 else 'one'), lambda m: text(json.dumps([sys.argv[1:], os.environ.get('GIVEN'), os.environ.get('MADE')])))";
    let bed = Bed::with(&[("p", body)]);
    let path = bed.path("plugins/p");
    bed.configure(&json!({ "tools": { "plugins": [
        { "path": path, "args": ["x", "listed"], "env": ["GIVEN", "NOT_SET"] },
        { "path": path, "args": ["${GIVEN} $HOME ${UNSET:-none}", "mapped"], "env": { "MADE": "a${GIVEN}b" } },
        { "path": path, "args": ["${NOT_SET}", "skipped"] },
        { "path": path, "args": ["y", "plain"] },
    ] } }));
    let call = |tool: &str| {
        let mut command = bed.command(&["call", tool]);
        command.env("GIVEN", "value");
        Ended::of(&mut command)
    };
    assert_eq!(
        call("listed").out,
        "[[\"x\", \"listed\"], \"value\", null]\n"
    );
    let mapped = call("mapped").out;
    assert!(
        mapped.contains("\"value $HOME none\"") || mapped.contains("\"value "),
        "{mapped}"
    );
    assert!(mapped.ends_with("null, \"avalueb\"]\n"), "{mapped}");
    let plain = call("plain");
    assert_eq!(plain.out, "[[\"y\", \"plain\"], null, null]\n");
    let warning = plain.err.lines().find(|line| line.contains("NOT_SET"));
    let warning = warning.unwrap_or_else(|| panic!("{}", plain.err));
    assert!(warning.contains("haft.yaml:1"), "{warning}");
    assert!(
        warning.contains("tools.plugins[2] needs variable NOT_SET"),
        "{warning}"
    );
    assert!(warning.ends_with("skipped this plugin"), "{warning}");
    assert_eq!(call("skipped").code, Some(2));
}
