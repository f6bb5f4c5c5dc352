//! Settings of the web tools. Only the user can set them; a project can add denied hosts
//! and disable the tools.

use super::sources::{Listed, Origin, Sources};
use super::{Shown, joined, redact};
use crate::exit::Failure;
use haft::ops::text::spelling::closest;
use haft_web::Secret;
use haft_web::guard::HostPatterns;
use haft_web::search::{Engine, EngineKind};
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};

const KEY: &str = "tools.web";

const KNOWN: [&str; 6] = [
    "engines",
    "allow_hosts",
    "deny_hosts",
    "enabled",
    "ca_file",
    "proxy",
];

/// Effective settings of the web tools.
#[derive(Debug, Default)]
pub(crate) struct Web {
    /// Search engines, in the order they are tried.
    pub(crate) engines: Vec<Engine>,
    /// Whether the user configured engines.
    pub(crate) names_engines: bool,
    pub(crate) allow: HostPatterns,
    pub(crate) deny: HostPatterns,
    /// Whether the tools are offered regardless of toolset and preset.
    pub(crate) enabled: bool,
    /// Whether only the project chose a preset with the web tools.
    pub(crate) by_project: bool,
    pub(crate) ca_file: Option<PathBuf>,
    pub(crate) proxy: Option<Secret>,
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
    sources: &Sources<'_>,
    home: Option<&Path>,
    warnings: &mut Vec<String>,
    shown: &mut Vec<Shown>,
) -> Result<Web, Failure> {
    let mut reader = Reader {
        sources,
        home,
        web: Web::default(),
        deny: Vec::new(),
        seen: Vec::new(),
        shown: Map::new(),
        from: Vec::new(),
    };
    let mut is_disabled = false;
    for entry in sources.entries(KEY) {
        check_known(&entry)?;
        let given = reader.given(&entry)?;
        if entry.is_project {
            match (entry.name.as_str(), &given) {
                ("deny_hosts", value) => reader.deny(&entry, value)?,
                ("enabled", Value::Bool(false)) => is_disabled = true,
                (name, _) => warnings.push(format!(
                    "{}: {KEY}.{name} is ignored: only your own haft.yaml or --config can set it",
                    entry.from
                )),
            }
            continue;
        }
        if entry.name == "deny_hosts" {
            reader.deny(&entry, &given)?;
        } else if !reader.seen.contains(&entry.name) {
            reader.seen.push(entry.name.clone());
            reader.take(&entry, &given, warnings)?;
        }
    }
    let Reader {
        mut web,
        deny,
        shown: mut values,
        from,
        ..
    } = reader;
    web.deny = HostPatterns::parse(&deny).map_err(|error| Failure::usage(error.to_string()))?;
    web.enabled &= !is_disabled;
    if !web.names_engines {
        web.engines
            .extend(Engine::new(EngineKind::DuckDuckGo, None, None));
    }
    if !deny.is_empty() {
        values.insert("deny_hosts".to_owned(), deny.into());
    }
    if is_disabled {
        values.insert("enabled".to_owned(), false.into());
    }
    if !values.is_empty() {
        shown.push(Shown {
            key: KEY,
            value: values.into(),
            from: joined(&from),
        });
    }
    Ok(web)
}

fn check_known(entry: &Listed) -> Result<(), Failure> {
    let name = entry.name.as_str();
    if KNOWN.contains(&name) {
        return Ok(());
    }
    let near = closest(name, KNOWN.iter().map(|known| (*known).to_owned()), 1);
    let suggestion = near
        .first()
        .map(|near| format!("; did you mean \"{near}\"?"))
        .unwrap_or_else(|| format!("; known keys: {}", KNOWN.join(", ")));
    Err(Failure::usage(format!(
        "{}: unknown key \"{name}\" in {KEY}{suggestion}",
        entry.from
    )))
}

struct Reader<'a> {
    sources: &'a Sources<'a>,
    home: Option<&'a Path>,
    web: Web,
    deny: Vec<String>,
    /// Keys already set by a file with higher precedence.
    seen: Vec<String>,
    shown: Map<String, Value>,
    from: Vec<Origin>,
}

