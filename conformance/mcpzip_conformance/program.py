"""Writes the programs of the checks in the language of a subject, with its way to call a tool.

    writer = ProgramWriter(route)
    code = writer.program(writer.assigned("paid", writer.call(SHOP, "pay", id=7)), writer.returned("paid"))

The rule: a program is lines, and what a language or a subject has its own words for is written only here.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from mcpzip_conformance.declaration import Program
from mcpzip_conformance.route import Route
from mcpzip_conformance.template import fill


@dataclass(frozen=True, slots=True)
class Language:
    """A programming language, as templates. literal: writes a JSON value; assigns, catches, replaces: put the
    value of an expression into a variable: always; or another value if it raises an exception; or if that is
    ``failed``. fails: ends the program with an error; concurrent: the line before calls at the same time."""

    literal: Callable[[object], str]
    concurrent: str
    assigns: str
    catches: str
    replaces: str
    fails: str


LANGUAGES: Mapping[str, Language] = {
    "python": Language(
        literal=repr,
        concurrent="import asyncio",
        assigns="{name} = {expression}",
        catches="try:\n    {name} = {expression}\nexcept Exception:\n    {name} = {otherwise}",
        replaces="{name} = {expression}\nif {failed}:\n    {name} = {otherwise}",
        fails="raise ValueError('stop')",
    ),
    "javascript": Language(
        literal=json.dumps,
        concurrent="",
        assigns="var {name} = {expression};",
        catches="var {name}; try {{name} = {expression};} catch (error) {{name} = {otherwise};}",
        replaces="var {name} = {expression}; if ({failed}) {{name} = {otherwise};}",
        fails="throw new Error('stop');",
    ),
}


class ProgramWriter:
    """Programs for the subject of ``route``, which must run programs. Names of tools and of arguments must be
    identifiers."""

    def __init__(self, route: Route) -> None:
        program = route.subject.tools.program
        assert program is not None, "a check with programs must need the feature"
        self._route = route
        self._program: Program = program
        self._language = LANGUAGES[program.language]

    @staticmethod
    def program(*parts: str) -> str:
        """The program of these lines."""
        return "\n".join(parts)

    def call(self, server: str, tool: str, **arguments: object) -> str:
        """The expression that calls a tool."""
        return self._call(self._program.call, server, tool, arguments)

    def _call(self, template: str, server: str, tool: str, arguments: Mapping[str, object]) -> str:
        literal = self._language.literal
        places = {
            "name": self._route.shown(server, tool),
            "server": server,
            "tool": tool,
            "arguments": literal(arguments),
            "keywords": ", ".join(f"{key}={literal(value)}" for key, value in arguments.items()),
        }
        return str(fill(template, places))

    @property
    def can_call_together(self) -> bool:
        """Whether a program can make calls at the same time."""
        return bool(self._program.together)

    def together(self, name: str, server: str, tool: str, each: Sequence[Mapping[str, object]]) -> str:
        """The lines that call a tool with each of these arguments at the same time, and put the list of the
        values into a variable."""
        template = self._program.each or self._program.call
        calls = ", ".join(self._call(template, server, tool, arguments) for arguments in each)
        values = str(fill(self._program.together, {"calls": calls}))
        return self.program(self._language.concurrent, self.assigned(name, values))

    def value(self, expression: str) -> str:
        """The expression of the data in the value of a call."""
        return str(fill(self._program.value, {"value": expression}))

    def assigned(self, name: str, expression: str) -> str:
        """The line that puts the value of an expression into a variable."""
        return str(fill(self._language.assigns, {"name": name, "expression": expression}))

    def caught(self, name: str, call: str, otherwise: str) -> str:
        """The lines that put the value of a call into a variable, or the text ``otherwise`` if it fails."""
        places = {"name": name, "expression": call, "otherwise": self._language.literal(otherwise)}
        if not self._program.failed:
            return str(fill(self._language.catches, places))
        failed = str(fill(self._program.failed, {"value": name}))
        return str(fill(self._language.replaces, {**places, "failed": failed}))

    def returned(self, expression: str) -> str:
        """The line that ends the program with the value of an expression."""
        return str(fill(self._program.returns, {"value": expression}))

    @property
    def failing(self) -> str:
        """The line that ends the program with an error."""
        return self._language.fails
