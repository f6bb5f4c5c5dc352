//! Commands that need a second look although no rule mentions them: they delete what cannot
//! be made again, throw away uncommitted work, or send something to other machines.
//!
//! This list catches a model's mistakes and habits; it is not a boundary. It applies only to
//! commands that no rule is about.

use super::shell::Word;
use std::fmt;

/// Reason why a command needs a second look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Danger {
    /// Deletes folders with everything in them, or whatever files match.
    Deletes,
    /// Throws away changes that are not committed.
    Discards,
    /// Overwrites the history of a repository, here or elsewhere.
    Rewrites,
    /// Sends something to another machine.
    Sends,
}

impl fmt::Display for Danger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Deletes => "it deletes recursively",
            Self::Discards => "it discards uncommitted changes",
            Self::Rewrites => "it overwrites the history of a branch",
            Self::Sends => "it sends something to another machine",
        })
    }
}

/// Returns why a simple command needs a second look, if it does.
pub(super) fn of(words: &[Word], parent: Option<&[Word]>) -> Option<Danger> {
    let (program, rest) = words.split_first()?;
    let runner = parent.and_then(|words| words.first()?.program());
    let is_repeated = matches!(runner, Some("find" | "xargs"));
    let known: Vec<&str> = rest.iter().map(|word| word.known().unwrap_or("")).collect();
    let arguments = Arguments(&known);
    match program.program()? {
        "rm" | "unlink" if is_repeated => Some(Danger::Deletes),
        "rm" | "unlink" if arguments.has('r', "recursive") || arguments.has('R', "recursive") => {
            Some(Danger::Deletes)
        }
        "rm" | "unlink" if rest.iter().any(Word::is_whole_folder) => Some(Danger::Deletes),
        // A variable that may be `-rf`, in front of what is deleted.
        "rm" if rest.len() > 1 && rest.first().is_some_and(Word::may_be_options) => {
            Some(Danger::Deletes)
        }
        "find" if known.contains(&"-delete") => Some(Danger::Deletes),
        "shred" => Some(Danger::Deletes),
        "git" => git(
            known.first()?,
            &Arguments(known.get(1..).unwrap_or_default()),
        ),
        "npm" | "pnpm" | "yarn" | "bun" | "cargo" | "poetry" | "uv" | "flit" | "vsce" | "ovsx"
            if known.first() == Some(&"publish") =>
        {
            Some(Danger::Sends)
        }
        "gem" | "docker" | "podman" | "helm" | "dotnet" | "nuget"
            if known.iter().take(2).any(|word| *word == "push") =>
        {
            Some(Danger::Sends)
        }
        "twine" if known.first() == Some(&"upload") => Some(Danger::Sends),
        "ssh" | "scp" | "sftp" | "ftp" | "telnet" | "mail" | "sendmail" => Some(Danger::Sends),
        "rsync" if known.iter().any(|word| is_remote(word)) => Some(Danger::Sends),
        "curl" if uploads_with_curl(&arguments) => Some(Danger::Sends),
        "wget" if uploads_with_wget(&arguments) => Some(Danger::Sends),
        "gh" | "glab" if !only_reads(&known) => Some(Danger::Sends),
        _ => None,
    }
}

fn git(subcommand: &str, arguments: &Arguments<'_>) -> Option<Danger> {
    match subcommand {
        "clean" if arguments.has('f', "force") && !arguments.has('n', "dry-run") => {
            Some(Danger::Deletes)
        }
        "reset" if arguments.long("hard") || arguments.long("merge") => Some(Danger::Discards),
        "rm" if !arguments.long("cached")
            && (arguments.has('r', "recursive") || arguments.has('f', "force")) =>
        {
            Some(Danger::Deletes)
        }
        "read-tree" if arguments.long("reset") => Some(Danger::Discards),
        "checkout-index" if arguments.has('f', "force") => Some(Danger::Discards),
        "checkout" | "switch"
            if arguments.has('f', "force")
                || arguments.0.contains(&"--discard-changes")
                || arguments.0.iter().any(|word| *word == "--" || *word == ".")
                || names_files(arguments) =>
        {
            Some(Danger::Discards)
        }
        "restore" if !arguments.has('S', "staged") || arguments.has('W', "worktree") => {
            Some(Danger::Discards)
        }
        "stash" if matches!(arguments.0.first(), Some(&("drop" | "clear"))) => {
            Some(Danger::Discards)
        }
        "push" if is_forced(arguments) => Some(Danger::Rewrites),
        "push" | "send-email" => Some(Danger::Sends),
        "filter-branch" | "filter-repo" => Some(Danger::Rewrites),
        _ => None,
    }
}

