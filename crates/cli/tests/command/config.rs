//! Sources of values, and how they are shown.

use crate::scratch::Scratch;
use serde_json::json;

#[test]
fn flag_before_variable_before_project_before_user() {
    let scratch = Scratch::new();
    let key = "tools.preset";
    assert_eq!(
        scratch.shown(key, &[], &[]),
        (json!("coding"), "default".to_owned())
    );
    scratch.user("tools:\n  preset: none\n");
    let user = scratch.home(".config/haft/haft.yaml").display().to_string();
    assert_eq!(
        scratch.shown(key, &[], &[]),
        (json!("none"), format!("{user}:2"))
    );
    scratch.file("haft.yaml", "tools:\n\n  preset: readonly\n");
    assert_eq!(
        scratch.shown(key, &[], &[]),
        (json!("readonly"), "haft.yaml:3".to_owned())
    );
    let variables = [("HAFT_PRESET", "all")];
    assert_eq!(
        scratch.shown(key, &variables, &[]),
        (json!("all"), "variable HAFT_PRESET".to_owned())
    );
    let flags = ["--preset", "web"];
    assert_eq!(
        scratch.shown(key, &variables, &flags),
        (json!("web"), "flag --preset".to_owned())
    );
    // An empty variable counts as unset.
    assert_eq!(
        scratch.shown(key, &[("HAFT_PRESET", "")], &[]).0,
        "readonly"
    );
}

#[test]
fn every_variable_counts() {
    let scratch = Scratch::new();
    scratch.file("sub/other.yaml", "log: debug\n");
    for (variable, value, key, shown) in [
        (
            "HAFT_TOOLSET",
            "standard",
            "tools.toolset",
            json!("standard"),
        ),
        ("HAFT_SANDBOX", "strict", "sandbox", json!("strict")),
        ("HAFT_LOG", "error", "log", json!("error")),
        ("HAFT_QUIET", "1", "quiet", json!(true)),
        ("HAFT_QUIET", "No", "quiet", json!(false)),
    ] {
        let (value, from) = scratch.shown(key, &[(variable, value)], &[]);
        assert_eq!((value, from), (shown, format!("variable {variable}")));
    }
    let (value, from) = scratch.shown("tools.work_dir", &[("HAFT_DIR", "sub")], &[]);
    assert!(value.as_str().unwrap().ends_with("/work/sub"), "{value}");
    assert_eq!(from, "variable HAFT_DIR");
    let (value, from) = scratch.shown("log", &[("HAFT_CONFIG", "sub/other.yaml")], &[]);
    assert_eq!((value, from.as_str()), (json!("debug"), "sub/other.yaml:1"));
    for (variable, value) in [
        ("HAFT_SANDBOX", "loose"),
        ("HAFT_QUIET", "maybe"),
        ("HAFT_LOG", "loud"),
        ("HAFT_TOOLSET", "x"),
        ("HAFT_DIR", "none"),
        ("HAFT_CONFIG", "none.yaml"),
    ] {
        let ended = scratch.haft_with(&[(variable, value)], &["config", "show"]);
        assert_eq!(ended.code, Some(2), "{variable} {ended:?}");
    }
}

#[test]
fn the_files_are_found_by_the_xdg_rules() {
    let scratch = Scratch::new();
    scratch.file("xdg/haft/haft.yaml", "log: info\n");
    let xdg = scratch.work("xdg");
    let set = [("XDG_CONFIG_HOME", xdg.to_str().unwrap())];
    assert_eq!(scratch.shown("log", &set, &[]).0, "info");
    // A relative one is ignored, as the specification wants.
    assert_eq!(
        scratch.shown("log", &[("XDG_CONFIG_HOME", "xdg")], &[]).0,
        "warn"
    );
}

#[test]
fn a_named_file_replaces_the_projects() {
    let scratch = Scratch::new();
    scratch.file("haft.yaml", "log: info\nquiet: true\n");
    scratch.file(
        "ci/haft.yaml",
        "log: debug\ntools: {work_dir: here, roots: [more]}\nsandbox: off\n",
    );
    scratch.file("ci/here/x", "");
    scratch.file("ci/more/x", "");
    let flags = ["--config", "ci/haft.yaml"];
    assert_eq!(
        scratch.shown("log", &[], &flags),
        (json!("debug"), "ci/haft.yaml:1".to_owned())
    );
    assert_eq!(scratch.shown("quiet", &[], &flags).1, "default");
    // It counts as the user's choice: it may loosen, and its paths start at its folder.
    assert_eq!(scratch.shown("sandbox", &[], &flags).0, "off");
    let (dir, _) = scratch.shown("tools.work_dir", &[], &flags);
    assert!(dir.as_str().unwrap().ends_with("/work/ci/here"), "{dir}");
    let (roots, _) = scratch.shown("tools.roots", &[], &flags);
    assert!(
        roots[0].as_str().unwrap().ends_with("/work/ci/more"),
        "{roots}"
    );
}

