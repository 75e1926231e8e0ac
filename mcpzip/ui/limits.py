"""Limits of the page's HTTP server, and of what its pages show."""

from mcpzip.server.http.limits import Limits

LIMITS = Limits(
    body=256 * 1024,
    body_time=20.0,
    bodies=1 << 20,
    head=16 * 1024,
    head_time=10.0,
    keep_alive=30.0,
    connections=64,
    turned_away=8,
    backlog=64,
    unread=60.0,
    untold=16 * 1024,
    untold_small=4 * 1024,
    untold_by_all=256 * 1024,
    unread_by_all=8 << 20,
)
"""One person's browser: a form is small, and a tab has six connections at most."""
FIELDS = 64
"""Fields of a form or of a query; a request with more is refused."""
BROWSER_SESSIONS = 16
"""Browsers that are signed in at a time; another one signs the oldest out."""
STREAMS = 24
"""Streams of changes at a time, one for each tab that is looked at."""
CALLS_OF_PROGRAM = 100
"""Calls of a program on its page."""
ROWS = 50
"""Rows of a list on one page; a list has pages, and a filter that the server applies."""
STDERR_LINES = 40
"""Lines of a server's stderr on its page."""
LOG_LINES_KEPT = 200
"""Lines of the log that are kept in memory of each server."""
LOG_SERVERS = 500
"""Servers of which lines of the log are kept."""
CHECKS_TIME = 30
"""Seconds that the checks of *Doctor* may take; with many thousand tools they take about one."""
SERVER_CHECKS_TIME = 300
"""Seconds that they may take when they start every server."""
FINDINGS = 30
"""Findings of a group of checks that are shown."""
FINDING_LINES = 20
"""Lines of evidence of one finding that are shown."""
REVIEW_SIZE = 1_000_000
"""Bytes of a held definition that is shown, or of the approved one that it is compared with."""
REVIEW_FIELDS = 200
"""Fields of a held definition that are shown."""
REVIEW_CHARACTERS = 30_000
"""Characters of its values that are shown, all together. What isn't shown whole can't be approved there."""
DECISIONS = 20
"""Refused calls, allowances and projects on the page *Review*."""
CONFIG_TEXT = 80_000
"""Bytes of a config that can be edited on the page. A larger one is edited with `mcpzip edit`."""
DRAFTS = 16
"""Changes of the config that were shown and can be saved; another one takes the place of the oldest."""
ADDED_TEXT = 10_000
"""Characters of a field of the form that adds a server."""
TRIAL_TIME = 60
"""Seconds that a server has to list its tools before it is added."""
LOGINS, LOGINS_KEPT = 4, 50
"""Logins under way at a time, and logins of which it is known how they ended."""
LOGIN_TIME = 300
"""Seconds that a person has to sign in."""
LOGIN_BEGIN = 5
"""Seconds that the page waits until it is known where to sign in; then it shows that when it is."""
