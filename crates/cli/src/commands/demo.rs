//! `haft demo`: a short tour. Every call is real, in a folder that is gone
//! afterwards.

use super::call::shown;
use crate::args::Shared;
use crate::exit::{Exit, Failure};
use crate::output::{self, Paint};
use crate::signals::{self, Signals};
use crate::{env, log, session, text};
use haft::Runtime;
use haft::ops::executor::sandbox::Network;
use haft::ops::text::decode::visible;
use serde_json::{Value, json};

/// A part of the tour: why, what is called, with what.
struct Stop {
    story: &'static str,
    tool: &'static str,
    arguments: Value,
}

/// Goes through the tour.
pub(crate) fn run(shared: &Shared) -> Result<Exit, Failure> {
    log::start(shared.log.as_deref().unwrap_or("warn"), &[]);
    let folder = tempfile::Builder::new()
        .prefix("haft-demo-")
        .tempdir()
        .map_err(|error| Failure::failed(format!("cannot make a scratch folder: {error}")))?;
    let work = folder.path().join("work");
    std::fs::create_dir(&work)
        .map_err(|error| Failure::failed(format!("cannot make a scratch folder: {error}")))?;
    let runtime = Runtime::builder()
        .dir(work)
        .every_tool()
        .folders(haft::Folders {
            // A tour leaves nothing behind, outputs neither.
            state: Some(folder.path().join("state")),
            ..env::folders()
        })
        .commands(session::here(Network::Off, &[]))
        .build()
        .map_err(|error| Failure::failed(error.to_string()))?;
    let exit = signals::block_on(async {
        let mut signals = Signals::listen()?;
        tokio::select! {
            toured = tour(&runtime) => toured.map(|()| Exit::Done),
            exit = signals.next() => Ok(exit),
        }
    })?;
    drop(runtime);
    folder
        .close()
        .map_err(|error| Failure::failed(format!("cannot remove the scratch folder: {error}")))?;
    if exit == Exit::Done {
        goodbye()?;
    }
    Ok(exit)
}

fn goodbye() -> Result<(), Failure> {
    let paint = Paint::for_stdout();
    output::raw(&format!(
        "\n{}\n  haft tools               what a model sees\n  \
         haft call ls path=.      one call in this folder\n  \
         haft mcp                 serve the tools to an MCP client\n",
        paint.bold("The scratch folder is gone. Next:")
    ))
}

async fn tour(runtime: &Runtime) -> Result<(), Failure> {
    let paint = Paint::for_stdout();
    output::raw(&format!(
        "{}\nBelow, every call and reply is real, in a scratch folder.\n",
        paint.bold("A model works through tools; haft is what it holds them by.")
    ))?;
    // A version without a tool has a tour without it.
    let known = runtime.tools().names();
    for stop in stops()
        .into_iter()
        .filter(|stop| known.iter().any(|name| name == stop.tool))
    {
        let reply = runtime.call(stop.tool, stop.arguments.clone()).await;
        let mut out = format!("\n{}\n", paint.bold(stop.story));
        for line in typed(&stop) {
            out.push_str(&format!("{}\n", paint.cyan(&format!("> {line}"))));
        }
        let mut first = true;
        for line in text::wrap(&visible(&shown(&reply)), text::WIDTH - 2) {
            let line = if reply.is_error() && first {
                paint.red(&line)
            } else {
                line
            };
            first = false;
            out.push_str(&format!("{} {line}\n", paint.dim("|")));
        }
        output::raw(&out)?;
    }
    Ok(())
}

/// The call, on one line if it fits, else with a line for each argument.
fn typed(stop: &Stop) -> Vec<String> {
    let whole = format!("{} {}", stop.tool, stop.arguments);
    if whole.chars().count() <= text::WIDTH - 2 {
        return vec![whole];
    }
    let arguments = stop.arguments.as_object().into_iter().flatten();
    let mut lines = vec![stop.tool.to_owned()];
    lines.extend(arguments.map(|(name, value)| format!("  {name}: {value}")));
    lines
}

fn stops() -> Vec<Stop> {
    let stop = |story, tool, arguments| Stop {
        story,
        tool,
        arguments,
    };
    vec![
        stop(
            "It writes a file; folders on the way are made.",
            "write",
            json!({ "path": "src/greet.py", "content": "def greet(name):\n\treturn \"hello \" + name\n" }),
        ),
        stop(
            "It reads it back.",
            "read",
            json!({ "path": "src/greet.py" }),
        ),
        stop(
            "It edits from memory and gets the indentation wrong. The failure teaches.",
            "edit",
            json!({ "path": "src/greet.py", "old_text": "    return \"hello \" + name", "new_text": "    return f\"hello {name}\"" }),
        ),
        stop(
            "So the next try is right.",
            "edit",
            json!({ "path": "src/greet.py", "old_text": "\treturn \"hello \" + name", "new_text": "\treturn f\"hello {name}\"" }),
        ),
        stop(
            "It searches; the last line says what was searched.",
            "grep",
            json!({ "pattern": "hello" }),
        ),
        stop(
            "It finds files by name.",
            "find",
            json!({ "pattern": "*.py" }),
        ),
        stop("It lists a folder.", "ls", json!({ "path": "src" })),
        stop(
            "It runs a command, in a sandbox. Failing is a result; the code is the last line.",
            "bash",
            json!({ "command": "wc -l src/*; touch /usr/mine" }),
        ),
        stop(
            "What is left in the background holds nothing up, and is named.",
            "bash",
            json!({ "command": "sleep 1000 & echo started" }),
        ),
        stop(
            "A wrong argument is named, and nothing runs.",
            "read",
            json!({ "path": "src/greet.py", "ofset": 1 }),
        ),
        stop(
            "Beyond its folder it may not write.",
            "edit",
            json!({ "path": "/etc/hosts", "old_text": "# written by haft demo", "new_text": "" }),
        ),
    ]
}
