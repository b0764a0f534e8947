"""The docstrings below the attributes of a class, which explain the keys of settings and records.

They are read from the source by those who show them.  Pydantic's ``use_attribute_docstrings`` would read them whenever
a process starts: an eighth of the time that a command takes to start.
"""

import ast
import inspect
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise
from types import ModuleType


def attribute_docstrings(cls: type) -> dict[str, str]:
    """Attribute -> its docstring, of *cls* and of the classes that it inherits from; none without source."""
    docstrings: dict[str, str] = {}
    for each in reversed(cls.__mro__):
        module = inspect.getmodule(each)
        if module is not None and "__annotations__" in vars(each):
            docstrings |= _in_module(module).get(each.__qualname__, {})
    return docstrings


@cache
def _in_module(module: ModuleType) -> Mapping[str, Mapping[str, str]]:
    """Qualified name of a class -> its attributes that have a docstring."""
    try:
        source = inspect.getsource(module)
    except OSError:
        return {}
    return dict(_classes(ast.parse(source).body, ""))


def _classes(statements: Sequence[ast.stmt], around: str) -> Iterator[tuple[str, Mapping[str, str]]]:
    for statement in statements:
        if isinstance(statement, ast.ClassDef):
            name = around + statement.name
            yield name, dict(_documented(statement.body))
            yield from _classes(statement.body, f"{name}.")


def _documented(statements: Sequence[ast.stmt]) -> Iterator[tuple[str, str]]:
    for pair in pairwise(statements):
        match pair:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                yield name, inspect.cleandoc(text)
