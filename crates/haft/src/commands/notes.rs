//! Notes about a command in addition to its output.

use crate::runtime::Session;
use crate::{Context, Reply};
use haft_ops::exec::{Confined, Done, Finding, Objection, RefusedConfig};
use haft_ops::executor::sandbox::{Enforcement, Network, Request};
use haft_ops::executor::{Ended, Exit};
use haft_ops::scope::{Reading, Writing};
use haft_ops::text::decode::lossy;
use serde_json::{Value, json};

/// What the kernel seems to have refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refused {
    Files,
    Network,
    /// It could be either.
    Unclear,
}

/// Phrases that programs print when the kernel refused something, at the end of a line or
/// before a colon. A busy file is a protected one: nothing can be moved there.
const REFUSALS: [(&str, Refused); 11] = [
    ("permission denied", Refused::Files),
    ("read-only file system", Refused::Files),
    ("device or resource busy", Refused::Files),
    ("operation not permitted", Refused::Unclear),
    ("network is unreachable", Refused::Network),
    ("temporary failure in name resolution", Refused::Network),
    ("name or service not known", Refused::Network),
    ("could not resolve host", Refused::Network),
    ("couldn't connect to server", Refused::Network),
    ("connect to server", Refused::Network),
    ("network is down", Refused::Network),
];

/// The same in the form of Python, Rust, Go and Node, anywhere in a line.
const CODES: [(&str, Refused); 12] = [
    ("[errno 1]", Refused::Unclear),
    ("[errno 13]", Refused::Files),
    ("[errno 16]", Refused::Files),
    ("[errno 30]", Refused::Files),
    ("[errno 101]", Refused::Network),
    ("[errno -2]", Refused::Network),
    ("[errno -3]", Refused::Network),
    ("(os error 1)", Refused::Unclear),
    ("(os error 13)", Refused::Files),
    ("(os error 16)", Refused::Files),
    ("(os error 30)", Refused::Files),
    ("eai_again", Refused::Network),
];

/// Maximum number of changed paths that are listed.
const MAX_LISTED: usize = 20;

/// Returns notes in brackets, one per line: processes left running, protected paths that
/// changed, and whether the sandbox is the likely cause of a failure.
pub(crate) fn notes(done: &Done, cx: &Context) -> Vec<String> {
    notes_within(done, cx, cx.sandbox_request())
}

/// Same as [`notes`], for a program with its own sandbox.
pub(crate) fn notes_within(done: &Done, cx: &Context, request: Option<&Request>) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(question) = &done.finished.waiting_for_input {
        notes.push(format!(
            "[the command seems to wait for input: '{question}']"
        ));
        notes.push("[it was stopped, because no user can answer; pass the answer as an option, through a pipe or in a file]".to_owned());
    }
    if !done.finished.survivors.is_empty() {
        let names: Vec<String> = done
            .finished
            .survivors
            .iter()
            .take(10)
            // In a sandbox, other commands cannot see this process id.
            .map(|left| {
                // Programs choose their own names.
                let name = left.name.escape_debug();
                match done.confined {
                    Confined::Off => format!("{name} (pid {})", left.pid),
                    Confined::By(_) => name.to_string(),
                }
            })
            .collect();
        let more = done.finished.survivors.len().saturating_sub(names.len());
        let more = if more > 0 {
            format!(" and {more} more")
        } else {
            String::new()
        };
        let names = names.join(", ");
        notes.push(match done.confined {
            _ if cx.is_reviewed() => format!(
                "[left in the background: {names}{more}; ended, because the user reviews this call]"
            ),
            Confined::Off => format!(
                "[still running in the background: {names}{more}; it will be ended with this session]"
            ),
            Confined::By(_) => format!(
                "[still running in the background: {names}{more}; other commands can connect to it, \
                 but not signal it, and it will be ended with this session]"
            ),
        });
    }
    notes.extend(findings(&done.findings, &cx.session));
    if git_was_kept_out(done) {
        notes.push("[git cannot change its configuration here, because it is protected; ask the user to run this git command]".to_owned());
    }
    if let Confined::By(_) = &done.confined
        && ssh_lacks_keys(done, cx)
    {
        notes.push("[commands have neither the user's ssh keys nor the known hosts; the user can let git over ssh use their agent with `ssh_agent: true` in their own settings, or the address can be one with https]".to_owned());
    }
    notes.extend(cx.network.notes());
    if let (Confined::By(enforcement), Some(refused)) = (&done.confined, looks_refused(done)) {
        let bounds = bounds(cx, request, enforcement, refused);
        let level = level(enforcement);
        // Empty if it cannot have been the sandbox.
        if !bounds.is_empty() {
            notes.push(format!(
                "[this may have been refused by the sandbox ({level}): {bounds}]"
            ));
        }
    }
    notes
}

