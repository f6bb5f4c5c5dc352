//! The files of a session as code in `haft-sandbox` sees them, one request at a time.
#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test prepares files itself, and fails by panicking"
)]

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use haft::guest::{Fetch, Guest, GuestRequest, GuestResponse, Refusal};
use haft::prelude::*;
use haft::{
    Backing, Folders, Policy, Rule, RuleDraft, RuleFile, RuleLocation, RuleOwner, Runtime, Verdict,
};
use serde_json::Value;
use std::path::PathBuf;
use std::sync::Arc;

/// A tool that makes the request in its arguments.
struct Asks(Guest);

/// Makes a request.
#[derive(Deserialize, JsonSchema)]
struct Args {
    /// The request.
    ask: Value,
}

impl Tool for Asks {
    const NAME: &'static str = "asks";
    const EFFECT: Effect = Effect::Execute;
    type Args = Args;

    async fn call(&self, args: Args, cx: &Context) -> Result<Reply, Error> {
        let ask: GuestRequest = serde_json::from_value(args.ask).unwrap();
        let told = self.0.answer(cx, ask).await;
        Ok(Reply::json(serde_json::to_value(told).unwrap()))
    }
}

struct Bed {
    runtime: Runtime,
    work: PathBuf,
    _temp: tempfile::TempDir,
}

impl Bed {
    fn new(backing: Option<Backing>, rules: Vec<Rule>) -> Self {
        let temp = tempfile::TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let work = temp.path().join("work");
        std::fs::create_dir_all(work.join("src")).unwrap();
        std::fs::write(work.join("a.txt"), "one\n").unwrap();
        std::fs::write(temp.path().join("secret"), "canary").unwrap();
        let guest = Guest {
            index: Some(Arc::new(OneFile)),
        };
        let mut builder = Runtime::builder()
            .dir(&work)
            .toolset("deepagents")
            .tool(Asks(guest))
            .folders(Folders {
                state: Some(temp.path().join("state")),
                ..Folders::default()
            })
            .policy(Policy::new(vec![RuleFile {
                owner: RuleOwner::User,
                rules,
            }]));
        if let Some(backing) = backing {
            builder = builder.backend(backing);
        }
        Self {
            runtime: builder.build().unwrap(),
            work,
            _temp: temp,
        }
    }

    async fn ask(&self, ask: GuestRequest) -> GuestResponse {
        let ask = serde_json::to_value(ask).unwrap();
        let reply = self.runtime.call("asks", json!({ "ask": ask })).await;
        assert!(!reply.is_error(), "{}", reply.text());
        serde_json::from_str(&reply.text()).unwrap()
    }

    async fn refused(&self, ask: GuestRequest) -> (Refusal, String) {
        match self.ask(ask).await {
            GuestResponse::Refused { why, message } => (why, message),
            other => panic!("{other:?}"),
        }
    }

    async fn read(&self, path: &str) -> (String, String) {
        match self.ask(GuestRequest::Read { path: path.into() }).await {
            GuestResponse::Data { data, version } => {
                let bytes = STANDARD.decode(data).unwrap();
                (String::from_utf8(bytes).unwrap(), version)
            }
            other => panic!("{other:?}"),
        }
    }

    async fn version(&self, path: &str) -> String {
        match self.ask(GuestRequest::Stat { path: path.into() }).await {
            GuestResponse::Stat(seen) => seen.version,
            other => panic!("{other:?}"),
        }
    }
}

struct OneFile;

#[async_trait::async_trait]
impl Fetch for OneFile {
    async fn fetch(&self, _url: &str) -> Result<Vec<u8>, String> {
        Ok(b"fetched".to_vec())
    }

    fn host(&self, url: &str) -> Option<String> {
        url.starts_with("https://index.example/")
            .then(|| "index.example".to_owned())
    }
}

fn write(path: &str, text: &str, was: Option<String>) -> GuestRequest {
    GuestRequest::Write {
        path: path.into(),
        data: STANDARD.encode(text),
        was,
    }
}

fn rule(verdict: Verdict, tool: &str, path: Option<&str>, host: Option<&str>) -> Rule {
    let place = RuleLocation {
        file: "rules".into(),
        line: 1,
    };
    let mut draft = RuleDraft::new(verdict, tool, place);
    draft.path = path.map(str::to_owned);
    draft.host = host.map(str::to_owned);
    Rule::new(draft).unwrap()
}

#[tokio::test]
async fn existing_files_are_reported_and_missing_ones_are_not() {
    let bed = Bed::new(None, Vec::new());
    std::os::unix::fs::symlink("a.txt", bed.work.join("link")).unwrap();
    std::os::unix::fs::symlink("/nowhere", bed.work.join("broken")).unwrap();
    let GuestResponse::List { entries } = bed.ask(GuestRequest::List { path: "/".into() }).await
    else {
        panic!("no list")
    };
    let names: Vec<(&str, bool)> = entries
        .iter()
        .map(|entry| (entry.name.as_str(), entry.seen.is_dir))
        .filter(|(name, _)| *name != ".haft")
        .collect();
    assert_eq!(names, [("a.txt", false), ("link", false), ("src", true)]);
    assert_eq!(bed.read("/a.txt").await.0, "one\n");
    assert_eq!(bed.read("/link").await.0, "one\n");
    let missing = bed.refused(GuestRequest::Read { path: "/no".into() }).await;
    assert_eq!(missing.0, Refusal::NotFound);
    let folder = bed
        .refused(GuestRequest::Read {
            path: "/src".into(),
        })
        .await;
    assert_eq!(folder.0, Refusal::IsDirectory);
}

