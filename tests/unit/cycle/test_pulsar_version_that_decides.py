"""Which version of Pulsar decides an interval, and what changes with it: from the records of a rolling upgrade."""

from collections.abc import Mapping
from typing import Any

import pytest

from controller.aggregate.snapshot import Snapshot
from controller.cycle import Policy
from controller.engine import decide_interval
from controller.model.controls import Controls
from controller.model.decision import Reason
from controller.model.journal import JournalEntry
from controller.model.pulsar_version import PulsarVersion
from controller.settings.guardrails import GuardrailSettings
from controller.settings.policy import versioned_policy
from controller.settings.trimtab_toml import DecisionSettings
from controller.wire.base import validate
from controller.wire.journal import DecisionEntry, encode_entry, to_entry
from tests.folds import snapshots, sweep, ticked
from tests.records import LEFT, PERIOD, RIGHT, T, broker_state

A, B, C = "a:8080", "b:8080", "c:8080"
ACTIVE = Controls(mode="active")


def policy(pulsar: str | None = None, **conf: str) -> Policy:
    version = None if pulsar is None else PulsarVersion.parse(pulsar)
    guardrails = GuardrailSettings(brokers_balance_unknown="ignore")
    return versioned_policy(conf, DecisionSettings(), guardrails, 1, "demo", PERIOD, pulsar=version)


def upgrade(*steps: tuple[Mapping[str, str], str]) -> list[Snapshot]:
    """Intervals in each of which brokers report these versions, "" for none, and one of them, "" for none, leads."""
    batches = []
    for n, (versions, leader) in enumerate(steps):
        states: list[dict[str, Any]] = [
            broker_state(broker=name, version=T + n * PERIOD, brokerVersionString=text or None, leader=name == leader)
            for name, text in versions.items()
        ]
        names = list(versions)
        swept = [sweep(names[0], n, LEFT), *(sweep(name, n, RIGHT) for name in names[1:2])]
        swept += [sweep(name, n) for name in names[2:]]
        batches.append([*states, *swept, ticked(n, *names)])
    return snapshots(*batches)


def decided(found: list[Snapshot], made: Policy | None = None) -> list[JournalEntry]:
    """Every interval, with the memory of the one before."""
    made = made or policy()
    memory, entries = made.initial_memory(1), list[JournalEntry]()
    for snapshot in found:
        entries.append(decide_interval([snapshot], memory, ACTIVE, made))
        memory = entries[-1].memory
    return entries


def used(*steps: tuple[Mapping[str, str], str]) -> list[tuple[str, str]]:
    """Version and source of each interval."""
    versions = [entry.decision.pulsar for entry in decided(upgrade(*steps))]
    return [(str(each.version), each.source) for each in versions if each is not None]


OLD, HALF, NEW = dict.fromkeys((A, B, C), "4.2.4"), {A: "5.0.1", B: "4.2.4", C: "4.2.4"}, dict.fromkeys((A, B), "5.0.1")


def test_a_rolling_upgrade_follows_the_version_of_the_leader() -> None:
    assert used((OLD, B), (HALF, B), (HALF, A), (NEW, A)) == [
        ("4.2.4", "leader"),
        ("4.2.4", "leader"),
        ("5.0.1", "leader"),
        ("5.0.1", "leader"),
    ]


def test_without_a_leader_the_last_version_goes_on_as_long_as_a_broker_has_it() -> None:
    assert used((OLD, B), (HALF, ""), (HALF, ""), (NEW, "")) == [
        ("4.2.4", "leader"),
        ("4.2.4", "last"),
        ("4.2.4", "last"),
        ("5.0.1", "brokers"),
    ]


def test_where_no_leader_was_ever_known_the_oldest_version_decides() -> None:
    assert used((HALF, ""), (HALF, "")) == [("4.2.4", "oldest")] * 2


def test_the_version_of_a_broker_that_is_gone_does_not_count() -> None:
    without_a = {B: "4.2.4", C: "4.2.4"}
    assert used((HALF, A), (without_a, "")) == [("5.0.1", "leader"), ("4.2.4", "brokers")]


def test_where_nobody_says_a_version_it_is_4_0_with_a_verdict_that_says_so() -> None:
    silent = {A: "", B: "no version"}
    [entry] = decided(upgrade((silent, A)))
    assert entry.decision.pulsar is not None
    assert (str(entry.decision.pulsar.version), entry.decision.pulsar.source) == ("4.0", "nobody")
    assert "assumed, as no record says which version the brokers run" in about_version(entry)


