"""This host's clock beside the brokers', by the Date of their answers."""

import time
from email.utils import formatdate

import pytest

from controller.adapters.pulsar.server_clocks import ServerClocks, difference

NOW = 1_795_233_660.5


class World:
    """Two clocks of this host, of which somebody sets one."""

    def __init__(self) -> None:
        self.ours, self.steady = NOW, 1000.0
        self.clocks = ServerClocks(clock=lambda: self.ours, steady=lambda: self.steady)

    def hear(self, server: str, date: str | None = None, *, ahead: float = 0.0, takes: float = 0.1) -> None:
        """*server*, whose clock is *ahead* of ours, answers a question in so many seconds, and dates it half way."""
        began = self.clocks.began()
        dated = formatdate(self.ours + takes / 2 + ahead, usegmt=True) if date is None else date
        self.pass_time(takes)
        self.clocks.hear(server, dated, began)

    def pass_time(self, seconds: float) -> None:
        self.ours += seconds
        self.steady += seconds


@pytest.fixture
def world() -> World:
    return World()


def test_without_an_answer_nothing_is_known_and_the_time_is_this_hosts(world: World) -> None:
    assert world.clocks.ahead_seconds() is None
    assert world.clocks.latest_ms() == int(NOW * 1000)


@pytest.mark.parametrize("takes", [0.0, 0.4, 5.0])
@pytest.mark.parametrize("ahead", [0.0, 0.3, -0.3])
def test_clocks_that_may_be_the_same_agree(world: World, takes: float, ahead: float) -> None:
    world.hear("a", takes=takes, ahead=ahead)
    assert abs(world.clocks.ahead_seconds() or 0.0) <= 0.3


def test_clocks_that_differ_do_so_by_what_is_sure(world: World) -> None:
    world.hear("a", ahead=-60.0)
    assert world.clocks.ahead_seconds() == pytest.approx(60, abs=1.2)
    world.hear("a", ahead=60.0)
    assert world.clocks.ahead_seconds() == pytest.approx(-60, abs=1.2)


def test_one_wrong_broker_among_several_does_not_matter_and_of_two_the_closer_one_counts(world: World) -> None:
    world.hear("a", ahead=3600.0)
    world.hear("b")
    assert world.clocks.ahead_seconds() == 0.0
    world.hear("c")
    assert world.clocks.ahead_seconds() == 0.0
    world.hear("b", ahead=3600.0)
    assert world.clocks.ahead_seconds() == pytest.approx(-3600, abs=1.2)


def test_a_step_of_this_hosts_clock_is_seen_before_any_broker_answers_again(world: World) -> None:
    world.hear("a")
    world.ours += 3600
    assert world.clocks.ahead_seconds() == pytest.approx(3600, abs=1.2)
    world.ours -= 7200
    assert world.clocks.ahead_seconds() == pytest.approx(-3600, abs=1.2)


def test_a_broker_that_was_not_heard_for_long_does_not_count(world: World) -> None:
    world.hear("a", ahead=3600.0)
    world.pass_time(899)
    assert world.clocks.ahead_seconds() is not None
    world.pass_time(2)
    assert world.clocks.ahead_seconds() is None


@pytest.mark.parametrize("date", ["", "soon", "Tue, 99 Nov 2026 00:00:00 GMT", "Tue, 24 Nov 9999999 00:00:00 GMT"])
def test_a_date_that_is_none_says_nothing(world: World, date: str) -> None:
    world.hear("a", date)
    assert world.clocks.ahead_seconds() is None


@pytest.mark.parametrize("zone", ["", " -0000", " GMT", " +0000"])
def test_a_date_without_a_zone_is_gmt(world: World, zone: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    try:
        world.hear("a", formatdate(NOW).rpartition(" ")[0] + zone)
        assert world.clocks.ahead_seconds() == 0.0
    finally:
        monkeypatch.undo()
        time.tzset()


def test_servers_that_went_are_forgotten_once_there_are_many(world: World) -> None:
    for number in range(1000):
        world.hear(f"old-{number}", ahead=3600.0, takes=0.0)
    world.pass_time(1000)
    world.hear("a")
    assert world.clocks.ahead_seconds() == 0.0


def test_of_a_clock_that_is_behind_the_brokers_time_counts_and_it_is_told_once(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    world.hear("a", ahead=600.0)
    assert world.clocks.latest_ms() == pytest.approx((NOW + 600) * 1000, abs=1200)
    world.clocks.latest_ms()
    world.hear("a")
    assert world.clocks.latest_ms() == int(world.ours * 1000)
    world.hear("a", ahead=-600.0)
    assert world.clocks.latest_ms() == int(world.ours * 1000), "what is late by this host's clock stays late"
    said = [record.message for record in caplog.records]
    assert len(said) == 3
    assert "this host's clock is 599 s behind the brokers' clocks" in said[0]
    assert "agree again" in said[1]
    assert "600 s ahead of" in said[2]


def test_how_far_clocks_differ_is_told_in_words() -> None:
    assert difference(61.4) == "this host's clock is 61 s ahead of the brokers' clocks"
    assert difference(-2.6) == "this host's clock is 3 s behind the brokers' clocks"
