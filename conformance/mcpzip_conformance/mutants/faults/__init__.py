"""The faults, by what they break.

results     the result of a call, as the client gets it
requests    the request of a call, as the server gets it
protocol    ids, versions, handshakes and invalid messages
questions   requests of servers to clients
talk        messages during a call, and notifications of changes
offers      lists, definitions, resources, prompts
servers     broken servers, shutdown, secrets
hostile     hostile servers
poisoned    a gate for poisoned servers
finding     the relay's own three tools
kept        large results
coding      programs
web         HTTP
shared      several clients
"""

from collections.abc import Mapping

from mcpzip_conformance.mutants.faults import (
    coding,
    finding,
    hostile,
    kept,
    offers,
    poisoned,
    protocol,
    questions,
    requests,
    results,
    servers,
    shared,
    talk,
    web,
)
from mcpzip_conformance.mutants.faults.fault import Fault

__all__ = ["FAULTS", "Fault"]

FAULTS: Mapping[str, Fault] = {
    name: fault
    for part in (
        results,
        requests,
        protocol,
        talk,
        questions,
        offers,
        servers,
        hostile,
        poisoned,
        finding,
        kept,
        coding,
        web,
        shared,
    )
    for name, fault in part.FAULTS.items()
}
