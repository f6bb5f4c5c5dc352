//! Settings for the model in a project's file: limits and a choice of models, but not where
//! the conversation is sent.

use crate::bed::{Bed, Ended, KEY};
use haft_testing::model::{Scripted, Turn};
use std::net::TcpListener;
use std::sync::{Mutex, MutexGuard, PoisonError};

fn answers(text: &'static str) -> impl haft_testing::model::Script {
    move |_: &serde_json::Value, _: usize| Turn::text(text)
}

#[test]
fn a_project_cannot_choose_the_address() {
    let bed = Bed::new(answers("The person's."));
    // No server listens there, and none should be contacted.
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
            ended.err.contains(&format!("haft.yaml: {name} is ignored")),
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
fn a_trusted_project_can_choose_the_address() {
    let bed = Bed::new(answers("The person's."));
    bed.project("base_url: \"http://192.0.2.1:9\"\napi_key: sk-of-the-project\nmax_retries: 0\n");
    // An address reserved for documentation.
    bed.project(&format!(
        "base_url: \"http://0.0.0.0:{}\"\napi_key: sk-of-the-project\nmax_retries: 0\n",
        port(&bed.server)
    ));
    let untrusted = bed.haft(&["run", "Go"]);
    assert!(untrusted.err.contains("is ignored"), "{untrusted:?}");
    let shown = bed.haft(&["trust"]);
    assert!(
        (shown.out + &shown.err).contains("0.0.0.0"),
        "where the conversation goes is shown"
    );
    let seen = bed.server.count();
    let once = bed.haft(&["run", "Go", "--trust"]);
    assert!(!once.err.contains("is ignored"), "{once:?}");
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
    // Changed text makes it a new file, which needs trust again.
    bed.project(&format!(
        "base_url: \"http://0.0.0.0:{}/v1\"\n",
        port(&bed.server)
    ));
    assert!(bed.haft(&["run", "Go"]).err.contains("base_url is ignored"));
}

fn port(server: &Scripted) -> String {
    server.url().rsplit_once(':').unwrap().1.to_owned()
}

/// Any program may listen on this machine: a local address needs trust like any other.
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
        assert!(ended.err.contains("base_url is ignored"), "{ended:?}");
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

/// Environment variables that must not leave, under names of all kinds.
const HELD: [(&str, &str); 4] = [
    ("AWS_SECRET_ACCESS_KEY", "kestrel-one-5b1c"),
    ("PLAIN", "kestrel-two-77af"),
    ("ANTHROPIC_API_KEY", "kestrel-three-90de"),
    ("DATABASE_URL", "postgres://me:kestrel-four-1c2d@db/x"),
];

fn with_environment(bed: &Bed, args: &[&str]) -> crate::bed::Ended {
    Ended::of(bed.command(args).envs(HELD))
}

/// Requests to the model, including headers.
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
            // The warning names the variable and says what to do.
            assert!(ended.err.contains(name), "{line}: {ended:?}");
            assert!(
                ended.err.contains("haft trust") || ended.err.contains("--config"),
                "{line}: {ended:?}"
            );
            let all = sent(&bed.server) + &ended.out + &ended.err;
            assert!(!all.contains("kestrel"), "{line}: {ended:?}");
            // The unexpanded text is not sent either.
            let sent = sent(&bed.server);
            assert!(!sent.contains(&format!("{{{name}}}")), "{line}: {ended:?}");
        }
    }
}

#[test]
fn a_trusted_project_gets_variables_that_are_not_secret() {
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
    // Any change of the text makes it a new file.
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
                .contains(&format!("variable {name} may hold a secret"))
                && ended.err.contains("--config"),
            "{ended:?}"
        );
        let all = sent(&bed.server) + &ended.err + &trusted.out + &trusted.err;
        assert!(
            !all.contains(value) && !all.contains("kestrel"),
            "{ended:?}"
        );
        // In a file named by the user, or in their own, it counts as the user's choice.
        with_environment(&bed, &["run", "Go", "--config", "haft.yaml"]);
        let words = bed.last_request().to_string();
        assert!(words.contains(value), "{words}");
    }
}

