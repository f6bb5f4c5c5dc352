# haft's part on the host. Uses sh, grep, cat, sed and awk, and setsid if available.
# Standard input contains the order, line by line, and then is the lifeline: when it
# closes, or when a number of milliseconds arrives on it, everything the command
# started is ended. Reports go to standard error and start with a secret token.
LC_ALL=C
unset IFS
exec 3<&0 4>&2 5>&1 </dev/null

# Reads a field of the order. Special characters arrive as octal numbers.
haft_next() {
    IFS= read -r haft_v <&3 || exit 1
    case $haft_v in *\\*) haft_v=$(printf "$haft_v."); haft_v=${haft_v%.} ;; esac
}

haft_say() { printf '%s %s\n' "$haft_token" "$*" >&4; }

haft_nap() { sleep 0.05 2>/dev/null || sleep 1; }

# Reads the time in hundredths of a second; estimates it without /proc/uptime.
haft_now() {
    if [ -r /proc/uptime ]; then
        read -r haft_t haft_x </proc/uptime
        haft_t=${haft_t%.*}${haft_t#*.}
    else
        haft_t=$((${haft_t:-0} + 7))
    fi
}

# Lists the processes of the run as "PID NAME", one per line: those with its mark in
# their environment, those in the session of the command, and their descendants. If the
# process id of the command was reused after it ended, its session does not count.
haft_scan() {
    if [ -r /proc/self/stat ]; then
        grep -lsF -e "HAFT_RUN=$haft_mark" /proc/[0-9]*/environ 2>/dev/null
        printf '%s/stat\n' /proc/[0-9]*
    else
        ps -A -o pid= -o state= -o ppid= -o pgid= -o comm= |
            awk '{ print $1 " (" $5 ") " $2 " " $3 " " $4 " " $4 }'
    fi | awk -v root="$haft_c" -v begun="$haft_b" '
        function note(line,    pid, rest, label, field) {
            if (line !~ /^[0-9]+ \(.*\) /) return
            pid = line; sub(/ .*/, "", pid)
            rest = line; sub(/^[0-9]+ \(.*\) /, "", rest); split(rest, field, " ")
            if (field[1] ~ /^[ZXx]/) return
            label = line; sub(/^[0-9]+ \(/, "", label); sub(/\) [A-Za-z].*$/, "", label)
            gsub(/[^ -~]/, "?", label)
            parent[pid] = field[2]; session[pid] = field[4]; born[pid] = field[20]; name[pid] = label
        }
        /^\/proc\/.*environ$/ { split($0, part, "/"); mine[part[3]] = 1; next }
        /^\/proc\// { if ((getline line < $0) > 0) note(line); close($0); next }
        { note($0) }
        END {
            if ((root in parent) && (begun == "" || born[root] == begun)) mine[root] = 1
            ours = !(root in parent) || (root in mine)
            do {
                more = 0
                for (pid in parent)
                    if (!(pid in mine) && ((parent[pid] in mine) || (ours && session[pid] == root))) {
                        mine[pid] = 1; more = 1
                    }
            } while (more)
            for (pid in mine) if (pid in parent) print pid, name[pid]
        }'
}

# Signals all processes of the run; fails if none is left.
haft_kill() {
    haft_p=$(haft_scan | sed 's/ .*//')
    [ -n "$haft_p" ] && { kill -s "$1" $haft_p || :; }
}

# Lists the remaining processes. Scanning takes a while, and a program that is just
# being started has no mark yet, so an empty result counts only the second time.
haft_look() {
    haft_left=$(haft_scan)
    [ -n "$haft_left" ] || haft_left=$(haft_scan)
}

# Kills processes that were missed, because they would keep ssh running forever.
haft_linger() {
    exec </dev/null >/dev/null 2>&1 3<&- 4>&- 5>&-
    haft_n=0
    while [ "$haft_n" -lt 12 ]; do
        haft_n=$((haft_n + 1))
        haft_nap
        haft_kill KILL
    done
}

# Waits until the lifeline closes, then ends everything.
haft_watch() {
    trap '' HUP INT TERM PIPE
    exec </dev/null >/dev/null 2>&1 4>&- 5>&- 6>&-
    haft_word=
    IFS= read -r haft_word <&3
    haft_now
    haft_until=$((haft_t + ${haft_word:-500} / 10))
    haft_kill TERM && kill -s CONT $haft_p
    while haft_now; [ "$haft_t" -lt "$haft_until" ] && haft_look; [ -n "$haft_left" ]; do
        haft_nap
        haft_left=
    done
    haft_n=0
    while { haft_kill KILL || haft_kill KILL; } && [ "$haft_n" -lt 400 ]; do
        haft_n=$((haft_n + 1))
        [ "$haft_n" -lt 50 ] || haft_nap
    done
    # If the lifeline closed without a message, haft is gone and needs no report.
    [ -n "$haft_word" ] || kill -s KILL $$
    haft_linger
}

# Finds the program in the PATH of the command.
haft_find() {
    case $1 in
        */*) haft_f=$1 ;;
        *)
            haft_f=
            set -f
            IFS=:
            for haft_d in $PATH; do
                haft_d=${haft_d:-.}/$1
                [ -f "$haft_d" ] || continue
                haft_f=$haft_d
                [ -x "$haft_d" ] && break
            done
            unset IFS
            ;;
    esac
    [ -n "$haft_f" ] && [ -e "$haft_f" ] || { haft_say F missing; exit 0; }
    [ -f "$haft_f" ] && [ -x "$haft_f" ] || { haft_say F executable; exit 0; }
}

# Becomes the command. Runs in a separate process.
haft_become() {
    trap - CHLD INT QUIT
    haft_b=
    if [ -r /proc/self/stat ]; then
        IFS= read -r haft_v </proc/self/stat
        haft_c=${haft_v%% *}
        haft_b=$(set -f; set -- ${haft_v##*) }; echo "${20}")
    else
        haft_c=$(exec sh -c 'echo "$PPID"')
    fi
    # In the background of a subshell, so that it is not a child of the command.
    ( haft_watch & echo "$haft_c" "$!" "$haft_b" )
    haft_say P "$haft_c"
    cd -- "$haft_dir" 2>/dev/null || { haft_say F directory; exit 0; }
    haft_setsid=$(command -v setsid)
    haft_kept=' PATH HOME USER LOGNAME SHELL '
    for haft_n in $(env | sed -n 's/^\([A-Za-z_][A-Za-z0-9_]*\)=.*/\1/p') PWD OLDPWD; do
        case $haft_kept in *" $haft_n "*) continue ;; esac
        case $haft_n in haft_*) ;; *) command unset "$haft_n" 2>/dev/null || : ;; esac
    done
    haft_n=0
    while [ "$haft_n" -lt "$haft_count" ]; do
        haft_n=$((haft_n + 1))
        eval "export \"\$haft_k_$haft_n=\$haft_e_$haft_n\"" 2>/dev/null
    done
    export HAFT_RUN="$haft_mark"
    haft_find "$1"
    haft_say S
    case $haft_streams in merged) exec 2>&5 ;; *) exec 2>&4 ;; esac
    exec >&5 3<&- 4>&- 5>&-
    [ -z "$haft_setsid" ] || exec "$haft_setsid" "$@"
    exec "$@"
}

