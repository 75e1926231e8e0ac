"""``explain``: one check on one subject, with all messages."""

import click
import msgspec
from mcpzip_fakes.record import Line
from rich.console import Console
from rich.text import Text

from mcpzip_conformance import output
from mcpzip_conformance.checks import ALL
from mcpzip_conformance.commands import side_by_side
from mcpzip_conformance.commands.completion import complete_checks, complete_subjects
from mcpzip_conformance.commands.full_transcript import PlayedCheck, play_with_control
from mcpzip_conformance.commands.options import Limits, patience, timeout
from mcpzip_conformance.commands.progress import one_subject, until_interrupted
from mcpzip_conformance.report.matrix import mark
from mcpzip_conformance.runner import requirement
from mcpzip_conformance.selection import select
from mcpzip_conformance.transcript import SHOWN, Transcript, printable

_DIFF_STYLES = {"+": "green", "-": "red", "@": "cyan"}


@click.command("explain")
@click.argument("check", shell_complete=complete_checks)
@click.argument("subject", shell_complete=complete_subjects)
@click.option("--json", "as_data", is_flag=True, help="As JSON, every message whole.")
@timeout
@patience
def explain_command(check: str, subject: str, as_data: bool, timeout: float, patience: float) -> None:
    """Play one check again and show its messages, directly to the server and through the proxy.

    A check without a comparison is also played without a proxy, to show both. The exit code doesn't depend on
    the result.
    """
    [selected] = select(ALL, ids=[check])
    played = until_interrupted(
        play_with_control(one_subject(subject), selected, Limits(1, timeout, patience))
    )
    if as_data:
        output.data(msgspec.json.format(msgspec.json.encode(_data(played))).decode())
    else:
        _show(played, Console())


def _show(played: PlayedCheck, console: Console) -> None:
    check, verdict, title = played.check, played.verdict, played.subject.title
    console.print(Text(printable(f"{check.id} ({check.level}), {title}"), style="bold"))
    console.print(Text(f"\n{check.requirement}"))
    console.print(Text(f"\nsource: {check.source}", style="dim"), soft_wrap=True)
    console.print()
    outcome = f"{mark(verdict).word.upper()}. {verdict.summary}".strip()
    console.print(Text(printable(outcome), style="bold"))
    for change in verdict.diff:
        console.print(Text(f"  {printable(change)}", style=_DIFF_STYLES.get(change[:1], "")), soft_wrap=True)
    through = side_by_side.side(played.through)
    if played.straight:
        straight = "the same check without a proxy" if played.control else "directly to the server"
        console.print()
        rows = side_by_side.rows(side_by_side.side(played.straight), through)
        side_by_side.show(console, (straight, f"through {title}"), rows)
    elif through:
        console.print(Text("\nThis check can't be played without a proxy.", style="dim"))
        side_by_side.show_one(console, f"through {title}", through)
    for server, lines in played.servers.items():
        console.print(Text(printable(f"what the server {server} saw, through {title}"), style="bold"))
        for line in lines:
            console.print(Text(f"  {_event(line, lines[0].time)}"), soft_wrap=True)


def _event(line: Line, begun: float) -> str:
    """One line of a record, readable."""
    mark = {"in": "→", "out": "←"}.get(line.what, "·")
    content = line.text or (msgspec.json.encode(line.message).decode() if line.message else "")
    if not content:
        content = " ".join([line.what, *(f"{key}={value}" for key, value in line.detail.items())])
    text = printable(content)
    text = f"{text[:SHOWN]}… ({len(content)} characters)" if len(text) > SHOWN else text
    return f"{line.time - begun:7.3f} {mark} {text}"


def _data(played: PlayedCheck) -> dict[str, object]:
    return {
        "subject": played.subject.id,
        "check": requirement(played.check),
        "verdict": played.verdict,
        "straight": [_messages(transcript) for transcript in played.straight],
        "straight_is_control": played.control,
        "through": [_messages(transcript) for transcript in played.through],
        "servers": played.servers,
    }


def _messages(transcript: Transcript) -> list[dict[str, object]]:
    return [
        {"at": round(message.at, 6), "from": _SPEAKERS[message.sent], **_said(message.raw)}
        for message in transcript.messages
    ]


_SPEAKERS = {True: "client", False: "server", None: "transport"}


def _said(raw: bytes) -> dict[str, object]:
    """The message, byte for byte if it is JSON; otherwise its text."""
    try:
        raw.decode()
        msgspec.json.decode(raw, type=msgspec.Raw)
    except (UnicodeDecodeError, msgspec.DecodeError):
        return {"text": raw.decode("utf-8", "backslashreplace")}
    return {"message": msgspec.Raw(raw)}
