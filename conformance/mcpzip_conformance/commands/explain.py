"""``explain``: one check on one subject, with all messages."""

import click
import msgspec
from mcpzip_fakes.record import Line
from rich.console import Console
from rich.text import Text

from mcpzip_conformance import output
from mcpzip_conformance.checks import ALL
from mcpzip_conformance.commands import side_by_side
from mcpzip_conformance.commands.full_transcript import Seen, explained
from mcpzip_conformance.commands.options import Limits, patience, timeout
from mcpzip_conformance.commands.progress import one_subject, until_interrupted
from mcpzip_conformance.report.matrix import mark
from mcpzip_conformance.runner import requirement
from mcpzip_conformance.selection import select
from mcpzip_conformance.transcript import SHOWN, Transcript, printable

_DIFF_STYLES = {"+": "green", "-": "red", "@": "cyan"}


@click.command("explain")
@click.argument("check")
@click.argument("subject")
@click.option("--json", "as_data", is_flag=True, help="As JSON, every message whole.")
@timeout
@patience
def explain_command(check: str, subject: str, as_data: bool, timeout: float, patience: float) -> None:
    """Play one check again and show its messages, directly to the server and through the proxy.

    A check without a comparison is also played without a proxy, to show both. The exit code doesn't depend on
    the result.
    """
    [found] = select(ALL, ids=[check])
    seen = until_interrupted(explained(one_subject(subject), found, Limits(1, timeout, patience)))
    if as_data:
        output.data(msgspec.json.format(msgspec.json.encode(_data(seen))).decode())
    else:
        _show(seen, Console())


def _show(seen: Seen, console: Console) -> None:
    check, verdict, title = seen.check, seen.verdict, seen.subject.title
    console.print(Text(printable(f"{check.id} ({check.level}), {title}"), style="bold"))
    console.print(Text(f"\n{check.requirement}"))
    console.print(Text(f"\nsource: {check.source}", style="dim"), soft_wrap=True)
    console.print()
    said = f"{mark(verdict).word.upper()}. {verdict.summary}".strip()
    console.print(Text(printable(said), style="bold"))
    for change in verdict.diff:
        console.print(Text(f"  {printable(change)}", style=_DIFF_STYLES.get(change[:1], "")), soft_wrap=True)
    through = side_by_side.side(seen.through)
    if seen.straight:
        straight = "the same check without a proxy" if seen.control else "directly to the server"
        console.print()
        told = side_by_side.rows(side_by_side.side(seen.straight), through)
        side_by_side.show(console, (straight, f"through {title}"), told)
    elif through:
        console.print(Text("\nThis check can't be played without a proxy.", style="dim"))
        side_by_side.show_one(console, f"through {title}", through)
    for server, lines in seen.servers.items():
        console.print(Text(printable(f"what the server {server} saw, through {title}"), style="bold"))
        for line in lines:
            console.print(Text(f"  {_event(line, lines[0].time)}"), soft_wrap=True)


def _event(line: Line, begun: float) -> str:
    """One line of a record, as a person reads it."""
    mark = {"in": "→", "out": "←"}.get(line.what, "·")
    said = line.text or (msgspec.json.encode(line.message).decode() if line.message else "")
    if not said:
        said = " ".join([line.what, *(f"{key}={value}" for key, value in line.detail.items())])
    text = printable(said)
    text = f"{text[:SHOWN]}… ({len(said)} characters)" if len(text) > SHOWN else text
    return f"{line.time - begun:7.3f} {mark} {text}"


def _data(seen: Seen) -> dict[str, object]:
    return {
        "subject": seen.subject.id,
        "check": requirement(seen.check),
        "verdict": seen.verdict,
        "straight": [_messages(transcript) for transcript in seen.straight],
        "straight_is_control": seen.control,
        "through": [_messages(transcript) for transcript in seen.through],
        "servers": seen.servers,
    }


def _messages(transcript: Transcript) -> list[dict[str, object]]:
    return [
        {"at": round(message.at, 6), "from": _SPEAKERS[message.sent], **_said(message.raw)}
        for message in transcript.messages
    ]


_SPEAKERS = {True: "client", False: "server", None: "transport"}


def _said(raw: bytes) -> dict[str, object]:
    """The message, byte for byte if it is JSON; else its text."""
    try:
        raw.decode()
        msgspec.json.decode(raw, type=msgspec.Raw)
    except (UnicodeDecodeError, msgspec.DecodeError):
        return {"text": raw.decode("utf-8", "backslashreplace")}
    return {"message": msgspec.Raw(raw)}
