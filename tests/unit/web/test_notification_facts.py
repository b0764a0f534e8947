"""What a sender looks at: proposals by their policy, and what the page's store has."""

import json
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from controller.adapters.election.memory import MemoryProposals
from controller.model.controls import DecisionApproval
from controller.model.decision import Command, Reason
from controller.model.proposed import ProposedDecision
from controller.settings.trimtab_toml import read_settings
from controller.web.notifications.facts import cluster_facts, proposals_in
from controller.web.store.store import Store
from tests.folder_settings import write_settings
from tests.page_data import BUNDLE, REASON, FixedPageData, T
from tests.proposals import CLUSTER, NOW, decision, decision_content
from tests.unit.web.weeks import day


def test_proposals_have_the_state_that_the_policy_gives_them(tmp_path: Path) -> None:
    settings = read_settings(write_settings(tmp_path, cluster=CLUSTER))
    store, content = MemoryProposals(), decision_content()
    proposal = replace(decision(content), title="4 moves")
    store.add(proposal, content, now_ms=NOW)
    [fact] = proposals_in(store, settings, NOW + 1)
    assert (fact.id, fact.state, fact.title) == (proposal.hash, "pending", "4 moves")
    [later] = proposals_in(store, settings, proposal.expires_at_ms)
    assert later.state == "expired"


def test_a_source_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    settings = read_settings(write_settings(tmp_path))
    data = FixedPageData("demo")
    progress = data.progress()
    broken = replace(progress.sources[0], error="no answer")
    data.progress = lambda: replace(progress, sources=(broken,))  # type: ignore[method-assign]
    assert cluster_facts(settings, data, T).unread == "summaries: no answer"


def test_a_decision_of_mode_approve_waits_until_it_is_approved(tmp_path: Path) -> None:
    settings, data = read_settings(write_settings(tmp_path)), FixedPageData("demo")
    command = Command(
        id="c", action="unload", cluster="demo", bundle=BUNDLE, interval=T, expires_at_ms=T, mode="active",
        source="a", destination="b", why=REASON,
    )  # fmt: skip
    decision = ProposedDecision(cluster="demo", interval=T, expires_at_ms=T + 1, commands=(command,))
    latest = data.latest()
    assert latest is not None
    for approved, state in (
        ((), "pending"),
        ((DecisionApproval(decision=decision.hash, by=("ann",), at_ms=T),), "approved"),
    ):
        controls = replace(latest.controls, approved=approved)
        current = replace(latest, proposed=decision, controls=controls)
        data.latest = lambda current=current: current  # type: ignore[method-assign, misc]
        facts = cluster_facts(settings, data, T).log
        assert facts is not None
        assert facts.proposed is not None
        assert (facts.proposed.id, facts.proposed.state, facts.proposed.title) == (decision.hash, state, "1 unload")


def test_moves_that_were_undone_are_those_that_the_audit_calls_so(tmp_path: Path) -> None:
    with closing(day().store(tmp_path)) as store:
        with store._database.write() as connection:
            rows = connection.execute("SELECT id, outcome FROM outcomes ORDER BY id").fetchall()
            for number, (key, outcome) in enumerate(rows):
                changed = json.dumps(json.loads(outcome) | {"undone": [True, False, None][number % 3]})
                connection.execute("UPDATE outcomes SET outcome = ? WHERE id = ?", (changed, key))
        undone = store.undone_moves(0)
        assert {each.id for each in undone} == {key for key, _ in rows[::3]}
        assert len(undone) > 1
        assert [each.interval for each in undone] == sorted((each.interval for each in undone), reverse=True)
        newest = undone[0].interval
        assert {each.interval for each in store.undone_moves(newest)} == {newest}


def test_moves_of_a_plan_fail_if_they_were_carried_out_without_success(tmp_path: Path) -> None:
    with closing(day().store(tmp_path)) as store:
        statuses = ("failed", "done", "expired", "unknown", "obsolete", "dry_run", "fenced", "already_done")
        _make_planned(store, statuses)
        assert sorted(each.status for each in store.plan_failures(0)) == ["failed", "obsolete", "unknown"]


def _make_planned(store: Store, statuses: tuple[str, ...]) -> None:
    with store._database.write() as connection:
        keys = [key for (key,) in connection.execute("SELECT id FROM commands ORDER BY id LIMIT ?", (len(statuses),))]
        for key, status in zip(keys, statuses, strict=True):
            connection.execute("UPDATE commands SET reason = ? WHERE id = ?", (Reason.PLANNED, key))
            connection.execute("DELETE FROM results WHERE id = ?", (key,))
            connection.execute("INSERT INTO results VALUES (?, 0, ?, '', 0, 0)", (key, status))
