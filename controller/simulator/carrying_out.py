"""Downtimes of brokers in a scenario, and the fate of each unload."""

from dataclasses import dataclass

import numpy as np

from controller.model.decision import Command
from controller.model.load import Bools
from controller.settings.scenario import Scenario
from controller.settings.scenario_parts import MoveSettings, TurnNumber


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedMove:
    """A bundle that was unloaded, and the broker that it came to; that may be its own again."""

    #: When it came.
    turn: TurnNumber
    bundle: str
    namespace: str
    #: Rows of the brokers.
    source: int
    destination: int
    connections: int
    #: Messages published meanwhile.
    messages: float
    #: What it carries, as CPU usage of the destination in percent.
    usage: float


@dataclass(frozen=True, slots=True, kw_only=True)
class UnderWay:
    """A command that is being carried out."""

    #: In which interval it is finished: its number, or T of a recorded one.
    due: int
    command: Command
    #: "done", "lost", "failed", "astray" or "hangs".
    fate: str = "done"


def downtimes(scenario: Scenario) -> Bools:
    """(intervals, brokers) which are not there because they restart or have left."""
    down = np.zeros((scenario.intervals, scenario.broker_count), np.bool_)
    for restart in scenario.restarts:
        in_turn = [broker - 1 for _ in range(restart.rounds) for broker in restart.brokers]
        for number, broker in enumerate(in_turn):
            begin = restart.at + number * restart.every
            down[begin : begin + restart.down, broker] = True
    for leave in scenario.leaves:
        down[leave.at :, [broker - 1 for broker in leave.brokers]] = True
    return down


def fate_of(moves: MoveSettings, chance: float) -> str:
    """What becomes of an unload; *chance* is 0 to 100."""
    for fate, percent in (
        ("lost", moves.lost_percent),
        ("failed", moves.failed_percent),
        ("astray", moves.astray_percent),
        ("hangs", moves.hangs_percent),
    ):
        if chance < percent:
            return fate
        chance -= percent
    return "done"
