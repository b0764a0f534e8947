"""A walk through all that needs an election and controls, on a site that knows no ZooKeeper.

Somebody leads; another one takes over where that one is killed, and where it hangs; a pause outlives a takeover, and
ends by the approval of a second person; a plan is made, proposed, approved and carried out, and real brokers say where
its bundles are.  Each step is written to a log, with what the commands printed.
"""

import json
import shlex
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import psutil

from controller.lab.pulsar_server import PulsarCluster
from tests.faults.audit import Findings
from tests.faults.faults import NOTHING_AROUND, Fault
from tests.faults.prove import prove
from tests.faults.real_pulsar import RealPulsar
from tests.faults.site import Site
from tests.proposals import key_of

_COMMAND_SECONDS: Final = 200.0
#: Until a plan is carried out.
_PLAN_SECONDS: Final = 400.0
_LOOK_SECONDS: Final = 0.5
#: Intervals until something is moved: averages of the ones before may hide that a broker has too much.
_TRIES: Final = 6
PEOPLE: Final = ("ada", "bob")


def approvals() -> str:
    """The lines of settings by which a second person approves what moves bundles."""
    people = "\n".join(f'[approvals.keys.{name}]\nkey = "{key_of(name).public_text}"' for name in PEOPLE)
    return f"[approvals]\nrequired = 1\n{people}\n"


