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

/// A model on this machine is no place that anything leaves to; but the person's key
/// is for the person's provider.
#[test]
fn this_machine_is_used() {
    let bed = Bed::new(answers("The person's."));
    let local = Scripted::start(answers("Local."));
    bed.project(&format!(
        "provider: ollama\nmodel: local\nbase_url: \"{}\"\n",
        local.url()
    ));
    let ended = bed.haft(&["run", "Go"]);
    assert_eq!(
        (ended.code, ended.out.as_str(), ended.err.as_str()),
        (Some(0), "Local.\n", ""),
        "{ended:?}"
    );
    bed.project(&format!(
        "provider: openai-completions\nbase_url: \"{}\"\n",
        local.url()
    ));
    let by_variable = crate::bed::ended(bed.command(&["run", "Go"]).env("OPENAI_API_KEY", KEY));
    assert_eq!(by_variable.out, "Local.\n", "{by_variable:?}");
    let sent = local.received();
    assert_eq!(sent.len(), 2);
    for (name, value) in sent.iter().flat_map(|request| &request.headers) {
        assert!(!value.contains(KEY), "{name} has the person's key");
    }
    // Its own it may send there, but not what it takes from a variable.
    let own = format!("base_url: \"{}\"\napi_key: ", local.url());
    bed.project(&(own.clone() + "local-key\n"));
    assert_eq!(bed.haft(&["run", "Go"]).out, "Local.\n");
    let sent = local.received();
    assert_eq!(sent[2].header("authorization"), Some("Bearer local-key"));
    assert_eq!(bed.server.count(), 0);
    bed.project(&(own + "${MODEL_KEY}\n"));
    let ended = bed.haft(&["run", "Go"]);
    assert_eq!(ended.out, "The person's.\n", "{ended:?}");
    assert!(ended.err.contains("base_url is not used"), "{ended:?}");
    assert_eq!(local.count(), 3);
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
