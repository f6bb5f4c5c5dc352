//! More ways to run a denied program. It is called `zap`, which no system has.

use super::spellings::runs;
use super::{bash, policy};
use crate::policy::Verdict;
use crate::policy::tests::{Deny, act};
use crate::{Effect, Resource};

/// Lines that run `zap` in the shell of this machine. `@` is the folder of a fake one.
const RUN: &[&str] = &[
    // Options of wrappers.
    "env -uSHELL zap x",
    "mkdir Some; env -CSome zap x",
    "env -vuSSH zap x",
    "env -i - @/zap x",
    "env -u FOO - @/zap x",
    "nice -n\"$NOPE\" 5 zap x",
    "timeout -k\"$NOPE\" 1 2 zap x",
    "env -u\"$NOPE\" FOO zap x",
    "env -C\"$NOPE\" . zap x",
    "stdbuf -o\"$NOPE\" 0 zap x",
    "exec -a\"$NOPE\" y zap x",
    "flock -w\"$NOPE\" 1 f zap x",
    "echo x | xargs -n\"$NOPE\" 1 zap",
    "echo x | xargs -d\"$NOPE\" , zap",
    "T=-v; timeout \"$T\" 5 zap x",
    "T=-k; timeout \"$T\" 5 5 zap x",
    "T=5; timeout \"$T\" zap x",
    "time -p -- zap x",
    "A=-exec; find . \"$A\" zap {} +",
    "A=-exec B=zap; find . \"$A\" \"$B\" {} +",
    "A=-exec B=zap C=';'; find . \"$A\" \"$B\" \"$C\"",
    "HOME='. -exec zap {} ;'; find $HOME",
    "export HOME='. -exec zap {} ;'; find $HOME",
    "env HOME='. -exec zap {} ;' bash -c 'find $HOME'",
    "mkdir a 'a -exec zap {} +'; cd 'a -exec zap {} +'; find $PWD",
    // Text that is evaluated as a number.
    "[[ 'a[$(zap x)]' -eq 0 ]]",
    "[[ \"a[\"'$(zap x)]' -eq 0 ]]",
    "[[ 'a[$(zap x)]' =~ .* ]]; ((BASH_REMATCH))",
    "x='b[$(zap x >&2)]'; a=([x]=1)",
    "x='b[$(zap x >&2)]'; declare -a a=([x]=1)",
    "x='b[$(zap x >&2)]'; a=(1); echo ${#a[x]}",
    "x='b[$(zap x >&2)]'; set 1 2; echo \"${@:x}\"",
    "x='b[$(zap x >&2)]'; set 1 2; echo \"${*:x:1}\"",
    "x=a[; y='$(zap x)]'; w=$x$y; ((w))",
    "printf -v x 'a\\x5b\\x24(zap x)]'; ((x))",
    "printf -v x '%b' 'a\\x5b\\x24(zap x)]'; ((x))",
    "y='a\\x5b\\x24(zap x)]'; printf -v x \"$y\"; ((x))",
    "x='a[$(zap x)]'; O=-v; [ $O \"$x\" ]",
    "x='a[$(zap x)]'; O=-v; [ \"$O\" \"$x\" ]",
    "O=-v; [ \"$O\" 'a[$(zap x)]' ]",
    "O=-v; printf $O 'a[$(zap x)]' hi",
    "O=-v; printf \"$O\" 'a[$(zap x)]' hi",
    "for x in 'a[$(zap x)]'; do ((x)); done",
    "read -r x <<< 'a[$(zap x)]'; ((x))",
    "read -r x <<'E'\na[$(zap x)]\nE\n((x))",
    "mapfile -t x <<< 'a[$(zap x)]'; ((x))",
    "declare x='a[$(zap x)]'; ((x))",
    "set -- 'a[$(zap x)]'; (($1))",
    "f() { local n=$1; echo $((n)); }; f 'a[$(zap x)]'",
    "f() { echo $(($1)); }; f 'a[$(zap x)]'",
    "n=$(echo 'a[$(zap x)]'); ((n))",
    "(( $(echo 'a[$(zap x)]') ))",
    ": ${n:='a[$(zap x)]'}; ((n))",
    // Names that are not seen at once.
    "x='$(zap x >&2)'; : ${x@\\\nP}",
    ": ${PS\\\n4='$(zap x >&2)'}; unset PS4; : ${PS\\\n4='$(zap x >&2)'}; set -x; :",
    "declare -n r=PS4; r='$(zap x >&2)'; set -x; :",
    "f() { local -n q=$1; q='$(zap x >&2)'; }; f PS4; set -x; :",
    "x=PS4; export $x='$(zap x >&2)'; set -x; :",
    "a='PS4=$(zap x >&2)'; export \"$a\"; set -x; :",
    "export $(echo 'PS4=$(zap>&2)'); set -x; :",
    "unset PS4; x=PS4; : ${!x:='$(zap x >&2)'}; set -x; :",
    "O=-v; printf $O PS4 '$(zap>&2)'; set -x; :",
    // Aliases and history.
    "shopt -s expand_aliases; alias a='ls;'\na zap x",
    "shopt -s expand_aliases; alias a='X=1'\na zap x",
    "shopt -s expand_aliases; alias a='!'\na zap x",
    "shopt -s expand_aliases; alias a='>/dev/null'\na zap x",
    "shopt -s expand_aliases; alias a='ls &'\na zap x",
    "shopt -s expand_aliases; alias a='echo hi; env'\na zap x",
    "shopt -s expand_aliases; alias a=\na zap x",
    "shopt -s expand_aliases; alias a=time\na zap x",
    "shopt -s expand_aliases; alias a=env\na zap x",
    "set -o history -o histexpand\necho zap\n!!:1 x",
    "set -o history; set -H\necho zap\n!!:1 x",
    // Patterns that match nothing.
    "shopt -s nullglob; bash n*/f -c 'zap x'",
    "shopt -s nullglob; . n*/f /dev/stdin <<< 'zap x'",
    "shopt -s nullglob; git n* -c alias.q='!zap x' q",
    // Programs that run what they are given.
    "git init -q; X='-c alias.qq=!zap'; git $X qq",
    "/proc/self/exe -c 'zap x'",
    "\"/proc/$$/exe\" -c 'zap x'",
    "cd /proc/self; ./exe -c 'zap x'",
    "sh -c '{ zap x; }'",
    // What the shell reads otherwise than it looks.
    "[[ a =~ ( ]] # ) ]]; zap x",
    "[[ a == @( ]] # ) ]]; zap x",
    "[[ a != !( ]] # ) ]]; zap x",
    "[[ a == +( ]] # ) ]] && :; zap x",
    "f() { [[ a =~ ( ]] # ) ]]; zap x\n}; f",
    "echo $(( $(case a in a) echo zap;; esac) ))",
    "echo \"$(( $(case a in a) echo zap;; esac) ))\"",
    "cat <<E\n$(( $(case a in a) echo zap;; esac) ))\nE",
    "env -u {1}>f zap ls",
    "env -u 99999999999>f zap ls",
    "exec -a {1}>f zap ls",
    "flock {1}>f zap x",
    "sh -c 'env -u 12>f zap ls'",
    "env -S $'zap\\vx'",
    "env $'-Szap\\rx'",
    "env -S $'A=b\\fzap x'",
    "env --split-string=$'zap\\vx'",
    "echo zap x | xargs -I{} -n2 env",
    "echo zap | xargs -I{} -L1 env",
    "echo zap | xargs -I{} -L 1 timeout 5",
    "S=';'; find . -exec echo \"$S\" -exec zap {} +",
    "S=';'; find . -exec echo \"$S\" -exec zap \\;",
    "mkdir d; cd d; touch -- -exec zap; find * \\;",
    "set -k\nbash -c : BASH_ENV='$(zap>&2)'",
    "set -o keyword\nbash -c : BASH_ENV='$(zap>&2)'",
    "bash -k -c 'bash -c : BASH_ENV=\\$\\(zap\\)'",
    "(exec -a $'\\nzap x\\n#' bash //proc/self/cmdline)",
    "D=//proc/self; (exec -a $'\\nzap x\\n#' bash \"$D/cmdline\")",
    "(exec -a $'\\nzap x\\n#' bash ../../../../../../../../proc/self/cmdline)",
    "SHELL=zap flock f -c ls",
    "SHELL=zap script -qc ls f",
    "env SHELL=zap flock f -c ls",
    "export SHELL=zap; script -qc ls f",
    "git init -q r; cd r; V='!zap x'; git config alias.y \"$V\"; git y",
    "git init -q r; cd r; X=zap; git config alias.y \"!$X x\"; git y",
    "git init -q r; cd r; git config alias.y '-c alias.z=!zap z'; git y",
    "git init -q r; cd r; git config core.fsmonitor zap; git status",
    "GIT_PROXY_COMMAND=zap git ls-remote git://h/x",
    "a['$(zap x)']=1",
    "a=1; a['$(zap)']+=2",
    "echo ${a['$(zap x>&2)']}",
    "echo ${a['$(zap>&2)']:-x}",
    "x='aA$(zap x)]'; y=${x//A/[}; ((y))",
    "x='$(zap x)]'; y=a${q:-[}$x; ((y))",
    "x=\"a[${q:-\\$}(zap x)]\"; ((x))",
    "env n='a[$(zap x)]' bash -c '((n))'",
    ": 'a[$(zap x)]'; ((_))",
    ": 'a[$(zap x)]'; (($_))",
    "mkdir 'a[$(zap x)]'; for x in a*; do ((x)); done",
    "x='b[$(zap x)]'; : {a[x]}>/dev/null",
    "X='-np a[$(zap)]'; sleep 0.1 & wait $X",
    "y='$(zap x)'; test -v \"a[$y]\"",
    "y='$(zap)'; [ -v \"a[$y]\" ]",
    "mkdir d; cd d; touch ./-v 'a[$(zap x)]'; [ * ]",
    ": 'a[$(zap x >&2)]'; echo ${x[_]}",
    "bash -c 'let BASH_ARGV0' 'a[$(zap)]'",
    // Commands that a shell reads from something that is not in the line.
    "BASH_ENV=/dev/stdin bash -c ls <<< 'zap x'",
    "BASH_ENV=/dev/fd/3 bash -c ls 3<<< 'zap x'",
    "export BASH_ENV=/dev/stdin; bash -c ls <<< 'zap x'",
    "env BASH_ENV=/dev/stdin bash -c ls <<< 'zap x'",
    "declare -x BASH_ENV=/dev/stdin; bash -c ls <<< 'zap x'",
    "BASH_ENV='$D' D=/dev/stdin bash -c ls <<< 'zap x'",
    "BASH_ENV='$D/stdin' D=/dev bash -c ls <<< 'zap x'",
    "ENV=/dev/stdin sh -i -c ls <<< 'zap x'",
    "ENV=/dev/stdin bash --posix -ic ls <<< 'zap x'",
    "ENV=/dev/fd/3 dash -ic ls 3<<< 'zap x'",
    "bash --rcfile /dev/fd/3 -ic ls 3<<< 'zap x'",
    "bash --init-file /dev/stdin -ic ls <<< 'zap x'",
    ". /dev/stdin <<< 'zap x'",
    "builtin . /dev/stdin <<< 'zap x'",
    "command source /dev/stdin <<< 'zap x'",
    "source <(echo zap x)",
    ". <(echo zap x)",
    "bash <(echo zap x)",
    "bash --rcfile <(echo zap x) -ic ls",
    "BASH_ENV=<(echo zap x) bash -c ls",
    "bash < <(echo zap x)",
    "bash 3<<< 'zap x' <&3",
    "bash 3<<< 'zap x' 0<&3-",
    "exec 3<<< 'zap x'; bash <&3",
    "exec 3<<< 'zap x'; bash 0<&3",
    "bash <<'E'\nexec <<< 'zap x'\nE",
    "sh <<'E'\nexec 0<<F\nzap x\nF\nE",
    "bash -s <<'E'\nexec 3<<< 'zap x'\nexec <&3\nE",
    "bash <<'E'\nexec < <(echo zap x)\nE",
    "env SHELLOPTS=history:histexpand bash <<< $'echo zap\\n!!:1 x'",
    "env SHELLOPTS=keyword bash -c 'bash -c : BASH_ENV=\\$\\(zap\\)'",
    "env BASHOPTS=expand_aliases bash -c $'alias ls=zap\\nls x'",
    "cd /dev; . ./stdin <<< 'zap x'",
    "cd /dev; bash fd/0 <<< 'zap x'",
    "cd /proc/self; . fd/0 <<< 'zap x'",
    "PATH=/dev:$PATH; . stdin <<< 'zap x'",
    "PATH=/dev/fd:$PATH; . 0 <<< 'zap x'",
    "PROMPT_COMMAND='zap x' bash -i <<< ''",
    "bash -c '. /dev/fd/3' 3<<< 'zap x'",
    "bash -O sourcepath /dev/stdin <<< 'zap x'",
    "bash -i <<< 'zap x'",
    "trap '. /dev/stdin' EXIT; exec <<< 'zap x'",
    "f() { . /dev/stdin; }; f <<< 'zap x'",
    "coproc bash; echo 'zap x' >&\"${COPROC[1]}\"; sleep 0.2",
    "bash > >(bash) <<< 'echo zap x'",
    "echo zap x > >(bash)",
    "echo zap x | tee >(bash) > /dev/null; sleep 0.3",
    "sh /dev/stdin <<E\nzap x\nE",
    "BASH_ENV=../../../../../../../dev/stdin bash -c ls <<< 'zap x'",
    "BASH_ENV=/dev/shm/../stdin bash -c ls <<< 'zap x'",
    "BASH_ENV+=/dev/stdin; export BASH_ENV; bash -c ls <<< 'zap x'",
    "BASH_ENV=/dev/std; BASH_ENV+=in; export BASH_ENV; bash -c ls <<< 'zap x'",
    "export BASH_ENV=/dev/f BASH_ENV+=d/0; bash -c ls <<< 'zap x'",
    "printf -v BASH_ENV /dev/stdin; export BASH_ENV; bash -c ls <<< 'zap x'",
    "BASH_ENV='$(echo /dev/stdin)' bash -c ls <<< 'zap x'",
    "HOME=/dev/fd BASH_ENV='$HOME/0' bash -c ls <<< 'zap x'",
    ". \"$(echo /dev/stdin)\" <<< 'zap x'",
    ". \"$PWD\"/../../../../../../dev/stdin <<< 'zap x'",
    ". ${D:-/dev/stdin} <<< 'zap x'",
    ". \"${D:-/dev/}stdin\" <<< 'zap x'",
    "mapfile -C '. /dev/stdin #' -c 1 a <<< $'a\\nzap x'",
    "ssh-agent bash /dev/stdin <<< 'zap x'",
    "xargs -I{} bash {} < <(echo /dev/fd/3) 3<<< 'zap x'",
    "find /dev/fd/ -name 3 -exec bash {} \\; 3<<< 'zap x'",
    "find /dev/stdin -exec bash {} \\; <<< 'zap x'",
    "cd /dev/fd; exec 3<<< 'zap x'; BASH_ENV=3 bash -c ls",
    "cd /dev/fd; exec 3<<< 'zap x'; export BASH_ENV; ((BASH_ENV=3)); bash -c ls",
    "cd /dev/fd; exec 3<<< 'zap x'; export BASH_ENV; : $((BASH_ENV=3)); bash -c ls",
    "cd /dev/fd; exec 3<<< 'zap x'; export BASH_ENV; let BASH_ENV=3; bash -c ls",
    "cd /dev/fd; exec 3<<< 'zap x'; export BASH_ENV; declare -i BASH_ENV; BASH_ENV=4-1; bash -c ls",
    "cd /dev/fd; exec 3<<< 'zap x'; export BASH_ENV; getopts 3 BASH_ENV -3; bash -c ls",
    "cd /dev/fd; exec 3<<< 'zap x'; export BASH_ENV; for BASH_ENV in 3; do bash -c ls; done",
    "cd /dev/fd; export BASH_ENV; exec {BASH_ENV}<<< 'zap x'; bash -c ls",
    "declare -l BASH_ENV; BASH_ENV=/DEV/STDIN; export BASH_ENV; bash -c ls <<< 'zap x'",
    "export BASH_ENV=/de; BASH_ENV+=v/st; BASH_ENV+=din; bash -c ls <<< 'zap x'",
    "export BASH_ENV=/de; export BASH_ENV+=v/st; export BASH_ENV+=din; bash -c ls <<< 'zap x'",
    "BASH_ENV='${D:-/dev/}stdin' bash -c ls <<< 'zap x'",
    "command exec <<< 'zap x'; bash",
    "bash <<'E'\ncommand exec <<< 'zap x'\nE",
];

