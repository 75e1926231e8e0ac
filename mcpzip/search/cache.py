"""Answers kept for queries that come to the same plan.

The rule: a hit is what a fresh search would have returned. The key is everything a ranking depends on – the
plan (terms, words and filters, see `query`), the catalog's version and the signals – so words in common alone
never reuse an answer. Only what can't change the answer is missing from the key: articles and "please", how a
word was misspelled; where words alone count also other stop words that stand in no tool's name, and how a
word nobody knows is spelled. The limit is no part of it: an answer is kept whole and cut afterwards.
"""

from collections import OrderedDict
from dataclasses import dataclass
from threading import Lock
from typing import Generic, TypeVar

from mcpzip.search.query import Plan
from mcpzip.search.signals import Signals

CAPACITY = 256

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Key:
    """What an answer depends on."""

    plan: Plan
    version: str
    signals: Signals


class QueryCache(Generic[Answer]):
    """At most ``capacity`` answers; the one unused longest goes first. Safe between threads.

    Raises ValueError for a capacity below 1.
    """

    def __init__(self, capacity: int = CAPACITY) -> None:
        if capacity < 1:
            raise ValueError(f"a query cache holds at least one answer, not {capacity}")
        self._capacity = capacity
        self._answers: OrderedDict[Key, Answer] = OrderedDict()
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._answers)

    def get(self, key: Key) -> Answer | None:
        """The answer kept for ``key``, now the most recently used; None when there is none."""
        with self._lock:
            answer = self._answers.get(key)
            if answer is not None:
                self._answers.move_to_end(key)
            return answer

    def put(self, key: Key, answer: Answer) -> None:
        """Keep ``answer``, dropping the least recently used one when full."""
        with self._lock:
            self._answers[key] = answer
            self._answers.move_to_end(key)
            if len(self._answers) > self._capacity:
                self._answers.popitem(last=False)
