//! Code that runs in haft-sandbox: where that program is, and what it may ask for.

use crate::config::Settings;
use crate::config::files::{Execution, Sandbox, has_a_tree};
use crate::exit::Failure;
use crate::session::Offer;
use crate::{env, external, output};
use haft::guest::{Fetch, Guest};
use haft::ops::executor::look_up;
use haft::{Plugin, Protocol};
use haft_web::client::{Client, Header, Method, Origin, Redirects, Request, Url};
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// What the program is called.
const NAME: &str = "haft-sandbox";

/// How long one file of the index may take, and how large it may be.
const TIME: Duration = Duration::from_secs(60);
const LARGEST: usize = 32 << 20;

/// The form of the index that is understood.
const JSON: &str = "application/vnd.pypi.simple.v1+json, */*;q=0.1";

/// What a person has to do where there is no such program.
pub(crate) fn missing() -> String {
    format!(
        "execution: sandbox needs the program {NAME}, and there is none beside haft or in PATH; \
         build it where haft was built, `cargo build --release -p {NAME}`, and put it beside haft"
    )
}

/// The program as a part of the session, and where it lies; nothing where the session
/// runs no code so. Where there is no such program, the session does without its tools,
/// as it does without those of a plugin that does not start.
pub(crate) fn plugin(
    settings: &Settings,
    offer: Offer,
) -> Result<Option<(Plugin, PathBuf)>, Failure> {
    let Execution::Sandbox(sandbox) = &settings.files.execution else {
        return Ok(None);
    };
    let is_listed = match settings.preset.as_deref() {
        None => true,
        Some(preset) => preset.trim().eq_ignore_ascii_case("all") || preset.trim().is_empty(),
    };
    if !has_a_tree(&settings.toolset) || (offer == Offer::Preset && !is_listed) {
        return Ok(None);
    }
    let Some(program) = find(settings) else {
        if !settings.quiet {
            output::note(&missing());
        }
        return Ok(None);
    };
    let client = Client::new(haft_web::Settings::default());
    let client = client.map_err(|error| Failure::usage(format!("execution: {error}")))?;
    let guest = Guest {
        index: Some(Arc::new(Index {
            client,
            index: sandbox.index.clone(),
            named: Mutex::default(),
        })),
    };
    let mut plugin = Plugin::new(&program, arguments(sandbox));
    plugin.label = NAME.to_owned();
    plugin.protocol = Protocol::Second;
    plugin.environment = Some(Vec::new());
    plugin.limits_set_in = "`execution`".to_owned();
    plugin.guest = Some(guest);
    plugin.memory = external::memory_of_own(NAME, &program, &plugin.arguments, settings);
    plugin.log = settings
        .folders
        .state
        .as_ref()
        .map(|state| state.join("plugins").join(format!("{NAME}.log")));
    Ok(Some((plugin, program)))
}

fn arguments(sandbox: &Sandbox) -> Vec<std::ffi::OsString> {
    let words = [
        "--session".to_owned(),
        format!("--index={}", sandbox.index),
        format!("--timeout={}", sandbox.timeout),
        format!("--memory={}", sandbox.memory),
    ];
    words.into_iter().map(Into::into).collect()
}

/// Where the program is: beside this one, or in PATH, but in no folder that a command
/// could write.
pub(crate) fn find(settings: &Settings) -> Option<PathBuf> {
    let itself = haft::ops::scope::real(&env::itself()).unwrap_or_else(env::itself);
    let beside = itself.parent().map(|folder| folder.join(NAME));
    if let Some(beside) = beside.filter(|program| is_program(program)) {
        return Some(beside);
    }
    let path = std::env::join_paths(env::paths("PATH")).ok()?;
    let mut avoid = vec![settings.work_dir.clone()];
    avoid.extend(
        settings
            .roots
            .iter()
            .map(|root| settings.work_dir.join(root)),
    );
    look_up(NAME.as_ref(), Some(&path), &avoid)
}

#[expect(
    clippy::disallowed_methods,
    reason = "what would be run is looked at before there is a scope"
)]
fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.is_absolute()
        && std::fs::metadata(path)
            .is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
}

/// The package index: what is on it, and what its pages name.
struct Index {
    client: Client,
    index: Url,
    named: Mutex<HashSet<String>>,
}

impl Index {
    fn is_page(&self, url: &Url) -> bool {
        let below = format!("{}/", self.index.path().trim_end_matches('/'));
        url.origin() == self.index.origin() && url.path().starts_with(&below)
    }

    /// Remembers the addresses that a page names.
    fn remember(&self, page: &Url, bytes: &[u8]) {
        let Ok(document) = serde_json::from_slice::<serde_json::Value>(bytes) else {
            return;
        };
        let files = document.get("files").and_then(|files| files.as_array());
        let urls = files.into_iter().flatten().filter_map(|file| {
            let url = file.get("url")?.as_str()?;
            Some(page.join(url).ok()?.to_string())
        });
        let mut named = self.named.lock().unwrap_or_else(PoisonError::into_inner);
        named.extend(urls);
    }

    fn is_named(&self, url: &Url) -> bool {
        let named = self.named.lock().unwrap_or_else(PoisonError::into_inner);
        named.contains(url.as_str())
    }
}

#[async_trait::async_trait]
impl Fetch for Index {
    async fn fetch(&self, url: &str) -> Result<Vec<u8>, String> {
        let url = Url::parse(url).map_err(|error| error.to_string())?;
        let is_page = self.is_page(&url);
        let request = Request {
            method: Method::Get,
            url: url.clone(),
            // The person chose the index, and nobody where else it leads.
            origin: if url.origin() == self.index.origin() {
                Origin::Configuration
            } else {
                Origin::Anybody
            },
            headers: vec![Header::Plain("accept", JSON.to_owned())],
            body: None,
            timeout: TIME,
            limit: LARGEST,
            redirects: Redirects::Follow,
        };
        let answer = self.client.send(request).await;
        let answer = answer.map_err(|error| error.to_string())?;
        if answer.status != 200 {
            return Err(format!("the answer is {}", answer.status_line()));
        }
        let from = answer.url.clone();
        let body = answer.body().await.map_err(|error| error.to_string())?;
        if body.cut {
            return Err(format!("it is larger than {} MiB", LARGEST >> 20));
        }
        if is_page {
            self.remember(&from, &body.bytes);
        }
        Ok(body.bytes)
    }

    fn host(&self, url: &str) -> Option<String> {
        let url = Url::parse(url).ok()?;
        (self.is_page(&url) || self.is_named(&url)).then_some(())?;
        url.host_str().map(str::to_owned)
    }
}
