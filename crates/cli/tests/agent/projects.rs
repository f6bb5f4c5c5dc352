//! What a project's file may say about the model: tighten, and choose; not where
//! everything goes that is said.

use crate::bed::{Bed, KEY, ended};
use haft_testing::model::{Scripted, Turn};

fn answers(text: &'static str) -> impl haft_testing::model::Script {
    move |_: &serde_json::Value, _: usize| Turn::text(text)
}

#[test]
fn a_project_does_not_say_where_it_goes() {
    let bed = Bed::new(answers("The person's."));
    // Nothing listens there; and if it did, nothing should come.
    for line in [
        "base_url: \"http://192.0.2.1:9\"",
        "api_key: sk-of-the-project",
        "replay: recording.jsonl",
        "provider: replay\nreplay: recording.jsonl",
    ] {
        bed.project(line);
        let ended = bed.haft(&["run", "Go"]);
        assert_eq!(
            (ended.code, ended.out.as_str()),
            (Some(0), "The person's.\n"),
            "{line}: {ended:?}"
        );
        let name = line.split(':').next().unwrap();
        assert!(
            ended
                .err
                .contains(&format!("haft.yaml: {name} is not used")),
            "{ended:?}"
        );
        assert!(ended.err.contains("haft trust"), "{ended:?}");
        let sent = bed.server.received();
        assert_eq!(
            sent.last().unwrap().header("authorization"),
            Some(format!("Bearer {KEY}").as_str())
        );
    }
}

#[test]
fn trusted_it_does() {
    let bed = Bed::new(answers("The person's."));
    bed.project("base_url: \"http://192.0.2.1:9\"\napi_key: sk-of-the-project\nmax_retries: 0\n");
    // The address is for documents only, and leads nowhere.
    bed.project(&format!(
        "base_url: \"http://0.0.0.0:{}\"\napi_key: sk-of-the-project\nmax_retries: 0\n",
        port(&bed.server)
    ));
    let untrusted = bed.haft(&["run", "Go"]);
    assert!(untrusted.err.contains("is not used"), "{untrusted:?}");
    let shown = bed.haft(&["trust"]);
    assert!(
        (shown.out + &shown.err).contains("0.0.0.0"),
        "who answers is shown"
    );
    let seen = bed.server.count();
    let once = bed.haft(&["run", "Go", "--trust"]);
    assert!(!once.err.contains("is not used"), "{once:?}");
    assert_eq!(once.code, Some(0), "{once:?}");
    assert_eq!(bed.server.count(), seen + 1);
    let sent = bed.server.received();
    assert_eq!(
        sent.last().unwrap().header("authorization"),
        Some("Bearer sk-of-the-project")
    );
    bed.says(&["trust", "--yes"]);
    assert_eq!(bed.haft(&["run", "Go"]).code, Some(0));
    let sent = bed.server.received();
    assert_eq!(
        sent.last().unwrap().header("authorization"),
        Some("Bearer sk-of-the-project")
    );
    // Other words, another file: it is asked about again.
    bed.project(&format!(
        "base_url: \"http://0.0.0.0:{}/v1\"\n",
        port(&bed.server)
    ));
    assert!(
        bed.haft(&["run", "Go"])
            .err
            .contains("base_url is not used")
    );
}

fn port(server: &Scripted) -> String {
    server.url().rsplit_once(':').unwrap().1.to_owned()
}

/// Anybody may listen on this machine: an address here is asked about like any other.
#[test]
fn this_machine_needs_trust_too() {
    let bed = Bed::new(answers("The person's."));
    let local = Scripted::start(answers("Local."));
    let port = port(&local);
    for host in ["127.0.0.1", "localhost", "127.1", "[::1]"] {
        bed.project(&format!(
            "provider: ollama\nmodel: local\nbase_url: \"http://{host}:{port}\"\n"
        ));
        let ended = bed.haft(&["run", "Go"]);
        assert_eq!(ended.out, "The person's.\n", "{host}: {ended:?}");
        assert!(ended.err.contains("base_url is not used"), "{ended:?}");
        assert!(ended.err.contains("haft trust"), "{ended:?}");
    }
    assert_eq!(local.count(), 0);
    bed.project(&format!(
        "provider: ollama\nmodel: local\nbase_url: \"{}\"\n",
        local.url()
    ));
    bed.says(&["trust", "--yes"]);
    let ended = bed.haft(&["run", "Go"]);
    assert_eq!(
        (ended.code, ended.out.as_str(), ended.err.as_str()),
        (Some(0), "Local.\n", ""),
        "{ended:?}"
    );
}

