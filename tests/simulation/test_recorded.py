"""Batches that a real query made (tests/integration/test_query_recording.py), and what is not one of its histories."""

import copy
import json
from collections.abc import Callable
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import pytest

from tests.simulation.recorded import refusal, repeated

DATA: Final = Path(__file__).parent.parent / "data" / "batches"
LOGS: Final = ("kafka", "folder")


@cache
def recording(log: str) -> Any:
    return json.loads((DATA / f"{log}.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("log", LOGS)
def test_the_model_of_spark_can_do_what_a_real_query_did(log: str, tmp_path: Path) -> None:
    assert refusal(recording(log), tmp_path) == ""
    assert {"begun", "read", "decided"} <= {*repeated(recording(log))}


def _notes(made: Any, place: str) -> list[tuple[Any, int]]:
    """The lives that have notes of *place*, and where."""
    return [
        (life["notes"], at) for life in made["lives"] for at, note in enumerate(life["notes"]) if note["place"] == place
    ]


def _again(made: Any) -> Any:
    """The first life that runs a batch of the life before, and then another one."""
    return next(
        life
        for before, life in pairwise(made["lives"])
        if life["notes"][0]["batch"] not in before["commits"] and str(life["notes"][0]["batch"]) in before["offsets"]
        if life["notes"][-1]["batch"] != life["notes"][0]["batch"]
    )


def _other_offsets(made: Any) -> None:
    life = _again(made)
    life["offsets"][str(life["notes"][0]["batch"])][0][2] += 1


def _not_repeated(made: Any) -> None:
    life = _again(made)
    first = life["notes"][0]["batch"]
    life["notes"] = [note for note in life["notes"] if note["batch"] != first]


def _committed_and_repeated(made: Any) -> None:
    life = _again(made)
    before = made["lives"][made["lives"].index(life) - 1]
    before["commits"].append(life["notes"][0]["batch"])


def _read_twice(made: Any) -> None:
    """As where a batch begins from the state that it had left behind itself."""
    read = [notes[at] for notes, at in _notes(made, "read") if notes[at]["snapshots"]]
    read[-1]["snapshots"] = read[0]["snapshots"]


def _nothing_closed(made: Any) -> None:
    next(notes[at] for notes, at in _notes(made, "read") if notes[at]["snapshots"])["snapshots"] = []


def _backwards(made: Any) -> None:
    for life in made["lives"]:
        last = max(life["offsets"], key=int)
        life["offsets"][last][0][2] = 0


def _beyond_the_end(made: Any) -> None:
    life = made["lives"][0]
    for ends in life["offsets"].values():
        ends[0][2] += 1_000_000_000


def _a_number_left_out(made: Any) -> None:
    life = made["lives"][-1]
    last = life["notes"][-1]["batch"]
    for note in life["notes"]:
        note["batch"] += note["batch"] == last


def _committed_before_it_is_decided(made: Any) -> None:
    life = next(life for life in made["lives"] if life["dies"].startswith("begun"))
    life["commits"].append(life["notes"][-1]["batch"])


def _commit_lost(made: Any) -> None:
    made["lives"][-1]["commits"].pop()


def _state_lost(made: Any) -> None:
    made["lives"][-1]["states"][0] -= 1


def _state_of_a_batch_to_come(made: Any) -> None:
    made["lives"][-1]["states"][0] += 2


def _letters_forgotten(made: Any) -> None:
    next(notes[at] for notes, at in _notes(made, "read") if notes[at]["refused"])["refused"] = []


@pytest.mark.parametrize("log", LOGS)
@pytest.mark.parametrize(
    "wrong",
    [
        _other_offsets,
        _not_repeated,
        _committed_and_repeated,
        _read_twice,
        _nothing_closed,
        _backwards,
        _beyond_the_end,
        _a_number_left_out,
        _committed_before_it_is_decided,
        _commit_lost,
        _state_lost,
        _state_of_a_batch_to_come,
        _letters_forgotten,
    ],
)
def test_a_history_that_no_query_has_is_refused(log: str, wrong: Callable[[Any], None], tmp_path: Path) -> None:
    made = copy.deepcopy(recording(log))
    wrong(made)
    assert refusal(made, tmp_path) != ""
