"""Installing subjects from npm: a small proxy of JavaScript, made here, from a file and from a registry on
loopback; and what is refused before npm is asked."""

import base64
import hashlib
import io
import json
import os
import shutil
import sys
import tarfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import IO

import pytest
from click.testing import CliRunner
from mcpzip_conformance.cli import main
from mcpzip_conformance.declaration import Install
from mcpzip_conformance.errors import InstallError
from mcpzip_conformance.installation import bin_folder, folder, install, required
from mcpzip_conformance.installing import command, npm
from mcpzip_conformance.subject import load_all, names

PROXY = """
const [program, ...args] = process.argv.slice(2);
const server = require('child_process').spawn(program, args, {stdio: ['pipe', 'pipe', 'inherit']});
process.stdin.pipe(server.stdin);
server.stdout.pipe(process.stdout);
server.on('exit', () => process.exit());
"""
LOCAL = "tiny-proxy@file:/tiny-proxy-1.0.0.tgz"
needs_npm = pytest.mark.skipif(shutil.which("npm") is None, reason="npm isn't installed")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of ours, and an npm that knows no other registry, no settings and no files of the user's."""
    place = tmp_path / "cache"
    monkeypatch.setenv("MCPZIP_CONFORMANCE_CACHE", str(place))
    monkeypatch.setenv("npm_config_registry", "http://127.0.0.1:9/")
    monkeypatch.setenv("npm_config_fetch_retries", "0")
    monkeypatch.setenv("npm_config_cache", str(tmp_path / "npm"))
    monkeypatch.setenv("npm_config_userconfig", os.devnull)
    monkeypatch.setenv("npm_config_globalconfig", str(tmp_path / "none"))
    return place


