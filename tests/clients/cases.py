"""What is run: clients of registries, and the test suites of small projects."""

import socket
import textwrap
from dataclasses import dataclass, field
from pathlib import Path

from registries import NAME, WORD

HERE = Path(__file__).resolve().parent
# Made by ./test from requirements.txt and package.json.
VENV = HERE.parent.parent / "target" / "clients" / "bin"
NODE_24 = next(HERE.glob("node_modules/node-linux-*/bin/node"), HERE / "node_modules/node")

# `[workspace]` keeps it out of haft's own.
MANIFEST = '[workspace]\n[package]\nname = "app"\nversion = "0.1.0"\nedition = "2021"\n'

# Variables by which clients trust a certificate.
TRUST = (
    "CARGO_HTTP_CAINFO",
    "CURL_CA_BUNDLE",
    "GIT_SSL_CAINFO",
    "NODE_EXTRA_CA_CERTS",
    "PIP_CERT",
    "REQUESTS_CA_BUNDLE",
    "SSL_CERT_FILE",
    "npm_config_cafile",
)


@dataclass
class Case:
    name: str
    # Without this program the case cannot run.
    program: str
    command: str
    # What the reply contains.
    expected: str
    files: dict = field(default_factory=dict)
    flags: tuple = ()
    succeeds: bool = True

    def problem(self, bed):
        """Runs the case; returns what is wrong, or None."""
        succeeded, text = bed.call(self.files, self.command, self.flags)
        if succeeded != self.succeeds:
            return f"{'succeeded' if succeeded else 'failed'}:\n{text}"
        if self.expected not in text:
            return f"the reply lacks {self.expected!r}:\n{text}"
        if self.succeeds and "the sandbox refused" in text:
            return f"refused:\n{text}"
        return None


def clients(server):
    url, host = server.url, server.host
    manifest = f'{MANIFEST}[dependencies]\n{NAME} = {{ version = "1", registry = "tiny" }}\n'
    rust = {
        "Cargo.toml": manifest,
        ".cargo/config.toml": f'[registries.tiny]\nindex = "sparse+{url}/cargo/"\n',
        "src/main.rs": f'fn main() {{ println!("{{}}", {NAME.replace("-", "_")}::WORD); }}\n',
    }
    go = {
        "go.mod": "module app\n\ngo 1.19\n",
        "main.go": f'package main\n\nimport tiny "example.com/{NAME}"\n\n'
        "func main() { println(tiny.Word) }\n",
    }
    # Over HTTPS, pip checks the certificate.
    trusted = "" if server.certificate else f"--trusted-host {host}"
    # The folder proves that pip downloaded the package; the import that it is whole.
    pip = (
        "python3 -m venv env && env/bin/pip download --disable-pip-version-check --no-deps "
        f"--index-url {url}/simple {trusted} --dest got {NAME} && "
        "PYTHONPATH=$(echo got/*.whl) python3 -c 'import haft_tiny; print(haft_tiny.WORD)'"
    )
    urllib = f"from urllib.request import urlopen; print(urlopen('{url}/hello.txt').read())"
    requests = f"import requests; print(requests.get('{url}/hello.txt', timeout=20).text)"
    fetch = f"fetch('{url}/hello.txt').then((reply) => reply.text()).then(console.log)"
    uv = (
        f"{VENV}/uv pip install --quiet --python python3 --target got --index-url {url}/simple {NAME} && "
        "PYTHONPATH=got python3 -c 'import haft_tiny; print(haft_tiny.WORD)'"
    )
    curl = f"curl -sSf --max-time 20 {url}/hello.txt"
    git = f"git clone --quiet {url}/repo.git got"
    opened = [
        ("curl", "curl", curl, {}),
        ("git", "git", f"{git} && cat got/word.txt", {}),
        ("urllib", "python3", f'python3 -c "{urllib}"', {}),
        ("requests", f"{VENV}/python", f'{VENV}/python -c "{requests}"', {}),
        ("pip", "python3", pip, {}),
        ("uv", f"{VENV}/uv", uv, {}),
        ("fetch of Node 24", str(NODE_24), f'{NODE_24} -e "{fetch}"', {}),
        (
            "npm",
            "npm",
            f"npm install --no-audit --no-fund --fetch-retries 0 --registry {url}/npm/ {NAME} && "
            f"node -e \"console.log(require('{NAME}'))\"",
            {"package.json": '{"name": "app", "version": "1.0.0"}'},
        ),
        ("cargo", "cargo", "cargo run --quiet", rust),
        (
            "go",
            "go",
            # Otherwise only root could remove the folders that it makes.
            "export GOFLAGS=-modcacherw GOSUMDB=off; "
            f"export GOPROXY={url}/go; go get example.com/{NAME}@v1.0.0 && go run .",
            go,
        ),
    ]
    if server.is_loopback:
        print("skipped: go: for loopback, all that this machine has, it uses no proxy")
        opened = [one for one in opened if one[0] != "go"]
    trust = ""
    if server.certificate:
        trust = "".join(f"export {name}={server.certificate[2]}; " for name in TRUST)
    title, flags = f"over {server.scheme} with the host", ("--network", host)
    found = [
        Case(f"{name} {title} open", program, trust + command, WORD, files, flags)
        for name, program, command, files in opened
    ]
    refusal = f"[the sandbox refused connections to {server.address}"
    return found + [
        Case(f"{name} {title} closed", name, trust + command, refusal, succeeds=False)
        for name, command in (("curl", curl), ("git", git))
    ]


