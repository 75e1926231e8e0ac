"""The runner on real processes: the control passes, a finding can be read, nothing stays behind. Wrong
proxies are test_conformance_mutants's."""

import asyncio
import os
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec
import pytest
from mcpzip_conformance.check import MUST, Check
from mcpzip_conformance.checks import ALL
from mcpzip_conformance.declaration import Shared
from mcpzip_conformance.mutants.hunt import hunt, right
from mcpzip_conformance.processes import is_running
from mcpzip_conformance.runner import run
from mcpzip_conformance.scene import SHOP, Call, Scene, server, tool
from mcpzip_conformance.stage import Stage
from mcpzip_conformance.subject import Start, Subject
from mcpzip_conformance.verdict import Report, Status

BY_ID = {check.id: check for check in ALL}
SAMPLE = (
    "protocol.version-2025-11-25",
    "protocol.version-2026-07-28",
    "protocol.ids",
    "protocol.malformed-line",
    "fidelity.is-error",
    "fidelity.meta",
    "fidelity.error",
    "fidelity.number-spelling",
    "fidelity.definition",
    "results.not-json",
    "resilience.slow-start",
    "resilience.crash-before-answer",
    "resilience.no-double-execution",
    "resilience.exit-on-eof",
    "search.exact-name",
    "search.limit",
    "arguments.as-text",
    "arguments.flat",
    "security.secrets-in-messages",
)

OVER_HTTP = (
    "protocol.version-2025-11-25",
    "protocol.http-unknown-session",
    "conversation.sampling",
    "security.sessions-apart",
)
OVER_SSE = (
    "protocol.ping",
    "fidelity.is-error",
    "conversation.progress",
    "conversation.elicitation-form",
    "fidelity.large-arguments",
)
SEVERAL = (
    "shared.results",
    "shared.cancel",
    "shared.elicitation",
    "shared.crash",
    "shared.disconnect",
    "shared.hang",
)


def troubles(report: Report) -> list[str]:
    return [
        f"{verdict.check}: {verdict.summary}\n" + "\n".join((*verdict.diff, *verdict.transcript))
        for subject in report.subjects
        for verdict in subject.verdicts
        if verdict.status in (Status.FAILED, Status.BROKEN)
    ]


async def test_without_a_proxy_every_check_that_applies_passes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    report = await run([Subject.load("direct")], [BY_ID[id] for id in SAMPLE])
    assert troubles(report) == []
    assert report.subjects[0].count(Status.PASSED) >= 8
    report = await run([Subject.load("direct-http")], [BY_ID[id] for id in OVER_HTTP])
    assert troubles(report) == []
    assert report.subjects[0].count(Status.PASSED) == len(OVER_HTTP)
    assert os.listdir(tmp_path) == []


async def test_mcpzip_passes() -> None:
    """One check of each group of the sample; .ci/run plays all, in every mode."""
    first = {id.partition(".")[0]: id for id in reversed(SAMPLE)}
    report = await run([Subject.load("mcpzip:meta")], [BY_ID[id] for id in first.values()])
    assert troubles(report) == []
    assert report.subjects[0].count(Status.PASSED) == len(first) == 7


@pytest.mark.parametrize("name", ["direct-http", "relay:names", "relay:names-http"])
async def test_several_clients_of_a_subject(name: str) -> None:
    subject = Subject.load(name)
    if subject.shared is None:  # over stdio its command is started once for each client
        subject = msgspec.structs.replace(subject, shared=Shared(processes="per-client"))
    report = await run([subject], [BY_ID[id] for id in SEVERAL])
    assert troubles(report) == []
    assert report.subjects[0].count(Status.PASSED) == len(SEVERAL)


@pytest.mark.skipif(os.name != "posix", reason="a daemon is found on POSIX only")
async def test_a_daemon_that_a_subject_leaves_is_ended() -> None:
    proxy = """
import subprocess, sys
sleep = "import sys, time; print('up', flush=True); time.sleep(600)"
command = [sys.executable, "-c", sleep, sys.argv[1]]
daemon = subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True)
daemon.stdout.readline()
print(daemon.pid, flush=True)
sys.stdin.read()
"""
    pids: list[int] = []

    async def play(stage: Stage) -> None:
        player = await stage.started(server(tools=[tool("echo")]))
        pids.append(int(await player.client.until(lambda messages: b"".join(player.client.junk))))
        assert is_running(pids[0])

    start = Start(command=(sys.executable, "-c", proxy, "{config}"))
    subject = msgspec.structs.replace(right("names"), start=start)
    [verdict] = (await run([subject], [made(play)])).subjects[0].verdicts
    assert (verdict.status, verdict.summary) == (Status.PASSED, "")
    assert not is_running(pids[0])


