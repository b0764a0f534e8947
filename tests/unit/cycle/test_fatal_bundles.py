"""A bundle whose owners die one after the other is named and left where it is; restarts are blamed on no bundle."""

from dataclasses import replace

import numpy as np
import pytest

from controller.cycle import decide
from controller.cycle.guardrails.fatal_bundles import MOST_NAMED, FatalLimits, watched_deaths
from controller.cycle.limits import Limits
from controller.model import packed
from controller.model.controls import Controls, OrderedMove, Orders
from controller.model.decision import Reason
from controller.model.journal import JournalEntry
from controller.model.memory import BrokerDeaths, FatalBundle, Memory
from controller.settings.guardrails import GuardrailSettings, limits_of
from controller.strategies.api import Broker, Bundle, cluster_view
from controller.wire.journal import encode_entry
from tests.cluster import INTERVAL, broker, view
from tests.journal_entries import entry, parse_entry
from tests.restarting_brokers import MINUTE, RestartingBrokers, restarts_of_all_kinds
from tests.unit.cycle.test_cycle import POLICY, WARM

KILLER = 7


def killed(brokers: int, bundles: int, most: int, seed: int = 1, *, listed: bool = True) -> RestartingBrokers:
    """Whoever owns KILLER dies, until it is named, or so many times at *most*; *listed*: see ``restart``."""
    model = RestartingBrokers(np.random.default_rng(seed), brokers, bundles)
    while not model.named and model.deaths < most:
        model.restart(int(model.owner[KILLER]), seen_away=bool(model.deaths % 2), listed=listed)
        model.look()
    return model


@pytest.mark.parametrize(("brokers", "bundles", "deaths"), [(3, 30, 40), (6, 60, 25), (12, 60, 18)])
def test_the_bundle_that_was_on_each_broker_that_died_is_named_and_no_other(
    brokers: int, bundles: int, deaths: int
) -> None:
    model = killed(brokers, bundles, deaths)
    assert model.named == {model.names[KILLER]}
    assert model.memory.deaths.fatal[model.names[KILLER]].deaths == model.deaths


def test_a_bundle_that_nobody_lists_while_its_owner_dies_is_named_once_it_is_listed() -> None:
    model = killed(6, 60, 25, listed=False)
    assert model.named == {model.names[KILLER]}
    named = model.memory.deaths.fatal[model.names[KILLER]]
    assert named.deaths == model.deaths - 1, "the first owner came back before anybody listed what it had"
    model.look()
    assert model.memory.deaths.fatal == {model.names[KILLER]: named}, "later intervals without a death add nothing"
    model.restart(int(model.owner[KILLER]), listed=False)
    again = model.memory.deaths.fatal[model.names[KILLER]]
    assert (again.deaths, again.brokers[1]) == (named.deaths + 1, named.brokers[0])


def test_after_a_resume_it_is_named_only_because_of_another_death() -> None:
    model = killed(6, 60, 25, listed=False)
    model.resumed_ms = model.now
    for _ in range(3):
        model.look()
        assert model.memory.deaths.fatal == {}
    model.restart(int(model.owner[KILLER]), listed=False)
    assert [*model.memory.deaths.fatal] == [model.names[KILLER]]


@pytest.mark.slow
def test_a_bundle_that_is_always_alone_on_its_broker_is_not_named() -> None:
    """Nothing shows whether its place says anything: docs/guardrails.md."""
    model = RestartingBrokers(np.random.default_rng(1), 4, 1)
    for _ in range(300):
        model.restart(int(model.owner[0]))
    assert model.named == set()


@pytest.mark.slow
@pytest.mark.parametrize("listed", [True, False])
def test_no_restarts_are_blamed_on_a_bundle(listed: bool) -> None:
    models = restarts_of_all_kinds(np.random.default_rng(3), 150, listed=listed)
    assert [model for model in models if model.named] == []


@pytest.mark.extended
@pytest.mark.parametrize("listed", [True, False])
def test_nor_are_ten_thousand(listed: bool) -> None:
    models = restarts_of_all_kinds(np.random.default_rng(4), 10_000, listed=listed)
    assert [(model.brokers, model.bundles, model.placement) for model in models if model.named] == []


def test_a_broken_broker_that_dies_again_and_again_is_blamed_on_no_bundle_that_comes_back_to_it() -> None:
    model = RestartingBrokers(np.random.default_rng(5), 4, 20)
    for _ in range(30):
        model.restart(0)
        model.owner[:3] = 0  # a balancer sends the same bundles there
        model.look()
    assert model.named == set()


def test_a_death_without_the_bundle_ends_its_series() -> None:
    model = killed(12, 60, 8)
    model.restart((int(model.owner[KILLER]) + 1) % 12)
    for _ in range(8):
        model.restart(int(model.owner[KILLER]))
    assert model.named == set()


def test_where_all_bundles_of_a_dead_broker_go_the_same_way_none_is_named() -> None:
    model = RestartingBrokers(np.random.default_rng(6), 6, 30, "herd")
    for _ in range(40):
        model.restart(int(model.owner[KILLER]))
    assert model.named == set()


