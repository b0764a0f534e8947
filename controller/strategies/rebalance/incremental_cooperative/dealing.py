"""Dealing resources out to members: to those with least, or in turn."""

import heapq
from collections.abc import Mapping, Sequence
from typing import TypeVar

from controller.strategies.common.worker_group import ConnectorsAndTasks

R = TypeVar("R")


def to_least_loaded(loads: Mapping[str, int], resources: Sequence[R]) -> dict[str, list[R]]:
    """Member -> which of *resources* it gets, each going to the member with least; equal ones take turns by name.

    The members of the answer are in the order of their *loads*, then names.  O(members + resources x log members).
    Kafka Connect: IncrementalCooperativeAssignor.assignConnectors, assignTasks
    """
    heap = sorted((load, name) for name, load in loads.items())
    dealt: dict[str, list[R]] = {name: [] for _, name in heap}
    # By their place in the first order, not by name: that is who comes first among equals later on.
    heap_of_places = [(load, place) for place, (load, _) in enumerate(heap)]
    for resource in resources:
        load, place = heap_of_places[0]
        dealt[heap[place][1]].append(resource)
        heapq.heapreplace(heap_of_places, (load + 1, place))
    return dealt


def deal(
    running: Mapping[str, ConnectorsAndTasks], start: Mapping[str, ConnectorsAndTasks], new: ConnectorsAndTasks
) -> dict[str, ConnectorsAndTasks]:
    """*start*, and *new* besides: to those that hold least, connectors and tasks each for themselves."""
    connectors = to_least_loaded(
        {name: len(work.connectors) + len(start[name].connectors) for name, work in running.items()}, new.connectors
    )
    tasks = to_least_loaded(
        {name: len(work.tasks) + len(start[name].tasks) for name, work in running.items()}, new.tasks
    )
    return {
        name: before + ConnectorsAndTasks(connectors=tuple(connectors[name]), tasks=tuple(tasks[name]))
        for name, before in start.items()
    }


def in_turn(names: Sequence[str], work: ConnectorsAndTasks) -> dict[str, ConnectorsAndTasks]:
    """*work* dealt out to *names* in turn, connectors and tasks each from the first on."""
    step = len(names)
    return {
        name: ConnectorsAndTasks(connectors=work.connectors[turn::step], tasks=work.tasks[turn::step])
        for turn, name in enumerate(names)
    }
