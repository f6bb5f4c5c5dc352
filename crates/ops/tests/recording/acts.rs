//! Programs of a command that do what no shell does.

use rustix::fs::{AtFlags, CWD, Mode, OFlags, RenameFlags, ResolveFlags, XattrFlags};
use std::ffi::CString;
use std::io::Write;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

pub(crate) fn act(words: &[&str]) {
    match words {
        ["openat2", path] => {
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC;
            let file =
                rustix::fs::openat2(CWD, *path, flags, mode(), ResolveFlags::empty()).unwrap();
            write(file, "openat2");
        }
        // Absolute paths and links start at the folder.
        ["in-root", folder, path] => {
            let folder = open_folder(folder);
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC;
            let resolve = ResolveFlags::IN_ROOT;
            let file = rustix::fs::openat2(&folder, *path, flags, mode(), resolve).unwrap();
            write(file, "in root");
        }
        ["at", folder, path] => {
            let folder = open_folder(folder);
            let flags = OFlags::WRONLY | OFlags::CREATE;
            let file = rustix::fs::openat(&folder, *path, flags, mode()).unwrap();
            write(file, "at");
        }
        // A file without a name, which gets one later.
        ["tmpfile", name] => {
            let flags = OFlags::RDWR | OFlags::TMPFILE;
            let file = rustix::fs::openat(CWD, ".", flags, mode()).unwrap();
            let link = format!("/proc/self/fd/{}", file.as_raw_fd());
            let follow = AtFlags::SYMLINK_FOLLOW;
            rustix::fs::linkat(CWD, link, CWD, *name, follow).unwrap();
            write(file, "had no name");
        }
        ["exchange", one, other] => {
            rustix::fs::renameat_with(CWD, *one, CWD, *other, RenameFlags::EXCHANGE).unwrap();
        }
        // One thread writes below folders that another one moves.
        ["moves"] => moves(),
        ["exclusive", path] => {
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
            rustix::fs::openat(CWD, *path, flags, mode()).unwrap_err();
        }
        // Opening for the path only changes nothing, and the descriptor names the file.
        ["empty-path", path] => {
            let handle = rustix::fs::openat(CWD, *path, OFlags::PATH, mode()).unwrap();
            // SAFETY: a descriptor, a string that ends in NUL, and numbers.
            let answer = unsafe {
                libc::fchownat(
                    handle.as_raw_fd(),
                    c"".as_ptr(),
                    libc::getuid(),
                    libc::getgid(),
                    libc::AT_EMPTY_PATH,
                )
            };
            assert_eq!(answer, 0);
            // SAFETY: as above. `fchmodat2`.
            let answer = unsafe {
                libc::syscall(
                    452,
                    handle.as_raw_fd(),
                    c"".as_ptr(),
                    0o600,
                    libc::AT_EMPTY_PATH,
                )
            };
            assert_eq!(answer, 0, "{}", std::io::Error::last_os_error());
        }
        ["fchmod", path] => {
            let file = std::fs::File::open(path).unwrap();
            rustix::fs::fchmod(&file, Mode::from_raw_mode(0o640)).unwrap();
        }
        ["xattr", path] => {
            rustix::fs::setxattr(*path, "user.haft", b"new", XattrFlags::empty()).unwrap();
        }
        ["no-xattr", path] => {
            let file = std::fs::File::open(path).unwrap();
            rustix::fs::fremovexattr(&file, "user.haft").unwrap();
        }
        ["truncate", path] => {
            let path = CString::new(*path).unwrap();
            // SAFETY: a string that ends in NUL.
            assert_eq!(unsafe { libc::truncate(path.as_ptr(), 2) }, 0);
        }
        ["creat", path] => {
            let path = CString::new(*path).unwrap();
            // SAFETY: a string that ends in NUL.
            assert!(unsafe { libc::creat(path.as_ptr(), 0o600) } >= 0);
        }
        ["bind", path] => drop(std::os::unix::net::UnixListener::bind(path).unwrap()),
        // Opens a file again that has lost its name.
        ["deleted", path] => {
            let file = std::fs::File::create(path).unwrap();
            std::fs::remove_file(path).unwrap();
            let link = format!("/proc/self/fd/{}", file.as_raw_fd());
            std::fs::write(link, "gone").unwrap();
        }
        ["names"] => names(),
        ["deep"] => deep(),
        ["race", path] => race(path),
        ["alarms"] => alarms(),
        ["spawn", count] => spawn(count.parse().unwrap()),
        ["listener"] => listener(),
        ["files", folder, count] => files(folder, count.parse().unwrap()),
        ["undumpable", path] => {
            let behavior = rustix::process::DumpableBehavior::NotDumpable;
            rustix::process::set_dumpable_behavior(behavior).unwrap();
            std::fs::write(path, "undumpable").unwrap();
        }
        other => panic!("{other:?}"),
    }
    println!("ok");
}

fn mode() -> Mode {
    Mode::from_raw_mode(0o644)
}

fn open_folder(path: &str) -> OwnedFd {
    let flags = OFlags::DIRECTORY | OFlags::RDONLY;
    rustix::fs::openat(CWD, path, flags, Mode::empty()).unwrap()
}