#[test]
fn variables_expand_where_they_are_needed() {
    let scratch = Scratch::new();
    scratch.file("sub/x", "");
    scratch.file(
        "haft.yaml",
        "api_key: ${NOT_SET}\ntools:\n  work_dir: \"${WHERE}\"\nlog: ${LEVEL}\n",
    );
    let variables = [
        ("WHERE", "sub"),
        ("LEVEL", "info"),
        ("HAFT_QUIET", "1"),
        ("HAFT_CONFIG", "haft.yaml"),
    ];
    // The value is used, and the text of the file is shown.
    let (dir, from) = scratch.shown("tools.work_dir", &variables, &[]);
    assert_eq!((dir, from), (json!("${WHERE}"), "haft.yaml:3".to_owned()));
    assert_eq!(scratch.shown("log", &variables, &[]).0, "${LEVEL}");
    let listed = scratch.haft_with(&variables, &["call", "ls"]);
    assert!(listed.out.starts_with("x  "), "{listed:?}");
    // Overridden, so it is not needed.
    assert_eq!(
        scratch
            .shown("log", &variables, &["--dir", ".", "--log", "off"])
            .0,
        "off"
    );
    // A variable's value is checked too.
    let loud = [("WHERE", "sub"), ("LEVEL", "loud")];
    let ended = scratch.haft_with(&loud, &["config", "show", "--config", "haft.yaml"]);
    assert_eq!(ended.code, Some(2));
    assert!(
        ended.err.contains("haft.yaml:4:6: log must be"),
        "{ended:?}"
    );
    assert!(ended.err.contains("\"${LEVEL}\""), "{ended:?}");
}

#[test]
fn the_value_of_a_variable_is_never_shown() {
    let scratch = Scratch::new();
    scratch.file("sk-secret/x", "");
    let variables = [
        ("WORD", "sk-secret"),
        ("HOMELY", "~/sk-secret"),
        ("ABOVE", "../sk-secret"),
        ("MODE", "strict"),
        ("PRESET", "readonly"),
        ("LOOSE", "off"),
    ];
    std::fs::create_dir(scratch.work("../sk-secret")).unwrap();
    for (yaml, code) in [
        ("sandbox: \"${WORD}\"\n", 2),
        ("log: \"${WORD}\"\n", 2),
        ("log: \"x${WORD}\"\n", 2),
        ("tools: {toolset: \"${WORD}\"}\n", 2),
        ("tools: {preset: \"${WORD}\"}\n", 2),
        ("tools: {preset: \"a ${WORD}\"}\n", 2),
        ("tools: {work_dir: \"none/${WORD}\"}\n", 2),
        ("tools: {work_dir: \"${ABOVE}\"}\n", -1),
        ("tools: {work_dir: \"${WORD}\"}\n", 0),
        ("tools: {protect: [\"${WORD}\", \"\", plain]}\n", 0),
        ("tools: {protect: [\"${HOMELY}\"]}\n", 0),
        ("tools: {roots: [\"none/${WORD}\"]}\n", -1),
        ("tools: {roots: [\"${WORD}\"]}\n", -1),
        ("model: \"${WORD}\"\n", 0),
    ] {
        let named = [("HAFT_CONFIG", "haft.yaml")];
        for role in ["project", "trusted", "named", "user"] {
            let _ = std::fs::remove_file(scratch.work("haft.yaml"));
            let _ = std::fs::remove_file(scratch.home(".config/haft/haft.yaml"));
            let mut variables = variables.to_vec();
            match role {
                "user" => scratch.user(yaml),
                _ => scratch.file("haft.yaml", yaml),
            }
            if role == "named" {
                variables.extend(named);
            }
            for args in [
                &["config", "show"][..],
                &["config", "show", "--json"],
                &["call", "ls", "path=none"],
                &["doctor"],
                &["doctor", "--json"],
                &["trust"],
                &["tools"],
            ] {
                let more: &[&str] = if role == "trusted" { &["--trust"] } else { &[] };
                let ended = scratch.haft_with(&variables, &[args, more].concat());
                assert!(
                    !ended.out.contains("sk-secret") && !ended.err.contains("sk-secret"),
                    "{role} {yaml:?} {ended:?}"
                );
                if code >= 0
                    && role != "project"
                    && args[0] == "config"
                    && !(role == "user" && yaml.contains("work_dir"))
                {
                    assert_eq!(ended.code, Some(code), "{role} {yaml:?} {ended:?}");
                }
            }
        }
        let _ = std::fs::remove_file(scratch.home(".config/haft/haft.yaml"));
    }
    // Valid values are used, and shown by their names too.
    scratch.file(
        "haft.yaml",
        "sandbox: ${MODE}\ntools: {preset: \"${PRESET}\", protect: [a, \"${MODE}\"]}\n",
    );
    let trust = ["--trust"];
    assert_eq!(scratch.shown("sandbox", &variables, &trust).0, "${MODE}");
    assert_eq!(
        scratch.shown("tools.preset", &variables, &trust).0,
        "${PRESET}"
    );
    let protect = scratch.shown("tools.protect", &variables, &trust).0;
    assert!(
        protect[0].as_str().unwrap().ends_with("/work/a"),
        "{protect}"
    );
    assert_eq!(protect[1], "${MODE}");
    let tools = scratch.haft_with(&variables, &["tools", "--trust"]);
    assert!(!tools.out.contains("write"), "{tools:?}");
    scratch.user("sandbox: read-only\n");
    assert_eq!(
        scratch.shown("sandbox", &variables, &trust).0,
        "read-only and ${MODE}"
    );
    scratch.file("haft.yaml", "sandbox: ${LOOSE}\n");
    let ended = scratch.haft_with(&variables, &["tools", "--trust"]);
    assert!(
        ended.err.contains("sandbox ${LOOSE} is ignored"),
        "{ended:?}"
    );
}

