//! Programs in a `tools` folder are tools.

use crate::bed::Bed;
use serde_json::json;
use std::time::{Duration, Instant};

const OWN: &str = "home/.config/haft/tools";

/// Prints each argument, and its input.
const SHOW: &str = "#!/bin/bash\nfor word in \"$@\"; do printf '<%s>' \"$word\"; done; cat\n";

fn own(bed: &Bed, name: &str, program: &str, page: &str) {
    bed.program(&format!("{OWN}/{name}"), program);
    if !page.is_empty() {
        bed.write(&format!("{OWN}/{name}.md"), page);
    }
}

#[test]
fn arguments_come_as_json_and_by_name() {
    let bed = Bed::new();
    let page = "---\ndescription: Deploys.\nparameters:\n  type: object\n  properties:\n    max-depth: {type: integer}\n    text: {type: string}\n    list: {type: array}\n  required: [text]\n---\nHow to deploy.\n";
    own(
        &bed,
        "deploy",
        "#!/bin/bash\nprintf '%s|%s|%s\\n' \"$HAFT_ARG_MAX_DEPTH\" \"$HAFT_ARG_TEXT\" \"$HAFT_ARG_LIST\"; cat\n",
        page,
    );
    let hostile = "a b\"'$(touch x);`touch x`\n-rf --output=/etc/x ü";
    let printed = bed.reply_text(
        "deploy",
        &json!({ "text": hostile, "max-depth": 3, "list": [1, "2"] }),
    );
    let (by_name, on_stdin) = printed.rsplit_once('\n').unwrap();
    assert_eq!(by_name, format!("3|{hostile}|[1,\"2\"]"));
    let input: serde_json::Value = serde_json::from_str(on_stdin).unwrap();
    assert_eq!(
        input,
        json!({ "text": hostile, "max-depth": 3, "list": [1, "2"] })
    );
    assert!(!bed.work("x").exists());
    let answer = bed.call("deploy", &json!({}));
    assert!(
        answer
            .text
            .starts_with("validation error: missing required parameter \"text\""),
        "{answer:?}"
    );
    let page = bed.done(&["tools", "--prompt"]).out;
    assert!(
        page.contains("deploy: Deploys.")
            && page.contains("## deploy\n")
            && page.contains("How to deploy."),
        "{page}"
    );
}

#[test]
fn an_argument_too_large_for_the_environment_comes_on_stdin() {
    let bed = Bed::new();
    let page = "---\ndescription: d\nparameters: {type: object, properties: {text: {type: string}, small: {type: string}}}\n---\n";
    own(
        &bed,
        "count",
        "#!/bin/bash\nprintf '%s %s ' \"$HAFT_ARG_SMALL\" \"${#HAFT_ARG_TEXT}\"; wc -c\n",
        page,
    );
    let mut session = bed.session(&[]);
    let printed = session.reply_text(
        "count",
        &json!({ "text": "x".repeat(1_000_000), "small": "s" }),
    );
    assert_eq!(
        printed.split_whitespace().collect::<Vec<_>>(),
        ["s", "0", "1000024"],
        "{printed}"
    );
}

