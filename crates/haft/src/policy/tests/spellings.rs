//! Ways to run `rm`, each tried in the real shell, and ordinary lines.
#![expect(
    clippy::disallowed_methods,
    reason = "the shell shows that a spelling runs the program"
)]

use super::{bash, policy};
use crate::policy::Verdict;
use crate::policy::tests::{Deny, act};
use crate::{Effect, Resource};
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Lines that run `rm` in the shell of this machine. They run with the rights of the test,
/// so none may reach the real program: `@` is the folder of a fake one that removes
/// nothing, and lines that would look elsewhere belong in `WOULD`.
const RUN: &[&str] = &[
    // Joined.
    "rm x",
    "ls; rm x",
    "ls && rm x",
    "false || rm x",
    "ls | rm x",
    "ls |& rm x",
    "ls\nrm x",
    "ls & rm x",
    "rm x &",
    "ls \\\n&& rm x",
    "ls &\\\n& rm x",
    "true;rm x",
    "# a comment\nrm x",
    "ls # a comment; ls\nrm x",
    "! rm x",
    "! ! rm x",
    "time rm x",
    "time -p rm x",
    "time -- rm x",
    "time ! rm x",
    "!  time rm x",
    // Quoted.
    "r\\m x",
    "'r'm x",
    "\"rm\" x",
    "\"r\"'m' x",
    "r''m x",
    "r\"\"m x",
    "r\\\nm x",
    "$'rm' x",
    "$'\\x72m' x",
    "$'\\162\\155' x",
    "$'\\u0072m' x",
    "$'\\U00000072m' x",
    "r$'m' x",
    "$'rm\\0ls' x",
    "$\"rm\" x",
    "$'a\\'b' 2>/dev/null; rm x",
    "echo $'a\\'; ' ; rm x",
    "echo \"a\\\"; \"; rm x",
    "echo 'a\\'; rm x",
    // Expansions that keep the word, or change it.
    "{rm,x}",
    "r{m,} x",
    "{,}rm x",
    "{ls,-d,.}; {rm,x}",
    "{rm,{x,y}}",
    "@/r[m] x",
    "@/[r]m x",
    "~/bin/rm x",
    "$HOME/bin/rm x",
    "\"$HOME/bin/rm\" x",
    "\"$HOME\"/bin/rm x",
    "${HOME}/bin/rm x",
    "C=rm; $C x",
    "C=rm; \"$C\" x",
    "C='rm x'; $C",
    "C=r; ${C}m x",
    "a=(rm x); \"${a[@]}\"",
    "set -- rm x; \"$@\"",
    "$EMPTY rm x",
    "${C:-rm} x",
    "$(echo rm) x",
    "`echo rm` x",
    "r$(echo m) x",
    "shopt -s nullglob; nothing* rm x",
    "printf -v C rm; $C x",
    "read C <<< rm; $C x",
    "C=mr; ${C:1}${C:0:1} x",
    // Substitutions.
    "echo $(rm x)",
    "echo \"$(rm x)\"",
    "echo \"$(date)\"; rm x",
    "echo \"$(echo \"$(rm x)\")\"",
    "echo \"a $(echo \"b $(echo ')' ; rm x)\") c\"",
    "echo `rm x`",
    "echo \"`rm x`\"",
    "echo `echo \\`rm x\\``",
    "echo `echo \"a\"`; rm x",
    "echo \"`echo ')'`\"; rm x",
    "echo ${y:-$(rm x)}",
    "echo \"${y:-$(rm x)}\"",
    "echo ${y:-`rm x`}",
    "echo \"${y:-\"$(rm x)\"}\"",
    "echo ${y:-<(rm x)}; sleep 0.1",
    "echo ${y:-'}'}; rm x",
    "echo \"${y:-\\}}\"; rm x",
    "echo $(( $(rm x; echo 1) + 1 ))",
    "echo $((1)); rm x",
    "echo $( (rm x) )",
    "echo $(case a in a) rm x;; esac)",
    "echo $(case a in (a) rm x;; esac)",
    "echo $(echo \\) ; rm x)",
    "echo $(# )\nrm x)",
    "cat <(rm x)",
    "ls > >(rm x); sleep 0.1",
    "ls <(echo a) ; rm x",
    "y=$(rm x)",
    "y=`rm x`; ls",
    "y=\"$(rm x)\" ls",
    "a=($(rm x))",
    "a=(b c) ; rm x",
    "a=(b # )\nc); rm x",
    "a[$(rm x; echo 1)]=2",
    "a[1 ]=3 rm x",
    "ls > \"$(rm x; echo f)\"",
    "ls >f$(rm x)",
    "y='$(rm x)'; echo \"${y@P}\"",
    "y='a[$(rm x)]'; echo $((y))",
    "y='a[$(rm x)]'; ((y)); true",
    "y='a[$(rm x)]'; [[ y -eq 1 ]]",
    "y='a[$(rm x)]'; let y",
    "test -v 'a[$(rm x)]'",
    "a=(b); unset 'a[$(rm x)]'",
    "printf -v 'a[$(rm x)]' b",
    "declare 'a[$(rm x)]=b'",
    "y='a[$(rm x)]'; echo ${!y}",
    "y='a[$(rm x)]'; a[y]=1",
    "declare -i y='a[$(rm x)]'",
    "declare -n y='a[$(rm x)]'; echo $y",
    "RANDOM='a[$(rm x)]'",
    "z=b; y='a[$(rm x)]'; echo ${z:y}",
    "y='a[$(rm x)]'; a=(b); unset 'a[y]'",
    "y=a[\\$\\(rm\\ x\\)]; echo $((y))",
    "echo $[ $(rm x; echo 1) ]",
    // Here-documents.
    "cat <<EOF\na\nEOF\nrm x",
    "cat <<'EOF'\n$(ls\nEOF\nrm x",
    "cat <<\"EOF\"\n'\nEOF\nrm x",
    "cat <<\\EOF\n`\nEOF\nrm x",
    "cat <<-EOF\n\ta\n\tEOF\nrm x",
    "cat <<A <<B\na\nA\nb\nB\nrm x",
    "cat <<EOF; rm x\nEOF\n",
    "cat <<EOF && rm x\n'\nEOF\n",
    "cat <<EOF\n$(rm x)\nEOF",
    "cat <<EOF\n`rm x`\nEOF",
    "cat <<EOF\n${y:-$(rm x)}\nEOF",
    "cat <<EOF\n\\\\$(rm x)\nEOF",
    "cat <<EOF\na\\\nEOF\nEOF\nrm x",
    "cat <<EOF\nEO\\\nF\nrm x",
    "cat <<E\"O\"F\n$(ls\nEOF\nrm x",
    "cat <<''\n$(ls\n\nrm x",
    "cat <<EOF | cat\na\nEOF\nrm x",
    "echo \"$(cat <<'EOF'\nit's\nEOF\n)\"; rm x",
    "echo \"$(cat <<EOF\n\"\nEOF\n)\"; rm x",
    "cat <<< a; rm x",
    "cat <<< \"$(rm x)\"",
    "{ cat; rm x; } <<EOF\na\nEOF",
    "cat 0<<EOF\na\nEOF\nrm x",
    // Compound commands.
    "(rm x)",
    "( ( rm x ) )",
    "{ rm x; }",
    "{ { rm x; }; }",
    "if rm x; then ls; fi",
    "if ls; then rm x; fi",
    "if false; then ls; elif true; then rm x; fi",
    "if false; then ls; else rm x; fi",
    "for i in a; do rm x; done",
    "for i in a\ndo\nrm x\ndone",
    "for i in a; { rm x; }",
    "for ((i=0; i<1; i++)); do rm x; done",
    "for ((i=0; i<1; i++)) { rm x; }",
    "while rm x; do break; done",
    "while true; do rm x; break; done",
    "until rm x; do break; done",
    "select i in a; do rm x; break; done <<< 1",
    "case a in a) rm x;; esac",
    "case a in (a|b) rm x;; esac",
    "case a in a) ls;& b) rm x;; esac",
    "case a in a) ls;;& a) rm x;; esac",
    "case a in\n a)\n rm x\nesac",
    "case $(rm x) in a) ls;; esac",
    "f() { rm x; }; f",
    "f() (rm x); f",
    "f () if true; then rm x; fi; f",
    "function f { rm x; }; f",
    "function f() { rm x; }; f",
    "f() { \"$@\"; }; f rm x",
    "ls() { rm \"$@\"; }; ls x",
    "coproc rm x; wait",
    "coproc { rm x; }; wait",
    "coproc NAME { rm x; }; wait",
    "[[ a ]] && rm x",
    "[[ a && ( b )]]; rm x; [[ a ]]",
    "[[ $(rm x) ]]",
    "[[ a =~ (a|b) ]]; rm x",
    "[[ -n \"]]\" ]]; rm x",
    "((1)); rm x",
    "((1)) && rm x",
    "[ a ] && rm x",
    "ls | while read y; do rm $y; done",
    // Redirections and assignments around it.
    ">f rm x",
    "2>/dev/null rm x",
    "2>&1 rm x",
    "</dev/null rm x",
    "<<<a rm x",
    "{fd}>f rm x",
    "&>f rm x",
    ">&2 rm x",
    ">|f rm x",
    "<>f rm x",
    "rm>f x",
    "A=b rm x",
    "A=b C=d >f rm x",
    "A+=b rm x",
    "A='b c' rm x",
    "A=$(ls) rm x",
    "ls &>f; rm x",
    "ls >&f; rm x",
    // Builtins.
    "command rm x",
    "command -- rm x",
    "command command rm x",
    "builtin command rm x",
    "exec rm x",
    "exec -a y rm x",
    "exec -c @/rm x",
    "eval rm x",
    "eval 'rm x'",
    "eval \"r\" \"m\" x; eval rm x",
    "eval 'eval \"rm x\"'",
    "C='rm x'; eval $C",
    "C='rm x'; eval \"$C\"",
    "trap 'rm x' EXIT",
    "trap -- 'rm x' EXIT",
    "C='rm x'; trap \"$C\" EXIT",
    ". /dev/stdin <<< 'rm x'",
    "source /dev/stdin <<< 'rm x'",
    ". <(echo rm x)",
    "hash -p @/rm ls; ls x",
    "BASH_CMDS[ls]=@/rm; ls x",
    "shopt -s expand_aliases\nalias ls=rm\nls x",
    "shopt -s expand_aliases\nalias q='rm x'\nq",
    "shopt -s expand_aliases\nBASH_ALIASES[q]='rm x'\nq",
    "mapfile -C 'rm x; :' -c 1 y <<< a",
    "readarray -C 'rm x #' -c1 y <<< a",
    "compgen -W '$(rm x)'",
    "compgen -C 'rm x' a",
    "PS4='$(rm x)'; set -x; ls",
    "PROMPT_COMMAND='rm x' bash --norc -i <<< :",
    "BASH_ENV='$(rm x)' bash -c :",
    "export BASH_ENV='$(rm x)'; bash -c :",
    // Shells.
    "sh -c 'rm x'",
    "bash -c 'rm x'",
    "bash -ec \"cd . && rm x\"",
    "bash -c -e 'rm x'",
    "bash -o errexit -c 'rm x'",
    "bash --norc -c 'rm x'",
    "bash +x -c 'rm x'",
    "bash -c '\"$@\"' - rm x",
    "bash -c '$0 x' rm",
    "bash <<< 'rm x'",
    "bash -s <<< 'rm x'",
    "bash - <<< 'rm x'",
    "bash /dev/stdin <<< 'rm x'",
    "sh <<EOF\nrm x\nEOF",
    "sh <<'EOF'\nrm x\nEOF",
    "sh <<'EOF' 3<<'B'\nrm x\nEOF\nls\nB",
    "echo rm x | sh",
    "echo rm x | bash -s",
    "printf 'rm x' | bash",
    "bash <(echo rm x)",
    "bash < <(echo rm x)",
    "echo rm x | { sh; }",
    "{ sh; } <<< 'rm x'",
    "exec 3<<< 'rm x'; sh <&3",
    "exec <<< 'rm x'; sh",
    "cd /dev; bash stdin <<< 'rm x'",
    "cd /dev/fd; . ./0 <<< 'rm x'",
    "N='5 rm x'; nice -n $N",
    "O='posix -c rm'; bash -o $O",
    "C='rm x'; bash -c \"$C\"",
    "bash -c \"rm $HOME/x\"",
    "sh -c 'sh -c \"sh -c \\\"rm x\\\"\"'",
    "sh -c 'ls &>f rm x' ; rm x",
    "env BASH_FUNC_ls%%='() { rm x; }' bash -c 'ls x'",
    // Programs that run others.
    "env rm x",
    "env A=b rm x",
    "env -i PATH=\"$PATH\" rm x; rm x",
    "env -u A rm x",
    "env - @/rm x",
    "env -S 'rm x'",
    "env -S'rm x'",
    "env --split-string='rm x'",
    "env -S 'A=b rm' x",
    "env -C . rm x",
    "nohup rm x",
    "nice rm x",
    "nice -n 5 rm x",
    "nice -5 rm x",
    "nice --adjustment=5 rm x",
    "timeout 5 rm x",
    "timeout -k 1 5 rm x",
    "timeout --signal=TERM 5s rm x",
    "setsid -w rm x",
    "stdbuf -o0 rm x",
    "stdbuf -o 0 rm x",
    "echo x | xargs rm",
    "echo x | xargs -0 rm",
    "echo x | xargs -n 1 rm -f",
    "echo x | xargs -I{} rm {}",
    "echo rm x | xargs env",
    "echo rm | xargs -I{} env {} x",
    "echo 'rm x' | xargs -d '\\n' sh -c",
    "echo x | xargs sh -c 'rm x'",
    "find . -name x -exec rm {} \\;",
    "find . -name x -exec rm {} +",
    "find . -name x -execdir rm {} \\;",
    "find . -name x -exec sh -c 'rm x' \\;",
    "find . -name x -exec true \\; -exec rm {} ';'",
    "find . -name x -exec true {} + -exec rm {} +",
    "C=-exec; find . -name x \"$C\" rm {} +",
    "flock f rm x",
    "flock f -c 'rm x'",
    "flock -n f rm x",
    "script -qc 'rm x' f",
    "script -q -c 'rm x' f",
    "git -c alias.y='!rm x' y",
    "nohup nice -n 5 timeout 5 rm x",
    "git init -q; git -c alias.y='!rm x' y",
];

