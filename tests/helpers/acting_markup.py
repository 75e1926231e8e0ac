"""Finds in a page what a browser would run or load."""

import re
from html.parser import HTMLParser


class _Markup(HTMLParser):
    """Collects what of a page a browser would run or load, but for our own files."""

    OURS = ("/static/style.css", "/static/script.js", "/static/icon.svg")
    LOADING = (
        "src",
        "href",
        "action",
        "formaction",
        "data",
        "poster",
        "srcset",
        "background",
        "content",
        "ping",
    )
    HARMLESS = ("a", "form", "button", "meta")  # links and forms to ourselves; the viewport

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self._in_script = False
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self._in_script = tag in ("script", "style")
        if tag in ("img", "iframe", "object", "embed", "base", "style", "video", "audio", "b", "i"):
            self.found.append(tag)
        for name, value in attributes:
            if name.startswith("on") or name == "style" or "javascript:" in (value or "").lower():
                self.found.append(f"{tag} {name}")
            elif name in self.LOADING and value not in self.OURS:
                own = re.match("/(?!/)|#", value or "") is not None
                if tag not in self.HARMLESS or (tag != "meta" and not own):
                    self.found.append(f"{tag} {name}={value}")

    def handle_endtag(self, tag: str) -> None:
        self._in_script = False

    def handle_data(self, data: str) -> None:
        if self._in_script and data.strip():
            self.found.append(data)


def acting(text: str) -> list[str]:
    """What of a page a browser would run or load, but for our own files."""
    return _Markup(text).found