haft_next; haft_token=$haft_v
haft_next; haft_mark=$haft_v
haft_next; haft_streams=$haft_v
haft_next; haft_dir=$haft_v
haft_next; haft_count=$haft_v
set --
while [ "$haft_count" -gt 0 ]; do
    haft_next
    set -- "$@" "$haft_v"
    haft_count=$((haft_count - 1))
done
haft_next; haft_total=$haft_v
haft_count=0
while [ "$haft_count" -lt "$haft_total" ]; do
    haft_count=$((haft_count + 1))
    haft_next; eval "haft_k_$haft_count=\$haft_v"
    haft_next; eval "haft_e_$haft_count=\$haft_v"
done

# Shells distinguish a signal from an exit code above 128 only in their messages, and
# bash only in its list of jobs.
haft_out=$(
    {
        if [ -n "$BASH_VERSION" ]; then
            trap jobs CHLD
            haft_become "$@" &
            wait "$!"
            wait "$!"
        else
            ( haft_become "$@" )
        fi
        printf ' %s' "$?"
    } 2>&1
)
haft_line='
'
haft_code=${haft_out##* }
haft_said=${haft_out#*"$haft_line"}
haft_said=${haft_said% *}
set -f
set -- ${haft_out%%"$haft_line"*}
set +f
haft_c=$1 haft_l=$2 haft_b=$3
haft_kind=code
if [ "$haft_code" -gt 128 ]; then
    case $haft_said in
        '' | *Done* | *Exit*) ;;
        *) haft_kind=signal haft_code=$((haft_code - 128)) ;;
    esac
fi
haft_look
if [ -n "$haft_left" ]; then
    printf '%s\n' "$haft_left" | sed "s/^/$haft_token L /" >&4
fi
haft_say X "$haft_kind" "$haft_code"
# Keeps the lifeline open as long as processes of the run are left.
haft_n=0
while [ -n "$haft_left" ]; do
    haft_n=$((haft_n + 1))
    if [ "$haft_n" -lt 10 ]; then haft_nap; else sleep 2; fi
    haft_look
done
kill -s KILL "$haft_l" 2>/dev/null
haft_linger &
exit 0