/// Lines that would run `rm` if the program, the right or the network were available.
const WOULD: &[&str] = &[
    "sudo rm x",
    "sudo -u root rm x",
    "sudo -n -E A=b rm x",
    "sudo --user=root rm x",
    "sudo --new-option rm x",
    "sudo -s <<< 'rm x'",
    "sudo -i <<< 'rm x'",
    "sh -c \"eval '((rm x))'\"",
    "doas -u root rm x",
    "su -c 'rm x'",
    "su root -c 'rm x'",
    "su - root --command='rm x'",
    "su -s /bin/rm root x",
    "busybox rm x",
    "busybox sh -c 'rm x'",
    "toybox rm x",
    "chroot / rm x",
    "chroot --userspec=0 / /bin/rm x",
    "unshare rm x",
    "unshare -r -- rm x",
    "unshare --map-root-user rm x",
    "ssh host rm x",
    "ssh -p 22 host 'rm x'",
    "ssh host -t rm x",
    "ssh -o ProxyCommand='rm x' host ls",
    "ssh host <<< 'rm x'",
    "parallel rm ::: x",
    "parallel -j 2 rm {} ::: x",
    "parallel ::: 'rm x'",
    "watch rm x",
    "watch -n 1 'rm x'",
    "watch -x rm x",
    "ionice -c 3 rm x",
    "chrt 5 rm x",
    "taskset 1 rm x",
    "taskset -c 0 rm x",
    "strace -f -o out rm x",
    "/usr/bin/time -f %e rm x",
    "\\time -v rm x",
    "zsh -c 'rm x'",
    "fish -c 'rm x'",
    "ksh -c 'rm x'",
    "tmux new -d 'rm x'",
    "screen -dm rm x",
    "at now <<< 'rm x'",
    "systemd-run rm x",
    "/lib64/ld-linux-x86-64.so.2 /bin/rm x",
    "pkexec rm x",
    "expect -c 'spawn rm x'",
    "git bisect run rm x",
    "git submodule foreach 'rm x'",
    "git rebase -x 'rm x' HEAD~1",
    "git rebase --exec='rm x' HEAD~1",
    "git config alias.y '!rm x'",
    "GIT_EDITOR='rm x' git commit",
    "PAGER='rm x' git log",
    "enable -f ./lib.so ls",
    "jobs -x rm x",
    "sh -c '((rm x))'",
    "sh -c '[[ a || rm x ]]'",
    "sh -c 'ls &>f rm x'",
    "/bin/r? x",
    "/bin/[r]m x",
    "/bin/rm{,} x",
    "command -p rm x",
    "bash -lc 'rm x'",
    "env - /bin/rm x",
    "/bin/r* x",
    // Text that cannot be followed makes the line unreadable.
    "ls 'a",
    "ls \"$(rm x",
    "ls !(a)",
    "cat <<EOF\nrm x",
    "${ rm x; }",
    "$((rm x) )",
];

