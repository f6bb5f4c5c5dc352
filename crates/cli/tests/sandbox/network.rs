//! Commands cannot connect to anything: neither over the network nor through local sockets.
//! With the network on they can, which also shows that the listeners work.

use crate::bed::{Bed, Level, beds, beds_at, in_each};
use crate::turn;
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::time::Duration;

/// Listeners of every kind.
struct Peers {
    tcp: TcpListener,
    udp: UdpSocket,
    name: String,
    _hidden: UnixListener,
    _paths: Vec<UnixListener>,
}

impl Peers {
    fn new(bed: &Bed) -> Self {
        let name = format!("haft-{}", bed.mark);
        let hidden = SocketAddr::from_abstract_name(&name).unwrap();
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        tcp.set_nonblocking(true).unwrap();
        let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
        udp.set_read_timeout(Some(Duration::from_millis(100)))
            .unwrap();
        let paths = places(bed)
            .iter()
            .filter_map(|path| match UnixListener::bind(path) {
                Ok(listener) => {
                    let everybody = rustix::fs::Mode::from_raw_mode(0o777);
                    rustix::fs::chmod(path, everybody).unwrap();
                    Some(listener)
                }
                Err(error) => {
                    println!("skipped: a socket at {path}: {error}");
                    None
                }
            })
            .collect();
        Self {
            tcp,
            udp,
            name,
            _hidden: UnixListener::bind_addr(&hidden).unwrap(),
            _paths: paths,
        }
    }

    fn scripts(&self, bed: &Bed) -> Vec<String> {
        let py = |code: &str| format!("python3 -c 'import socket as s\n{code}'");
        let tcp = self.tcp.local_addr().unwrap().port();
        let udp = self.udp.local_addr().unwrap().port();
        let mut all = vec![
            format!("exec 3<>/dev/tcp/127.0.0.1/{tcp}"),
            format!("echo x > /dev/udp/127.0.0.1/{udp}"),
            py(&format!("s.create_connection((\"127.0.0.1\", {tcp}), 2)")),
            py(&format!(
                "s.socket(s.AF_INET, s.SOCK_DGRAM).sendto(b\"x\", (\"127.0.0.1\", {udp}))"
            )),
            py(&format!(
                "s.socket(s.AF_INET6, s.SOCK_STREAM).connect((\"::ffff:127.0.0.1\", {tcp}))"
            )),
            py(&format!(
                "s.socket(s.AF_UNIX).connect(\"\\0{}\")",
                self.name
            )),
        ];
        for path in places(bed)
            .iter()
            .filter(|path| std::fs::exists(path).unwrap())
        {
            all.push(py(&format!("s.socket(s.AF_UNIX).connect(\"{path}\")")));
        }
        all
    }
}

impl Drop for Peers {
    fn drop(&mut self) {
        for path in &self._paths {
            if let Some(path) = path.local_addr().unwrap().as_pathname() {
                let _ = std::fs::remove_file(path);
            }
        }
    }
}

/// The usual locations of sockets: `/run`, `/tmp`, the user's runtime and temp folders.
fn places(bed: &Bed) -> Vec<String> {
    vec![
        format!("/run/{}.sock", bed.mark),
        format!("/tmp/{}.sock", bed.mark),
        bed.at("run/s"),
        bed.at("tmp/s"),
    ]
}

fn serve(bed: &Bed, flags: &[&str]) -> crate::client::Server {
    let mut command = bed.haft(&["mcp"]);
    command
        .args(flags)
        .env("XDG_RUNTIME_DIR", bed.path("run"))
        .env("TMPDIR", bed.path("tmp"));
    crate::client::Server::start(command)
}

#[test]
fn no_listener_is_reached() {
    let _turn = turn::shared();
    in_each(beds(), |bed| {
        let peers = Peers::new(bed);
        let scripts = peers.scripts(bed);
        let scripts: Vec<&str> = scripts.iter().map(String::as_str).collect();
        for mode in ["workspace", "strict", "read-only"] {
            let mut server = serve(bed, &["--sandbox", mode]);
            let did = server.tries(&scripts);
            // For UDP only the arrival counts: sending may succeed in a separate network.
            let did: Vec<_> = did
                .iter()
                .filter(|script| !script.contains("udp") && !script.contains("DGRAM"))
                .collect();
            assert!(did.is_empty(), "{} {mode}: {did:#?}", bed.name());
            assert!(peers.tcp.accept().is_err(), "{}", bed.name());
            assert!(peers.udp.recv(&mut [0; 8]).is_err(), "{}", bed.name());
        }
        // Everything works without the sandbox.
        let did = serve(bed, &["--sandbox", "off"]).tries(&scripts);
        assert_eq!(did, scripts, "{}", bed.name());
        assert!(peers.tcp.accept().is_ok());
        assert!(peers.udp.recv(&mut [0; 8]).is_ok());
    });
}