/// A key that the project requested and did not get is not replaced by the user's.
#[test]
fn a_withheld_key_is_not_replaced_by_another() {
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
    let ended = Ended::of(&mut command);
    assert_eq!(ended.out, "Gateway.\n", "{ended:?}");
    let sent = sent(&gateway);
    assert!(!sent.contains("kestrel") && !sent.contains(KEY), "{sent}");
}

#[test]
fn limits_only_tighten() {
    let same = |_: &serde_json::Value, number: usize| -> Turn {
        let arguments = serde_json::json!({ "path": format!("{number}.txt") });
        haft_testing::model::ModelReply::calling(format!("c{number}"), "read", &arguments).into()
    };
    let bed = Bed::new(same).and("max_turns: 3\nmax_retries: 0\n");
    bed.project("max_turns: 7\nmax_retries: 5\n");
    assert_eq!(bed.run(&[]).of("turn_start").len(), 3);
    bed.project("max_turns: 2\n");
    assert_eq!(bed.run(&[]).of("turn_start").len(), 2);
    // Not by an invalid value either.
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
    let by_variable = Ended::of(bed.command(&["run", "Go"]).env("HAFT_MODEL", "mine"));
    assert_eq!(by_variable.code, Some(0));
    assert_eq!(bed.last_request()["model"], "mine");
}

/// Keys in the user's environment, one per provider, which no one else may receive.
const KEYS: [(&str, &str); 3] = [
    ("ANTHROPIC_API_KEY", "sk-kestrel-anthropic"),
    ("OPENAI_API_KEY", "sk-kestrel-openai"),
    ("GEMINI_API_KEY", "sk-kestrel-gemini"),
];

/// There is only one default port of Ollama: tests that use it take turns.
static PORT: Mutex<()> = Mutex::new(());

/// A server that listens where a project would expect Ollama.
struct Eavesdropper {
    /// `None` if the port is already in use.
    listener: Option<TcpListener>,
    _alone: MutexGuard<'static, ()>,
}

impl Eavesdropper {
    fn new() -> Self {
        let alone = PORT.lock().unwrap_or_else(PoisonError::into_inner);
        let listener = TcpListener::bind(("127.0.0.1", 11434)).ok();
        if let Some(listener) = &listener {
            listener.set_nonblocking(true).unwrap();
        }
        Self {
            listener,
            _alone: alone,
        }
    }

    fn heard_nothing(&self) {
        if let Some(listener) = &self.listener {
            assert!(
                listener.accept().is_err(),
                "something came to Ollama's port"
            );
        }
    }
}

#[test]
fn a_project_does_not_choose_another_provider() {
    let ollama = Eavesdropper::new();
    let bed = Bed::new(answers("The person's."));
    let with_provider = bed.model_lines("openai-completions");
    let without = with_provider.replace("provider: openai-completions\n", "");
    for (user, project, left) in [
        (&with_provider, "provider: ollama\nmodel: m\n", "provider"),
        (&with_provider, "provider: ollama\n", "provider"),
        (&without, "provider: ollama\nmodel: m\n", "provider"),
        (&without, "model: ollama/m\n", "model"),
        (
            &without,
            "provider: openai-completions\nmodel: ollama/m\n",
            "model",
        ),
    ] {
        bed.user(user);
        bed.project(project);
        let seen = bed.server.count();
        let ended = bed.haft(&["run", "PRIVATE"]);
        assert_eq!(ended.out, "The person's.\n", "{project}: {ended:?}");
        let warning = format!("haft.yaml: {left} is ignored");
        assert!(ended.err.contains(&warning), "{project}: {ended:?}");
        assert!(ended.err.contains("haft trust"), "{project}: {ended:?}");
        assert_eq!(bed.server.count(), seen + 1, "{project}");
        assert_eq!(bed.last_request()["model"], "scripted", "{project}");
        let shown = bed.haft(&["trust"]);
        assert!(shown.out.contains("model provider"), "{project}: {shown:?}");
        assert!(shown.out.contains("ollama"), "{project}: {shown:?}");
    }
    // The user's own provider, or a name that only looks like another one.
    for (user, project, model) in [
        (
            &with_provider,
            "provider: openai-completions\nmodel: m\n",
            "m",
        ),
        (&with_provider, "model: ollama/m\n", "ollama/m"),
        (&without, "provider: openai-completions\nmodel: m\n", "m"),
        (&without, "model: openai-completions/m\n", "m"),
        (&without, "model: vendor/m\n", "vendor/m"),
    ] {
        bed.user(user);
        bed.project(project);
        let ended = bed.haft(&["run", "PRIVATE"]);
        assert_eq!(
            (ended.out.as_str(), ended.err.as_str()),
            ("The person's.\n", ""),
            "{project}"
        );
        assert_eq!(bed.last_request()["model"], model, "{project}");
        let shown = bed.says(&["trust"]);
        assert!(shown.contains("needs trust"), "{shown}");
    }
    // Without any model, nothing is sent elsewhere.
    let bare = Bed::bare(answers("Nobody's."));
    for project in ["provider: ollama\nmodel: m\n", "model: ollama/m\n"] {
        bare.project(project);
        let ended = bare.haft(&["run", "PRIVATE"]);
        assert_eq!(ended.code, Some(2), "{ended:?}");
        assert!(ended.err.contains("no model configured"), "{ended:?}");
        assert!(ended.err.contains("haft trust"), "{ended:?}");
    }
    ollama.heard_nothing();
}