fn write(file: OwnedFd, text: &str) {
    std::fs::File::from(file)
        .write_all(text.as_bytes())
        .unwrap();
}

/// Files of 4 KB, a hundred in each folder.
fn files(folder: &str, count: usize) {
    let text = [b'x'; 4096];
    for number in 0..count {
        let folder = format!("{folder}/{}", number / 100);
        if number % 100 == 0 {
            std::fs::create_dir_all(&folder).unwrap();
        }
        std::fs::write(format!("{folder}/{number}"), text).unwrap();
    }
}

/// Names that are not text.
fn names() {
    for name in [
        b"line\nbreak".to_vec(),
        b"\xff\xfe not text".to_vec(),
        vec![b'x'; 255],
        b" (deleted)".to_vec(),
        b"-rf".to_vec(),
    ] {
        let name = std::ffi::OsString::from_vec(name);
        let path = Path::new(&name);
        std::fs::create_dir(path).unwrap();
        // Its own name at the end of the path of an open folder.
        let folder = open_folder(path.to_str().unwrap_or("."));
        let flags = OFlags::WRONLY | OFlags::CREATE;
        write(
            rustix::fs::openat(&folder, "at", flags, mode()).unwrap(),
            "x",
        );
        std::fs::write(path.join(path), "x").unwrap();
        std::fs::write(path.join("old"), "x").unwrap();
        std::fs::rename(path.join("old"), path.join("new")).unwrap();
    }
}

/// The longest path that the kernel accepts: 4,095 bytes.
fn deep() {
    let mut path = std::env::current_dir().unwrap().into_os_string();
    while path.len() + 1 + 200 < 3990 {
        path.push(format!("/{}", "d".repeat(200)));
        std::fs::create_dir(&path).unwrap();
    }
    let rest = 4095 - path.len() - 1;
    path.push(format!("/{}", "f".repeat(rest)));
    assert_eq!(path.len(), 4095);
    std::fs::write(&path, "deep").unwrap();
    path.push("x");
    std::fs::write(&path, "too long").unwrap_err();
}

fn moves() {
    let writer = std::thread::spawn(|| {
        for number in 0..200 {
            let _ = std::fs::write("d/a", format!("{number}"));
        }
    });
    for _ in 0..100 {
        for (from, to) in [("d", "g"), ("f", "d"), ("g", "f")] {
            let _ = std::fs::rename(from, to);
        }
    }
    writer.join().unwrap();
}

fn race(path: &str) {
    std::thread::scope(|scope| {
        for number in 0..100 {
            scope.spawn(move || {
                let temporary = format!("{path}.{number}");
                for round in 0..5 {
                    let text = format!("{number} {round}");
                    let _ = std::fs::OpenOptions::new()
                        .create(true)
                        .append(true)
                        .open(path)
                        .and_then(|mut file| file.write_all(text.as_bytes()));
                    std::fs::write(&temporary, text).unwrap();
                    match number % 3 {
                        0 => drop(std::fs::rename(&temporary, path)),
                        1 => drop(std::fs::remove_file(path)),
                        _ => drop(std::fs::remove_file(&temporary)),
                    }
                }
            });
        }
    });
}

/// Interrupts calls by a timer. None of them may fail.
fn alarms() {
    extern "C" fn ignore(_: i32) {}
    // SAFETY: a handler that does nothing, and numbers.
    unsafe {
        libc::signal(libc::SIGALRM, ignore as extern "C" fn(i32) as usize);
        let every = libc::timeval {
            tv_sec: 0,
            tv_usec: 200,
        };
        let timer = libc::itimerval {
            it_interval: every,
            it_value: every,
        };
        libc::setitimer(libc::ITIMER_REAL, &raw const timer, std::ptr::null_mut());
    }
    for number in 0..1000 {
        std::fs::write(format!("a{}", number % 10), number.to_string()).unwrap();
    }
}

/// Starts short processes that write, through `vfork` or `posix_spawn`.
fn spawn(count: usize) {
    for number in 0..count {
        let status = std::process::Command::new("/bin/sh")
            .args(["-c", &format!("echo {number} > s{}", number % 50)])
            .status()
            .unwrap();
        assert!(status.success());
    }
}

/// A second listener is impossible, and everything else works.
fn listener() {
    let mut allow = libc::sock_filter {
        code: 0x06,
        jt: 0,
        jf: 0,
        k: libc::SECCOMP_RET_ALLOW,
    };
    let program = libc::sock_fprog {
        len: 1,
        filter: &raw mut allow,
    };
    let install = |flags: libc::c_ulong| {
        // SAFETY: one instruction, alive during the call.
        unsafe {
            libc::syscall(
                libc::SYS_seccomp,
                libc::SECCOMP_SET_MODE_FILTER,
                flags,
                &raw const program,
            )
        }
    };
    assert_eq!(install(libc::SECCOMP_FILTER_FLAG_NEW_LISTENER), -1);
    let error = std::io::Error::last_os_error();
    assert_eq!(error.raw_os_error(), Some(libc::EBUSY), "{error}");
    assert_eq!(install(0), 0);
    std::fs::write("nested", "below another filter").unwrap();
}