/// Lines that would run `zap` where the program or the repository is there.
const WOULD: &[&str] = &[
    "ionice -c\"$NOPE\" 3 zap x",
    "wait -np 'a[$(zap x)]'",
    "[[ a[\\$\\(zap\\ x\\)] -eq 0 ]]",
    "git rebase -x 'zap x' HEAD~1",
    "git rebase -qx 'zap x' HEAD~1",
    "git rebase -fx 'zap x' HEAD~1",
    "git rebase -qx'zap x' HEAD~1",
    "git rebase --exe 'zap x' HEAD~1",
    "git rebase --exe='zap x' HEAD~1",
    "git rebase --e='zap x' HEAD~1",
    "git rebase \"$X\" 'zap x' HEAD~1",
    "git rebase \"$X\"",
    "git --attr-source HEAD -c alias.q='!zap x' q",
    "git --new-option HEAD -c alias.q='!zap x' q",
    "git bisect \"$(echo run)\" zap x",
    "git submodule \"$(echo foreach)\" zap x",
    "X=bisect; git $X run zap x",
    "X=bisect; git \"$X\" run zap x",
    "ssh -o 'ProxyCommand = zap x' h ls",
    "ssh -o ' ProxyCommand=zap x' h ls",
    "ssh -o $'ProxyCommand\\tzap x' h ls",
    "ssh -o 'pROXYcOMMAND=zap x' h ls",
    "ssh -o '\"ProxyCommand\" zap x' h ls",
    "ssh -o 'Match exec \"zap x\"' h ls",
    "ssh-agent zap x",
    "ssh-agent -t 5 zap x",
    "logsave /dev/null zap x",
    "logsave -a log zap x",
    "ld.so @/zap x",
    "ld-2.31.so @/zap x",
    "choom -n 5 zap x",
    "choom -n 5 -- zap x",
    "uclampset -m 5 zap x",
    "ltrace -n 2 zap x",
    "ltrace -w 3 zap x",
    "parallel -I% % ::: 'zap x'",
    "bash -H <<< 'echo zap\n!!:1 x'",
    "bash -i <<< 'echo zap\n!!:1 x'",
    "bash -o histexpand x.sh",
    "shopt -so histexpand; ls",
    "declare -n r=BASH_CMDS; r[ls]=zap; ls",
    "$'\\x{7a}ap' x",
    "sh -c '{zap,x}'",
    "bash -ic $'shopt -u interactive_comments\\nls # ; zap x'",
    "bash +O interactive_comments -ic 'ls # ; zap x'",
    "ssh -o ProxyCommand='%h x' zap ls",
    "ssh -o ProxyCommand='%n' zap ls",
    "ssh -l zap -o ProxyCommand='%r' h ls",
    "bash -c '((BASH_ARGV0))' 'a[$(zap x)]'",
    "touch 'a[$(zap x)]'; select x in a*; do ((x)); break; done <<< 1",
    "printf '\\133' > f; n=$(printf 'a\\133\\044(zap)]'); ((n))",
    "n=$(printf 'a\\x5b\\u0024(zap)]'); ((n))",
    "n=$(echo -e 'a\\0133\\044(zap)]'); ((n))",
    "GIT_SSH_COMMAND='zap x' git fetch",
    "GIT_SSH=zap git fetch",
];

