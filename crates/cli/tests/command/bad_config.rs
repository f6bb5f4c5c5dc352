//! Invalid files: always exit 2, with the position.

use crate::scratch::Scratch;

#[test]
fn a_mistake_is_located_and_explained() {
    let scratch = Scratch::new();
    for (yaml, error) in [
        (
            "tools:\n  presset: all\n",
            "haft.yaml:2:3: unknown key \"presset\" in tools; did you mean \"preset\"?",
        ),
        (
            "preset: all\n",
            "haft.yaml:1:1: unknown key \"preset\"; it belongs under tools, as tools.preset",
        ),
        (
            "tools:\n  sandbox: off\n",
            "haft.yaml:2:3: unknown key \"sandbox\" in tools; it belongs at the top level, beside tools",
        ),
        (
            "tools.preset: all\n",
            "haft.yaml:1:1: unknown key \"tools.preset\"",
        ),
        (
            "tools:\n  protect: [src, \"*.lock\"]\n",
            "haft.yaml:2:12: tools.protect: must list files and folders, not patterns: \"*.lock\"",
        ),
        (
            "policy: [{deny: bash, command: \"curl | sh\"}]\n",
            "haft.yaml:1:32: policy[0].command must be the first words of a simple command, not a pattern or a shell line: \"curl | sh\"",
        ),
        (
            "tools: [1]\n",
            "haft.yaml:1:8: tools must be a map, got a list",
        ),
        (
            "sandbox: stric\n",
            "haft.yaml:1:10: sandbox must be workspace, strict, read-only or off, got \"stric\"; did you mean \"strict\"?",
        ),
        (
            "\nquiet: yes\n",
            "haft.yaml:2:8: quiet must be true or false, got text",
        ),
        (
            "tools: {timeout: -1}\n",
            "haft.yaml:1:18: tools.timeout must be a number from 0 to 86400, got -1",
        ),
        (
            "tools: {timeout: soon}\n",
            "haft.yaml:1:18: tools.timeout must be a number",
        ),
        (
            "tools:\n  roots: [a, [b]]\n",
            "haft.yaml:2:14: tools.roots[1] must be text, got a list",
        ),
        (
            "max_tool_concurrency: 0\n",
            "haft.yaml:1:23: max_tool_concurrency must be a whole number from 1 to 256, got 0",
        ),
        ("max_tool_concurrency: 2.5\n", "got 2.5"),
        (
            "max_turns: many\n",
            "haft.yaml:1:12: max_turns must be a whole number",
        ),
        (
            "execution: { kind: sandbox, tiemout: 5 }\n",
            "haft.yaml:1:29: unknown key \"tiemout\" in execution; did you mean \"timeout\"?",
        ),
        (
            "execution: { kind: sandbox, timeout: 0 }\n",
            "haft.yaml:1:38: execution.timeout must be a whole number from 1 to 100, got 0",
        ),
        (
            "execution: { kind: sandbox, memory_mb: 9999 }\n",
            "haft.yaml:1:40: execution.memory_mb must be a whole number from 64 to 1024, got 9999",
        ),
        (
            "execution: { kind: heimdall, index: \"https://index.example\" }\n",
            "haft.yaml:1:12: execution: index is allowed only in your own haft.yaml",
        ),
        (
            "a: [1\n",
            "haft.yaml:1:4: unclosed bracket '['\n 1 | a: [1\n   |    ^\n",
        ),
        ("log: *x\n", "haft.yaml:1:6: "),
        (
            "quiet: true\nlog: info\nquiet: false\n",
            "haft.yaml:3:1: duplicate",
        ),
        (
            "- a\n",
            "haft.yaml:1:1: the file must be a map of settings, got a list",
        ),
        ("42\n", "got a number"),
        ("quiet: true\n---\nlog: info\n", "haft.yaml:"),
        (
            "policy: {deny: write}\n",
            "haft.yaml:1:9: policy must be a list, got a map",
        ),
        (
            "policy: [deny]\n",
            "haft.yaml:1:10: policy[0] must be a map, got text",
        ),
        (
            "policy:\n  - {path: a}\n",
            "haft.yaml:2:5: a rule must have allow, review, ask or deny",
        ),
        (
            "policy:\n  - {deney: write}\n",
            "haft.yaml:2:6: unknown key \"deney\" in policy[0]; did you mean \"deny\"?",
        ),
        (
            "policy:\n  - deny: write\n    paht: a\n",
            "haft.yaml:3:5: unknown key \"paht\" in policy[0]; did you mean \"path\"?",
        ),
        (
            "policy: [{deny: write, allow: read}]\n",
            "haft.yaml:1:10: a rule can have only one verdict, but this one has allow and deny",
        ),
        (
            "policy: [{deny: [write]}]\n",
            "haft.yaml:1:17: policy[0].deny must be text, got a list",
        ),
        (
            "policy: [{deny: write, effect: writes}]\n",
            "haft.yaml:1:32: policy[0].effect must be read, write, execute, network, pure, got \"writes\"",
        ),
        (
            "policy: [{deny: bash, command: [sleep, 5]}]\n",
            "haft.yaml:1:40: policy[0].command[1] must be text, got a number",
        ),
        (
            "policy: [{deny: bash, command: \" \"}]\n",
            "haft.yaml:1:10: command must be one word or more",
        ),
        (
            "policy: [{deny: read, path: \"${HOME}/x\"}]\n",
            "haft.yaml:1:29: policy[0].path contains a variable, which rules do not expand",
        ),
        ("policy: [{deny: read, path: \"[\"}]\n", "haft.yaml:1:10: "),
        (
            "quiet: true\npolicy:\n  - {deny: bash, command: rm, match: [rmdir x]}\n",
            "haft.yaml:3:5: the match example \"rmdir x\" does not match",
        ),
        (
            "policy: [{deny: bash, match: [rm]}]\n",
            "haft.yaml:1:10: examples need a rule with command, path or host",
        ),
        (
            "approve: yes\n",
            "haft.yaml:1:10: approve must be ask, auto or never",
        ),
        (
            "tools: {interrupt_on: {write: maybe}}\n",
            "haft.yaml:1:31: tools.interrupt_on.write must be true or false, got text",
        ),
        (
            "tools: {work_dir: ..}\n",
            "haft.yaml:1:19: tools.work_dir: .. is outside this folder",
        ),
        (
            "tools: {work_dir: none}\n",
            "haft.yaml:1:19: tools.work_dir: folder not found: none",
        ),
        (
            "tools: {work_dir: \"${NOT_SET}\"}\n",
            "haft.yaml:1:19: tools.work_dir needs variable NOT_SET, which is not set",
        ),
        (
            "tools: {preset: none-such}\n",
            "has no preset \"none-such\"",
        ),
    ] {
        scratch.file("haft.yaml", yaml);
        // With trust: without it no variable is looked up.
        let ended = scratch.haft(&["tools", "--trust"]);
        assert_eq!(
            (ended.code, ended.out.as_str()),
            (Some(2), ""),
            "{yaml:?} {ended:?}"
        );
        assert!(ended.err.contains(error), "{yaml:?} {ended:?}");
    }
}

