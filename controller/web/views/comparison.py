"""A what-if in words: what happened beside what each strategy would have done."""

from dataclasses import dataclass

from controller.web.views.formats import short
from controller.wire.answers.what_if import WhatIfAnswer
from controller.wire.readable import FIGURE_MEANINGS, counted


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A figure of what happened and of each strategy; smaller is better."""

    name: str
    #: What it says, with its unit; "": no more than its name.
    meaning: str
    #: What happened first, then strategies in order.
    values: tuple[str, ...]
    #: Which of them is the smallest; -1: all are alike.
    best: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonView:
    """Both side by side."""

    title: str
    text: str
    columns: tuple[str, ...]
    figures: tuple[Figure, ...]
    answer: WhatIfAnswer


def comparison(answer: WhatIfAnswer) -> ComparisonView:
    """*answer* side by side."""
    columns = ("what happened", *answer.strategies)
    names = list(answer.happened)
    names += [name for replay in answer.strategies.values() for name in replay.figures if name not in names]
    figures = tuple(_figure(answer, name) for name in dict.fromkeys(names))
    wins = [sum(figure.best == column for figure in figures) for column in range(len(columns))]
    best = [column for column, won in zip(columns, wins, strict=True) if won == max(wins)]
    if not answer.strategies:
        title = _reproduced(answer)
    elif not max(wins):
        title = f"{' and '.join(answer.strategies)} would have come out the same"
    else:
        are = "are each" if len(best) > 1 else "is"
        title = f"{' and '.join(best)} {are} better in {counted(max(wins), 'figure')} of {len(figures)}"
    uncertain = [f"{name}: {replay.uncertain:,} of {replay.decisions:,}" for name, replay in answer.strategies.items()]
    sizes = (
        counted(answer.intervals, "interval"),
        counted(answer.brokers, "broker"),
        counted(answer.bundles, "bundle"),
    )
    text = f"{', '.join(sizes)}."
    if answer.strategies:
        text += f" {_reproduced(answer)}."
    if uncertain:
        text += f" Decisions that may come out otherwise within the model's error: {'; '.join(uncertain)}."
    return ComparisonView(
        title=title[:1].upper() + title[1:], text=text, columns=columns, figures=figures, answer=answer
    )


def _reproduced(answer: WhatIfAnswer) -> str:
    """Whether the replay may be trusted: how much of what was recorded comes out again."""
    replay = answer.reproduction
    if replay is None:
        return "With which settings it was recorded is not known"
    if not replay.recorded:
        return "Nothing was moved or split in this span"
    recorded = counted(replay.recorded, "recorded move or split", "recorded moves and splits")
    return f"A replay with the recorded settings does {replay.reproduced:,} of {recorded} again"


def _figure(answer: WhatIfAnswer, name: str) -> Figure:
    values = [answer.happened.get(name), *(replay.figures.get(name) for replay in answer.strategies.values())]
    known = [value for value in values if value is not None]
    best = values.index(min(known)) if known and min(known) < max(known) else -1
    return Figure(
        name=name.replace("_", " "),
        meaning=FIGURE_MEANINGS.get(name, ""),
        values=tuple("?" if value is None else _written(value) for value in values),
        best=best,
    )


def _written(value: float) -> str:
    return f"{value:.3g}" if abs(value) < 100 else short(value)