/// Ordinary lines.
const ORDINARY: &[&str] = &[
    "git commit -m \"$(cat <<'EOF'\nremove rm\n\nrm x; it's \"gone\" (really) `now`\nEOF\n)\"",
    "git commit -m \"$(cat <<EOF\nrm x\nEOF\n)\"",
    "grep -rn 'rm ' src | head",
    "grep -rn \"rm \" src 2>/dev/null | head -5",
    "for f in *.py; do python -m py_compile \"$f\"; done",
    "cat > f <<'EOF'\n#!/bin/sh\nrm -rf build\nEOF",
    "cat > f <<EOF\nrm $x\nEOF",
    "cat >> .gitignore << EOF\n*.o\nEOF",
    "npm run build 2>&1 | tail -5",
    "npm rm left-pad",
    "git rm --cached x",
    "docker rm x",
    "echo \"rm x\"",
    "echo rm x",
    "echo 'rm x; rm y'",
    "echo $(date) rm",
    "[ -f x ] && echo yes",
    "[ -f x ] || { echo no; exit 1; }",
    "if [ -d a ]; then ls a; fi",
    "if [ \"$x\" -eq 1 ]; then echo a; elif [[ $x == b* ]]; then echo b; else echo c; fi",
    "x=$(git rev-parse HEAD); echo \"$x\"",
    "python3 - <<'EOF'\nimport os\nos.remove('rm')\nprint(\"rm x\")\nEOF",
    "python3 -c \"print('rm x')\"",
    "find . -name '*.o' -print",
    "find . -name '*.o' -delete",
    "find \"$DIR\" -name '*.py' | xargs grep -n TODO",
    "find . -type f -exec grep -l rm {} +",
    "docker run --rm x",
    "docker run --rm -v \"$PWD\":/w -w /w node npm test",
    "ls *.py",
    "ls -la ~/src",
    "pytest -x 2>&1 | tail -20",
    "cargo test -- --nocapture > out.txt 2>&1; tail -5 out.txt",
    "cd src && ls; cd ..",
    "(cd src && make)",
    "make -j$(nproc)",
    "export PATH=\"$HOME/bin:$PATH\"; which node",
    "export $(cat .env | xargs)",
    "FOO=bar BAZ=\"$x\" ./build.sh",
    "./build.sh --rm",
    "bash build.sh",
    "bash \"$DIR/build.sh\" a b",
    "sh -c 'echo hi'",
    "bash -c 'set -e; for i in 1 2; do echo $i; done'",
    "bash <<'EOF'\nset -e\necho a\nEOF",
    "source venv/bin/activate && python x.py",
    ". ./env.sh",
    "\"$VIRTUAL_ENV/bin/python\" x.py",
    "~/.local/bin/uv run x",
    "sed -n '1,5p' f; sed -i 's/rm/mv/' f",
    "awk '{ print $1 }' f | sort | uniq -c",
    "curl -s localhost:80 | jq '.[] | .rm'",
    "while read -r line; do echo \"$line\"; done < f",
    "while IFS= read -r l; do printf '%s\\n' \"$l\"; done <<< \"$x\"",
    "case \"$1\" in start|stop) echo ok ;; *) echo rm ;; esac",
    "f() { local x=\"$1\"; echo \"$x\"; }; f a",
    "i=0; while ((i<3)); do echo $i; i=$((i+1)); done",
    "for i in {1..5}; do echo $i; done",
    "mkdir -p a/{b,c}; cp f.txt{,.bak}",
    "echo \"${x:-default} ${#x} ${x%.py} ${x//a/b}\"",
    "test -f x && cat x | head -3 &",
    "sleep 1 & wait",
    "timeout 30 npm test",
    "time cargo build",
    "env | grep PATH",
    "env RUST_LOG=debug cargo run",
    "sudo apt-get install -y jq",
    "nohup python server.py > log 2>&1 &",
    "git log --format='%h %s' | head -3",
    "git diff HEAD~1 -- '*.rs' | grep '^-.*rm'",
    "git -c user.name=\"$N\" commit -m 'rm'",
    "git stash list && git show stash@{0}",
    "command -v rm",
    "type rm; which rm",
    "man rm | head",
    "ls | xargs -n1 echo",
    "ls | xargs -I{} cp {} {}.bak",
    "a=(1 2 3); echo \"${a[@]}\" ${#a[@]}",
    "diff <(sort a) <(sort b)",
    "trap 'echo bye' EXIT; ls",
    "set -euo pipefail; ls",
    "echo $?; echo $$ $#",
    "echo \"it's `date`\"",
    "printf '%s\\n' rm",
    "PAGER=cat git log -1",
    "read -r -p 'name? ' n; echo \"$n\"",
    "ls # rm x",
    "npm $X",
    "kill %1",
    "GIT_CONFIG_GLOBAL=/dev/null git log",
    "n=$(wc -l < f); echo $((n + 1))",
    "[[ $x =~ ^[0-9]+$ ]] && echo number",
    "tee f <<< \"$x\" > /dev/null",
    "alias ll='ls -l'; ls",
    "parallel gzip ::: a b",
    "rsync -a --delete a/ b/",
    "echo {a,b} 'c d' \"e\" \\f",
    "exec 2>&1; ls",
];

