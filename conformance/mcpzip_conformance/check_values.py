"""What all processes of a check have in common: a key, a folder, and the tokens of those who call.

The rule: a value is made when a placeholder asks for it, so that a subject which needs none costs nothing.
"""

import base64
import secrets
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

from mcpzip_conformance.declaration import Authorization
from mcpzip_conformance.errors import ControlError
from mcpzip_conformance.http_subject import free_port
from mcpzip_conformance.issuer import PEOPLE, Issuer
from mcpzip_conformance.subject import Subject
from mcpzip_conformance.template import fill
from mcpzip_conformance.validation import used_places

_KEY_BYTES = 32


class CheckValues:
    """The values of one check. folder: of the check; store: the address of the store, ``HOST:PORT``."""

    store = ""

    def __init__(self, subject: Subject, folder: Path) -> None:
        self._subject, self._folder = subject, folder
        self._issuer: Issuer | None = None
        self._words: dict[str, str] = {}
        self._made: Mapping[str, Callable[[str], str]] = {
            "private_port": lambda port: str(free_port()),
            "shared": lambda port: self._shared(),
            "key": lambda port: self._word("key"),
            "new_key": lambda port: self._word("new_key"),
            "store": lambda port: self.store,
            "token": lambda port: self._word("token"),
            "other_token": lambda port: self._word("other_token"),
            "issuer": lambda port: self._issuer_for(port).url,
            "jwks": lambda port: self._issuer_for(port).jwks,
            "resource": lambda port: self._issuer_for(port).resource,
            "scope": lambda port: self._declared.scope,
        }

    def places(self, port: str) -> dict[str, str]:
        """The value of each placeholder that the subject's file uses. port: of the process."""
        used: Collection[str] = used_places(self._subject) & self._made.keys()
        return {place: self._made[place](port) for place in used}

    @property
    def issuer(self) -> Issuer:
        """The authorization server. The subject must have been started."""
        if self._issuer is None:
            raise ControlError("a check of tokens must need the feature issuer, and start the subject first")
        return self._issuer

    def credentials(self, person: str = PEOPLE[0]) -> dict[str, str]:
        """The headers by which a request of ``person`` is let in; none if anybody is."""
        if self._subject.authorization is not None:
            return {"Authorization": f"Bearer {self.issuer.token(person)}"}
        if "token" not in used_places(self._subject):
            return {}
        return {"Authorization": f"Bearer {self._word('token' if person == PEOPLE[0] else 'other_token')}"}

    def stop(self) -> None:
        """Stop the authorization server."""
        if self._issuer is not None:
            self._issuer.stop()

    @property
    def _declared(self) -> Authorization:
        assert self._subject.authorization is not None, "validation sees to it"
        return self._subject.authorization

    def _issuer_for(self, port: str) -> Issuer:
        """The issuer. Its tokens are for the URL of the process that was started first."""
        if self._issuer is None:
            template = self._declared.resource or self._subject.start.url
            self._issuer = Issuer(self._declared, str(fill(template, {"port": port})))
        return self._issuer

    def _shared(self) -> str:
        folder = self._folder / "shared"
        folder.mkdir(exist_ok=True)
        return str(folder)

    def _word(self, name: str) -> str:
        if name not in self._words:
            random = secrets.token_bytes(_KEY_BYTES)
            self._words[name] = base64.b64encode(random).decode() if "key" in name else random.hex()
        return self._words[name]
