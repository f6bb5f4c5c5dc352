//! Commands fill caches in the home. What they write is kept for their work folder, and
//! changes nothing that the user or another work folder sees.

use crate::bed::{Bed, CANARY, Level, beds, beds_at, in_each};
use rustix::process::Signal;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Folders that every command can write, whether the home has them or not.
const FOLDERS: [&str; 15] = [
    ".cache",
    ".npm",
    ".cargo/registry",
    ".cargo/git",
    ".local/share",
    ".local/state",
    "go/pkg",
    ".gradle",
    ".m2/repository",
    ".pnpm-store",
    ".yarn",
    ".bun",
    ".deno",
    ".nuget/packages",
    ".gem",
];

/// Returns everything in the home except haft's own folders.
fn home_of(bed: &Bed) -> String {
    let find = bed.free("cd ~ && find . -path ./.local/state/haft -prune -o -print | sort");
    String::from_utf8_lossy(&find.stdout).into_owned()
}

#[track_caller]
fn prints(bed: &Bed, flags: &[&str], script: &str, wanted: &str) {
    let answer = bed.bash_with(flags, script);
    let first: Vec<&str> = answer.text.lines().take(wanted.lines().count()).collect();
    assert_eq!(
        first.join("\n"),
        wanted,
        "{} {script}: {answer:?}",
        bed.name()
    );
}

#[test]
fn a_cache_is_kept_for_its_work_folder_and_the_real_one_does_not_change() {
    in_each(beds_at(&[Level::Full]), |bed| {
        bed.file("home/.cache/tool/real", "real");
        bed.file("home/.cache/tool/gone", "kept");
        bed.file("home/.local/state/log", "logged");
        bed.file("other/.keep", "");
        let before = home_of(bed);
        prints(
            bed,
            &[],
            "cd ~/.cache/tool && cat real && echo mine > real && rm gone && mv real moved && \
             ln moved linked && cp moved ~/.npm/copied && mv linked ~/.local/share/ && \
             cat ~/.local/state/log && echo new > ~/.local/state/new",
            "reallogged",
        );
        let script = "cd ~/.cache/tool && ls && cat moved ~/.npm/copied ~/.local/share/linked ~/.local/state/new";
        prints(bed, &[], script, "moved\nmine\nmine\nmine\nnew");
        let mut server = bed.serve();
        assert!(server.bash(script).has("moved\nmine\nmine\nmine\nnew"));
        let elsewhere = bed.at("other");
        prints(
            bed,
            &["--dir", &elsewhere],
            "cd ~/.cache/tool && ls && cat real && ls ~/.npm | wc -l",
            "gone\nreal\nreal0",
        );
        assert_eq!(bed.read("home/.cache/tool/real"), "real");
        assert_eq!(bed.read("home/.cache/tool/gone"), "kept");
        // Nothing was added, not even an empty folder.
        let new = home_of(bed);
        assert_eq!(new, before, "{}", bed.name());
        bed.nothing_but(&server);
    });
}

#[test]
fn every_folder_can_be_filled_in_an_empty_home_and_nothing_else() {
    in_each(beds_at(&[Level::Full]), |bed| {
        let mut server = bed.serve();
        for mode in [
            &[][..],
            &["--sandbox", "read-only"],
            &["--sandbox", "strict"],
        ] {
            let fill = FOLDERS.map(|folder| {
                format!("mkdir -p ~/{folder}/a/b && echo x > ~/{folder}/a/b/c && mv ~/{folder}/a ~/{folder}/d && echo ok")
            });
            let answer = bed.bash_with(mode, &fill.join("\n"));
            assert_eq!(answer.text.matches("ok").count(), 15, "{mode:?} {answer:?}");
        }
        let refused = [
            "echo x > ~/.bashrc",
            "mkdir ~/other",
            "echo x > ~/.cargo/config.toml",
            "mkdir -p ~/.cargo/bin && echo x > ~/.cargo/bin/cargo",
            "mkdir -p ~/.config/x",
            "echo x > ~/.local/bin",
            "rmdir ~/.npm",
            "mv ~/.cargo ~/.cargo2",
            "touch ~/.local/state/haft/x",
            "ls ~/.local/state/haft/sessions.db",
        ];
        assert_eq!(
            server.tries(&refused),
            Vec::<String>::new(),
            "{}",
            bed.name()
        );
        assert_eq!(
            home_of(bed),
            ".\n./.local\n./.local/state\n",
            "{}",
            bed.name()
        );
    });
}

