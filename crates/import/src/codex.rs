//! Converts Codex's `config.toml`.

use crate::draft::Draft;
use crate::rules;
use crate::secrets;
use crate::servers::{self, Dialect};
use crate::texts;
use serde_json::{Map, Value};

pub(crate) fn settings(draft: &mut Draft, given: &Map<String, Value>) {
    let given = &with_profile(draft, given);
    let text = |key: &str| given.get(key).and_then(Value::as_str);
    if let Some(provider) = text("model_provider").or(text("model").map(|_| "openai")) {
        self::provider(draft, given, provider);
    }
    if let Some(model) = text("model") {
        draft.set("model", "model", model);
    }
    match text("sandbox_mode") {
        None => draft.set_stricter(
            "no sandbox_mode",
            "sandbox",
            "read-only",
            "Codex writes only in folders that it trusts; `sandbox: workspace` lets commands write in the work folder",
        ),
        Some("read-only") => draft.set("sandbox_mode", "sandbox", "read-only"),
        Some("workspace-write") => draft.set("sandbox_mode", "sandbox", "workspace"),
        Some(mode) => draft.set_stricter(
            &format!("sandbox_mode {mode}"),
            "sandbox",
            "workspace",
            "`--sandbox off` runs commands without a sandbox, for one run",
        ),
    }
    if let Some(Value::Object(workspace)) = given.get("sandbox_workspace_write") {
        self::workspace(draft, workspace);
    }
    match text("approval_policy") {
        None if given.contains_key("approval_policy") => {
            draft.skip("approval_policy", "haft has no such policy, so it asks");
            rules::ask_by_default(draft, "Codex", &["write", "execute"]);
        }
        None => {}
        Some(policy @ ("on-request" | "on-failure")) => {
            draft.set(&format!("approval_policy {policy}"), "approve", "ask");
        }
        Some("never") => draft.set("approval_policy never", "approve", "never"),
        Some("untrusted") => rules::ask_by_default(draft, "Codex", &["write", "execute"]),
        Some(other) => {
            draft.skip(
                &format!("approval_policy {other}"),
                "haft has no such policy",
            );
            rules::ask_by_default(draft, "Codex", &["write", "execute"]);
        }
    }
    if let Some(servers) = given.get("mcp_servers") {
        servers::add_all(draft, "mcp_servers", servers, Dialect::Codex);
    }
    let used = text("model_provider").unwrap_or_default();
    let providers = given.get("model_providers").and_then(Value::as_object);
    for name in providers.into_iter().flat_map(Map::keys) {
        if name != used {
            draft.skip(
                &format!("model_providers.{name}"),
                "haft.yaml has only one provider, and model_provider names another",
            );
        }
    }
    for key in given.keys() {
        match key.as_str() {
            "model"
            | "model_provider"
            | "model_providers"
            | "sandbox_mode"
            | "sandbox_workspace_write"
            | "approval_policy"
            | "mcp_servers" => {}
            "projects" => draft.skip(
                key,
                "`haft trust` trusts a folder, after showing what it would run",
            ),
            "profiles" | "profile" => draft.skip(
                key,
                "haft has no profiles; `--config FILE` reads another file",
            ),
            _ => draft.skip(key, "haft has no such setting"),
        }
    }
}

/// Returns the effective settings: those of the active profile override the others.
fn with_profile(draft: &mut Draft, given: &Map<String, Value>) -> Map<String, Value> {
    let mut all = given.clone();
    let Some(Value::String(name)) = given.get("profile") else {
        return all;
    };
    let profile = given
        .get("profiles")
        .and_then(|profiles| profiles.get(name));
    let Some(Value::Object(profile)) = profile else {
        return all;
    };
    all.remove("profile");
    let keys: Vec<&str> = profile.keys().map(String::as_str).collect();
    draft.same(
        &format!("profile {name}"),
        &format!("its settings are used: {}", keys.join(", ")),
    );
    if let Some(Value::Object(others)) = all.get_mut("profiles") {
        others.remove(name);
        if others.is_empty() {
            all.remove("profiles");
        }
    }
    all.extend(profile.clone());
    all
}

fn workspace(draft: &mut Draft, given: &Map<String, Value>) {
    for (key, value) in given {
        let what = format!("sandbox_workspace_write.{key}");
        match (key.as_str(), value) {
            ("network_access", Value::Bool(true)) if draft.is_own() => {
                draft.set(&what, "network", "on");
            }
            ("network_access", Value::Bool(true)) => draft.skip(
                &what,
                "a project's file cannot turn the network on; set network: on in your own haft.yaml, or pass --network on",
            ),
            ("network_access", _) => draft.set(&what, "network", "off"),
            ("writable_roots", Value::Array(folders)) if draft.is_own() => {
                for folder in texts(folders) {
                    draft.push(&what, "tools.roots", folder);
                }
            }
            ("writable_roots", _) => draft.skip(
                &what,
                "a project's file cannot add folders; list them as tools.roots in your own haft.yaml",
            ),
            ("exclude_slash_tmp" | "exclude_tmpdir_env_var", _) => {
                draft.skip(&what, "commands always have a private /tmp");
            }
            _ => draft.skip(&what, "haft has no such setting"),
        }
    }
}

fn provider(draft: &mut Draft, given: &Map<String, Value>, name: &str) {
    let what = format!("model_provider {name}");
    let table = given
        .get("model_providers")
        .and_then(|all| all.get(name))
        .and_then(Value::as_object);
    let Some(table) = table else {
        return match name {
            "openai" => draft.set(&what, "provider", "openai-responses"),
            "ollama" => draft.set(&what, "provider", "ollama"),
            _ => draft.skip(&what, "set provider and base_url yourself"),
        };
    };
    let is_responses = table.get("wire_api").and_then(Value::as_str) == Some("responses");
    let kind = match is_responses {
        true => "openai-responses",
        false => "openai-completions",
    };
    draft.set(&what, "provider", kind);
    for (key, value) in table {
        let what = format!("model_providers.{name}.{key}");
        match (key.as_str(), value) {
            ("name" | "wire_api", _) => {}
            ("base_url", Value::String(url)) if !secrets::is_secret("url", url) => {
                draft.set(&what, "base_url", url.as_str());
            }
            ("env_key", Value::String(variable)) => {
                let reference = draft.needs(variable);
                draft.api_key(&what, kind, &reference);
            }
            _ => draft.skip(&what, "haft has no such setting for a provider"),
        }
    }
}