/// Describes what commands can reach of what was refused, on one line.
fn bounds(
    cx: &Context,
    request: Option<&Request>,
    enforcement: &Enforcement,
    refused: Refused,
) -> String {
    let mut parts = Vec::new();
    if refused != Refused::Network {
        parts.push(bounds_of_files(cx, request));
    }
    if refused != Refused::Files {
        parts.extend(bounds_of_network(cx, request, enforcement).map(str::to_owned));
    }
    if cx.can_request && !parts.is_empty() {
        let more = "to ask the user for more, repeat the call with `request_access`: `network HOST`, `write FOLDER` or `unsandboxed`";
        parts.push(more.to_owned());
    }
    parts.join("; ")
}

/// Describes which files commands can reach.
fn bounds_of_files(cx: &Context, request: Option<&Request>) -> String {
    // The rules of commands; file tools may have stricter ones.
    let rules = request.map_or_else(|| cx.scope().rules(), |request| request.rules);
    let writing = match rules.writing {
        Writing::Nothing => "only $TMPDIR can be written".to_owned(),
        Writing::Roots | Writing::Anywhere => {
            let roots = if request.is_some_and(|request| !request.roots.is_empty()) {
                ", tools.roots"
            } else {
                ""
            };
            let exec_context = cx.session.exec_context.as_ref();
            let has_caches = exec_context.is_some_and(|context| context.caches.is_some());
            let caches = if has_caches { ", build caches" } else { "" };
            format!(
                "only the work folder{roots}{caches} and $TMPDIR can be written, except protected paths ({})",
                protected(cx, request)
            )
        }
    };
    let remedy = match rules.writing {
        Writing::Nothing => "",
        _ => {
            "; the user can open another folder with the rule { allow: outside_write, path: FOLDER }"
        }
    };
    let reading = match rules.reading {
        Reading::RootsAndSystem | Reading::Roots => {
            "only those and the system's folders can be read"
        }
        Reading::Anywhere | Reading::NotSecret => "secret paths cannot be read",
    };
    format!("{writing}{remedy}; {reading}")
}

/// Describes which machines commands can reach; `None` if all.
fn bounds_of_network(
    cx: &Context,
    request: Option<&Request>,
    enforcement: &Enforcement,
) -> Option<&'static str> {
    let is_full = matches!(enforcement, Enforcement::Full { .. });
    if cx.is_offline() {
        return Some("a rule puts this call under review, so it has no network");
    }
    Some(match request.map(|request| request.network) {
        Some(Network::On) => return None,
        Some(Network::Session) if is_full && cx.session.opens_hosts() => {
            "the network leads only to the hosts that the user opened (`--network HOST` opens more)"
        }
        Some(Network::Session) if is_full => {
            "other machines cannot be reached (the user can open single hosts with `--network HOST`)"
        }
        Some(Network::Session) if cx.session.opens_hosts() => {
            "there is no network, because hosts cannot be opened one by one on this machine (`--network on` opens all of it)"
        }
        _ => "there is no network (`--network on` allows it)",
    })
}

/// Lists the protected paths: those that always are, and the user's list.
fn protected(cx: &Context, request: Option<&Request>) -> String {
    let mut names = vec!["config and hooks of git".to_owned(), "haft.yaml".to_owned()];
    let listed = request.map(|request| request.protect.as_slice());
    for path in listed.unwrap_or_default() {
        let name = cx.shown(path);
        if !name.starts_with('/') && !names.contains(&name) {
            names.push(name);
        }
    }
    let more = names.len().saturating_sub(6);
    names.truncate(6);
    if more > 0 {
        names.push(format!("{more} more"));
    }
    names.join(", ")
}