/// Ordinary lines, which are not denied.
const ORDINARY: &[&str] = &[
    "awk '{a[$1]++} END{for (k in a) print k, a[k]}' f; n=$((n+1))",
    "sed 's/[$]x/y/' f; for ((i=0;i<3;i++)); do :; done",
    "echo 'cost [$5]'; ((i++))",
    "grep '[$(]' f && echo $((x))",
    "re='^[0-9]+'; [[ $x =~ $re ]] && echo $((x+1))",
    "[[ $x =~ ^[0-9]+$ ]] && ((x++))",
    "[[ $n -eq 0 ]] && echo none",
    "n=$(wc -l < f); [ \"$n\" -gt 3 ] && echo $((n - 3))",
    "a=(1 2 3); echo \"${a[0]} ${a[@]:1} ${#a[@]}\"",
    "declare -A m=([a]=1 [b]=2); for k in \"${!m[@]}\"; do echo \"$k=${m[$k]}\"; done",
    "echo \"${x:0:8}\"",
    "find $HOME -name '*.rs'",
    "find $HOME/src -name '*.rs'",
    "cd src && find $PWD -name '*.rs'",
    "find \"$A\" \"$B\" -name x",
    "find \"$A\" -type f -exec ls {} +",
    "timeout \"$T\" ls",
    "sh -c 'echo {a,b}'",
    "set -euo pipefail; set -x; set -- a b",
    "shopt -s globstar nullglob; ls",
    "alias ll='ls -l --color=auto'; alias gs='npm status'; ls",
    "git -C \"$DIR\" status",
    "git --no-pager log -1",
    "git --git-dir=\"$D\" log -1",
    "git rebase origin/main",
    "git rebase -i HEAD~3",
    "git rebase -Xours main",
    "git bisect good",
    "git submodule update --init",
    "git commit -m \"$(date)\"",
    "ssh -o StrictHostKeyChecking=no host ls",
    "ssh -p 22 -o 'ConnectTimeout 5' host ls",
    "printf \"${RED}%s${NC}\\n\" \"$x\"",
    "printf \"$fmt\"",
    "export $(grep -v '^#' .env | xargs)",
    "wait \"$pid\"; wait -n; wait",
    "env -i PATH=\"$PATH\" ls",
    "time -p make",
    "xargs -n1 -P4 echo < list",
    "nice -n10 make",
    "bash -ic 'ls'",
    "./exec x",
    "echo -e \"\\033[0;31mred\\033[0m\"; make",
    "git config user.name \"$NAME\"",
    "git config --global user.email me@example.com",
    "git config -f \"$DIR/config\" user.name x",
    "git config --get remote.origin.url",
    "git config core.editor vim",
    "git config alias.st status",
    "find . -name \"*.rs\" -exec grep -l x {} \\;",
    "find \"$DIR\" -type f -exec wc -l {} +",
    "ls *.txt | xargs -I{} cp {} dest/",
    "wait $PID",
    "[ -f \"$FILE\" ] && cat \"$FILE\"",
    "[[ \"$x\" =~ ^(a|b)$ ]] && echo yes",
    "echo $(( (1 + 2) * (3 + 4) ))",
    "n=5; echo $((n * 2))",
    "x=${y:-none}; echo \"$x\"",
    "SHELL=/bin/bash make",
    "cargo test 2>&1 | tail -20",
    "exec 3>log; echo hi >&3",
    "echo -e \"\\033[0;31mred\\033[0m\"; start=$(date +%s); echo $(( $(date +%s) - start ))",
    "printf '\\x1b[0m'; c=$(nproc); echo $((c/2))",
    "GIT_SSH_COMMAND=\"ssh -i key\" git fetch",
    "ENV=prod npm start",
    "ENV=test BASH_ENV= make",
    "BASH_ENV=./env.sh bash -c ls",
    "env BASH_ENV=/opt/env.sh make",
    "export ENV=production; make",
    "exec < input.txt; while read -r x; do echo \"$x\"; done",
    "exec 3< input.txt; read -r x <&3",
    "exec {fd}< input.txt; cat <&\"$fd\"",
    "exec > log 2>&1; make",
    "PATH+=:/opt/bin; make",
    "CFLAGS+=' -O2' make",
    "declare -i n=0; declare -l low=ABC; ((n++))",
    "while getopts 'a:b' opt; do echo \"$opt\"; done",
    ". ./env.sh && make",
    "source \"$HOME/.cargo/env\"",
];