def test_of_two_brokers_that_claim_to_lead_the_one_heard_of_last_counts() -> None:
    stale = broker_state(broker=A, version=T - PERIOD, brokerVersionString="5.0.1", leader=True)
    leads = broker_state(broker=B, version=T, brokerVersionString="4.2.4", leader=True)
    found = snapshots([leads, stale, sweep(A, 0, LEFT), sweep(B, 0, RIGHT), ticked(0, A, B)])
    [entry] = decided(found)
    assert entry.decision.pulsar is not None
    assert (str(entry.decision.pulsar.version), entry.decision.pulsar.leader) == ("4.2.4", B)


def about_version(entry: JournalEntry) -> str:
    return "; ".join(each.detail for each in entry.decision.verdicts if each.reason is Reason.PULSAR_VERSION)


def test_verdicts_name_the_change_and_the_brokers_of_other_versions_and_nothing_where_all_are_alike() -> None:
    entries = decided(upgrade((OLD, B), (HALF, B), (HALF, A), (NEW, A)))
    assert [about_version(entry) for entry in entries] == [
        "",
        f"decided as Pulsar 4.2.4, that of Pulsar's leader, {B}; brokers by version: 4.2.4: 2, 5.0.1: 1",
        f"decided as Pulsar 5.0.1, that of Pulsar's leader, {A}; before it was 4.2.4;"
        " brokers by version: 4.2.4: 2, 5.0.1: 1",
        "",
    ]


def test_the_first_interval_begins_with_the_strategies_of_its_version_and_calls_nothing_changed() -> None:
    [entry] = decided(upgrade((NEW, A)))
    assert entry.memory.shedder.kind == "broker_hit_counts"
    assert "changed" not in entry.decision.summary


def test_a_new_version_is_in_the_summary_of_its_first_interval_alone() -> None:
    summaries = [entry.decision.summary for entry in decided(upgrade((OLD, B), (HALF, A), (HALF, A)))]
    assert ["before it was 4.2.4" in each for each in summaries] == [False, True, False]


def test_another_default_shedder_begins_with_an_empty_memory_and_the_summary_says_so() -> None:
    before, after = decided(upgrade((OLD, B), (HALF, A)))
    assert (before.memory.shedder.kind, after.memory.shedder.kind) == ("usage_history", "broker_hit_counts")
    assert "shedder: strategy changed to AvgShedder" in after.decision.summary


def test_a_shedder_that_is_written_down_keeps_its_memory_in_the_new_version() -> None:
    made = policy(loadBalancerLoadSheddingStrategy="ThresholdShedder")
    before, after = decided(upgrade((OLD, B), (HALF, A)), made)
    assert (before.memory.shedder.kind, after.memory.shedder.kind) == ("usage_history", "usage_history")


def test_the_settings_may_name_a_version_whatever_the_brokers_run() -> None:
    [entry] = decided(upgrade((OLD, B)), policy("5.0"))
    assert entry.memory.shedder.kind == "broker_hit_counts"
    assert about_version(entry) == "decided as Pulsar 5.0, as the settings say; brokers by version: 4.2.4: 3"


def test_the_line_that_the_settings_name_is_that_of_every_patch() -> None:
    [entry] = decided(upgrade((OLD, B)), policy("4.2"))
    assert about_version(entry) == ""


def test_the_journal_names_the_version_and_gives_it_back_as_what_was_last_known() -> None:
    entry = decided(upgrade((HALF, A)))[0]
    read = to_entry(validate(DecisionEntry, encode_entry(entry)))
    assert read.decision.pulsar == read.memory.pulsar == entry.decision.pulsar


def test_a_version_that_the_settings_do_not_go_with_holds_everything_and_ends_nothing() -> None:
    made = policy(defaultNamespaceBundleSplitAlgorithm="flow_or_qps_equally_divide")
    entry, *_ = decided(upgrade((dict.fromkeys((A, B), "2.10.4"), A)), made)
    assert entry.controls.mode == "observe"
    assert entry.decision.commands == ()
    assert "Pulsar 2.10.4 does not go with the settings, so nothing is issued" in about_version(entry)
    assert "supportedNamespaceBundleSplitAlgorithms" in about_version(entry)


def test_the_same_records_give_the_same_entry_whatever_was_decided_for_other_versions_before() -> None:
    made, steps = policy(), upgrade((OLD, B), (HALF, A), (OLD, B))
    first = [encode_entry(entry) for entry in decided(steps, made)]
    assert [encode_entry(entry) for entry in decided(steps, made)] == first
    assert [encode_entry(entry) for entry in decided(steps, policy())] == first


@pytest.mark.parametrize("version", ["2.8.4", "3.0.7", "4.0.8", "4.2.4", "5.0.1"])
def test_which_topics_are_kept_one_by_one_does_not_depend_on_the_version(version: str) -> None:
    made, found = policy(), PulsarVersion.parse(version)
    assert found is not None
    assert made.on(found).detail_limits(0.5) == made.detail_limits(0.5), "workers are told once, before any record"