#[test]
fn words_are_split_as_a_shell_does_and_no_shell_sees_them() {
    let bed = Bed::new();
    own(&bed, "show", SHOW, "Shows.");
    for (line, words) in [
        ("", ""),
        ("a  b", "<a><b>"),
        (r#"'a b' "c $(touch x)" d\ e"#, "<a b><c $(touch x)><d e>"),
        (
            "$(touch x); touch x && `touch x` | $HOME > x",
            "<$(touch><x);><touch><x><&&><`touch><x`><|><$HOME><>><x>",
        ),
        ("-rf --output=/etc/x -", "<-rf><--output=/etc/x><->"),
        ("''", "<>"),
        ("a\nb\tü", "<a><b><ü>"),
        ("*", "<*>"),
    ] {
        let answer = bed.call("show", &json!({ "args": line }));
        let printed = if words.is_empty() {
            "(no output)"
        } else {
            words
        };
        assert_eq!(
            (answer.is_error, answer.text.as_str()),
            (false, printed),
            "{line}"
        );
    }
    assert!(!bed.work("x").exists());
    for bad in ["'open", "nul\0"] {
        let answer = bed.call("show", &json!({ "args": bad }));
        assert!(
            answer.is_error && answer.text.contains("\"args\""),
            "{answer:?}"
        );
    }
    assert_eq!(bed.reply_text("show", &json!({})), "(no output)");
    let unknown = bed.call("show", &json!({ "arg": "x", "y": 1 }));
    assert!(
        unknown.text.starts_with("validation error: "),
        "{unknown:?}"
    );
}

#[test]
fn the_exit_status_is_reported() {
    let bed = Bed::new();
    own(
        &bed,
        "end",
        "#!/bin/bash\necho out; echo err >&2; case $1 in signal) kill -SEGV $$;; *) exit $1;; esac\n",
        "Ends.",
    );
    for (how, last) in [("3", "exit code: 3"), ("signal", "exit code: 139")] {
        let answer = bed.call("end", &json!({ "args": how }));
        assert!(answer.is_error, "{answer:?}");
        assert_eq!(answer.text, format!("out\nerr\n{last}"));
    }
    assert_eq!(bed.reply_text("end", &json!({ "args": "0" })), "out\nerr");
}

#[test]
fn help_is_asked_for_only_without_a_page_and_not_for_long() {
    let bed = Bed::new();
    let helps = "#!/bin/bash\necho \"$0 $*\" >> asked\nif [ \"$1\" = --help ]; then printf '\\n\\033[1m  Frobs\\342\\200\\256 things.\\n'; else echo ran; fi\n";
    own(&bed, "helps", helps, "");
    own(&bed, "paged", helps, "Has a page.");
    own(&bed, "blank", helps, " \n");
    own(
        &bed,
        "hangs",
        "#!/bin/bash\ntrap '' TERM\nif [ \"$1\" = --help ]; then sleep 1000; else echo ran; fi\n",
        "",
    );
    own(
        &bed,
        "floods",
        "#!/bin/bash\nif [ \"$1\" = --help ]; then yes; else echo ran; fi\n",
        "",
    );
    own(&bed, "fails", "#!/bin/bash\nexit 1\n", "");
    let begun = Instant::now();
    let (tools, beside) = bed.tools();
    assert!(
        begun.elapsed() < Duration::from_secs(6),
        "{:?}",
        begun.elapsed()
    );
    assert_eq!(beside, "");
    let described = |name: &str| {
        let tool = tools.iter().find(|tool| tool["name"] == name);
        tool.unwrap()["description"].as_str().unwrap().to_owned()
    };
    assert_eq!(described("helps"), "[1m  Frobs things.");
    assert_eq!(described("paged"), "Has a page.");
    assert_eq!(described("hangs"), "Command-line tool: hangs");
    assert_eq!(described("fails"), "Command-line tool: fails");
    assert_eq!(described("blank"), "Command-line tool: blank");
    assert_eq!(described("floods"), "y");
    let asked = std::fs::read_to_string(bed.work("asked")).unwrap();
    assert_eq!(asked.lines().count(), 1, "{asked}");
    assert!(asked.trim_end().ends_with("tools/helps --help"), "{asked}");
    assert_eq!(bed.reply_text("hangs", &json!({})), "ran");
    bed.nobody_left();
}

#[test]
fn what_is_a_tool_and_what_is_not() {
    let bed = Bed::new();
    own(&bed, "a b;c.sh", "#!/bin/bash\necho odd\n", "");
    bed.write(&format!("{OWN}/a b;c.md"), "By its stem.");
    own(&bed, "ünï.py", "#!/bin/bash\necho unicode\n", "Unicode.");
    own(
        &bed,
        "both.sh",
        "#!/bin/bash\necho both\n",
        "The whole name.",
    );
    bed.write(&format!("{OWN}/both.md"), "The stem.");
    own(
        &bed,
        "broken",
        "#!/bin/bash\n",
        "---\ndescription: d\nparameters: {unclosed\n---\n",
    );
    own(
        &bed,
        "wrong",
        "#!/bin/bash\n",
        "---\ndescription: d\nparameters: 5\n---\n",
    );
    own(
        &bed,
        "open",
        "#!/bin/bash\n",
        "---\ndescription: Deploys.\n\nRun it.\n",
    );
    own(
        &bed,
        "bomb",
        "#!/bin/bash\n",
        "---\ndescription: d\nparameters: {$ref: 'http://127.0.0.1:9/'}\n---\n",
    );
    own(
        &bed,
        "plain",
        "#!/bin/bash\necho plain\n",
        "# Plain\n\nNo front matter.\n",
    );
    own(&bed, ".hidden", "#!/bin/bash\n", "");
    bed.write(&format!("{OWN}/no_bit"), "#!/bin/bash\n");
    std::fs::create_dir(bed.path(&format!("{OWN}/folder"))).unwrap();
    std::os::unix::fs::symlink("/nowhere", bed.path(&format!("{OWN}/dangling"))).unwrap();
    let (tools, beside) = bed.tools();
    let described = |name: &str| {
        let tool = tools.iter().find(|tool| tool["name"] == name);
        tool.map(|tool| tool["description"].as_str().unwrap().to_owned())
    };
    assert_eq!(described("a_b_c").as_deref(), Some("By its stem."));
    assert_eq!(described("_n_").as_deref(), Some("Unicode."));
    assert_eq!(described("both").as_deref(), Some("The whole name."));
    assert_eq!(described("plain").as_deref(), Some("Plain"));
    for none in [
        "broken", "wrong", "open", "bomb", ".hidden", "hidden", "no_bit", "folder", "dangling",
    ] {
        assert_eq!(described(none), None, "{none}");
    }
    for named in [
        "broken.md: the front matter is not valid YAML",
        "wrong.md: parameters must be",
        "open.md: the front matter has no end",
        "the tool bomb is left out",
    ] {
        assert!(beside.contains(named), "{named}\n{beside}");
    }
    assert_eq!(bed.reply_text("a_b_c", &json!({})), "odd");
}

#[test]
fn a_child_in_the_background_does_not_delay_the_reply_nor_outlive_it() {
    let bed = Bed::new();
    own(
        &bed,
        "leaves",
        "#!/bin/bash\nsleep 1000 &\nsetsid sleep 1001 &\necho done\n",
        "Leaves.",
    );
    let begun = Instant::now();
    let printed = bed.reply_text("leaves", &json!({}));
    assert!(printed.starts_with("done"), "{printed}");
    assert!(
        begun.elapsed() < Duration::from_secs(5),
        "{:?}",
        begun.elapsed()
    );
    bed.nobody_left();
}

#[test]
fn long_output_is_cut_and_kept() {
    let bed = Bed::new();
    own(&bed, "long", "#!/bin/bash\nseq 1 200000\n", "Long.");
    let mut session = bed.session(&[]);
    let printed = session.reply_text("long", &json!({}));
    assert!(
        printed.len() < 60_000 && printed.contains("\n200000\n"),
        "{}",
        printed.len()
    );
    let path = printed
        .split_whitespace()
        .find(|word| word.contains("/outputs/"))
        .unwrap();
    let kept = std::fs::read_to_string(path.trim_matches([']', '['])).unwrap();
    assert!(kept.starts_with("1\n2\n") && kept.ends_with("200000\n"));
}

#[test]
fn a_plugin_that_hangs_is_ended_with_its_tree() {
    let bed = Bed::new();
    bed.configure(&json!({ "tools": { "timeout": 1 } }));
    own(
        &bed,
        "hangs",
        "#!/bin/bash\ntrap '' TERM\necho begun\nsetsid sleep 1000 &\nsleep 1000\n",
        "Hangs.",
    );
    let begun = Instant::now();
    let answer = bed.call("hangs", &json!({}));
    assert!(
        answer.is_error && answer.text.starts_with("begun\n"),
        "{answer:?}"
    );
    assert!(
        answer.text.contains("timed out after 1 second"),
        "{answer:?}"
    );
    assert!(begun.elapsed() < Duration::from_secs(5));
    bed.nobody_left();
}

#[test]
fn the_number_of_tools_in_a_folder_is_limited_with_a_warning() {
    let bed = Bed::new();
    for n in 0..1000 {
        bed.program(&format!("{OWN}/t{n:04}"), "#!/bin/bash\n");
        bed.write(&format!("{OWN}/t{n:04}.md"), "d");
    }
    let (names, beside) = bed.names();
    let own: Vec<_> = names.iter().filter(|name| name.starts_with('t')).collect();
    assert_eq!(own.len(), 500, "{}", own.len());
    assert_eq!(own[499], "t0499");
    assert!(beside.contains("more than 500 tools"), "{beside}");
}

#[test]
fn output_is_cut_as_the_toolset_cuts_and_the_note_says_how_much_there_was() {
    let bed = Bed::new();
    own(&bed, "lines", "#!/bin/bash\nseq 1 20000\n", "Lines.");
    own(
        &bed,
        "bytes",
        "#!/bin/bash\nprintf 'a%.0s' {1..20000}; printf 'b%.0s' {1..20000}; echo\n",
        "Bytes.",
    );
    let mut ah = bed.session(&["--toolset", "ah"]);
    // 108,894 bytes: 15,000 of each end.
    let printed = ah.reply_text("lines", &json!({}));
    assert!(printed.starts_with("1\n2\n3\n"), "{printed:.40}");
    assert!(printed.contains("\n[output truncated: 78894 bytes removed from middle]\n"));
    assert!(!printed.contains("lines omitted"));
    let (rest, note) = printed.trim_end().rsplit_once('\n').unwrap();
    assert!(rest.ends_with("\n20000"), "{note}");
    let path = note.strip_prefix("[full output: ").unwrap();
    let kept = std::fs::read_to_string(path.trim_end_matches(']')).unwrap();
    assert_eq!((kept.len(), kept.lines().count()), (108_894, 20_000));
    let printed = ah.reply_text("bytes", &json!({}));
    assert!(printed.contains("[output truncated: 10001 bytes removed from middle]"));
    let mut standard = bed.session(&[]);
    let printed = standard.reply_text("bytes", &json!({}));
    assert!(!printed.contains('['), "nothing is cut: {}", printed.len());
    assert_eq!(printed.trim_end().len(), 40_000);
    let printed = standard.reply_text("lines", &json!({}));
    assert!(
        printed.contains("\n[Showing the last 2000 of 20000 lines, 11.7KB of 106.3KB]\n[Output truncated at 2000 lines. Full output saved to: "),
        "{:?}",
        printed.lines().rev().take(3).collect::<Vec<_>>()
    );
    assert!(printed.starts_with("18001\n"), "{printed:.40}");
}

#[test]
fn a_parameter_that_its_schema_does_not_list_is_refused() {
    let bed = Bed::new();
    let page = |parameters: &str| format!("---\ndescription: d\nparameters: {parameters}\n---\n");
    let lists = "{type: object, properties: {text: {type: string}}}";
    let open = "{type: object, properties: {text: {type: string}}, additionalProperties: true}";
    own(&bed, "lists", SHOW, &page(lists));
    own(&bed, "open", SHOW, &page(open));
    own(&bed, "none", SHOW, &page("{type: object}"));
    let given = json!({ "text": "x", "txt": "y" });
    let refused = bed.call("lists", &given);
    assert!(
        refused.is_error
            && refused
                .text
                .starts_with("validation error: unknown parameter \"txt\""),
        "{refused:?}"
    );
    for tool in ["open", "none"] {
        let printed: serde_json::Value =
            serde_json::from_str(&bed.reply_text(tool, &given)).unwrap();
        assert_eq!(printed, given, "{tool}");
    }
}

#[test]
fn in_ah_the_end_of_its_time_is_worded_as_for_a_command() {
    let bed = Bed::new();
    bed.configure(&json!({ "tools": { "timeout": 1 } }));
    own(
        &bed,
        "hangs",
        "#!/bin/bash\necho begun\nsleep 1000\n",
        "Hangs.",
    );
    own(&bed, "fails", "#!/bin/bash\necho no\nexit 3\n", "Fails.");
    let ah = |tool: &str| bed.call_with(&["--toolset", "ah"], tool, &json!({})).text;
    assert_eq!(
        ah("hangs"),
        "begun\n[`tools.timeout` limits every call to 1 second: raise it to allow more]\nerror: command timed out after 1s"
    );
    assert_eq!(ah("fails"), "no\nexit code: 3");
}

#[test]
fn the_full_output_of_a_program_is_kept_byte_for_byte() {
    let bed = Bed::new();
    let mut output = b"caf\xe9 cr\xe8me\n".repeat(9000);
    output.push(b'.');
    bed.write("out", &output);
    let program = format!("#!/bin/sh\ncat '{}'\n", bed.path("out").display());
    own(&bed, "menu", &program, "Prints.");
    let mut session = bed.session(&[]);
    let number = session.ask("menu", &json!({}));
    let reply = session.reply(number)["result"].clone();
    let text = reply["content"][0]["text"].as_str().unwrap();
    let path = text
        .split_whitespace()
        .find(|word| word.contains("outputs/"));
    let path = path.unwrap_or_else(|| panic!("no path: {reply}"));
    let path = path.trim_matches(['[', ']', '.', ',', ';']);
    assert!(std::fs::read(path).unwrap() == output, "{path}");
}

#[test]
fn a_program_can_print_an_image_and_other_json_stays_text() {
    let bed = Bed::new();
    let png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    let block = json!({ "type": "image", "MIMEType": "image/png", "Data": png });
    let text = json!({ "type": "text", "text": "A chart." });
    // Longer than the text a model gets.
    let long = json!({ "type": "text", "text": " ".repeat(200_000) });
    for (name, output) in [
        ("chart", json!([text, block])),
        (
            "answer",
            json!({ "content": [text, block], "error": false }),
        ),
        ("long", json!([long, block])),
        (
            "damaged",
            json!([{ "type": "image", "mimeType": "image/png", "data": "QQ==" }]),
        ),
        ("listing", json!([{ "type": "image", "name": "a.png" }])),
    ] {
        bed.write(&format!("out/{name}"), output.to_string());
        let program = format!(
            "#!/bin/sh\ncat '{}'\n",
            bed.path(&format!("out/{name}")).display()
        );
        own(&bed, name, &program, "Prints.");
    }
    own(
        &bed,
        "fails",
        &format!(
            "#!/bin/sh\ncat '{}'\nexit 3\n",
            bed.path("out/chart").display()
        ),
        "Prints.",
    );
    // An image that is too large, and one with a warning.
    let data = "QUFB".repeat(1_000);
    let warned = json!([{ "type": "image", "mimeType": "image/png", "data": data }]);
    bed.write("out/warned", warned.to_string());
    own(
        &bed,
        "warned",
        &format!(
            "#!/bin/sh\necho 'font missing' >&2\ncat '{}'\n",
            bed.path("out/warned").display()
        ),
        "Prints.",
    );
    let data = "QUFB".repeat(700_000);
    let large = json!([{ "type": "image", "mimeType": "image/png", "data": data }]);
    bed.write("out/large", large.to_string());
    own(
        &bed,
        "large",
        &format!("#!/bin/sh\ncat '{}'\n", bed.path("out/large").display()),
        "Prints.",
    );
    let mut session = bed.session(&[]);
    let mut call = |name: &str| {
        let number = session.ask(name, &json!({}));
        session.reply(number)["result"].clone()
    };
    for name in ["warned", "large"] {
        let reply = call(name);
        let printed = reply["content"][0]["text"].as_str().unwrap();
        assert!(
            printed.contains("[a picture was printed but cannot be shown: "),
            "{name}: {printed}"
        );
        assert!(printed.contains(" of base64]"), "{name}: {printed}");
        assert!(printed.len() < 2_000, "{name}: {} bytes", printed.len());
    }
    let picture = json!({ "type": "image", "data": png, "mimeType": "image/png" });
    for name in ["chart", "answer"] {
        let reply = call(name);
        assert_eq!(reply["content"], json!([text, picture]), "{name}: {reply}");
        assert_ne!(reply["isError"], true, "{name}: {reply}");
    }
    let reply = call("long");
    assert_eq!(reply["content"][1], picture, "{reply}");
    assert!(reply["content"][0]["text"].as_str().unwrap().len() < 110_000);
    let reply = call("fails");
    assert_eq!(
        reply["content"],
        json!([text, picture, { "type": "text", "text": "exit code: 3" }]),
        "{reply}"
    );
    assert_eq!(reply["isError"], true, "{reply}");
    let reply = call("damaged");
    let printed = reply["content"][0]["text"].as_str().unwrap();
    assert!(printed.starts_with("[the image was left out: "), "{reply}");
    let reply = call("listing");
    let listing = json!([{ "type": "image", "name": "a.png" }]).to_string();
    assert_eq!(
        reply["content"],
        json!([{ "type": "text", "text": listing }])
    );
}

/// As with settings kept in a repository, linked in any way.
#[test]
fn the_users_tools_may_be_links() {
    use std::os::unix::fs::symlink;
    let program = "#!/bin/sh\necho ran; cat \"$(dirname \"$0\")/beside\"\n";
    let lua = "return { name = 'module', description = 'M.', input_schema = { type = 'object', properties = {} }, execute = function(input) return 'from lua' end }\n";
    let links: [(&str, &str); 3] = [
        // The folder, the files in it, and the folder above it.
        (OWN, "home/dotfiles/tools"),
        ("", ""),
        ("home/.config/haft", "home/dotfiles"),
    ];
    for (link, target) in links {
        let bed = Bed::new();
        bed.program("home/dotfiles/tools/show", program);
        bed.write("home/dotfiles/tools/show.md", "Shows it.");
        bed.write("home/dotfiles/tools/beside", "what lies beside it");
        bed.write("home/dotfiles/tools/module.lua", lua);
        let config = bed.path("home/.config/haft");
        if link == "home/.config/haft" {
            std::fs::create_dir_all(bed.path("home/.config")).unwrap();
            let _ = std::fs::remove_dir_all(&config);
        } else {
            std::fs::create_dir_all(&config).unwrap();
        }
        if link.is_empty() {
            std::fs::create_dir_all(bed.path(OWN)).unwrap();
            for name in ["show", "show.md", "beside", "module.lua"] {
                let target = bed.path("home/dotfiles/tools").join(name);
                symlink(target, bed.path(OWN).join(name)).unwrap();
            }
        } else {
            symlink(bed.path(target), bed.path(link)).unwrap();
        }
        for mode in ["workspace", "strict"] {
            let flags = ["--sandbox", mode];
            let answer = bed.call_with(&flags, "show", &json!({}));
            assert!(answer.text.starts_with("ran\n"), "{link} {mode} {answer:?}");
            // In strict mode a link leads to the tool's own files only.
            let is_closed = link.is_empty() && mode == "strict";
            let has_read = answer.text.contains("what lies beside it");
            assert_eq!(has_read, !is_closed, "{link} {mode} {answer:?}");
            let answer = bed.call_with(&flags, "module", &json!({}));
            assert_eq!(answer.text, "from lua", "{link} {mode} {answer:?}");
        }
    }
    // A project's must not lead out of it.
    let bed = Bed::new();
    bed.program("home/dotfiles/tools/show", program);
    symlink(bed.path("home/dotfiles/tools"), bed.work("tools")).unwrap();
    let ran = bed.haft(&["call", "--trust", "show"]);
    assert!(ran.err.contains("leads out of"), "{ran:?}");
    assert!(ran.err.contains("unknown tool \"show\""), "{ran:?}");
}

#[test]
fn a_page_or_a_module_that_the_rules_deny_reaches_no_prompt() {
    let bed = Bed::new();
    let lua = |name: &str| {
        format!(
            "return {{ name = '{name}', description = 'secret of {name}', input_schema = {{ type = 'object', properties = {{}} }}, execute = function(input) return 'x' end }}\n"
        )
    };
    own(&bed, "open", "#!/bin/sh\necho open\n", "Nothing secret.");
    own(&bed, "denied", "#!/bin/sh\necho x\n", "secret of denied");
    bed.write("home/elsewhere/page", "secret of linked");
    own(&bed, "linked", "#!/bin/sh\necho x\n", "");
    let page = bed.path(&format!("{OWN}/linked.md"));
    std::os::unix::fs::symlink(bed.path("home/elsewhere/page"), page).unwrap();
    bed.write(&format!("{OWN}/module.lua"), lua("module"));
    bed.program("work/tools/ours", "#!/bin/sh\necho x\n");
    bed.write("work/tools/ours.md", "secret of ours");
    bed.write("work/tools/ourlua.lua", lua("ourlua"));
    let at = |name: &str| bed.path(name).display().to_string();
    bed.configure(&json!({ "policy": [
        { "deny": "*", "path": at(&format!("{OWN}/denied.md")) },
        { "deny": "*", "path": at("home/elsewhere") },
        { "deny": "*", "path": at(&format!("{OWN}/module.lua")) },
        { "deny": "*", "path": "tools/*.md" },
        { "ask": "*", "path": "tools/*.lua" },
    ] }));
    let ran = bed.haft(&["tools", "--prompt", "--trust"]);
    assert!(ran.out.contains("open: Nothing secret."), "{ran:?}");
    assert!(!ran.out.contains("secret of"), "{ran:?}");
    for (name, does) in [
        ("denied", "denies"),
        ("linked", "denies"),
        ("module", "denies"),
        ("ours", "denies"),
        ("ourlua", "asks about"),
    ] {
        let printed = format!("the tool {name} is left out: the policy {does} ");
        assert!(ran.err.contains(&printed), "{printed}\n{ran:?}");
    }
    assert_eq!(bed.reply_text("open", &json!({})), "open");
    let ran = bed.haft(&["call", "--trust", "ours"]);
    assert!(ran.err.contains("unknown tool \"ours\""), "{ran:?}");
}
