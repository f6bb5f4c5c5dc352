//! Both backends pass the one suite.

use haft_ops::Scope;
use haft_ops::backend::Memory;
use haft_ops::backend::local::{Litter, Local};
use haft_ops::scope::{Mode, Places};
use haft_testing::conformance;
use tempfile::TempDir;

#[tokio::test]
async fn memory() {
    conformance::all(|| (Box::new(Memory::new()), Scope::detached(), ())).await;
}

#[tokio::test]
async fn disk() {
    conformance::all(|| {
        let temp = TempDir::new().unwrap();
        let work_dir = temp.path().join("work");
        std::fs::create_dir(&work_dir).unwrap();
        let places = Places {
            work_dir,
            roots: Vec::new(),
            readable: Vec::new(),
            home: None,
            own: Vec::new(),
            protect: Vec::new(),
            temp: None,
            rules: Mode::Workspace.rules(),
        };
        let backend = Local::with_litter(Litter::new(temp.path().join("litter")));
        (Box::new(backend), Scope::disk(places).unwrap(), temp)
    })
    .await;
}
