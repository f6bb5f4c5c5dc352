//! One tree for the toolset `deepagents`: a folder on disk at `/`, and notes in the
//! session at `/notes`. A custom tool counts its calls.
//!
//! `cargo run -p haft --example a_tree_of_backends`
#![expect(clippy::print_stdout, reason = "an example shows its result")]

use haft::prelude::*;
use haft::{Backing, Disk, Runtime};

/// Return how often this tool was called.
#[derive(Deserialize, JsonSchema)]
struct Args {}

struct HowOften;

impl Tool for HowOften {
    const NAME: &'static str = "how_often";
    const EFFECT: Effect = Effect::Pure;
    type Args = Args;

    async fn call(&self, _: Args, cx: &Context) -> Result<Reply, Error> {
        let times = cx.state().update("how_often", |times| {
            *times = json!(times.as_u64().unwrap_or(0) + 1);
            times.clone()
        });
        Ok(Reply::json(json!({ "status": "success", "times": times })))
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let runtime = Runtime::builder()
        .dir(folder.path())
        .toolset("deepagents")
        .backend_factory(|_session| {
            Ok(Backing::Routes(vec![
                ("/notes".to_owned(), Backing::state()),
                ("/".to_owned(), Backing::Disk(Disk::default())),
            ]))
        })
        .tool(HowOften)
        .build()?;

    for (tool, arguments) in [
        (
            "write_file",
            json!({ "file_path": "/notes/plan.md", "content": "1. Think\n" }),
        ),
        (
            "write_file",
            json!({ "file_path": "/main.py", "content": "print('think')\n" }),
        ),
        (
            "grep",
            json!({ "pattern": "hink", "output_mode": "content" }),
        ),
        ("how_often", json!({})),
        ("how_often", json!({})),
    ] {
        println!("{}", runtime.call(tool, arguments).await.text());
    }
    let on_disk: Vec<_> = folder.path().read_dir()?.flatten().collect();
    println!("on the disk: {}", on_disk.len());
    Ok(())
}
