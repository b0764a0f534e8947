"""A decision that waits for approval, as bytes: in the journal, in controls and in summaries."""

import json
from dataclasses import replace

import pytest

from controller.cycle.limits import Limits
from controller.cycle.summary import summary_of
from controller.model.controls import (
    MAX_DECISIONS,
    Controls,
    DecisionApproval,
    DecisionRejection,
    OperatorControls,
)
from controller.model.errors import WireError
from controller.model.journal import JournalEntry
from controller.model.proposed import PredictedBroker, ProposedDecision
from controller.wire.controls import encode_controls, parse_controls
from controller.wire.journal import encode_entry
from controller.wire.summary import decode_summary, encode_summary
from tests.cluster import broker, view
from tests.journal_entries import SPLIT, UNLOAD, entry, parse_entry
from tests.records import CLUSTER, LEFT, PERIOD, T, as_bytes

DECISION = ProposedDecision(
    cluster=CLUSTER,
    interval=T,
    expires_at_ms=T + 3_600_000,
    commands=(SPLIT, UNLOAD),
    connections=12,
    limit=0.8,
    usage={"broker-1:8080": PredictedBroker(before=0.9, after=0.7)},
    brokers="0123456789abcdef",
)
APPROVAL = DecisionApproval(decision=DECISION.hash, by=("ana", "bob"), at_ms=T)
REJECTION = DecisionRejection(decision="0f" * 32, by="eve", reason="", at_ms=T)


def with_decision() -> JournalEntry:
    controls = Controls(mode="approve", approved=(APPROVAL,), rejected=(REJECTION,))
    return replace(entry(proposed=DECISION, rejected={LEFT: T + 1}), controls=controls)


def test_it_comes_back_from_the_journal_as_it_was() -> None:
    assert parse_entry(encode_entry(with_decision())) == with_decision()


def test_entries_without_one_have_the_bytes_that_they_had() -> None:
    memory = json.loads(encode_entry(entry()))["memory"]
    assert not {"proposed", "rejected"} & memory.keys()


@pytest.mark.parametrize(
    "change", [{"hash": "0f" * 32}, {"expires_at_ms": T + 1}, {"connections": 0}], ids=lambda each: str(*each)
)
def test_the_hash_in_the_journal_is_not_believed(change: dict[str, object]) -> None:
    written = json.loads(encode_entry(with_decision()))
    written["memory"]["proposed"] |= change
    read = parse_entry(as_bytes(written))
    assert isinstance(read, JournalEntry)
    assert read.memory.proposed is not None
    assert read.memory.proposed.hash == DECISION.hash


def test_another_destination_in_the_journal_is_another_decision() -> None:
    written = json.loads(encode_entry(with_decision()))
    written["memory"]["proposed"]["commands"][1]["data"]["destinationBroker"] = "evil:8080"
    read = parse_entry(as_bytes(written))
    assert isinstance(read, JournalEntry)
    assert read.memory.proposed is not None
    assert read.memory.proposed.hash != DECISION.hash


def test_the_summary_of_an_interval_has_it_for_those_who_look() -> None:
    cluster = view(broker("a:8080", usage=0.9, **{LEFT: 60}), broker("b:8080"))
    summary = summary_of(cluster, with_decision(), Limits(), period_ms=PERIOD, epoch=1, decided_at_ms=T)
    read = decode_summary(encode_summary(summary), cluster=CLUSTER)
    assert read is not None
    assert read.guarding.proposed == DECISION


def test_unsigned_approvals_and_rejections_are_stored_with_the_controls() -> None:
    controls = OperatorControls().with_approval(APPROVAL).with_rejection(REJECTION)
    assert parse_controls(encode_controls(controls)) == controls


def test_the_last_word_on_a_decision_counts() -> None:
    rejected = OperatorControls().with_approval(APPROVAL).with_rejection(replace(REJECTION, decision=DECISION.hash))
    assert (rejected.approvals, len(rejected.rejections)) == ((), 1)
    assert rejected.with_approval(APPROVAL).rejections == ()


def test_only_the_newest_approvals_are_stored() -> None:
    controls = OperatorControls()
    for number in range(MAX_DECISIONS + 5):
        controls = controls.with_approval(replace(APPROVAL, decision=f"{number:064x}"))
    assert len(controls.approvals) == MAX_DECISIONS
    assert controls.approvals[-1].decision == f"{MAX_DECISIONS + 4:064x}"


@pytest.mark.parametrize("change", [{"decision": "0f"}, {"by": ()}, {"by": ("a\nb",)}, {"by": ("a",) * 21}])
def test_an_approval_that_nobody_can_have_given_is_not_stored(change: dict[str, object]) -> None:
    with pytest.raises(WireError):
        encode_controls(OperatorControls(approvals=(replace(APPROVAL, **change),)))  # type: ignore[arg-type]
