//! `haft plugin log`.

use crate::bed::Bed;

fn put(bed: &Bed, name: &str, content: &[u8]) {
    let folder = bed.home(".local/state/haft/plugins");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join(name), content).unwrap();
}

#[test]
fn without_logs_it_says_so() {
    let ended = Bed::new().haft(&["plugin", "log"]);
    assert_eq!((ended.code, ended.out.as_str()), (Some(0), ""), "{ended:?}");
    assert!(ended.err.starts_with("no plugin logs in"), "{ended:?}");
    let ended = Bed::new().haft(&["plugin", "log", "weather"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(
        ended.err.starts_with("error: no log of \"weather\"\n"),
        "{ended:?}"
    );
}

#[test]
fn logs_are_listed_without_a_name() {
    let bed = Bed::new();
    put(&bed, "weather.log", &[b'x'; 2048]);
    put(&bed, "__tool_py.log", b"a\n");
    put(&bed, "weather.out", b"no log");
    let ended = bed.haft(&["plugin", "log"]);
    assert_eq!(ended.code, Some(0));
    assert_eq!(
        ended.out,
        "__tool_py  2B   just now\nweather    2KB  just now\n"
    );
}

#[test]
fn the_end_of_a_plugin_log_is_shown_and_sanitized() {
    let bed = Bed::new();
    let lines: String = (1..=150).map(|line| format!("line {line}\n")).collect();
    put(
        &bed,
        "__tool_py.log",
        format!("{lines}\x1b[2J\u{202e}end\n").as_bytes(),
    );
    // Named as in haft.yaml.
    let ended = bed.haft(&["plugin", "log", "./tool.py"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(ended.out.lines().count(), 100);
    assert!(ended.out.starts_with("line 52\n"), "{}", ended.out);
    assert!(
        ended.out.ends_with("\\x1b[2J\\u{202e}end\n"),
        "{}",
        ended.out
    );
    assert!(
        ended.err.starts_with("51 earlier lines are in "),
        "{ended:?}"
    );
    let ended = bed.haft(&["plugin", "log", "__tool_py", "--lines", "2", "--quiet"]);
    assert_eq!((ended.out.lines().count(), ended.err.as_str()), (2, ""));
}

#[test]
fn a_wrong_name_gets_a_suggestion() {
    let bed = Bed::new();
    put(&bed, "weather.log", b"");
    let ended = bed.haft(&["plugin", "log", "wether"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.err.contains("did you mean \"weather\"?"), "{ended:?}");
    assert_eq!(bed.haft(&["plugin", "log", "weather"]).out, "");
}
