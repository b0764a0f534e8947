"""The house is as docs/ARCHITECTURE.md draws it: every contract of pyproject.toml is kept, and would be seen broken."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any, Final

import grimp
import pytest
from grimp import ImportGraph
from importlinter.api import read_configuration
from importlinter.contracts.acyclic_siblings import AcyclicSiblingsContract
from importlinter.contracts.forbidden import ForbiddenContract
from importlinter.contracts.independence import IndependenceContract
from importlinter.contracts.layers import LayersContract
from importlinter.contracts.protected import ProtectedContract
from importlinter.domain.contract import Contract, ContractCheck

from tests.effort import tries

_ROOT: Final = Path(__file__).parents[2]
_CONFIGURATION: Final = read_configuration(str(_ROOT / "pyproject.toml"))
_TYPES: Final[dict[str, type[Contract]]] = {
    "acyclic_siblings": AcyclicSiblingsContract,
    "forbidden": ForbiddenContract,
    "independence": IndependenceContract,
    "layers": LayersContract,
    "protected": ProtectedContract,
}
_CONTRACTS: Final[dict[str, dict[str, Any]]] = {one["name"]: one for one in _CONFIGURATION["contracts_options"]}
#: The first words of a contract, and an import that it forbids: who imports, and what.
_FORBIDDEN: Final = {
    "Imports go down only": ("controller.model.names", "controller.wire.base"),
    "The core imports NumPy, RE2": ("controller.cycle.decide", "time"),
    "Only adapters/kafka": ("controller.executor.loop", "confluent_kafka"),
    "Only adapters/zookeeper": ("controller.collector.loop", "kazoo"),
    "Only adapters/pulsar": ("controller.doctor.gather", "pulsar"),
    "Only the one HTTP client": ("controller.adapters.metrics.traces", "http"),
    "Only adapters/metrics": ("controller.executor.loop", "prometheus_client"),
    "Only streaming": ("controller.adapters.disk.files", "pyspark"),
    "Only laws": ("controller.cycle.decide", "hypothesis"),
    "Only model/java_regex": ("controller.aggregate.policies", "re2"),
    "Only web imports": ("controller.status.cluster", "starlette"),
    "Strategies do not import each other": (
        "controller.strategies.shedding.overload_shedder",
        "controller.strategies.shedding.threshold_shedder",
    ),
    "What checks plans": ("controller.planning.checking.checker", "controller.planning.solving.bounds"),
    "Production code": ("controller.executor.loop", "controller.simulator.cluster"),
    "No circle": ("controller.model.names", "controller.cycle.decide"),
}
_CORE: Final = ("model", "planning", "strategies", "aggregate", "cycle", "audit", "engine")
#: All that the core imports from elsewhere.  Of uuid it uses uuid5, which asks neither clock nor chance; re2 is pure,
#: too (ADR 10).
_CORE_MAY_IMPORT: Final = {
    "abc",
    "base64",
    "bisect",
    "collections",
    "dataclasses",
    "enum",
    "functools",
    "hashlib",
    "heapq",
    "itertools",
    "json",
    "math",
    "numpy",
    "operator",
    "re",
    "re2",
    "reprlib",
    "types",
    "typing",
    "uuid",
    "zlib",
}
_MOST_LINES: Final = 50
_BEGINS: Final = re.compile(r" *(?=(?:async def|def|class|@) ?\w)")
#: A public class or type alias.
_DEFINES: Final = re.compile(r"^(?:class ([A-Za-z]\w*)|(\w+): TypeAlias\b|([A-Z]\w*) = )", re.MULTILINE)


@pytest.fixture(scope="module")
def graph() -> ImportGraph:
    """Who imports whom; tests that change it copy it."""
    return grimp.build_graph(
        *_CONFIGURATION["session_options"]["root_packages"], include_external_packages=True, cache_dir=None
    )


def _check(options: dict[str, Any], graph: ImportGraph) -> ContractCheck:
    contract = _TYPES[options["type"]](options["name"], _CONFIGURATION["session_options"], options)
    return contract.check(deepcopy(graph), verbose=False)


def _contract(first_words: str) -> dict[str, Any]:
    (name,) = (name for name in _CONTRACTS if name.startswith(first_words))
    return _CONTRACTS[name]


@pytest.mark.parametrize("name", _CONTRACTS)
def test_the_contract_is_kept(name: str, graph: ImportGraph) -> None:
    check = _check(_CONTRACTS[name], graph)
    assert check.kept, check.metadata


@pytest.mark.parametrize("first_words", _FORBIDDEN)
def test_a_forbidden_import_breaks_the_contract_and_is_named(first_words: str, graph: ImportGraph) -> None:
    importer, imported = _FORBIDDEN[first_words]
    changed = deepcopy(graph)
    changed.add_import(importer=importer, imported=imported, line_number=1, line_contents="")
    check = _check(_contract(first_words), changed)
    assert not check.kept
    assert importer in str(check.metadata)
    assert imported in str(check.metadata)


def test_each_contract_has_an_import_that_breaks_it() -> None:
    assert [_contract(words)["name"] for words in _FORBIDDEN] == list(_CONTRACTS)


def test_every_room_stands_in_the_layers(graph: ImportGraph) -> None:
    rooms = {room.strip() for layer in _contract("Imports go down only")["layers"] for room in layer.split("|")}
    assert rooms == graph.find_children("controller") | {"streaming"}


def test_every_kind_of_strategy_stands_in_the_contract_on_strategies(graph: ImportGraph) -> None:
    packages = {name for name in graph.find_children("controller.strategies") if graph.find_children(name)}
    kinds = {f"{name}.*" for name in packages - {"controller.strategies.common"}}
    assert set(_contract("Strategies do not import each other")["modules"]) == kinds


def test_the_core_imports_only_what_is_listed_of_the_standard_library(graph: ImportGraph) -> None:
    core = {
        module for room in _CORE for module in {f"controller.{room}"} | graph.find_descendants(f"controller.{room}")
    }
    imported = {name for module in core for name in graph.find_modules_directly_imported_by(module)}
    assert {name for name in imported if not name.startswith("controller.")} == _CORE_MAY_IMPORT


def _functions(node: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """All functions below *node*; expressions, which are most of a tree and hold none, are not looked into."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield child
        if isinstance(child, ast.stmt):
            yield from _functions(child)


