"""The HTML pages of an authorization server (no I/O): the decision, and the error."""

from html import escape
from string import Template

_PAGE = Template("""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<link rel="icon" href="data:,">
<title>$title</title>
<style>
body { font: 16px/1.5 system-ui, sans-serif; max-width: 34rem; margin: 4rem auto; padding: 0 1rem }
dt { font-weight: 600 } dd { margin: 0 0 .5rem; overflow-wrap: anywhere }
button { font: inherit; padding: .5rem 1.5rem; margin-right: 1rem }
</style>
</head>
<body>
<h1>$title</h1>
$body
</body>
</html>
""")

_DECIDE = Template("""<p>A program wants to act for you. This is a fake: nothing real is at stake.</p>
<dl>
<dt>Program</dt><dd>$client</dd>
<dt>Server</dt><dd>$resource</dd>
<dt>Rights</dt><dd>$scope</dd>
<dt>You will be sent to</dt><dd>$redirect</dd>
</dl>
<form method="post" action="$action">
<input type="hidden" name="ticket" value="$ticket">
<button type="submit" name="decision" value="allow">Allow</button>
<button type="submit" name="decision" value="deny">Deny</button>
</form>""")


def decide(
    action: str, ticket: str, *, client: str, resource: str, scope: tuple[str, ...], redirect_uri: str
) -> str:
    """The page with the buttons "Allow" and "Deny", which post ``ticket`` and ``decision`` to ``action``."""
    body = _DECIDE.substitute(
        action=escape(action),
        ticket=escape(ticket),
        client=escape(client),
        resource=escape(resource or "any"),
        scope=escape(", ".join(scope) or "all"),
        redirect=escape(redirect_uri),
    )
    return _PAGE.substitute(title="Allow access?", body=body)


def wrong(why: str) -> str:
    """The error page, shown instead of a redirect."""
    return _PAGE.substitute(title="This request can't be answered", body=f"<p>{escape(why)}</p>")
