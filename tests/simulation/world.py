"""What lies between the processes: the network and its faults, who runs, and the trace of what others can see."""

import re
from collections import Counter, defaultdict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from controller.model.controls import OperatorControls
from controller.model.errors import TrimtabError
from tests.protocol.linearizable import UNKNOWN, Call
from tests.protocol.rules import Event
from tests.simulation.loop import KilledError, Process, Simulation

#: Seconds: of a message one way, until a call without an answer fails, and of a session that nobody renews.
_LATENCY: Final = (0.0005, 0.02)
TIMEOUT: Final = 3.0
SESSION: Final = 10.0
#: A service manager starts a process that has ended again after so long, seconds.
_RESTART: Final = 2.0
#: What of the name of an effect differs from run to run.
_PARTICULARS: Final = re.compile(r"(/\d+|-sim|trimtab-executor-?| for .*)")
#: Faults that come when their target has reached a point, and not by the clock.
AT_POINTS: Final = frozenset({"crash", "pause", "lose", "twice", "delay", "tear", "late"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One fault of a schedule."""

    kind: str
    #: Seconds: from then on.
    at: float
    #: The name of a process, of a broker, or of what else it is about.
    target: str = ""
    #: An effect of the target, "" for any; before or after it; and how many of them are passed first.
    point: str = ""
    when: str = "before"
    nth: int = 0
    #: How long, or how much.
    seconds: float = 0.0
    #: Comes once this one has met its point, ``at`` seconds later.
    then: "Fault | None" = None

    def __str__(self) -> str:
        """One line, as failures show it."""
        place = f" {self.when} {self.point or 'effect'} {self.nth}" if self.kind in AT_POINTS else ""
        then = "" if self.then is None else f", then {self.then}"
        return f"{self.kind} {self.target} from {self.at:.1f} s{place} ({self.seconds:.1f}){then}"


@dataclass(slots=True, eq=False)
class _Armed:
    fault: Fault
    left: int
    met: Callable[[], object]


class World:
    """See the module docstring."""

    def __init__(self, simulation: Simulation) -> None:
        self.sim = simulation
        self.trace = list[Event]()
        self.calls = list[Call]()
        #: All that the controls ever were.
        self.documents = list[OperatorControls]()
        #: Kind of fault and point -> how often one met the other; and all points that were reached.
        self.met, self.reached = Counter[tuple[str, str]](), Counter[str]()
        self.processes = dict[str, Process]()
        self._mains = dict[str, Callable[[Process], None]]()
        self.is_calm = False
        #: Process -> faults that wait for it, each with how many effects it lets pass.
        self._armed = defaultdict[str, list[_Armed]](list)
        #: (process, service, direction) -> until when it is cut, seconds.
        self._cuts = dict[tuple[str, str, str], float]()
        #: Called when nobody heard of a process for the length of a session: the process, the service.
        self.on_silence = list[Callable[[Process, str], None]]()

    # ---- processes ----

    def start(self, name: str, main: Callable[[Process], None], life: int = 1) -> None:
        """Run *main* as the process *name*, again whenever it ends."""
        self._mains[name] = main
        process = self.processes[name] = Process(name, life)

        def run() -> None:
            try:
                main(process)
            finally:
                if process.alive:
                    self._end(process)

        self.note("started", process)
        self.sim.spawn(process, run, after=self.sim.random.uniform(0, 0.5))

    def _end(self, process: Process) -> None:
        self.note("died", process)
        self.sim.kill(process)
        self._silent(process)
        after = self.sim.now + _RESTART + self.sim.random.uniform(0, 3)
        self.sim.at(after, lambda: self._restart(process))

    def _restart(self, process: Process) -> None:
        if process.name in self._mains:
            self.start(process.name, self._mains[process.name], process.life + 1)

    def retire(self, role: str) -> None:
        """End the processes of *role* for good."""
        for name in [name for name in self._mains if name.startswith(role)]:
            del self._mains[name]
            self.crash(self.processes[name])

    def crash(self, process: Process) -> None:
        """End *process* here and now."""
        if process.alive:
            self._end(process)

    def pause(self, process: Process, seconds: float) -> None:
        """Have *process* stand still."""
        process.paused_until = max(process.paused_until, self.sim.now + seconds)
        self.note("stood-still", process, outcome=f"{seconds:.3f}")
        self._silent(process, seconds)

    def _silent(self, process: Process, seconds: float | None = None, *services: str) -> None:
        """*process* says nothing to *services* for so long; None: for ever."""
        process.silences += 1
        silence = process.silences

        def expire() -> None:
            if process.silences == silence:
                for service in services or ("election", "log"):
                    for tell in self.on_silence:
                        tell(process, service)

        self.sim.at(self.sim.now + SESSION, expire)
        if seconds is not None and seconds < SESSION:
            self.sim.at(self.sim.now + seconds, lambda: self._heard(process, silence))

    def _heard(self, process: Process, silence: int) -> None:
        if process.silences == silence:
            process.silences += 1

    # ---- calls ----

    def request(self, service: str, what: str, error: Callable[[bool], Exception]) -> None:
        """A call of the process that runs sets out; *error* makes what it gets where no answer comes: was it sent?"""
        point = point_of(what)
        fault = self._meet("before", point)
        if fault is not None:
            self.note("slowed")
        self.sim.sleep(self.sim.random.uniform(*_LATENCY) + (fault.seconds if fault and fault.kind == "delay" else 0))
        if self.is_cut(service, "there") or (fault is not None and fault.kind == "lose"):
            self._note_cut(service, point)
            self.sim.sleep(TIMEOUT)
            raise error(False)

    def reply(self, service: str, what: str, error: Callable[[bool], Exception]) -> None:
        """Its effect has happened, and the answer comes back."""
        point = point_of(what)
        fault = self._meet("after", point)
        self.sim.sleep(self.sim.random.uniform(*_LATENCY) + (fault.seconds if fault and fault.kind == "delay" else 0))
        if self.is_cut(service, "back") or (fault is not None and fault.kind == "lose"):
            self._note_cut(service, point)
            self.sim.sleep(TIMEOUT)
            raise error(True)

    def call(self, service: str, what: str, effect: Callable[[], Any], error: Callable[[bool], Exception]) -> Any:
        """Have *effect* happen, as a call over the network."""
        self.request(service, what, error)
        self.come_late(point_of(what), effect, error)
        value = effect()
        if self.take_fault("twice", point_of(what)):
            effect()
        self.reply(service, what, error)
        return value

    def come_late(self, point: str, effect: Callable[[], Any], error: Callable[[bool], Exception]) -> None:
        """Have *effect* come when its call has been given up or soon will be, where the process that runs is so met."""
        fault = self.take_fault("late", point)
        if fault is None:
            return
        given_up, process = error(True), self.sim.process

        def happen() -> None:
            with suppress(TrimtabError, type(given_up)):  # nobody waits for the answer
                effect()

        # Whoever made the call may be dead by then.
        self.sim.spawn(Process(process.name, process.life), happen, after=fault.seconds)
        self.sim.sleep(TIMEOUT)
        raise given_up

    def is_cut(self, service: str, direction: str) -> bool:
        """Whether what the process that runs says to *service* ("there"), or hears of it ("back"), is lost."""
        return self._cuts.get((self.sim.process.name, service, direction), 0.0) > self.sim.now

    def _note_cut(self, service: str, point: str) -> None:
        if self.is_cut(service, "there") or self.is_cut(service, "back"):
            self.met["cut", point] += 1

    def _meet(self, when: str, point: str) -> Fault | None:
        """The process that runs is at *point*: what happens to it there."""
        self.reached[point] += 1
        process = self.sim.process
        if not self._armed.get(process.name):
            return None
        for kind in ("crash", "pause", "lose", "delay"):
            fault = self.take_fault(kind, point, when)
            if fault is None:
                continue
            if kind == "crash":
                self.crash(process)
                raise KilledError
            if kind == "pause":
                self.pause(process, fault.seconds)
                self.sim.sleep(0.0)
            else:
                return fault
        return None

    def take_fault(self, kind: str, point: str, when: str = "") -> Fault | None:
        """The fault of *kind* that comes to the process that runs at *point*, if one does."""
        armed = self._armed.get(self.sim.process.name)
        if not armed:
            return None
        for each in armed:
            fault = each.fault
            if fault.kind == kind and fault.point in ("", point) and when in ("", fault.when):
                if each.left:
                    each.left -= 1
                    continue
                armed.remove(each)
                self.met[kind, point] += 1
                each.met()
                return fault
        return None

    def arm(self, fault: Fault, met: Callable[[], object] = lambda: None) -> None:
        """Have *fault* come at its point, and *met* be called there."""
        self._armed[fault.target].append(_Armed(fault, fault.nth, met))

    def disarm(self) -> None:
        """No more faults, and no cuts."""
        self.is_calm = True
        self._armed.clear()
        self._cuts.clear()
        for process in self.processes.values():
            process.paused_until = min(process.paused_until, self.sim.now)
            process.stopped_clock, process.skew = None, 0.0

    def cut(self, target: str, service: str, direction: str, seconds: float) -> None:
        """Lose what *target* says to *service* ("there"), what it hears ("back"), or both."""
        for each in ("there", "back") if direction == "both" else (direction,):
            self._cuts[target, service, each] = self.sim.now + seconds
        process = self.processes.get(target)
        if process is not None:
            self._silent(process, seconds, service)

    # ---- what others can see ----

    def note(self, kind: str, process: Process | None = None, **more: Any) -> None:
        """Add an event to the trace; of the process that runs, unless another is given."""
        name = (process or self.sim.process).name
        self.trace.append(Event(kind=kind, at=self.sim.true_ms(), process=name, **more))

    def history(self, name: str, argument: object, call: Callable[[], Any]) -> Any:
        """Make *call*, an operation of the election or of the controls, and write it into the history."""
        client, invoked = f"{self.sim.process.name}.{self.sim.process.life}", int(self.sim.now * 1e6)
        at = len(self.calls)
        self.calls.append(Call(client, name, argument, UNKNOWN, invoked, None))
        result = call()
        self.calls[at] = Call(client, name, argument, result, invoked, int(self.sim.now * 1e6))
        return result


@lru_cache(512)
def point_of(what: str) -> str:
    """The kind of an effect."""
    return _PARTICULARS.sub("", what).strip()