@cache
def _texts() -> dict[str, str]:
    """All of trimtab's files."""
    paths = sorted(path for package in ("controller", "streaming") for path in (_ROOT / package).rglob("*.py"))
    return {str(path.relative_to(_ROOT)): path.read_text(encoding="utf-8") for path in paths}


def _may_be_long(text: str) -> bool:
    """Whether a function in *text* may be too long: it ends before the next one that has no more space in front.

    To parse all files takes a second.  scripts/test does: only a text in a file may look like the next function.
    """
    begun: list[tuple[int, int]] = []
    for number, line in enumerate([*text.splitlines(), "def end"]):
        if (found := _BEGINS.match(line)) is None:
            continue
        while begun and begun[-1][0] >= found.end():
            if number - begun.pop()[1] > _MOST_LINES:
                return True
        begun.append((found.end(), number))
    return False


def test_no_function_is_longer_than_a_screen() -> None:
    long = [
        f"{path}:{function.lineno} {function.name}: {lines} lines"
        for path, text in _texts().items()
        if tries(plain=0, thorough=1) or _may_be_long(text)
        for function in _functions(ast.parse(text))
        if (lines := (function.end_lineno or 0) - function.lineno + 1) > _MOST_LINES
    ]
    assert not long


def test_no_two_public_classes_or_aliases_share_a_name() -> None:
    where: dict[str, list[str]] = defaultdict(list)
    for path, text in _texts().items():
        for name in _defined(text):
            where[name].append(path)
    assert len(where) > 300
    # Pulsar's AvgShedder is a shedder and a placement in one class.
    assert {name for name, paths in where.items() if len(paths) > 1} == {"AvgShedder"}


def _defined(text: str) -> Iterator[str]:
    """The public classes and type aliases that a file with *text* defines."""
    for a_class, alias, assigned in _DEFINES.findall(text):
        name = a_class or alias or assigned
        if name[0] != "_" and not (assigned and assigned.isupper()):
            yield name
