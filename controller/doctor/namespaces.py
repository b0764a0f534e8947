"""Reads the cluster's namespaces and their anti-affinity groups: many calls, in a limited time."""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Final, NamedTuple, TypeVar

from controller.adapters.network.calls import side_by_side
from controller.adapters.network.deadline import Deadline
from controller.adapters.pulsar.admin import PulsarAdmin, PulsarError

T = TypeVar("T")

#: Maximum number of namespaces that are asked for their group.
_MOST_NAMESPACES: Final = 50_000
_NOT_FOUND: Final = 404


class NamespacesFound(NamedTuple):
    """What could be read."""

    #: All namespaces; None where those of a tenant are missing.
    names: frozenset[str] | None
    #: Namespace -> its anti-affinity group, of those that have one.
    groups: Mapping[str, str]
    #: Why *groups* may be incomplete; "" where it is not.
    problem: str


def read_namespaces(admin: PulsarAdmin, tenants: Iterable[str], seconds: float) -> NamespacesFound:
    """The namespaces of *tenants*, and their groups, as far as they can be read in *seconds*."""
    deadline = Deadline.after(seconds)
    listed, why_not_listed = _all({each: partial(admin.namespaces, each) for each in tenants}, deadline.remaining)
    names = sorted({name for of_tenant in listed.values() for name in of_tenant})
    limited = names[:_MOST_NAMESPACES]
    groups, why_no_group = _all(
        {each: partial(admin.anti_affinity_group, each) for each in limited}, deadline.remaining
    )
    problem = ""
    if why_not_listed:
        problem = f"the namespaces of a tenant could not be listed: {why_not_listed}"
    elif why_no_group:
        problem = f"the group of a namespace could not be read: {why_no_group}"
    elif len(limited) < len(names):
        problem = f"the group was read for only the first {len(limited):,} of {len(names):,} namespaces"
    return NamespacesFound(
        names=None if why_not_listed else frozenset(names),
        groups={name: group for name, group in groups.items() if group},
        problem=problem,
    )


def _all(work: Mapping[str, Callable[[], T]], seconds: float) -> tuple[dict[str, T], str]:
    """The answers to *work*, and why one is missing, "" for none.  What was deleted meanwhile is not missing."""
    values, problem = dict[str, T](), ""
    for name, call in side_by_side(work, seconds).items():
        if call.error is None:
            values[name] = call.value
        elif call.late:
            problem = problem or f"{name}: no answer in time"
        elif not isinstance(call.error, PulsarError):
            raise call.error
        elif call.error.status != _NOT_FOUND:
            problem = problem or f"{name}: {call.error}"
    return values, problem