/// Runs a line in the shell and returns whether `rm` was run: a fake one, which only leaves
/// a mark.
fn runs_rm(line: &str) -> bool {
    runs("rm", line)
}

/// Runs a line in the shell and returns whether the fake program of this name was run.
pub(super) fn runs(program: &str, line: &str) -> bool {
    let folder = tempfile::TempDir::new().unwrap();
    let (work, home) = (folder.path().join("work"), folder.path().join("home"));
    let bin = home.join("bin");
    std::fs::create_dir_all(&work).unwrap();
    std::fs::create_dir_all(&bin).unwrap();
    let mark = folder.path().join("mark");
    let fake = bin.join(program);
    std::fs::write(&fake, format!("#!/bin/sh\n: > '{}'\n", mark.display())).unwrap();
    std::fs::set_permissions(&fake, std::fs::Permissions::from_mode(0o755)).unwrap();
    std::fs::write(work.join("x"), "").unwrap();
    let line = line.replace("@/", &format!("{}/", bin.display()));
    let mut child = Command::new("/usr/bin/timeout")
        .args(["-k", "1", "20", "/bin/bash", "-c", &line])
        .env_clear()
        .env("PATH", format!("{}:/usr/bin:/bin", bin.display()))
        .env("HOME", &home)
        .env("LC_ALL", "C.UTF-8")
        .current_dir(&work)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    child.wait().unwrap();
    // Background processes are not waited for.
    let end = Instant::now() + Duration::from_secs(5);
    while !mark.exists() && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(10));
    }
    mark.exists()
}

