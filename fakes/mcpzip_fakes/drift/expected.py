"""What a cassette says of one session: its questions, its notifications, its lists (pure)."""

from collections.abc import Iterable, Sequence

from mcpzip.cassettes.cassette import Exchange
from mcpzip.wire import PROTOCOL_VERSION_KEY
from mcpzip_fakes.answer import JsonObject
from mcpzip_fakes.cassettes.messages import Heard, Message, read_message
from mcpzip_fakes.drift.catalog import LISTS
from mcpzip_fakes.drift.drift import Drift
from mcpzip_fakes.request import as_object

PROGRESS = "notifications/progress"


def progress_token(message: Message) -> object:
    """The token that a request gives for its progress, or that a notification of progress has."""
    if message.method == PROGRESS:
        return message.params.get("progressToken")
    return as_object(message.params.get("_meta")).get("progressToken")


def is_modern(heard: Heard) -> bool:
    """Whether an exchange began with a request of the stateless era."""
    meta = as_object(heard.request.params.get("_meta")) if heard.request else {}
    return PROTOCOL_VERSION_KEY in meta


def babbles(heard: Heard) -> bool:
    """Whether the server sent something in an exchange that is no message."""
    return any(event.kind == "send" and read_message(event.data) is None for event in heard.exchange.events)


class Questions:
    """What a recorded server asked its client in a session, and what it got.

    All questions of a method are one queue: the server may ask in another order now.
    """

    def __init__(self, exchanges: Iterable[Exchange]) -> None:
        self._answers: dict[str, list[bytes]] = {}
        for exchange in exchanges:
            open_questions: dict[object, str] = {}
            for event in exchange.events:
                message = read_message(event.data) if event.kind in ("send", "receive") else None
                if message is None or isinstance(message.id, list | dict):
                    continue
                if event.kind == "send" and message.is_request and message.method != "ping":
                    open_questions[message.id] = message.method
                    self._answers.setdefault(message.method, [])
                elif event.kind == "receive" and (method := open_questions.pop(message.id, None)):
                    self._answers[method].append(event.data)
        self._next = dict.fromkeys(self._answers, 0)

    def answer(self, method: str) -> bytes | None:
        """The next recorded answer to such a question, the last one again if there is no other; None if there
        was none."""
        answers = self._answers.get(method)
        if not answers:
            return None
        number = self._next[method]
        self._next[method] = number + 1
        return answers[min(number, len(answers) - 1)]


def questions(heard: Heard) -> set[str]:
    """The methods of the server's requests in an exchange, without ``ping``."""
    messages = [read_message(event.data) for event in heard.exchange.events if event.kind == "send"]
    return {each.method for each in messages if each is not None and each.is_request} - {"ping"}


def notifications(heard: Heard) -> set[tuple[str, str]]:
    """The methods of the notifications in an exchange; of progress with the title of the request."""
    found = set()
    for event in heard.exchange.events:
        message = read_message(event.data) if event.kind == "send" else None
        if message is not None and message.method and message.id is None:
            found.add((message.method, heard.title if message.method == PROGRESS else ""))
    return found


class Listing:
    """A list over all its pages. is_whole: whether the client read the last one."""

    def __init__(self) -> None:
        self.items: list[JsonObject] = []
        self.is_whole = False


def listings(exchanges: Sequence[Heard]) -> dict[int, Listing]:
    """The lists of a session, by the number of the exchange with the first page. Those that were answered
    with an error, or not at all, are not among them."""
    found: dict[int, Listing] = {}
    last: dict[str, Listing] = {}
    for each in exchanges:
        if each.request is None or each.request.method not in LISTS or each.reply is None:
            continue
        result = as_object(each.reply.result)
        items = result.get(LISTS[each.request.method][0])
        if not isinstance(items, list):
            continue
        if "cursor" not in each.request.params:
            last[each.request.method] = found[each.number] = Listing()
        if (listing := last.get(each.request.method)) is not None:
            listing.items += [as_object(item) for item in items]
            listing.is_whole = "nextCursor" not in result
    return found


def only_read(tools: Iterable[JsonObject]) -> dict[str, bool]:
    """By the name of a tool, whether it says that it only reads."""
    return {
        str(tool.get("name")): as_object(tool.get("annotations")).get("readOnlyHint") is True
        for tool in tools
    }


def notification_drifts(
    expected: set[tuple[str, str]], known: set[tuple[str, str]], came: set[tuple[str, str]]
) -> Iterable[Drift]:
    """Which notifications are missing, and which are new. known: those that may come."""
    for method, title in sorted(expected - came):
        yield Drift(
            severity="changed",
            area="answers",
            kind="notification-missing",
            place=title or "the session",
            what=f"{method} is not sent any more",
        )
    for method, title in sorted(came - known):
        yield Drift(
            severity="added",
            area="answers",
            kind="notification-new",
            place=title or "the session",
            what=f"{method} is sent now",
        )


def question_drifts(expected: set[str], known: set[str], came: set[str]) -> Iterable[Drift]:
    """Which questions are not asked any more, and which are new. known: those that may be asked."""
    for method in sorted(expected - came):
        yield Drift(
            severity="changed",
            area="answers",
            kind="question-missing",
            place="the session",
            what=f"the server does not ask {method} any more",
        )
    for method in sorted(came - known):
        yield Drift(
            severity="breaking",
            area="answers",
            kind="question-new",
            place="the session",
            what=f"the server asks {method} now, which the recorded client was not asked",
        )
