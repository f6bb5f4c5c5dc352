//! Wrappers that run the words behind their options as they are.

use super::options::{Extra, Spec};

const PLAIN: Spec = Spec {
    names: &[],
    flags: "",
    values: "",
    long_flags: &[],
    long_values: &[],
    operands: 0,
    extra: Extra::Nothing,
};

/// The options of a wrapper, if they are known.
pub(super) fn spec(name: &str) -> Option<&'static Spec> {
    if super::is_loader(name) {
        return Some(&PLAIN);
    }
    SPECS.iter().find(|spec| spec.names.contains(&name))
}

pub(super) const ENV: Spec = Spec {
    flags: "i0v",
    values: "uCS",
    long_flags: &[
        "ignore-environment",
        "null",
        "debug",
        "block-signal",
        "default-signal",
        "ignore-signal",
        "list-signal-handling",
    ],
    long_values: &["unset", "chdir", "split-string"],
    extra: Extra::Assignments,
    ..PLAIN
};

pub(super) const XARGS: Spec = Spec {
    flags: "0tprxo",
    values: "ILnPsdEa",
    long_flags: &[
        "null",
        "no-run-if-empty",
        "interactive",
        "verbose",
        "exit",
        "open-tty",
    ],
    long_values: &[
        "arg-file",
        "delimiter",
        "max-args",
        "max-procs",
        "max-chars",
        "process-slot-var",
    ],
    ..PLAIN
};

pub(super) const EXEC: Spec = Spec {
    flags: "cl",
    values: "a",
    ..PLAIN
};

pub(super) const WATCH: Spec = Spec {
    flags: "bcdegtwx",
    values: "nq",
    long_flags: &[
        "beep",
        "color",
        "differences",
        "errexit",
        "chgexit",
        "no-title",
        "no-wrap",
        "exec",
        "precise",
    ],
    long_values: &["interval", "equexit"],
    ..PLAIN
};

pub(super) const SCRIPT: Spec = Spec {
    flags: "aefq",
    values: "cEIOBToml",
    long_flags: &["append", "return", "flush", "force", "quiet"],
    long_values: &[
        "command",
        "echo",
        "log-in",
        "log-out",
        "log-io",
        "log-timing",
        "output-limit",
        "logging-format",
    ],
    ..PLAIN
};

pub(super) const SSH: Spec = Spec {
    flags: "46AaCfGgKkMNnqsTtVvXxYy",
    values: "BbcDEeFIiJLlmOopQRSWw",
    operands: 1,
    ..PLAIN
};

pub(super) const FLOCK: Spec = Spec {
    flags: "sxenuFo",
    values: "wE",
    long_flags: &[
        "shared",
        "exclusive",
        "unlock",
        "nonblock",
        "nb",
        "close",
        "no-fork",
        "verbose",
    ],
    long_values: &["wait", "timeout", "conflict-exit-code"],
    operands: 1,
    ..PLAIN
};

pub(super) const SU: Spec = Spec {
    flags: "lmpfP",
    values: "csgGw",
    long_flags: &["login", "preserve-environment", "fast", "pty"],
    long_values: &[
        "command",
        "session-command",
        "shell",
        "group",
        "supp-group",
        "whitelist-environment",
    ],
    ..PLAIN
};

pub(super) const PARALLEL: Spec = Spec {
    flags: "k0qmXtvu",
    values: "jPnNaIdS",
    long_flags: &[
        "keep-order",
        "null",
        "quote",
        "bar",
        "progress",
        "eta",
        "dry-run",
        "line-buffer",
        "ungroup",
        "group",
        "tag",
        "will-cite",
        "no-notice",
        "verbose",
    ],
    long_values: &[
        "jobs", "max-args", "arg-file", "halt", "delay", "timeout", "retries", "joblog",
    ],
    ..PLAIN
};

