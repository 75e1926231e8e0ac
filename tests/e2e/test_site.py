"""The documentation as a site: it is built without a warning, and needs nothing from another host."""

import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest
from helpers.chromium import Browser
from helpers.doc_commands import ROOT

DOCS = ROOT / "docs"
SCRIPT = ROOT / "tools" / "site" / "node_modules"
PAGES = {path.relative_to(DOCS).with_suffix(".html").as_posix() for path in DOCS.rglob("*.md")} | {
    "changelog.html"
}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the built site. Strict: a warning is an error."""
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT,
        env={"PATH": "/usr/bin:/bin", "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    return folder


class _Addresses(HTMLParser):
    """What a page loads, and where its links lead."""

    def __init__(self) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attributes}
        if tag in ("script", "img", "source", "iframe"):
            self.loads.append(values.get("src", ""))
        elif tag == "link" and values.get("rel") not in ("canonical", "next", "prev"):
            self.loads.append(values.get("href", ""))
        elif tag == "a":
            self.links.append(values.get("href", ""))


def test_every_page_is_built_and_none_loads_from_another_host(site: Path) -> None:
    built = {path.relative_to(site).as_posix() for path in site.rglob("*.html")}
    assert built >= PAGES
    for name in built - {"scorecard-findings.html"}:
        found = _Addresses()
        found.feed((site / name).read_text("utf-8"))
        assert [each for each in found.loads if re.match(r"(https?:)?//", each)] == [], name
    styles = "".join(path.read_text("utf-8") for path in site.rglob("*.css"))
    assert re.findall(r"url\(['\"]?(?:https?:)?//", styles) == []


def test_every_page_can_be_reached_from_the_first(site: Path) -> None:
    found = _Addresses()
    found.feed((site / "index.html").read_text("utf-8"))
    reached = {link.split("#")[0] for link in found.links}
    assert {page for page in PAGES if page not in reached} == set()


def test_every_picture_is_shown_and_each_client_has_one() -> None:
    pages = {path: path.read_text("utf-8") for path in DOCS.rglob("*.md")}
    shown = {name for text in pages.values() for name in re.findall(r"pictures/([\w-]+\.svg)\)", text)}
    assert {path.name for path in (DOCS / "pictures").glob("*.svg")} == shown
    clients = [text for path, text in pages.items() if path.parent.name == "clients"]
    assert len(clients) == 11
    assert all("](../pictures/" in text for text in clients)


@pytest.mark.skipif(sys.platform == "win32", reason="the pictures are those of a POSIX shell")
def test_the_pictures_show_what_the_program_prints() -> None:
    done = subprocess.run(
        [sys.executable, "tools/screenshots.py", "--check"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(not SCRIPT.is_dir(), reason="npm ci --prefix tools/site")
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_can_be_read_and_searched_from_a_folder(site: Path, browser: Browser, scheme: str) -> None:
    context = browser.new_context(color_scheme=scheme, offline=True)
    page = context.new_page()
    errors: list[str] = []
    asked: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    page.goto((site / "index.html").as_uri())
    assert (
        page.evaluate("document.body.dataset.mdColorScheme") == {"light": "default", "dark": "slate"}[scheme]
    )
    page.click("input[name=query]")
    ready = (
        "document.querySelector('.md-search-result__meta').textContent.trim() == 'Type to start searching'"
    )
    page.wait_for_function(ready)  # what is filled in before is seen by nobody
    page.keyboard.type("proxy certificate")
    page.wait_for_selector(".md-search-result__item")
    assert "npx or uvx hangs behind a proxy" in page.inner_text(".md-search-result__list")
    assert errors == []
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:", "about:"))] == []
    context.close()
