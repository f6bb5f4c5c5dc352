//! Settings of the web tools. Only the user can set them; a project can add denied hosts
//! and disable the tools.

use super::layer::Role;
use super::setting::{List, Setting, TextOr};
use super::sources::{Given, Sources, entries, in_layer};
use super::{Notes, Origin, joined, redact};
use crate::failure::Failure;
use haft::ops::text::spelling;
use haft_web::Secret;
use haft_web::guard::HostPatterns;
use haft_web::search::{Engine, EngineKind};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};

/// Settings of the web tools.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct WebEntry {
    /// Search engines, in the order they are tried.
    pub(crate) engines: Option<List<TextOr<EngineEntry>>>,
    /// Hosts, ports and ranges that are reachable beyond the open internet.
    pub(crate) allow_hosts: Option<Setting<Vec<String>>>,
    /// Hosts, ports and ranges that are not reachable.
    #[schemars(extend("x-project" = "tightens"))]
    pub(crate) deny_hosts: Option<Setting<Vec<String>>>,
    /// Whether the tools are offered regardless of toolset and preset.
    // A project may disable them.
    #[schemars(extend("x-project" = "limited"))]
    pub(crate) enabled: Option<Setting<bool>>,
    /// File with certificates to trust.
    pub(crate) ca_file: Option<Setting<String>>,
    /// URL of a proxy, such as http://host:port.
    pub(crate) proxy: Option<Setting<String>>,
}

/// A search engine.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct EngineEntry {
    /// Name of the engine.
    kind: String,
    /// URL of the instance.
    base_url: Option<String>,
    /// API key of the engine.
    key: Option<String>,
    /// Another name of `key`.
    api_key: Option<String>,
}

/// Effective settings of the web tools.
#[derive(Debug, Default)]
pub struct Web {
    /// Search engines, in the order they are tried.
    pub engines: Vec<Engine>,
    /// Whether the user configured engines.
    pub names_engines: bool,
    /// Hosts that may be contacted beyond the open internet.
    pub allow: HostPatterns,
    /// Hosts that may not be contacted.
    pub deny: HostPatterns,
    /// Whether the tools are offered regardless of toolset and preset.
    pub enabled: bool,
    /// Whether only the project chose a preset with the web tools.
    pub by_project: bool,
    /// File with additional certificate authorities.
    pub ca_file: Option<PathBuf>,
    /// Address of the proxy, which may contain a password.
    pub proxy: Option<Secret>,
}

impl Web {
    /// Returns the proxy's password.
    pub(crate) fn proxy_password(&self) -> Option<String> {
        let proxy = self.proxy.as_ref()?;
        let url = url::Url::parse(proxy.expose()).ok()?;
        url.password().map(str::to_owned)
    }
}

