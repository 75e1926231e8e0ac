"""The source of a program: which tools it names, and the form in which the sandbox runs it (pure).

The rules:

1. Nothing here runs. What is not Python, or is too long or too deep, is refused before any call is made.
2. The sandbox shows only texts to the outside, so that nothing large is converted. Each value that the
   program may end with (a top-level ``return``, or its last expression) is put into `VALUE`, which makes JSON
   of it.
3. A tool is an ordinary function, and can be awaited all the same. A call that the program awaits, or hands
   to `asyncio.gather` and the like, gets the name of the asynchronous function (`AWAITED`). Which calls these
   are follows from the text: what is awaited there, and what was put into a variable that is.
"""

import ast
import keyword
import warnings
from collections.abc import Collection, Iterable, Iterator
from itertools import accumulate

import msgspec

from mcpzip.model.errors import InvalidArgumentsError
from mcpzip.model.lazy_pattern import lazy_pattern
from mcpzip.model.limits import PROGRAM

CALL = "call"
"""The function that calls a tool whose name is no Python name: ``call("server__tool", {"key": value})``."""
VALUE = "mcpzip_value"
AWAITED = "_awaited"

_ASYNCIO = frozenset(("gather", "run", "sleep"))
"""What `asyncio` has in the sandbox."""
BRACES = 3_000
"""Of a program: Python's parser takes 10 µs for each value in an f-string."""
STATEMENTS = 6_000
"""Lines and semicolons of a program. With 16,000 the parser and its tree take 90 ms."""
_CONTAINERS = frozenset(("list", "tuple", "set", "dict", "zip", "enumerate", "reversed", "map", "sorted"))
_OF_DICTS = frozenset(("values", "items"))
_GROWS = frozenset(("append", "extend", "insert", "add", "update", "setdefault"))


class Program(msgspec.Struct, frozen=True):
    """text: the source, with ``\\n`` at the end of lines. form: what the sandbox runs. reads: the names that
    it reads. tools: those of them that may be tools and that it doesn't define itself. assigns: the names
    that it gives a value at its top level. imports: those of them that are modules, or of modules. mappings:
    the lines and columns, from 1, of arguments such as ``**more``.
    """

    text: str
    form: str
    reads: frozenset[str]
    tools: tuple[str, ...]
    assigns: frozenset[str]
    imports: frozenset[str]
    mappings: frozenset[tuple[int, int]] = frozenset()

    def line(self, number: int) -> str:
        """The line with this number, from 1, without the spaces around it; "" if there is none."""
        lines = self.text.split("\n")
        return lines[number - 1].strip() if 0 < number <= len(lines) else ""


class Parsed(msgspec.Struct, frozen=True):
    """text: as in `Program`. module: its syntax tree."""

    text: str
    module: ast.Module


def parse(code: str) -> Parsed:
    """The syntax tree of ``code``. Python's parser needs the large stack of the main thread for hostile
    texts, and 50 ms at most for `limits.PROGRAM` bytes. Raises InvalidArgumentsError, which says in which
    line it can't be read.
    """
    if len(code) > PROGRAM:  # before anything is made of it
        raise too_long()
    text = program_text(code)
    _check(text)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return Parsed(text, ast.parse(text))
    except SyntaxError as error:
        where = f"line {error.lineno}: " if error.lineno else ""
        raise InvalidArgumentsError(f"'code' is not Python: {where}{error.msg}. Nothing ran.") from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise InvalidArgumentsError("'code' can't be read: it is nested too deeply. Nothing ran.") from error


def program_text(code: str) -> str:
    """``code`` with ``\\n`` at the end of lines."""
    return code.replace("\r\n", "\n").replace("\r", "\n")


def is_tool_name(name: str) -> bool:
    """Whether ``name`` has the form of the name of a tool: ``server__tool``."""
    server, found, tool = name.partition("__")
    return bool(server and found and tool) and not name.startswith("_")


