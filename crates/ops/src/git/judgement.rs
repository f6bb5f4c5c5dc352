//! Decides whether a command may replace the content of a git configuration.

use super::harmless::is_harmless;
use super::variables::{MAX_BYTES, NotValid, Variable, parts, variables};
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of variables that a refusal names.
const MAX_NAMED: usize = 5;

/// Reason why a new content is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Objection {
    /// It sets, changes or removes variables that commands must not change.
    Variables {
        /// Names of the first few.
        names: Vec<String>,
        /// Number of further ones.
        more: usize,
    },
    /// It is not a configuration that git would accept.
    NotValid,
    /// The present content is not one, so what would change cannot be told.
    PresentNotValid,
    /// It is too long.
    TooLong,
    /// git would obey it, and it did not exist.
    New,
    /// The file has changed since the command began to change it.
    Conflict,
    /// The new content could not be published.
    Failed {
        /// What went wrong.
        reason: String,
    },
}

/// Compares a new content with the present one.
pub(super) fn judge(present: &[u8], new: &[u8]) -> Result<(), Objection> {
    if new.len() > MAX_BYTES {
        return Err(Objection::TooLong);
    }
    let guarded = |bytes: &[u8]| -> Result<Vec<Variable>, NotValid> {
        let all = variables(bytes)?.into_iter();
        Ok(all.filter(|variable| !is_harmless(variable)).collect())
    };
    let new = guarded(new).map_err(|NotValid| Objection::NotValid)?;
    let present = guarded(present).map_err(|NotValid| Objection::PresentNotValid)?;
    let values = |all: &[Variable]| {
        let mut values: BTreeMap<Vec<u8>, Vec<Option<Vec<u8>>>> = BTreeMap::new();
        for variable in all {
            let of_name = values.entry(variable.name.clone()).or_default();
            of_name.push(variable.value.clone());
        }
        values
    };
    let (before, after) = (values(&present), values(&new));
    let mut names: BTreeSet<&Vec<u8>> = before.keys().chain(after.keys()).collect();
    names.retain(|name| match (before.get(*name), after.get(*name)) {
        (Some(_), None) => !may_be_removed(name),
        (before, after) => before != after,
    });
    // Which of several names comes last can matter too, as with includes.
    let is_left = |variable: &&Variable| after.contains_key(&variable.name);
    if names.is_empty() && !present.iter().filter(is_left).eq(new.iter()) {
        names.extend(after.keys());
    }
    if names.is_empty() {
        return Ok(());
    }
    let all = names.len();
    let names: Vec<String> = names
        .into_iter()
        .take(MAX_NAMED)
        .map(|name| shown(name))
        .collect();
    let more = all - names.len();
    Err(Objection::Variables { names, more })
}

/// Whether a variable may be removed, with all of its values. `git remote remove` and `git
/// submodule deinit` remove whole sections, and without them git has no other values to use.
fn may_be_removed(name: &[u8]) -> bool {
    let (section, subsection, _) = parts(name);
    subsection.is_some() && matches!(section, b"remote" | b"branch" | b"submodule")
}

