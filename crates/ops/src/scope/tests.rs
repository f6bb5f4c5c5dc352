#![expect(
    clippy::disallowed_methods,
    reason = "tests look at the disk themselves"
)]

use super::*;
use std::fs;
use std::os::unix::fs::symlink;
use tempfile::TempDir;

/// A work folder, and beside it a folder with a canary file, as real paths.
struct Yard {
    _temp: TempDir,
    work: PathBuf,
    out: PathBuf,
    base: PathBuf,
}

fn yard() -> Yard {
    let temp = TempDir::new().unwrap();
    let base = temp.path().canonicalize().unwrap();
    let (work, out) = (base.join("work"), base.join("out"));
    fs::create_dir_all(work.join("sub")).unwrap();
    fs::create_dir(&out).unwrap();
    fs::write(out.join("canary.txt"), "canary").unwrap();
    fs::write(work.join("real.txt"), "real").unwrap();
    Yard {
        _temp: temp,
        work,
        out,
        base,
    }
}

fn config(yard: &Yard, mode: Mode) -> ScopeConfig {
    ScopeConfig {
        work_dir: yard.work.clone(),
        roots: Vec::new(),
        readable: Vec::new(),
        home: Some(yard.base.join("home")),
        git_configs: Vec::new(),
        own: vec![yard.base.join("state")],
        protect: Vec::new(),
        temp: None,
        rules: mode.rules(),
    }
}

fn scope(yard: &Yard, mode: Mode) -> Scope {
    Scope::disk(config(yard, mode)).unwrap()
}

fn denied(scope: &Scope, path: &str, access: Access) -> bool {
    match scope.resolve(path, access) {
        Err(Error::NotAllowed { path: named, .. }) => {
            assert_eq!(named, path, "the refusal names the path as it was given");
            true
        }
        Err(other) => panic!("{path}: {other}"),
        Ok(_) => false,
    }
}

#[test]
fn every_way_out_is_refused() {
    let yard = yard();
    symlink(yard.out.join("canary.txt"), yard.work.join("link")).unwrap();
    symlink(&yard.out, yard.work.join("folder")).unwrap();
    symlink("../out", yard.work.join("relative")).unwrap();
    symlink("folder", yard.work.join("chain")).unwrap();
    let absolute = yard.out.join("canary.txt");
    let ways = [
        "../out/canary.txt",
        "sub/../../out/canary.txt",
        "./sub/./../../out/canary.txt",
        "missing/../../out/canary.txt",
        absolute.to_str().unwrap(),
        "link",
        "folder/canary.txt",
        "folder/new.txt",
        "relative/canary.txt",
        "chain/canary.txt",
        "../out/does-not-exist",
    ];
    for mode in [Mode::Workspace, Mode::Strict, Mode::ReadOnly] {
        let scope = scope(&yard, mode);
        for way in ways {
            assert!(
                denied(&scope, way, Access::Write),
                "{way} could be written at {mode:?}"
            );
        }
    }
    let strict = scope(&yard, Mode::Strict);
    for way in ways {
        assert!(
            denied(&strict, way, Access::Read),
            "{way} could be read at strict"
        );
    }
}

#[test]
fn siblings_that_share_a_prefix_are_outside() {
    let yard = yard();
    for sibling in ["workspace", "work-old"] {
        fs::create_dir(yard.base.join(sibling)).unwrap();
        let inside = yard.base.join(sibling).join("canary");
        fs::write(&inside, "x").unwrap();
        let strict = scope(&yard, Mode::Strict);
        assert!(denied(&strict, inside.to_str().unwrap(), Access::Read));
        assert!(denied(
            &strict,
            &format!("../{sibling}/canary"),
            Access::Read
        ));
    }
}

#[test]
fn links_that_end_inside_are_followed() {
    let yard = yard();
    symlink(yard.work.join("real.txt"), yard.work.join("absolute")).unwrap();
    symlink("real.txt", yard.work.join("relative")).unwrap();
    symlink(yard.work.join("sub"), yard.work.join("dirlink")).unwrap();
    let scope = scope(&yard, Mode::Strict);
    for (given, real) in [
        ("absolute", "real.txt"),
        ("relative", "real.txt"),
        ("dirlink/new.txt", "sub/new.txt"),
    ] {
        assert_eq!(
            scope.resolve(given, Access::Write).unwrap().below(),
            Path::new(real)
        );
    }
    assert_eq!(
        scope.resolve("absolute", Access::Unlink).unwrap().below(),
        Path::new("absolute")
    );
}