/// Returns a note for each changed path, in brackets.
pub(crate) fn findings(findings: &[Finding], session: &Session) -> Vec<String> {
    // Changes that haft could not undo come first, because only some are listed.
    let (stayed, others): (Vec<_>, Vec<_>) = findings
        .iter()
        .partition(|one| matches!(one, Finding::NotMoved { .. }));
    let texts = stayed.into_iter().chain(others);
    let texts = texts.map(|place| note_about(place, session));
    let mut notes: Vec<String> = texts.take(MAX_LISTED).collect();
    let more = findings.len().saturating_sub(notes.len());
    if more > 0 {
        notes.push(format!("[and {more} more paths like these]"));
    }
    notes
}

fn note_about(finding: &Finding, cx: &Session) -> String {
    match finding {
        Finding::MovedOut { path, to } => format!(
            "[protected: {} must not be written; what the command made there was moved to {}]",
            cx.shown(path),
            to.display()
        ),
        Finding::Appeared { path } => {
            let name = path.file_name().unwrap_or_default();
            let why = if name == "haft.yaml" {
                "it is not trusted"
            } else if name == ".git" {
                "a repository: git obeys its hooks and config"
            } else {
                "it is in a protected folder"
            };
            format!("[new: {} ({why})]", cx.shown(path))
        }
        Finding::NotMoved {
            path,
            reason,
            target,
        } => {
            let then = target.as_ref().map_or_else(String::new, |target| {
                format!(" and put the link to {} back", target.display())
            });
            format!(
                "[protected: {} must not be written; what the command made there could not be moved away ({reason}) and is still there. No command runs until it is gone: ask the person to remove it{then}]",
                cx.shown(path)
            )
        }
        Finding::Restored { path } => format!(
            "[protected: {} must not be changed; the link was put back]",
            cx.shown(path)
        ),
        Finding::Changed { path } => {
            format!("[protected: {} was changed by the command]", cx.shown(path))
        }
        Finding::Repository { path } => format!(
            "[new: {} (a repository: git obeys its hooks and config)]",
            cx.shown(path)
        ),
        Finding::Dismantled { path } => format!(
            "[changed: {} is a repository and no longer has HEAD, objects and refs; put them back, or its hooks and config may be unprotected in a session with another work folder]",
            cx.shown(path)
        ),
        Finding::GitControlChanged { path } => {
            format!("[changed: {} (git obeys it)]", cx.shown(path))
        }
        Finding::ConfigRefused(RefusedConfig {
            path,
            objection: Objection::New,
        }) => format!(
            "[protected: {} was not created, because git would obey it, also when the user runs git; if it is needed, ask the user to create it]",
            cx.shown(path)
        ),
        Finding::ConfigRefused(RefusedConfig { path, objection }) => format!(
            "[protected: {} was not changed: {}]",
            cx.shown(path),
            why_refused(objection)
        ),
        Finding::UnfinishedRebase {
            path,
            commands,
            more,
        } => {
            let shown = commands.iter().map(|command| {
                let command: String = command.chars().take(200).collect();
                format!("`{}`", command.escape_debug())
            });
            let shown: Vec<String> = shown.collect();
            let (count, advice) = match more {
                0 => (String::new(), ""),
                more => (
                    format!(" and {more} more commands"),
                    "; read the file for all of them",
                ),
            };
            format!(
                "[left open: {} runs {}{count} when the rebase is continued{advice}; continue it now, or run `git rebase --abort`]",
                cx.shown(path),
                shown.join(", ")
            )
        }
        Finding::SearchIncomplete {
            folders: Some(folders),
        } => format!(
            "[only {folders} folders were searched for repositories; in the others hooks and config of git are not protected from commands: use a smaller work folder]"
        ),
        Finding::SearchIncomplete { folders: None } => {
            "[a protected file has other names, and not all of the work folder could be searched for them: commands could write it by one of those]".to_owned()
        }
    }
}

