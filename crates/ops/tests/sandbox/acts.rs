//! Actions that a program tries inside the sandbox. Each prints `ok` or an error name.

use rustix::process::{Pid, Signal};
use std::io::Error;
use std::net::{TcpStream, UdpSocket};
use std::os::unix::net::{UnixListener, UnixStream};

pub(crate) fn act(words: &[&str]) {
    let outcome = match words {
        ["tcp", address] => TcpStream::connect(address).map(drop),
        ["udp", address] => UdpSocket::bind("0.0.0.0:0")
            .and_then(|socket| socket.send_to(b"x", address))
            .map(drop),
        ["unix", path] => UnixStream::connect(path).map(drop),
        ["listen", path] => UnixListener::bind(path).map(drop),
        ["abstract", name] => {
            use std::os::linux::net::SocketAddrExt;
            std::os::unix::net::SocketAddr::from_abstract_name(name)
                .and_then(|address| UnixStream::connect_addr(&address))
                .map(drop)
        }
        ["pair"] => UnixStream::pair().map(drop),
        ["family", number] => raw(libc::SYS_socket, [number.parse().unwrap(), 3, 0]),
        ["audit"] => raw(
            libc::SYS_socket,
            [libc::AF_NETLINK.into(), 3, libc::NETLINK_AUDIT.into()],
        ),
        ["signal", pid] => rustix::process::kill_process(
            Pid::from_raw(pid.parse().unwrap()).unwrap(),
            Signal::USR1,
        )
        .map_err(Error::from),
        ["signal-all"] => raw(libc::SYS_kill, [-1, libc::SIGUSR1.into(), 0]),
        ["call", number] => raw(number.parse().unwrap(), [0, 0, 0]),
        ["ptrace"] => raw(libc::SYS_ptrace, [0, 0, 0]),
        ["io_uring"] => raw(libc::SYS_io_uring_setup, [1, 0, 0]),
        ["bpf"] => raw(libc::SYS_bpf, [0, 0, 0]),
        ["keyctl"] => raw(libc::SYS_keyctl, [0, -3, 0]),
        ["clone3"] => raw(libc::SYS_clone3, [0, 0, 0]),
        ["newuser"] => raw(
            libc::SYS_clone,
            [i64::from(libc::CLONE_NEWUSER | libc::SIGCHLD), 0, 0],
        ),
        ["unshare"] => raw(libc::SYS_unshare, [libc::CLONE_NEWUSER.into(), 0, 0]),
        ["paste"] => raw(libc::SYS_ioctl, [0, 0x5412, 0]),
        ["x32"] => raw(0x4000_0000 + 39, [0, 0, 0]),
        ["fork", count] => {
            let mut made = 0;
            let mut failed = 0;
            let mut children = Vec::new();
            for _ in 0..count.parse().unwrap() {
                match std::process::Command::new("sleep").arg("1").spawn() {
                    Ok(child) => {
                        made += 1;
                        children.push(child);
                    }
                    Err(_) => failed += 1,
                }
            }
            for mut child in children {
                let _ = child.kill();
                let _ = child.wait();
            }
            println!("{made} {failed}");
            return;
        }
        ["allocate", bytes] => {
            let mut all: Vec<u8> = Vec::new();
            all.try_reserve_exact(bytes.parse().unwrap())
                .map_err(|_| Error::from_raw_os_error(libc::ENOMEM))
        }
        _ => panic!("{words:?}"),
    };
    match outcome {
        Ok(()) => println!("ok"),
        Err(error) => println!("{:?}", error.raw_os_error().map(name)),
    }
}

fn name(number: i32) -> &'static str {
    match number {
        libc::EPERM => "EPERM",
        libc::EACCES => "EACCES",
        libc::ENOSYS => "ENOSYS",
        libc::ESRCH => "ESRCH",
        libc::ENOENT => "ENOENT",
        libc::ENOMEM => "ENOMEM",
        libc::ECONNREFUSED => "ECONNREFUSED",
        _ => "other",
    }
}

fn raw(number: i64, [a, b, c]: [i64; 3]) -> Result<(), Error> {
    // SAFETY: refused by number before the arguments are used; if it is not refused,
    // none of these arguments is a valid address.
    if unsafe { libc::syscall(number, a, b, c, 0, 0, 0) } < 0 {
        Err(Error::last_os_error())
    } else {
        Ok(())
    }
}
