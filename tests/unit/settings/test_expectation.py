"""The lines in which a scenario says what it expects."""

import math

import pytest

from controller.settings.expectation import FIGURES, OF_NAMESPACE, parse_expectation


@pytest.mark.parametrize("figure", FIGURES)
@pytest.mark.parametrize("sign", ["<=", ">="])
def test_every_figure_can_be_compared_with_a_number(figure: str, sign: str) -> None:
    found = parse_expectation(f"{figure} {sign} 1.15 after 20")
    assert (found.figure, found.at_most, found.number, found.after) == (figure, sign == "<=", 1.15, 20)


def test_without_after_every_interval_counts() -> None:
    assert parse_expectation("moves <= 3").after == 0


def test_steady_means_within_five_percent_unless_it_says_otherwise() -> None:
    assert parse_expectation("steady").number == 5
    found = parse_expectation("steady within 12.5 after 7")
    assert (found.figure, found.number, found.after) == ("steady", 12.5, 7)


def test_no_bundle_moved_twice() -> None:
    found = parse_expectation("no bundle moved twice in 30 after 4")
    assert (found.figure, found.span, found.number, found.after) == ("moved twice in", 30, 0, 4)


@pytest.mark.parametrize("figure", sorted(OF_NAMESPACE))
def test_some_figures_can_be_asked_of_one_namespace(figure: str) -> None:
    assert parse_expectation(f"{figure} of acme/orders <= 0").namespace == "acme/orders"


def test_spaces_do_not_matter() -> None:
    assert parse_expectation("  moves   <= 3 ").text == "moves <= 3"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "moves",
        "moves < 3",
        "moves == 3",
        "moves <= three",
        "moves <= -1",
        "moves <= 1e3",
        "moves <= nan",
        "moves <= 3 after",
        "moves <= 3 after -1",
        "moves <= 3 before 7",
        "moves <= 3; splits <= 2",
        "moves <= " + "9" * 40,
        "steady within",
        "no bundle moved twice",
        "no bundle moved twice in 3.5",
    ],
)
def test_what_is_no_expectation_is_refused_with_the_forms_that_are(text: str) -> None:
    with pytest.raises(ValueError, match=r"expected .*after INTERVAL"):
        parse_expectation(text)


def test_an_unknown_figure_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(ValueError, match=r"no such figure: 'movements'; allowed: .*moves undone"):
        parse_expectation("movements <= 3")


def test_a_figure_of_the_whole_cluster_is_not_known_of_a_namespace() -> None:
    with pytest.raises(ValueError, match=r"'thrash' is not known of one namespace; allowed: .*moves"):
        parse_expectation("thrash of acme/orders <= 3")


def test_the_number_itself_is_as_expected_and_not_a_number_never_is() -> None:
    for sign, outside in (("<=", 3.01), (">=", 2.99)):
        expectation = parse_expectation(f"moves {sign} 3")
        assert expectation.holds(3)
        assert not expectation.holds(outside)
        assert not expectation.holds(math.nan)
