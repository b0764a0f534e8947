"""What an attempt sees of Pulsar: the admin API answers by a script."""

from collections.abc import Sequence
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import pytest

from controller.adapters.pulsar import admin as pulsar_admin
from controller.adapters.pulsar.admin import PulsarError, probe_topic
from controller.executor import attempt
from controller.executor.attempt import PulsarTarget
from controller.executor.judge import Observation
from controller.model.decision import Command
from tests.commands import BUNDLE, QUARTERS, A, B, C, split, unload

HALVED = (0, 0x40000000, 0x60000000, 0x80000000, 0xC0000000, 0xFFFFFFFF)
GONE = PulsarError("404 Not Found", status=404)
NO_BROKER_YET = PulsarError("503 Service Unavailable", status=503)


class Admin:
    """Lookups answer in this order; *dead* brokers serve nothing; time passes with every look at it."""

    def __init__(
        self,
        *lookups: str | PulsarError,
        dead: Sequence[str] = (),
        seconds: float = 60.0,
        boundaries: Sequence[tuple[int, ...]] = (QUARTERS,),
    ) -> None:
        self.lookups, self.dead, self.seconds = list(lookups), dead, seconds
        #: One after the other, the last one for good.
        self.cuts = list(boundaries)
        self.acted: list[tuple[str, float]] = []
        #: Who leads, None where nobody does.
        self.leads: str | None = C
        #: Whether acts are refused.
        self.refuses = False

    def within(self, seconds: float) -> "Admin":
        limited = Admin(*self.lookups, dead=self.dead, seconds=seconds)
        limited.acted, limited.leads, limited.refuses = self.acted, self.leads, self.refuses
        return limited

    @property
    def seconds_left(self) -> float:
        self.seconds -= 1
        return self.seconds + 1

    def boundaries(self, namespace: str) -> tuple[int, ...]:
        if namespace != "tenant/ns":
            raise GONE
        return self.cuts.pop(0) if len(self.cuts) > 1 else self.cuts[0]

    def is_active(self, broker: str) -> bool:
        return broker in (A, B, C)

    def owner(self, bundle: str, brokers: Sequence[str]) -> str:
        assert bundle == BUNDLE
        return brokers[0]

    def serves(self, broker: str, bundle: str) -> bool:
        assert bundle == BUNDLE
        return broker not in self.dead

    def lookup(self, bundle: str) -> str:
        assert bundle == BUNDLE
        answer = self.lookups.pop(0)
        if isinstance(answer, PulsarError):
            raise answer
        return answer

    def leader(self) -> str:
        if self.leads is None:
            raise GONE
        return self.leads

    def settle(self, bundle: str, source: str, destination: str, leader: str) -> None:
        self.acted.append((f"settle {bundle} {source} {destination} {leader}", self.seconds))

    def unload(self, bundle: str, destination: str) -> None:
        self.acted.append((f"unload {bundle} {destination}", self.seconds))
        if self.refuses:
            raise GONE

    def split(self, bundle: str, **how: Any) -> None:
        self.acted.append((f"split {bundle} {how['boundaries']}", self.seconds))


def target(admin: Admin) -> PulsarTarget:
    return PulsarTarget(admin)  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempt, "_LOOK_AGAIN_SECONDS", 0.001)


def test_a_look_tells_boundaries_and_owner() -> None:
    assert target(Admin()).look(unload()) == Observation(boundaries=QUARTERS, owner=A)
    assert target(Admin()).look(unload("tenant/ns/0x40000000_0x50000000")) == Observation(boundaries=QUARTERS)
    assert target(Admin()).look(unload("tenant/gone/0x40000000_0x80000000")) == Observation(boundaries=())


def test_an_unloaded_bundle_is_looked_up_until_a_live_broker_owns_it() -> None:
    admin = Admin(A, NO_BROKER_YET, A, C, dead=[A])
    assert target(admin).look_after(unload()) == Observation(boundaries=QUARTERS, owner=C)
    assert admin.lookups == []


def test_a_bundle_still_owned_by_a_dead_broker_at_the_end_is_unknown() -> None:
    with pytest.raises(PulsarError, match="names a:8080, which does not serve it"):
        target(Admin(A, A, A, B, dead=[A], seconds=2)).look_after(unload())


def test_a_bundle_without_an_owner_at_the_end_is_unknown() -> None:
    with pytest.raises(PulsarError, match="503"):
        target(Admin(*[NO_BROKER_YET] * 3, B, seconds=2)).look_after(unload())


