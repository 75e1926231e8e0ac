"""The 34 cases of poisoned servers, as scenarios of `mcpzip-fake`, and what they list."""

from mcpzip_fakes.scenario import Scenario, names

from mcpzip.catalog import Listed


def scenario(number: int) -> Scenario:
    """The scenario of this case."""
    (name,) = [name for name in names() if name.startswith(f"poisoning/{number:02}-")]
    return Scenario.load(name)


def listed(told: Scenario, at: float, *, changed: bool = False) -> Listed:
    """What the server lists at ``at`` (Unix seconds): first, or after it has changed."""
    tools = told.changed_tools if changed and told.changed_tools else told.all_tools()
    return Listed(
        told.name,
        tuple(tool.raw.encode() for tool in tools if changed or not tool.late),
        at,
        instructions=told.instructions or "",
        prompts=tuple(offer.raw.encode() for offer in told.prompts),
        resources=tuple(offer.raw.encode() for offer in told.resources),
        templates=tuple(offer.raw.encode() for offer in told.resource_templates),
    )
