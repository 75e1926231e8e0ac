"""Every task of development as a session: `nox --list`."""

import os
import shutil
import subprocess
from pathlib import Path

import nox

nox.options.sessions = ["lint", "types", "architecture", "tests"]
nox.options.reuse_existing_virtualenvs = True
nox.options.error_on_missing_interpreters = False

PYTHONS = ["3.11", "3.12", "3.13", "3.14"]


def install(session: nox.Session) -> None:
    """Installs mcpzip as the README does."""
    session.install("-q", ".[dev]")


def install_servers(session: nox.Session) -> None:
    """Installs the test servers and clients from npm, if npm is there."""
    if not shutil.which("npm"):
        session.warn("no npm here: the end-to-end tests of Node's servers and clients will be skipped")
        return
    for folder in ("tests/e2e", "tools/site"):
        session.run("npm", "ci", "--prefix", folder, "--no-audit", "--no-fund", external=True)
    install_suite(session)


def install_suite(session: nox.Session) -> None:
    """Installs the official suite and the Inspector, with the Node that they need."""
    session.install("-q", "-r", "tests/suite/requirements.txt")
    options = ("--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error")
    session.run("npm", "ci", "--prefix", "tests/suite", *options, external=True)


@nox.session(python=PYTHONS)
def tests(session: nox.Session) -> None:
    """All tests, on each Python that is installed."""
    install(session)
    install_servers(session)
    session.run("python", "-m", "pytest", *session.posargs)


@nox.session(python=PYTHONS)
def unit(session: nox.Session) -> None:
    """The unit tests, on each Python that is installed: seconds."""
    session.install("-q", ".[unit]")
    session.run("python", "-m", "pytest", "tests/unit", *session.posargs)


@nox.session
def coverage(session: nox.Session) -> None:
    """All tests with branch coverage, of child processes too; then the report. Twice as slow as the tests."""
    install(session)
    install_servers(session)
    session.install("-q", "coverage>=7.10")
    session.run("coverage", "erase")
    session.run("coverage", "run", "-m", "pytest", *session.posargs, success_codes=[0, 1])
    session.run("coverage", "combine", "-q")
    session.run("coverage", "report", "--sort=cover")


@nox.session
def lowest(session: nox.Session) -> None:
    """The unit tests, commands and HTTP, with the oldest dependencies that pyproject.toml admits."""
    session.install("-q", "uv")
    python = session.env.get("VIRTUAL_ENV") or session.virtualenv.location
    to = ("--python", f"{python}/bin/python" if os.name != "nt" else f"{python}/Scripts/python.exe")
    session.run("uv", "pip", "install", "-q", *to, "--resolution", "lowest-direct", "-e", ".[dev]")
    smoke = ("cli/test_commands", "http_server/test_serve", "transport/test_http", "auth/test_token_refresh")
    files = ("tests/unit", *(f"tests/integration/{name}.py" for name in smoke))
    session.run("python", "-m", "pytest", *(session.posargs or files))


@nox.session
def audit(session: nox.Session) -> None:
    """Known vulnerabilities of the newest and the oldest dependencies that may be installed; asks PyPI."""
    session.install("-q", "uv", "pip-audit")
    for resolution in ("highest", "lowest-direct"):
        found = f"{session.create_tmp()}/{resolution}.txt"
        asked = ("--all-extras", "--resolution", resolution, "-o", found, "pyproject.toml")
        session.run("uv", "pip", "compile", "-q", *asked)
        session.run("pip-audit", "--no-deps", "--disable-pip", "-r", found)


@nox.session
def e2e(session: nox.Session) -> None:
    """The installed command in front of third-party servers."""
    install(session)
    install_servers(session)
    session.run("python", "-m", "pytest", "tests/e2e", *session.posargs)


@nox.session
def clients(session: nox.Session) -> None:
    """Claude Code, Codex, Gemini CLI and opencode (1.2 GB from npm) read what `mcpzip migrate` writes."""
    install(session)
    options = ("--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error")
    session.run("npm", "ci", "--prefix", "tests/e2e", *options, external=True)
    # Not `npm ci`: it refuses a lock that lacks packages for other systems, and a registry may lack them.
    session.run("npm", "install", "--no-save", "--prefix", "tests/clients", *options, external=True)
    session.run("python", "-m", "pytest", "-n", "0", "tests/clients", *session.posargs)


@nox.session
def docs(session: nox.Session) -> None:
    """The documentation as a site in site/, strictly; `nox -s docs -- serve` serves it while it is edited."""
    session.install("-q", "-e", ".[docs]")
    session.run("npm", "ci", "--prefix", "tools/site", "--no-audit", "--no-fund", external=True)
    session.run("mkdocs", *(session.posargs or ["build", "--strict"]), env={"NO_MKDOCS_2_WARNING": "1"})


@nox.session
def commands(session: nox.Session) -> None:
    """Writes docs/commands.md from the program."""
    install(session)
    session.run("python", "tools/commands.py")


@nox.session
def config_keys(session: nox.Session) -> None:
    """Writes the tables of keys in docs/config.md from the program."""
    install(session)
    session.run("python", "tools/config_keys.py")


@nox.session
def grafana(session: nox.Session) -> None:
    """Writes docs/recipes/grafana.json, the board for Grafana."""
    session.run("python", "tools/grafana_board.py")


@nox.session
def manifests(session: nox.Session) -> None:
    """Writes server.json and what else registries read; `-- --check` says whether it may be published."""
    session.run("python", "tools/manifests.py", *session.posargs)