/// Reads the settings.
pub(crate) fn load(
    sources: &Sources,
    home: Option<&Path>,
    notes: &mut Notes,
) -> Result<Web, Failure> {
    let mut web = Web::default();
    let (mut shown, mut from) = (Map::new(), Vec::new());
    let mut own = sources
        .layers
        .iter()
        .filter(|layer| layer.role != Role::Project);
    let engines = own.find_map(|layer| Some((layer, layer.file.tools.web.engines.as_ref()?)));
    if let Some((layer, engines)) = engines {
        web.names_engines = true;
        for entry in entries(layer, engines) {
            let entry = entry?;
            from.push(entry.1.from.clone());
            // A broken engine does not stop users who do not need it.
            if let Some(given) = notes.skip_unset(entry, "engine") {
                web.engines.push(engine(&given)?);
            }
        }
        let names: Vec<&str> = web.engines.iter().map(Engine::name).collect();
        shown.insert("engines".to_owned(), names.into());
    } else {
        web.engines
            .extend(Engine::new(EngineKind::DuckDuckGo, None, None));
    }
    let mut show = |name: &str, value: Value, origin: &Origin| {
        shown.insert(name.to_owned(), value);
        from.push(origin.clone());
    };
    if let Some(given) = sources.first(|file| &file.tools.web.allow_hosts)? {
        web.allow = hosts(&given)?;
        show("allow_hosts", given.written, &given.from);
    }
    if let Some(given) = sources.first(|file| &file.tools.web.ca_file)? {
        web.ca_file = Some(file(&given, home)?);
        show("ca_file", given.written, &given.from);
    }
    if let Some(given) = sources.first(|file| &file.tools.web.proxy)? {
        web.proxy = Some(proxy(&given)?);
        show(
            "proxy",
            redact::text("proxy", given.text()).into(),
            &given.from,
        );
    }
    let mut deny = Vec::new();
    for layer in &sources.layers {
        if let Some(given) = in_layer(layer, |file| &file.tools.web.deny_hosts)? {
            hosts(&given)?;
            show("deny_hosts", Value::Null, &given.from);
            deny.extend(given.value);
        }
    }
    let (person, project) = sources.apart(|file| &file.tools.web.enabled)?;
    if let Some(given) = person {
        web.enabled = given.value;
        show("enabled", given.value.into(), &given.from);
    }
    if let Some(given) = project {
        if given.value {
            notes.warn(format!(
                "{}: tools.web.enabled is ignored: only your own haft.yaml or --config can set it",
                given.from
            ));
        } else {
            web.enabled = false;
            show("enabled", false.into(), &given.from);
        }
    }
    web.deny = HostPatterns::parse(&deny).map_err(|error| Failure::usage(error.to_string()))?;
    if !deny.is_empty() {
        shown.insert("deny_hosts".to_owned(), deny.into());
    }
    if !shown.is_empty() {
        notes.show_value("tools.web", shown.into(), joined(&from));
    }
    Ok(web)
}

fn hosts(given: &Given<'_, Vec<String>>) -> Result<HostPatterns, Failure> {
    HostPatterns::parse(&given.value).map_err(|error| given.wrong(&error.to_string()))
}

/// Returns a path, relative to the file that contains it.
fn file(given: &Given<'_, String>, home: Option<&Path>) -> Result<PathBuf, Failure> {
    let name = given.value.trim();
    match (name.strip_prefix("~/"), home) {
        _ if name.is_empty() => Err(given.wrong("must be the path of a file")),
        (Some(below), Some(home)) => Ok(home.join(below)),
        _ => Ok(given.folder().join(name)),
    }
}

fn proxy(given: &Given<'_, String>) -> Result<Secret, Failure> {
    let address = url::Url::parse(given.value.trim()).ok();
    let fits = |url: &url::Url| matches!(url.scheme(), "http" | "https") && url.has_host();
    match address.as_ref().is_some_and(fits) {
        true => Ok(Secret::new(&given.value)),
        // Not repeated, because it may contain a password.
        false => Err(given.wrong("must be a URL such as http://host:port")),
    }
}

/// Returns an engine: a name, or a map with a kind. Errors never contain values, which may
/// be keys.
fn engine(given: &Given<'_, TextOr<EngineEntry>>) -> Result<Engine, Failure> {
    let (kind, base_url, key) = match &given.value {
        TextOr::Text(kind) => (kind, None, None),
        TextOr::Full(engine) => (
            &engine.kind,
            engine.base_url.as_deref(),
            engine.key.as_ref().or(engine.api_key.as_ref()),
        ),
    };
    let known = EngineKind::ALL.map(EngineKind::name);
    let kind = EngineKind::by_name(kind.trim()).ok_or_else(|| {
        let hint = match spelling::hint(kind, known) {
            hint if hint.is_empty() => format!("; valid kinds: {}", known.join(", ")),
            hint => hint,
        };
        given.wrong(&format!("unknown engine{hint}"))
    })?;
    Engine::new(kind, base_url, key.map(Secret::new)).map_err(|what| given.wrong(&what))
}
