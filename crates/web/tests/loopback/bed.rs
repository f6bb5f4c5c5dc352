//! A session with the web tools, and servers that stand in for hosts on the public internet.

use crate::http_server::{Server, Step, answer};
use futures::FutureExt as _;
use haft::{
    Approve, Listed, Policy, Reply, Rule, RuleDraft, RuleFile, RuleLocation, RuleOwner, Runtime,
    Verdict,
};
use haft_web::client::{Client, DnsLookup, Settings};
use haft_web::fetch::{Cache, Fetcher};
use haft_web::guard::HostPatterns;
use haft_web::search::{Engine, EngineKind, Searcher};
use serde_json::{Value, json};
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

/// Settings of a test session.
#[derive(Default)]
pub(crate) struct Bed {
    pub(crate) settings: Settings,
    pub(crate) engines: Vec<Engine>,
    pub(crate) cache: Option<PathBuf>,
    pub(crate) policy: Policy,
    pub(crate) state: Option<PathBuf>,
}

impl Bed {
    /// Allows these hosts, wherever they are.
    pub(crate) fn allowing(hosts: &[&str]) -> Self {
        Self {
            settings: Settings {
                allow: HostPatterns::parse(hosts).expect("entries"),
                ..Settings::default()
            },
            ..Self::default()
        }
    }

    pub(crate) fn dns(mut self, dns: DnsLookup) -> Self {
        self.settings.dns = dns;
        self
    }

    pub(crate) fn cached(mut self, folder: PathBuf) -> Self {
        self.cache = Some(folder);
        self
    }

    pub(crate) fn rules(mut self, rules: &[(Verdict, Option<&str>)]) -> Self {
        let place = RuleLocation {
            file: "test".to_owned(),
            line: 1,
        };
        let rules = rules.iter().map(|(verdict, host)| {
            let mut draft = RuleDraft::new(*verdict, "web_fetch", place.clone());
            draft.host = host.map(str::to_owned);
            Rule::new(draft).expect("a rule")
        });
        self.policy = Policy::new(vec![RuleFile {
            owner: RuleOwner::User,
            rules: rules.collect(),
        }]);
        self
    }

    pub(crate) fn session(self) -> Runtime {
        let client = Client::new(self.settings).expect("a client");
        let fetcher = Fetcher::new(client.clone(), self.cache.map(Cache::new));
        let searcher = Searcher::new(client, self.engines);
        let mut builder = Runtime::builder()
            .dir(env!("CARGO_TARGET_TMPDIR"))
            .policy(self.policy)
            .approve(Approve::Ask)
            .preset("web");
        if let Some(state) = self.state {
            builder = builder.folders(haft::Folders {
                state: Some(state),
                ..haft::Folders::default()
            });
        }
        for tool in haft_web::tools(fetcher, searcher) {
            builder = builder.own_tool(tool, Listed::ByPreset);
        }
        builder.build().expect("a session")
    }
}

/// A session that may connect to this server.
pub(crate) fn reaching(server: &Server) -> Runtime {
    Bed::allowing(&[&format!("127.0.0.1:{}", server.port)]).session()
}

pub(crate) async fn fetch(runtime: &Runtime, url: &str) -> Reply {
    runtime.call("web_fetch", json!({ "url": url })).await
}

/// A page as a server sends it.
pub(crate) fn page(content_type: &str, body: impl AsRef<[u8]>) -> Step {
    answer("200 OK", &[("content-type", content_type)], body)
}

pub(crate) fn html(body: &str) -> Step {
    page("text/html; charset=utf-8", body)
}

/// Returns the text of a successful reply.
pub(crate) fn read(reply: &Reply) -> String {
    assert!(!reply.is_error(), "{}", reply.text());
    reply.text()
}

/// Returns the text of a failed reply and its outcome.
pub(crate) fn failure(reply: &Reply) -> (String, String) {
    assert!(reply.is_error(), "{}", reply.text());
    let outcome = reply.details().get("outcome").and_then(Value::as_str);
    (reply.text(), outcome.unwrap_or_default().to_owned())
}

pub(crate) fn duckduckgo(base: &str) -> Engine {
    Engine::new(EngineKind::DuckDuckGo, Some(base), None).expect("an engine")
}

/// A name, and its addresses for each lookup.
type Meaning = (String, Vec<Vec<IpAddr>>);

/// DNS records set by a test: each lookup takes the next answer, the last one is repeated.
#[derive(Clone, Default)]
pub(crate) struct Book {
    answers: Arc<Mutex<Vec<Meaning>>>,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Book {
    pub(crate) fn with(self, name: &str, answers: &[&[&str]]) -> Self {
        let answers = answers
            .iter()
            .map(|answer| {
                answer
                    .iter()
                    .map(|address| address.parse().expect("an address"))
                    .collect()
            })
            .collect();
        let mut all = self.answers.lock().expect("answers");
        all.push((name.to_owned(), answers));
        drop(all);
        self
    }

    pub(crate) fn dns(&self) -> DnsLookup {
        let book = self.clone();
        DnsLookup::custom(move |name| {
            let found = book.next(&name);
            async move { found }.boxed()
        })
    }

    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().expect("names").clone()
    }

    fn next(&self, name: &str) -> Vec<IpAddr> {
        self.asked.lock().expect("names").push(name.to_owned());
        let mut all = self.answers.lock().expect("answers");
        let Some((_, answers)) = all.iter_mut().find(|(known, _)| known == name) else {
            return Vec::new();
        };
        match answers.len() {
            0 => Vec::new(),
            1 => answers[0].clone(),
            _ => answers.remove(0),
        }
    }
}
