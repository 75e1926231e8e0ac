"""Limits of the page for a team."""

from mcpzip.server.http.limits import Limits

LIMITS = Limits(
    body=256 * 1024,
    body_time=20.0,
    bodies=8 << 20,
    head=16 * 1024,
    head_time=10.0,
    keep_alive=30.0,
    connections=256,
    turned_away=16,
    backlog=128,
    unread=60.0,
    unread_by_all=64 << 20,
)
"""Some dozen browsers, with six connections each at most."""
SESSIONS_OF_PERSON, SESSIONS = 8, 4_096
"""Browsers of one person, and of all, that are signed in; another one signs the oldest out."""
IDLE = 30 * 60.0
"""Seconds after which a browser is signed out on which a person does nothing."""
LONGEST = 12 * 3600.0
"""Seconds after which it is signed out in any case."""
PAGES_OF_PERSON = 8
"""Pages and calls of one person that are under way; more are refused."""
STREAMS_OF_BROWSER, STREAMS = 16, 512
"""Tabs of one browser, and of all, that are told of changes; another one stays as it is."""
SIGN_INS, SIGN_INS_WAITING = 16, 128
"""Browsers that go to the issuer at a time, and as many that come back from there, and those that wait for
that; others are told to try again.
"""
SIGN_INS_REMEMBERED = 4_096
"""Sign-ins of which it is remembered that they were answered."""
SIGN_IN_TIME = 15 * 60
"""Seconds that a person has to sign in at the issuer."""
NUMBERED_PEOPLE = 1_024
"""People whose calls have numbers of their own; after that the numbers of whoever looked longest ago begin
anew.
"""
UPSTREAM_SIGN_INS_OF_PERSON, UPSTREAM_SIGN_INS = 4, 256
"""Sign-ins to servers that one person, and all, have begun and not ended. Of a person the oldest ends for
another one; others are told to try again.
"""
UPSTREAM_BEGIN = 20.0
"""Seconds that the page waits until it is known where to sign in."""
UPSTREAM_END = 45.0
"""Seconds that the page waits for the tokens, when the browser has come back."""