/// Without its variables such a setting would be looser than the file says.
#[test]
fn tightening_settings_are_never_dropped() {
    let scratch = Scratch::new();
    for (yaml, what) in [
        ("sandbox: ${WORD}\n", "sandbox"),
        ("network: ${WORD}\n", "network"),
        ("approve: ${WORD}\n", "approve"),
        ("execution: ${WORD}\n", "execution"),
        ("tools: {work_dir: \"${WORD}\"}\n", "tools.work_dir"),
        ("tools: {protect: [plain, \"${WORD}\"]}\n", "tools.protect"),
        (
            "tools: {web: {deny_hosts: [\"${WORD}\"]}}\n",
            "tools.web.deny_hosts",
        ),
    ] {
        scratch.file("haft.yaml", yaml);
        for args in [&["call", "ls"][..], &["tools"], &["mcp"]] {
            let ended = scratch.haft_with(&[("WORD", "sk-secret")], args);
            assert_eq!(ended.code, Some(2), "{yaml:?} {ended:?}");
            let message = format!("{what} cannot be used");
            assert!(ended.err.starts_with("haft.yaml:1:"), "{yaml:?} {ended:?}");
            assert!(ended.err.contains(&message), "{yaml:?} {ended:?}");
            assert!(ended.err.contains("variable WORD"), "{yaml:?} {ended:?}");
            assert!(ended.err.contains("haft trust"), "{yaml:?} {ended:?}");
            assert!(!ended.err.contains("sk-secret"), "{yaml:?} {ended:?}");
        }
    }
}

