"""One HTTP server with a tiny registry of every kind, all of them plain files."""

import base64
import functools
import hashlib
import http.server
import io
import ipaddress
import json
import os
import socket
import ssl
import subprocess
import tarfile
import threading
import zipfile

# A package that is called the same everywhere, and what it says.
NAME = "haft-tiny"
WORD = "said-by-the-package"


def own_address():
    """Returns an address of this machine that is not a loopback one, if there is one.

    Go and some others never use a proxy for loopback addresses.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            # Chooses a route; sends nothing. The address is one for documentation.
            probe.connect(("198.51.100.1", 9))
            return probe.getsockname()[0]
        except OSError:
            return "127.0.0.2"


def make_certificate(host, folder):
    """Makes an authority and a certificate signed by it.

    Returns the file of the certificate, that of its key, and that of the authority.
    """
    public, key = folder / "public.pem", folder / "key.pem"
    authority, authority_key = folder / "authority.pem", folder / "authority-key.pem"
    kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    # Through any proxy, npm checks the certificate of an address for the name localhost.
    name = ["-subj", "/CN=test", "-addext", f"subjectAltName=IP:{host},DNS:localhost"]
    signed = ["-CA", authority, "-CAkey", authority_key, "-addext", "basicConstraints=CA:FALSE"]
    for words in (
        ["-subj", "/CN=authority", "-keyout", authority_key, "-out", authority],
        [*name, *signed, "-keyout", key, "-out", public],
    ):
        made = ["openssl", "req", "-x509", *kind, *words]
        subprocess.run(made, check=True, capture_output=True)
    return public, key, authority


class Handler(http.server.SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass


class Server:
    """Serves over HTTP, or over HTTPS if there is a certificate."""

    def __init__(self, folder, host, certificate=None):
        self.folder = folder
        self.host = host
        self.certificate = certificate
        self.is_loopback = ipaddress.ip_address(self.host).is_loopback
        handler = functools.partial(Handler, directory=str(folder))
        server = http.server.ThreadingHTTPServer((self.host, 0), handler)
        server.daemon_threads = True
        self.address = f"{self.host}:{server.server_port}"
        self.scheme = "https" if certificate else "http"
        self.url = f"{self.scheme}://{self.address}"
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*certificate[:2])
            # The greeting is left to the thread of the connection.
            server.socket = context.wrap_socket(server.socket, True, do_handshake_on_connect=False)
        self.write("hello.txt", WORD)
        self.write_python()
        self.write_npm()
        self.write_cargo()
        self.write_go()
        self.write_git()
        threading.Thread(target=server.serve_forever, daemon=True).start()

    def write(self, name, content):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)

    def write_python(self):
        about = f"Metadata-Version: 2.1\nName: {NAME}\nVersion: 1.0\n"
        wheel = "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        files = {
            "haft_tiny.py": f"WORD = {WORD!r}\n",
            "haft_tiny-1.0.dist-info/METADATA": about,
            "haft_tiny-1.0.dist-info/WHEEL": wheel,
            "haft_tiny-1.0.dist-info/RECORD": "",
        }
        name = "haft_tiny-1.0-py3-none-any.whl"
        self.write(f"simple/{NAME}/{name}", zipped(files))
        self.write(f"simple/{NAME}/index.html", f'<!DOCTYPE html><a href="{name}">{name}</a>')

    def write_npm(self):
        package = {"name": NAME, "version": "1.0.0", "main": "index.js"}
        files = {
            "package/package.json": json.dumps(package),
            "package/index.js": f"module.exports = {json.dumps(WORD)};\n",
        }
        archive = tarred(files)
        digest = base64.b64encode(hashlib.sha512(archive).digest()).decode()
        dist = {"tarball": f"{self.url}/npm-files/{NAME}.tgz", "integrity": f"sha512-{digest}"}
        versions = {"1.0.0": package | {"dist": dist}}
        document = {"name": NAME, "dist-tags": {"latest": "1.0.0"}, "versions": versions}
        self.write(f"npm-files/{NAME}.tgz", archive)
        self.write(f"npm/{NAME}", json.dumps(document))

    def write_cargo(self):
        manifest = f'[package]\nname = "{NAME}"\nversion = "1.0.0"\nedition = "2021"\n'
        files = {
            f"{NAME}-1.0.0/Cargo.toml": manifest,
            f"{NAME}-1.0.0/src/lib.rs": f'pub const WORD: &str = "{WORD}";\n',
        }
        archive = tarred(files)
        entry = {
            "name": NAME,
            "vers": "1.0.0",
            "deps": [],
            "cksum": hashlib.sha256(archive).hexdigest(),
            "features": {},
            "yanked": False,
        }
        self.write("cargo/config.json", json.dumps({"dl": f"{self.url}/crates/{{crate}}"}))
        self.write(f"cargo/{NAME[:2]}/{NAME[2:4]}/{NAME}", json.dumps(entry) + "\n")
        self.write(f"crates/{NAME}", archive)

    def write_go(self):
        module, version = f"example.com/{NAME}", "v1.0.0"
        manifest = f"module {module}\n\ngo 1.19\n"
        files = {
            f"{module}@{version}/go.mod": manifest,
            f"{module}@{version}/tiny.go": f'package tiny\n\nconst Word = "{WORD}"\n',
        }
        place = f"go/{module}/@v"
        self.write(f"{place}/list", f"{version}\n")
        self.write(f"{place}/{version}.info", json.dumps({"Version": version}))
        self.write(f"{place}/{version}.mod", manifest)
        self.write(f"{place}/{version}.zip", zipped(files))

    def write_git(self):
        """A bare repository served as files, which git calls the dumb protocol."""
        self.write("sources/word.txt", WORD)
        who = ["-c", "user.name=Test", "-c", "user.email=test@example.com"]
        served = self.folder / "repo.git"
        for step in (
            ["-C", "sources", "init", "--quiet"],
            ["-C", "sources", "add", "word.txt"],
            ["-C", "sources", *who, "commit", "--quiet", "--message", "Add a word"],
            ["clone", "--quiet", "--bare", "sources", str(served)],
            ["-C", str(served), "update-server-info"],
        ):
            subprocess.run(["git", *step], cwd=self.folder, check=True, env=plain_git())


def plain_git():
    """Environment in which git has no settings of the user."""
    return {"PATH": os.environ["PATH"], "HOME": "/", "GIT_CONFIG_GLOBAL": "/dev/null"}


def zipped(files):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return stream.getvalue()


def tarred(files):
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content.encode())
            member.mode = 0o644
            archive.addfile(member, io.BytesIO(content.encode()))
    return stream.getvalue()