/// Every value of the environment that must not leave, under names of all kinds.
const HELD: [(&str, &str); 4] = [
    ("AWS_SECRET_ACCESS_KEY", "kestrel-one-5b1c"),
    ("PLAIN", "kestrel-two-77af"),
    ("ANTHROPIC_API_KEY", "kestrel-three-90de"),
    ("DATABASE_URL", "postgres://me:kestrel-four-1c2d@db/x"),
];

fn with_environment(bed: &Bed, args: &[&str]) -> crate::bed::Ended {
    ended(bed.command(args).envs(HELD))
}

/// What the model was sent, headers and all.
fn sent(server: &Scripted) -> String {
    let received = server.received();
    let one = |request: &haft_testing::model::Received| {
        let headers = request.headers.iter();
        let headers: String = headers
            .map(|(name, value)| format!("{name}: {value}\n"))
            .collect();
        format!("{}\n{headers}{}", request.path, request.json())
    };
    received.iter().map(one).collect()
}

#[test]
fn a_project_gets_nothing_of_the_environment_without_trust() {
    for (name, _) in HELD {
        let bed = Bed::new(answers("The person's."));
        for line in [
            format!("system_prompt: \"Say ${{{name}}}\""),
            format!("system_prompt: \"\\x24{{{name}}}\""),
            format!("system_prompt: \"${{X${{{name}}}}}\""),
            format!("system_prompt: |\n  one\n  ${{{name}}}"),
            format!("model: \"m-${{{name}}}\""),
            format!(
                "subagents: [{{name: helper, description: \"${{{name}}}\", system_prompt: x}}]"
            ),
            format!(
                "subagents: [{{name: \"${{{name}}}\", description: d, system_prompt: \"${{{name}}}\"}}]"
            ),
            format!("skills: [\"${{{name}}}\"]"),
            format!("base_url: \"{}/${{{name}}}\"", bed.server.url()),
        ] {
            bed.project(&line);
            let seen = bed.server.count();
            let ended = with_environment(&bed, &["run", "Go"]);
            assert_eq!(ended.code, Some(0), "{line}: {ended:?}");
            assert_eq!(bed.server.count(), seen + 1, "{line}");
            // The person is told, by the name of the variable, and what to do.
            assert!(ended.err.contains(name), "{line}: {ended:?}");
            assert!(
                ended.err.contains("haft trust") || ended.err.contains("--config"),
                "{line}: {ended:?}"
            );
            let all = sent(&bed.server) + &ended.out + &ended.err;
            assert!(!all.contains("kestrel"), "{line}: {ended:?}");
            // Nor is the text sent as if somebody had meant it so.
            let sent = sent(&bed.server);
            assert!(!sent.contains(&format!("{{{name}}}")), "{line}: {ended:?}");
        }
    }
}

#[test]
fn a_trusted_project_gets_what_is_no_secret() {
    let bed = Bed::new(answers("The person's."));
    let text = "system_prompt: \"Say ${PLAIN}\"\n";
    bed.project(text);
    let shown = with_environment(&bed, &["trust", "--yes"]);
    assert_eq!(shown.code, Some(0), "{shown:?}");
    assert!(
        shown.out.contains("${PLAIN} in system_prompt"),
        "{}",
        shown.out
    );
    assert!(!(shown.out + &shown.err).contains("kestrel"));
    let ended = with_environment(&bed, &["run", "Go"]);
    assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""), "{ended:?}");
    assert!(sent(&bed.server).contains("Say kestrel-two-77af"));
    // Another text is another file, whatever changed in it.
    bed.project(&format!("{text}max_turns: 3\n"));
    let ended = with_environment(&bed, &["run", "Go"]);
    assert!(ended.err.contains("PLAIN"), "{ended:?}");
    assert!(!bed.last_request().to_string().contains("kestrel"));
    let ended = with_environment(&bed, &["run", "Go", "--trust"]);
    assert_eq!(ended.err, "", "{ended:?}");
    assert!(bed.last_request().to_string().contains("kestrel-two"));
}

