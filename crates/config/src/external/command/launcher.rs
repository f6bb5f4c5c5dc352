//! Programs that download a package by name and run it. Their command lines are read up
//! to the package, so that the package's own arguments are recognised.

/// Launchers: a program and its subcommands.
const LAUNCHERS: [&[&str]; 15] = [
    &["npx"],
    &["bunx"],
    &["pnpx"],
    &["uvx"],
    &["npm", "exec"],
    &["npm", "x"],
    &["pnpm", "dlx"],
    &["pnpm", "exec"],
    &["yarn", "dlx"],
    &["bun", "x"],
    &["uv", "tool", "run"],
    &["uv", "run"],
    &["pipx", "run"],
    &["python", "-m"],
    &["pypy", "-m"],
];

/// Options of launchers without a value.
const WITHOUT_VALUE: [&str; 25] = [
    "-y",
    "--yes",
    "-q",
    "--quiet",
    "--silent",
    "--",
    "-v",
    "--verbose",
    "--bun",
    "--prefer-offline",
    "--offline",
    "--isolated",
    "--no-cache",
    "--no-config",
    "--no-project",
    "--no-sync",
    "--no-install",
    "--no-progress",
    "--native-tls",
    "--refresh",
    "--reinstall",
    "--upgrade",
    "--frozen",
    "--locked",
    "--ignore-existing",
];

/// Options of launchers whose value is the next word.
const WITH_VALUE: [&str; 28] = [
    "-p",
    "--package",
    "--from",
    "--with",
    "--with-editable",
    "--with-requirements",
    "--python",
    "--spec",
    "--index",
    "--default-index",
    "--index-url",
    "--extra-index-url",
    "--find-links",
    "--constraints",
    "--overrides",
    "--prerelease",
    "--resolution",
    "--refresh-package",
    "--env-file",
    "--extra",
    "--group",
    "--directory",
    "--project",
    "--cache-dir",
    "--config-file",
    "--pip-args",
    "--registry",
    "--cache",
];

/// Returns the position of the package or program that a launcher runs. The outer `None`
/// means that this is not a launcher, the inner one that an option is unknown.
pub(super) fn run_by(name: &str, words: &[&str]) -> Option<Option<usize>> {
    let launcher = LAUNCHERS.iter().find_map(|launcher| {
        let (program, first) = launcher.split_first()?;
        (name == *program && words.starts_with(first)).then_some(first)
    })?;
    let mut at = launcher.len();
    while let Some(word) = words.get(at) {
        if !word.starts_with('-') || *word == "-" {
            return Some(Some(at));
        }
        let has_value = word.starts_with("--") && word.contains('=');
        at += match *word {
            word if has_value || WITHOUT_VALUE.contains(&word) => 1,
            word if WITH_VALUE.contains(&word) => 2,
            _ => return Some(None),
        };
    }
    Some(None)
}

/// Returns a package's name without version and extras: `tsx` for `tsx@latest`, `@org/x`
/// for `@org/x@1`, `mcp` for `mcp[cli]`, `ipython` for `ipython==8`. For a Python module
/// it is the package: `unittest` for `unittest.main`.
pub(super) fn package_name(word: &str) -> &str {
    let is_end = |(at, c): (usize, char)| {
        let is_scope = at == 0 && c == '@';
        (!is_scope && "@[=<>~!;,. ".contains(c)).then_some(at)
    };
    let end = word.char_indices().find_map(is_end);
    word.get(..end.unwrap_or(word.len())).unwrap_or(word)
}
