"""The page on which people sign in to servers with ``auth.per_user``, and out of them.

The rule: nothing here concerns anybody but who is signed in to the page.
"""

from collections.abc import Mapping

from mcpzip.model.principal import Principal
from mcpzip.proxy.person_upstreams import SIGN_INS
from mcpzip.ui.page import HTML, Answer, PersonHandler, PersonVisit
from mcpzip.ui.rendering import ShownText
from mcpzip.ui.team.issuer_sign_in import SignInError
from mcpzip.ui.team.sessions import PersonSession
from mcpzip.ui.team.upstream_sign_ins import UpstreamSignIns

_AREA = (SIGN_INS, "Your sign-ins")


class TeamVisit(PersonVisit, frozen=True, kw_only=True):
    """A request of a person. sign_ins: of all people to servers."""

    sign_ins: UpstreamSignIns

    @property
    def principal(self) -> Principal:
        """Who it is."""
        return self.team_session.principal

    @property
    def team_session(self) -> PersonSession:
        """The session of their browser."""
        assert isinstance(self.session, PersonSession), "it is one of this page"
        return self.session

    def frame(self) -> dict[str, object]:
        """See `PersonVisit.frame`."""
        found = super().frame()
        areas = found["areas"]
        assert isinstance(areas, tuple), "as it is there"
        return found | {"areas": (*areas, _AREA)} if self.sign_ins.servers(self.principal) else found


async def show(visit: PersonVisit) -> Answer:
    """The servers to which this person signs in."""
    return await _page(_team(visit))


async def begin(visit: PersonVisit) -> Answer:
    """Sends them to the authorization server of a server."""
    team = _team(visit)
    try:
        begun = await team.sign_ins.begin(team.team_session, team.name)
    except SignInError as error:
        return await _page(team, problem=str(error), status=503 if error.is_passing else 403)
    if begun is None:
        return await _page(team, done=f"{team.name} needs no sign-in.")
    # No redirect: browsers hold one to `form-action` of the page that the form is on.
    page = team.page("team_sign_in_begun.html", begun=begun, url=ShownText(begun.url))
    return Answer(page.body, 200, (HTML, (b"set-cookie", begun.cookie)))


async def end(visit: PersonVisit) -> Answer:
    """Signs them out of a server."""
    team = _team(visit)
    try:
        left = await team.sign_ins.end(team.principal, team.name)
    except SignInError as error:
        return await _page(team, problem=str(error), status=503)
    return await _page(team, done=" ".join((f"You are signed out of {team.name}.", *left)))


async def _page(visit: TeamVisit, *, problem: str = "", done: str = "", status: int = 200) -> Answer:
    if not visit.sign_ins.servers(visit.principal):
        text = "There is no server to which you could sign in."
        return visit.refuse(404, "There is nothing to sign in to", problem or text)
    rows = await visit.sign_ins.rows(visit.principal)
    return visit.page("team_sign_ins.html", status=status, rows=rows, problem=problem, done=done)


def _team(visit: PersonVisit) -> TeamVisit:
    assert isinstance(visit, TeamVisit), "it is of this page"
    return visit


ROUTES: Mapping[tuple[str, str], PersonHandler] = {
    ("GET", SIGN_INS): show,
    ("POST", f"{SIGN_INS}/*"): begin,
    ("POST", f"{SIGN_INS}/*/sign-out"): end,
}
"""As `mcpzip.ui.pages.ROUTES`."""
