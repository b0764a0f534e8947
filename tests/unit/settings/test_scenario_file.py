"""The file of a scenario: what is refused, and how it is told."""

from collections.abc import Callable
from pathlib import Path

import pytest

from controller.model.errors import SettingsError
from controller.settings.scenario import read_scenario

GOOD = """
title = "t"
intervals = 20
expect = ["moves <= 3"]
brokers = [{ count = 3 }]
namespaces = [{ name = "acme/orders", bundles = 8, topics = 60 }]
"""


@pytest.fixture
def refusal(tmp_path: Path) -> Callable[[str], str]:
    """What is told of a file with this text, without the file's name."""

    def refused(text: str) -> str:
        path = tmp_path / "s.toml"
        path.write_text(text, encoding="utf-8")
        with pytest.raises(SettingsError) as error:
            read_scenario(path)
        assert error.value.exit_code == 2
        assert all(line.startswith(f"{path}: ") for line in str(error.value).splitlines())
        return str(error.value).replace(f"{path}: ", "")

    return refused


def test_a_short_file_is_enough(tmp_path: Path) -> None:
    path = tmp_path / "s.toml"
    path.write_text(GOOD, encoding="utf-8")
    found = read_scenario(path)
    assert (found.broker_count, found.seed, found.cure, found.guardrails) == (3, 1, None, None)


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ("interval = 3", "interval = 3: unknown key; allowed: title, text,"),
        ("[load]\nmsg_rat = 3", "load.msg_rat = 3: unknown key; allowed: msg_rate,"),
        (
            "[[restarts]]\nat = 1\nbrokers = [1]\nbroker = 1",
            "restarts.0.broker = 1: unknown key; allowed: at, brokers, down,",
        ),
        ("[[restarts]]\nat = 1\nbrokers = [4]", "restarts.0.brokers = 4: there are brokers 1 to 3"),
        ("[[leaves]]\nat = 1\nbrokers = [9]", "leaves.0.brokers = 9: there are brokers 1 to 3"),
        (
            "[[lags]]\nat = 1\nnamespace = 'acme/x'",
            "lags.0.namespace = 'acme/x': no such namespace; there are: acme/orders",
        ),
        (
            "[decisions]\nexcluded = ['acme/x/0x00000000_0x80000000']",
            "decisions.excluded = 'acme/x/0x00000000_0x80000000': no such namespace; there are: acme/orders",
        ),
        (
            "[cure]\ntext = 'c'\nexpect = ['moves <= 1']\n[cure.decisions]\nexcluded = ['acme/x']",
            "cure.decisions.excluded = 'acme/x': no such namespace; there are: acme/orders",
        ),
        ("[[lags]]\nat = 1\ncatch_up_factor = 1", "lags.0.catch_up_factor = 1: Input should be greater than 1"),
        ("[[bursts]]\nat = 1\nfactor = 0", "bursts.0.factor = 0: Input should be greater than 0"),
        ("[[bursts]]\nat = 1\nfactor = nan", "bursts.0.factor = nan: Input should be a finite number"),
        ("[load]\nmsg_rate = inf", "load.msg_rate = inf: Input should be"),
        ("[load]\nmsg_rate = '3'", "load.msg_rate = '3': Input should be a valid number"),
        (
            "[[bursts]]\nat = 1\nfactor = 2\nnamespace = 'acme/x'",
            "bursts.0.namespace = 'acme/x': no such namespace; there are: acme/orders",
        ),
        ("[cure]\nexpect = ['moves >= 1']", "cure.text is missing"),
        ("[cure]\ntext = 'x'", "[cure] expect is missing: say what the cure changes"),
        ("[cure]\ntext = 'x'\nexpect = ['move >= 1']", "cure.expect.0 = 'move >= 1': no such figure: 'move'; allowed:"),
        (
            "[cure]\ntext = 'x'\nexpect = ['moves of a/b >= 1']",
            "expect = 'moves of a/b >= 1': no such namespace; there are: acme/orders",
        ),
        (
            "[moves]\nlost_percent = 60\nfailed_percent = 60",
            "[moves] lost, failed, astray and hangs_percent are 120 together; allowed are 100 or less",
        ),
        ("[decisions]\nmode = 'observe'", "decisions.mode has no effect in a simulation: leave it out"),
        (
            "[cure]\ntext = 'x'\nexpect = ['moves >= 1']\n[cure.guardrails.maintenance]\ntime_zone = 'UTC'",
            "cure.guardrails.maintenance has no effect in a simulation: leave it out",
        ),
        ("[guardrails]\nfreeze = 1", "guardrails.freeze = 1: unknown key; allowed: move_fatal,"),
        ("[guardrails.interval]\nunload = 1", "guardrails.interval.unload = 1: unknown key; allowed: unloads,"),
    ],
)
def test_a_wrong_key_or_value_is_told_with_what_is_allowed(refusal: Callable[[str], str], more: str, told: str) -> None:
    assert refusal(f"{GOOD}\n{more}\n").startswith(told)


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("count = 3", "count = 0", "brokers.0.count = 0: Input should be greater than or equal to 1"),
        ("count = 3", "count = 3, load = 0", "brokers: at the start one broker at least must be there"),
        ("count = 3", "count = 3, joins_at = 2", "brokers: at the start one broker at least must be there"),
        ("bundles = 8", "bundles = 8, primary = [4]", "namespaces.0.primary = 4: there are brokers 1 to 3"),
        ("[{ count = 3 }]", "[]", "brokers = []: Array should have at least 1 item"),
        ("acme/orders", "acme", "namespaces.0.name = 'acme': expected tenant/namespace"),
        ("bundles = 8", "bundles = 1_000_000", "namespaces.0.bundles = 1000000: Input should be less than"),
        ("moves <= 3", "moves <= 3 after 20", "expect = 'moves <= 3 after 20': the scenario has the intervals 0 to 19"),
        ('"moves <= 3"', "3", "expect.0 = 3: Input should be a valid string"),
        ("intervals = 20", "intervals = 1", "intervals = 1: Input should be greater than or equal to 2"),
        ('title = "t"', "", "title is missing"),
        ('title = "t"', "title =", "not TOML: "),
        (
            "60 }]",
            '60 }, { name = "acme/orders", bundles = 8, topics = 60 }]',
            "namespaces.name = 'acme/orders': there is another namespace of that name",
        ),
        (
            "60 }]",
            "1_000_000 }, { name = 'a/b', bundles = 8, topics = 60 }]",
            "there are 1,000,060 topics; allowed are 1,000,000 or fewer",
        ),
    ],
)
def test_a_scenario_that_cannot_be_is_refused(refusal: Callable[[str], str], old: str, new: str, told: str) -> None:
    assert old in GOOD
    assert refusal(GOOD.replace(old, new)).startswith(told)