/// A model with another name uses the provider of the user's model.
#[test]
fn a_model_without_a_provider_belongs_to_the_users_provider() {
    let bed = Bed::bare(answers("The person's."));
    bed.user(&format!(
        "model: anthropic/mine\nbase_url: \"{}\"\napi_key: {KEY}\nmax_retries: 0\n",
        bed.server.url()
    ));
    bed.project("model: of-the-project\n");
    let ended = Ended::of(bed.command(&["run", "Go"]).envs(KEYS));
    assert_eq!(ended.out, "The person's.\n", "{ended:?}");
    let sent = bed.server.received();
    assert!(sent[0].path.ends_with("/v1/messages"), "{}", sent[0].path);
    assert_eq!(sent[0].json()["model"], "of-the-project");
}

/// The user's address gets only the keys of its own provider, no matter who names another
/// one.
#[test]
fn an_address_and_a_key_are_for_their_provider() {
    let bed = Bed::bare(answers("The person's."));
    let url = bed.server.url();
    let run = |args: &[&str]| Ended::of(bed.command(args).envs(KEYS));
    let ollama = format!("provider: ollama\nmodel: m\nbase_url: \"{url}\"\nmax_retries: 0\n");
    let address = format!("base_url: \"{url}\"\nmodel: m\napi_key: {KEY}\nmax_retries: 0\n");
    for (user, project) in [
        (&ollama, "provider: openai-completions\nmodel: x\n"),
        (&ollama, "provider: openai-responses\nmodel: x\n"),
        (&ollama, "provider: anthropic\nmodel: x\n"),
        (&ollama, "provider: google\n"),
        (&address, "model: anthropic/x\n"),
        (&address, "model: google/x\n"),
        (&address, "provider: anthropic\nmodel: x\n"),
    ] {
        bed.user(user);
        bed.project(project);
        let seen = bed.server.count();
        let ended = run(&["run", "Go"]);
        assert_eq!(ended.out, "The person's.\n", "{project}: {ended:?}");
        assert!(ended.err.contains("haft trust"), "{project}: {ended:?}");
        assert_eq!(bed.server.count(), seen + 1, "{project}");
        assert!(!sent(&bed.server).contains("kestrel"), "{project}");
    }
    // If trusted, it goes to that provider, and still not to this address. The same applies
    // if the user names another provider.
    let _alone = PORT.lock().unwrap_or_else(PoisonError::into_inner);
    let seen = bed.server.count();
    let other = "provider: ollama\nmodel: x\n";
    std::fs::write(bed.work("mine.yaml"), other).unwrap();
    for user in [address.clone(), format!("provider: google\n{address}")] {
        bed.user(&user);
        bed.project(other);
        run(&["run", "Go", "--trust"]);
        run(&["run", "Go", "--config", "mine.yaml"]);
    }
    bed.user(&address);
    bed.project("");
    run(&["run", "Go", "--model", "ollama/x"]);
    bed.project("model: ollama/x\n");
    run(&["run", "Go", "--trust"]);
    // Keys are not sent to other providers either.
    bed.user(&format!("{ollama}api_key: {KEY}\n"));
    bed.project("provider: anthropic\nmodel: x\n");
    let ended = bed.haft(&["run", "Go", "--trust"]);
    assert!(
        ended.err.contains("no key for provider anthropic"),
        "{ended:?}"
    );
    assert_eq!(bed.server.count(), seen);
}

