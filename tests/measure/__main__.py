"""``scripts/measure balance|frontier|moves``: print what was measured, a line of JSON each."""

import argparse
import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any, Final

from controller.adapters.disk.scratch import scratch_folder
from controller.adapters.process import signals
from tests.measure.balance import balance
from tests.measure.frontier import frontier

#: So long HiGHS looks for a plan of half the moves, for each cluster and strategy that it is asked about.
_EXACT_SECONDS: Final = 60.0
#: Measurement -> what it measures, and its options with their defaults.
_OPTIONS: Final[Mapping[str, tuple[str, Mapping[str, Any]]]] = {
    "balance": ("how even strategies make seeded clusters, with how many moves", {"seeds": 4, "exact": False}),
    "frontier": (
        "how even one cluster can be, by the number of moves",
        {"brokers": 6, "bundles": 60, "moves": 10, "seed": 1, "uneven": False, "exact": False},
    ),
    "moves": (
        "how long clients of a real Pulsar stall when their bundle is unloaded",
        {"unloads": 60, "topics": 10, "each": 5, "rate": 20.0},
    ),
}


def _measured(what: str, words: argparse.Namespace) -> Iterator[Any]:
    if what == "balance":
        yield from balance(words.seeds, exact_seconds=_EXACT_SECONDS if words.exact else 0.0)
    elif what == "frontier":
        sizes = words.brokers, words.bundles, words.moves
        yield from frontier(*sizes, seed=words.seed, uneven=words.uneven, exact=words.exact)
    else:
        from tests.measure.moves import Load, moves  # here, because the client of Pulsar is large

        load = Load(topics=words.topics, each=words.each, rate=words.rate)
        # Servers of our own must stop whenever this process is stopped.
        with scratch_folder("trimtab-measure-") as scratch, signals.interrupts(exit_code=signals.INTERRUPTED):
            yield from moves(words.unloads, load, scratch)


def main() -> None:
    """Measure what the command line names."""
    parser = argparse.ArgumentParser(prog="scripts/measure", description=__doc__)
    kinds = parser.add_subparsers(dest="what", required=True)
    for name, (text, options) in _OPTIONS.items():
        kind = kinds.add_parser(name, help=text, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
        for option, default in options.items():
            if default is False:
                kind.add_argument(f"--{option}", action="store_true", help=" ")
            else:
                kind.add_argument(f"--{option}", type=type(default), default=default, help=" ")
    words = parser.parse_args()
    for one in _measured(words.what, words):
        sys.stdout.write(f"{json.dumps(asdict(one))}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
