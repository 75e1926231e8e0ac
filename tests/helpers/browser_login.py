"""Somebody with a terminal and a browser: `mcpzip auth login` as they run it, the page that it opens, and the
`mcpzip serve` of their client.

The rule: whatever of mcpzip opens a browser opens ours, a program that writes down the address it is given;
the test then goes there with Chromium. So it is known how often anybody was disturbed.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from helpers.chromium import Browser, Request
from helpers.driver import Answer, Client, Json, ended, until

PATIENCE = 120.0  # s; what takes this long is broken
_PROGRAM = """#!{python} -IS
import os, sys
line = os.open({seen!r}, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
os.write(line, sys.argv[1].encode() + b"\\n")
"""
_CONTRAST = """selector => {
  const paint = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const light = colour => {
    paint.fillStyle = colour;
    paint.fillRect(0, 0, 1, 1);
    const parts = [...paint.getImageData(0, 0, 1, 1).data].slice(0, 3).map(part => part / 255)
      .map(part => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
  };
  const lights = [getComputedStyle(document.querySelector(selector)).color,
    getComputedStyle(document.querySelector("main")).backgroundColor].map(light).sort((a, b) => b - a);
  return (lights[0] + 0.05) / (lights[1] + 0.05);
}"""
"""The contrast of a text with its card (WCAG 2.2, 1.4.3)."""
_SIZES = {"desktop": (1280, 800), "phone": (320, 640)}


class Patient(Client):
    """A client that gives mcpzip time: it imports the SDK at the first request to a server over HTTP."""

    def answer(self, number: object, seconds: float = PATIENCE) -> Answer:
        return super().answer(number, seconds)

    def ask(self, method: str, params: Json | None = None, seconds: float = PATIENCE) -> Answer:
        return super().ask(method, params, seconds)


class Login:
    """A login under way. said: all of it, so far, on both its streams."""

    def __init__(self, process: "subprocess.Popen[bytes]", log: Path) -> None:
        self.process, self._log = process, log

    @property
    def said(self) -> str:
        return self._log.read_text("utf-8")

    def ends(self) -> int:
        """Its exit code, once it has one."""
        return self.process.wait(PATIENCE)


class Desk:
    """Theirs. mcpzip: the installed command. folder: for what the test writes down."""

    def __init__(self, mcpzip: str, folder: Path) -> None:
        self._mcpzip, self._folder = mcpzip, folder
        self._seen, program = folder / "opened", folder / "browser"
        program.write_text(_PROGRAM.format(python=sys.executable, seen=str(self._seen)), "utf-8")
        program.chmod(0o755)
        self._env = {**os.environ, "BROWSER": str(program)}
        self.errors = folder / "errors.log"
        """What every `mcpzip serve` said on stderr."""
        self.heard: list[bytes] = []
        """What every client was told."""

    @property
    def opened(self) -> list[str]:
        """Every address that a browser was opened with."""
        return self._seen.read_text("utf-8").splitlines() if self._seen.exists() else []

    def run(self, *words: str) -> "subprocess.CompletedProcess[str]":
        """A command of mcpzip, run to its end."""
        return subprocess.run(
            [self._mcpzip, *words],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            env=self._env,
            timeout=PATIENCE,
            check=False,
        )

    @contextmanager
    def login(self, *words: str) -> Iterator[tuple[Login, str]]:
        """`mcpzip auth login`, and the address that it opened a browser with. words: the whole command, as it
        was told somebody."""
        before, log = len(self.opened), self._folder / f"login-{len(self.opened)}.log"
        with log.open("wb") as both:
            process = subprocess.Popen(
                [self._mcpzip, *words[1:]],
                stdin=subprocess.DEVNULL,
                stdout=both,
                stderr=subprocess.STDOUT,
                env=self._env,
            )
        with ended(process):
            login = Login(process, log)
            until(lambda: len(self.opened) > before or process.poll() is not None, PATIENCE)
            assert len(self.opened) == before + 1, login.said
            yield login, self.opened[-1]

    @contextmanager
    def serving(self) -> Iterator[Patient]:
        """`mcpzip serve`, and its client."""
        with self.errors.open("ab") as errors:
            process = subprocess.Popen(
                [self._mcpzip, "serve"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=self._env,
            )
        with ended(process):
            client = Patient(process)
            yield client.begin()
            client.leave()
            self.heard += client.all_heard()


class Tab:
    """A fresh tab of ``browser``. wrong: what it complains of, and what it asks of another machine."""

    def __init__(self, browser: Browser) -> None:
        self.context = browser.new_context()
        self.context.set_default_timeout(PATIENCE * 1000)
        self.page = self.context.new_page()
        self.wrong: list[str] = []
        self.page.on("console", lambda message: self.wrong.append(message.text))
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.page.on("request", self._look)

    def _look(self, request: Request) -> None:
        if not request.url.startswith(("http://127.0.0.1:", "data:")):
            self.wrong.append(request.url)

    def decides(self, address: str, button: str) -> None:
        """Goes to ``address``, where access is asked for, and presses ``button``; waits for the page of who
        asked."""
        self.page.goto(address)
        assert self.page.title() == "Allow access?"
        self.page.get_by_role("button", name=button).click()
        self.page.wait_for_url("**/callback?*")

    @property
    def told(self) -> tuple[str, str]:
        """The heading and the text of mcpzip's page."""
        return self.page.locator("h1").inner_text(), self.page.locator("p").inner_text()

    def can_be_read(self) -> None:
        """The page in sight fits and stands out, by day and by night, on a desk and on a phone."""
        papers = set()
        for scheme in ("light", "dark"):
            for size, (width, height) in _SIZES.items():
                self.page.emulate_media(color_scheme=scheme)
                self.page.set_viewport_size({"width": width, "height": height})
                where = f"{scheme}, {size}"
                assert self.page.evaluate("document.documentElement.scrollWidth") <= width, where
                assert min(self.page.evaluate(_CONTRAST, text) for text in ("h1", "p")) >= 4.5, where
            papers.add(self.page.evaluate("getComputedStyle(document.body).backgroundColor"))
        assert len(papers) == 2
