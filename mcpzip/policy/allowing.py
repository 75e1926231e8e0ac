"""What has to be true for a person to allow calls, on the command line and on the page."""

from mcpzip.config import Config
from mcpzip.model.entry import Entry
from mcpzip.model.errors import McpzipError
from mcpzip.policy.allowances import Allowance
from mcpzip.policy.decision import Decisions, Verdict
from mcpzip.policy.hashes import arguments_hash, definition_hash
from mcpzip.policy.opening import open_allowances
from mcpzip.policy.refused import RefusedCall


def allowable(config: Config, entry: Entry) -> Verdict:
    """What the policy says of calls of ``entry``. Raises McpzipError if it denies them."""
    verdict = Decisions(config).of(entry)
    if verdict.decision == "deny":
        raise McpzipError(
            f'{entry.name} is denied by policy: {verdict.rule} is "deny" in {config.path}. Edit it to allow '
            "calls."
        )
    return verdict


def check_unchanged(entry: Entry, refused: RefusedCall) -> None:
    """Raises McpzipError if ``entry``, the tool of a refused call, isn't what it was then."""
    if definition_hash(entry) != refused.definition:
        raise McpzipError(f"{entry.name} was changed since: the call has to be made again.")


def allow_once(config: Config, entry: Entry, refused: RefusedCall, now: float, seconds: float) -> None:
    """Allows ``refused``, a call of ``entry``, once within ``seconds``. now: Unix seconds. Raises
    McpzipError; OSError if that can't be stored.
    """
    allowable(config, entry)
    check_unchanged(entry, refused)
    hashed = arguments_hash(refused.arguments.encode())
    with open_allowances(config) as allowances:
        allowances.allow(Allowance(entry.name, now + seconds, now, refused.definition, hashed, once=True))
