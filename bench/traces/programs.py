"""Programs in place of series of calls: runs them on the recorded results, and counts the tokens.

The rules:

1. A program runs in mcpzip's own sandbox. Its calls are answered with the recorded results of these tools
   with these arguments; any other call is an error. It has to make every call of the series.
2. Its text is the author's. Values that the model wrote are taken from the recorded arguments: ``<<2.path>>``
   is the member ``path`` of those of the third call, ``<<2>>`` all of them, ``<<*.path>>`` a list of that of
   every call, and ``<<2.path|(.*)/>>`` what the group of a regular expression finds in it.
3. In its place in the conversation are the call of `run_code` with the text, and mcpzip's reply. What the
   model quotes later of the results, and the reply doesn't show, is read in one more request, as of kept
   results. Every request has the definition of `run_code`.
"""

import json
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.traces.account import Cost, Sized, cost, sized
from bench.traces.keeping import Candidate, Count, Keeper, Kept, text_shown
from bench.traces.quotes import readings
from bench.traces.readers import Format, UnreadableTraceError, files_of, read_file
from bench.traces.series import QUOTAS, Series, chosen, series_of, task_of
from bench.traces.trace import Call, Trace, Turn
from mcpzip.model.errors import McpzipError
from mcpzip.programs.journal import Journal
from mcpzip.programs.sandbox import FailedCallError, Request, Sandbox, Start
from mcpzip.programs.source import Program, parse, python_name, read_program
from mcpzip.programs.values import error_text, value_of
from mcpzip.proxy.metatools import RUN_CODE, definitions
from mcpzip.proxy.program_replies import ended
from mcpzip.results.document import read_result, shown, size_in_tokens
from mcpzip.server.token_counter import as_model_reads

FILE = Path(__file__).with_name("programs.toml")
LIMITS = (2_000, 10_000)
"""Tokens up to which a result is sent whole, for comparison."""
SECONDS = 60.0
ERROR = (
    "Line 3 (rows += reply[\"items\"]): KeyError: 'items'. Of the program: 2 calls: server__list ×2. What it "
    "set before stays: go on from there, and don't repeat its calls."
)
"""What mcpzip replies to a program that fails, as an example."""
_PLACE = re.compile(r"<<(\*|[0-9]+)(?:\.(\w+))?(?:\|(.*?))?>>")
_ROUTED = "execute-tool"
"""The tool of LiveMCPBench that runs another."""


class ProgramError(Exception):
    """The program didn't do what the series did. Its text is a sentence."""


@dataclass(frozen=True)
class Replaced:
    """A series and its program. calls: how many. results, code, reply: tokens of the results, of the program
    and of its reply. direct, program: the whole trace. retried: the same as ``program``, if a first
    program failed. kept: by limit, if only the results of the series are kept.
    """

    name: str
    calls: int
    results: int
    code: int
    reply: int
    direct: Cost
    kept: dict[int, Cost]
    program: Cost
    retried: Cost


def programs() -> Mapping[str, str]:
    """The programs, by the key of their series."""
    return {each["series"]: each["code"] for each in tomllib.loads(FILE.read_text("utf-8"))["program"]}


def key_of(series: Series) -> str:
    """The trace and the number of the first turn of a series."""
    name = series.trace.name
    short = name.partition("#")[2] or name.removesuffix("/messages.json").removesuffix(".json")
    return f"{short}:{series.first}"


def calls_of(series: Series) -> list[tuple[str, dict[str, Any]]]:
    """The calls of ``series``: the name of each as a program writes it, and its arguments."""
    found = []
    server = series.trace.name.split("/")[1] if series.trace.name.startswith("mcp_servers/") else ""
    for result in series.results:
        tool, arguments = result.call.tool, json.loads(result.call.arguments or "{}")
        if tool == _ROUTED:
            name = f"{arguments['server_name']}__{arguments['tool_name']}"
            arguments = arguments.get("params") or {}
        else:
            name = f"{server}__{tool}" if server else tool.replace("-", "__", 1)
        found.append((python_name(name), arguments))
    return found


def filled(code: str, calls: list[tuple[str, dict[str, Any]]]) -> str:
    """``code`` with the values of the recorded arguments, as Python writes them."""

    def value(number: int, key: str, pattern: str | None) -> Any:
        found: Any = calls[number][1][key] if key else calls[number][1]
        if pattern is None:
            return found
        part = re.search(pattern, str(found))
        return part[1] if part else ""

    def written(place: re.Match[str]) -> str:
        key, pattern = place[2], place[3]
        if place[1] != "*":
            return repr(value(int(place[1]), key, pattern))
        having = [number for number in range(len(calls)) if key in calls[number][1]]
        return repr(list(dict.fromkeys(value(number, key, pattern) for number in having)))

    return _PLACE.sub(written, code)


class Recorded:
    """Answers the calls of a program with recorded results."""

    def __init__(self, series: Series) -> None:
        self.journal = Journal()
        self._answers: dict[str, bytes] = {}
        for (name, arguments), result in zip(calls_of(series), series.results, strict=True):
            self._answers[_key(name, arguments)] = result.raw
        self.left = set(self._answers)

    async def call(self, request: Request) -> str:
        """The value of the recorded result. Raises FailedCallError."""
        _, named = json.loads(request.arguments)
        key = _key(request.name, named)
        if key not in self._answers:
            raise FailedCallError(f"no such call was recorded: {key[:300]}")
        self.left.discard(key)
        entry = self.journal.begin(request.name)
        document = read_result(self._answers[key])
        entry.state, entry.tokens = "done", size_in_tokens(shown(document))
        if document.fields.get("isError") == b"true":
            entry.state = "failed"
            raise FailedCallError(error_text(document, 2_000))
        return value_of(document).decode()


