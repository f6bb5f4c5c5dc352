//! A rule about one command, ordinary lines that it does not concern, and every spelling of
//! the command that it does.

use super::{Allow, Ask, Deny, act, bash, policy};
use crate::{Effect, Resource};

/// Lines that the agent of a developer types.
const ORDINARY: &[&str] = &[
    "pytest 2>&1 | tail -20",
    "pytest -x -q tests/test_a.py::test_b 2>&1 | tail -n 40",
    "ls *.py",
    "ls -la src/**/*.rs | head -50",
    "for f in *.rs; do wc -l \"$f\"; done",
    "for f in src/*.ts; do echo \"== $f\"; head -5 $f; done",
    "cd sub && make",
    "cd sub && make 2>&1 | tee build.log",
    "(cd sub && cargo test > ../out.log 2>&1); tail -5 out.log",
    "grep -rn foo src | head",
    "grep -rn \"fn main\" --include='*.rs' . 2>/dev/null | head -20",
    "python - <<'EOF'\nimport os\nprint(os.getcwd())\nEOF",
    "python3 -c \"import sys; print(sys.version)\"",
    "FOO=1 cargo test",
    "RUST_BACKTRACE=1 RUST_LOG=debug cargo test -- --nocapture 2>&1 | grep -A5 panicked",
    "PYTHONUNBUFFERED=1 python app.py",
    "PYTHONPATH=src pytest tests",
    "git diff $(git rev-parse HEAD~1)",
    "git log --oneline $(git merge-base main HEAD)..HEAD",
    "echo \"$(git rev-parse --short HEAD)\" > version.txt",
    "if test -f x; then cat x; fi",
    "if [ -d node_modules ]; then echo yes; else npm ci; fi",
    "[ -f .env ] && cat .env || echo none",
    "[[ -n \"$CI\" ]] && echo ci",
    "npm test -- --watch=false > out.log 2>&1",
    "npm run build && npm run lint 2>&1 | tail -30",
    "npx tsc --noEmit 2>&1 | head -50",
    "find . -name '*.py' | xargs grep -l x",
    "find . -name '*.py' -not -path './venv/*' -exec wc -l {} +",
    "find . -type f -name '*.tmp' -delete",
    "find . -name node_modules -prune -o -name '*.ts' -print0 | xargs -0 sed -i 's/a/b/g'",
    "git status --short && git diff --stat",
    "git add -A && git commit -m \"$(cat <<'EOF'\nFix the thing\n\nIt's better now.\nEOF\n)\"",
    "git add src/*.rs; git commit -qm \"fix: $MSG\"",
    "git commit -am 'do not git push'",
    "git log --format='%h %s' -10 | cat",
    "git --no-pager diff HEAD~1 -- '*.rs'",
    "git -C sub status",
    "git stash list; git stash show -p stash@{0} | head",
    "git checkout -b \"feature/$NAME\"",
    "git show HEAD:src/main.rs | sed -n '1,40p'",
    "GIT_AUTHOR_NAME=me GIT_AUTHOR_EMAIL=me@example.com git commit -m x",
    "cat > src/a.py <<'EOF'\nprint(\"git push\")\nEOF",
    "cat >> .gitignore <<EOF\n*.log\n$EXTRA\nEOF",
    "tee -a notes.md <<< \"$x\" > /dev/null",
    "sed -n '10,20p' f; sed -i 's/git push/git pull/' f",
    "awk '{ print $1 }' f | sort | uniq -c | sort -rn | head",
    "mkdir -p a/{b,c} && touch a/b/x && cp a/b/x{,.bak}",
    "while read -r line; do echo \"$line\"; done < list.txt",
    "while IFS= read -r l; do printf '%s\\n' \"$l\"; done <<< \"$x\"",
    "cat list.txt | while read f; do test -e \"$f\" || echo \"missing $f\"; done",
    "i=0; while [ $i -lt 3 ]; do echo $i; i=$((i+1)); done",
    "for i in {1..5}; do curl -s localhost:8080/$i; done",
    "for i in 1 2 3; do echo $((i * 2)); done",
    "until curl -sf localhost:3000; do sleep 1; done",
    "case \"$1\" in start|stop) echo ok ;; *) echo no ;; esac",
    "f() { local x=\"$1\"; echo \"$x\"; }; f a",
    "timeout 60 npm test",
    "timeout 5s python -m http.server 8000 &",
    "nice -n 10 make -j$(nproc)",
    "time cargo build",
    "env FOO=bar make",
    "env | grep PATH",
    "sh -c 'echo hi; ls *.c'",
    "bash -c 'set -e; for i in 1 2; do echo $i; done'",
    "bash scripts/build.sh --fast",
    "source venv/bin/activate && python x.py",
    ". ./env.sh; make",
    "\"$VIRTUAL_ENV/bin/python\" -m pip list",
    "set -euo pipefail; ls",
    "export FOO=bar; make",
    "export NODE_ENV=test && npm test",
    "make -j4 && ./a.out < input.txt > /tmp/out.txt; diff /tmp/out.txt expected.txt",
    "diff <(sort a) <(sort b)",
    "ls | wc -l; echo $?",
    "kill %1; kill $(pgrep -f server.py)",
    "nohup python server.py > server.log 2>&1 &",
    "sleep 2 & wait; echo done # git push",
    "docker run --rm -v \"$PWD\":/w -w /w node:20 npm test",
    "jq '.scripts | keys[]' package.json",
    "curl -s localhost:3000/api | jq -r '.[] | .name'",
    "a=(1 2 3); echo \"${a[@]}\" ${#a[@]}",
    "x=${y:-default}; echo \"${x%.py} ${x//a/b}\"",
    "cargo test 2>&1 | tail -5; echo \"exit ${PIPESTATUS[0]}\"",
    "trap 'echo bye' EXIT; ls",
    "echo 'git push'",
    "grep -rn 'git push' docs/*.md",
    "man git-push | head; git help push",
    "alias ll='ls -l'; ls",
    "! grep -q TODO src/main.rs",
    "{ echo a; echo b; } > out.txt",
    "test -z \"$(git status --porcelain)\" && echo clean",
    "cd \"$(git rev-parse --show-toplevel)\" && ls",
    "CI=1 npm test",
    "xargs -n1 -P4 echo < list.txt",
    "command -v node; type git; which python3",
    "git fetch origin main 2>&1",
    "git pushd 2>/dev/null; pushd src; popd",
    "cp \"$SRC\"/*.json build/ && ls build",
    "printf '%s\\n' \"${files[@]}\" | sort -u",
];

