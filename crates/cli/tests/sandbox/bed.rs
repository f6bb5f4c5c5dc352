//! Environment of a test: folders, a home, a user who runs haft, and the confinement that
//! the kernel allows.

use crate::client::Server;
use crate::left;
use rustix::fs::{Gid, Mode, Uid};
use serde_json::{Value, json};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use tempfile::TempDir;

/// A secret that must be found neither in a reply nor anywhere else than where it was put.
pub(crate) const CANARY: &str = "canary-5d21";

const NOBODY: u32 = 65534;

/// User who starts haft.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Who {
    Root,
    User,
}

/// Mechanisms that haft finds for confining commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Level {
    Full,
    Partial,
    None,
}

impl Level {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Partial => "partial",
            Self::None => "none",
        }
    }
}

/// Disables user namespaces permanently in a new namespace, and drops the rights needed for
/// that.
const NO_NAMESPACES: &str = "echo 0 > /proc/sys/user/max_user_namespaces || exit 99
exec setpriv --inh-caps=-all --ambient-caps=-all \"$@\"";

/// Simulates a kernel without Landlock: `landlock_create_ruleset`, 444 on every
/// architecture, is not implemented.
const NO_LANDLOCK: &str = r#"
import ctypes, os, struct, sys
libc = ctypes.CDLL(None)
steps = [(0x20, 0, 0, 0), (0x15, 0, 1, 444), (0x06, 0, 0, 0x50000 | 38), (0x06, 0, 0, 0x7fff0000)]
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
class Program(ctypes.Structure):
    _fields_ = [("len", ctypes.c_ushort), ("filter", ctypes.c_void_p)]
program = Program(len(steps), ctypes.addressof(code))
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, ctypes.byref(program), 0, 0) == 0
os.execvp(sys.argv[1], sys.argv[1:])
"#;

static NEXT: AtomicU32 = AtomicU32::new(0);

/// The folders `work`, `home`, `out` (with a canary), `run` and `bin`, all owned by `who`.
pub(crate) struct Bed {
    pub(crate) who: Who,
    pub(crate) level: Level,
    pub(crate) mark: String,
    folder: TempDir,
}

/// Result of a call of `bash`.
pub(crate) struct Answer {
    pub(crate) text: String,
    pub(crate) is_error: bool,
    /// Empty over MCP: details are for the host.
    pub(crate) details: Value,
}

/// Root and an ordinary user, as far as the tests can be both.
pub(crate) fn everybody() -> Vec<Who> {
    if rustix::process::geteuid().is_root() {
        vec![Who::Root, Who::User]
    } else {
        println!("skipped as root: the tests were started by an ordinary user");
        vec![Who::User]
    }
}

/// A bed for each user at each level that confines.
pub(crate) fn beds() -> Vec<Bed> {
    beds_at(&[Level::Full, Level::Partial])
}

pub(crate) fn beds_at(levels: &[Level]) -> Vec<Bed> {
    let beds: Vec<Bed> = everybody()
        .into_iter()
        .flat_map(|who| levels.iter().filter_map(move |level| Bed::new(who, *level)))
        .collect();
    if beds.is_empty() {
        println!("skipped altogether: this machine has none of {levels:?}");
    }
    beds
}

/// Runs the same in all beds in parallel: most of the time is waiting.
pub(crate) fn in_each(beds: Vec<Bed>, case: impl Fn(&Bed) + Sync) {
    std::thread::scope(|scope| {
        let all: Vec<_> = beds
            .iter()
            .map(|bed| (bed, scope.spawn(|| case(bed))))
            .collect();
        let failed: Vec<String> = all
            .into_iter()
            .filter_map(|(bed, case)| case.join().err().map(|_| bed.name()))
            .collect();
        assert!(failed.is_empty(), "failed: {failed:?}");
    });
}

impl Bed {
    /// Prints the reason if the level is not available.
    pub(crate) fn new(who: Who, level: Level) -> Option<Self> {
        if let Some(reason) = missing(who, level) {
            println!("skipped: {who:?} {level:?}: {reason}");
            return None;
        }
        Some(Self::made(who, level))
    }

