"""The page that a browser shows when it comes back from an authorization server.

The rule: it is self-contained: no script, nothing fetched, nothing cached, and no referrer.
"""

from base64 import b64encode
from hashlib import sha256
from html import escape
from http import HTTPStatus

_STYLE = """
:root { color-scheme: light dark; --ink: #1d2330; --soft: #5b6475; --paper: #f6f7f9; --card: #fff;
  --line: #dfe3ea; --good: #14763d; --bad: #b3261e; }
@media (prefers-color-scheme: dark) { :root { --ink: #e8ebf1; --soft: #a3acbd; --paper: #14171d;
  --card: #1d222b; --line: #323946; --good: #62d393; --bad: #ff8a80; } }
body { margin: 0; min-height: 100vh; display: grid; place-items: center; background: var(--paper);
  color: var(--ink); font: 16px/1.5 system-ui, sans-serif; }
main { box-sizing: border-box; width: min(34rem, 100% - 2rem); padding: 2rem; background: var(--card);
  border: 1px solid var(--line); border-radius: .75rem; overflow-wrap: anywhere; }
h1 { margin: 0 0 .5rem; font-size: 1.4rem; } p { margin: 0; color: var(--soft); }
.good { color: var(--good); } .bad { color: var(--bad); }
"""

_PAGE = """<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark"><link rel="icon" href="data:,"><title>{title}</title>
<style>{style}</style></head>
<body><main><h1 class="{kind}">{title}</h1><p>{text}</p></main></body>
</html>
"""

_STYLE_HASH = b64encode(sha256(_STYLE.encode()).digest()).decode()

_HEADERS = (
    "Content-Type: text/html; charset=utf-8",
    "Cache-Control: no-store",
    "Referrer-Policy: no-referrer",
    f"Content-Security-Policy: default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy: same-origin",
    "Cross-Origin-Resource-Policy: same-origin",
    "X-Content-Type-Options: nosniff",
    "X-Frame-Options: DENY",
    "Connection: close",
)


def response(status: int, title: str, text: str) -> bytes:
    """The page as an HTTP/1.1 response, head and all. title, text: plain text; the page is green with 200."""
    kind = "good" if status == HTTPStatus.OK else "bad"
    page = _PAGE.format(title=escape(title), text=escape(text), style=_STYLE, kind=kind).encode()
    allow = ("Allow: GET",) if status == HTTPStatus.METHOD_NOT_ALLOWED else ()
    first = f"HTTP/1.1 {status} {HTTPStatus(status).phrase}"
    head = (first, *_HEADERS, *allow, f"Content-Length: {len(page)}", "", "")
    return "\r\n".join(head).encode() + page
