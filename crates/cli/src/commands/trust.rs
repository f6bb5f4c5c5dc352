//! `haft trust`: what this folder would run, and whether it may.

use crate::args::{Shared, TrustArgs};
use crate::exit::{Exit, Failure};
use crate::output::{self, Paint};
use crate::session;
use crate::trust::{Item, Trust};
use crate::{ask, external};
use haft::ops::text::decode::visible;

/// Shows it, asks, and keeps the answer.
pub(crate) fn run(shared: &Shared, args: &TrustArgs) -> Result<Exit, Failure> {
    // As it would be once it is trusted: that is what somebody says yes to.
    let settings = session::settings(&Shared {
        trust: true,
        ..shared.clone()
    })?;
    let trust = Trust::load(settings.folders.state.as_deref(), &settings.started, false);
    if args.revoke {
        trust.set(&[])?;
        output::text("Nothing of this folder is trusted any more.\n")?;
        return Ok(Exit::Done);
    }
    let (items, problems) = external::of_project(&settings);
    let all = items.clone();
    for problem in &problems {
        output::note(problem);
    }
    let folder = visible(&settings.started.display().to_string());
    if items.is_empty() {
        output::text(&format!("{folder} has nothing that would run.\n"))?;
        return Ok(Exit::Done);
    }
    // What is trusted is what is shown, not what it may be once somebody said yes.
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
        "{folder} would run:

{}",
        listed(&seen, &all, &trust)
    ))?;
    if seen.iter().all(|(item, _)| trust.allows(item)) {
        output::text("\nAll of it is trusted already.\n")?;
        return Ok(Exit::Done);
    }
    if !args.yes && !yes()? {
        output::text("Nothing was changed.\n")?;
        return Ok(Exit::Failed);
    }
    trust.set(&seen)?;
    output::text(
        "\nTrusted, as it is now. When one of these files changes, it is not run until it is\nlooked at again; what they load is not watched. What the project itself brings\nhas the network where commands have it.\n",
    )?;
    Ok(Exit::Done)
}

fn listed(seen: &[(Item, String)], all: &[Item], trust: &Trust) -> String {
    let style = Paint::for_stdout();
    let mut out = String::new();
    for (item, hash) in seen {
        let short: String = hash.chars().take(12).collect();
        let state = match (trust.allows(item), trust.knew(item, all)) {
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

/// A text that stays on its line, so that it cannot pass for another entry.
fn on_a_line(text: &str) -> String {
    visible(text).replace('\n', "\\n").replace('\t', "\\t")
}

/// Asks the person at this terminal.
fn yes() -> Result<bool, Failure> {
    if !output::can_ask() {
        return Err(Failure::usage("nobody is here to say yes").hint("`haft trust --yes` says it"));
    }
    ask::yes("\nTrust it? [y/N] ")
}