    fn made(who: Who, level: Level) -> Self {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        rustix::fs::chmod(folder.path(), Mode::from_raw_mode(0o755)).unwrap();
        let next = NEXT.fetch_add(1, Ordering::Relaxed);
        let bed = Self {
            who,
            level,
            mark: format!("haft-test-{}-{next}-", std::process::id()),
            folder,
        };
        for folder in ["work", "home", "out", "run", "bin", "tmp"] {
            std::fs::create_dir(bed.path(folder)).unwrap();
        }
        let (built, here) = (env!("CARGO_BIN_EXE_haft"), bed.path("bin/haft"));
        // A unique name, which identifies its processes.
        std::fs::hard_link(built, &here)
            .or_else(|_| std::fs::copy(built, &here).map(drop))
            .unwrap();
        bed.file("out/canary.txt", CANARY);
        bed.give();
        bed
    }

    pub(crate) fn name(&self) -> String {
        format!("{:?} {:?}", self.who, self.level)
    }

    pub(crate) fn is_full(&self) -> bool {
        self.level == Level::Full
    }

    pub(crate) fn path(&self, below: &str) -> PathBuf {
        self.folder.path().join(below)
    }

    /// The path as text, for scripts.
    pub(crate) fn at(&self, below: &str) -> String {
        self.path(below).to_str().unwrap().to_owned()
    }

    /// Creates a file owned by the user.
    pub(crate) fn file(&self, below: &str, content: impl AsRef<[u8]>) {
        let path = self.path(below);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
        self.give();
    }

    /// Writes the user's configuration.
    pub(crate) fn user(&self, content: &str) {
        self.file("home/.config/haft/haft.yaml", content);
    }