def test_all_errors_are_told_at_once(refusal: Callable[[str], str]) -> None:
    assert len(refusal(f"{GOOD}\nseed = -1\nperiod_seconds = 0\n").splitlines()) == 2


def test_a_file_that_is_not_there_or_no_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "s.toml"
    with pytest.raises(SettingsError, match="cannot be read: No such file"):
        read_scenario(path)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(SettingsError, match="not TOML"):
        read_scenario(path)
    with pytest.raises(SettingsError, match="cannot be read: Is a directory"):
        read_scenario(tmp_path)


def test_an_array_of_one_wrong_item_is_not_called_too_short_as_well(refusal: Callable[[str], str]) -> None:
    told = refusal(GOOD.replace("bundles = 8", "bundles = 100_000_000"))
    assert told == "namespaces.0.bundles = 100000000: Input should be less than or equal to 100000"


def test_an_array_without_items_is_too_short(refusal: Callable[[str], str]) -> None:
    assert refusal(GOOD.replace("[{ count = 3 }]", "[]")).startswith("brokers = []: Array should have at least 1 item")


def test_isolation_policies_leave_a_broker_to_each_namespace(refusal: Callable[[str], str]) -> None:
    two = GOOD.replace("{ count = 3 }", "{ count = 2 }, { count = 1, joins_at = 3 }")
    assert two != GOOD
    without = two.replace("bundles = 8", "bundles = 8, primary = [3]")
    assert refusal(without).endswith(
        "acme/orders: none of its primary brokers is there at the start, with load above 0"
    )
    others = two.replace("bundles = 8", "bundles = 8, primary = [1, 2]").replace(
        "namespaces = [", 'namespaces = [{ name = "acme/logs", bundles = 2, topics = 2 }, '
    )
    assert refusal(others).endswith("acme/logs: isolation policies leave it no broker that is there at the start")