async def test_what_measures_is_played_last_one_at_a_time_and_on_an_idle_machine_only() -> None:
    under_way: list[str] = []
    log: list[str] = []

    def checked(id: str, *, timed: bool = False) -> Check:
        async def play(stage: Stage) -> None:
            under_way.append(id)
            log.append(" ".join(under_way))
            await asyncio.sleep(0)
            under_way.remove(id)

        return Check(id, MUST, "docs/x", (), False, timed, play)

    idle = iter([None, None, None, "It is busy.", "It is busy."])

    async def why_not_idle() -> str | None:
        log.append("asked")
        return next(idle)

    checks = [
        checked("cost.a", timed=True),
        checked("protocol.b"),
        checked("cost.c", timed=True),
        checked("cost.d"),
        checked("cost.e", timed=True),
    ]
    report = await run([Subject.load("direct")], checks, jobs=1, why_not_idle=why_not_idle)
    assert log == ["protocol.b", "asked", "cost.a", "asked", "asked", "cost.c", "asked", "cost.d", "asked"]
    verdicts = report.subjects[0].verdicts
    assert [verdict.check for verdict in verdicts] == [check.id for check in checks]
    assert [verdict.summary for verdict in verdicts] == ["", "", "It is busy.", "", "It is busy."]
    assert verdicts[2].status is verdicts[4].status is Status.SKIPPED


async def test_a_subject_that_shows_no_tools_is_not_asked_for_their_descriptions() -> None:
    subject = right("meta")
    hidden = msgspec.structs.replace(subject.tools, call=None, search=None, describe=None, hidden=True)
    [verdict] = (
        (
            await run(
                [msgspec.structs.replace(subject, tools=hidden)],
                [BY_ID["poisoning.quotes-an-attack"]],
                patience=1,
            )
        )
        .subjects[0]
        .verdicts
    )
    assert (verdict.status, verdict.summary) == (
        Status.SKIPPED,
        "It shows a model no definition of any server's tool.",
    )


async def test_over_the_transport_of_2024_11_05_the_fake_itself_passes() -> None:
    report = await run([Subject.load("direct-sse")], [BY_ID[id] for id in OVER_SSE])
    assert troubles(report) == []
    assert report.subjects[0].count(Status.PASSED) == len(OVER_SSE)


async def test_a_finding_is_a_diff_that_can_be_read() -> None:
    verdict = await hunt("drops-is-error")
    assert verdict.summary == "The answer to tools/call shop tell differs."
    assert verdict.diff[:2] == ("--- straight", "+++ through drops-is-error")
    assert [line for line in verdict.diff[2:] if line[0] in "+-"] == ['-  "isError": true']
    assert any('← {"jsonrpc":"2.0"' in line for line in verdict.transcript)


def wait_until_gone(pids: set[int]) -> None:
    deadline = time.monotonic() + 10
    while left := [pid for pid in pids if is_running(pid)]:
        assert time.monotonic() < deadline, f"{left} still run"
        time.sleep(0.01)


def made(play: Callable[[Stage], Awaitable[None]]) -> Check:
    return Check("protocol.made-up", MUST, "docs/x", (), False, False, play)


async def judged(
    play: Callable[[Stage], Awaitable[None]], subject: str = "direct", timeout: float = 20.0
) -> tuple[Status, str]:
    report = await run([Subject.load(subject)], [made(play)], timeout=timeout)
    [verdict] = report.subjects[0].verdicts
    return verdict.status, verdict.summary


async def test_a_check_that_does_not_end_is_ended() -> None:
    async def play(stage: Stage) -> None:
        await stage.through(server(tools=[tool("echo")]))
        await asyncio.Event().wait()

    assert await judged(play, timeout=1.0) == (Status.FAILED, "The check had not ended after 1 s.")