    pub(crate) fn read(&self, below: &str) -> String {
        let bytes = std::fs::read(self.path(below)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    pub(crate) fn has(&self, below: &str) -> bool {
        self.path(below).symlink_metadata().is_ok()
    }

    /// Changes the owner of a path outside the folders to the user.
    pub(crate) fn give_to(&self, path: &Path) {
        if rustix::process::geteuid().is_root() && self.who == Who::User {
            give(path);
        }
    }

    fn give(&self) {
        if rustix::process::geteuid().is_root() && self.who == Who::User {
            for folder in std::fs::read_dir(self.folder.path()).unwrap().flatten() {
                // The binary keeps its owner: it has other hard links.
                if folder.file_name() != "bin" {
                    give(&folder.path());
                }
            }
        }
    }

    /// A program run as the user, at the level.
    pub(crate) fn program(&self, program: impl AsRef<Path>) -> Command {
        let mut line: Vec<String> = Vec::new();
        let mut add = |words: &[&str]| line.extend(words.iter().map(|word| (*word).to_owned()));
        if self.who == Who::User && rustix::process::geteuid().is_root() {
            add(&[
                "setpriv",
                "--reuid=65534",
                "--regid=65534",
                "--clear-groups",
            ]);
        }
        match self.level {
            Level::Full => {}
            Level::Partial => {
                add(&["unshare", "-U", "--map-current-user", "--keep-caps"]);
                add(&["sh", "-c", NO_NAMESPACES, "sh"]);
            }
            Level::None => add(&["/usr/bin/python3", "-c", NO_LANDLOCK]),
        }
        add(&[program.as_ref().to_str().unwrap()]);
        let mut command = Command::new(&line[0]);
        command
            .args(&line[1..])
            .current_dir(self.path("work"))
            .env_clear()
            .env("HOME", self.path("home"))
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("LANG", "C.UTF-8")
            .env("HAFT_TEST_MARK", &self.mark)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    pub(crate) fn haft(&self, args: &[&str]) -> Command {
        let mut command = self.program(self.path("bin/haft"));
        command.args(args);
        command
    }

    /// Runs the script without haft, as the same user.
    pub(crate) fn free(&self, script: &str) -> Output {
        self.program("bash").args(["-c", script]).output().unwrap()
    }

    pub(crate) fn bash(&self, script: &str) -> Answer {
        self.bash_with(&[], script)
    }

    /// `haft call bash` with more flags.
    pub(crate) fn bash_with(&self, flags: &[&str], script: &str) -> Answer {
        self.call_with(flags, &json!({ "command": script, "timeout": 30 }))
    }

    pub(crate) fn call_with(&self, flags: &[&str], arguments: &Value) -> Answer {
        let mut command = self.haft(&["call", "bash", "-", "--json"]);
        command.args(flags);
        answer_of(command, arguments)
    }

    /// `haft mcp`, after the handshake.
    pub(crate) fn serve(&self) -> Server {
        self.serve_with(&[])
    }

    pub(crate) fn serve_with(&self, flags: &[&str]) -> Server {
        let mut command = self.haft(&["mcp"]);
        command.args(flags);
        Server::start(command)
    }

    /// Checks that all processes of this bed end within a second.
    #[track_caller]
    pub(crate) fn nothing_left(&self) {
        left::nothing(&self.mark, self.folder.path(), None);
    }

    /// The same, except for the server itself.
    #[track_caller]
    pub(crate) fn nothing_but(&self, server: &Server) {
        left::nothing(&self.mark, self.folder.path(), Some(server.pid()));
    }

    /// Checks that the folder beside the work folder is unchanged.
    #[track_caller]
    pub(crate) fn outside_is_whole(&self) {
        let names: Vec<_> = std::fs::read_dir(self.path("out"))
            .unwrap()
            .flatten()
            .map(|entry| entry.file_name())
            .collect();
        assert_eq!(names, ["canary.txt"], "{}", self.name());
        assert_eq!(self.read("out/canary.txt"), CANARY, "{}", self.name());
    }
}

/// Runs a call that reads its arguments from stdin.
#[track_caller]
pub(crate) fn answer_of(mut command: Command, arguments: &Value) -> Answer {
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(arguments.to_string().as_bytes()).unwrap();
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    let reply: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"));
    Answer::new(&reply)
}

/// Shortened: a flood would fill the test report.
impl std::fmt::Debug for Answer {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let from = self.text.chars().count().saturating_sub(1_000);
        let end: String = self.text.chars().skip(from).collect();
        let mark = if self.is_error { "error " } else { "" };
        write!(to, "{mark}{end:?} {}", self.details)
    }
}

impl Answer {
    /// Parses a reply of `haft call --json`, or the result of a call over MCP.
    #[track_caller]
    pub(crate) fn new(reply: &Value) -> Self {
        let blocks = reply["content"]
            .as_array()
            .unwrap_or_else(|| panic!("{reply}"));
        let texts: Vec<&str> = blocks
            .iter()
            .filter_map(|block| block["text"].as_str())
            .collect();
        assert!(!texts.is_empty(), "{reply}");
        Self {
            text: texts.join("\n"),
            is_error: reply["is_error"] == true || reply["isError"] == true,
            details: reply["details"].clone(),
        }
    }

    pub(crate) fn has(&self, words: &str) -> bool {
        self.text.contains(words)
    }
}

fn give(path: &Path) {
    let _ = rustix::fs::chownat(
        rustix::fs::CWD,
        path,
        Some(Uid::from_raw(NOBODY)),
        Some(Gid::from_raw(NOBODY)),
        rustix::fs::AtFlags::SYMLINK_NOFOLLOW,
    );
    if path.is_dir() && !path.is_symlink() {
        for entry in std::fs::read_dir(path).unwrap().flatten() {
            give(&entry.path());
        }
    }
}

/// Reason why a level is not available here. Asks the machine and not the code under test:
/// where namespaces and Landlock exist, haft must find them.
fn missing(who: Who, level: Level) -> Option<String> {
    static FOUND: [OnceLock<Option<String>>; 6] = [const { OnceLock::new() }; 6];
    let at = match (who, level) {
        (Who::Root, Level::Full) => 0,
        (Who::Root, Level::Partial) => 1,
        (Who::Root, Level::None) => 2,
        (Who::User, Level::Full) => 3,
        (Who::User, Level::Partial) => 4,
        (Who::User, Level::None) => 5,
    };
    FOUND[at].get_or_init(|| try_level(who, level)).clone()
}

fn try_level(who: Who, level: Level) -> Option<String> {
    let bed = Bed::made(who, level);
    let reach = bed.haft(&["--version"]).output().unwrap();
    if !reach.status.success() {
        let printed = String::from_utf8_lossy(&reach.stderr).into_owned();
        return Some(format!("haft cannot be started so: {}", printed.trim()));
    }
    if level == Level::None {
        return None;
    }
    let landlock =
        bed.free("python3 -c 'import ctypes; print(ctypes.CDLL(None).syscall(444, 0, 0, 1))'");
    let version = String::from_utf8_lossy(&landlock.stdout)
        .trim()
        .parse()
        .unwrap_or(0);
    if version < 3 {
        return Some(format!(
            "the kernel's Landlock is too old or off: version {version}"
        ));
    }
    let spaces = bed
        .free("unshare -Urmpnif --mount-proc true")
        .status
        .success();
    match level {
        Level::Full if !spaces => Some("there are no user namespaces".to_owned()),
        Level::Partial if spaces => Some("namespaces could not be taken away".to_owned()),
        _ => None,
    }
}
