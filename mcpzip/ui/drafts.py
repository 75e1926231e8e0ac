"""Changes of the config that were shown and wait for a person to save them (pure).

The rule: what is saved is what was shown. A form names a change by a random id, and the bytes that it stands
for stay here, so that no form can bring others.
"""

from secrets import token_urlsafe

import msgspec

from mcpzip.ui.limits import DRAFTS


class Draft(msgspec.Struct, frozen=True):
    """A change. title: for people. before: the content that it was made from, None for no file. after: the
    new one. cancel, done: paths of pages, when it is not saved and when it is. tries: the name of a server
    that is asked for its tools before; "" for none. is_text: whether a person wrote the whole text.
    """

    title: str
    before: bytes | None
    after: bytes
    cancel: str = "/config"
    done: str = "/config?done=saved"
    tries: str = ""
    is_text: bool = False


class Drafts:
    """The changes that wait, at most `DRAFTS`; the oldest goes."""

    def __init__(self) -> None:
        self._drafts: dict[str, Draft] = {}

    def add(self, draft: Draft) -> str:
        """Keeps ``draft``; its id."""
        name = token_urlsafe(16)
        self._drafts[name] = draft
        while len(self._drafts) > DRAFTS:
            del self._drafts[next(iter(self._drafts))]
        return name

    def get(self, name: str) -> Draft | None:
        """The one with this id, if it still waits."""
        return self._drafts.get(name)

    def remove(self, name: str) -> None:
        """It was saved."""
        self._drafts.pop(name, None)