async def reply_of(code: str, series: Series, sandbox: Sandbox) -> str:
    """What mcpzip replies to the program ``code``. Raises ProgramError if it fails, or leaves a call out."""
    try:
        program: Program = read_program(parse(code))
        host = Recorded(series)
        await sandbox.start()
        outcome = await sandbox.run(Start(program.form, program.tools), host, SECONDS)
    except McpzipError as error:
        raise ProgramError(str(error)) from error
    if outcome.error:
        raise ProgramError(f"It failed: {outcome.error} (line {outcome.lines[-1:]}).")
    if host.left:
        raise ProgramError(f"It left {len(host.left)} calls out, such as {min(host.left)[:200]}.")
    reply = ended(program, outcome, host.journal, 0.1, (), "", keeps_variables=True)
    return text_shown(reply.with_status(reply.result))


def replaced(series: Series, code: str, reply: str, count: Count) -> Replaced:
    """The conversation of ``series`` in all forms. code: the program, filled. reply: what it ends with."""
    own = {id(result) for result in series.results}
    turns = sized(series.trace, count)

    def only_own(keeper: Keeper | None) -> Cost:
        def treatment(each: Candidate) -> Kept | None:
            if keeper is None or id(each.reading.result) not in own or not keeper.keeps(each):
                return None
            return keeper.quoted(each)

        return cost(turns, treatment)

    kept = {limit: only_own(Keeper(limit, count)) for limit in LIMITS}
    program, retried = (_with_program(series, code, reply, count, fails) for fails in (False, True))
    results = sum(count(text_shown(result.raw)) for result in series.results)
    sizes = len(series.results), results, count(code), count(reply)
    return Replaced(key_of(series), *sizes, only_own(None), kept, program, retried)


def _with_program(series: Series, code: str, reply: str, count: Count, fails: bool) -> Cost:
    """fails: whether the model wrote the program twice, because it failed at first."""
    trace, first, after = series.trace, series.first, series.first + series.turns
    begun, following = trace.turns[first], trace.turns[after]
    collapsed = Trace(
        trace.name,
        (
            *trace.turns[:first],
            Turn(begun.given, begun.said, tuple(result.call for result in series.results)),
            Turn(series.results, following.said, following.calls),
            *trace.turns[after + 1 :],
        ),
    )
    run = Call(RUN_CODE, json.dumps({"code": code}, ensure_ascii=False))
    turns = list(sized(collapsed, count))
    called = count(begun.said) + count(run.tool) + count(run.arguments)
    turns[first] = Sized(turns[first].prompts, turns[first].results, called)
    hidden = tuple(Candidate(each, count, seen=reply) for each in readings(collapsed)[first + 1])
    shown_now = turns[first + 1]
    turns[first + 1] = Sized(shown_now.prompts + count(reply), hidden, shown_now.answer)
    if fails:
        turns.insert(first + 1, Sized(count(ERROR), (), called - count(begun.said)))
    turns[0] = Sized(turns[0].prompts + definition(count), turns[0].results, turns[0].answer)
    keeper, own = Keeper(LIMITS[-1], count), set(map(id, hidden))

    def treatment(each: Candidate) -> Kept | None:
        if id(each) not in own:
            return None
        kept = keeper.quoted(each)
        return Kept(0, kept.asked, kept.read, kept.is_whole)

    return cost(turns, treatment)


def definition(count: Count) -> int:
    """Tokens of `run_code` in the list of tools, which every request has."""
    [tool] = [each for each in definitions(10, code=True) if each["name"] == RUN_CODE]
    return count(as_model_reads(tool))


def _key(name: str, arguments: Mapping[str, Any]) -> str:
    """JSON inside a text, which some servers take as an argument, counts by its value."""
    read = {key: _read(value) for key, value in arguments.items()}
    return f"{name} {json.dumps(read, sort_keys=True, ensure_ascii=False)}"


def _read(value: Any) -> Any:
    if isinstance(value, str) and value.startswith("{"):
        try:
            return json.loads(value)
        except ValueError:
            return value
    return value


async def replace_all(
    folders: Iterable[tuple[Path, Format]], count: Count, note: Callable[[str], None]
) -> tuple[list[Replaced], list[str]]:
    """The chosen series of the traces in ``folders`` with their programs, and a sentence for each that has
    none or whose program can't be run. note: is told of every file that can't be read.
    """
    known, sandbox = programs(), Sandbox()
    found: list[Replaced] = []
    missing: list[str] = []
    try:
        for folder, form in folders:
            for series in chosen(_all_series(folder, form, note), QUOTAS[form.name]):
                try:
                    code = filled(known[key_of(series)].strip(), calls_of(series))
                    found.append(replaced(series, code, await reply_of(code, series, sandbox), count))
                except KeyError:
                    missing.append(f"{key_of(series)}: there is no program.")
                except ProgramError as error:
                    missing.append(f"{key_of(series)}: {error}")
    finally:
        await sandbox.close()
    return found, missing


def _all_series(folder: Path, form: Format, note: Callable[[str], None]) -> Iterator[tuple[str, Series]]:
    for file in files_of(folder, form):
        name = file.relative_to(folder).as_posix()
        try:
            traces = read_file(file, name, form)
        except (UnreadableTraceError, OSError) as error:
            note(f"Skipped {name}: {error}")
            continue
        for trace in traces:
            yield from ((task_of(trace), each) for each in series_of(trace))
