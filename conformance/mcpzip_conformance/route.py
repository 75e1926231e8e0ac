"""How a tool is called through a subject, and how its replies are read.

The rule: the names and wrappers that the subject's file declares are applied and removed only here; a check
names a server and a tool.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from mcpzip.wire import (
    SERVER_INFO_KEY,
    NotAnObject,
    join_object,
    quote,
    split_object,
    unquote,
    with_members,
)
from mcpzip_conformance.reply import Reply
from mcpzip_conformance.subject import Subject
from mcpzip_conformance.template import as_json, fill, places_in

_SAME_AS_NOTHING = {"resultType": b'"complete"', "isError": b"false", "_meta": b"{}"}


@dataclass(frozen=True, slots=True)
class Route:
    """The names and meta-tools of a subject. No I/O. alone: whether it has only one server; shared: the names
    of tools that several of its servers have."""

    subject: Subject
    alone: bool = False
    shared: frozenset[str] = frozenset()

    @property
    def meta(self) -> bool:
        """Whether tools are called through a meta-tool."""
        return self.subject.tools.call is not None

    def shown(self, server: str, tool: str) -> str:
        """The client's name of ``tool`` of ``server``."""
        return self.subject.shown(server, tool, alone=self.alone, shared=tool in self.shared)

    def prompt(self, server: str, prompt: str) -> str:
        """The client's name of ``prompt`` of ``server``."""
        return self.subject.prompt(server, prompt, alone=self.alone)

    def uri(self, server: str, uri: str) -> str:
        """The client's URI, or URI template, of a resource of ``server``."""
        return self.subject.uri(server, uri, alone=self.alone)

    def call(
        self,
        server: str,
        tool: str,
        arguments: bytes | None,
        meta: bytes | None = None,
        *,
        flat: bool = False,
    ) -> bytes:
        """The params of the `tools/call` that runs ``tool``. arguments, meta: JSON text; None: left out.

        flat: with a meta-tool, the arguments' members are put beside the tool's name.
        """
        shown = self.shown(server, tool)
        if self.subject.tools.call is None:
            params = {"name": quote(shown)} | ({} if arguments is None else {"arguments": arguments})
            return _params(params, meta)
        places: dict[str, object] = {"name": shown, "server": server, "tool": tool}
        if arguments is not None and not flat:
            places["arguments"] = msgspec.Raw(arguments)
        given = msgspec.json.encode(fill(as_json(self.subject.tools.call.arguments), places))
        if flat and arguments is not None:
            given = with_members(given, split_object(arguments))
        call = self.subject.tools.call
        name = str(fill(call.alone if self.alone and call.alone else call.tool, places))
        return _params({"name": quote(name), "arguments": given}, meta)

    def named(self, name: str) -> bytes | None:
        """The params of the `tools/call` of ``name``, without arguments; None if tools aren't called by one
        name."""
        call = self.subject.tools.call
        if call is None:
            return _params({"name": quote(name), "arguments": b"{}"}, None)
        places = {"name": name, "arguments": msgspec.Raw(b"{}")}
        if "name" not in set(places_in(as_json(call.arguments))) or set(places_in(call.tool)):
            return None
        given = msgspec.json.encode(fill(as_json(call.arguments), places))
        return _params({"name": quote(call.tool), "arguments": given}, None)

    def rest(self, reply: Reply) -> bytes | None:
        """The params of the `tools/call` that gives the whole of the result in ``reply``; None if it is the
        whole."""
        rest = self.subject.tools.rest
        match = None if rest is None or reply.result is None else re.search(rest.handle, reply.text)
        if rest is None or match is None:
            return None
        return _params(
            {"name": quote(rest.tool), "arguments": _filled(rest.arguments, {"handle": match[1]})}, None
        )

    def program(self, code: str) -> bytes:
        """The params of the `tools/call` that runs a program. The subject must run programs."""
        program = self.subject.tools.program
        assert program is not None, "a check with programs must need the feature"
        name = program.alone if self.alone and program.alone else program.tool
        return _params({"name": quote(name), "arguments": _filled(program.arguments, {"code": code})}, None)

    def resumed(self, reply: Reply, server: str, tool: str, arguments: bytes) -> bytes | None:
        """The params of the `tools/call` that approves the call of ``tool`` for which the program waits whose
        answer is ``reply``; None if it waits for none."""
        program = self.subject.tools.program
        resume = None if program is None else program.resume
        match = None if resume is None else re.search(resume.handle, reply.text, re.MULTILINE)
        if resume is None or match is None:
            return None
        places: dict[str, object] = {"handle": match[1], "arguments": msgspec.Raw(arguments)}
        places |= {"name": self.shown(server, tool), "server": server, "tool": tool}
        name = str(fill(resume.tool, places))
        return _params({"name": quote(name), "arguments": _filled(resume.arguments, places)}, None)

    def search(self, query: str, limit: int | None = None) -> bytes:
        """The params of the `tools/call` that searches. The subject must have a search."""
        search = self.subject.tools.search
        assert search is not None, "a check that searches must need the feature"
        places: dict[str, object] = {"query": query} | ({} if limit is None else {"limit": limit})
        return _params({"name": quote(search.tool), "arguments": _filled(search.arguments, places)}, None)

    def found(self, reply: Reply) -> list[str]:
        """The names in a search reply, best first, each once."""
        search = self.subject.tools.search
        assert search is not None, "a check that searches must need the feature"
        return list(dict.fromkeys(re.findall(search.names, reply.text, re.MULTILINE)))

    def describe(self, server: str, tool: str) -> bytes | None:
        """The params of the `tools/call` that shows a tool's definition; None: it is in `tools/list`."""
        describe = self.subject.tools.describe
        if describe is None:
            return None
        places = {"name": self.shown(server, tool), "server": server, "tool": tool}
        name = str(fill(describe.alone if self.alone and describe.alone else describe.tool, places))
        return _params({"name": quote(name), "arguments": _filled(describe.arguments, places)}, None)

    @property
    def defines(self) -> bool:
        """Whether the answer to `describe` has a definition as its server wrote it."""
        describe = self.subject.tools.describe
        return describe is not None and bool(describe.definition)

    def refresh(self) -> bytes | None:
        """The params of the `tools/call` that has all servers listed again; None if there is no such tool."""
        refresh = self.subject.tools.refresh
        if refresh is None:
            return None
        return _params({"name": quote(refresh.tool), "arguments": _filled(refresh.arguments, {})}, None)

    def definition(self, reply: Reply, tool: str) -> bytes | None:
        """The definition of ``tool``, as JSON text, in the answer to `describe`; None if there is none."""
        describe = self.subject.tools.describe
        assert describe is not None, "a check that describes must need the feature"
        match = re.search(describe.definition, reply.text, re.MULTILINE)
        if match is None:
            return None
        raw = match[1].encode("utf-8", "surrogatepass")
        return _of_several(raw, tool) if raw.startswith(b"[") else raw

    def undone(self, result: bytes) -> bytes:
        """A tool's result without the subject's declared additions, without the members that the modern era
        adds to any result (because a proxy may speak either era to its servers), and without members that
        mean the same as their absence: ``isError: false``, which is the default, and an empty ``_meta``."""
        try:
            fields = split_object(result)
        except NotAnObject:
            return result
        for key, same_as_nothing in _SAME_AS_NOTHING.items():
            if fields.get(key) == same_as_nothing:
                del fields[key]
        if "_meta" in fields:
            fields = self._without_own_meta(fields)
        return join_object(fields)

    def inner(self, result: bytes) -> bytes:
        """The server's result at its declared path within the subject's result; else ``result`` itself."""
        call = self.subject.tools.call
        if call is None or not (call.result or call.text):
            return result
        inner = _at(result, call.result or call.text)
        if inner is None:
            return result
        if call.text and not call.result:
            return b'{"content":[{"type":"text","text":%b}]}' % quote(inner.decode("utf-8", "surrogatepass"))
        try:
            split_object(inner)
        except NotAnObject:
            return result  # words of the proxy's own, say
        return inner

    def _without_own_meta(self, fields: dict[str, bytes]) -> dict[str, bytes]:
        try:
            meta = split_object(fields["_meta"])
        except NotAnObject:
            return fields
        own = {key for key in meta if key.startswith(self.subject.tools.own_meta)}
        own |= {SERVER_INFO_KEY} & meta.keys()
        if not own:
            return fields
        kept = {key: value for key, value in meta.items() if key not in own}
        if not kept:
            return {key: value for key, value in fields.items() if key != "_meta"}
        return fields | {"_meta": join_object(kept)}


def _at(raw: bytes, path: str) -> bytes | None:
    """The value in ``raw`` at ``path``, decoded if it is a string; None if there is none."""
    for step in path.split("."):
        try:
            if step.isdigit():
                raw = bytes(msgspec.json.decode(raw, type=list[msgspec.Raw])[int(step)])
            else:
                raw = split_object(raw)[step]
            if raw.startswith(b'"'):
                raw = unquote(raw).encode("utf-8", "surrogatepass")
        except (NotAnObject, KeyError, IndexError, msgspec.DecodeError, ValueError):
            return None
    return raw


def _of_several(raw: bytes, tool: str) -> bytes | None:
    """The definition of ``tool`` in a JSON list of definitions."""
    try:
        each = map(bytes, msgspec.json.decode(raw, type=list[msgspec.Raw]))
        return next((one for one in each if unquote(split_object(one).get("name", b'""')) == tool), None)
    except (msgspec.DecodeError, NotAnObject, ValueError):
        return None


def _filled(template: object, places: Mapping[str, object]) -> bytes:
    return msgspec.json.encode(fill(as_json(template), places))


def _params(fields: Mapping[str, bytes], meta: bytes | None) -> bytes:
    return join_object(dict(fields) | ({} if meta is None else {"_meta": meta}))
