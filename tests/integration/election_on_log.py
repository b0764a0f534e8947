"""What an election on the log of a real system is tried with, beside the contracts."""

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from random import Random
from typing import Final

import pytest

from controller.adapters.network.waiting import wait_for
from controller.log.election.cells import ABSENT
from controller.log.election.store import ElectionCells, has, put
from controller.model.errors import TrimtabError
from tests.contracts.election_on_log import Connect, OnLog, OpenElection
from tests.protocol.histories import (
    History,
    all_at_once,
    change_controls,
    controls_are_linearizable,
    election_is_linearizable,
    lead,
)

_PATIENCE_SECONDS: Final = 60.0
_EVERY: Final = 20
_LEADER: Final = """
import sys
from pathlib import Path
from controller.log.elections import election_system
from controller.model.errors import LeadershipLostError
from controller.settings.trimtab_toml import read_settings

leadership = election_system(read_settings(Path(sys.argv[1]))).leadership()
assert leadership.acquire(lambda: False)
print(leadership.claim(0), flush=True)
for _ in sys.stdin:
    try:
        leadership.check()
        print("leads", flush=True)
    except LeadershipLostError:
        print("leads no longer", flush=True)
"""


@contextmanager
def _process(toml: Path) -> Iterator["subprocess.Popen[str]"]:
    """A process that takes part in the election, and says its epoch once it leads."""
    words = [sys.executable, "-c", _LEADER, str(toml)]
    process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def _says(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def _asked(process: "subprocess.Popen[str]") -> str:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()
    return _says(process)


class ElectionOnServer(OnLog):
    """Takeovers, concurrent calls and snapshots; the module has a fixture ``log_toml``, the settings' section [log]."""

    @pytest.fixture
    def toml(self, log_toml: str, tmp_path: Path) -> Path:
        path = tmp_path / "trimtab.toml"
        election = f'election = {{kind = "log", session_timeout_seconds = {self.SESSION_SECONDS:.0f}}}'
        path.write_text("\n".join(['cluster.name = "east"', election, 'checkpoint.path = "checkpoint"', log_toml]))
        return path

    def test_a_leader_that_is_killed_and_one_that_hangs_are_replaced_and_refused(self, toml: Path) -> None:
        """The first leader is killed, the second hangs, the third leads; the second is refused when it wakes up."""
        with _process(toml) as first, _process(toml) as second, _process(toml) as third:
            waiting = [first, second, third]
            leaders = list["subprocess.Popen[str]"]()

            def follow(process: "subprocess.Popen[str]") -> None:
                if _says(process):
                    leaders.append(process)

            threads = [threading.Thread(target=follow, args=(each,), daemon=True) for each in waiting]
            for thread in threads:
                thread.start()
            wait_for(lambda: len(leaders) == 1, _PATIENCE_SECONDS, every=0.05)
            leaders[0].kill()
            wait_for(lambda: len(leaders) == 2, _PATIENCE_SECONDS, every=0.05)
            assert _asked(leaders[1]) == "leads"
            leaders[1].send_signal(signal.SIGSTOP)
            wait_for(lambda: len(leaders) == 3, _PATIENCE_SECONDS, every=0.05)
            leaders[1].send_signal(signal.SIGCONT)
            assert _asked(leaders[1]) == "leads no longer"
            assert _asked(leaders[2]) == "leads"

    def test_calls_of_many_processes_can_be_put_in_one_order(self, open_election: OpenElection) -> None:
        """Processes that change controls, and that lead and end without a word."""
        controls, elections, ended = History(), History(), threading.Event()

        def changes(name: str) -> None:
            with closing(open_election("east").controls()) as store:
                change_controls(store, controls, name, Random(name), 30)

        def leads(name: str) -> None:
            for nth in range(2):
                leadership = open_election("east").leadership()
                with suppress(TrimtabError):
                    lead(leadership, elections, f"{name}.{nth}", Random(f"{name}.{nth}"), ended)
                leadership.release()

        threading.Timer(_PATIENCE_SECONDS, ended.set).start()
        all_at_once([*(partial(changes, name) for name in "abc"), *(partial(leads, name) for name in "xyz")])
        assert len(controls.calls) > 50
        assert len([call for call in elections.calls if call.name == "claim"]) > 3
        controls_are_linearizable(controls)
        election_is_linearizable(elections)

    def test_who_comes_later_begins_with_a_snapshot_and_who_is_behind_reads_anew(self, connect: Connect) -> None:
        """Records before a snapshot are deleted; who has read before, and who comes later, know the same cells."""

        def cells() -> ElectionCells:
            return ElectionCells(connect, cluster="east", session_seconds=0.6, snapshot_every=_EVERY)

        with closing(cells()) as behind, closing(cells()) as writes, closing(cells()) as late:
            assert behind.commit([has("old", ABSENT)], [put("old", b"before")]) is not None
            writes.session()
            until = time.monotonic() + 6.0
            count = 0
            while time.monotonic() < until or count < 10 * _EVERY:
                count += 1
                assert (
                    writes.commit([], [put("old", b"%d" % count), put(f"large/{count % 3}", bytes(400_000))])
                    is not None
                )
            with closing(connect()) as log, closing(log.read("election", partition=0)) as reader:
                records = [record.value for record in reader.read_to_end()]
            assert sum(b'"type":"part"' in value for value in records) >= 2
            late.refresh()
            behind.refresh()
            for each in (behind, late):
                cell = each.get("old")
                assert cell is not None
                assert cell.value == b"%d" % count
