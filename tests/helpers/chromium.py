"""Debian's Chromium, without a window, as playwright drives it."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

try:
    from playwright.sync_api import Browser, Error, Locator, Page, Request, sync_playwright
except ImportError:
    Browser = Error = Locator = Page = Request = sync_playwright = None

__all__ = ["Browser", "Locator", "MissingError", "Page", "Request", "launched"]

COMMANDS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "chrome")
"""The first one that is there. The shell has no windows and takes half of the processor time."""
OPTIONS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


class MissingError(Exception):
    """What there isn't, and how to get it."""


@contextmanager
def launched() -> Iterator[Browser]:
    """One browser. Raises MissingError when there is none to start."""
    if sync_playwright is None:
        raise MissingError("playwright is not installed: pip install playwright")
    command = next(filter(None, map(shutil.which, COMMANDS)), None)
    if command is None:
        raise MissingError("there is no Chromium here: apt-get install chromium-headless-shell")
    with sync_playwright() as playwright:
        try:
            browser = playwright.chromium.launch(executable_path=command, args=list(OPTIONS))
        except Error as error:
            raise MissingError(f"Chromium can't be started: {error}") from error
        yield browser
        browser.close()