/// A project's sub-agents use the agent's provider.
#[test]
fn a_subagent_of_a_project_has_no_other_provider() {
    let ollama = Eavesdropper::new();
    let script = |request: &serde_json::Value, _: usize| -> Turn {
        let text = request.to_string();
        // The sub-agent's own request, then the answer to its end.
        match (text.contains("\"You help."), text.contains("Helped.")) {
            (true, _) => Turn::text("Helped."),
            (_, true) => Turn::text("All done."),
            _ => {
                let arguments = serde_json::json!({ "request": "PRIVATE" });
                haft_testing::model::ModelReply::calling("c1", "helper", &arguments).into()
            }
        }
    };
    let bed = Bed::new(script);
    let lines = bed.model_lines("openai-completions");
    bed.user(&lines.replace("provider: openai-completions\n", ""));
    bed.project(
        "subagents:\n  - { name: helper, description: use me, model: ollama/m, system_prompt: You help. }\n",
    );
    let ended = bed.haft(&["run", "Go"]);
    assert_eq!(ended.out, "All done.\n", "{ended:?}");
    assert!(
        ended
            .err
            .contains("the model of the sub-agent helper is ignored")
            && ended.err.contains("haft trust"),
        "{ended:?}"
    );
    assert_eq!(bed.server.count(), 3);
    let received = bed.server.received();
    assert!(received.iter().all(|one| one.json()["model"] == "scripted"));
    assert!(bed.haft(&["trust"]).out.contains("ollama/m"));
    ollama.heard_nothing();
}

/// Only the user can give a sub-agent tools that the agent does not have.
#[test]
fn a_subagent_of_a_project_has_no_more_tools_than_the_agent() {
    let script = |request: &serde_json::Value, _: usize| -> Turn {
        let text = request.to_string();
        let call = |id: &str, tool: &str, arguments: serde_json::Value| -> Turn {
            haft_testing::model::ModelReply::calling(id, tool, &arguments).into()
        };
        match (
            text.contains("You work for another agent"),
            text.contains("tool_call_id"),
        ) {
            (true, false) => call(
                "w",
                "write",
                serde_json::json!({ "path": "new.txt", "content": "new" }),
            ),
            (true, true) => Turn::text("Written."),
            (false, false) => call("c", "writer", serde_json::json!({ "request": "Write" })),
            (false, true) => Turn::text("Ok."),
        }
    };
    let bed = Bed::new(script).and("tools: { preset: readonly }\n");
    let writer = "subagents: [{ name: writer, description: Writes., tools: [write] }]\n";
    bed.project(writer);
    for args in [&["run", "Go"][..], &["run", "Go", "--trust"]] {
        let ended = bed.haft(args);
        assert_eq!(ended.code, Some(2), "{ended:?}");
        assert!(
            ended
                .err
                .contains("does not have these tools: write; only a sub-agent in your own"),
            "{ended:?}"
        );
    }
    assert_eq!(bed.server.count(), 0);
    std::fs::remove_file(bed.work("haft.yaml")).unwrap();
    let bed = bed.and(&format!("tools: {{ preset: readonly }}\n{writer}"));
    let ended = bed.haft(&["run", "Go"]);
    assert_eq!(ended.out, "Ok.\n", "{ended:?}");
    assert_eq!(bed.read("new.txt"), "new");
    // The agent still cannot.
    let tools = bed.server.received()[0].json()["tools"].to_string();
    assert!(
        tools.contains("\"writer\"") && !tools.contains("\"write\""),
        "{tools}"
    );
}