fn shown(name: &[u8]) -> String {
    let name: String = String::from_utf8_lossy(name).chars().take(100).collect();
    name.escape_debug().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(present: &str, new: &str) -> Vec<String> {
        match judge(present.as_bytes(), new.as_bytes()) {
            Ok(()) => Vec::new(),
            Err(Objection::Variables { names, .. }) => names,
            Err(other) => panic!("{other:?}"),
        }
    }

    #[test]
    fn harmless_variables_may_be_set_changed_and_removed() {
        let all = "\u{feff}[core]\r\n\tbare = false\r\n\tFileMode = true\n[user] name = \"A \\\"B\\\"\"\n\
            [remote \"origin\"]\n\turl = git@host:a/b.git\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n\
            [remote \"l\"] url = ../x y\n[remote \"s\"] url = ssh://h/p\n[remote \"i\"] url = ssh://[::1]/p\n\
            [branch \"main\"] remote = origin\n merge = refs/heads/main\n vscode-merge-base = x\n\
            [submodule \"a.b\"] url = ./a\n active = true\n update = rebase\n\
            [submodule] active = .\n[pull] rebase\n[color \"branch\"] current = red\n\
            [alias] st = status -sb\n lg = log --oneline --graph\n";
        assert_eq!(names("", all), [""; 0]);
        assert_eq!(names(all, ""), [""; 0]);
        assert_eq!(
            names(all, &all.replace("git@host:a/b.git", "https://h/c")),
            [""; 0]
        );
    }

    #[test]
    fn variables_that_run_programs_cannot_be_set_however_they_are_written() {
        for (text, name) in [
            ("[core]\n\tfsmonitor = x", "core.fsmonitor"),
            ("[CORE]FsMonitor=x", "core.fsmonitor"),
            ("[user]name=x[core]\n[core]pager", "core.pager"),
            ("[core]\\\n", ""),
            ("[core]hooksPath = \\\n x", "core.hookspath"),
            ("\u{feff}[core]\r\nsshCommand = x\r\n", "core.sshcommand"),
            ("# x\n[core] ; y\n editor = x", "core.editor"),
            ("[core]askPass=x", "core.askpass"),
            ("[core]gitProxy=x", "core.gitproxy"),
            ("[core]alternateRefsCommand=x", "core.alternaterefscommand"),
            ("[core]worktree=x", "core.worktree"),
            ("[core]bare=maybe", "core.bare"),
            ("[core]attributesFile=x", "core.attributesfile"),
            (
                "[core]repositoryformatversion=1",
                "core.repositoryformatversion",
            ),
            ("[core \"x\"]bare=true", "core.x.bare"),
            ("[core.x]bare=true", "core.x.bare"),
            (
                "[extensions]worktreeConfig=true",
                "extensions.worktreeconfig",
            ),
            ("[sequence]editor=x", "sequence.editor"),
            ("[pager]log=x", "pager.log"),
            ("[filter \"a\"]clean=x", "filter.a.clean"),
            ("[diff \"a\"]textconv=x", "diff.a.textconv"),
            ("[diff]external=x", "diff.external"),
            ("[merge \"a\"]driver=x", "merge.a.driver"),
            ("[mergetool \"a\"]cmd=x", "mergetool.a.cmd"),
            ("[difftool \"a\"]path=x", "difftool.a.path"),
            ("[alias]x=!evil", "alias.x"),
            ("[alias]x=\"!evil\"", "alias.x"),
            ("[alias]x=rebase -x evil", "alias.x"),
            ("[alias]x=log --output=f", "alias.x"),
            ("[alias \"x\"]command=!evil", "alias.x.command"),
            ("[include]path=x", "include.path"),
            (
                "[includeIf \"onbranch:m\"]path=x",
                "includeif.onbranch:m.path",
            ),
            ("[credential]helper=x", "credential.helper"),
            (
                "[credential \"https://h\"]helper=x",
                "credential.https://h.helper",
            ),
            ("[gpg]program=x", "gpg.program"),
            (
                "[gpg \"ssh\"]defaultKeyCommand=x",
                "gpg.ssh.defaultkeycommand",
            ),
            ("[commit]gpgSign=true", "commit.gpgsign"),
            (
                "[uploadpack]packObjectsHook=x",
                "uploadpack.packobjectshook",
            ),
            ("[receive]procReceiveRefs=x", "receive.procreceiverefs"),
            ("[remote \"o\"]uploadpack=x", "remote.o.uploadpack"),
            ("[remote.o]uploadpack=x", "remote.o.uploadpack"),
            ("[remote \"o\"]receivepack=x", "remote.o.receivepack"),
            ("[remote \"o\"]vcs=x", "remote.o.vcs"),
            ("[remote \"o\"]proxy=x", "remote.o.proxy"),
            ("[remote \"o\"]url=ext::evil", "remote.o.url"),
            ("[remote \"o\"]url=e\\\nxt::evil", "remote.o.url"),
            ("[remote \"o\"]url=::evil", "remote.o.url"),
            ("[remote \"o\"]url=evil://x", "remote.o.url"),
            ("[remote \"o\"]url=-x", "remote.o.url"),
            ("[remote \"o\"]pushurl=ext::evil", "remote.o.pushurl"),
            ("[branch \"b\"]remote=ext::evil", "branch.b.remote"),
            ("[branch \"b\"]mergeOptions=-s x", "branch.b.mergeoptions"),
            ("[submodule \"s\"]update=!evil", "submodule.s.update"),
            ("[submodule \"s\"]url=ext::evil", "submodule.s.url"),
            ("[url \"ext::\"]insteadOf=x", "url.ext::.insteadof"),
            ("[protocol \"ext\"]allow=always", "protocol.ext.allow"),
            ("[protocol]allow=always", "protocol.allow"),
            ("[browser \"b\"]cmd=x", "browser.b.cmd"),
            ("[man \"b\"]cmd=x", "man.b.cmd"),
            ("[help]browser=x", "help.browser"),
            ("[interactive]diffFilter=x", "interactive.difffilter"),
            ("[sendemail]smtpServer=x", "sendemail.smtpserver"),
            ("[trailer \"t\"]command=x", "trailer.t.command"),
            ("[init]templateDir=x", "init.templatedir"),
            ("[rebase]instructionFormat=%n", "rebase.instructionformat"),
            ("[gc]recentObjectsHook=x", "gc.recentobjectshook"),
            ("[gc]pruneExpire=now", "gc.pruneexpire"),
            ("[format]pretty=%x1b", "format.pretty"),
            ("[http]proxy=x", "http.proxy"),
            ("[not-known]x=y", "not-known.x"),
            ("x=y", "x"),
        ] {
            if name.is_empty() {
                assert_eq!(judge(b"", text.as_bytes()), Err(Objection::NotValid));
                continue;
            }
            assert_eq!(names("[user]name=x", text), [name], "{text:?}");
            // Those that the user has set stay.
            assert_eq!(
                names(text, &format!("{text}\n[user]name=x\n")),
                [""; 0],
                "{text:?}"
            );
        }
    }

    #[test]
    fn what_the_user_has_set_can_be_neither_changed_nor_uncovered() {
        let set = "[core]\n\tpager = less\n\thooksPath = /dev/null\n";
        assert_eq!(names(set, "[core]\n\tpager = less\n"), ["core.hookspath"]);
        assert_eq!(names(set, &set.replace("less", "more")), ["core.pager"]);
        let twice = "[include]path=a\n[include]path=b\n";
        assert_eq!(
            names(twice, "[include]path=b\n[include]path=a\n"),
            ["include.path"]
        );
        assert_eq!(names(twice, "[include]path=a\n"), ["include.path"]);
        assert_eq!(
            names(twice, &format!("{twice}[include]path=a\n")),
            ["include.path"]
        );
        // A whole remote may be removed, but not one of the programs that it names.
        let remote = "[remote \"o\"]\nurl=ext::x\nuploadpack=a\nuploadpack=b\n";
        assert_eq!(names(remote, ""), [""; 0]);
        assert_eq!(names(remote, "[remote \"o\"]\nurl=https://h/x\n"), [""; 0]);
        assert_eq!(
            names(remote, "[remote \"o\"]\nuploadpack=a\n"),
            ["remote.o.uploadpack"]
        );
    }

    #[test]
    fn long_and_damaged_contents_are_refused() {
        let long = "#".repeat(MAX_BYTES + 1);
        assert_eq!(judge(b"", long.as_bytes()), Err(Objection::TooLong));
        assert_eq!(judge(b"", b"[a"), Err(Objection::NotValid));
        assert_eq!(judge(b"[a", b""), Err(Objection::PresentNotValid));
        let many: String = (0..9)
            .map(|n| format!("[filter \"{n}\"]clean=x\n"))
            .collect();
        let Err(Objection::Variables { names, more }) = judge(b"", many.as_bytes()) else {
            panic!()
        };
        assert_eq!((names.len(), more), (MAX_NAMED, 4));
    }
}