def test_what_commands_took_off_a_broker_is_no_death() -> None:
    model = RestartingBrokers(np.random.default_rng(7), 3, 12)
    mine = [model.names[row] for row in np.flatnonzero(model.owner == 0).tolist()]
    model.memory = replace(model.memory, recently_unloaded=dict.fromkeys(mine, model.now))
    model.owner[model.owner == 0] = 1
    model.look()
    assert not model.memory.deaths.died
    model.owner[model.owner == 1] = 2
    model.look()
    assert model.memory.deaths.died == ("b001:8080",), "nobody knows who took these"


def test_a_takeover_changes_nothing() -> None:
    model, twin = (RestartingBrokers(np.random.default_rng(8), 4, 40) for _ in range(2))
    for _ in range(30):
        for each in (model, twin):
            each.restart(int(each.owner[KILLER]))
        read = parse_entry(encode_entry(replace(entry(), memory=twin.memory)))
        assert isinstance(read, JournalEntry)
        twin.memory = read.memory
        assert twin.memory == model.memory
    assert model.named == twin.named == {model.names[KILLER]}


def test_damaged_columns_begin_anew() -> None:
    model = killed(4, 40, 5)
    deaths = model.memory.deaths
    shorter = replace(deaths, chances=deaths.chances[:4])
    for damaged in (replace(deaths, owners="?"), replace(deaths, brokers=()), shorter):
        model.memory = replace(model.memory, deaths=damaged)
        model.look()
        assert len(model.memory.deaths.hashes) == len(deaths.hashes)


@pytest.mark.slow
def test_bundles_that_come_and_go_on_a_broker_which_dies_again_and_again_do_not_add_up() -> None:
    memory, rows = Memory(), list[int]()
    other = Broker("b:80", cpu=0.5, bundles={"acme/other/0x00000000_0xffffffff": Bundle()})
    for death in range(200):
        dies = Broker("a:80", cpu=0.5, bundles={f"acme/job-{death}/0x00000000_0xffffffff": Bundle()})
        for nth, there in enumerate(((dies, other), (other,))):
            seen = replace(cluster_view(*there), as_of_ms=(2 * death + nth) * MINUTE)
            memory = watched_deaths(memory, seen, FatalLimits(move_fatal=False), MINUTE, 0)
        rows.append(len(packed.unpack_bytes(memory.deaths.deaths)))
    assert rows[199] == rows[149] < 150


BUNDLE = "acme/own/0x00000000_0x80000000"
FATAL = BrokerDeaths(fatal={BUNDLE: FatalBundle(at=INTERVAL - MINUTE, deaths=12, brokers=("b:80", "c:80"))})
HOT = view(
    broker("a:80", usage=0.95, **{BUNDLE: 90.0, "acme/own/0x80000000_0xffffffff": 30.0}), broker("b:80", usage=0.1)
)
ON = replace(POLICY, limits=Limits(move_fatal=False))


def test_no_command_touches_it_and_it_is_named() -> None:
    move = OrderedMove(bundle=BUNDLE, source="a:80", destination="b:80")
    orders = Orders(
        plan="0f" * 32, step=1, wave=1, waves=1, moves=(move,), checked_at=INTERVAL - MINUTE,
        expires_at_ms=INTERVAL + MINUTE, holder="one", by="ada",
    )  # fmt: skip
    memory = replace(WARM, deaths=FATAL)
    for controls in (Controls(mode="active"), Controls(mode="active", orders=orders)):
        decision, after = decide(HOT, [], memory, controls, ON)
        assert BUNDLE not in {command.bundle for command in decision.commands}
        verdict = next(each for each in decision.verdicts if each.subject == BUNDLE)
        assert (verdict.reason, verdict.observed, verdict.by) == (Reason.KILLS_BROKERS, 12, "guardrails.move_fatal")
        assert f"KillsBrokers: {BUNDLE}" in decision.summary
        assert BUNDLE in after.deaths.fatal
    free = decide(HOT, [], memory, Controls(mode="active"), POLICY)[0]
    assert BUNDLE in {command.bundle for command in free.commands}


def test_resume_and_a_day_without_deaths_forget_it() -> None:
    memory = replace(WARM, deaths=FATAL)
    resumed = decide(HOT, [], memory, Controls(mode="active", resumed_ms=INTERVAL), ON)[1]
    assert resumed.deaths.fatal == {}
    later = replace(HOT, as_of_ms=INTERVAL + 86_400_000)
    assert watched_deaths(memory, later, FatalLimits(move_fatal=False), MINUTE, 0).deaths.fatal == {}
    assert watched_deaths(memory, HOT, FatalLimits(move_fatal=True), MINUTE, 0).deaths == BrokerDeaths()


def test_it_is_on_unless_the_settings_say_otherwise() -> None:
    assert limits_of(GuardrailSettings()).move_fatal is False
    assert Limits().move_fatal is True
    assert MOST_NAMED == 20
    assert Memory().deaths == BrokerDeaths()