/// Says why a change to the configuration of a repository was refused, and what to do.
fn why_refused(objection: &Objection) -> String {
    match objection {
        Objection::Variables { names, more } => {
            let more = match more {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            format!(
                "commands must not set, change or remove {}{more}, because only harmless settings \
                 of git are open to them; if it is needed, ask the user to run this git command",
                names.join(", ")
            )
        }
        Objection::NotValid => "the new content is not a valid git configuration".to_owned(),
        Objection::PresentNotValid => {
            "its present content is not a valid git configuration; ask the user to repair it"
                .to_owned()
        }
        Objection::New => "git would obey it".to_owned(),
        Objection::TooLong => "the new content is longer than 1 MiB".to_owned(),
        Objection::Conflict => {
            "another program changed it at the same time; run the git command again".to_owned()
        }
        Objection::Failed { reason } => format!(
            "the new content could not be written ({reason}); try again, or ask the user to run \
             this git command"
        ),
    }
}

/// Whether git reports that its configuration cannot be replaced, as where haft does not hear
/// of its calls.
fn git_was_kept_out(done: &Done) -> bool {
    ends(done).any(|text| {
        text.lines().any(|line| {
            line.contains("could not write config file")
                && line.ends_with("Device or resource busy")
        })
    })
}

/// Whether ssh could not log in, and the user has not let commands use an agent.
fn ssh_lacks_keys(done: &Done, cx: &Context) -> bool {
    const FAILURES: [&str; 2] = [
        "Host key verification failed",
        "Permission denied (publickey",
    ];
    let environment = cx.session.exec_context.as_ref();
    let environment = environment.map(|context| context.environment.as_slice());
    let mut names = environment.unwrap_or_default().iter().map(|(name, _)| name);
    !names.any(|name| name == "SSH_AUTH_SOCK")
        && ends(done).any(|text| FAILURES.iter().any(|failure| text.contains(failure)))
}

/// Returns the beginning and the end of what the command printed, as text.
fn ends(done: &Done) -> impl Iterator<Item = String> {
    let (output, error) = (&done.finished.output, &done.finished.error);
    [&output.tail, &error.tail, &output.head, &error.head]
        .into_iter()
        .map(|bytes| {
            let from = bytes.len().saturating_sub(4 << 10);
            lossy(bytes.get(from..).unwrap_or_default()).into_owned()
        })
}

/// Returns what the kernel has refused, if the last lines look like it.
pub(crate) fn looks_refused(done: &Done) -> Option<Refused> {
    let failed = done.finished.status != Exit::Code(0);
    let in_line = |line: &str| {
        let line = line.trim_end_matches([' ', '.', '\'', '"', ')']);
        let phrase = REFUSALS.iter().find(|(words, _)| {
            // Programs print the subject before the message.
            line.strip_suffix(words).is_some_and(|before| {
                before.trim_end().ends_with([':', ',']) || failed && !before.is_empty()
            }) || line.contains(&format!("{words}:"))
        });
        let code = || CODES.iter().find(|(code, _)| line.contains(code));
        phrase.or_else(code).map(|(_, refused)| *refused)
    };
    let found = ends(done).flat_map(|text| {
        let text = text.to_lowercase();
        text.lines()
            .rev()
            .take(40)
            .filter_map(in_line)
            .collect::<Vec<_>>()
    });
    found.reduce(|one, other| if one == other { one } else { Refused::Unclear })
}

pub(crate) fn level(enforcement: &Enforcement) -> &'static str {
    match enforcement {
        Enforcement::Full { .. } => "full",
        Enforcement::Partial { .. } => "partial",
        Enforcement::None { .. } => "none",
    }
}

/// Adds details about a command for the front end.
pub(crate) fn details(mut reply: Reply, done: &Done) -> Reply {
    let finished = &done.finished;
    let (code, signal) = match finished.status {
        Exit::Code(code) => (Some(code), None),
        Exit::Signal(signal) => (Some(128 + signal), Some(signal)),
        Exit::Unknown => (None, None),
    };
    reply = reply
        .detail("exit_code", code)
        .detail(
            "duration_ms",
            u64::try_from(finished.duration.as_millis()).unwrap_or(u64::MAX),
        )
        .detail(
            "sandbox",
            match &done.confined {
                Confined::Off => "off",
                Confined::By(enforcement) => level(enforcement),
            },
        );
    if let Some(signal) = signal {
        reply = reply.detail("signal", signal);
    }
    let ended = match finished.ended {
        Ended::Itself => None,
        Ended::TimedOut => Some("timed_out"),
        Ended::Cancelled => Some("cancelled"),
        Ended::Waiting => Some("waiting_for_input"),
    };
    if let Some(ended) = ended {
        reply = reply.detail("ended", ended);
    }
    if !finished.survivors.is_empty() {
        let left: Vec<Value> = finished
            .survivors
            .iter()
            .map(|left| json!({ "pid": left.pid, "name": left.name }))
            .collect();
        reply = reply.detail("survivors", left);
    }
    reply
}