#[tokio::test]
async fn outside_paths_cannot_be_read_and_protected_ones_not_written() {
    let bed = Bed::new(None, Vec::new());
    std::os::unix::fs::symlink("../secret", bed.work.join("out")).unwrap();
    for path in ["/out", "/../secret", "~/secret", "/etc/passwd"] {
        let told = bed.ask(GuestRequest::Read { path: path.into() }).await;
        assert!(
            matches!(told, GuestResponse::Refused { .. }),
            "{path}: {told:?}"
        );
        assert!(!format!("{told:?}").contains("canary"));
    }
    for path in ["/haft.yaml", "/.git/config", "/.haft/outputs/x"] {
        let (why, message) = bed.refused(write(path, "x", None)).await;
        assert_eq!(why, Refusal::NotAllowed, "{path}: {message}");
    }
    assert!(!bed.work.join("haft.yaml").exists());
}

#[tokio::test]
async fn concurrent_changes_are_not_overwritten() {
    for backing in [None, Some(Backing::state())] {
        let is_on_disk = backing.is_none();
        let bed = Bed::new(backing, Vec::new());
        let made = bed.ask(write("/n.txt", "mine", None)).await;
        assert_eq!(made, GuestResponse::Done);
        // It exists now, so it cannot be new.
        let again = bed.refused(write("/n.txt", "other", None)).await;
        assert_eq!(again.0, Refusal::Changed);
        let (text, read) = bed.read("/n.txt").await;
        assert_eq!(text, "mine");
        let looked = bed.version("/n.txt").await;
        assert_eq!(
            bed.ask(write("/n.txt", "longer than mine", Some(looked.clone())))
                .await,
            GuestResponse::Done
        );
        for old in [read, looked] {
            let late = write("/n.txt", "late", Some(old.clone()));
            assert_eq!(bed.refused(late).await.0, Refusal::Changed);
            let late = GuestRequest::Remove {
                path: "/n.txt".into(),
                was: Some(old),
            };
            assert_eq!(bed.refused(late).await.0, Refusal::Changed);
        }
        let (text, now) = bed.read("/n.txt").await;
        assert_eq!(text, "longer than mine");
        let gone = GuestRequest::Remove {
            path: "/n.txt".into(),
            was: Some(now.clone()),
        };
        assert_eq!(bed.ask(gone).await, GuestResponse::Done);
        // A removal in the meantime is a change too.
        let late = bed.refused(write("/n.txt", "late", Some(now))).await;
        assert_eq!(late.0, Refusal::Changed);
        assert_eq!(is_on_disk, bed.work.join("a.txt").exists() && is_on_disk);
    }
}

#[tokio::test]
async fn rules_apply_to_requests_of_code() {
    let rules = vec![
        rule(Verdict::Deny, "*", Some("/secret/**"), None),
        rule(Verdict::Ask, "*", Some("/asked/**"), None),
        rule(Verdict::Deny, "*", None, Some("index.example")),
    ];
    let bed = Bed::new(None, rules);
    for folder in ["secret", "asked"] {
        std::fs::create_dir(bed.work.join(folder)).unwrap();
        std::fs::write(bed.work.join(folder).join("f"), "canary").unwrap();
        let read = GuestRequest::Read {
            path: format!("/{folder}/f"),
        };
        let (why, message) = bed.refused(read).await;
        assert_eq!(why, Refusal::NotAllowed, "{message}");
        let write = write(&format!("/{folder}/g"), "x", None);
        assert_eq!(bed.refused(write).await.0, Refusal::NotAllowed);
    }
    assert_eq!(bed.read("/a.txt").await.0, "one\n");
    let url = "https://index.example/six/".to_owned();
    let (_, message) = bed.refused(GuestRequest::Fetch { url }).await;
    assert!(!message.contains("fetched"), "{message}");
}

#[tokio::test]
async fn only_files_of_the_package_index_are_fetched() {
    let bed = Bed::new(None, Vec::new());
    let url = "https://index.example/six/".to_owned();
    assert!(matches!(
        bed.ask(GuestRequest::Fetch { url }).await,
        GuestResponse::Data { .. }
    ));
    let url = "https://elsewhere.example/".to_owned();
    let (_, message) = bed.refused(GuestRequest::Fetch { url }).await;
    assert_eq!(message, "the URL is not from the package index");
}

#[tokio::test]
async fn saved_data_can_be_read() {
    let bed = Bed::new(None, Vec::new());
    let mut paths = Vec::new();
    for name in ["stdout", "unsaved-1"] {
        let ask = GuestRequest::Keep {
            name: name.into(),
            data: STANDARD.encode(name),
        };
        let GuestResponse::Kept { path: Some(path) } = bed.ask(ask).await else {
            panic!("not kept")
        };
        assert_eq!(bed.read(&path).await.0, name);
        paths.push(path);
    }
    assert_ne!(paths[0], paths[1]);
}