#[test]
fn the_work_folder_may_be_reached_through_a_link() {
    let yard = yard();
    let alias = yard.base.join("alias");
    symlink(&yard.work, &alias).unwrap();
    for dir in [alias.clone(), alias.join("."), yard.work.join("sub/..")] {
        let scope = Scope::disk(ScopeConfig {
            work_dir: dir,
            ..config(&yard, Mode::Strict)
        })
        .unwrap();
        for given in [
            "real.txt",
            yard.work.join("real.txt").to_str().unwrap(),
            alias.join("real.txt").to_str().unwrap(),
        ] {
            assert!(scope.resolve(given, Access::Read).is_ok(), "{given}");
        }
        assert!(denied(&scope, "../out/canary.txt", Access::Read));
    }
}

#[test]
fn loops_and_nonsense_are_errors_not_hangs() {
    let yard = yard();
    symlink("b", yard.work.join("a")).unwrap();
    symlink("a", yard.work.join("b")).unwrap();
    let scope = scope(&yard, Mode::Workspace);
    let long = "x".repeat(5000);
    let part = format!("sub/{}", "y".repeat(300));
    for given in ["a", "a/x", "", "nul\0byte", &long, &part] {
        assert!(
            matches!(
                scope.resolve(given, Access::Read),
                Err(Error::InvalidPath { .. })
            ),
            "{given:?}"
        );
    }
}

#[test]
fn modes_read_and_write_what_they_say() {
    let yard = yard();
    let canary = yard.out.join("canary.txt");
    let canary = canary.to_str().unwrap();
    // (mode, read outside, write inside, write outside, read system)
    let table = [
        (Mode::Workspace, true, true, false, true),
        (Mode::Strict, false, true, false, true),
        (Mode::ReadOnly, true, false, false, true),
        (Mode::Off, true, true, true, true),
    ];
    for (mode, read_out, write_in, write_out, system) in table {
        let scope = scope(&yard, mode);
        assert_eq!(
            scope.resolve(canary, Access::Read).is_ok(),
            read_out,
            "{mode:?} reads outside"
        );
        assert_eq!(
            scope.resolve("real.txt", Access::Write).is_ok(),
            write_in,
            "{mode:?} writes inside"
        );
        assert_eq!(
            scope.resolve(canary, Access::Write).is_ok(),
            write_out,
            "{mode:?} writes outside"
        );
        assert_eq!(
            scope.resolve("/etc/passwd", Access::Read).is_ok(),
            system,
            "{mode:?} reads the system"
        );
    }
}

#[test]
fn the_strictest_of_two_rules_holds_each_way() {
    let both = Mode::Strict.rules().tightened(Mode::ReadOnly.rules());
    assert_eq!(
        both,
        FileRules {
            reading: Reading::RootsAndSystem,
            writing: Writing::Nothing
        }
    );
    assert_eq!(
        Mode::Workspace.rules().tightened(Mode::Off.rules()),
        Mode::Workspace.rules()
    );
}

#[test]
fn secret_places_are_hidden_even_in_the_work_folder() {
    let yard = yard();
    let home = yard.base.join("home");
    fs::create_dir_all(home.join(".ssh")).unwrap();
    fs::write(home.join(".ssh/id"), "key").unwrap();
    fs::create_dir_all(home.join(".config/gcloud")).unwrap();
    symlink(home.join(".ssh"), yard.work.join("keys")).unwrap();
    let at_home = Scope::disk(ScopeConfig {
        work_dir: home.clone(),
        ..config(&yard, Mode::Workspace)
    })
    .unwrap();
    for secret in [
        ".ssh/id",
        ".ssh",
        ".config/gcloud/x",
        ".netrc",
        "./.ssh/../.ssh/id",
    ] {
        assert!(denied(&at_home, secret, Access::Read), "{secret}");
    }
    let elsewhere = scope(&yard, Mode::Workspace);
    for secret in [
        "keys/id",
        "/proc/self/environ",
        "/proc/1/fd/0",
        "/proc/self/root/etc/passwd",
        "/proc/self/cwd/real.txt",
        "/root/.ssh/id",
        "/home/somebody/.aws/credentials",
        "/etc/shadow",
        "/etc/gshadow-",
        "/etc/sudoers",
        "/etc/sudoers.d/users",
        "/etc/ssh/ssh_host_ed25519_key",
        "/etc/ssl/private/x.pem",
    ] {
        assert!(denied(&elsewhere, secret, Access::Read), "{secret}");
    }
    assert!(elsewhere.resolve("/proc/self/status", Access::Read).is_ok());
    for open in ["/etc/passwd", "/etc/ssh/ssh_host_ed25519_key.pub"] {
        assert!(elsewhere.resolve(open, Access::Read).is_ok(), "{open}");
    }
    let listed = at_home.resolve(".", Access::Read).unwrap();
    assert!(
        listed.child(std::ffi::OsStr::new(".ssh")).is_none(),
        "a walk does not meet it either"
    );
}

