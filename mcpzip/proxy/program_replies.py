"""What a client reads of a program: its value, what it printed, its calls; or why it failed; or what it waits
for (pure).
"""

import json
from collections.abc import Collection, Sequence

import msgspec

from mcpzip.model.entry import Entry
from mcpzip.model.quoting import one_line
from mcpzip.model.sanitize import json_text
from mcpzip.programs.journal import Journal
from mcpzip.programs.sandbox import Outcome
from mcpzip.programs.source import Program
from mcpzip.proxy.metatools import EXECUTE, RUN_CODE
from mcpzip.proxy.program_calls import Prepared
from mcpzip.proxy.tool_result import META_PREFIX, text_result
from mcpzip.results.excerpt import beginning
from mcpzip.results.reply import with_note
from mcpzip.wire import NotAnObject, join_object, quote, split_object, with_members

PRINTED = 500
"""Tokens of what a program printed that are shown."""
VARIABLES = 20
"""Names of variables that are shown."""
META = META_PREFIX + "program"

RUN_CODE_TOOL = Entry.parse("mcpzip", b'{"name":"%b"}' % RUN_CODE.encode())
"""What the results of programs are kept as."""


class Reply(msgspec.Struct, frozen=True):
    """result: for the client, JSON text. status: one more text, which stays when the result is kept."""

    result: bytes
    status: str
    journal: Journal

    def with_status(self, result: bytes) -> bytes:
        """``result``, which is `result` or what the client gets instead of it, with the status."""
        noted = with_note(result, self.status) if self.status else result
        try:
            meta = split_object(noted).get("_meta", b"{}")
        except NotAnObject:
            return noted
        about = json.dumps({"calls": self.journal.as_json()}).encode()
        return with_members(noted, {"_meta": with_members(meta, {META: about})})


def ended(
    program: Program,
    outcome: Outcome,
    journal: Journal,
    seconds: float,
    blocks: Sequence[bytes],
    unsaid: str,
    *,
    keeps_variables: bool,
) -> Reply:
    """The reply of a program that has ended. seconds: that it took. blocks: those of results that its value
    brings. unsaid: what is to be said of a program before, as sentences, or "". keeps_variables: whether the
    client's next program has the variables of this one.
    """
    if outcome.error:
        parts = [_failure(program, outcome, journal, keeps_variables=keeps_variables)]
    else:
        parts = [_shown(outcome.value)]
    if outcome.printed:
        parts.append(f"Printed:\n{beginning(outcome.printed, PRINTED)}")
    texts = [part for part in parts if part] or ["The program ended without a value."]
    content = [join_object({"type": b'"text"', "text": quote(text)}) for text in texts]
    fields = {"content": b"[%b]" % b",".join([*content, *blocks])}
    if outcome.error:
        fields["isError"] = b"true"
        return Reply(join_object(fields), unsaid, journal)
    status = f"{_capital(journal.text)}, {seconds:.1f} s."
    if journal.tokens:
        status = f"{status} Their results have about {journal.tokens:,} tokens."
    if keeps_variables and outcome.state is None:
        status = f"{status} Its variables are too large to be kept."
    elif new := sorted(program.assigns - program.imports) if keeps_variables else []:
        status = f"{status} Variables stay: {_names(new)}."
    return Reply(join_object(fields), f"{unsaid} {status}".strip(), journal)


def paused_before(prepared: Prepared, name: str, journal: Journal) -> bytes:
    """The reply of a program that waits for a call which only `execute_tool` makes."""
    call = (
        f'{{"name": {json.dumps(prepared.entry.name)}, "arguments": {_arguments(prepared)}, "run": "{name}"}}'
    )
    before = f" Before it: {journal.text}." if journal.entries else ""
    return text_result(
        f"The program is paused before {one_line(prepared.entry.name)}, which may do more than read and has "
        f"not run. To make this call, and go on with the program, call {EXECUTE} with exactly:\n{call}\n"
        f"The reply is then that of the program. Don't run the program again.{before}",
        meta={"program": {"run": name, "calls": journal.as_json()}},
    )


def replaced(variables: Collection[str]) -> str:
    """The sentence about ``variables`` that other programs have set while a program was paused; "" for none:
    it goes on with those that it had.
    """
    if not variables:
        return ""
    return f"Variables that were set while the program was paused are lost: {_names(sorted(variables))}."


def _arguments(prepared: Prepared) -> str:
    return json_text(prepared.arguments.decode("utf-8", "replace"))


def _shown(value: str) -> str:
    """The value of a program: a text as it is, anything else as JSON."""
    if value in ("", "null"):
        return ""
    if value.startswith('"'):
        try:
            return msgspec.json.decode(value, type=str)
        except msgspec.DecodeError:  # half of a surrogate pair
            return value
    return value


def _failure(program: Program, outcome: Outcome, journal: Journal, *, keeps_variables: bool) -> str:
    where = ""
    if outcome.lines:
        number = outcome.lines[-1]
        where = f"Line {number} ({one_line(program.line(number))[:200]}): "
    text = f"{where}{one_line(outcome.error).rstrip('.')}."
    if not journal.entries:
        text = f"{text} No call was made."
    else:
        text = f"{text} Of the program: {journal.text}."
        if journal.may_have_run:
            text = f"{text} Check what may have run before you call it again."
    if not keeps_variables:
        return f"{text} Variables are not kept." if journal.entries else text
    if outcome.state is None:
        return f"{text} The variables of this program are lost; those of before stay."
    if journal.entries:
        return f"{text} What it set before stays: go on from there, and don't repeat its calls."
    return text


def _names(variables: Sequence[str]) -> str:
    more = f" and {len(variables) - VARIABLES} more" if len(variables) > VARIABLES else ""
    return f"{', '.join(variables[:VARIABLES])}{more}"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
