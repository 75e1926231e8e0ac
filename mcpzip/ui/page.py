"""What a page is asked, and what it answers."""

from collections.abc import Mapping
from typing import Protocol
from urllib.parse import parse_qsl

import msgspec

from mcpzip.server.http.response import Header
from mcpzip.ui.limits import FIELDS
from mcpzip.ui.rendering import render
from mcpzip.ui.seen import Window
from mcpzip.ui.sign_in import BrowserSession
from mcpzip.ui.sources import Sources

AREAS_OF_PERSON = (("/", "Overview"), ("/servers", "Servers"), ("/search", "Search"), ("/calls", "Calls"))
_OTHER_AREAS = (("/review", "Review"), ("/config", "Config"), ("/doctor", "Doctor"))
HTML: Header = (b"content-type", b"text/html; charset=utf-8")


class Answer(msgspec.Struct, frozen=True):
    """A whole response."""

    body: bytes
    status: int = 200
    headers: tuple[Header, ...] = (HTML,)


class PersonVisit(msgspec.Struct, frozen=True):
    """A request of a browser that is signed in, by a person who may see what ``sources`` tell. root: the path
    that all pages are under. name: the part of the path that a page leaves open. fields: of the query, or of
    the form of a POST; the last one of each name. is_post: whether a form was sent.
    """

    sources: Window
    session: BrowserSession
    root: str
    name: str
    fields: Mapping[str, str]
    is_post: bool = False

    def page(self, template: str, *, status: int = 200, **values: object) -> Answer:
        """A page with the frame of all pages."""
        of_frame = {"root": self.root, "form_token": self.session.form_token, **self.frame()}
        return Answer(render(template, **of_frame, **values), status)

    def frame(self) -> dict[str, object]:
        """What the frame of the pages has to know. areas: the paths and names of the navigation. person: who
        is signed in, "" for whoever runs this command.
        """
        return {"areas": AREAS_OF_PERSON, "person": self.session.name}

    def refuse(self, status: int, title: str, text: str) -> Answer:
        """A page that says why there is no other."""
        return refused(status, title, text, self.root)

    def redirect(self, where: str) -> Answer:
        """To another page, with GET. where: its path below ``root``."""
        return redirect(self.root + where)

    def number(self, field: str, least: int = 1, most: int = 1_000_000) -> int:
        """The number in a field; ``least`` where there is none."""
        text = self.fields.get(field, "")
        given = int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else least
        return min(max(given, least), most)


class Visit(PersonVisit, frozen=True):
    """A request to `mcpzip ui`, by whoever runs it."""

    sources: Sources

    def frame(self) -> dict[str, object]:
        """See `PersonVisit.frame`."""
        return {"areas": (*AREAS_OF_PERSON, *_OTHER_AREAS), "person": ""}


class Handler(Protocol):
    """A page of `mcpzip ui`, or what a form of it does."""

    async def __call__(self, visit: Visit) -> Answer: ...


class PersonHandler(Protocol):
    """A page that is for everybody who is signed in."""

    async def __call__(self, visit: PersonVisit) -> Answer: ...


class TooManyFieldsError(ValueError):
    """A query or a form has more than `FIELDS` fields."""


def fields_of(text: str) -> dict[str, str]:
    """The fields of a query or of a form, as a URL encodes them. Raises TooManyFieldsError."""
    try:
        pairs = parse_qsl(text, keep_blank_values=True, max_num_fields=FIELDS, errors="replace")
    except ValueError as error:
        raise TooManyFieldsError(f"A form may have {FIELDS} fields at most.") from error
    return dict(pairs)


def redirect(where: str) -> Answer:
    """To another page, with GET. where: a path."""
    return Answer(b"", 303, ((b"location", where.encode("ascii")),))


def refused(status: int, title: str, text: str, root: str = "") -> Answer:
    """A page that says why there is no other. root: see `Visit`; "" where nobody is signed in."""
    return Answer(render("problem.html", title=title, text=text, root=root), status)