class Walk:
    """One walk at *site*, whose brokers are those of *pulsar*."""

    def __init__(self, site: Site, pulsar: PulsarCluster, log: Path) -> None:
        assert isinstance(site.pulsar, RealPulsar)
        self._site, self._brokers = site, site.pulsar
        self._zookeeper = int(pulsar.zookeeper.rpartition(":")[2])
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text("", encoding="utf-8")
        self._log = log
        for name in PEOPLE:
            (site.folder / f"{name}.pem").write_bytes(key_of(name).pem)

    def all_of_it(self, faults: Sequence[Fault]) -> None:
        """Every step; AssertionError where one does not hold."""
        with self._watched() as connected:
            self._say(f"elected: {self._site.leader().log.stem} leads, epoch {self._site.leaders_epoch()}")
            for fault in faults:
                self._survive(fault)
            self._pause_across_a_takeover()
            self._plan_with_two_people()
        self._say(f"connections of trimtab's processes to ZooKeeper: {len(connected)}")
        assert connected == []

    def _survive(self, fault: Fault) -> None:
        before = self._site.leaders_epoch()
        self._say(f"{fault.name}: {fault.what}")
        outcome = prove(fault, self._site, NOTHING_AROUND, 1)
        self._say(
            f"{fault.name}: epoch {before} -> {self._site.leaders_epoch()}, decided again after {outcome.median:.1f} s;"
            f" {outcome.commands} commands, {outcome.findings}, {len(outcome.differences)} differences"
        )
        assert self._site.leaders_epoch() > before
        assert outcome.findings == Findings()
        assert outcome.differences == []

    def _pause_across_a_takeover(self) -> None:
        site = self._site
        self._trimtab("pause", "--reason", "a walk", "--by", "ada")
        site.wait_for_standby()
        before = site.leaders_epoch()
        site.leader().kill()
        self._say("the leader is killed")
        for _ in range(2):
            site.pile_up()
            paused = site.wait_for_decision(site.publish()).entry
            self._say(f"interval {paused.interval}: {len(paused.decision.commands)} commands, {paused.controls}")
            assert paused.controls.paused
            assert paused.decision.commands == ()
        assert site.leaders_epoch() > before
        self._trimtab("resume", "--reason", "done", "--by", "ada", *self._key("ada"))
        assert site.wait_for_decision(site.publish()).entry.controls.paused, "nobody has approved the end of the pause"
        [proposal] = self._proposals()
        self._trimtab("proposals", "approve", proposal, *self._key("bob"), "--reason", "seen")
        for _ in range(_TRIES):
            site.pile_up()
            resumed = site.wait_for_decision(site.publish()).entry
            self._say(f"interval {resumed.interval}: {len(resumed.decision.commands)} commands")
            assert not resumed.controls.paused
            site.come_to_rest()
            if resumed.decision.commands:
                return
        raise AssertionError(f"in {_TRIES} intervals nothing was moved")

    def _plan_with_two_people(self) -> None:
        site, file = self._site, self._site.folder / "plan.json"
        self._calm_down()
        drained = max(site.pulsar.cluster.brokers, key=lambda each: len(self._at(each)))
        self._say(f"{drained} has {len(self._at(drained))} bundles")
        self._trimtab("plan", "--drain", drained, "-o", str(file))
        self._trimtab("proposals", "make", str(file), *self._key("ada"), "--reason", "new kernel")
        [proposal] = self._proposals()
        self._trimtab("apply", "--proposal", proposal, code=None)  # it is not approved
        assert self._at(drained)
        self._trimtab("proposals", "approve", proposal, *self._key("bob"), "--reason", "off-peak")
        with self._started("apply", "--proposal", proposal, "--tolerance", "100") as applying:
            until = time.monotonic() + _PLAN_SECONDS
            while applying.poll() is None and time.monotonic() < until:
                site.publish()
                site.come_to_rest()
        assert applying.returncode == 0
        self._say(f"{drained} has {len(self._at(drained))} bundles")
        assert self._at(drained) == set()
        self._trimtab("proposals", "show", proposal)
        findings = site.audit()
        self._say(f"at the end: {findings}")
        assert findings == Findings()

    def _calm_down(self) -> None:
        """Until nothing is moved, and the results of what was moved are known."""
        for _ in range(_TRIES):
            commands = self._site.wait_for_decision(self._site.publish()).entry.decision.commands
            self._site.come_to_rest()
            if not commands:
                return
        raise AssertionError(f"in each of {_TRIES} intervals something was moved")

    def _at(self, broker: str) -> set[str]:
        """The bundles of the site that *broker* says it has."""
        return set(self._brokers.admin.owned(broker)) & set(self._site.pulsar.cluster.bundle_loads())

    def _proposals(self) -> list[str]:
        """The ids of what waits for approvals."""
        lines = self._trimtab("proposals", "list", "--json").splitlines()
        return [json.loads(line)["id"] for line in lines if json.loads(line)["state"] == "pending"]

    def _key(self, name: str) -> list[str]:
        return ["--key", str(self._site.folder / f"{name}.pem")]

    def _command(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "controller.cli", *words, "--conf", str(self._site.folder / "controller.toml")]

    def _trimtab(self, *words: str, code: int | None = 0) -> str:
        """What the command prints; it ends with *code*, or with any but 0 for None."""
        done = subprocess.run(
            self._command(*words), capture_output=True, text=True, check=False, timeout=_COMMAND_SECONDS
        )
        self._tell(words, done.returncode, done.stdout + done.stderr)
        assert done.returncode == code if code is not None else done.returncode != 0, done.stdout + done.stderr
        return done.stdout

    @contextmanager
    def _started(self, *words: str) -> Iterator[subprocess.Popen[str]]:
        """The same, beside what the block does; it has ended after it."""
        out = self._site.folder / f"{words[0]}.out"
        with out.open("w", encoding="utf-8") as file:
            process = subprocess.Popen(self._command(*words), stdout=file, stderr=file, text=True)
            try:
                yield process
            finally:
                if process.poll() is None:
                    process.kill()
                process.wait(30)
        self._tell(words, process.returncode, out.read_text(encoding="utf-8"))

    def _tell(self, words: Sequence[str], code: int, printed: str) -> None:
        shown = printed.replace(str(self._site.folder), "SITE")
        lines = "".join(f"    {line}\n" for line in shown.splitlines())
        self._say(f"trimtab {shlex.join(words)}".replace(str(self._site.folder), "SITE") + f" -> {code}\n{lines}")

    def _say(self, text: str) -> None:
        with self._log.open("a", encoding="utf-8") as log:
            log.write(f"{time.strftime('%H:%M:%S', time.gmtime())} {text}\n")

    @contextmanager
    def _watched(self) -> Iterator[list[str]]:
        """Connections to ZooKeeper that any process of the site has had meanwhile, looked for again and again."""
        found, over = list[str](), threading.Event()

        def look() -> None:
            while not over.wait(_LOOK_SECONDS):
                for service in (*self._site.controllers, *self._site.executors):
                    found.extend(f"{service.name}: {each}" for each in self._connections(service.life.tree()))

        thread = threading.Thread(target=look, name="connections", daemon=True)
        thread.start()
        try:
            yield found
        finally:
            over.set()
            thread.join()

    def _connections(self, pids: Sequence[int]) -> Iterator[str]:
        for pid in pids:
            with suppress(psutil.Error):
                for each in psutil.Process(pid).net_connections("tcp"):
                    if each.raddr and each.raddr.port == self._zookeeper:
                        yield str(each)
