"""Recorded cases that trimtab decides otherwise than a release of Pulsar, and why: each of them has to fail."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Cases of some components, as some releases answer them."""

    releases: tuple[str, ...]
    #: Component -> names of cases.
    cases: Mapping[str, tuple[str, ...]]
    reason: str


DIFFERENCES: Final = (
    Difference(
        releases=("4.2.4", "5.0.1"),
        cases={
            "overload_shedder": tuple(f"overload_shedder-1-{i}" for i in (22, 25, 35, 41, 57)),
            "threshold_shedder": tuple(f"threshold_shedder-1-{i}" for i in (13, 64, 73, 79)),
            "uniform_load_shedder": ("uniform_load_shedder-1-62",),
        },
        reason="From 4.2 on names with a cluster in them are refused, and no shedder spares a heartbeat's namespace of"
        " this form: no broker has one. trimtab leaves its bundles where they are.",
    ),
    Difference(
        releases=("4.2.4", "5.0.1"),
        cases={"topic_names": tuple(f"topic_names-1-{i}" for i in (3, 4, 22))},
        reason="From 4.2 on a topic's name with a cluster in it is refused. trimtab reads it, whatever the release.",
    ),
)


def known(component: str, release: str) -> set[str]:
    """The cases of *component* that trimtab decides otherwise than *release*."""
    return {name for one in DIFFERENCES if release in one.releases for name in one.cases.get(component, ())}
