"""Where refused records lie."""

from controller.aggregate.columns.rows import METRICS, RESULTS
from controller.aggregate.places import Span, joined, spans


def test_a_span_holds_all_refused_records_of_a_partition_and_no_other_partitions() -> None:
    places = [(METRICS, 1, "", 9), (RESULTS, 0, "", 5), (METRICS, 1, "", 3), (METRICS, 0, "", 4), (METRICS, 1, "", 7)]
    assert spans(places) == [
        Span(METRICS, 0, "", 4, 4),
        Span(METRICS, 1, "", 3, 9),
        Span(RESULTS, 0, "", 5, 5),
    ]
    assert spans([]) == []


def test_files_are_apart() -> None:
    assert spans([(METRICS, 0, "b", 0), (METRICS, 0, "a", 2)]) == [
        Span(METRICS, 0, "a", 2, 2),
        Span(METRICS, 0, "b", 0, 0),
    ]


def test_the_spans_of_several_shards_join_to_one_for_each_partition() -> None:
    shards = [Span(METRICS, 0, "", 4, 6), Span(METRICS, 1, "", 1, 1), Span(METRICS, 0, "", 2, 5)]
    assert joined(shards) == [Span(METRICS, 0, "", 2, 6), Span(METRICS, 1, "", 1, 1)]