def python_name(name: str) -> str:
    """The name of a tool as a program writes it: other characters than those of Python names are ``_``."""
    found = "".join(each if each.isalnum() or each == "_" else "_" for each in name)
    return f"{found}_" if keyword.iskeyword(found) else found


def too_long() -> InvalidArgumentsError:
    """The error for a program of more than `limits.PROGRAM` bytes."""
    return InvalidArgumentsError(f"'code' has more than {PROGRAM:,} bytes. Nothing ran: run it in parts.")


def _check(text: str) -> None:
    try:
        size = len(text.encode())
    except UnicodeEncodeError as error:
        raise InvalidArgumentsError("'code' has half of a surrogate pair. Nothing ran.") from error
    if size > PROGRAM:
        raise too_long()
    if text.count("{") > BRACES:
        raise InvalidArgumentsError(f"'code' has more than {BRACES:,} times '{{'. Nothing ran.")
    if text.count("\n") + text.count(";") > STATEMENTS:
        raise InvalidArgumentsError(f"'code' has more than {STATEMENTS:,} statements. Nothing ran.")
    if "\0" in text:
        raise InvalidArgumentsError("'code' has a NUL character. Nothing ran.")
    if _LONG_IMPORT.search(text):
        raise InvalidArgumentsError("'code' has an import that is too long. Nothing ran.")


_LONG_IMPORT = lazy_pattern(r"\b(?:import|from)\s[\w.\s\\]{2000}")
"""Python's parser needs a time that grows with the square of the length of a dotted name."""


def read_program(parsed: Parsed) -> Program:
    """The program, of its syntax tree."""
    text, module = parsed.text, parsed.module
    encoded = text.encode()
    nodes = list(ast.walk(module))
    reads = [node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)]
    own = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    own |= {node.arg for node in nodes if isinstance(node, ast.arg)}
    own |= {node.name for node in nodes if isinstance(node, _FUNCTIONS)}
    names = (name for name in reads if is_tool_name(name) or name == CALL)
    tools = tuple(dict.fromkeys(name for name in names if name not in own))
    _check_asyncio(nodes, frozenset(own))
    places = _Places(encoded)
    awaited = _AwaitedTools(nodes, frozenset(tools)).found
    inserted = [(places.end(name), AWAITED) for name in awaited]
    for value in _values(module.body):
        inserted += [(places.start(value), f"{VALUE}(("), (places.end(value), "))")]
    form, done = [], 0
    for offset, piece in sorted(inserted, key=lambda each: each[0]):
        form += [encoded[done:offset], piece.encode()]
        done = offset
    form.append(encoded[done:])
    return Program(
        text,
        b"".join(form).decode(),
        frozenset(reads),
        tools,
        frozenset(_assigned(module.body)),
        frozenset(_imported(module.body)),
        frozenset(places.columns(node for node in nodes if isinstance(node, ast.keyword) and not node.arg)),
    )


class _Places:
    """Offsets in the source, in bytes."""

    def __init__(self, encoded: bytes) -> None:
        self._encoded = encoded
        self._lines = [0, *accumulate(len(line) + 1 for line in encoded.split(b"\n"))]

    def start(self, node: ast.expr) -> int:
        return self._lines[node.lineno - 1] + node.col_offset

    def end(self, node: ast.expr) -> int:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self._lines[node.end_lineno - 1] + node.end_col_offset

    def columns(self, nodes: Iterable[ast.keyword]) -> Iterator[tuple[int, int]]:
        """Their lines and columns in characters, from 1."""
        for node in nodes:
            start = self._lines[node.lineno - 1]
            before = self._encoded[start : start + node.col_offset]
            yield node.lineno, len(before.decode("utf-8", "replace")) + 1


def _values(body: list[ast.stmt]) -> Iterator[ast.expr]:
    """What the program may end with."""
    for statement in _statements(body):
        if isinstance(statement, ast.Return) and statement.value is not None:
            yield statement.value
    # What is starred is Python for the parser only: the run says it.
    if body and isinstance(body[-1], ast.Expr) and not isinstance(body[-1].value, ast.Starred):
        yield body[-1].value