def tarball(**package: object) -> bytes:
    """The package tiny-proxy 1.0.0 as npm packs it. package: more members of its package.json."""
    manifest = {"name": "tiny-proxy", "version": "1.0.0", "bin": {"tiny-proxy": "proxy.js"}, **package}
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz") as archive:
        for name, text in {"package.json": json.dumps(manifest), "proxy.js": PROXY}.items():
            entry = tarfile.TarInfo(f"package/{name}")
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text.encode()))
    return data.getvalue()


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The paths that were asked of a registry that has tiny-proxy 1.0.0 only."""
    packed, asked = tarball(), []
    integrity = "sha512-" + base64.b64encode(hashlib.sha512(packed).digest()).decode()

    class Registry(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            here = f"http://127.0.0.1:{self.server.server_address[1]}/tiny-proxy"  # type: ignore[index]
            version = {
                "name": "tiny-proxy",
                "version": "1.0.0",
                "dist": {"tarball": f"{here}/-/tiny-proxy-1.0.0.tgz", "integrity": integrity},
            }
            listed = {"name": "tiny-proxy", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": version}}
            body = packed if self.path.endswith(".tgz") else json.dumps(listed).encode()
            self.send_response(200 if self.path.startswith("/tiny-proxy") else 404)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Registry)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    monkeypatch.setenv("npm_config_registry", f"http://127.0.0.1:{server.server_port}/")
    yield asked
    server.shutdown()
    thread.join()
    server.server_close()


def invoke(*words: str) -> tuple[int, str]:
    result = CliRunner().invoke(main, words)
    return result.exit_code, result.output


def lock_of(*entries: tuple[str, Mapping[str, object]], wanted: Mapping[str, str]) -> bytes:
    packages = {f"node_modules/{name}": entry for name, entry in entries}
    return json.dumps({"lockfileVersion": 3, "packages": {"": {"dependencies": wanted}, **packages}}).encode()


@needs_npm
def test_a_subject_of_a_file_is_installed_used_and_removed(tmp_path: Path, cache: Path) -> None:
    packed = tmp_path / "tiny-proxy-1.0.0.tgz"
    packed.write_bytes(tarball(scripts={"postinstall": "node -e \"fs.writeFileSync('ran', '')\""}))
    file = tmp_path / "tiny.toml"
    file.write_text(
        f"""
        title = "tiny"
        [install]
        npm = ['tiny-proxy@file:{packed.as_posix()}']
        [start]
        command = ["node", "{{packages}}/tiny-proxy/proxy.js", "{{upstream}}"]
        [tools]
        names = "{{tool}}"
        """,
        encoding="utf-8",
    )
    assert "isn't installed: run mcpzip-conformance install" in " ".join(invoke("run", str(file))[1].split())

    code, output = invoke("install", str(file))
    assert code == 0, output
    [subject] = load_all(file)
    assert subject.install is not None
    place = folder("tiny", subject.install)
    assert required("tiny", subject.install) == {
        "bin": str(place / "node_modules" / ".bin"),
        "packages": str(place / "node_modules"),
    }
    assert json.loads((place / "package-lock.json").read_text("utf-8"))["packages"].keys() == {
        "",
        "node_modules/tiny-proxy",
    }
    assert not (place / "node_modules" / "tiny-proxy" / "ran").exists(), "a script was run"
    code, output = invoke("run", str(file), "--check", "protocol.ping")
    assert (code, "tiny: 1 passed" in output) == (0, True), output
    assert "tiny: installed, " in invoke("install", "--list")[1]

    assert invoke("uninstall", str(file))[1].startswith("tiny: removed, ")
    assert os.listdir(cache) == ["lock"]


@needs_npm
def test_what_the_lock_says_is_installed_and_nothing_else(tmp_path: Path, registry: list[str]) -> None:
    packages = Install(npm=("tiny-proxy@1.0.0",))
    install("tiny", packages)
    lock = tmp_path / "tiny.json"
    lock.write_bytes((folder("tiny", packages) / "package-lock.json").read_bytes())
    assert "127.0.0.1" not in lock.read_text("utf-8"), "a lock names no registry"
    locked = Install(npm=packages.npm, lock=str(lock))
    assert bin_folder("tiny", locked) is None
    place = install("tiny", locked)
    assert (place.parent / "tiny-proxy" / "proxy.js").read_text() == PROXY
    assert all(path.startswith("/tiny-proxy") for path in registry)

    changed = json.loads(lock.read_text("utf-8"))
    changed["packages"]["node_modules/tiny-proxy"]["integrity"] = f"sha512-{'A' * 86}=="
    lock.write_text(json.dumps(changed), encoding="utf-8")
    assert bin_folder("tiny", locked) is None, "another lock is another folder"
    with pytest.raises(InstallError, match=r"(?s)tiny: npm could not install it.*EINTEGRITY"):
        install("tiny", locked)
    assert bin_folder("tiny", locked) is None


@needs_npm
def test_a_node_that_is_too_old_is_said(tmp_path: Path) -> None:
    packed = tmp_path / "tiny-proxy-1.0.0.tgz"
    packed.write_bytes(tarball(engines={"node": ">=9000"}))
    with pytest.raises(InstallError, match=r"tiny: tiny-proxy@1\.0\.0 needs node >=9000, and this is v\d+\."):
        install("tiny", Install(npm=(f"tiny-proxy@file:{packed.as_posix()}",)))


def test_without_node_it_is_said_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InstallError) as caught:
        install("tiny", Install(npm=(LOCAL,)))
    assert str(caught.value) == (
        "tiny comes from npm, and there is no node on the PATH: install Node.js, which brings npm "
        "(https://nodejs.org)."
    )


@pytest.mark.parametrize(
    ("said", "why"), [("8.19.4", "needs npm 9 or newer, and this is 8.19.4"), ("", "says no version")]
)
def test_an_npm_that_is_too_old_is_said(said: str, why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(npm.shutil, "which", lambda tool: sys.executable)  # type: ignore[attr-defined]
    monkeypatch.setattr(npm, "_version", lambda tool: said)
    with pytest.raises(InstallError, match=why):
        install("tiny", Install(npm=(LOCAL,)))


WANTED = {"tiny-proxy": "1.0.0"}
WHOLE = ("tiny-proxy", {"version": "1.0.0", "integrity": "sha512-x"})


@pytest.mark.parametrize(
    ("lock", "why"),
    [
        (b"{", "is no lock file of npm 7 or newer"),
        (b"[" * 100_000, "is no lock file of npm 7 or newer"),
        (b'{"packages": {}}', "is no lock file of npm 7 or newer"),
        (b'{"packages": {"": {"dependencies": 1}}}', "is no lock file of npm 7 or newer"),
        (lock_of(WHOLE, wanted={"other": "2.0.0"}), r"is a lock of other@2\.0\.0, not of tiny-proxy@1\.0\.0"),
        (lock_of(wanted={}), "is a lock of nothing, not of"),
        (lock_of(("tiny-proxy", {"version": "1.0.0"}), wanted=WANTED), "has no hash of tiny-proxy"),
        (
            lock_of(
                WHOLE, ("a/node_modules/b", {"resolved": "git+ssh://git@example.org/b.git"}), wanted=WANTED
            ),
            "takes b from 'git.*', and packages come from the registry only",
        ),
        (
            lock_of(("tiny-proxy", {**WHOLE[1], "resolved": "file:../elsewhere.tgz"}), wanted=WANTED),
            "takes tiny-proxy from 'file:",
        ),
        (lock_of(("tiny-proxy", {**WHOLE[1], "link": True}), wanted=WANTED), "takes tiny-proxy from ''"),
    ],
)
def test_a_lock_that_could_bring_anything_else_is_refused(
    lock: bytes, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before npm is asked."""
    asked: list[Sequence[str]] = []

    def run(words: Sequence[str], env: Mapping[str, str], log: IO[bytes]) -> int:
        asked.append(words)
        return 0

    monkeypatch.setattr(command, "run", run)
    monkeypatch.setattr(npm, "check_tools", lambda name: None)
    (tmp_path / "lock.json").write_bytes(lock)
    packages = Install(npm=("tiny-proxy@1.0.0",), lock=str(tmp_path / "lock.json"))
    with pytest.raises(InstallError, match=why):
        install("tiny", packages)
    assert asked == []
    assert os.listdir(folder("tiny", packages)) == ["npm.log"]


def test_a_lock_that_is_missing_or_endless_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lock = tmp_path / "lock.json"
    packages = Install(npm=("tiny-proxy@1.0.0",), lock=str(lock))
    with pytest.raises(InstallError, match=r"can't be read \(No such file.*correct install\.lock"):
        bin_folder("tiny", packages)
    monkeypatch.setattr(npm, "LARGEST_LOCK", 10)
    lock.write_bytes(b"x" * 11)
    with pytest.raises(InstallError, match="has more than 10 bytes"):
        bin_folder("tiny", packages)


def test_the_locks_that_are_shipped_can_be_used() -> None:
    locked = 0
    for name in names():
        packages = load_all(name)[0].install
        if packages is not None and packages.lock:
            npm.check_lock(Path(packages.lock).read_bytes(), dict(map(npm.npm_parts, packages.npm)), name)
            locked += 1
    assert locked >= 5