#[test]
fn empty_settings_are_valid() {
    let scratch = Scratch::new();
    for yaml in [
        "",
        "\n",
        "# words\n",
        "tools:\n",
        "tools:\n  preset:\nlog:\n",
        "\u{feff}log: warn\n",
        "policy: []\n",
        "---\nlog: warn\n",
    ] {
        scratch.file("haft.yaml", yaml);
        let ended = scratch.haft(&["tools"]);
        assert_eq!(
            (ended.code, ended.err.as_str()),
            (Some(0), ""),
            "{yaml:?} {ended:?}"
        );
    }
}

#[test]
fn special_files_do_not_hang() {
    let scratch = Scratch::new();
    let path = scratch.work("haft.yaml");
    let fails = |words: &str| {
        let ended = scratch.haft(&["tools"]);
        assert_eq!(ended.code, Some(2), "{ended:?}");
        assert!(ended.err.contains(words), "{ended:?}");
    };
    std::fs::create_dir(&path).unwrap();
    fails("haft.yaml: is a folder");
    std::fs::remove_dir(&path).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &path,
        rustix::fs::FileType::Fifo,
        0o600.into(),
        0,
    )
    .unwrap();
    fails("haft.yaml: is not a regular file");
    std::fs::remove_file(&path).unwrap();
    std::os::unix::fs::symlink("/dev/zero", &path).unwrap();
    fails("haft.yaml: is a link that leads out of this folder");
    std::fs::remove_file(&path).unwrap();
    scratch.file("haft.yaml", "#".repeat((1 << 20) + 1));
    fails("larger than 1MB");
    scratch.file("haft.yaml", b"log: info\n# \xff\n");
    fails("line 2 is not UTF-8");
    scratch.file("haft.yaml", "[".repeat(500_000));
    fails("haft.yaml:");
}

#[test]
fn an_error_does_not_show_a_secret() {
    let scratch = Scratch::new();
    for yaml in [
        "api_key: [sk-secret]\n",
        "api_key: sk-secret: x\n",
        "api_key: \"sk-secret\n",
        "api_key: 'sk-secret' junk\n",
        "base_url: https://me:sk-secret@host: x\n",
        "tools:\n  channels:\n    a: {token: sk-secret: x}\n",
        "tools:\n  channels: sk-secret\n",
    ] {
        scratch.file("haft.yaml", yaml);
        let ended = scratch.haft(&["config", "show"]);
        assert_eq!(ended.code, Some(2), "{yaml:?} {ended:?}");
        assert!(!ended.err.contains("sk-secret"), "{yaml:?} {ended:?}");
    }
}

#[test]
fn commands_without_configuration_do_not_mind() {
    let scratch = Scratch::new();
    scratch.file("haft.yaml", "nonsense: [");
    for args in [
        &["--version"][..],
        &["--help"],
        &["demo"],
        &["completions", "bash"],
        &["config", "schema"],
    ] {
        assert_eq!(scratch.haft(args).code, Some(0), "{args:?}");
    }
}
