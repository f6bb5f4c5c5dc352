#!/usr/bin/env bash
# sys_info: operating system, disk and memory, as a plugin for haft.
#
# A plugin reads one JSON message per line from stdin and answers each with one
# line on stdout. Everything else goes to stderr.
# Needs bash 4 or newer and awk, nothing else.
set -u
export LC_ALL=C # df and awk print English, and bytes stay as they are

definition='{"name":"sys_info","description":"Show facts about this machine: operating system, free disk space, memory.","parameters":{"type":"object","properties":{"section":{"type":"string","enum":["all","os","disk","memory"],"description":"What to show (default all)"}}}}'

os() {
    local release=''
    [[ -r /etc/os-release ]] && release=$(sed -n 's/^PRETTY_NAME=//p' /etc/os-release | tr -d '"')
    printf 'os: %s\n' "${release:-$(uname -s)}"
    printf 'kernel: %s\n' "$(uname -srm)"
    printf 'processors: %s\n' "$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo unknown)"
}

disk() { # the file systems of / and of this folder, each once
    df -Ph / . | awk 'NR > 1 && !seen[$6]++ { print "disk " $6 ": " $4 " free of " $2 " (" $5 " used)" }'
}

memory() {
    if [[ -r /proc/meminfo ]]; then
        awk '
            /^MemTotal:/ { total = $2 }
            /^MemAvailable:/ { free = $2 }
            END { printf "memory: %.1f GiB free of %.1f GiB\n", free / 1048576, total / 1048576 }
        ' /proc/meminfo
    else # macOS
        printf 'memory: %s bytes\n' "$(sysctl -n hw.memsize 2>/dev/null || echo unknown)"
    fi
}

sys_info() { # the tool itself: prints its text, or fails with a message for the model
    case ${params[section]-'"all"'} in
        '"all"') os && disk && memory ;;
        '"os"') os ;;
        '"disk"') disk ;;
        '"memory"') memory ;;
        *) echo 'section must be one of: all, os, disk, memory' && return 1 ;;
    esac
}

answer() { # LINE
    local text error=true
    parse "$1"
    if [[ -n $problem ]]; then
        text="malformed JSON: $problem"
    elif [[ ${message[type]-} == '"describe"' ]]; then
        printf '%s\n' "$definition"
        return
    elif [[ ${message[type]-} != '"call"' ]]; then
        text="unknown message type: ${message[type]-none}"
    elif [[ ${message[name]-'"sys_info"'} != '"sys_info"' ]]; then
        text="unknown tool: ${message[name]}"
    elif [[ ${message[params]-'{}'} != '{}' ]]; then
        text='params must be an object'
    else
        # Not our stdin: a command that reads it would consume the next message.
        text=$(sys_info </dev/null) && error=false
    fi
    printf '{"content":[{"type":"text","text":%s}],"error":%s%s}\n' "$(quote "$text")" "$error" \
        "${message[call_id]+,\"call_id\":${message[call_id]}}"
}

# --- The part of JSON that a plugin needs ---

declare -A message params # fields of the message and of its "params", each still as JSON

parse() { # LINE: fills `message` and `params`, or describes the error in `problem`
    local kind key value
    message=() params=() problem=''
    while IFS=$'\t' read -r kind key value; do
        case $kind in
            message) message[$key]=$value ;;
            params) params[$key]=$value ;;
            problem) message=() params=() problem=$key ;;
        esac
    done < <(printf '%s\n' "$1" | awk "$parser")
}

quote() { # TEXT: prints it as a JSON string
    printf '%s\n' "$1" | awk '
        BEGIN { for (i = 1; i < 32; i++) if (i != 10) code[sprintf("%c", i)] = sprintf("\\u%04x", i) }
        {
            # If a line has bytes that are not UTF-8, all non-ASCII is dropped: JSON cannot hold it.
            if ($0 !~ /^([\001-\177]|[\302-\337][\200-\277]|[\340-\357][\200-\277][\200-\277]|[\360-\364][\200-\277][\200-\277][\200-\277])*$/)
                gsub(/[\200-\377]/, "?")
            gsub(/["\\]/, "\\\\&")
            if (/[\001-\037]/) for (c in code) gsub(c, code[c])
            printf "%s", (NR == 1 ? "\"" : "\\n")
            printf "%s", $0
        }
        END { printf "\"" }'
}

# Walks through one JSON object and prints a line for each field of the message and of
# its "params": which of the two, the key, and the value as JSON. A nested object becomes
# {}, an array [].
# shellcheck disable=SC2016
parser='
    function fail(why) { print "problem\t" why; exit }
    function peek() { while ((c = substr(json, at, 1)) == " " || c == "\t" || c == "\r") at++; return c }
    function need(c) { if (peek() != c) fail("no " c " at byte " at); at++ }
    function string(   start, chunk) {
        for (start = at++; ; ) {
            # In chunks: searching the whole rest would copy it each time.
            if ((chunk = substr(json, at, 512)) == "") fail("a string has no end")
            if (!match(chunk, /["\\\001-\037]/)) { at += length(chunk); continue }
            at += RSTART
            c = substr(chunk, RSTART, 1)
            if (c == "\"") return substr(json, start, at - start)
            if (c != "\\" || substr(json, at, 5) !~ /^(["\\\/bfnrt]|u[0-9a-fA-F][0-9a-fA-F][0-9a-fA-F][0-9a-fA-F])/)
                fail("bad character in a string at byte " at)
            at++
        }
    }
    function value(depth, into,   start) {
        if (depth > 100) fail("nested too deeply")
        if (peek() == "{") return object(depth, into)
        if (c == "[") return array(depth)
        if (c == "\"") return string()
        if (!match(substr(json, at, 400), /^(true|false|null|-?(0|[1-9][0-9]*)([.][0-9]+)?([eE][-+]?[0-9]+)?)/))
            fail("no value at byte " at)
        start = at; at += RLENGTH
        return substr(json, start, RLENGTH)
    }
    function object(depth, into,   key, inside) {
        at++
        if (peek() == "}") { at++; return "{}" }
        for (;;) {
            if (peek() != "\"") fail("no key at byte " at)
            key = string(); key = substr(key, 2, length(key) - 2)
            need(":")
            inside = value(depth + 1, depth == 0 && key == "params" ? "params" : "")
            if (into != "" && key != "") fields = fields into "\t" key "\t" inside "\n"
            if (peek() != ",") break
            at++
        }
        need("}")
        return "{}"
    }
    function array(depth) {
        at++
        if (peek() == "]") { at++; return "[]" }
        for (;;) { value(depth + 1, ""); if (peek() != ",") break; at++ }
        need("]")
        return "[]"
    }
    {
        json = $0; at = 1
        if (peek() != "{") fail("a message must be a JSON object")
        value(0, "message")
        if (peek() != "") fail("more after the message at byte " at)
        printf "%s", fields
    }
'

while IFS= read -r line || [[ -n $line ]]; do
    [[ $line == *[![:space:]]* ]] && answer "$line"
done
exit 0 # whatever the last line returned
