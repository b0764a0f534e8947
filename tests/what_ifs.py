"""Answers of what-ifs for tests of the page."""

from collections.abc import Mapping, Sequence

from controller.wire.answers.what_if import ReplayAnswer, ReproductionAnswer, WhatIfAnswer


def what_if_answer(
    strategies: Mapping[str, ReplayAnswer], *, recorded: int = 4, reproduced: int = 4, notes: Sequence[str] = ()
) -> WhatIfAnswer:
    """What happened had four moves."""
    return WhatIfAnswer(
        cluster="east",
        first_interval=0,
        last_interval=60_000,
        intervals=9,
        decided=9,
        brokers=3,
        bundles=28,
        model=[],
        reproduction=ReproductionAnswer(
            recorded=recorded, reproduced=reproduced, share=None, missing=[], only_replayed=0, added=[]
        ),
        happened={"moves": 4.0},
        strategies=dict(strategies),
        difference=None,
        notes=list(notes),
    )
