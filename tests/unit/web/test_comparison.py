"""A what-if in words."""

from controller.web.views.comparison import comparison
from controller.wire.answers.what_if import ReplayAnswer, WhatIfAnswer
from tests.what_ifs import what_if_answer


def _answer(*, recorded: int = 4, reproduced: int = 4, **strategies: float) -> WhatIfAnswer:
    """What happened had four moves; *strategies*: how many each of them would have had."""
    replays = {
        name: ReplayAnswer(
            figures={"moves": moves}, decisions=9, uncertain=0, largest_error=0.0, commands=int(moves), moves=[]
        )
        for name, moves in strategies.items()
    }
    return what_if_answer(replays, recorded=recorded, reproduced=reproduced)


def test_the_title_names_what_is_better() -> None:
    assert comparison(_answer(AvgShedder=1)).title == "AvgShedder is better in 1 figure of 1"
    assert comparison(_answer(AvgShedder=9)).title == "What happened is better in 1 figure of 1"


def test_what_wins_in_as_many_figures_is_named_as_well() -> None:
    answer = _answer(AvgShedder=1)
    answer.happened["splits"] = 1.0
    answer.strategies["AvgShedder"].figures["splits"] = 2.0
    assert comparison(answer).title == "What happened and AvgShedder are each better in 1 figure of 2"


def test_a_strategy_that_does_the_same_is_not_called_better() -> None:
    assert comparison(_answer(AvgShedder=4)).title == "AvgShedder would have come out the same"


def test_without_a_strategy_the_title_says_how_much_comes_out_again() -> None:
    view = comparison(_answer(recorded=2_000, reproduced=1_990))
    assert view.title == "A replay with the recorded settings does 1,990 of 2,000 recorded moves and splits again"
    assert comparison(_answer(recorded=0)).title == "Nothing was moved or split in this span"


def test_whether_a_replay_may_be_trusted_stands_beside_a_strategy() -> None:
    assert "does 3 of 4 recorded moves and splits again." in comparison(_answer(reproduced=3, AvgShedder=1)).text


def test_each_figure_says_what_it_means_and_in_which_unit() -> None:
    answer = _answer(AvgShedder=1)
    answer.happened["balance sd"] = 17.9
    meanings = {figure.name: figure.meaning for figure in comparison(answer).figures}
    assert meanings["balance sd"] == "standard deviation of the brokers' usage, in percentage points"
    assert meanings["moves"] == "bundles that were unloaded"