#[test]
fn our_own_folders_are_closed_but_for_outputs() {
    let yard = yard();
    let outputs = yard.base.join("state/outputs/here");
    fs::create_dir_all(&outputs).unwrap();
    fs::write(outputs.join("a.txt"), "whole").unwrap();
    let scope = Scope::disk(ScopeConfig {
        readable: vec![outputs.clone()],
        ..config(&yard, Mode::Strict)
    })
    .unwrap();
    let state = |below: &str| {
        yard.base
            .join("state")
            .join(below)
            .to_str()
            .unwrap()
            .to_owned()
    };
    assert!(
        scope
            .resolve(&state("outputs/here/a.txt"), Access::Read)
            .is_ok()
    );
    assert!(denied(&scope, &state("sessions.db"), Access::Read));
    assert!(denied(
        &scope,
        &state("outputs/elsewhere/b.txt"),
        Access::Read
    ));
    assert!(matches!(
        scope.resolve(&state("outputs/here/a.txt"), Access::Write),
        Err(Error::Protected { .. })
    ));
}

fn protected(scope: &Scope, path: &str) -> bool {
    matches!(
        scope.resolve(path, Access::Write),
        Err(Error::Protected { .. })
    )
}

#[test]
fn protected_places_are_protected_under_any_spelling() {
    let yard = yard();
    fs::create_dir(yard.work.join("secret")).unwrap();
    fs::create_dir(yard.work.join("secret2")).unwrap();
    fs::create_dir(yard.work.join("target")).unwrap();
    symlink("secret", yard.work.join("alias")).unwrap();
    symlink("target", yard.work.join("entry")).unwrap();
    for entry in ["secret", "secret/", "./secret"] {
        let protect = vec![
            PathBuf::from(entry),
            PathBuf::new(),
            yard.work.join("entry"),
        ];
        let scope = Scope::disk(ScopeConfig {
            protect,
            ..config(&yard, Mode::Workspace)
        })
        .unwrap();
        let absolute = yard.work.join("secret/x");
        for path in [
            "secret/x",
            "./secret/x",
            "sub/../secret/x",
            "secret//x",
            "secret/./x",
            "secret",
            "alias/x",
            "target/x",
            "entry",
            absolute.to_str().unwrap(),
        ] {
            assert!(protected(&scope, path), "{path} with {entry}");
        }
        assert!(
            scope.resolve("secret/x", Access::Read).is_ok(),
            "reading stays allowed"
        );
        assert!(
            scope.resolve("secret2/x", Access::Write).is_ok(),
            "a sibling is not protected"
        );
        assert!(matches!(
            scope.resolve("entry", Access::Unlink),
            Err(Error::Protected { .. })
        ));
    }
}

#[test]
fn what_git_and_haft_obey_is_always_protected() {
    let yard = yard();
    fs::create_dir_all(yard.work.join(".git/hooks")).unwrap();
    let scope = scope(&yard, Mode::Off);
    for path in [
        ".git/hooks/pre-commit",
        ".git/config",
        "haft.yaml",
        ".GIT/hooks/x",
        ".gIt/config",
        "sub/.git/config",
        "sub/.git",
        ".git/modules/m/hooks/x",
    ] {
        assert!(protected(&scope, path), "{path}");
    }
    for path in [
        ".git/HEAD",
        ".github/hooks/x",
        "sub/haft.yaml",
        "config",
        "hooks/x",
        ".gitignore",
    ] {
        assert!(scope.resolve(path, Access::Write).is_ok(), "{path}");
    }
}