#[test]
fn every_spelling_is_denied() {
    assert!(RUN.len() + WOULD.len() >= 150);
    let policy = policy(&["deny bash rm"]);
    let missed: Vec<&&str> = RUN
        .iter()
        .chain(WOULD)
        .filter(|line| bash(&policy, line) != Deny)
        .collect();
    assert!(
        missed.is_empty(),
        "{} are not denied: {missed:#?}",
        missed.len()
    );
}

#[test]
fn ordinary_lines_are_not_denied() {
    assert!(ORDINARY.len() >= 60);
    let policy = policy(&["deny bash rm"]);
    let mut refused = Vec::new();
    for line in ORDINARY {
        let resources = [Resource::Command((*line).to_owned())];
        let judged = policy.judge(&act("bash", Effect::Execute, &resources));
        if judged.verdict == Deny {
            let by: Vec<String> = judged.decisive().map(|part| part.by.to_string()).collect();
            refused.push((line, by));
        }
    }
    assert!(
        refused.is_empty(),
        "{} are denied: {refused:#?}",
        refused.len()
    );
}

#[test]
fn every_spelling_runs_rm() {
    for line in RUN {
        let own = line.replace("$HOME/bin", "").replace("~/bin", "");
        let own = own.replace("${HOME}/bin", "").replace("\"$HOME\"/bin", "");
        let is_elsewhere = ["/bin/", "command -p", " -l", "chroot", "sudo"];
        let found = is_elsewhere.iter().find(|text| own.contains(**text));
        assert_eq!(found, None, "{line:?} may run the real program");
    }
    let failed: Vec<&&str> = std::thread::scope(|scope| {
        let threads: Vec<_> = RUN
            .chunks(RUN.len().div_ceil(4))
            .map(|part| {
                scope.spawn(|| {
                    part.iter()
                        .filter(|line| !runs_rm(line))
                        .collect::<Vec<_>>()
                })
            })
            .collect();
        threads
            .into_iter()
            .flat_map(|thread| thread.join().unwrap())
            .collect()
    });
    assert!(failed.is_empty(), "these do not run it: {failed:#?}");
}