#[test]
fn strict_shows_none_of_the_users_files_and_keeps_a_layer_of_its_own() {
    in_each(beds_at(&[Level::Full]), |bed| {
        bed.file("home/.cache/real", CANARY);
        prints(
            bed,
            &[],
            "echo a >> ~/.cache/real && cat ~/.cache/real",
            &format!("{CANARY}a"),
        );
        let strict = ["--sandbox", "strict"];
        prints(
            bed,
            &strict,
            "ls ~/.cache; echo new > ~/.cache/real; cat ~/.cache/real",
            "new",
        );
        prints(bed, &strict, "cat ~/.cache/real", "new");
        prints(bed, &[], "cat ~/.cache/real", &format!("{CANARY}a"));
    });
}

#[test]
fn secrets_rules_and_roots_hold_inside_a_layer() {
    in_each(beds_at(&[Level::Full]), |bed| {
        bed.file("home/.npmrc", CANARY);
        bed.file("home/.cache/denied/file", CANARY);
        bed.file("home/.cache/root/file", "before");
        bed.file("home/.npm/x", "x");
        bed.user(&format!(
            "tools: {{roots: [{0}/.cache/root]}}\npolicy: [{{deny: '*', path: '{0}/.cache/denied'}}]\n",
            bed.at("home")
        ));
        let answer = bed.bash(
            "cat ~/.npmrc ~/.cache/denied/file; mv ~/.cache/denied ~/.cache/moved; cat ~/.cache/moved/file; \
             rm -rf ~/.cache/denied; cp -r ~/.cache ~/.npm/all; cat ~/.npm/all/denied/file; echo after > ~/.cache/root/file; echo end",
        );
        assert!(answer.has("end") && !answer.has(CANARY), "{answer:?}");
        // A root is the real folder.
        assert_eq!(bed.read("home/.cache/root/file"), "after\n");
        assert_eq!(bed.read("home/.cache/denied/file"), CANARY);
    });
}

#[test]
fn the_home_as_a_work_folder_needs_no_layer() {
    in_each(beds_at(&[Level::Full]), |bed| {
        let home = bed.at("home");
        let answer = bed.bash_with(
            &["--dir", &home],
            "mkdir -p ~/.cache && echo x > ~/.cache/x && echo ok",
        );
        assert!(answer.has("ok"), "{answer:?}");
        assert_eq!(bed.read("home/.cache/x"), "x\n", "{}", bed.name());
    });
}

#[test]
fn two_sessions_at_once_have_a_layer_each_and_a_killed_one_leaves_its_layer() {
    in_each(beds_at(&[Level::Full]), |bed| {
        let mut one = bed.serve();
        let mut two = bed.serve();
        assert!(
            one.bash("echo one > ~/.cache/name; cat ~/.cache/name")
                .has("one")
        );
        assert!(
            two.bash("cat ~/.cache/name; echo two > ~/.cache/name; cat ~/.cache/name")
                .has("two")
        );
        assert!(one.bash("cat ~/.cache/name").has("one"));
        one.bash("sleep 100 & echo half > ~/.cache/half");
        one.signal(Signal::KILL);
        one.ended(Duration::from_secs(5));
        prints(
            bed,
            &[],
            "cat ~/.cache/name ~/.cache/half; touch ~/.cache/more && echo ok",
            "one\nhalf\nok",
        );
        drop(two);
    });
}