async def test_a_check_that_fails_itself_is_no_finding() -> None:
    async def play(stage: Stage) -> None:
        raise RuntimeError("a slip")

    assert await judged(play) == (Status.BROKEN, "The check itself failed: RuntimeError('a slip')")


async def test_a_control_that_fails_is_no_finding() -> None:
    async def play(stage: Stage) -> None:
        crash = {"kind": "crash", "when": "before"}
        await stage.same(Scene([server(tools=[tool("echo")], faults=[crash])], [Call("echo")]))

    status, summary = await judged(play)
    assert status is Status.BROKEN
    assert summary.startswith("The runner could not play it: the direct side failed: It closed its output")


async def test_what_cannot_be_started_is_a_finding() -> None:
    async def play(stage: Stage) -> None:
        await stage.through(server(tools=[tool("echo")]))

    subject = msgspec.structs.replace(
        Subject.load("mcpzip:meta"), start=Start(command=("no-such-proxy", "{config}"))
    )
    [verdict] = (await run([subject], [made(play)])).subjects[0].verdicts
    assert verdict.status is Status.FAILED
    assert verdict.summary.startswith("no-such-proxy can't be started: ")


async def test_a_subject_that_says_why_it_leaves_is_quoted() -> None:
    async def play(stage: Stage) -> None:
        await stage.through(server(tools=[tool("echo")]))

    leave = "import sys; sys.exit('no licence \\x1b[31m found')"
    subject = msgspec.structs.replace(
        Subject.load("mcpzip:meta"), start=Start(command=(sys.executable, "-c", leave))
    )
    [verdict] = (await run([subject], [made(play)])).subjects[0].verdicts
    assert verdict.summary == "It closed its output, saying: no licence  found"  # without the colour


async def test_a_subject_that_never_answers_is_quoted() -> None:
    async def play(stage: Stage) -> None:
        stage.patience = 0.5
        await stage.through(server(tools=[tool("echo")]))

    silent = "import sys, time; print('Error: KEY is not set', file=sys.stderr, flush=True); sys.stdin.read()"
    subject = msgspec.structs.replace(
        Subject.load("mcpzip:meta"), start=Start(command=(sys.executable, "-c", silent))
    )
    [verdict] = (await run([subject], [made(play)])).subjects[0].verdicts
    assert verdict.summary == "There was no answer to initialize within 1.5 s, saying: Error: KEY is not set"


async def test_several_calls_in_both_eras_and_their_record() -> None:
    async with Stage(Subject.load("direct")) as stage:
        shop = server(tools=[tool("pay", text="paid {n}", fill=True)])
        for version in ("2024-11-05", "2026-07-28"):
            replies = await stage.same(
                Scene([shop], [Call("pay", b'{"n":1}'), Call("pay", b'{"n":2}')], version)
            )
            assert [reply.text for reply in replies] == ["paid 1", "paid 2"]
        assert [call["arguments"] for call in stage.record(SHOP).calls("pay")] == [{"n": 1}, {"n": 2}]


async def test_an_end_that_fails_keeps_no_other_from_ending(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    pids: set[int] = set()

    async def play(stage: Stage) -> None:
        stubborn = server(tools=[tool("echo")], faults=["ignore-eof", "ignore-sigterm"])
        for _ in range(2):
            player = await stage.through(stubborn)
            pids.add(player.client.process.pid)

        end = player.client.end

        async def fail() -> None:
            await end(0.0)
            raise RuntimeError("a slip")

        monkeypatch.setattr(player.client, "end", fail)
        await stage.through(stubborn)

    await judged(play)
    assert len(pids) == 2
    await asyncio.to_thread(wait_until_gone, pids)
    assert os.listdir(tmp_path) == []


async def test_the_processes_of_a_check_are_gone_when_it_is_over() -> None:
    async with Stage(Subject.load("direct")) as stage:
        stubborn = server(tools=[tool("echo")], faults=["ignore-eof", "ignore-sigterm", "fork"])
        player = await stage.through(stubborn)
        pids = {player.client.process.pid}
        pids |= {int(str(line.detail["child"])) for line in stage.record(SHOP).events("grandchild")}
        assert len(pids) == 2
        assert all(map(is_running, pids))
    await asyncio.to_thread(wait_until_gone, pids)