#[test]
fn a_word_that_a_rule_compares_must_be_literal() {
    let rules = policy(&["deny bash git push"]);
    for (line, expected) in [
        ("git push", Deny),
        ("git $X", Deny),
        ("git \"$X\"", Deny),
        ("git $X push", Deny),
        ("git p*", Deny),
        ("git {push,origin}", Deny),
        ("git 'pu'sh", Deny),
        ("xargs git", Deny),
        ("alias g=git; ls", Deny),
        ("$G push", Deny),
        ("git --x=$X", Deny),
        ("git status $X", Verdict::Allow),
        ("git add *.rs", Verdict::Allow),
        ("git c*", Deny),
        ("git $'\\x{70}ush'", Deny),
        ("npm $X", Verdict::Allow),
        ("ls $X", Verdict::Allow),
    ] {
        assert_eq!(bash(&rules, line), expected, "{line}");
    }
}

#[test]
fn a_line_is_refused_only_where_a_rule_denies_commands() {
    for (rules, expected) in [
        (&["deny bash rm"][..], Deny),
        (&["deny * rm"], Deny),
        (&["ask bash rm"], Verdict::Ask),
        (&["allow bash ls"], Verdict::Ask),
        (&["deny other rm"], Verdict::Allow),
        (&["deny write @x"], Verdict::Allow),
        (&["allow bash", "deny bash rm"], Verdict::Allow),
        (&["allow bash ls", "deny bash rm"], Deny),
        (&[], Verdict::Allow),
    ] {
        assert_eq!(bash(&policy(rules), "$C x"), expected, "{rules:?}");
    }
    let policy = policy(&["deny bash rm"]);
    let resources = [Resource::Command("$C x".to_owned())];
    let judged = policy.judge(&act("bash", Effect::Execute, &resources));
    let by: Vec<String> = judged.decisive().map(|part| part.by.to_string()).collect();
    assert_eq!(
        by,
        [
            "rules:1 { deny: bash, command: rm } cannot be checked: the name of a command is not literal"
        ]
    );
}

#[test]
fn commands_run_by_a_program_are_checked_too() {
    let policy = policy(&["deny bash rm"]);
    let verdict = |argv: &[&str]| {
        let argv = argv.iter().map(|word| (*word).to_owned()).collect();
        let resources = [Resource::Program(argv)];
        policy
            .judge(&act("bash", Effect::Execute, &resources))
            .verdict
    };
    assert_eq!(verdict(&["bash", "-c", "ls; rm x"]), Deny);
    assert_eq!(verdict(&["bash", "-c", "$0", "rm"]), Deny);
    assert_eq!(verdict(&["sudo", "--unknown", "ls"]), Deny);
    assert_eq!(verdict(&["env", "-S", "rm x"]), Deny);
    assert_eq!(verdict(&["bash"]), Deny);
    assert_eq!(verdict(&["bash", "x.sh"]), Verdict::Allow);
    assert_eq!(verdict(&["ls", "$(rm x)"]), Verdict::Allow);
}