#[test]
fn every_further_spelling_is_denied() {
    let policy = policy(&["deny bash zap"]);
    let lines = RUN.iter().chain(WOULD);
    let missed: Vec<&&str> = lines.filter(|line| bash(&policy, line) != Deny).collect();
    assert!(missed.is_empty(), "not denied: {missed:#?}");
}

#[test]
fn every_further_spelling_runs_it() {
    for line in RUN {
        assert!(!line.contains("/bin/") && !line.contains("rm "), "{line:?}");
    }
    let failed: Vec<&&str> = std::thread::scope(|scope| {
        let threads: Vec<_> = RUN
            .chunks(RUN.len().div_ceil(4))
            .map(|part| {
                let failed = |line: &&&str| !runs("zap", line);
                scope.spawn(move || part.iter().filter(failed).collect::<Vec<_>>())
            })
            .collect();
        let threads = threads.into_iter();
        threads.flat_map(|thread| thread.join().unwrap()).collect()
    });
    assert!(failed.is_empty(), "these do not run it: {failed:#?}");
}

#[test]
fn further_ordinary_lines_are_not_denied() {
    let policy = policy(&["deny bash zap"]);
    let mut refused = Vec::new();
    for line in ORDINARY {
        let resources = [Resource::Command((*line).to_owned())];
        let judged = policy.judge(&act("bash", Effect::Execute, &resources));
        if judged.verdict == Deny {
            let by: Vec<String> = judged.decisive().map(|part| part.by.to_string()).collect();
            refused.push((line, by));
        }
    }
    assert!(refused.is_empty(), "denied: {refused:#?}");
}

#[test]
fn git_that_runs_a_command_is_not_analysed() {
    let policy = policy(&["allow bash git"]);
    assert_eq!(bash(&policy, "git log -1"), Verdict::Allow);
    for line in [
        "git rebase -x 'zap x' main",
        "git bisect run zap x",
        "git -c alias.q='!zap x' q",
    ] {
        assert_eq!(bash(&policy, line), Verdict::Ask, "{line}");
    }
}

#[test]
fn a_refusal_says_that_the_text_for_a_shell_is_not_literal() {
    let policy = policy(&["deny bash zap"]);
    let resources = [Resource::Command("bash -c \"cd $DIR && ls\"".to_owned())];
    let judged = policy.judge(&act("bash", Effect::Execute, &resources));
    let by: Vec<String> = judged.decisive().map(|part| part.by.to_string()).collect();
    assert!(
        by.iter()
            .any(|by| by.contains("the text given to \"bash\" is not literal")),
        "{by:?}"
    );
}