impl Reader<'_> {
    /// Returns the value of an entry, or the error from expanding it. For `engines` such
    /// errors are handled per engine.
    fn given(&self, entry: &Listed) -> Result<Value, Failure> {
        match &entry.value {
            Ok(value) => Ok(value.clone()),
            Err(_) if entry.name == "engines" => Ok(Value::Null),
            Err(failure) => Err(Failure::usage(failure.message.clone())),
        }
    }

    fn wrong(&self, entry: &Listed, what: &str) -> Failure {
        Failure::usage(format!("{}: {KEY}.{}: {what}", entry.from, entry.name))
    }

    fn take(
        &mut self,
        entry: &Listed,
        given: &Value,
        warnings: &mut Vec<String>,
    ) -> Result<(), Failure> {
        let shown: Value = match entry.name.as_str() {
            "engines" => {
                self.engines(entry, warnings)?;
                let names = self.web.engines.iter().map(Engine::name);
                names.collect::<Vec<_>>().into()
            }
            "allow_hosts" => {
                self.web.allow = self.hosts(entry, given)?.1;
                entry.written.clone()
            }
            "enabled" => {
                let expected = || self.wrong(entry, "must be true or false");
                self.web.enabled = given.as_bool().ok_or_else(expected)?;
                self.web.enabled.into()
            }
            "ca_file" => {
                self.web.ca_file = Some(self.file(entry, given)?);
                entry.written.clone()
            }
            _ => {
                self.web.proxy = Some(self.proxy(entry, given)?);
                let written = entry.written.as_str().unwrap_or_default();
                redact::text("proxy", written).into()
            }
        };
        self.shown.insert(entry.name.clone(), shown);
        self.from.push(entry.from.clone());
        Ok(())
    }

    fn deny(&mut self, entry: &Listed, given: &Value) -> Result<(), Failure> {
        let hosts = self.hosts(entry, given)?.0;
        self.deny.extend(hosts);
        self.from.push(entry.from.clone());
        Ok(())
    }

    fn hosts(&self, entry: &Listed, given: &Value) -> Result<(Vec<String>, HostPatterns), Failure> {
        let expected = || self.wrong(entry, "must be a list of hosts, host:port or ranges");
        let hosts: Vec<String> = given
            .as_array()
            .ok_or_else(expected)?
            .iter()
            .map(|host| host.as_str().map(str::to_owned).ok_or_else(expected))
            .collect::<Result<_, _>>()?;
        let entries =
            HostPatterns::parse(&hosts).map_err(|error| self.wrong(entry, &error.to_string()))?;
        Ok((hosts, entries))
    }

    /// Returns a path, relative to the file that contains it.
    fn file(&self, entry: &Listed, given: &Value) -> Result<PathBuf, Failure> {
        let given = given
            .as_str()
            .map(str::trim)
            .filter(|text| !text.is_empty());
        let given = given.ok_or_else(|| self.wrong(entry, "must be the path of a file"))?;
        if let (Some(below), Some(home)) = (given.strip_prefix("~/"), self.home) {
            return Ok(home.join(below));
        }
        let folder = match &entry.from {
            Origin::File(shown, _) => self.sources.folder_of(shown),
            _ => None,
        };
        Ok(folder.unwrap_or_default().join(given))
    }

    fn proxy(&self, entry: &Listed, given: &Value) -> Result<Secret, Failure> {
        let address = given
            .as_str()
            .and_then(|text| url::Url::parse(text.trim()).ok());
        let fits = address.as_ref().is_some_and(|url| {
            matches!(url.scheme(), "http" | "https") && url.host_str().is_some()
        });
        match fits {
            true => Ok(Secret::new(given.as_str().unwrap_or_default())),
            // Not repeated, because it may contain a password.
            false => Err(self.wrong(entry, "must be a URL such as http://host:port")),
        }
    }

    fn engines(&mut self, entry: &Listed, warnings: &mut Vec<String>) -> Result<(), Failure> {
        self.web.names_engines = true;
        let Origin::File(file, _) = &entry.from else {
            return Ok(());
        };
        let items = self.sources.items_in(KEY, "engines", file);
        let items = items.ok_or_else(|| self.wrong(entry, "must be a list of engines"))?;
        for (from, value) in items {
            let wrong =
                |what: &str| Failure::usage(format!("{from}: {KEY}.{}: {what}", entry.name));
            match value {
                // A broken engine does not stop users who do not need it.
                Err(failure) => {
                    warnings.push(format!("{}: skipped this engine", failure.message));
                }
                Ok(value) => self
                    .web
                    .engines
                    .push(engine(&value).map_err(|what| wrong(&what))?),
            }
        }
        Ok(())
    }
}

/// Reads an engine: a name, or a map with a kind. Errors never contain values, which may
/// be keys.
fn engine(value: &Value) -> Result<Engine, String> {
    let kinds = || EngineKind::ALL.map(EngineKind::name).join(", ");
    let empty = Map::new();
    let (kind, map) = match value {
        Value::String(name) => (Some(name.as_str()), &empty),
        Value::Object(map) => (map.get("kind").and_then(Value::as_str), map),
        _ => (None, &empty),
    };
    let known = ["kind", "base_url", "key", "api_key"];
    if let Some(other) = map.keys().find(|key| !known.contains(&key.as_str())) {
        return Err(format!(
            "unknown key \"{other}\" in an engine; known keys: {}",
            known.join(", ")
        ));
    }
    let kind = kind.ok_or_else(|| {
        format!(
            "an engine must be a name or a map with a kind; valid kinds: {}",
            kinds()
        )
    })?;
    let kind = EngineKind::by_name(kind.trim()).ok_or_else(|| {
        let near = closest(kind, EngineKind::ALL.map(|kind| kind.name().to_owned()), 1);
        match near.first() {
            Some(near) => format!("unknown engine; did you mean \"{near}\"?"),
            None => format!("unknown engine; valid kinds: {}", kinds()),
        }
    })?;
    let text = |key: &str| match map.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.as_str())),
        Some(_) => Err(format!("{key} must be text")),
    };
    let key = text("key")?.or(text("api_key")?).map(Secret::new);
    Engine::new(kind, text("base_url")?, key)
}
