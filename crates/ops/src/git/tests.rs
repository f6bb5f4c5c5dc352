//! Tests for finding repositories and guarding their files.

#![expect(
    clippy::disallowed_methods,
    reason = "the tests make the trees that are searched"
)]

use super::*;
use std::fs;
use std::os::unix::fs::symlink;

/// A separate folder for each test, removed with it.
struct Yard {
    base: PathBuf,
    _temp: tempfile::TempDir,
}

impl Yard {
    fn new() -> Self {
        let temp = tempfile::tempdir().unwrap();
        let base = temp.path().canonicalize().unwrap();
        fs::create_dir_all(base.join("work")).unwrap();
        fs::create_dir_all(base.join("home")).unwrap();
        Self { base, _temp: temp }
    }

    fn path(&self, below: &str) -> PathBuf {
        self.base.join(below)
    }

    fn file(&self, below: &str, text: &str) {
        let path = self.path(below);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn folder(&self, below: &str) {
        fs::create_dir_all(self.path(below)).unwrap();
    }

    /// Creates what `git init --bare` would create.
    fn repository(&self, below: &str) {
        for folder in [
            "objects/info",
            "objects/pack",
            "refs/heads",
            "hooks",
            "info",
        ] {
            self.folder(&format!("{below}/{folder}"));
        }
        self.file(&format!("{below}/HEAD"), "ref: refs/heads/main\n");
        self.file(&format!("{below}/config"), "[core]\n\tbare = true\n");
        self.file(&format!("{below}/description"), "unnamed\n");
    }

    fn registry(&self) -> Registry {
        let registry = Registry::new(&self.path("work"));
        registry.look(Since::Start);
        registry
    }

    fn guarded(&self) -> Vec<PathBuf> {
        self.registry().guarded(Some(&self.path("home"))).paths
    }
}

#[test]
fn a_repository_is_found_in_any_folder_that_git_does_not_keep_objects_in() {
    let yard = Yard::new();
    yard.file("work/lib/HEAD", "x");
    yard.file("work/lib/config", "y");
    yard.file("work/part/HEAD", "x");
    yard.repository("work/whole");
    let hidden = [
        "lib/logs",
        "lib/lfs",
        "lib/refs",
        "part/objects",
        "part/objects/ab",
        "part/objects/pack",
        "whole/logs",
        "whole/refs/heads",
        "whole/lfs",
        "whole/objects",
        "whole/objects/abc",
    ];
    for at in hidden {
        yard.repository(&format!("work/{at}/nested/.git"));
    }
    // Skipped, because a large project would take long otherwise.
    yard.repository("work/whole/objects/ab/nested/.git");
    let guarded = yard.guarded();
    for at in hidden {
        let hooks = yard.path(&format!("work/{at}/nested/.git/hooks"));
        assert!(guarded.contains(&hooks), "{at}: {guarded:#?}");
    }
    let kept = yard.path("work/whole/objects/ab");
    assert!(
        !guarded.iter().any(|path| path.starts_with(&kept)),
        "{guarded:#?}"
    );
}

#[test]
fn the_configurations_of_the_person_are_guarded_where_they_lie_in_the_root() {
    let yard = Yard::new();
    // Through a link, which could be changed too.
    yard.file("work/real", "[core]\nhooksPath = of-home\n");
    symlink("real", yard.path("work/link")).unwrap();
    symlink(yard.path("work/link"), yard.path("home/.gitconfig")).unwrap();
    let templates = yard.path("work/templates");
    let templates = templates.display();
    let env = format!("[include]\npath = included\n[init]\ntemplateDir = {templates}\n");
    yard.file("work/env", &env);
    yard.repository("work/tree/.git");
    let registry = yard.registry();
    registry.reads(&[
        yard.path("work/env"),
        yard.path("elsewhere"),
        "/dev/null".into(),
    ]);
    let home = yard.path("home");
    let Controls {
        paths: guarded,
        links,
        ..
    } = registry.guarded(Some(&home));
    assert_eq!(links, [yard.path("work/link")]);
    assert!(registry.covers(&yard.path("work/link"), Some(&home)));
    for at in ["real", "env", "included", "templates", "tree/of-home"] {
        let path = yard.path(&format!("work/{at}"));
        assert!(guarded.contains(&path), "{at}: {guarded:#?}");
        assert!(registry.covers(&path, Some(&home)), "{at}");
    }
    let is_outside = |path: &PathBuf| !path.starts_with(yard.path("work"));
    assert!(!guarded.iter().any(is_outside), "{guarded:#?}");
}

#[test]
fn a_home_in_the_root_has_its_configurations_guarded_before_they_are_there() {
    let yard = Yard::new();
    let registry = yard.registry();
    let guarded = registry.guarded(Some(&yard.path("work"))).paths;
    for at in [".gitconfig", ".config/git/config"] {
        assert!(
            guarded.contains(&yard.path("work").join(at)),
            "{guarded:#?}"
        );
    }
}

#[test]
fn a_repository_is_known_without_the_parts_that_git_asks_for() {
    let yard = Yard::new();
    yard.repository("work/srv");
    let registry = yard.registry();
    assert!(registry.lost().is_empty());
    for part in ["HEAD", "objects", "refs"] {
        fs::rename(
            yard.path("work/srv").join(part),
            yard.path("work/srv").join(format!("x{part}")),
        )
        .unwrap();
    }
    assert_eq!(registry.lost(), [yard.path("work/srv")]);
    assert!(registry.lost().is_empty(), "told twice");
    // A first search recognizes it by any of the remaining parts.
    let config = yard.path("work/srv/config");
    assert!(yard.guarded().contains(&config));
    assert!(control_of(&config).is_some());
    fs::remove_dir(yard.path("work/srv/info")).unwrap();
    assert!(yard.guarded().contains(&config));
    fs::remove_file(yard.path("work/srv/description")).unwrap();
    assert!(!yard.guarded().contains(&config));
    yard.file("work/srv/hooks/update.sample", "");
    assert!(yard.guarded().contains(&config));
}

#[test]
fn a_long_list_of_steps_is_read_to_its_end() {
    let yard = Yard::new();
    let list = "git/rebase-merge/git-rebase-todo";
    let long = "x".repeat(3 << 20);
    yard.file(
        list,
        &format!(
            "pick 1 {long}\n{}exec evil\n  x last",
            "# note\n".repeat(1 << 18)
        ),
    );
    let commands = || -> Vec<String> {
        let left = unfinished_rebases(&yard.path("git"), &[]).into_iter();
        left.flat_map(|(_, added)| added.unwrap().commands)
            .collect()
    };
    assert_eq!(commands(), ["evil", "last"]);
    let file = fs::File::options()
        .write(true)
        .open(yard.path(list))
        .unwrap();
    file.set_len(1 << 30).unwrap();
    let found = commands();
    assert!(
        found.last().unwrap().contains("too long to read"),
        "{found:?}"
    );
}

#[test]
fn a_command_behind_a_thousand_others_is_noticed() {
    let yard = Yard::new();
    let list = "git/rebase-merge/git-rebase-todo";
    let many: String = (0..1_100).map(|n| format!("exec true {n}\n")).collect();
    yard.file(list, &many);
    let before: Vec<UnfinishedRebase> = unfinished_rebases(&yard.path("git"), &[])
        .into_iter()
        .map(|(left, added)| {
            let added = added.unwrap();
            assert_eq!(added.commands.last().unwrap(), "true 1099");
            assert_eq!(added.commands.len() + added.more, 1_100);
            left
        })
        .collect();
    let since = || {
        let now = unfinished_rebases(&yard.path("git"), &before);
        now.into_iter().find_map(|(_, added)| added)
    };
    assert_eq!(since(), None);
    // Git has continued for a while; the rest existed before.
    yard.file(list, many.split_once('\n').unwrap().1);
    assert_eq!(since(), None);
    yard.file(list, &format!("{many}exec evil\n"));
    let added = since().unwrap();
    assert_eq!((added.commands, added.more), (vec!["evil".to_owned()], 0));
}

#[test]
fn hooks_begin_at_the_work_tree_that_a_configuration_names() {
    let yard = Yard::new();
    yard.repository("work/bare");
    yard.file(
        "work/bare/config",
        "[core]\nworktree = ../tree\nhooksPath = .h\n",
    );
    yard.file("home/.gitconfig", "[core]\nhooksPath = .own\n");
    yard.folder("work/tree");
    let guarded = yard.guarded();
    for at in ["tree/.h", "tree/.own"] {
        assert!(
            guarded.contains(&yard.path("work").join(at)),
            "{guarded:#?}"
        );
    }
}

#[test]
fn a_pointer_that_is_turned_elsewhere_is_named_again() {
    let yard = Yard::new();
    let registry = yard.registry();
    yard.repository("work/d");
    yard.file("work/x/.git", "gitdir: ../d\n");
    let pointer = yard.path("work/x/.git");
    assert_eq!(
        registry.look(Since::Command).new,
        std::slice::from_ref(&pointer)
    );
    assert!(registry.look(Since::Command).new.is_empty());
    yard.repository("work/e");
    yard.file("work/x/.git", "gitdir: ../e\n");
    assert_eq!(
        registry.look(Since::Command).new,
        std::slice::from_ref(&pointer)
    );
    // A repository that no pointer led to at that time is reported itself.
    yard.repository("work/f");
    assert_eq!(registry.look(Since::Command).new, [yard.path("work/f")]);
    yard.file("work/x/.git", "gitdir: ../f\n");
    assert_eq!(registry.look(Since::Command).new, [pointer]);
}

#[test]
fn a_configuration_names_what_git_would_find() {
    use std::os::unix::ffi::OsStrExt;
    let yard = Yard::new();
    let of = |config: &[u8], at: &[u8]| {
        fs::create_dir_all(yard.path("work/.git")).unwrap();
        fs::write(yard.path("work/.git/config"), config).unwrap();
        let path = yard.path("work").join(OsStr::from_bytes(at));
        let guarded = yard.guarded();
        assert!(
            guarded.contains(&path),
            "{}: {guarded:#?}",
            config.escape_ascii()
        );
    };
    yard.repository("work/.git");
    of(b"[a][core]hooksPath = gh\n", b"gh");
    of(b"[core]\n hooksPath = gh-\xe9\n", b"gh-\xe9");
    of(b"[include]\n path = ../inc-\xe9\n", b".git/../inc-\xe9");
    of(b"[core]\n hooksPath =\x0c gh\n", b"\x0c gh");
    // Hooks that receive something start in the git folder.
    of(b"[core]\n hooksPath = gh\n", b"gh");
    of(b"[core]\n hooksPath = gh\n", b".git/gh");
    yard.file("home/.gitconfig", "[core]\n hooksPath = of-home\n");
    of(b"", b".git/of-home");
    // Beyond a megabyte too. Beyond what is read, everything in the repository is guarded.
    let mut long = b"[x]\n".to_vec();
    long.extend(b"# pad\n".repeat(200_000));
    long.extend(b"[core]\n hooksPath = gh\n");
    of(&long, b"gh");
    let file = fs::File::options()
        .write(true)
        .open(yard.path("work/.git/config"))
        .unwrap();
    file.set_len(17 << 20).unwrap();
    let guarded = yard.guarded();
    for at in ["work", "work/.git"] {
        assert!(guarded.contains(&yard.path(at)), "{guarded:#?}");
    }
    // A pointer need not be UTF-8 either.
    fs::remove_dir_all(yard.path("work/.git")).unwrap();
    let name = OsStr::from_bytes(b"store-\xe9");
    fs::create_dir_all(yard.path("work").join(name)).unwrap();
    fs::write(yard.path("work/.git"), b"gitdir: store-\xe9\n").unwrap();
    let config = yard.path("work").join(name).join("config");
    assert!(yard.guarded().contains(&config));
}

#[test]
fn the_log_of_a_repository_is_none() {
    let yard = Yard::new();
    yard.repository("work/.git");
    yard.file("work/.git/logs/HEAD", "");
    yard.file("work/.git/logs/refs/heads/main", "");
    let logs = yard.path("work/.git/logs");
    let guarded = yard.guarded();
    assert!(
        !guarded.iter().any(|path| path.starts_with(&logs)),
        "{guarded:#?}"
    );
    // Nothing that git would obey can be added to it.
    assert!(control_of(&logs.join("config")).is_some());
    yard.file("work/.git/logs/config", "[core]\n");
    assert!(yard.guarded().contains(&logs.join("hooks")));
}

#[test]
fn folders_of_other_projects_are_no_repositories() {
    let yard = Yard::new();
    for (path, text) in [
        ("game/config", "x"),
        ("game/info/a", ""),
        ("game/description", ""),
        ("app/config", "[site]\nname = x\n"),
        ("app/refs/useRef.ts", ""),
        ("app/hooks/useThing", ""),
        ("obj/config", ""),
        ("obj/objects/cube", ""),
        ("obj/hooks/useAuth", ""),
    ] {
        yard.file(&format!("work/{path}"), text);
    }
    let guarded = yard.guarded();
    for at in ["game", "app", "obj"] {
        let folder = yard.path("work").join(at);
        assert!(
            !guarded.iter().any(|path| path.starts_with(&folder)),
            "{guarded:#?}"
        );
        let config = folder.join("config");
        assert_eq!(control_of(&config), None, "{at}");
        assert_eq!(control_of(&folder.join("hooks/useOther")), None, "{at}");
    }
    // Writing parts that would turn them into repositories is refused.
    for path in [
        "app/HEAD",
        "app/objects/x",
        "obj/refs/x",
        "app/hooks/update",
    ] {
        let path = yard.path("work").join(path);
        assert!(control_of(&path).is_some(), "{}", path.display());
    }
    yard.file("work/app/config", "[core]\nhooksPath = x\n");
    assert!(yard.guarded().contains(&yard.path("work/app/config")));
    // A file that git would read at such a path is recognized by its content.
    let config = yard.path("work/app/config");
    let wanted = Control::Alike(yard.path("work/app"));
    assert_eq!(control_of(&config), Some(wanted));
}
