//! `haft trust`: shows what this folder wants to run, and records the user's trust.

use crate::args::{Shared, TrustArgs};
use crate::ask;
use crate::exit::{Exit, Failure};
use crate::output::{self, Paint};
use crate::session;
use haft::ops::text::decode::visible;
use haft_config::external;
use haft_config::trust::{Item, Trust};

/// Runs the command.
pub(crate) fn run(shared: &Shared, args: &TrustArgs) -> Result<Exit, Failure> {
    // Load the settings as if the folder were trusted, because that is what the user
    // decides about.
    let settings = session::settings(&Shared {
        trust: true,
        ..shared.clone()
    })?;
    let trust = Trust::load(
        settings.folders.state.as_deref(),
        &settings.paths.started,
        false,
    );
    if args.revoke {
        if !trust.has_trusted() {
            output::text("This folder was not trusted.\n")?;
            return Ok(Exit::Done);
        }
        trust.set(&[])?;
        output::text("This folder is no longer trusted.\n")?;
        return Ok(Exit::Done);
    }
    let (items, problems) = external::of_project(&settings);
    let all = items.clone();
    for problem in &problems {
        output::note(problem);
    }
    let folder = visible(&settings.paths.started.display().to_string());
    if items.is_empty() {
        output::text(&format!("Nothing in {folder} needs trust.\n"))?;
        return Ok(Exit::Done);
    }
    // Hash the items before asking, so that only what was shown is trusted, even if a
    // file changes meanwhile.
    let mut seen = Vec::new();
    for item in items {
        let hash = item.pin.hash().map_err(Failure::failed)?;
        let is_same = |(other, known): &(Item, String)| {
            (other.kind, &other.name, known) == (item.kind, &item.name, &hash)
        };
        if !seen.iter().any(is_same) {
            seen.push((item, hash));
        }
    }
    output::raw(&format!(
        "{folder} asks to run or use:

{}",
        listed(&seen, &all, &trust)
    ))?;
    if seen.iter().all(|(item, _)| trust.allows(item)) {
        output::text("\nAll of it is already trusted.\n")?;
        return Ok(Exit::Done);
    }
    if !args.yes && !confirm()? {
        output::text("Not trusted; nothing changed.\n")?;
        return Ok(Exit::Failed);
    }
    trust.set(&seen)?;
    output::text(closing(&seen))?;
    Ok(Exit::Done)
}

/// Explains what trusting these items means.
fn closing(seen: &[(Item, String)]) -> &'static str {
    let is_checked = |(item, _): &(Item, String)| item.kind != external::STARTED;
    match seen.iter().any(is_checked) {
        true => {
            "\nTrusted in their current form. If one of these files changes, it will not run until\nyou review it again; files that they load are not checked. The project's programs\nhave network access if commands do.\n"
        }
        false => {
            "\nTrusted. Your own plugins, MCP servers and tools may start programs in this folder,\neven after those change.\n"
        }
    }
}

fn listed(seen: &[(Item, String)], all: &[Item], trust: &Trust) -> String {
    let style = Paint::for_stdout();
    let mut out = String::new();
    for (item, hash) in seen {
        let short: String = hash.chars().take(12).collect();
        let state = match (trust.allows(item), trust.trusted_before(item, all)) {
            (true, _) => "trusted",
            (false, true) => "changed",
            (false, false) => "new",
        };
        out.push_str(&format!(
            "  {} {} ({state}, {short})\n      {}\n",
            item.kind,
            style.bold(&on_a_line(&item.name)),
            on_a_line(&item.shown)
        ));
        for file in &item.pin.files {
            let mut shown = file.display().to_string();
            let real = haft::ops::scope::real(file).filter(|real| real != file);
            if let Some(real) = real {
                shown.push_str(&format!(" -> {}", real.display()));
            }
            out.push_str(&format!("      {}\n", style.dim(&on_a_line(&shown))));
        }
        for remark in &item.remarks {
            out.push_str(&format!("      {}\n", on_a_line(remark)));
        }
    }
    out
}

/// Keeps a text on one line, so that it cannot imitate another entry.
fn on_a_line(text: &str) -> String {
    visible(text).replace('\n', "\\n").replace('\t', "\\t")
}

/// Asks the user.
fn confirm() -> Result<bool, Failure> {
    if !output::can_ask() {
        return Err(Failure::usage("cannot prompt without a terminal")
            .hint("pass `--yes` to trust without asking"));
    }
    ask::confirm("\nTrust it? [y/N] ")
}
