//! What to do about what is found, in words for somebody who writes a first plugin.

/// Answers that never leave the program.
pub(super) const FLUSH: &str = "\
Its answer stayed in a buffer: it came only when stdin was closed. Flush stdout after each \
line: print(…, flush=True) in Python, STDOUT.sync = true in Ruby, $| = 1 in Perl, \
stdout.flush() in Rust, bufio's Flush() in Go, fflush(stdout) in C.";

/// A line without an end.
pub(super) const NEWLINE: &str = "\
It wrote something, but did not end the line. A message counts once its newline is there: \
write \"\\n\" behind each one, and flush.";

/// Silence.
pub(super) const SILENT: &str = "\
Read stdin line by line in a loop, and answer {\"type\":\"describe\",…} at once with one line: \
{\"name\":\"…\",\"description\":\"…\",\"parameters\":{\"type\":\"object\",\"properties\":{…}}}. \
Do not read stdin to its end first: it stays open. Slow preparations belong behind the answer; \
one that needs more than 10 seconds to start gets them by `start_timeout` in its entry in haft.yaml. \
`haft plugin new LANG NAME` makes one that works, to compare.";

/// A program that may speak another protocol than the one it was asked in.
pub(super) const ONE_PROTOCOL: &str = "\
It was asked in one protocol only: leave --protocol out, and haft finds out which one it speaks.";

/// Silence of one that is asked in the protocol init.
pub(super) const SILENT_AT_INIT: &str = "\
Read stdin line by line in a loop, and answer {\"type\":\"init\",…} at once with one line: \
{\"type\":\"init\",\"tools\":[{\"name\":\"…\",\"description\":\"…\",\"parameters\":{\"type\":\"object\",\
\"properties\":{…}}}]}. One that needs more than 10 seconds to start gets them by `start_timeout` \
in its entry in haft.yaml.";

/// What the answer to init looks like.
pub(super) const DEFINITION_AT_INIT: &str = "\
The answer to init is one line: {\"type\":\"init\",\"tools\":[{\"name\":\"…\",\"description\":\"…\",\
\"parameters\":{\"type\":\"object\",\"properties\":{…},\"required\":[…]}}]}.";

/// What a definition looks like.
pub(super) const DEFINITION: &str = "\
The answer to describe is one line: {\"name\":\"…\",\"description\":\"…\",\"parameters\":\
{\"type\":\"object\",\"properties\":{…},\"required\":[…]}}, or {\"tools\":[…]} with several of these.";

/// A program that ends when it should wait.
pub(super) const ENDED: &str = "\
A plugin is started once and answers line after line until stdin ends; it must not exit in \
between. What it wrote to stderr (the lines with !) often says why it did. haft gives it PATH, \
HOME, USER, SHELL, LANG, LC_*, TZ, TERM and TMPDIR only; what else it needs is named by --env \
here and by `env` in haft.yaml.";

/// A crash at a message.
pub(super) const CRASHED: &str = "\
Catch errors around the work of each message and answer them: {\"content\":[{\"type\":\"text\",\
\"text\":\"what went wrong\"}],\"error\":true}. Then read the next line. The lines with ! say \
what happened.";

/// A call without an answer.
pub(super) const UNANSWERED: &str = "\
Each call needs one answer, also when it fails: {\"content\":[{\"type\":\"text\",\"text\":\"…\"}],\
\"error\":true}. If the work takes longer, give it a time limit of its own, or test with \
--timeout SECONDS. If it did answer, flush stdout after each line.";

/// What a result looks like.
pub(super) const SHAPE: &str = "\
A result is one line: {\"content\":[{\"type\":\"text\",\"text\":\"…\"}],\"error\":false}; an image is \
{\"type\":\"image\",\"data\":\"BASE64\",\"mimeType\":\"image/png\"}.";

/// Other things on stdout.
pub(super) const STDOUT: &str = "\
stdout is for messages only; logs, banners and progress go to stderr: print(…, file=sys.stderr) \
in Python (print() alone writes to stdout), console.error in JavaScript, warn in Ruby, eprintln! \
in Rust, fmt.Fprintln(os.Stderr, …) in Go, echo … >&2 in a shell. The same goes for what the \
programs that it starts write: send their stdout elsewhere.";

/// Messages on several lines.
pub(super) const PRETTY: &str = "\
haft understands it, other hosts may not: write each message on one line. Leave out indent= in \
Python's json.dumps, the third argument of JSON.stringify, SetIndent in Go; use -c with jq.";

/// Broken JSON.
pub(super) const MENDED: &str = "\
haft repaired it, other hosts may not: in JSON, control characters in strings are escaped (\\n, \
\\t, \\u001b) and the text is UTF-8. Make JSON with a library, not by putting strings together.";

/// Answers nobody asked for.
pub(super) const STEP: &str = "\
One message in, at most one answer out, in the same order, and before the next line is read. \
Answer with the call_id of the call, {\"call_id\":\"…\",\"content\":…}: then haft can tell which \
call an answer is for.";

/// Ids in the second protocol.
pub(super) const CALL_ID: &str = "\
With \"protocol\": 2 several calls run at once, so each result names its own: {\"type\":\"result\",\
\"call_id\":\"…\",\"content\":[…],\"error\":false}. Leave \"protocol\": 2 out of the definition if one \
call at a time is enough.";

/// Cancelling.
pub(super) const CANCEL: &str = "\
haft waits 2 seconds after {\"type\":\"cancel\",\"call_id\":\"…\"}, then it ends the program and all \
calls in it. Stop the work and answer the call, with \"error\":true.";

/// Updates.
pub(super) const UPDATE: &str = "\
An update is {\"type\":\"update\",\"call_id\":\"…\",\"content\":[{\"type\":\"text\",\"text\":\"…\"}]}, \
while the call with that id runs, in a plugin whose definition says \"protocol\": 2.";

/// The end.
pub(super) const END: &str = "\
When stdin ends, nobody will ask any more: leave the loop and exit with 0. haft ends a plugin \
that stays, but what it wanted to save is lost then.";

/// Children that stay.
pub(super) const LEFT: &str = "\
End what it starts when it ends itself. haft ends all of it in the end, without asking.";

/// Wrong arguments taken for right ones.
pub(super) const LENIENT: &str = "\
haft checks arguments against the schema and never sends such a call, but other hosts may: \
answer with \"error\":true and say which argument is wrong and what it should be.";

/// Something that haft never sends.
pub(super) const NEVER_SENT: &str = "\
haft never sends this, so the plugin works as it is; another host might. To be safe, catch \
errors around each line and answer with \"error\":true, or ignore the line, then read the next one.";

/// A long line.
pub(super) const LONG: &str = "\
A long argument makes a long line, and this one did not get through: a model that passes a \
long text will see the call fail. Read lines of any length. In Go, call \
scanner.Buffer(make([]byte, 0, 64*1024), 16*1024*1024) before the loop, as a Scanner stops at \
64 KB otherwise.";

/// A text that is easily broken.
pub(super) const TEXT: &str = "\
It has to read and write such a text whole, and escape what it repeats. Make JSON with a \
library, not by putting strings together.";

/// Tools in a bare list.
pub(super) const LIST: &str = "\
haft understands a bare list of tools, other hosts may not: answer with {\"tools\":[…]}.";