/// Starts a server in the background and waits until it listens.
const SERVER: &str = "python3 - <<'EOF' &
import socket
listeners = [socket.create_server(('127.0.0.1', 4711)), socket.create_server(('::1', 4712), family=socket.AF_INET6)]
unix = socket.socket(socket.AF_UNIX)
unix.bind('/tmp/own.sock')
unix.listen()
abstract = socket.socket(socket.AF_UNIX)
abstract.bind('\\0own-' + open('mark').read())
abstract.listen()
open('listening', 'w').close()
while True:
    listeners[0].accept()[0].sendall(b'hello from 4711')
EOF
while ! [ -e listening ]; do sleep 0.01; done";

/// Connects to each socket of [`SERVER`].
const CLIENT: &str = "python3 - <<'EOF'
import socket
print(socket.create_connection(('localhost', 4711), 5).recv(100))
socket.create_connection(('::1', 4712), 5)
socket.socket(socket.AF_UNIX).connect('/tmp/own.sock')
socket.socket(socket.AF_UNIX).connect('\\0own-' + open('mark').read())
print('all reached')
EOF";

#[test]
fn commands_of_a_session_reach_each_other_and_nothing_else() {
    let _turn = turn::shared();
    in_each(beds_at(&[Level::Full]), |bed| {
        bed.file("work/mark", &bed.mark);
        let mut server = bed.serve();
        server.bash(SERVER);
        let reached = server.bash(CLIENT);
        assert!(
            reached.has("hello from 4711") && reached.has("all reached"),
            "{}: {reached:?}",
            bed.name()
        );
        // Ports below 1024 are the session's own too, so anybody may listen there.
        let low = server.bash(
            "python3 -c 'import socket; socket.socket().bind((\"127.0.0.1\", 80)); print(\"bound\")' 2>&1",
        );
        assert!(low.has("bound"), "{}: {low:?}", bed.name());
        // Neither the machine nor another session of the same work folder reaches it.
        assert!(std::net::TcpStream::connect("127.0.0.1:4711").is_err());
        let other = bed.serve().bash(CLIENT);
        assert!(other.has("Connection refused"), "{}: {other:?}", bed.name());
        // There is no way out, and names fail at once.
        let began = std::time::Instant::now();
        let out = server.bash(
            "python3 -c 'import socket; socket.create_connection((\"192.0.2.1\", 80), 20)' 2>&1 | tail -1
            python3 -c 'import socket; socket.getaddrinfo(\"haft.example\", 80)' 2>&1 | tail -1",
        );
        assert!(out.has("unreachable") && out.has("gaierror"), "{out:?}");
        assert!(began.elapsed() < Duration::from_secs(5), "{out:?}");
    });
}

#[test]
fn only_the_user_can_switch_the_network_on() {
    let _turn = turn::shared();
    in_each(beds(), |bed| {
        let peers = Peers::new(bed);
        let scripts = peers.scripts(bed);
        let network: Vec<&str> = scripts.iter().take(5).map(String::as_str).collect();
        let did = serve(bed, &["--network", "on"]).tries(&network);
        assert_eq!(did, network, "{}", bed.name());
        // A project cannot switch it on.
        bed.file("work/haft.yaml", "network: on\n");
        let mut command = bed.haft(&[
            "call",
            "bash",
            "--quiet",
            &format!("command={}", network[0]),
        ]);
        let output = command.output().unwrap();
        let reply = format!(
            "{}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
        assert!(
            reply.contains("Exit code: 1") || reply.contains("haft.yaml"),
            "{}: {reply}",
            bed.name()
        );
        let _ = peers.tcp.accept();
        assert!(
            peers.tcp.accept().is_err() || !reply.contains("(no output)"),
            "{reply}"
        );
    });
}

#[test]
fn other_kinds_of_sockets_are_refused() {
    let _turn = turn::shared();
    in_each(beds(), |bed| {
        let mut server = bed.serve();
        let kinds = [
            "AF_NETLINK, s.SOCK_RAW, 9",
            "AF_PACKET, s.SOCK_RAW",
            "AF_VSOCK, s.SOCK_STREAM",
            "AF_ALG, s.SOCK_SEQPACKET",
            "AF_INET, s.SOCK_RAW, 1",
        ];
        let scripts: Vec<String> = kinds
            .iter()
            .map(|kind| format!("python3 -c 'import socket as s; s.socket(s.{kind})'"))
            .collect();
        let scripts: Vec<&str> = scripts.iter().map(String::as_str).collect();
        let did = server.tries(&scripts);
        assert!(did.is_empty(), "{}: {did:#?}", bed.name());
        let works = server.tries(&["python3 -c 'import socket as s; a, b = s.socketpair(); a.send(b\"x\"); assert b.recv(1)'"]);
        assert_eq!(works.len(), 1, "{}", bed.name());
    });
}