class Silent(Admin):
    """Does not answer at first."""

    silent = 2

    def boundaries(self, namespace: str) -> tuple[int, ...]:
        if self.silent:
            self.silent -= 1
            raise NO_BROKER_YET
        return super().boundaries(namespace)


def test_a_look_at_a_split_that_nobody_answers_is_asked_again_until_time_is_over() -> None:
    assert target(Silent(boundaries=[HALVED])).look_after(split()).boundaries == HALVED
    with pytest.raises(PulsarError, match="503"):
        target(Silent(seconds=1)).look_after(split())
    refused = Admin()
    refused.boundaries = _refused  # type: ignore[method-assign]
    with pytest.raises(PulsarError, match="403"):
        target(refused).look_after(split())
    assert refused.seconds == 60  # not asked again: nobody would answer otherwise


def _refused(namespace: str) -> tuple[int, ...]:
    raise PulsarError(f"403 {namespace}", status=403)


def test_no_look_begins_that_would_end_after_the_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempt, "_LOOK_AGAIN_SECONDS", 1)
    slept: list[float] = []
    monkeypatch.setattr("controller.executor.attempt.time", SimpleNamespace(sleep=slept.append))
    with pytest.raises(PulsarError, match="503"):
        target(Admin(NO_BROKER_YET, C, seconds=1)).look_after(unload())
    with pytest.raises(PulsarError, match="503"):
        target(Silent(seconds=1)).look_after(split())
    assert slept == []
    assert target(Admin(NO_BROKER_YET, C, seconds=2)).look_after(unload()).owner == C
    assert slept == [1]


def test_a_bundle_or_a_namespace_that_is_gone_by_then_is_not_waited_for() -> None:
    gone = Admin(GONE, boundaries=[QUARTERS, ()])
    assert target(gone).look_after(unload()) == Observation(boundaries=())
    halved = Admin(NO_BROKER_YET, boundaries=[QUARTERS, HALVED])
    assert target(halved).look_after(unload()) == Observation(boundaries=HALVED)
    assert target(Admin(boundaries=[HALVED])).look(unload()) == Observation(boundaries=HALVED)


def test_behind_a_split_only_the_boundaries_are_looked_at() -> None:
    assert target(Admin()).look_after(split()) == Observation(boundaries=QUARTERS)


def test_an_act_takes_half_of_the_time_that_is_left() -> None:
    admin = Admin(seconds=40)
    target(admin).act(unload())
    target(admin).act(split())
    assert admin.acted == [(f"unload {BUNDLE} {B}", 20), (f"split {BUNDLE} (1610612736,)", 19.5)]


def acts_on(admin: Admin, command: Command) -> list[str]:
    """What is done for *command*, looked at twice behind its act."""
    seen = target(admin)
    seen.look(command)
    with suppress(PulsarError):
        seen.act(command)
    seen.look_after(command)
    seen.look_after(command)
    return [what for what, _ in admin.acted]


def test_a_bundle_that_was_unloaded_to_a_destination_is_settled_there_once_before_it_is_looked_at() -> None:
    unloaded = f"unload {BUNDLE} {B}"
    assert acts_on(Admin(B, B), unload()) == [unloaded, f"settle {BUNDLE} {A} {B} {C}"]


def test_nobody_is_told_to_take_a_bundle_without_a_leader_a_destination_or_a_good_answer() -> None:
    unled, refusing = Admin(B, B), Admin(B, B)
    unled.leads, refusing.refuses = None, True
    assert acts_on(unled, unload()) == acts_on(refusing, unload()) == [f"unload {BUNDLE} {B}"]
    assert acts_on(Admin(B, B), unload(destination="")) == [f"unload {BUNDLE} "]
    assert acts_on(Admin(), split())[1:] == []


def test_an_unload_that_is_refused_is_told() -> None:
    refusing = Admin()
    refusing.refuses = True
    with pytest.raises(PulsarError, match="404"):
        target(refusing).act(unload())


def test_a_bundle_that_could_not_be_looked_up_afterwards_is_not_unloaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pulsar_admin, "_PROBES", 0)
    probe_topic.cache_clear()
    with pytest.raises(PulsarError, match="in this narrow range") as raised:
        target(Admin()).look(unload())
    assert not raised.value.sent
    assert target(Admin()).look(split()).owner == A
    probe_topic.cache_clear()
