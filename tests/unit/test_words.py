"""Names say what a thing is: a noun of the field, and no participle that needs its context to be understood.

A view is a ``view`` and not ``seen``, an answer a ``result`` and not ``told``, a limit a ``limit`` and not ``most``.
"""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

import pytest

_ROOT: Final = Path(__file__).parents[2]
#: A name, without underscores around it and in lower case -> what to name the thing instead.
_BETTER: Final = {
    "asked": "request, query or calls",
    "begun": "started, or the noun of what began",
    "come": "arrived, or the noun of what came",
    "enough": "the limit or target that it is",
    "few": "threshold, or what there are few of",
    "found": "the noun of what was found: match, rows, findings",
    "given": "the noun of what was given: options, value",
    "gone": "removed, deleted or lost",
    "heard": "received, or the noun of what came",
    "held": "the noun of what is held: lock, share",
    "kept": "state, retained, or the noun of what is kept",
    "left": "remaining, or leftover",
    "meant": "the noun of what is meant: suggestion, class_name",
    "most": "limit, maximum, or the noun with max_",
    "opened": "the noun of what was opened; factory for a module",
    "relieved": "stuck, or replaced",
    "said": "message, text, or the noun of what is said",
    "seen": "observation, view, or visited",
    "shown": "the noun of what is shown: rows, text, columns",
    "spent": "used, or cost",
    "staying": "the view that it is, as shedder_view",
    "taken": "the noun of what was taken: records, polled",
    "taking_in": "ingest",
    "told": "reported, message, or result",
    "untouchable": "protected",
    "wanted": "request, expected, or the noun of what is wanted",
}
#: As the name of a module alone.
_BETTER_MODULES: Final = _BETTER | {"words": "errors, texts, or what the module is about"}
#: Where a name is not ours to choose: path, names, and why.
_EXCEPTED: Final = (
    ("controller/strategies/shedding/peak_shedder/", frozenset(_BETTER), "it is to be rewritten as a whole"),
    ("controller/wire/answers/", frozenset(_BETTER), "keys of JSON that others read"),
    ("controller/wire/plan.py", frozenset({"asked"}), "a key of a plan's file"),
    ("controller/adapters/recordings/writing.py", frozenset({"asked"}), "a key of a recording's file"),
    ("controller/log/inbox.py", frozenset({"begun"}), "a key of an executor's stored state"),
    ("controller/log/followed.py", frozenset({"begun"}), "a key of an executor's stored state"),
    ("controller/cli/audit.py", frozenset({"most"}), "the option --most"),
    ("controller/cli/what_if.py", frozenset({"most"}), "the option --most"),
    ("controller/cli/remote/commands.py", frozenset({"most"}), "the option --most"),
    ("controller/offline/plans/rightsizing.py", frozenset({"enough"}), "a key of JSON, by its name"),
    ("controller/offline/scenarios/expectations.py", frozenset({"held"}), "a key of JSON, by its name"),
    ("controller/planning/plans/plan.py", frozenset({"asked"}), "a key of a plan's file, by its name"),
    ("controller/model/java_regex/", frozenset({"most"}), "least and most, as in the grammar's {least,most}"),
    ("controller/model/leadership.py", frozenset({"seen"}), "not renamed yet"),
    ("controller/model/bundle_ranges.py", frozenset({"left"}), "not renamed yet"),
    ("controller/planning/sequence.py", frozenset({"taken"}), "not renamed yet"),
    ("controller/audit/", frozenset({"gone", "found"}), "not renamed yet"),
    ("controller/aggregate/state/bundles.py", frozenset({"seen"}), "not renamed yet"),
    ("controller/offline/plans/step_lease.py", frozenset({"taken", "held"}), "not renamed yet"),
    ("controller/offline/recorded_load.py", frozenset({"heard"}), "not renamed yet"),
    ("controller/strategies/", frozenset({"left"}), "not renamed yet"),
    ("controller/lab/invented_weeks.py", frozenset({"taken"}), "not renamed yet"),
)


def _is_banned(name: str) -> bool:
    return name.strip("_").lower() in _BETTER


def _banned_names(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and name of each function, class, parameter, variable and attribute that has a banned name."""
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names = [node.name]
        elif isinstance(node, ast.arg):
            names = [node.arg]
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names = [node.id]
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            names = [node.attr]
        elif isinstance(node, ast.alias) and node.asname is not None:
            names = [node.asname]
        elif isinstance(node, ast.MatchAs | ast.MatchStar) and node.name is not None:
            names = [node.name]
        yield from ((node.lineno, name) for name in names if _is_banned(name))  # type: ignore[attr-defined]


def _findings(path: str, source: str) -> Iterator[str]:
    excepted = frozenset[str]().union(*(names for part, names, _ in _EXCEPTED if path.startswith(part)))
    places = [*_banned_names(ast.parse(source))]
    if Path(path).stem in _BETTER_MODULES:
        places.append((1, Path(path).stem))
    for line, name in sorted(places):
        plain = name.strip("_").lower()
        if plain not in excepted:
            yield f"{path}:{line}: {name}: better {_BETTER_MODULES[plain]}"


@cache
def _findings_of_the_product() -> tuple[str, ...]:
    files = [path for room in ("controller", "streaming") for path in sorted((_ROOT / room).rglob("*.py"))]
    return tuple(
        finding
        for path in files
        if path.is_file()
        for finding in _findings(path.relative_to(_ROOT).as_posix(), path.read_text(encoding="utf-8"))
    )


@pytest.mark.slow
def test_no_name_of_the_product_is_a_riddle() -> None:
    findings = _findings_of_the_product()
    assert not findings, "\n".join(findings)


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("found = 1", "found"),
        ("_MOST = 4", "_MOST"),
        ("def _told(): ...", "_told"),
        ("class Seen: ...", "Seen"),
        ("def read(most): ...", "most"),
        ("def read(*, wanted=0): ...", "wanted"),
        ("self._heard = 1", "_heard"),
        ("for kept in (): ...", "kept"),
        ("if (gone := 1): ...", "gone"),
        ("[held for held in ()]", "held"),
        ("with x as opened: ...", "opened"),
        ("import x as said", "said"),
        ("match x:\n    case y as taken: ...", "taken"),
        ("async def begun(): ...", "begun"),
    ],
)
def test_a_riddle_is_named_with_its_place_and_a_better_name(source: str, name: str) -> None:
    [finding] = _findings("controller/x.py", source)
    assert finding.partition(": better ")[0].endswith(f": {name}")
    assert finding.startswith("controller/x.py:")


@pytest.mark.parametrize("path", ["controller/laws/words.py", "controller/log/opened.py"])
def test_modules_have_names_too(path: str) -> None:
    assert [finding.split(":")[0] for finding in _findings(path, "")] == [path]


@pytest.mark.parametrize("source", ["left_side = 1", "x.found", "read(most=1)", "is_kept = True", "def rows(): ..."])
def test_names_of_others_and_whole_phrases_are_no_riddles(source: str) -> None:
    assert not [*_findings("controller/x.py", source)]


@pytest.mark.slow
def test_each_exception_is_still_needed() -> None:
    for part, names, reason in _EXCEPTED:
        files = list((_ROOT / part).rglob("*.py")) if part.endswith("/") else [_ROOT / part]
        used = {name.strip("_").lower() for path in files for _, name in _banned_names(ast.parse(path.read_text()))}
        assert used & names, f"{part}: no exception is needed: {reason}"