#[test]
fn a_trusted_project_gets_no_secret() {
    for (name, value) in HELD.iter().filter(|(name, _)| *name != "PLAIN") {
        let bed = Bed::new(answers("The person's."));
        bed.project(&format!("system_prompt: \"Say ${{{name}}}\"\n"));
        let trusted = with_environment(&bed, &["trust", "--yes"]);
        let ended = with_environment(&bed, &["run", "Go", "--trust"]);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert!(
            ended
                .err
                .contains(&format!("the variable {name} may hold a secret"))
                && ended.err.contains("--config"),
            "{ended:?}"
        );
        let all = sent(&bed.server) + &ended.err + &trusted.out + &trusted.err;
        assert!(
            !all.contains(value) && !all.contains("kestrel"),
            "{ended:?}"
        );
        // In a file that the person names, or in their own, it is their word.
        with_environment(&bed, &["run", "Go", "--config", "haft.yaml"]);
        let words = bed.last_request().to_string();
        assert!(words.contains(value), "{words}");
    }
}

/// A key that the project asked for and did not get is not replaced by the person's.
#[test]
fn no_other_key_takes_the_place_of_a_withheld_one() {
    let bed = Bed::new(answers("The person's."));
    let gateway = Scripted::start(answers("Gateway."));
    bed.project(&format!(
        "provider: openai-completions\nmodel: m\nbase_url: \"{}\"\napi_key: ${{GATEWAY_KEY}}\n",
        gateway.url()
    ));
    let mut command = bed.command(&["run", "Go", "--trust"]);
    command
        .env("GATEWAY_KEY", "kestrel-gateway")
        .env("OPENAI_API_KEY", "kestrel-openai");
    let ended = ended(&mut command);
    assert_eq!(ended.out, "Gateway.\n", "{ended:?}");
    let sent = sent(&gateway);
    assert!(!sent.contains("kestrel") && !sent.contains(KEY), "{sent}");
}

/// Nor does the key for one provider go to another because a project names it.
#[test]
fn a_key_is_for_its_provider() {
    let bed = Bed::new(answers("The person's."));
    bed.project("provider: anthropic\nmodel: m\n");
    let ended = bed.haft(&["run", "Go"]);
    assert_eq!(
        (ended.code, ended.out.as_str()),
        (Some(0), "The person's.\n"),
        "{ended:?}"
    );
    let sent = bed.server.received();
    assert!(sent[0].path.ends_with("/v1/messages"), "{}", sent[0].path);
    for (name, value) in &sent[0].headers {
        assert!(
            !value.contains(KEY),
            "{name} has the key of another provider"
        );
    }
}

#[test]
fn limits_only_tighten() {
    let same = |_: &serde_json::Value, number: usize| -> Turn {
        let arguments = serde_json::json!({ "path": format!("{number}.txt") });
        haft_testing::model::Says::calling(format!("c{number}"), "read", &arguments).into()
    };
    let bed = Bed::new(same).and("max_turns: 3\nmax_retries: 0\n");
    bed.project("max_turns: 7\nmax_retries: 5\n");
    assert_eq!(bed.run(&[]).of("turn_start").len(), 3);
    bed.project("max_turns: 2\n");
    assert_eq!(bed.run(&[]).of("turn_start").len(), 2);
    // Nor by a value that is none.
    bed.project("max_turns: -1\n");
    let wrong = bed.haft(&["run", "Go"]);
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
    assert!(wrong.err.contains("max_turns"), "{wrong:?}");
}

#[test]
fn a_project_may_choose_the_model() {
    let bed = Bed::new(answers("Here."));
    bed.project("model: of-the-project\n");
    assert_eq!(bed.haft(&["run", "Go"]).err, "");
    assert_eq!(bed.last_request()["model"], "of-the-project");
    let by_variable = ended(bed.command(&["run", "Go"]).env("HAFT_MODEL", "mine"));
    assert_eq!(by_variable.code, Some(0));
    assert_eq!(bed.last_request()["model"], "mine");
}