/// Lines that run `git push`, or may.
const SPELLINGS: &[&str] = &[
    "git push",
    "git push --force origin main",
    "git  push",
    "git\tpush",
    "'git' \"push\"",
    "g\\it pu\\sh",
    "\\git push",
    "git pu''sh",
    "git $'push'",
    "$'\\x67it' push",
    "/usr/bin/git push",
    "./git push",
    "~/bin/git push",
    "git -C d push",
    "git -C \"$D\" push origin",
    "git --no-pager push",
    "git --git-dir=x --work-tree y push",
    "git -c user.name=x push",
    "git -c alias.p=push p",
    "git -c alias.p='!git push' p",
    "git config alias.p push",
    "/usr/lib/git-core/git-push origin",
    "command git push",
    "builtin command git push",
    "exec git push",
    "env git push",
    "env A=b git push",
    "env -S 'git push'",
    "A=b git push",
    "GIT_DIR=x git push",
    "sudo git push",
    "timeout 5 git push",
    "nice -n 5 git push",
    "nohup git push &",
    "time git push",
    "! git push",
    "sh -c 'git push'",
    "bash -ec \"cd a && git push\"",
    "sh -c 'git \"$@\"' - push",
    "bash <<< 'git push'",
    "bash <<'EOF'\ngit push\nEOF",
    "echo git push | sh",
    "eval git push",
    "eval 'git push'",
    "eval \"$CMD\"",
    "$(git push)",
    "echo $(git push)",
    "echo \"$(git push)\"",
    "echo `git push`",
    "`git push`",
    "echo ${x:-$(git push)}",
    "cat <(git push)",
    "for x in a; do git push; done",
    "while true; do git push; done",
    "if git push; then ls; fi",
    "if ls; then git push; fi",
    "case a in a) git push;; esac",
    "(git push)",
    "{ git push; }",
    "f() { git push; }; f",
    "f() { git \"$@\"; }; f push",
    "git() { command git push; }; git status",
    "ls; git push",
    "ls && git push 2>&1 | tail -3",
    "ls | git push",
    "ls & git push",
    "ls\ngit push",
    "ls # x\ngit push",
    "git push > out.log 2>&1",
    ">out.log git push",
    "2>&1 git push",
    "git${IFS}push",
    "git$IFS$9push",
    "g=git; $g push",
    "g=git; \"$g\" push",
    "p=push; git $p",
    "p=push; git \"$p\"",
    "c='git push'; $c",
    "a=(git push); \"${a[@]}\"",
    "set -- git push; \"$@\"",
    "git pus?",
    "git {push,origin}",
    "{git,push}",
    "git $(echo push)",
    "$(echo git) push",
    "xargs git push",
    "echo push | xargs git",
    "echo a | xargs -I{} git push {}",
    "find . -maxdepth 0 -exec git push \\;",
    "parallel git push ::: origin",
    "watch git push",
    "ssh host git push",
    "shopt -s expand_aliases; alias p='git push'\np",
    "shopt -s expand_aliases; alias g=git\ng push",
    "trap 'git push' EXIT",
    "hash -p /usr/bin/git g; g push",
    "coproc git push",
    "git submodule foreach 'git push'",
    "git bisect run git push",
    "git rebase -x 'git push' HEAD~1",
    "PROMPT_COMMAND='git push' bash -i",
    "PATH=x:$PATH git push",
    "cat <<EOF\n$(git push)\nEOF",
    "git push '",
];