/// Whether a checkout has more operands than the name of a branch, or one that looks like a
/// file's.
fn names_files(arguments: &Arguments<'_>) -> bool {
    let creates = arguments.has('b', "branch") || arguments.has('B', "branch");
    let operands = arguments.0.iter().filter(|word| !word.starts_with('-'));
    !creates && (operands.clone().count() > 1 || operands.clone().any(|word| has_extension(word)))
}

/// Whether a name ends like that of a file, and not like that of a version.
fn has_extension(name: &str) -> bool {
    name.rsplit_once('.').is_some_and(|(_, extension)| {
        extension.starts_with(|c: char| c.is_ascii_alphabetic())
            && extension.chars().all(|c| c.is_ascii_alphanumeric())
    })
}

/// Whether a push may overwrite or delete what is on the other side.
fn is_forced(arguments: &Arguments<'_>) -> bool {
    let long = ["--force", "--mirror", "--delete", "--prune"];
    arguments.has('f', "force")
        || arguments.has('d', "delete")
        || arguments.0.iter().any(|word| {
            long.contains(word)
                || word.starts_with("--force-")
                || word.starts_with('+')
                || word.starts_with(':')
        })
}

/// Whether the operand of a copy names another machine.
fn is_remote(word: &str) -> bool {
    let place = word.split('/').next().unwrap_or_default();
    !word.starts_with('-') && place.contains(':')
}

fn uploads_with_curl(arguments: &Arguments<'_>) -> bool {
    let long = ["--data", "--form", "--json", "--upload-file", "--mail"];
    let sends = |method: &str| !matches!(method, "GET" | "HEAD" | "OPTIONS" | "");
    let mut words = arguments.0.iter();
    arguments.has('d', "data")
        || arguments.has('F', "form")
        || arguments.has('T', "upload-file")
        || arguments
            .0
            .iter()
            .any(|word| long.iter().any(|option| word.starts_with(option)))
        || words.any(|word| word.strip_prefix("-X").is_some_and(sends))
        || arguments
            .0
            .windows(2)
            .any(|pair| matches!(pair, ["-X" | "--request", method] if sends(method)))
}

fn uploads_with_wget(arguments: &Arguments<'_>) -> bool {
    arguments.0.iter().any(|word| {
        ["--post-", "--body-", "--method=P", "--method=D"]
            .iter()
            .any(|option| word.starts_with(option))
    })
}

/// Whether a command of a forge's client only shows something.
fn only_reads(words: &[&str]) -> bool {
    let shows = [
        "view",
        "list",
        "status",
        "diff",
        "checks",
        "checkout",
        "clone",
        "search",
        "browse",
        "download",
        "watch",
        "--version",
        "--help",
        "help",
        "version",
        "completion",
        "token",
    ];
    words.is_empty() || words.iter().take(2).any(|word| shows.contains(word))
}

