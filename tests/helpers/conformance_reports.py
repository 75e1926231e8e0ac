"""Reports to be rendered: small, large, empty, hostile."""

from dataclasses import replace

from mcpzip_conformance.verdict import Measure, Report, Requirement, Status, SubjectReport, Verdict

PASSED, FAILED, SKIPPED, BROKEN = Status.PASSED, Status.FAILED, Status.SKIPPED, Status.BROKEN
HOSTILE = (
    "</script><img src=x onerror=alert(1)>|`*_[b](javascript:0)_*`|&amp;\x1b[31m\x00\u2028\ud800 {{report}}"
)

CHECKS = (
    ("protocol.ping", "must"),
    ("protocol.ids", "must"),
    ("protocol.batch", "should"),
    ("fidelity.text", "must"),
    ("fidelity.is-error", "must"),
    ("fidelity.meta", "should"),
    ("fidelity.number-spelling", "may"),
    ("resilience.no-double-execution", "must"),
    ("search.exact-name", "should"),
    ("security.secrets-in-messages", "must"),
    ("cost.start-up", "may"),
    ("cost.context", "may"),
)
FIGURES = {
    "cost.start-up": (("", "ms"),),
    "cost.context": (("tools/list", "tokens"), ("a search", "tokens")),
}


def requirement(id: str, level: str) -> Requirement:
    text = f"What `{id}` asks for.\n\nAnd why."
    source = "https://example.org/spec#" + id
    return Requirement(id, id.partition(".")[0], level, text.partition("\n")[0], text, source, id in FIGURES)


def verdict(id: str, level: str, status: Status = PASSED, **more: object) -> Verdict:
    made = Verdict(id, id.partition(".")[0], level, status, 0.25)
    if status is not PASSED:
        made = replace(made, summary=f"Why {id} is {status.value}.")
    if status is FAILED:
        made = replace(
            made,
            diff=("--- straight", "+++ through", "@@ -1 +1 @@", '-  "isError": true', '+  "isError": false'),
            straight=('  0.001 → {"id":1}', '  0.002 ← {"id":1,"result":{"isError":true}}'),
            transcript=('  0.003 → {"id":1}', '  0.009 ← {"id":1,"result":{}}'),
        )
    return replace(made, **more)  # type: ignore[arg-type]


def subject(number: int, statuses: dict[str, Status] | None = None, **more: object) -> SubjectReport:
    made = []
    for id, level in CHECKS:
        one = verdict(id, level, (statuses or {}).get(id, PASSED))
        if id in FIGURES and one.status is PASSED:
            one = replace(
                one,
                measured=tuple(
                    Measure(name, 1234.5 * number + at, unit) for at, (name, unit) in enumerate(FIGURES[id])
                ),
            )
        made.append(one)
    about = f"Proxy number {number}, over stdio."
    whole = SubjectReport(
        f"proxy-{number}", f"Proxy {number}", about, tuple(made), f"1.{number}", seconds=3.5
    )
    return replace(whole, **more)  # type: ignore[arg-type]


def pinned(whole: SubjectReport, *ids: str) -> SubjectReport:
    verdicts = (replace(one, pinned="issue 7") if one.check in ids else one for one in whole.verdicts)
    return replace(whole, verdicts=tuple(verdicts))


def made(*subjects: SubjectReport, expecting: bool = False) -> Report:
    checks = tuple(requirement(id, level) for id, level in CHECKS)
    return Report("2026-11-22T07:40:00+00:00", 12.25, "3.11.7", "linux", checks, subjects, expecting)


ABSENT = subject(9, id="absent", title="Absent", not_run="It needs Go.", verdicts=())
SAMPLE = made(
    subject(1, homepage="https://example.org/one"),
    subject(2, {"fidelity.is-error": FAILED, "fidelity.meta": FAILED, "search.exact-name": SKIPPED}),
    pinned(
        subject(3, {"protocol.ids": FAILED, "protocol.batch": BROKEN, "cost.start-up": FAILED}),
        "protocol.ids",
        "protocol.ping",
    ),
    ABSENT,
)
LARGE = made(*(subject(number, {"protocol.ids": FAILED}) for number in range(1, 9)), ABSENT)
BARE = made(ABSENT)
EVIL = replace(
    made(
        replace(
            subject(
                1, id=HOSTILE, title=HOSTILE, version=HOSTILE, about=HOSTILE, homepage="javascript:alert(1)"
            ),
            verdicts=tuple(
                replace(
                    verdict(id, level, FAILED),
                    summary=HOSTILE,
                    diff=(HOSTILE,),
                    transcript=(HOSTILE,),
                    pinned=why,
                )
                for (id, level), why in zip(CHECKS, ["", HOSTILE] * 6, strict=True)
            ),
        ),
        replace(ABSENT, not_run=HOSTILE),
    ),
    platform=HOSTILE,
)
REPORTS = {"sample": SAMPLE, "large": LARGE, "bare": BARE, "evil": EVIL}
