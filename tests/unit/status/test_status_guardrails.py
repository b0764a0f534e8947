"""`trimtab status` on guardrails: what stops commands, who set it, and how much of the budgets is used."""

from dataclasses import replace
from pathlib import Path

from controller.adapters.election.controls import ABSENT
from controller.log.elections import election_system
from controller.model.controls import Choice, OperatorControls, Pause
from controller.model.journal import JournalEntry
from controller.model.memory import (
    Breaker,
    BrokerDeaths,
    Destination,
    FatalBundle,
    Memory,
    OwnBalancing,
    Roster,
    UnlistedBundle,
)
from controller.settings.trimtab_toml import Settings, read_settings
from controller.status.guardrails import (
    GuardrailStatus,
    chosen_controls,
    guardrail_answer,
    guardrail_rows,
    guardrail_status,
)
from tests.folder_settings import write_settings
from tests.journal_entries import UNLOAD, entry
from tests.records import T


def settings(tmp_path: Path) -> Settings:
    file = write_settings(tmp_path, 'decisions.mode = "active"', cluster="standalone")
    return read_settings(file)


def current(settings: Settings, last: JournalEntry | None) -> GuardrailStatus:
    return guardrail_status(settings, last, *chosen_controls(settings))


def test_mode_and_pause_say_who_set_them_and_what_the_settings_say(tmp_path: Path) -> None:
    found = settings(tmp_path)
    rows = guardrail_rows(current(found, None))
    assert (rows["mode"], rows["paused"]) == ("active, by the settings", "no, by the settings")
    chosen = OperatorControls(
        mode=Choice(value="dry_run", reason="", by="bob", at_ms=T),
        pauses=(Pause(reason="upgrade", by="ada", at_ms=T),),
    )
    store = election_system(found).controls()
    Path(found.election.path).mkdir()
    store.write(chosen, ABSENT)
    rows = guardrail_rows(current(found, None))
    assert rows["mode"].startswith("dry_run, set by bob at 20")
    assert rows["mode"].endswith("Z; the settings say active")
    assert rows["paused"].startswith("yes, set by ada at 20")
    assert rows["paused"].endswith("Z: upgrade; the settings say no")
    fields = guardrail_answer(current(found, None)).model_dump(by_alias=True)
    assert fields["mode"]["inForce"] == "dry_run"
    assert fields["paused"]["pauses"] == [{"by": "ada", "reason": "upgrade", "atMs": T, "untilMs": 0}]


def test_brokers_that_balance_are_named_as_the_last_decision_knew_them(tmp_path: Path) -> None:
    why = "loadBalancerSheddingEnabled=true on broker-2:8080: mode active issues nothing until it is false there"
    last = entry(T, UNLOAD)
    last = replace(last, memory=replace(last.memory, balancing=OwnBalancing(why=why, on=1)))
    found = current(settings(tmp_path), last)
    assert guardrail_rows(found)["balancing"] == why
    assert guardrail_answer(found).brokers_balance == why
    assert "balancing" not in guardrail_rows(current(settings(tmp_path), entry(T, UNLOAD)))


def test_budgets_far_from_their_limits_are_one_short_line(tmp_path: Path) -> None:
    found = current(settings(tmp_path), entry(T, UNLOAD))
    rows = guardrail_rows(found)
    assert "fullest" not in rows
    assert rows["budgets"] == "less than half of each is used, most of broker-1:8080: 2 of 40 commands in flight (5%)"
    budgets = {each["budget"]: each for each in guardrail_answer(found).model_dump(by_alias=True)["budgets"]}
    assert budgets["guardrails.window.unloads"] == {
        "budget": "guardrails.window.unloads",
        "of": "cluster",
        "used": 1,
        "limit": 1000,
        "unit": "unloads in 3600 s",
    }
    assert budgets["guardrails.in_flight_per_broker"]["used"] == 2


def test_budgets_of_which_half_is_used_are_named_the_fullest_first(tmp_path: Path) -> None:
    ours = settings(tmp_path)
    narrow = ours.guardrails.model_copy(update={"in_flight": 2, "in_flight_per_broker": 3})
    rows = guardrail_rows(current(ours.model_copy(update={"guardrails": narrow}), entry(T, UNLOAD)))
    assert rows["budgets"] == (
        "cluster: 2 of 2 commands in flight (100%), broker-1:8080: 2 of 3 commands in flight (67%)"
    )


def test_a_tripped_breaker_brokers_that_came_and_windows_are_told(tmp_path: Path) -> None:
    tripped = Breaker(tripped_at=T, why="10 commands failed")
    memory = Memory(breaker=tripped, roster=Roster(brokers=("a",), came={"a": T}))
    found = current(settings(tmp_path), replace(entry(), memory=memory))
    rows = guardrail_rows(found)
    assert rows["breaker"].startswith("TRIPPED at 20")
    assert rows["breaker"].endswith(": 10 commands failed; run `trimtab resume`")
    assert rows["brokers"] == "joined or left: a"
    assert rows["windows"] == "commands are allowed now"
    assert guardrail_answer(found).model_dump(by_alias=True)["breaker"]["trippedAt"] == T


def test_choices_that_cannot_be_read_are_told(tmp_path: Path) -> None:
    found = settings(tmp_path)
    Path(found.election.path).mkdir()
    (Path(found.election.path) / "controls.json").write_text("?")
    assert guardrail_rows(current(found, None))["controls"].startswith("cannot be read, so nothing is issued: ")


def test_brokers_that_do_not_list_what_was_moved_to_them_are_named_with_what_to_do(tmp_path: Path) -> None:
    late = {bundle: UnlistedBundle(answered=T, sweeps=3, verified=True) for bundle in ("x/y/1", "x/y/2")}
    waiting = {"x/y/3": UnlistedBundle(answered=T)}
    memory = Memory(destinations={"a:8080": Destination(unlisted=late), "b:8080": Destination(unlisted=waiting)})
    found = current(settings(tmp_path), replace(entry(), memory=memory))
    row = guardrail_rows(found)["unconfirmed"]
    assert row.startswith("a:8080 does not list 2 bundles: they get no more bundles")
    assert "`trimtab resume`" in row
    fields = guardrail_answer(found).model_dump(by_alias=True)
    assert fields["unconfirmed"] == {"a:8080": ["x/y/1", "x/y/2"]}
    assert fields["unlisted"] == {"a:8080": 2, "b:8080": 1}
    assert "unconfirmed" not in guardrail_rows(current(settings(tmp_path), entry()))


def test_a_bundle_that_kills_brokers_is_named(tmp_path: Path) -> None:
    memory = Memory(deaths=BrokerDeaths(fatal={"x/y/1": FatalBundle(at=T, deaths=9, brokers=("a:8080",))}))
    found = current(settings(tmp_path), replace(entry(), memory=memory))
    assert guardrail_rows(found)["kill brokers"].startswith("x/y/1 (9 owners died in a row): it is not moved")
    assert guardrail_answer(found).model_dump(by_alias=True)["fatal"] == {"x/y/1": 9}
    assert "kill brokers" not in guardrail_rows(current(settings(tmp_path), entry()))
