//! Advice for each kind of problem, written for first-time plugin authors.

pub(super) const FLUSH: &str = "\
Its answer stayed in a buffer: it came only when stdin was closed. Flush stdout after each \
line: print(…, flush=True) in Python, STDOUT.sync = true in Ruby, $| = 1 in Perl, \
stdout.flush() in Rust, bufio's Flush() in Go, fflush(stdout) in C.";

pub(super) const NEWLINE: &str = "\
It wrote something, but did not end the line. A message counts once its newline is there: \
write \"\\n\" after each one, and flush.";

pub(super) const SILENT: &str = "\
Read stdin line by line in a loop, and answer {\"type\":\"describe\",…} at once with one line: \
{\"name\":\"…\",\"description\":\"…\",\"parameters\":{\"type\":\"object\",\"properties\":{…}}}. \
Do not read stdin to its end first: it stays open. Do slow preparations after the answer; \
a plugin that needs more than 10 seconds to start can set `start_timeout` in haft.yaml. \
For comparison, `haft plugin new LANG NAME` creates a working plugin.";

pub(super) const ONE_PROTOCOL: &str = "\
Only one protocol was tried: without --protocol, haft detects which one the plugin uses.";

pub(super) const SILENT_AT_INIT: &str = "\
Read stdin line by line in a loop, and answer {\"type\":\"init\",…} at once with one line: \
{\"type\":\"init\",\"tools\":[{\"name\":\"…\",\"description\":\"…\",\"parameters\":{\"type\":\"object\",\
\"properties\":{…}}}]}. A plugin that needs more than 10 seconds to start can set `start_timeout` \
in haft.yaml.";

pub(super) const DEFINITION_AT_INIT: &str = "\
The answer to init is one line: {\"type\":\"init\",\"tools\":[{\"name\":\"…\",\"description\":\"…\",\
\"parameters\":{\"type\":\"object\",\"properties\":{…},\"required\":[…]}}]}.";

pub(super) const DEFINITION: &str = "\
The answer to describe is one line: {\"name\":\"…\",\"description\":\"…\",\"parameters\":\
{\"type\":\"object\",\"properties\":{…},\"required\":[…]}}, or {\"tools\":[…]} with several of these.";

pub(super) const ENDED: &str = "\
A plugin is started once and answers line after line until stdin ends; it must not exit in \
between. Its stderr (the lines with !) often says why it did. haft passes only PATH, HOME, USER, \
SHELL, LANG, LC_*, TZ, TERM and TMPDIR to it; name other variables it needs with --env here and \
with `env` in haft.yaml.";

pub(super) const CRASHED: &str = "\
Catch errors while handling each message and answer with them: {\"content\":[{\"type\":\"text\",\
\"text\":\"what went wrong\"}],\"error\":true}. Then read the next line. The lines with ! show \
what happened.";

pub(super) const UNANSWERED: &str = "\
Each call needs one answer, even if it fails: {\"content\":[{\"type\":\"text\",\"text\":\"…\"}],\
\"error\":true}. If the work takes longer, limit its time in the plugin, or test with \
--timeout SECONDS. If the plugin did answer, flush stdout after each line.";

pub(super) const SHAPE: &str = "\
A result is one line: {\"content\":[{\"type\":\"text\",\"text\":\"…\"}],\"error\":false}; an image is \
{\"type\":\"image\",\"data\":\"BASE64\",\"mimeType\":\"image/png\"}.";

pub(super) const STDOUT: &str = "\
stdout is for messages only; logs, banners and progress go to stderr: print(…, file=sys.stderr) \
in Python (print() alone writes to stdout), console.error in JavaScript, warn in Ruby, eprintln! \
in Rust, fmt.Fprintln(os.Stderr, …) in Go, echo … >&2 in a shell. Also redirect the stdout of \
programs that the plugin starts.";

pub(super) const PRETTY: &str = "\
haft understands this, but other hosts may not: write each message on one line. Omit indent= in \
Python's json.dumps, the third argument of JSON.stringify, SetIndent in Go; use -c with jq.";

pub(super) const REPAIRED: &str = "\
haft repaired it, but other hosts may not: JSON strings must escape control characters (\\n, \
\\t, \\u001b), and the text must be UTF-8. Create JSON with a library, not by joining strings.";

pub(super) const STEP: &str = "\
One message in, at most one answer out, in the same order, and before the next line is read. \
Include the call_id of the call in the answer, {\"call_id\":\"…\",\"content\":…}, so that haft \
knows which call it belongs to.";

pub(super) const CALL_ID: &str = "\
With \"protocol\": 2 several calls run at once, so each result must name its call: {\"type\":\"result\",\
\"call_id\":\"…\",\"content\":[…],\"error\":false}. Remove \"protocol\": 2 from the definition if one \
call at a time is enough.";

pub(super) const CANCEL: &str = "\
haft waits 2 seconds after {\"type\":\"cancel\",\"call_id\":\"…\"}, then it kills the plugin with all \
its calls. Stop the work and answer the call with \"error\":true.";

pub(super) const UPDATE: &str = "\
An update is {\"type\":\"update\",\"call_id\":\"…\",\"content\":[{\"type\":\"text\",\"text\":\"…\"}]}, \
sent while the call with that id runs, by a plugin whose definition contains \"protocol\": 2.";

pub(super) const END: &str = "\
When stdin ends, no more calls will come: leave the loop and exit with 0. haft kills a plugin \
that keeps running, and unsaved data is lost.";

pub(super) const LEFT: &str = "\
End all child processes before the plugin exits. haft kills the remaining ones.";

pub(super) const LONG: &str = "\
A long argument makes a long line, which the plugin could not read: calls with a long text will \
fail. Read lines of any length. In Go, call \
scanner.Buffer(make([]byte, 0, 64*1024), 16*1024*1024) before the loop, because a Scanner stops \
at 64 KB by default.";

pub(super) const TEXT: &str = "\
The plugin must read such a text completely and escape it in its answer. Create JSON with a \
library, not by joining strings.";

pub(super) const LIST: &str = "\
haft understands a bare list of tools, but other hosts may not: answer with {\"tools\":[…]}.";

pub(super) const REFUSED: &str = "\
haft checks arguments against the schema and refuses these, so the plugin was not called. Pass \
arguments that match with --call TOOL JSON, or correct the schema.";

pub(super) const SLOW: &str = "\
After one second haft tries the other protocol too and has to start the plugin twice. Answer \
first and do slow work on the first call; or set `protocol` in haft.yaml, and `start_timeout` if \
it needs more than 10 seconds.";

pub(super) const DESCRIPTION: &str = "\
The description is all that a model knows about the tool: say what it does, when to use it, and \
what it returns.";

pub(super) const UNCLEAR: &str = "\
A model has to guess what a parameter without a description means: give each a \"description\" \
with an example value.";

pub(super) const PARAMETERS: &str = "\
Add \"parameters\":{\"type\":\"object\",\"properties\":{…}}, with empty properties if there are none.";

pub(super) const REQUIRED: &str = "\
haft refuses arguments that are not in properties, so the tool can never be called: add the \
parameter to properties, or remove it from required.";

pub(super) const LOG: &str = "\
haft keeps only the last 1MB (`haft plugin log`). Log less, so that important lines stay.";

pub(super) const INVALID: &str = "\
The plugin itself sent {\"type\":\"invalid\"}; its message says why.";