#[test]
fn a_worktree_protects_the_repository_it_belongs_to() {
    let yard = yard();
    let store = yard.work.join("store");
    fs::create_dir_all(store.join("worktrees/w")).unwrap();
    fs::write(store.join("worktrees/w/commondir"), "../..\n").unwrap();
    fs::write(yard.work.join(".git"), "gitdir: store/worktrees/w\n").unwrap();
    let scope = scope(&yard, Mode::Workspace);
    assert!(protected(&scope, "store/hooks/pre-commit"));
    assert!(protected(&scope, "store/config"));
    assert!(scope.resolve("store/objects/x", Access::Write).is_ok());
}

#[test]
fn a_fifo_called_dot_git_does_not_hang_the_start() {
    let yard = yard();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        yard.work.join(".git"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    scope(&yard, Mode::Workspace);
}

#[test]
fn a_name_that_is_not_utf8_can_be_named_as_it_was_shown() {
    use std::os::unix::ffi::OsStrExt;
    let yard = yard();
    let name = std::ffi::OsStr::from_bytes(b"caf\xe9.txt");
    fs::write(yard.work.join(name), "x").unwrap();
    let scope = scope(&yard, Mode::Workspace);
    assert_eq!(
        scope
            .resolve("caf\u{fffd}.txt", Access::Read)
            .unwrap()
            .below(),
        Path::new(name)
    );
    fs::write(
        yard.work.join(std::ffi::OsStr::from_bytes(b"caf\xe8.txt")),
        "y",
    )
    .unwrap();
    let unclear = scope.resolve("caf\u{fffd}.txt", Access::Read).unwrap();
    assert_eq!(
        unclear.below(),
        Path::new("caf\u{fffd}.txt"),
        "two names read alike: neither is guessed"
    );
}

#[test]
fn extra_roots_have_the_rights_of_the_work_folder() {
    let yard = yard();
    let scope = Scope::disk(ScopeConfig {
        roots: vec![PathBuf::from("../out")],
        ..config(&yard, Mode::Strict)
    })
    .unwrap();
    assert!(scope.resolve("../out/new.txt", Access::Write).is_ok());
    assert!(protected(&scope, "../out/haft.yaml"));
    assert!(denied(&scope, "../elsewhere", Access::Write));
}

#[test]
fn what_git_obeys_is_protected_behind_links_too() {
    let yard = yard();
    let w = |path: &str| yard.work.join(path);
    let repository = |name: &str| {
        fs::create_dir_all(w(name).join("objects")).unwrap();
        fs::write(w(name).join("HEAD"), "ref: refs/heads/main\n").unwrap();
    };
    repository("store");
    symlink("store", w(".git")).unwrap();
    let scope_now = || scope(&yard, Mode::Off);
    for path in [
        ".git/hooks/pre-commit",
        ".git/config",
        "store/config",
        "store/hooks/x",
        ".git/commondir",
    ] {
        assert!(protected(&scope_now(), path), "{path} with a linked .git");
    }
    fs::remove_file(w(".git")).unwrap();

    // Parts of a real repository are links.
    repository(".git");
    fs::create_dir_all(w("myhooks")).unwrap();
    fs::create_dir_all(w("scripts")).unwrap();
    symlink("../myhooks", w(".git/hooks")).unwrap();
    symlink("../cfg", w(".git/config")).unwrap();
    symlink("../scripts/pc", w("myhooks/pre-commit")).unwrap();
    symlink("other.yaml", w("haft.yaml")).unwrap();
    for path in [
        ".git/hooks/post-commit",
        ".git/config",
        "cfg",
        "myhooks/x",
        "scripts/pc",
        "haft.yaml",
        "other.yaml",
    ] {
        assert!(protected(&scope_now(), path), "{path} with linked parts");
    }
    // A repository anywhere, bare or behind the `.git` file of a folder below.
    repository("deep/bare.git");
    for path in [
        "deep/bare.git/config",
        "deep/bare.git/hooks/x",
        "deep/.git/commondir",
    ] {
        assert!(protected(&scope_now(), path), "{path}");
    }
    for path in [
        "scripts/other",
        "config",
        "hooks/x",
        "src/config",
        "deep/bare.git/refs/x",
    ] {
        assert!(scope_now().resolve(path, Access::Write).is_ok(), "{path}");
    }
}

/// Writes a file below the work folder, with its folders.
fn put(yard: &Yard, path: &str, text: &str) {
    let path = yard.work.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn bare(yard: &Yard, at: &str) {
    put(yard, &format!("{at}/HEAD"), "ref: refs/heads/main\n");
    put(yard, &format!("{at}/objects/info/packs"), "");
    put(yard, &format!("{at}/refs/heads/main"), "");
    put(yard, &format!("{at}/config"), "[core]\n");
}

#[test]
fn a_repository_stays_one_whatever_becomes_of_its_files() {
    let yard = yard();
    bare(&yard, "deep/er/in.git");
    let scope = scope(&yard, Mode::Workspace);
    // Any write makes the scope search for repositories.
    assert!(scope.resolve("other", Access::Write).is_ok());
    let git = yard.work.join("deep/er/in.git");
    for gone in ["HEAD", "objects", "refs", "config"] {
        fs::rename(git.join(gone), yard.work.join(gone)).unwrap();
    }
    for path in ["config", "hooks/pre-commit", "config.worktree", "commondir"] {
        assert!(
            protected(&scope, &format!("deep/er/in.git/{path}")),
            "{path}"
        );
    }
    assert!(
        scope
            .resolve("deep/er/in.git/description", Access::Write)
            .is_ok()
    );
}

#[test]
fn a_repository_is_known_by_any_of_its_parts() {
    for part in ["HEAD", "HEAD.bak", "objects/x", "refs/heads/main"] {
        let yard = yard();
        put(&yard, &format!("b/{part}"), "");
        let scope = scope(&yard, Mode::Workspace);
        for path in [
            "config",
            "config.worktree",
            "hooks/post-checkout",
            "gitdir",
            "commondir",
        ] {
            assert!(
                protected(&scope, &format!("b/{path}")),
                "{path} beside {part}"
            );
        }
    }
    // The refusal states the reason and a remedy.
    let reason = |path: &str| {
        let yard = yard();
        put(&yard, "b/refs/x", "");
        put(&yard, ".git/HEAD", "");
        match scope(&yard, Mode::Workspace).resolve(path, Access::Write) {
            Err(Error::Protected { reason, .. }) => reason,
            other => panic!("{path}: {other:?}"),
        }
    };
    let said = reason("b/config").unwrap();
    assert!(
        said.starts_with("the folder b looks like a git repository")
            && said.contains("rename one of them"),
        "{said}"
    );
    assert_eq!(reason(".git/config"), None);
    // Folders of other projects that only look similar.
    let yard = yard();
    for path in [
        "src/objects/cube.ts",
        "src/refs/a.md",
        "src/headers/x.h",
        "src/HEADER",
        "src/hooks/auth/use.ts",
    ] {
        put(&yard, path, "");
    }
    let scope = scope(&yard, Mode::Workspace);
    for path in [
        "src/hooks/useCube.ts",
        "src/hooks/auth/useLogin.ts",
        "src/config/site.rb",
        "src/hooks/deep/er/x",
    ] {
        assert!(scope.resolve(path, Access::Write).is_ok(), "{path}");
    }
}

#[test]
fn in_which_order_a_repository_is_made_makes_no_difference() {
    for control in ["config", "config.worktree", "hooks/pre-commit", "commondir"] {
        for (there, new) in [
            ("objects/x", "HEAD"),
            ("objects/x", "refs/x"),
            ("HEAD", "objects/x"),
            ("HEAD", "refs/heads/x"),
            ("refs/x", "HEAD"),
        ] {
            let yard = yard();
            put(&yard, &format!("b/{control}"), "evil");
            put(&yard, &format!("b/{there}"), "");
            let scope = scope(&yard, Mode::Workspace);
            assert!(
                protected(&scope, &format!("b/{new}")),
                "{control}, {there}, then {new}"
            );
        }
    }
    // In an existing repository, they may be written.
    let yard = yard();
    bare(&yard, "b");
    let scope = scope(&yard, Mode::Workspace);
    for path in ["b/HEAD", "b/objects/x", "b/refs/x", "b/packed-refs"] {
        assert!(scope.resolve(path, Access::Write).is_ok(), "{path}");
    }
}

#[test]
fn pointers_anywhere_lead_to_what_is_protected() {
    let yard = yard();
    // Only the pointers exist, no part of a repository.
    for store in ["store/a", "store/b", "store/c"] {
        put(&yard, &format!("{store}/description"), "");
    }
    put(&yard, "one/.git", "gitdir: ../store/a\n");
    put(
        &yard,
        "two/deep/.git",
        &format!("gitdir: {}\n", yard.work.join("store/b").display()),
    );
    put(&yard, "store/b/commondir", "../shared\n");
    symlink("store/c", yard.work.join("linked")).unwrap();
    fs::create_dir(yard.work.join("three")).unwrap();
    symlink("../linked", yard.work.join("three/.git")).unwrap();
    let scope = scope(&yard, Mode::Workspace);
    for git in ["store/a", "store/b", "store/shared", "store/c", "linked"] {
        for path in [
            "config",
            "hooks/post-commit",
            "rebase-merge/git-rebase-todo",
            "sequencer/todo",
        ] {
            assert!(protected(&scope, &format!("{git}/{path}")), "{git}/{path}");
        }
    }
    assert!(scope.resolve("store/d/config", Access::Write).is_ok());
}

#[test]
fn what_a_configuration_names_is_protected() {
    let yard = yard();
    put(&yard, "sub/.git/HEAD", "ref: refs/heads/main\n");
    put(
        &yard,
        "sub/.git/config",
        "[core]\n hooksPath = tools/hooks\n[include]\n path = ../more.cfg\n[includeIf \"onbranch:x\"]\npath = \"~/cfg/a\" ; no\n",
    );
    put(&yard, "sub/.git/config.worktree", "[include]path=wt.cfg");
    put(
        &yard,
        "sub/more.cfg",
        "[include]\npath = nested.cfg\n[core]hooksPath=~/work/abs\n",
    );
    fs::create_dir_all(yard.base.join("home")).unwrap();
    symlink(&yard.work, yard.base.join("home/work")).unwrap();
    symlink(&yard.work, yard.base.join("home/cfg")).unwrap();
    put(
        &yard,
        "other/.git/config",
        "[core]\nhooksPath = /dev/null\n",
    );
    put(&yard, "top/.git/config", "[core]\nhooksPath = .\n");
    let scope = scope(&yard, Mode::Workspace);
    for path in [
        "sub/tools/hooks/pre-commit",
        "sub/more.cfg",
        "sub/nested.cfg",
        "sub/.git/wt.cfg",
        "abs/pre-push",
        "a",
        "top/pre-commit",
    ] {
        assert!(protected(&scope, path), "{path}");
    }
    for path in [
        "sub/tools/other",
        "sub/x",
        "other/x",
        "top/x",
        "tools/hooks/x",
    ] {
        assert!(scope.resolve(path, Access::Write).is_ok(), "{path}");
    }
}

#[test]
fn repositories_are_found_behind_any_number_of_folders() {
    let yard = yard();
    for folder in 0..6_000 {
        fs::create_dir_all(yard.work.join(format!("many/{}/{folder}", folder / 100))).unwrap();
    }
    let deep = "d/".repeat(30);
    put(
        &yard,
        &format!("many/59/5999/{deep}w/.git"),
        "gitdir: ../g\n",
    );
    put(&yard, &format!("many/59/5999/{deep}g/description"), "");
    let scope = scope(&yard, Mode::Workspace);
    assert!(protected(&scope, &format!("many/59/5999/{deep}g/config")));
    let found = crate::executor::sandbox::repositories(&yard.work);
    let config = yard.work.join(format!("many/59/5999/{deep}g/config"));
    assert!(found.paths.contains(&config));
}

#[test]
fn secret_places_are_hidden_behind_links_too() {
    let yard = yard();
    let home = yard.base.join("home");
    fs::create_dir_all(yard.base.join("keys")).unwrap();
    fs::create_dir_all(yard.base.join("dot/gcloud")).unwrap();
    fs::create_dir_all(&home).unwrap();
    fs::write(yard.base.join("keys/id"), "key").unwrap();
    fs::write(yard.base.join("dot/gcloud/x"), "key").unwrap();
    symlink(yard.base.join("keys"), home.join(".ssh")).unwrap();
    symlink("../dot", home.join(".config")).unwrap();
    let scope = scope(&yard, Mode::Workspace);
    for path in [
        home.join(".ssh/id"),
        home.join(".config/gcloud/x"),
        yard.base.join("keys/id"),
        yard.base.join("dot/gcloud/x"),
    ] {
        assert!(
            denied(&scope, path.to_str().unwrap(), Access::Read),
            "{}",
            path.display()
        );
    }
}

#[test]
fn hostile_pointers_of_git_hang_nothing() {
    let yard = yard();
    fs::create_dir(yard.work.join("store")).unwrap();
    fs::write(yard.work.join(".git"), "gitdir: store\n").unwrap();
    let common = yard.work.join("store/commondir");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &common,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    scope(&yard, Mode::Workspace);
    fs::remove_file(&common).unwrap();
    symlink("/dev/zero", &common).unwrap();
    scope(&yard, Mode::Workspace);
}

#[test]
fn a_loop_out_of_reach_reads_like_nothing() {
    let yard = yard();
    symlink("loop", yard.out.join("loop")).unwrap();
    symlink("loop", yard.work.join("loop")).unwrap();
    let strict = scope(&yard, Mode::Strict);
    assert!(denied(&strict, "../out/loop", Access::Read));
    assert!(matches!(
        strict.resolve("loop", Access::Read),
        Err(Error::InvalidPath { .. })
    ));
}

#[test]
fn a_slash_at_the_end_means_a_folder() {
    let yard = yard();
    let scope = scope(&yard, Mode::Workspace);
    assert!(matches!(
        scope.resolve("real.txt/", Access::Read),
        Err(Error::NotADirectory { .. })
    ));
    assert!(matches!(
        scope.resolve("real.txt/", Access::Write),
        Err(Error::NotADirectory { .. })
    ));
    assert!(matches!(
        scope.resolve("new/", Access::Write),
        Err(Error::IsDirectory { .. })
    ));
    assert!(scope.resolve("sub/", Access::Read).is_ok());
}

mod paths {
    use super::*;
    use proptest::prelude::*;

    /// Components that cause trouble: `..`, empty ones, links in and out, existing and
    /// missing names.
    fn part() -> impl Strategy<Value = &'static str> {
        prop_oneof![
            Just(".."),
            Just("."),
            Just(""),
            Just("sub"),
            Just("real.txt"),
            Just("missing"),
            Just("to_out"),
            Just("to_sub"),
            Just("to_parent"),
            Just("to_root"),
            Just("chain"),
            Just("out"),
            Just("work"),
        ]
    }

    fn maze() -> Yard {
        let yard = yard();
        symlink(&yard.out, yard.work.join("to_out")).unwrap();
        symlink(yard.work.join("sub"), yard.work.join("to_sub")).unwrap();
        symlink("..", yard.work.join("to_parent")).unwrap();
        symlink("/", yard.work.join("sub/to_root")).unwrap();
        symlink("to_sub/../to_parent", yard.work.join("chain")).unwrap();
        symlink("../work", yard.out.join("work")).unwrap();
        yard
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(600))]

        /// Whatever a path consists of: if it is allowed, it is inside, and it is what the
        /// kernel finds under that name.
        #[test]
        fn no_path_leads_out(parts in proptest::collection::vec(part(), 1..9), absolute in any::<bool>()) {
            thread_local! {
                static MAZE: Yard = maze();
            }
            MAZE.with(|yard| {
                let scope = scope(yard, Mode::Strict);
                let mut given = parts.join("/");
                if absolute {
                    given = format!("{}/{given}", yard.work.display());
                }
                prop_assume!(!given.is_empty());
                let kernel = yard.work.join(&given).canonicalize();
                match scope.resolve(&given, Access::Read) {
                    Ok(path) => {
                        prop_assert!(path.real().starts_with(&yard.work) || path.real().starts_with("/usr"), "{given} gave {:?}", path.real());
                        if let Ok(kernel) = kernel {
                            prop_assert_eq!(path.real(), kernel.as_path());
                        }
                    }
                    Err(Error::NotAllowed { .. } | Error::InvalidPath { .. }) => {
                        if let Ok(kernel) = kernel {
                            prop_assert!(!kernel.starts_with(&yard.work), "{given} is inside and was refused");
                        }
                    }
                    Err(Error::NotADirectory { .. }) => prop_assert!(given.ends_with('/'), "{given}"),
                    Err(other) => prop_assert!(false, "{given}: {other}"),
                }
                Ok(())
            })?;
        }
    }
}