/// A skill folder named by the project needs trust like the default one.
#[test]
fn skills_that_a_project_names_need_trust_and_stay_in_it() {
    let bed = Bed::new(answers("Here."));
    let skill = |folder: std::path::PathBuf, text: &str| {
        std::fs::create_dir_all(&folder).unwrap();
        let text = format!("---\ndescription: {text}\n---\nx\n");
        std::fs::write(folder.join("SKILL.md"), text).unwrap();
    };
    skill(bed.elsewhere().join("priv"), "KESTREL outside");
    skill(bed.work(".agents/skills/a"), "KESTREL usual");
    skill(bed.work("own/b"), "KESTREL own");
    std::os::unix::fs::symlink("../elsewhere/priv", bed.work("lnk")).unwrap();
    std::os::unix::fs::symlink("../../elsewhere/priv", bed.work("own/out")).unwrap();
    let outside = bed.elsewhere().join("priv").display().to_string();
    let reported = |args: &[&str]| {
        let ended = bed.haft(args);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        (bed.last_request().to_string(), ended.err)
    };
    for path in [
        "../elsewhere/priv",
        "./lnk",
        "./own/../../elsewhere/priv",
        &outside,
    ] {
        bed.project(&format!("skills: [\"{path}\"]\n"));
        for args in [&["run", "Go"][..], &["run", "Go", "--trust"]] {
            let (prompt, noted) = reported(args);
            assert!(!prompt.contains("KESTREL outside"), "{path}: {prompt}");
            assert!(
                noted.contains("leads out of this folder"),
                "{path}: {noted}"
            );
        }
    }
    for path in ["./.agents/skills", ".agents/skills/a", "./own"] {
        bed.project(&format!("skills: [\"{path}\"]\n"));
        let (prompt, noted) = reported(&["run", "Go"]);
        assert!(!prompt.contains("KESTREL"), "{path}: {prompt}");
        assert!(noted.contains("haft trust"), "{path}: {noted}");
    }
    let shown = bed.says(&["trust", "--yes"]);
    assert!(shown.contains("./own"), "{shown}");
    let (prompt, _) = reported(&["run", "Go"]);
    assert!(
        prompt.contains("KESTREL own") && prompt.contains("KESTREL usual"),
        "{prompt}"
    );
    assert!(!prompt.contains("KESTREL outside"), "{prompt}");
    skill(bed.work("own/c"), "KESTREL later");
    let (prompt, noted) = reported(&["run", "Go"]);
    assert!(
        !prompt.contains("KESTREL own") && !prompt.contains("KESTREL later"),
        "{prompt}"
    );
    assert!(noted.contains("./own"), "{noted}");
}

/// A project's file cannot hide the warnings about it.
#[test]
fn a_project_cannot_hide_warnings_about_it() {
    let bed = Bed::new(answers("Here."));
    let lines = "base_url: \"http://192.0.2.1:9\"\nsystem_prompt: \"${PLAIN}\"\n";
    bed.project(&format!("quiet: true\n{lines}"));
    let ended = with_environment(&bed, &["run", "Go"]);
    for words in ["base_url is ignored", "PLAIN", "quiet is ignored"] {
        assert!(ended.err.contains(words), "{words}: {ended:?}");
    }
    let ended = with_environment(&bed, &["run", "Go", "--quiet"]);
    assert_eq!(ended.err, "", "{ended:?}");
}

/// The user's settings folder cannot be a work folder, not even as `.`.
#[test]
fn a_work_folder_among_the_settings_is_named_at_once() {
    let bed = Bed::new(answers("Here.")).and("tools: { work_dir: . }\n");
    for args in [&["run", "Go"][..], &["call", "ls"]] {
        let ended = bed.haft(args);
        assert_eq!((ended.code, ended.out.as_str()), (Some(2), ""), "{ended:?}");
        for words in ["haft.yaml:5", "work_dir", "remove work_dir"] {
            assert!(ended.err.contains(words), "{words}: {ended:?}");
        }
    }
}
