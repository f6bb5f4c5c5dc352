//! Starting servers: downloads take their time, and a failed one leaves nothing behind.

use crate::bed::{Bed, Ended, within};
use crate::servers::PRELUDE;
use serde_json::json;
use std::time::{Duration, Instant};

/// A bed in which `npx` is this program.
fn with_npx(body: &str, entry: &serde_json::Value) -> Bed {
    let bed = Bed::new();
    bed.program("outside/bin/npx", format!("{PRELUDE}{body}\n"));
    bed.configure(&json!({ "tools": { "mcp": { "s": entry } } }));
    bed
}

fn run(bed: &Bed, arguments: &[&str]) -> Ended {
    let path = format!("{}:/usr/bin:/bin", bed.path("outside/bin").display());
    Ended::of(bed.command(arguments).env("PATH", path))
}

/// Unpacks a package in two steps, as npx does, and works only with a complete one.
const FETCHES: &str = r#"
package = os.path.join(os.environ['npm_config_cache'], '_npx', 'abc')
if not os.path.exists(package):
    os.makedirs(package + '/node_modules')
    time.sleep(float(os.environ.get('SLOW', '0')))
    open(package + '/done', 'w').close()
if not os.path.exists(package + '/done'):
    sys.stderr.write('damaged package\n')
    sys.exit(1)
if os.environ.get('NO_KEY'): sys.exit('no key')
serve([tool('echo')], echo)
"#;

#[test]
fn a_slow_download_is_reported_and_finishes() {
    let entry = json!({ "command": "npx", "args": ["-y", "@some/server@1"], "env": { "SLOW": "3" }, "start_timeout": 1 });
    let bed = with_npx(FETCHES, &entry);
    let ran = run(&bed, &["mcp", "test", "s"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(
        ran.err
            .contains("MCP server s is fetching @some/server@1 with npx (2 s)"),
        "{ran:?}"
    );
    let ran = run(&bed, &["call", "s_echo"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
}

#[test]
fn a_download_that_was_ended_early_does_no_lasting_damage() {
    let entry = json!({ "command": "npx", "args": ["server"], "env": { "SLOW": "60" }, "start_timeout": 1 });
    let bed = with_npx(FETCHES, &entry);
    // This command waits a second for the server and then ends with everything it started.
    let begun = Instant::now();
    let ran = run(&bed, &["tools"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(begun.elapsed() < Duration::from_secs(15), "{ran:?}");
    assert!(
        ran.err
            .contains("is not ready after 1 seconds and is still starting"),
        "{ran:?}"
    );
    bed.nobody_left();
    let entry = json!({ "command": "npx", "args": ["server"] });
    bed.configure(&json!({ "tools": { "mcp": { "s": entry } } }));
    let ran = run(&bed, &["call", "s_echo"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
}

#[test]
fn what_a_failed_start_fetched_is_removed_and_nothing_else() {
    let entry = json!({ "command": "npx", "args": ["server"], "env": { "NO_KEY": "1" } });
    let bed = with_npx(FETCHES, &entry);
    let other = "home/.local/state/haft/mcp/packages/user/npm_config_cache/_npx/other";
    let kept = bed.write(&format!("{other}/done"), "");
    let old = std::time::SystemTime::now() - Duration::from_secs(60);
    let folder = std::fs::File::open(bed.path(other)).unwrap();
    folder.set_modified(old).unwrap();
    let ran = run(&bed, &["mcp", "test", "s"]);
    assert!(ran.err.contains("no key"), "{ran:?}");
    let fetched = bed.path("home/.local/state/haft/mcp/packages/user/npm_config_cache/_npx/abc");
    assert!(!fetched.exists());
    assert!(kept.exists());
    let entry = json!({ "command": "npx", "args": ["server"] });
    bed.configure(&json!({ "tools": { "mcp": { "s": entry } } }));
    assert_eq!(run(&bed, &["call", "s_echo"]).code, Some(0));
    assert!(within(Duration::from_secs(5), || fetched.exists()));
}

/// Clients give up on a server that takes long, and then have none of its tools.
#[test]
fn haft_answers_at_once_and_tools_of_slow_servers_arrive_later() {
    let bed = Bed::serving(&[
        ("good", crate::servers::ECHO),
        (
            "slow",
            "while not os.path.exists('go'): time.sleep(0.05)\nserve([tool('echo')], echo)",
        ),
        ("silent", "time.sleep(1000)"),
    ]);
    let begun = Instant::now();
    let mut session = bed.session(&[]);
    assert!(begun.elapsed() < Duration::from_secs(5), "{begun:?}");
    let text = session.reply_text("bash", &json!({ "command": "echo hello" }));
    assert_eq!(text.trim(), "hello");
    let names = |session: &mut crate::session::Session| -> Vec<String> {
        let name = |tool: &serde_json::Value| tool["name"].as_str().unwrap().to_owned();
        session.tools().iter().map(name).collect()
    };
    let first = names(&mut session);
    assert!(begun.elapsed() < Duration::from_secs(15), "{begun:?}");
    assert!(first.contains(&"good_echo".to_owned()), "{first:?}");
    assert!(!first.contains(&"slow_echo".to_owned()), "{first:?}");
    session.notifications.clear();
    bed.write("work/go", "");
    assert!(within(Duration::from_secs(20), || {
        session.request("ping", &json!({}));
        let changed = "notifications/tools/list_changed";
        session
            .notifications
            .iter()
            .any(|one| one["method"] == changed)
    }));
    assert!(names(&mut session).contains(&"slow_echo".to_owned()));
    session.reply_text("slow_echo", &json!({}));
}
