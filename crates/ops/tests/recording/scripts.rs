//! Random shell scripts: each is run, undone, and the tree compared.

use crate::bed::{Bed, block_on, last};
use crate::tree;
use haft_ops::effects::{End, Recording, Switch, UndoMode};
use haft_ops::executor::sandbox::Level;
use haft_ops::executor::{Executor, Program};
use std::time::{Duration, Instant};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};

/// Number of scripts; and the one after which a new process is started.
const SCRIPTS: u64 = 2000;
const BATCH: u64 = 250;

const NAMES: [&str; 14] = [
    "a",
    "b",
    "c",
    "d",
    "d/a",
    "d/b",
    "d/e",
    "d/e/a",
    "f/a",
    "f",
    "l",
    "l/a",
    "../root/a",
    "$'n\\n\\xff'",
];

/// A generator whose numbers are the same every time.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % limit as u64).unwrap()
    }

    fn name(&mut self) -> &'static str {
        NAMES[self.below(NAMES.len())]
    }
}

/// Returns one line of shell.
pub(crate) fn line(random: &mut Random) -> String {
    let (one, other) = (random.name(), random.name());
    let number = random.below(1000);
    // Opening a FIFO would wait for its other end.
    let file = format!("[ -p {one} ] ||");
    match random.below(24) {
        0 | 1 => format!("{file} echo {number} > {one}"),
        2 => format!("{file} echo {number} >> {one}"),
        3 => format!("rm -f {one}"),
        4 => format!("rm -rf {one}"),
        5 | 6 => format!("mv -f {one} {other}"),
        7 => format!("mv -fT {one} {other}"),
        8 => format!("mkdir {one}"),
        9 => format!("mkdir -p {one}/g && echo {number} > {one}/g/h"),
        10 => format!("rmdir {one}"),
        11 => format!("ln {one} {other}"),
        12 => format!("ln -sf {other} {one}"),
        13 => format!("ln -sfn d {one}"),
        14 => format!("chmod {} {one}", ["600", "755", "444", "711"][number % 4]),
        15 => format!("truncate -s {number} {one}"),
        16 => format!("{file} [ -p {other} ] || cp -a {one} {other}"),
        17 => format!("sed -i s/1/2/ {one}"),
        18 => format!("mkfifo {one}"),
        19 => format!("\"$SELF\" --act exchange {one} {other}"),
        20 => format!("echo {number} > x && mv -f x {one}; rm -rf x"),
        21 => format!("{file} ( cd d && echo {number} > ../{one} && mv a b )"),
        22 => format!("exec 7<>{one} && echo {number} >&7 && rm {one}; exec 7>&-"),
        _ => format!("touch {one}; {file} ln {one} y && echo {number} >> y; rm -f y"),
    }
}

/// A tree for the scripts to change.
pub(crate) fn prepare(bed: &Bed) {
    let work = bed.path("work");
    for folder in ["d/e", "f"] {
        std::fs::create_dir_all(work.join(folder)).unwrap();
    }
    for (name, text) in [
        ("a", "11\n"),
        ("b", "21\n"),
        ("d/a", "31\n"),
        ("f/a", "41\n"),
    ] {
        std::fs::write(work.join(name), text).unwrap();
    }
    std::fs::write(work.join("d/e/a"), vec![b'1'; 9000]).unwrap();
    std::fs::hard_link(work.join("b"), work.join("d/b")).unwrap();
    std::os::unix::fs::symlink("d", work.join("l")).unwrap();
    std::fs::write(bed.path("root/a"), "root 1\n").unwrap();
}

/// The scripts run in a shell that lives for many of them, so that each takes milliseconds;
/// that is also what attributes the changes of a plugin to its calls.
pub(crate) fn all(level: Level) {
    let Some(bed) = Bed::new(Some(level)) else {
        return;
    };
    prepare(&bed);
    let begun = Instant::now();
    let mut seed = 1;
    while seed <= SCRIPTS {
        block_on(batch(&bed, seed..seed + BATCH));
        seed += BATCH;
    }
    println!("{SCRIPTS} scripts in {:?}", begun.elapsed());
}

async fn batch(bed: &Bed, seeds: std::ops::Range<u64>) {
    let switch = Switch::new(bed.session.clone(), "shell");
    let program = Program::Direct(vec!["/bin/bash".into()]);
    let launch = bed.launch(program, Recording::Program(switch.clone()));
    let mut shell = bed.local.converse(launch).await.unwrap();
    let mut output = BufReader::new(&mut shell.output);
    for seed in seeds {
        let before = bed.tree();
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let lines = 1 + random.below(7);
        let script: Vec<String> = (0..lines).map(|_| line(&mut random)).collect();
        let script = script.join("\n");
        let recorder = bed.recorder();
        let attribution = switch.begin(&recorder);
        let text = format!("{{ {script}\n}} >/dev/null 2>&1 </dev/null\necho done {seed}\n");
        shell.input.write_all(text.as_bytes()).await.unwrap();
        let mut answer = String::new();
        let read = output.read_line(&mut answer);
        let read = tokio::time::timeout(Duration::from_secs(30), read).await;
        read.unwrap().unwrap();
        assert_eq!(answer, format!("done {seed}\n"), "{script}");
        drop(attribution);
        let counts = recorder.finish(End::Done);
        assert!(counts.complete, "{seed}: {script}\n{:?}", counts.why);
        let changed = tree::differences(&before, &bed.tree());
        if changed.is_empty() {
            continue;
        }
        let undone = bed.session.undo(&last(), UndoMode::Careful);
        let left = tree::differences(&before, &bed.tree());
        assert!(
            undone.is_ok() && left.is_empty(),
            "script {seed}:\n{script}\n\nchanged: {changed:#?}\nnot restored: {left:#?}\n{undone:#?}"
        );
    }
}
