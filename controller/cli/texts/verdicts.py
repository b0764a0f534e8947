"""The table of verdicts."""

from collections.abc import Sequence
from operator import itemgetter

from rich.console import Console

from controller.cli.shared.answers import print_answers
from controller.cli.shared.layout import Column
from controller.model.decision import Verdict
from controller.wire.answers.base import VerdictAnswer
from controller.wire.decision_texts import verdict_cells

_HEADINGS = ("what", "reason", "observed", "limit", "by", "detail")


def print_verdicts(
    out: Console, verdicts: Sequence[Verdict | VerdictAnswer], *, limit: int | None = None, rest: str = ""
) -> None:
    """Print *limit* of *verdicts*; *rest*: the option that prints those that are left out."""
    header = [
        Column(heading=heading, prose=heading == "detail", cell=itemgetter(place))
        for place, heading in enumerate(_HEADINGS)
    ]
    print_answers(out, header, list(map(verdict_cells, verdicts)), title="Verdicts", head=2, limit=limit, rest=rest)