def _statements(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Those of the top level, with those of its blocks, but not those of functions and classes."""
    waiting = list(body)
    while waiting:
        statement = waiting.pop()
        yield statement
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        for field in ("body", "orelse", "finalbody"):
            waiting += getattr(statement, field, [])
        for handler in (*getattr(statement, "handlers", []), *getattr(statement, "cases", [])):
            waiting += handler.body


def _imported(body: list[ast.stmt]) -> Iterator[str]:
    for statement in _statements(body):
        if isinstance(statement, ast.Import | ast.ImportFrom):
            yield from ((each.asname or each.name).partition(".")[0] for each in statement.names)


def _assigned(body: list[ast.stmt]) -> Iterator[str]:
    """The names to which a value is given, imports included, but those of comprehensions and functions."""
    yield from _imported(body)
    for statement in _statements(body):
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield statement.name
            continue
        waiting: list[ast.AST] = [statement]
        while waiting:
            node = waiting.pop()
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                yield node.id
            inner = (each for each in ast.iter_child_nodes(node) if not isinstance(each, _SCOPES))
            waiting += inner


_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_SCOPES = (ast.stmt, ast.comprehension, ast.Lambda, ast.ExceptHandler)
"""What has names of its own, or is looked at by itself."""


class _AwaitedTools:
    """found: the names of ``tools``, where they are used as functions whose results are awaited."""

    def __init__(self, nodes: list[ast.AST], tools: Collection[str]) -> None:
        self._tools = tools
        self._names: dict[int, ast.Name] = {}
        self._seen: set[int] = set()
        self._variables: set[str] = set()
        self._functions: set[str] = set()
        self._given, self._returned = _given(nodes), _returned(nodes)
        for node in nodes:
            if isinstance(node, ast.Await):
                self._follow([node.value])
            elif isinstance(node, ast.Call) and _awaits(node):
                self._follow([*node.args, *(each.value for each in node.keywords)])

    @property
    def found(self) -> list[ast.Name]:
        return list(self._names.values())

    def _follow(self, expressions: list[ast.expr]) -> None:
        """Finds the calls whose results these expressions are made of, or are."""
        waiting = expressions
        while waiting:
            node = waiting.pop()
            if id(node) in self._seen:
                continue
            self._seen.add(id(node))
            if isinstance(node, ast.Call):
                name = _called(node)
                if isinstance(node.func, ast.Name) and name in _CONTAINERS:
                    waiting += node.args
                elif isinstance(node.func, ast.Name):
                    waiting += self._function(node.func)
                elif name in _OF_DICTS and isinstance(node.func, ast.Attribute):
                    waiting.append(node.func.value)
                # What is put into `asyncio.gather` and the like is found where that is called.
            elif isinstance(node, ast.Name):
                if node.id not in self._variables:
                    self._variables.add(node.id)
                    waiting += self._given.get(node.id, ())
            elif isinstance(node, ast.ListComp | ast.SetComp | ast.GeneratorExp):
                waiting.append(node.elt)
            elif isinstance(node, ast.DictComp):
                waiting.append(node.value)
            elif isinstance(node, ast.Dict):
                waiting += node.values
            elif isinstance(node, ast.List | ast.Tuple | ast.Set):
                waiting += node.elts
            elif isinstance(node, ast.IfExp):
                waiting += [node.body, node.orelse]
            elif isinstance(node, ast.Lambda):
                waiting.append(node.body)
            elif isinstance(node, ast.BinOp):  # lists are added
                waiting += [node.left, node.right]
            elif isinstance(node, ast.Starred | ast.NamedExpr | ast.Subscript):
                waiting.append(node.value)

    def _function(self, function: ast.Name) -> Iterator[ast.expr]:
        """What the function of this name returns, if that isn't a tool: its results are awaited."""
        waiting = [function]
        while waiting:
            name = waiting.pop()
            if name.id in self._tools:
                self._names[id(name)] = name
            elif name.id not in self._functions:
                self._functions.add(name.id)
                yield from self._returned.get(name.id, ())
                for value in self._given.get(name.id, ()):
                    if isinstance(value, ast.Name):
                        waiting.append(value)
                    elif isinstance(value, ast.Lambda):
                        yield value


def _returned(nodes: list[ast.AST]) -> dict[str, list[ast.expr]]:
    """By function that isn't asynchronous: what it returns."""
    return {
        node.name: [
            each.value
            for each in _statements(node.body)
            if isinstance(each, ast.Return) and each.value is not None
        ]
        for node in nodes
        if isinstance(node, ast.FunctionDef)
    }


def _given(nodes: list[ast.AST]) -> dict[str, list[ast.expr]]:
    """By variable or parameter: the expressions from which it gets its values."""
    given: dict[str, list[ast.expr]] = {}
    functions = {node.name: node.args for node in nodes if isinstance(node, _FUNCTIONS)}

    def gives(target: ast.expr, value: ast.expr) -> None:
        for node in ast.walk(target):
            if isinstance(node, ast.Name):
                given.setdefault(node.id, []).append(value)

    for node in nodes:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                gives(target, node.value)
        elif isinstance(node, ast.AnnAssign | ast.AugAssign | ast.NamedExpr):
            if node.value is not None:
                gives(node.target, node.value)
        elif isinstance(node, ast.For | ast.AsyncFor | ast.comprehension):
            gives(node.target, node.iter)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _GROWS:
            for value in node.args:
                gives(node.func.value, value)
        elif isinstance(node, ast.Call) and (parameters := functions.get(_called(node))) is not None:
            for parameter, value in zip([*parameters.posonlyargs, *parameters.args], node.args, strict=False):
                given.setdefault(parameter.arg, []).append(value)
            for each in node.keywords:
                if each.arg is not None:
                    given.setdefault(each.arg, []).append(each.value)
    return given


def _check_asyncio(nodes: list[ast.AST], own: Collection[str]) -> None:
    """Refuses what `asyncio` doesn't have in the sandbox, before calls are made. own: names that the program
    gives to something else. Raises InvalidArgumentsError.
    """
    for node in nodes:
        if not isinstance(node, ast.Attribute | ast.Call) or _of_asyncio(node, own) is None:
            continue
        if isinstance(node, ast.Attribute) and node.attr not in _ASYNCIO:
            raise InvalidArgumentsError(
                f"Line {node.lineno}: 'asyncio' has no {node.attr[:50]!r} here, only gather, run and sleep. "
                "Await the calls, or hand them to gather, which runs them side by side. Nothing ran."
            )
        if isinstance(node, ast.Call) and _called(node) == "gather" and node.keywords:
            raise InvalidArgumentsError(
                f"Line {node.lineno}: 'gather' takes no named arguments here. To catch errors, await each "
                "call in an async function with try and except. Nothing ran."
            )


def _of_asyncio(node: ast.Attribute | ast.Call, own: Collection[str]) -> ast.Attribute | None:
    """The member of `asyncio` that ``node`` is or calls."""
    member = node.func if isinstance(node, ast.Call) else node
    if not isinstance(member, ast.Attribute) or not isinstance(member.value, ast.Name):
        return None
    return member if member.value.id == "asyncio" and "asyncio" not in own else None


def _awaits(node: ast.Call) -> bool:
    """Whether it awaits its arguments: `asyncio.gather`, `asyncio.run`."""
    if _called(node) == "gather":
        return True
    return _called(node) == "run" and _of_asyncio(node, ()) is not None


def _called(node: ast.Call) -> str:
    """The last part of the name of the function that is called; "" for one without a name."""
    if isinstance(node.func, ast.Attribute):
        return node.func.attr
    return node.func.id if isinstance(node.func, ast.Name) else ""
