//! Compares tool calls over many files in a store with the same calls on disk.
//!
//! `cargo run --release -p haft-store --example speed [files] [folders] [only]`
#![expect(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a measurement shows its result, and lays files on the disk itself"
)]

use haft_ops::backend::{Expect, Local};
use haft_ops::glob::{Dots, Glob, Kinds, Matching};
use haft_ops::list::{Hidden, List};
use haft_ops::scope::{Mode, ScopeConfig};
use haft_ops::search::{Collect, IgnoreFiles, Pattern, Search};
use haft_ops::{Access, Backend, Scope};
use haft_store::{Database, Store};
use std::time::{Duration, Instant};

type Failure = Box<dyn std::error::Error>;

const ROUNDS: usize = 15;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let mut number = |default: usize| {
        let given = arguments.next().map(|given| given.parse());
        given.unwrap_or(Ok(default))
    };
    let (files, folders) = (number(10_000)?, number(100)?);
    let folder = tempfile::TempDir::new_in(".")?;
    let disk_root = folder.path().join("disk");
    std::fs::create_dir(&disk_root)?;
    let disk = Scope::disk(ScopeConfig {
        work_dir: disk_root.clone(),
        roots: Vec::new(),
        readable: Vec::new(),
        home: None,
        git_configs: Vec::new(),
        own: Vec::new(),
        protect: Vec::new(),
        temp: None,
        rules: Mode::Workspace.rules(),
    })?;
    let database = Database::open(folder.path().join("store.db"))?;
    let store = Store::new(database, "speed");
    let began = Instant::now();
    for file in 0..files {
        let name = format!("d{:04}/file{file:05}.txt", file % folders);
        let text = content(file);
        let path = disk_root.join(&name);
        std::fs::create_dir_all(path.parent().ok_or("no parent")?)?;
        std::fs::write(path, &text)?;
        let path = Scope::detached().resolve(&name, Access::Write)?;
        store.write(&path, text.into(), Expect::Absent).await?;
    }
    println!(
        "{files} files in {folders} folders; {:.0?} a write",
        began.elapsed() / u32::try_from(files)?
    );
    let roads: [(&str, &dyn Backend, Scope); 2] = [
        ("disk", &Local::new(), disk),
        ("store", &store, Scope::detached()),
    ];
    let only = arguments.next().unwrap_or_default();
    for name in [
        "ls",
        "ls all",
        "glob",
        "grep few",
        "grep none",
        "read 1000",
        "stat 1000",
    ]
    .into_iter()
    .filter(|name| name.starts_with(&only))
    {
        let mut medians = Vec::new();
        for (road, backend, scope) in &roads {
            let mut times = Vec::new();
            let mut found = 0;
            for _ in 0..ROUNDS {
                let began = Instant::now();
                found = call(name, *backend, scope, files, folders).await?;
                times.push(began.elapsed());
            }
            times.sort();
            let median = times.get(ROUNDS / 2).copied().unwrap_or_default();
            println!("{name:10} {road:6} {median:>9.2?}  ({found})");
            medians.push(median);
        }
        if let [disk, store] = medians[..] {
            println!("{name:10} ratio  {:.2}", ratio(store, disk));
        }
    }
    Ok(())
}

fn ratio(one: Duration, other: Duration) -> f64 {
    one.as_secs_f64() / other.as_secs_f64()
}

fn content(file: usize) -> String {
    let mut text = String::new();
    while text.len() < 2000 {
        text.push_str(&format!(
            "line {} of file {file} says nothing\n",
            text.len()
        ));
    }
    if file.is_multiple_of(100) {
        text.push_str("here is the needle\n");
    }
    text
}

async fn call(
    name: &str,
    backend: &dyn Backend,
    scope: &Scope,
    files: usize,
    folders: usize,
) -> Result<usize, Failure> {
    let root = scope.resolve(".", Access::Read)?;
    Ok(match name {
        "ls" => {
            let path = scope.resolve("d0000", Access::Read)?;
            let request = List {
                path,
                hidden: Hidden::Show,
            };
            haft_ops::list::directory(backend, &request)
                .await?
                .entries
                .len()
        }
        "ls all" => {
            let mut found = 0;
            for folder in 0..folders {
                let path = scope.resolve(&format!("d{folder:04}"), Access::Read)?;
                found += backend.list(&path).await?.len();
            }
            found
        }
        "glob" => {
            let request = Glob {
                path: root,
                matching: Matching::NameContains("7".to_owned()),
                dots: Dots::Match,
                kinds: Kinds::Files,
                ignored: IgnoreFiles::Honour,
                max: 1000,
                deadline: None,
                cancel: tokio_util::sync::CancellationToken::new(),
            };
            let found = haft_ops::glob::entries(backend, request, &|_| {}).await?;
            usize::try_from(found.total)?
        }
        "read 1000" => {
            for file in 0..1000.min(files) {
                let name = format!("d{:04}/file{file:05}.txt", file % folders);
                let path = scope.resolve(&name, Access::Read)?;
                haft_ops::read::whole(backend, &path, 1 << 20).await?;
            }
            1000
        }
        "stat 1000" => {
            for file in 0..1000.min(files) {
                let name = format!("d{:04}/file{file:05}.txt", file % folders);
                backend.stat(&scope.resolve(&name, Access::Read)?).await?;
            }
            1000
        }
        grep => {
            let text = if grep == "grep few" {
                "needle"
            } else {
                "thimble"
            };
            let request = Search {
                path: root,
                pattern: Pattern::Literal(text.to_owned()),
                case: haft_ops::search::Case::Sensitive,
                glob: None,
                collect: Collect::Lines,
                context: 0,
                max_matches: 1000,
                max_line: 500,
                deadline: None,
                cancel: tokio_util::sync::CancellationToken::new(),
            };
            let found = haft_ops::search::files(backend, request, &|_| {}).await?;
            usize::try_from(found.searched)?
        }
    })
}
