"""The wire and the HTTP client under fire: ``python tests/fuzz --minutes 10``.

One execution is one made-up conversation and some made-up HTTP answers, checked by every oracle. The number
of an execution and the seed say all of it: ``--seed 3 --at 1234`` plays it again. Between executions long
inputs of every shape are tried for their time and memory. Exit code 1 when anything was found, or when some
kind of event never occurred.
"""

import argparse
import faulthandler
import itertools
import sys
import time
import traceback
from collections import Counter
from random import Random

import answers
import growth
import mutations
import oracles

HANG = 300
"""Seconds without an end after which the process says where it is and dies."""
SLOW = 20e-6
"""Seconds of processor time a byte may take, beyond half a second."""
EVERY = 200
"""Executions between two trials of long inputs."""
SIZE = 1 << 18
FLOOD = 4 << 20


def execution(seed: int, number: int, seen: Counter[str]) -> int:
    """One conversation; its size in bytes. Raises what was found."""
    random = Random(f"{seed}/{number}")
    start = time.thread_time()
    size = oracles.check(random, seen) + answers.check(Random(f"{seed}/{number}/HTTP"), seen)
    taken = time.thread_time() - start
    assert taken < 0.5 + size * SLOW, f"{size} bytes took {taken:.2f} s"
    return size


def long_input(number: int) -> None:
    """One shape in one use: four times as long takes about four times the time; memory as `growth` says."""
    uses = list(itertools.product(growth.SHAPES, growth.USES))
    shape, use = uses[number % len(uses)]
    play = growth.USES[use]
    short, long = (growth.seconds(play, growth.shaped(shape, size)) for size in (SIZE // 4, SIZE))
    assert long < 0.1 or long < 10 * short, f"{shape}, {use}: {short:.3f} s became {long:.3f} s"
    held = growth.peak(play, growth.shaped(shape, SIZE)) / SIZE
    assert held < growth.MOST_HELD, f"{shape}, {use}: {held:.1f} times its size in memory"
    limit = 1 << Random(number).randint(8, 20)
    held = growth.flooded(growth.shaped(shape, FLOOD).replace(b"\n", b" "), limit)
    assert held < growth.held_of_a_flood(limit), f"{shape}: {held} bytes held with frames of {limit}"


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="tests/fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=None, help="default: the time")
    parser.add_argument("--at", type=int, default=None, help="only this execution")
    options = parser.parse_args()
    seed = int(time.time()) if options.seed is None else options.seed
    if options.at is not None:
        for line in mutations.lines(Random(f"{seed}/{options.at}")):
            print(line[:2000])
        execution(seed, options.at, Counter())
        return 0
    seen: Counter[str] = Counter()
    found: Counter[str] = Counter()
    size = 0
    start = time.monotonic()
    for number in itertools.count():
        if time.monotonic() - start > options.minutes * 60:
            break
        faulthandler.dump_traceback_later(HANG, exit=True)
        try:
            size += execution(seed, number, seen)
            if number % EVERY == EVERY - 1:
                long_input(number // EVERY)
        except Exception as error:
            where = traceback.extract_tb(error.__traceback__)[-1]
            found[f"{type(error).__name__} at {where.name}, line {where.lineno}"] += 1
            if len(found) <= 10 and found.total() <= 20:
                print(f"--seed {seed} --at {number}", file=sys.stderr)
                traceback.print_exc(limit=-3)
        faulthandler.cancel_dump_traceback_later()
    taken = time.monotonic() - start
    missed = sorted((oracles.KINDS | answers.KINDS) - seen.keys())
    print(
        f"{number:,} executions in {taken:.0f} s ({number / taken:.0f}/s), {size / 1e6:,.0f} MB; seed {seed}"
    )
    print("events:", ", ".join(f"{kind} {count:,}" for kind, count in seen.most_common()))
    print("never seen:", ", ".join(missed) or "nothing")
    print("found:", ", ".join(f"{what} ({times} times)" for what, times in found.items()) or "nothing")
    return 1 if found or missed else 0


if __name__ == "__main__":
    sys.exit(main())