def projects():
    """Small test suites of every language, without flags."""
    python = PYTHON.replace("LOOPBACKS", repr(loopbacks()))
    go = {"go.mod": "module app\n\ngo 1.19\n", "app_test.go": GO}
    rust = {"Cargo.toml": MANIFEST, "src/lib.rs": RUST}
    return [
        Case("tests of Python", "python3", "python3 -m unittest", "Ran 4 tests", {"test_app.py": python}),
        Case("tests of Node", "node", "node --test", "# pass 2", {"app.test.mjs": NODE}),
        Case("tests of Rust", "cargo", "cargo test", "2 passed", rust),
        Case("tests of Go", "go", "go test ./...", "ok", go),
    ]


def loopbacks():
    """Loopback addresses that programs of this machine can use without haft."""
    found = []
    for family, address in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
        try:
            with socket.socket(family) as probe:
                probe.bind((address, 0))
            found.append(address)
        except OSError:
            print(f"skipped: this machine has no {address}")
    return found


PYTHON = textwrap.dedent('''\
    import multiprocessing
    import os
    import socket
    import tempfile
    import threading
    import unittest


    def square(number):
        return number * number


    def put(queue):
        queue.put("from another process")


    class Sockets(unittest.TestCase):
        def echo(self, family, address):
            with socket.socket(family, socket.SOCK_STREAM) as server:
                server.bind(address)
                server.listen()

                def serve():
                    peer, _ = server.accept()
                    with peer:
                        peer.sendall(peer.recv(100).upper())

                thread = threading.Thread(target=serve)
                thread.start()
                with socket.socket(family, socket.SOCK_STREAM) as client:
                    client.settimeout(20)
                    client.connect(server.getsockname())
                    client.sendall(b"hello")
                    self.assertEqual(client.recv(100), b"HELLO")
                thread.join()

        def test_tcp(self):
            for address in LOOPBACKS:
                with self.subTest(address):
                    family = socket.AF_INET6 if ":" in address else socket.AF_INET
                    self.echo(family, (address, 0))

        def test_localhost(self):
            with socket.create_server(("localhost", 0)) as server:
                socket.create_connection(server.getsockname(), timeout=20).close()

        def test_unix(self):
            for parent in (None, os.getcwd()):
                with tempfile.TemporaryDirectory(dir=parent) as folder:
                    # A short name: the path of a socket has at most 107 bytes.
                    here = os.getcwd()
                    os.chdir(folder)
                    self.addCleanup(os.chdir, here)
                    self.echo(socket.AF_UNIX, "s")
                    os.chdir(here)


    class Processes(unittest.TestCase):
        def test_pool_and_queue(self):
            for method in ("fork", "spawn", "forkserver"):
                with self.subTest(method):
                    context = multiprocessing.get_context(method)
                    with context.Pool(2) as pool:
                        self.assertEqual(pool.map(square, range(4)), [0, 1, 4, 9])
                    queue = context.Queue()
                    process = context.Process(target=put, args=(queue,))
                    process.start()
                    self.assertEqual(queue.get(timeout=20), "from another process")
                    process.join()
''')

NODE = textwrap.dedent('''\
    import assert from "node:assert";
    import http from "node:http";
    import test from "node:test";

    for (const host of ["127.0.0.1", "localhost"]) {
      test(`fetch from ${host}`, async () => {
        const server = http.createServer((_, response) => response.end("hello"));
        await new Promise((resolve) => server.listen(0, host, resolve));
        const reply = await fetch(`http://${host}:${server.address().port}/`);
        assert.equal(await reply.text(), "hello");
        server.closeAllConnections();
        server.close();
      });
    }
''')

RUST = textwrap.dedent('''\
    #[cfg(test)]
    mod tests {
        use std::io::{Read, Write};
        use std::net::{TcpListener, TcpStream};

        #[test]
        fn a_server_in_a_thread_answers() {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let address = listener.local_addr().unwrap();
            let server = std::thread::spawn(move || {
                let (mut peer, _) = listener.accept().unwrap();
                peer.write_all(b"hello").unwrap();
            });
            let mut text = String::new();
            let mut client = TcpStream::connect(address).unwrap();
            client.read_to_string(&mut text).unwrap();
            server.join().unwrap();
            assert_eq!(text, "hello");
        }

        #[test]
        fn a_temporary_file_is_written() {
            let path = std::env::temp_dir().join("app-test");
            std::fs::write(&path, "hello").unwrap();
            assert_eq!(std::fs::read_to_string(path).unwrap(), "hello");
        }
    }
''')

GO = textwrap.dedent('''\
    package app

    import (
    \t"io"
    \t"net/http"
    \t"net/http/httptest"
    \t"testing"
    )

    func TestServer(t *testing.T) {
    \thello := func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "hello") }
    \tfor _, start := range []func(http.Handler) *httptest.Server{
    \t\thttptest.NewServer, httptest.NewTLSServer,
    \t} {
    \t\tserver := start(http.HandlerFunc(hello))
    \t\tdefer server.Close()
    \t\treply, err := server.Client().Get(server.URL)
    \t\tif err != nil {
    \t\t\tt.Fatal(err)
    \t\t}
    \t\tdefer reply.Body.Close()
    \t\ttext, err := io.ReadAll(reply.Body)
    \t\tif err != nil || string(text) != "hello" {
    \t\t\tt.Fatal(string(text), err)
    \t\t}
    \t}
    }
''')