#[test]
fn without_namespaces_variables_lead_to_the_caches() {
    in_each(beds_at(&[Level::Partial]), |bed| {
        bed.file("home/.cache/real", "real");
        bed.file("home/.local/state/x", "");
        let before = home_of(bed);
        prints(
            bed,
            &[],
            "echo x > $GOCACHE/x && echo y > $npm_config_cache/y && mkdir $CARGO_HOME/z && cat ~/.cache/real && echo && env | grep -c XDG_CACHE; echo z > ~/.cache/real",
            "real\n0",
        );
        prints(bed, &[], "cat $GOCACHE/x $npm_config_cache/y", "x\ny");
        assert_eq!(home_of(bed), before, "{}", bed.name());
        assert_eq!(bed.read("home/.cache/real"), "real");
    });
}

#[test]
fn doctor_shows_the_size_and_clean_empties_the_layers() {
    in_each(beds(), |bed| {
        let fill = "mkdir -p ${GOCACHE:-$HOME/.cache} && head -c 3000000 /dev/urandom > ${GOCACHE:-$HOME/.cache}/big && chmod 555 ${GOCACHE:-$HOME/.cache}";
        bed.bash(fill);
        let doctor = || {
            let output = bed.haft(&["doctor", "--json"]).output().unwrap();
            let found: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
            found["caches"]["bytes"].as_u64().unwrap()
        };
        let size = doctor();
        assert!(
            (3_000_000..4_000_000).contains(&size),
            "{} {size}",
            bed.name()
        );
        let text = bed.haft(&["doctor"]).output().unwrap();
        let text = String::from_utf8_lossy(&text.stdout).into_owned();
        assert!(
            text.contains("MB for this work folder") || text.contains("MiB for this work folder"),
            "{text}"
        );
        let clean = bed.haft(&["clean", "--caches", "--yes"]).output().unwrap();
        let said = String::from_utf8_lossy(&clean.stdout).into_owned();
        assert!(said.contains("removed caches"), "{clean:?}");
        assert!(doctor() < 1_000_000, "{}", bed.name());
        assert!(
            !bed.bash("ls ${GOCACHE:-$HOME/.cache}/big && echo there")
                .has("there\n")
        );
    });
}

#[test]
fn the_user_can_turn_them_off() {
    in_each(beds_at(&[Level::Full]), |bed| {
        bed.user("tools: {caches: {enabled: false}}\n");
        let answer = bed.bash("mkdir -p ~/.cache/x; echo $?");
        assert!(answer.has("Read-only file system"), "{answer:?}");
    });
}

#[test]
fn go_finds_what_it_built_before() {
    if !Path::new("/usr/bin/go").exists() {
        println!("skipped: go is not installed");
        return;
    }
    in_each(beds(), |bed| {
        bed.file("work/go.mod", "module x\n\ngo 1.19\n");
        bed.file(
            "work/main.go",
            "package main\n\nfunc main() { println(\"built\") }\n",
        );
        let build = "go build -x -o x . 2>&1 | grep -c '/compile '; ./x";
        let compiled = |answer: &str| answer.lines().next().unwrap_or_default().to_owned();
        let first = bed.bash(build).text;
        assert!(
            first.contains("built") && compiled(&first) != "0",
            "{} {first}",
            bed.name()
        );
        let second = bed.bash(&format!("rm x; {build}")).text;
        assert!(
            second.contains("built") && compiled(&second) == "0",
            "{} {second}",
            bed.name()
        );
    });
}

#[test]
fn npm_fills_its_cache_from_a_local_package() {
    if !Command::new("npm")
        .arg("--version")
        .output()
        .is_ok_and(|found| found.status.success())
    {
        println!("skipped: npm is not installed");
        return;
    }
    let Some(bed) = beds_at(&[Level::Full]).pop() else {
        return;
    };
    bed.file(
        "work/pkg/package.json",
        r#"{"name": "pkg", "version": "1.0.0"}"#,
    );
    let answer = bed
        .bash("npm pack ./pkg >/dev/null && npm cache add ./pkg-1.0.0.tgz && ls ~/.npm/_cacache");
    assert!(answer.has("index-v5"), "{answer:?}");
    assert!(!bed.has("home/.npm"));
}
