#!/usr/bin/env bash
# {{name}}: a plugin for haft.
#
# It reads one JSON message per line from stdin and answers each with one line on
# stdout. Never print anything else to stdout: logs go to stderr.
# Needs bash 4.3 or newer and awk.
set -u
export LC_ALL=C.UTF-8 # so that upper case knows more letters than a to z

# All that a model knows of the tool. Be specific. It has to stay on one line.
definition='{"name":"{{name}}","description":"Turn a text into upper case.","parameters":{"type":"object","properties":{"text":{"type":"string","description":"The text"}},"required":["text"]}}'

# The tool itself. Prints its result; with `return 1` that is an error, told to the model.
run() {
    local text
    if ! get text; then
        echo 'text must be a string'
        return 1
    fi
    printf '%s' "${text^^}"
}

# --- From here on it is the protocol: no need to change anything. ---

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
    elif [[ ${message[name]-'"{{name}}"'} != '"{{name}}"' ]]; then
        text="unknown tool: ${message[name]}"
    elif [[ ${message[params]-'{}'} != '{}' ]]; then
        text='params must be an object'
    else
        # Not our stdin: a command that reads it would eat the next message.
        text=$(run </dev/null) && error=false
    fi
    printf '{"content":[{"type":"text","text":%s}],"error":%s%s}\n' "$(quote "$text")" "$error" \
        "${message[call_id]+,\"call_id\":${message[call_id]}}"
}

get() { # NAME: puts the argument NAME into the variable NAME; fails if it is no string
    local -n _value=$1
    [[ ${params[$1]-} == \"* ]] || return 1
    _value=$(printf '%s\n' "${params[$1]}" | LC_ALL=C awk "$decoder"; printf .)
    _value=${_value%.} # the dot kept the line feeds before it
}

declare -A message params # fields of the message, and of its "params", each still as JSON

parse() { # LINE: fills `message` and `params`, or says in `problem` what is wrong with it
    local kind key value
    message=() params=() problem=''
    while IFS=$'\t' read -r kind key value; do
        case $kind in
            message) message[$key]=$value ;;
            params) params[$key]=$value ;;
            problem) message=() params=() problem=$key ;;
        esac
    done < <(printf '%s\n' "$1" | LC_ALL=C awk "$parser")
}

quote() { # TEXT: prints it as a JSON string
    printf '%s\n' "$1" | LC_ALL=C awk '
        BEGIN { for (i = 1; i < 32; i++) if (i != 10) code[sprintf("%c", i)] = sprintf("\\u%04x", i) }
        {
            # A line with bytes that are not UTF-8 loses what is not ASCII: JSON cannot hold them.
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
# its "params": which of both, the key, the value as JSON. An object inside comes out
# as {}, an array as [].
# shellcheck disable=SC2016
parser='
    function fail(why) { print "problem\t" why; exit }
    function peek() { while ((c = substr(json, at, 1)) == " " || c == "\t" || c == "\r") at++; return c }
    function need(c) { if (peek() != c) fail("no " c " at byte " at); at++ }
    function string(   start, chunk) {
        for (start = at++; ; ) {
            # In pieces: a search in all that is left would copy it each time.
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

# Prints the text that a JSON string stands for.
# shellcheck disable=SC2016
decoder='
    function hex(digits,   i, n) {
        for (i = 1; i <= 4; i++) n = n * 16 + index("0123456789abcdef", tolower(substr(digits, i, 1))) - 1
        return n
    }
    function utf8(n) {
        if (n < 128) return n ? sprintf("%c", n) : "" # bash has no room for a NUL
        if (n < 2048) return sprintf("%c%c", 192 + int(n / 64), 128 + n % 64)
        if (n < 65536) return sprintf("%c%c%c", 224 + int(n / 4096), 128 + int(n / 64) % 64, 128 + n % 64)
        return sprintf("%c%c%c%c", 240 + int(n / 262144), 128 + int(n / 4096) % 64, 128 + int(n / 64) % 64, 128 + n % 64)
    }
    BEGIN { ORS = ""; plain["b"] = "\b"; plain["f"] = "\f"; plain["n"] = "\n"; plain["r"] = "\r"; plain["t"] = "\t" }
    {
        # Every part but the first comes after a backslash.
        count = split(substr($0, 2, length($0) - 2), part, /\\/)
        print part[1]
        for (i = 2; i <= count; i++) {
            c = substr(part[i], 1, 1)
            if (c == "") print "\\" part[++i]
            else if (c != "u") print ((c in plain) ? plain[c] : c) substr(part[i], 2)
            else {
                n = hex(substr(part[i], 2, 4))
                # Two halves of one character, as in \ud83d\ude00; a half alone is none.
                if (n >= 55296 && n < 56320 && length(part[i]) == 5 && part[i + 1] ~ /^u[dD][c-fC-F]/)
                    n = 65536 + (n - 55296) * 1024 + hex(substr(part[++i], 2, 4)) - 56320
                else if (n >= 55296 && n < 57344) n = 65533
                print utf8(n) substr(part[i], 6)
            }
        }
    }
'

while IFS= read -r line || [[ -n $line ]]; do
    [[ $line == *[![:space:]]* ]] && answer "$line"
done
exit 0 # however the last line went
