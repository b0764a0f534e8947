"""Controls and election in a folder: whatever overlaps, and whatever gets no answer, an order explains all results."""

import threading
import time
from functools import partial
from pathlib import Path
from random import Random

import pytest

from controller.adapters.disk import files
from controller.adapters.election.controls import ABSENT, ControlStore
from controller.adapters.folder.controls import FileControls
from controller.adapters.folder.leadership import FileLeadership
from controller.model.controls import OperatorControls
from tests.protocol.histories import (
    History,
    all_at_once,
    change_controls,
    controls_are_linearizable,
    election_is_linearizable,
    lead,
    raise_epochs,
)


@pytest.fixture(params=range(3))
def random(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Random:
    """Each write takes a while, and a tenth of the answers are lost."""
    chance, replace = Random(request.param), files.replace

    def late(path: Path, content: bytes) -> None:
        time.sleep(chance.random() * 0.004)
        fails = chance.random()
        if fails < 0.05:
            raise OSError(5, "Input/output error")
        replace(path, content)
        if fails < 0.1:
            raise OSError(5, "Input/output error")

    monkeypatch.setattr(files, "replace", late)
    return Random(request.param)


def test_controls_in_a_folder(tmp_path: Path, random: Random) -> None:
    history = History()

    def change(name: str, seed: float) -> None:
        change_controls(FileControls(tmp_path, cluster="lab"), history, name, Random(seed), 14)

    all_at_once([partial(change, name, random.random()) for name in "abc"])
    controls_are_linearizable(history)


def test_the_election_in_a_folder(tmp_path: Path, random: Random) -> None:
    history, over = History(), threading.Event()

    def contend(name: str, seed: float) -> None:
        chance, leadership = Random(seed), FileLeadership(tmp_path)
        try:
            while not over.is_set():
                lead(leadership, history, name, chance, over)
                leadership.release()
        finally:
            leadership.release()

    def raising(seed: float) -> None:
        raise_epochs(FileControls(tmp_path, cluster="lab"), history, "operator", Random(seed), 12)
        over.set()

    all_at_once([*(partial(contend, name, random.random()) for name in "ab"), partial(raising, random.random())])
    election_is_linearizable(history)


class Unconditional:
    """A store that replaces whatever is there."""

    def __init__(self, store: ControlStore) -> None:
        self._store = store
        self.read = store.read

    def write(self, controls: OperatorControls, _: int) -> bool:
        return self._store.write(controls, self._store.version())


def test_a_store_that_replaces_what_it_was_not_asked_to_is_found(tmp_path: Path) -> None:
    store, history = Unconditional(FileControls(tmp_path, cluster="lab")), History()
    for client in "ab":
        history.call(client, "read", None, lambda: (None, store.read()[1]))
    for client in "ab":
        history.call(client, "cas", (ABSENT, client), lambda: store.write(OperatorControls(), ABSENT))
    with pytest.raises(AssertionError, match="no order of these calls is possible"):
        controls_are_linearizable(history)