const SPECS: &[Spec] = &[
    Spec {
        names: &[
            "nohup",
            "builtin",
            "chronic",
            "unbuffer",
            "fakeroot",
            "torsocks",
            "catchsegv",
            "linux32",
            "linux64",
            "i386",
            "x86_64",
            "busybox",
            "toybox",
            "dbus-run-session",
        ],
        ..PLAIN
    },
    Spec {
        names: &["nice"],
        values: "n",
        long_values: &["adjustment"],
        extra: Extra::Number,
        ..PLAIN
    },
    Spec {
        names: &["setsid"],
        flags: "cfw",
        long_flags: &["ctty", "fork", "wait"],
        ..PLAIN
    },
    Spec {
        names: &["stdbuf"],
        values: "ioe",
        long_values: &["input", "output", "error"],
        ..PLAIN
    },
    Spec {
        names: &["timeout"],
        flags: "v",
        values: "ks",
        long_flags: &["foreground", "preserve-status", "verbose"],
        long_values: &["kill-after", "signal"],
        operands: 1,
        ..PLAIN
    },
    Spec {
        names: &["time"],
        flags: "pvqa",
        values: "fo",
        long_flags: &["portability", "verbose", "quiet", "append"],
        long_values: &["format", "output"],
        ..PLAIN
    },
    Spec {
        names: &["sudo"],
        flags: "ABbEHiKklnPSsVvN",
        values: "CDghpRrtTUu",
        long_flags: &[
            "askpass",
            "background",
            "bell",
            "set-home",
            "login",
            "remove-timestamp",
            "reset-timestamp",
            "list",
            "non-interactive",
            "no-update",
            "preserve-env",
            "preserve-groups",
            "stdin",
            "shell",
            "validate",
        ],
        long_values: &[
            "close-from",
            "chdir",
            "group",
            "host",
            "prompt",
            "chroot",
            "role",
            "type",
            "command-timeout",
            "other-user",
            "user",
        ],
        extra: Extra::Assignments,
        ..PLAIN
    },
    Spec {
        names: &["doas"],
        flags: "nLs",
        values: "Cua",
        ..PLAIN
    },
    Spec {
        names: &["pkexec"],
        long_flags: &["disable-internal-agent", "keep-cwd"],
        long_values: &["user"],
        ..PLAIN
    },
    Spec {
        names: &["ionice"],
        flags: "t",
        values: "cn",
        long_flags: &["ignore"],
        long_values: &["class", "classdata"],
        ..PLAIN
    },
    Spec {
        names: &["chrt"],
        flags: "bfiorv",
        long_flags: &["batch", "fifo", "idle", "other", "rr", "verbose"],
        operands: 1,
        ..PLAIN
    },
    Spec {
        names: &["taskset"],
        flags: "c",
        long_flags: &["cpu-list"],
        operands: 1,
        ..PLAIN
    },
    Spec {
        names: &["chroot"],
        long_flags: &["skip-chdir"],
        long_values: &["groups", "userspec"],
        operands: 1,
        ..PLAIN
    },
    Spec {
        names: &["unshare"],
        flags: "muinpUCTfrc",
        values: "SGRwl",
        long_flags: &[
            "mount",
            "uts",
            "ipc",
            "net",
            "pid",
            "user",
            "cgroup",
            "time",
            "fork",
            "map-root-user",
            "map-current-user",
            "map-auto",
            "mount-proc",
            "kill-child",
            "keep-caps",
        ],
        long_values: &[
            "root",
            "wd",
            "setuid",
            "setgid",
            "map-user",
            "map-group",
            "propagation",
            "setgroups",
        ],
        ..PLAIN
    },
    Spec {
        names: &["ssh-agent"],
        flags: "cDdksv",
        values: "aEOPt",
        ..PLAIN
    },
    Spec {
        names: &["logsave"],
        flags: "asv",
        operands: 1,
        ..PLAIN
    },
    Spec {
        names: &["choom"],
        values: "np",
        long_values: &["adjust", "pid"],
        ..PLAIN
    },
    Spec {
        names: &["uclampset"],
        flags: "saR",
        values: "mMp",
        long_flags: &["system", "all-tasks", "reset-on-fork"],
        long_values: &["pid"],
        ..PLAIN
    },
    Spec {
        names: &["ltrace"],
        flags: "bcCfhiLrStTV",
        values: "aADeFlnopsuwx",
        ..PLAIN
    },
    Spec {
        names: &["strace"],
        flags: "fcCdhiknqrtTvwxyz",
        values: "aeEIoOPsSuUX",
        long_flags: &["follow-forks"],
        ..PLAIN
    },
    Spec {
        names: &["valgrind"],
        flags: "qv",
        long_flags: &[
            "tool",
            "leak-check",
            "show-leak-kinds",
            "track-origins",
            "error-exitcode",
            "suppressions",
            "log-file",
            "quiet",
            "verbose",
        ],
        ..PLAIN
    },
];
