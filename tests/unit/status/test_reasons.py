"""What reasons mean, in the code and on the page that people read."""

from controller.model.decision import Reason
from controller.model.reasons import ReasonClass
from controller.status.reasons import MEANINGS
from tests.pages import DOCS

PAGE = DOCS / "explain.md"


def test_every_reason_has_a_class_and_a_meaning_in_one_line() -> None:
    assert list(MEANINGS) == list(Reason)
    assert {meaning.kind for meaning in MEANINGS.values()} == set(ReasonClass)
    for meaning in MEANINGS.values():
        assert 0 < len(meaning.text) <= 100
        assert not meaning.text.endswith(".")


def test_what_an_operator_forbids_is_configuration_and_what_passes_is_throttled() -> None:
    kinds = {reason: meaning.kind for reason, meaning in MEANINGS.items()}
    assert {kinds[reason] for reason in (Reason.PAUSED, Reason.EXCLUDED, Reason.DISABLED)} == {
        ReasonClass.CONFIGURATION
    }
    assert {kinds[reason] for reason in (Reason.BUDGET, Reason.IN_FLIGHT, Reason.RECENTLY_UNLOADED)} == {
        ReasonClass.THROTTLED
    }


def test_the_page_has_a_row_for_every_reason_in_the_order_of_the_classes() -> None:
    rows = [
        f"| `{reason}` | {meaning.kind} | {meaning.text} |"
        for kind in ReasonClass
        for reason, meaning in MEANINGS.items()
        if meaning.kind is kind
    ]
    lines = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| `")]
    assert [line for line in lines if line.split("`")[1] in set(Reason)] == rows
