//! temporary
use super::bed::Bed;
use crate::effects::*;
use std::fs;
use std::time::Instant;

#[test]
fn measure() {
    let temp = std::env::var("MEASURE").unwrap_or_default();
    if temp.is_empty() {
        return;
    }
    let bed = Bed::new();
    let n: u32 = temp.parse().unwrap();
    // creates
    let paths: Vec<_> = (0..n)
        .map(|i| bed.path(&format!("d{}/file-{i:06}.txt", i / 10)))
        .collect();
    for i in 0..n.div_ceil(10) {
        fs::create_dir(bed.path(&format!("d{i}"))).unwrap();
    }
    let r = bed.session.begin("call-1", "bash");
    r.before(&bed.path("zero"), Touch::Create);
    let t = Instant::now();
    for p in &paths {
        r.before(p, Touch::Content);
    }
    let d = t.elapsed();
    eprintln!(
        "create before: {:.2} us",
        d.as_secs_f64() * 1e6 / f64::from(n)
    );
    let t = Instant::now();
    for p in &paths {
        fs::write(p, [b'x'; 4096]).unwrap();
    }
    eprintln!(
        "the writes: {:.2} us",
        t.elapsed().as_secs_f64() * 1e6 / f64::from(n)
    );
    let t = Instant::now();
    let c = r.finish(End::Done);
    eprintln!(
        "finish: {:.3} s, {} created",
        t.elapsed().as_secs_f64(),
        c.created
    );
    let t = Instant::now();
    let r = bed.session.begin("call-2", "bash");
    for p in &paths {
        r.before(p, Touch::Remove);
    }
    eprintln!(
        "unlink before: {:.2} us",
        t.elapsed().as_secs_f64() * 1e6 / f64::from(n)
    );
    let rss = fs::read_to_string("/proc/self/status")
        .unwrap()
        .lines()
        .find(|l| l.starts_with("VmRSS"))
        .unwrap()
        .to_owned();
    eprintln!("{rss}");
    let t = Instant::now();
    for p in &paths {
        fs::remove_file(p).unwrap();
    }
    eprintln!(
        "the unlinks: {:.2} us",
        t.elapsed().as_secs_f64() * 1e6 / f64::from(n)
    );
    for i in 0..n.div_ceil(10) {
        let p = bed.path(&format!("d{i}"));
        r.before(&p, Touch::Remove);
        fs::remove_dir(p).unwrap();
    }
    let t = Instant::now();
    let c = r.finish(End::Done);
    eprintln!(
        "finish: {:.3} s, {} deleted",
        t.elapsed().as_secs_f64(),
        c.deleted
    );
    let t = Instant::now();
    bed.undo().unwrap();
    eprintln!("undo: {:.3} s", t.elapsed().as_secs_f64());
    let t = Instant::now();
    bed.session.redo(UndoMode::Careful).unwrap();
    eprintln!("redo: {:.3} s", t.elapsed().as_secs_f64());
    let t = Instant::now();
    bed.undo().unwrap();
    eprintln!("undo again: {:.3} s", t.elapsed().as_secs_f64());
    let r = bed.session.begin("call-3", "bash");
    let t = Instant::now();
    for p in &paths {
        r.before(p, Touch::Content);
    }
    eprintln!(
        "copy 4K before: {:.2} us",
        t.elapsed().as_secs_f64() * 1e6 / f64::from(n)
    );
    r.finish(End::Done);
    let status = fs::read_to_string("/proc/self/status").unwrap();
    eprintln!(
        "{:?}",
        status
            .lines()
            .filter(|l| l.starts_with("VmHWM") || l.starts_with("VmRSS"))
            .collect::<Vec<_>>()
    );
}