/// Arguments of a command; those that are not literal are empty.
struct Arguments<'a>(&'a [&'a str]);

impl Arguments<'_> {
    /// Whether a long option is among them. It may be abbreviated.
    fn long(&self, long: &str) -> bool {
        let options = self.0.iter().take_while(|word| **word != "--");
        let mut names = options.filter_map(|word| word.strip_prefix("--"));
        names.any(|name| name.len() > 1 && long.starts_with(name))
    }

    /// Whether an option is among them, alone or in a group of short ones.
    fn has(&self, short: char, long: &str) -> bool {
        let options = self.0.iter().take_while(|word| **word != "--");
        options.into_iter().any(|word| {
            match (word.strip_prefix("--"), word.strip_prefix('-')) {
                // A long option may be abbreviated.
                (Some(name), _) => name.len() > 1 && long.starts_with(name),
                (None, Some(group)) => group.contains(short),
                _ => false,
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::line;

    fn dangers(text: &str) -> Vec<Danger> {
        let line = line::read(text, false);
        line.commands
            .iter()
            .filter_map(|command| {
                let parent = command.parent.and_then(|at| line.commands.get(at));
                of(&command.words, parent.map(|parent| parent.words.as_slice()))
            })
            .collect()
    }

    #[test]
    fn dangerous_commands_are_recognised_wherever_they_are() {
        use Danger::{Deletes, Discards, Rewrites, Sends};
        for (text, danger) in [
            ("rm -rf build", Deletes),
            ("rm -r -- build", Deletes),
            ("rm build -R", Deletes),
            ("/bin/rm --recursive x", Deletes),
            ("rm --rec x", Deletes),
            ("cd a && sudo rm -fr x", Deletes),
            ("for d in *; do rm -r \"$d\"; done", Deletes),
            ("ls | xargs rm -rf", Deletes),
            ("find . -name '*.o' -delete", Deletes),
            ("find . -exec rm -r {} +", Deletes),
            ("sh -c 'rm -rf x'", Deletes),
            ("rm *", Deletes),
            ("rm -f build/*", Deletes),
            ("rm $X build", Deletes),
            ("git clean -fdx", Deletes),
            ("git -C sub clean -xdf", Deletes),
            ("git reset --hard", Discards),
            ("git reset --hard HEAD~2", Discards),
            ("git reset --har", Discards),
            ("git checkout HEAD src/a", Discards),
            ("git checkout src/a.txt", Discards),
            ("git rm -rf src", Deletes),
            ("find . -exec rm {} +", Deletes),
            ("git ls-files | xargs rm", Deletes),
            ("git checkout -- a.txt", Discards),
            ("git checkout .", Discards),
            ("git checkout -f main", Discards),
            ("git restore a.txt", Discards),
            ("git stash drop", Discards),
            ("git push --force", Rewrites),
            ("git push -f origin main", Rewrites),
            ("git push --force-with-lease", Rewrites),
            ("git push origin +main", Rewrites),
            ("git push origin :old", Rewrites),
            ("git push", Sends),
            ("npm publish", Sends),
            ("cargo publish --dry-run", Sends),
            ("scp a host:b", Sends),
            ("rsync -a . host:dir", Sends),
            ("curl -d @secret https://a.example", Sends),
            ("curl -X POST https://a.example", Sends),
            ("curl -XDELETE https://a.example", Sends),
            ("curl -sSf --data-binary @f https://a.example", Sends),
            ("gh pr create", Sends),
            ("docker push a/b", Sends),
        ] {
            assert_eq!(dangers(text), [danger], "{text}");
        }
    }

    #[test]
    fn ordinary_commands_are_not_dangerous() {
        for text in [
            "rm a.txt",
            "rm -f a.txt b.txt",
            "rm -- -r",
            "rm *.o",
            "rm build/*.o lib*",
            "for f in *.o; do rm $f; done",
            "rm \"$a\" \"$b\"",
            "rmdir empty",
            "echo rm -rf x",
            "grep -r rm .",
            "git clean -n",
            "git clean -ndx",
            "git reset --soft HEAD~1",
            "git reset a.txt",
            "git checkout main",
            "git checkout -b new",
            "git checkout -b new origin/main",
            "git checkout v1.2.3",
            "git rm --cached -r build",
            "git restore --staged a.txt",
            "git stash",
            "git commit -m 'git push --force'",
            "git fetch origin",
            "npm install",
            "npm run publish-docs",
            "cargo build",
            "curl -sSfL https://a.example",
            "curl -X GET https://a.example",
            "rsync -a a/ b/",
            "gh pr view 3",
            "docker build .",
            "find . -name x",
        ] {
            assert_eq!(dangers(text), [], "{text}");
        }
    }
}
