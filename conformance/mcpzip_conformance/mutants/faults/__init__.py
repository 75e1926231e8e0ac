"""The faults, by what they break.

results     what the client gets from a call
requests    what the server gets of it
protocol    the messages themselves
talk        what is said while a call runs, and what changes between calls
offers      lists, definitions, resources, prompts
servers     servers that misbehave, the end, and secrets
hostile     servers that mean harm
finding     the three tools of the relay's own
web         HTTP
"""

from collections.abc import Mapping

from mcpzip_conformance.mutants.faults import (
    finding,
    hostile,
    offers,
    protocol,
    questions,
    requests,
    results,
    servers,
    talk,
    web,
)
from mcpzip_conformance.mutants.faults.fault import Fault

__all__ = ["FAULTS", "Fault"]

FAULTS: Mapping[str, Fault] = {
    name: fault
    for part in (results, requests, protocol, talk, questions, offers, servers, hostile, finding, web)
    for name, fault in part.FAULTS.items()
}