/// Variables are only expanded in string values of files.
#[test]
fn nothing_else_is_expanded() {
    let scratch = Scratch::new();
    scratch.file(".env", "WORD=from-a-file\n");
    scratch.file(
        "named.yaml",
        "system_prompt: \"$WORD ${WORD:-x} ${ WORD} %WORD%\"\ntools: {interrupt_on: {\"${WORD}\": true}}\n",
    );
    let variables = [("WORD", "sk-secret"), ("HAFT_CONFIG", "named.yaml")];
    let ended = scratch.haft_with(&variables, &["config", "show"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(
        ended.out.contains("$WORD ${WORD:-x} ${ WORD} %WORD%"),
        "{ended:?}"
    );
    assert!(
        !(ended.out.clone() + &ended.err).contains("sk-secret"),
        "{ended:?}"
    );
    // A file that does not set a variable has no effect on it.
    scratch.file("named.yaml", "log: ${LEVEL}\n");
    scratch.file(".env", "LEVEL=info\n");
    let ended = scratch.haft_with(&[("HAFT_CONFIG", "named.yaml")], &["config", "show"]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
}

#[test]
fn secrets_are_hidden() {
    let scratch = Scratch::new();
    scratch.file(
        "haft.yaml",
        "api_key: sk-secret\nbase_url: https://me:sk-secret@host.example/v1?key=sk-secret\nmodel: shown-model\ntools:\n  channels:\n    telegram: {kind: telegram, token: sk-secret}\n  mcp:\n    a: {command: x, env: {API: sk-secret}}\n  plugins:\n    - {path: ./p, args: [--api-key, sk-secret]}\n",
    );
    for args in [
        &["config", "show", "--trust"][..],
        &["config", "show", "--json", "--trust"],
    ] {
        let ended = scratch.haft(args);
        assert_eq!(ended.code, Some(0));
        assert!(
            !ended.out.contains("sk-secret") && !ended.err.contains("sk-secret"),
            "{ended:?}"
        );
        assert!(
            ended.out.contains("shown-model") && ended.out.contains("host.example"),
            "{ended:?}"
        );
    }
    // The name of a variable is not a secret, but its value is.
    scratch.file("haft.yaml", "api_key: ${MY_KEY}\n");
    let variables = [("MY_KEY", "sk-secret")];
    let ended = scratch.haft_with(&variables, &["config", "show", "--config", "haft.yaml"]);
    assert!(
        ended.out.contains("${MY_KEY}") && !ended.out.contains("sk-secret"),
        "{ended:?}"
    );
}

#[test]
fn the_published_schema_is_current() {
    let scratch = Scratch::new();
    let printed = scratch.haft(&["config", "schema"]).out;
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/haft.schema.json");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(path, &printed).unwrap();
    }
    assert_eq!(
        std::fs::read_to_string(path).unwrap_or_default(),
        printed,
        "run this test with UPDATE=1 to regenerate the schema"
    );
    let schema: serde_json::Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(
        schema["properties"]["tools"]["properties"]["toolset"]["default"],
        "standard"
    );
}

/// The schema and the program have the same defaults.
#[test]
fn defaults_are_shown_as_declared() {
    let scratch = Scratch::new();
    let schema = scratch.haft(&["config", "schema"]).out;
    let schema: serde_json::Value = serde_json::from_str(&schema).unwrap();
    let shown = scratch.haft(&["config", "show", "--json"]).out;
    let shown: serde_json::Value = serde_json::from_str(&shown).unwrap();
    let mut checked = 0;
    for (key, row) in shown.as_object().unwrap() {
        let at = format!("/properties/{}", key.replace('.', "/properties/"));
        let declared = schema.pointer(&at).unwrap();
        if let Some(default) = declared.get("default") {
            assert_eq!(
                (&row["value"], &row["from"]),
                (default, &json!("default")),
                "{key}"
            );
            checked += 1;
        }
    }
    assert!(checked > 10, "{shown}");
}

#[test]
fn init_writes_once_and_every_line_of_it_is_valid() {
    let scratch = Scratch::new();
    let ended = scratch.haft(&["init"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(
        ended.out.contains("haft.yaml") && ended.err.contains("haft config show"),
        "{ended:?}"
    );
    let text = std::fs::read_to_string(scratch.work("haft.yaml")).unwrap();
    assert_eq!(scratch.shown("log", &[], &[]).1, "default");
    let ended = scratch.haft(&["init"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert_eq!(
        std::fs::read_to_string(scratch.work("haft.yaml")).unwrap(),
        text
    );
    let used: String = text
        .lines()
        .map(|line| format!("{}\n", line.strip_prefix("# ").unwrap_or(line)))
        .collect();
    let line = used
        .lines()
        .position(|line| line.starts_with("log:"))
        .unwrap()
        + 1;
    scratch.file("haft.yaml", used);
    assert_eq!(
        scratch.shown("log", &[], &[]),
        (json!("warn"), format!("haft.yaml:{line}"))
    );
}

#[test]
fn a_time_limit_of_zero_is_shown_as_none() {
    let ended = Scratch::new().haft(&["config", "show"]);
    let mut lines = ended.out.lines();
    let line = lines.find(|line| line.starts_with("tools.timeout"));
    let words: Vec<&str> = line.unwrap().split_whitespace().collect();
    assert_eq!(words, ["tools.timeout", "none", "default"]);
}