@nox.session
def bundle(session: nox.Session) -> None:
    """Makes dist/mcpzip-VERSION.mcpb for desktop clients, and has uv run it; asks PyPI."""
    install(session)
    session.install("-q", "uv")
    folder = Path(session.create_tmp()).resolve()
    for old in folder.glob("mcpzip-*.whl"):
        old.unlink()
    session.run("python", "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(folder), ".")
    [wheel] = folder.glob("mcpzip-*.whl")
    session.run("python", "tools/bundle.py", str(wheel))
    made = Path("dist", "-".join(wheel.name.split("-")[:2]) + ".mcpb").resolve()
    test = ("-n", "0", "tests/e2e/test_bundle.py", *session.posargs)
    asks = {"MCPZIP_BUNDLE": str(made), "MCPZIP_TEST_NO_CERTIFICATES": ""}
    session.run("python", "-m", "pytest", *test, env=asks)


@nox.session
def image(session: nox.Session) -> None:
    """Builds the images of the Dockerfile, and runs mcpzip's as docs/packaging.md does. Needs Docker."""
    if not shutil.which("docker") or subprocess.run(["docker", "info"], capture_output=True).returncode:
        session.skip("docker info fails: no image is built")
    install(session)
    proxy, runner = "mcpzip-test:mcpzip", "mcpzip-test:conformance"
    session.run("docker", "build", "-q", "-t", proxy, ".", external=True)
    session.run("docker", "build", "-q", "-t", runner, "--target", "conformance", ".", external=True)
    session.run("docker", "run", "--rm", runner, "run", "direct", "--group", "fidelity", external=True)
    test = ("-n", "0", "tests/e2e/test_image.py", *session.posargs)
    session.run("python", "-m", "pytest", *test, env={"MCPZIP_IMAGE": proxy})


@nox.session
def screenshots(session: nox.Session) -> None:
    """Makes docs/pictures/ from the real program; `-- --clients` those of real clients (nox -s clients)."""
    install(session)
    session.run("python", "tools/screenshots.py", *session.posargs)


@nox.session
def browser(session: nox.Session) -> None:
    """Signing in, and the HTML report, in a real browser: Debian's Chromium."""
    install(session)
    files = [f"tests/e2e/test_{name}.py" for name in ("sign_in_browser", "conformance_page", "tokens_page")]
    must = {"CI": "true"}  # makes tests that need a browser fail without one, instead of being skipped
    session.run("python", "-m", "pytest", "-n", "0", *files, *session.posargs, env=must)


@nox.session
def suite(session: nox.Session) -> None:
    """The official conformance suite: `nox -s suite -- --leg direct` runs only one leg."""
    install(session)
    install_suite(session)
    session.run("python", "tests/suite/run.py", *session.posargs)


@nox.session
def conformance(session: nox.Session) -> None:
    """The conformance runner on every variant of mcpzip, or one: `nox -s conformance -- mcpzip:direct`."""
    session.install("-q", ".[conformance,code,team]")
    session.run("mcpzip-conformance", "run", *(session.posargs or ["mcpzip"]))


@nox.session
def mutants(session: nox.Session) -> None:
    """Every faulty proxy against every check of level must: each must fail, and for its own fault only."""
    session.install("-q", ".[conformance,team]")
    session.run("python", "-m", "mcpzip_conformance.mutants", *(session.posargs or ["--thorough"]))


@nox.session
def lint(session: nox.Session) -> None:
    """ruff: rules and format. `nox -s lint -- --fix` repairs what it can."""
    session.install("-q", "ruff>=0.9")
    fix = "--fix" in session.posargs
    session.run("ruff", "check", ".", *(["--fix"] if fix else []))
    session.run("ruff", "format", ".", *([] if fix else ["--check"]))


@nox.session
def types(session: nox.Session) -> None:
    """mypy, strict, for every supported system."""
    install(session)
    session.run("mypy", *session.posargs)
    for system in ("darwin", "win32"):  # code of other systems is unreachable
        session.run("mypy", "--platform", system, "--no-warn-unreachable", *session.posargs)


@nox.session
def architecture(session: nox.Session) -> None:
    """Which package may import which."""
    install(session)
    session.run("python", "-m", "pytest", "tests/test_architecture.py", *session.posargs)


@nox.session
def modules(session: nox.Session) -> None:
    """Writes docs/modules.md from the docstrings of all modules."""
    session.run("python", "tools/modules.py")


@nox.session
def fuzz(session: nox.Session) -> None:
    """Fuzzes the wire with generated conversations for 10 minutes, or `nox -s fuzz -- --minutes 1`."""
    install(session)
    session.run("python", "tests/fuzz", *(session.posargs or ["--minutes", "10"]))


@nox.session
def bench(session: nox.Session) -> None:
    """mcpzip beside no proxy and its peers, in 10 minutes; in one: `nox -s bench -- --quick`.

    Single ones have names: `nox -s bench -- startup --rounds 5`; docs/performance.md lists them.
    """
    install(session)
    first, *rest = session.posargs or [""]
    single = bool(first) and not first.startswith("-")
    words = (f"bench.{first}", *rest) if single else ("bench", *session.posargs)
    session.run("python", "-m", *words)


@nox.session
def traces(session: nox.Session) -> None:
    """What kept results save on public traces: `nox -s traces -- FOLDER…`; `--programs` (docs/context.md)."""
    install(session)
    session.run("python", "-m", "bench.traces", *session.posargs)


@nox.session
def performance(session: nox.Session) -> None:
    """Writes docs/performance.md and its plots from docs/performance.json, or from the file that is given."""
    install(session)
    session.run("python", "tools/performance.py", *session.posargs)
