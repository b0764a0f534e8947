"""Laws of ways to assign topics to bundles."""

from typing import Any, Final, NamedTuple

from hypothesis import strategies as st

from controller.laws.law import Law
from controller.model.names import FULL_UPPER

_INNER: Final = st.sets(st.integers(1, FULL_UPPER - 1), max_size=12)
TOPIC_NAMES: Final = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)


class Splitting(NamedTuple):
    """Topics of a namespace, and its boundaries before and after a split."""

    topics: list[str]
    old: tuple[int, ...]
    new: tuple[int, ...]


@st.composite
def topics_of_a_namespace(draw: st.DrawFn) -> list[str]:
    """Topics without partitions, and all partitions of others."""
    full_names = []
    for name in sorted(draw(st.sets(TOPIC_NAMES, max_size=6))):
        count = draw(st.integers(0, 20))
        full = f"persistent://acme/prod/{name}"
        full_names += [f"{full}-partition-{i}" for i in range(count)] or [full]
    return full_names


@st.composite
def splittings(draw: st.DrawFn) -> Splitting:
    """Any namespace, split anywhere."""
    before, cuts = draw(_INNER), draw(_INNER)
    return Splitting(topics=draw(topics_of_a_namespace()), old=ring(before), new=ring(before | cuts))


def ring(inner: set[int]) -> tuple[int, ...]:
    """The boundaries of a namespace that is cut at *inner*."""
    return (0, *sorted(inner), FULL_UPPER)


def _no_bundle(assigner: Any, case: Splitting) -> str | None:
    rows = assigner.assign(case.topics, case.old)
    if rows.shape != (len(case.topics),):
        return f"of {len(case.topics)} topics it assigns an array of the shape {rows.shape}"
    for topic, row in zip(case.topics, rows.tolist(), strict=True):
        if not 0 <= row < len(case.old) - 1:
            return f"it assigns {topic!r} to bundle {row}, and there are bundles 0 to {len(case.old) - 2}"
        if int(assigner.assign([topic], case.old)[0]) != row:
            return f"it assigns {topic!r} to bundle {row}, and to another one when that is asked for alone"
    return None


def _lies_elsewhere(assigner: Any, case: Splitting) -> str | None:
    rows_before = assigner.assign(case.topics, case.old)
    rows, moved = assigner.on_bundle_split(case.topics, rows_before, case.old, case.new)
    if rows.tolist() != assigner.assign(case.topics, case.new).tolist():
        return "after the split, topics lie in other bundles than those that assign finds"
    ranges = [
        (case.old[a : a + 2], case.new[b : b + 2]) for a, b in zip(rows_before.tolist(), rows.tolist(), strict=True)
    ]
    expected = [row for row, (was, now) in enumerate(ranges) if was != now]
    if moved.tolist() != expected:
        return f"topics {moved.tolist()} move, it says, but those whose bundle has another range are {expected}"
    return None


def _described(case: Splitting) -> list[str]:
    topics = ", ".join(map(repr, case.topics)) or "none"
    old, new = (", ".join(f"0x{at:08x}" for at in boundaries) for boundaries in (case.old, case.new))
    return [f"topics: {topics}", f"boundaries: {old}", f"boundaries after a split: {new}"]


#: Of every way to assign topics.
ASSIGNMENT_LAWS: Final = (
    Law(
        sentence="Every topic has one bundle, and the same one when it is asked for alone.",
        examples=splittings(),
        flaw=_no_bundle,
        describe=_described,
    ),
    Law(
        sentence="After a split, topics lie where assign finds them, and those whose bundle has another range move.",
        examples=splittings(),
        flaw=_lies_elsewhere,
        describe=_described,
    ),
)