fn asked_about(line: &str) -> Vec<String> {
    let rules = policy(&["ask bash git push"]);
    let resources = [Resource::Command(line.to_owned())];
    let judged = rules.judge(&act("bash", Effect::Execute, &resources));
    let open = judged.parts.iter().filter(|part| part.verdict != Allow);
    open.map(|part| format!("{} {}", part.subject, part.by))
        .collect()
}

#[test]
fn a_rule_about_one_command_asks_about_no_other() {
    assert!(ORDINARY.len() >= 60);
    for rules in [&["ask bash git push"][..], &["deny bash git push"]] {
        let rules = policy(rules);
        let asked = ORDINARY.iter().filter(|line| bash(&rules, line) != Allow);
        let asked: Vec<_> = asked.map(|line| (line, asked_about(line))).collect();
        assert!(asked.is_empty(), "{}: {asked:#?}", asked.len());
    }
}

#[test]
fn a_rule_about_one_command_asks_about_every_spelling() {
    assert!(SPELLINGS.len() >= 40);
    for (rules, expected) in [
        (&["ask bash git push"][..], Ask),
        (&["ask bash git push", "allow bash"], Ask),
        (&["deny bash git push"], Deny),
    ] {
        let rules = policy(rules);
        let missed = SPELLINGS
            .iter()
            .filter(|line| bash(&rules, line) != expected);
        let missed: Vec<_> = missed.collect();
        assert!(missed.is_empty(), "{expected}: {missed:#?}");
    }
}

#[test]
fn allowed_commands_stay_allowed_however_they_are_joined() {
    let rules = policy(&[
        "allow bash pytest",
        "allow bash tail",
        "allow bash wc",
        "allow bash git log",
        "allow bash git rev-parse",
        "ask bash",
    ]);
    for line in [
        "pytest 2>&1 | tail -20",
        "pytest > out.log 2>&1; tail out.log",
        "pytest > /w/out.log",
        "pytest > /tmp/out.log",
        "pytest &> /dev/null",
        "pytest *.py",
        "pytest \"$X\" $Y",
        "for f in *.py; do wc -l \"$f\"; done",
        "if pytest; then tail x; fi",
        "(pytest) && { tail x; }",
        "git log $(git rev-parse HEAD)",
        "FOO=1 pytest",
        "timeout 60 pytest",
        "env FOO=1 pytest",
        "sh -c 'pytest | tail'",
        "time pytest",
        "tail <<< x",
        "pytest & wc x",
        "tail x | xargs wc -l",
    ] {
        assert_eq!(bash(&rules, line), Allow, "{line}");
    }
    for line in [
        // Something else runs.
        "pytest | sh",
        "pytest; rm x",
        "pytest $(rm x)",
        "xargs rm",
        "timeout 60 rm x",
        "sudo pytest",
        "/tmp/pytest",
        "bash -lc pytest",
        "git -c core.pager=x log",
        "git -C /elsewhere log",
        // Another program may run, or other code.
        "PATH=. pytest",
        "export PATH=.; pytest",
        "LD_PRELOAD=./x.so pytest",
        "env LD_PRELOAD=./x.so pytest",
        "PYTHONPATH=. pytest",
        "GIT_SSH_COMMAND=x git log",
        "HOME=. git log",
        "IFS=x pytest",
        // Something is written elsewhere, or may be.
        "pytest > /etc/x",
        "pytest > ../x",
        "pytest > ~/x",
        "pytest > \"$HOME/x\"",
        "pytest > \"$X\"",
        "pytest > /dev/tcp/h/1",
        // It is not what it seems.
        "pytest\r",
        "pytest \u{200b}",
        "pytest '",
        "$C pytest",
        "git $X",
    ] {
        assert_eq!(bash(&rules, line), Ask, "{line}");
    }
}

#[test]
fn a_redirection_matters_to_a_rule_only_outside_the_work_folder() {
    let rules = policy(&["ask bash git push"]);
    for (line, expected) in [
        ("ls > a/b", Allow),
        ("ls > ./a/../b", Allow),
        ("ls >> /w/a", Allow),
        ("ls > /tmp/a", Allow),
        ("ls > /dev/stderr", Allow),
        ("ls >&2", Allow),
        ("ls >&-", Allow),
        ("ls 2>&1 3>&2-", Allow),
        ("ls > \"$f.txt\"", Allow),
        ("cd a && ls > ../b", Allow),
        ("cd .. && ls > a", Allow),
        ("ls <> a", Allow),
        ("cat < /etc/hosts", Allow),
        ("ls > ../a", Ask),
        ("ls > /w/../a", Ask),
        ("ls > /wx", Ask),
        ("ls &> /etc/a", Ask),
        ("ls >& /etc/a", Ask),
        ("ls >| /etc/a", Ask),
        ("ls <> /etc/a", Ask),
        ("ls > ~/a", Ask),
        ("{ ls; } > /etc/a", Ask),
        ("ls > \"/etc/$f\"", Ask),
        ("cat < /dev/tcp/h/1", Ask),
    ] {
        assert_eq!(bash(&rules, line), expected, "{line}");
    }
}

#[test]
fn always_is_offered_where_rules_can_express_it() {
    let place = || crate::RuleLocation {
        file: "x".to_owned(),
        line: 0,
    };
    let offered = |rules: &[&str], line: &str| {
        let resources = [Resource::Command(line.to_owned())];
        let input = act("bash", Effect::Execute, &resources);
        let suggestion = policy(rules).suggest(&input, &place());
        suggestion.map(|rules| rules.to_string())
    };
    let push = "{ allow: bash, command: git push }";
    for line in [
        "git push 2>&1 | tail -3",
        "for r in a b; do git push $r; done",
        "git -C d push",
        "timeout 60 git push > log",
        "if ls; then git push; fi",
    ] {
        let rules = offered(&["ask bash git push"], line);
        assert_eq!(rules.as_deref(), Some(push), "{line}");
    }
    assert_eq!(
        offered(&["ask bash"], "cd a && make -j4 2>&1 | tail").as_deref(),
        Some(
            "{ allow: bash, command: cd a }, { allow: bash, command: make }, { allow: bash, command: tail }"
        )
    );
    assert_eq!(
        offered(&["ask bash"], "git -C d log -1").as_deref(),
        Some("{ allow: bash, command: git -C d log -1 }, { allow: bash, command: git log }")
    );
    for (line, words) in [
        ("python3 x.py --all", "python3 x.py"),
        ("python3 -m pytest -q", "python3 -m pytest -q"),
        ("node src/index.js", "node src/index.js"),
        ("npm run build -- --watch", "npm run build"),
        ("npx tsc -p .", "npx tsc"),
        ("sh ./run.sh x", "sh ./run.sh"),
        ("cargo run --release", "cargo run"),
        ("cat a b", "cat a"),
    ] {
        let rule = format!("{{ allow: bash, command: {words} }}");
        assert_eq!(offered(&["ask bash"], line), Some(rule), "{line}");
    }
    for line in ["git $X", "$G push", "PATH=x git push", "a; b; c; d; e; f"] {
        assert_eq!(
            offered(&["ask bash", "ask bash git push"], line),
            None,
            "{line}"
        );
    }
    assert_eq!(offered(&["ask bash npm publish"], "npm $X"), None);
}
