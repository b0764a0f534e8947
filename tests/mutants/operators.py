"""The mutants of one source file: every place where one small mistake can be made, and the mistake."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any

_SWAPPED: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.And: ast.Or, ast.Or: ast.And,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult, ast.LShift: ast.RShift, ast.RShift: ast.LShift, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
}  # fmt: skip
_OTHER_NAME = {"min": "max", "max": "min", "any": "all", "all": "any", "minimum": "maximum", "maximum": "minimum"}
_TYPES = ("annotation", "returns", "type_params", "decorator_list", "bases")
#: So many characters are shown on both sides of a change.
_AROUND = 50
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """One changed node: ``new`` stands where ``old`` stood in ``holder``."""

    path: Path
    line: int
    tree: ast.Module
    #: The list, or the __dict__ of the node, that holds the old node at ``key``.
    holder: Any
    key: int | str
    old: ast.AST
    new: ast.AST
    #: The statement around it.
    statement: ast.stmt
    #: Qualified name of the outermost function around it; "" for what runs when the module is imported.
    function: str

    def compiled(self) -> ast.Module:
        """The whole module with the mistake in it.  Undo it with :meth:`undone`."""
        self.holder[self.key] = self.new
        return self.tree

    def undone(self) -> None:
        """Put the old node back."""
        self.holder[self.key] = self.old

    def is_constant(self) -> bool:
        """Whether the changed statement assigns names of the module."""
        return self.statement in self.tree.body and bool(constants(self.statement))

    def change(self) -> tuple[str, str]:
        """The first line of the statement that differs: as it was, as it is; what is long is cut on both sides."""
        was = ast.unparse(self.statement).splitlines()
        self.compiled()
        becomes = ast.unparse(self.new if self.old is self.statement else self.statement).splitlines()
        self.undone()
        before, after = next(((a, b) for a, b in zip(was, becomes, strict=False) if a != b), (was[0], becomes[0]))
        start = max(_common(before, after) - _AROUND, 0)
        end = max(_common(before[start:][::-1], after[start:][::-1]) - _AROUND, 0)
        return before[start : len(before) - end].strip(), after[start : len(after) - end].strip()


def constants(statement: ast.stmt) -> list[str]:
    """The names that it assigns."""
    match statement:
        case ast.Assign(targets=targets):
            return [target.id for target in targets if isinstance(target, ast.Name)]
        case ast.AnnAssign(target=ast.Name(id=name)):
            return [name]
    return []


def _common(one: str, other: str) -> int:
    """So many characters are the same at the start."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def mutants(path: Path) -> list[Mutant]:
    """All mutants of *path*, always in the same order."""
    tree = ast.parse(path.read_text(), str(path))
    return [mutant for node in tree.body for mutant in _inside(tree, node, path, node, "", "")]


def _inside(
    tree: ast.Module, node: ast.AST, path: Path, statement: ast.stmt, owner: str, function: str
) -> Iterator[Mutant]:
    """Mutants below *node*, which stands in the class *owner* ("Outer.Inner.") or in *function*."""
    if isinstance(node, ast.keyword) and node.arg == "strict":  # zip's check of what is so by construction
        return
    if isinstance(node, ast.ClassDef):
        owner += f"{node.name}."
    for name, value in ast.iter_fields(node):
        if name in _TYPES:
            continue
        inner = function
        if not function and isinstance(node, _FUNCTIONS) and name == "body":
            inner = owner + getattr(node, "name", "<lambda>")
        holder: Any = value if isinstance(value, list) else vars(node)
        keys: list[Any] = list(range(len(value))) if isinstance(value, list) else [name]
        for key in keys:
            old: Any = holder[key]
            if not isinstance(old, ast.AST):
                continue
            around = old if isinstance(old, ast.stmt) else statement
            line = getattr(old, "lineno", getattr(node, "lineno", 0))
            for new in _mistakes(old):
                if hasattr(old, "lineno"):
                    ast.fix_missing_locations(ast.copy_location(new, old))
                yield Mutant(
                    path=path, line=line, tree=tree, holder=holder, key=key, old=old, new=new, statement=around,
                    function=inner,
                )  # fmt: skip
            yield from _inside(tree, old, path, around, owner, inner)


def _mistakes(node: ast.AST) -> Iterator[ast.AST]:
    """What could stand in place of *node* by mistake."""
    match node:
        case _ if type(node) in _SWAPPED:
            yield _SWAPPED[type(node)]()
        case ast.Constant(value=bool(value)):
            yield ast.Constant(not value)
        case ast.Constant(value=int(value)):
            yield ast.Constant(value + 1)
            if value > 1:
                yield ast.Constant(value * 10)
        case ast.Constant(value=float(value)):
            yield ast.Constant(value * 10 or 1.0)
        case ast.UnaryOp(op=ast.Not() | ast.USub() | ast.Invert(), operand=inner):
            yield inner
        case ast.IfExp(test=test) | ast.If(test=test) if not isinstance(test, ast.UnaryOp | ast.Compare | ast.BoolOp):
            changed = vars(node) | {"test": ast.UnaryOp(ast.Not(), test)}
            yield type(node)(**changed)
        case ast.Call(func=ast.Name(id=name), args=args, keywords=keywords) if name in _OTHER_NAME:
            yield ast.Call(ast.Name(_OTHER_NAME[name], ast.Load()), args, keywords)
        case ast.Call(func=ast.Attribute(value=of, attr=name), args=args, keywords=keywords) if name in _OTHER_NAME:
            yield ast.Call(ast.Attribute(of, _OTHER_NAME[name], ast.Load()), args, keywords)
        case ast.Call(func=func, args=[first, second], keywords=keywords) if ast.unparse(func) != "isinstance":
            if ast.unparse(first) != ast.unparse(second):
                yield ast.Call(func, [second, first], keywords)
        case ast.Slice(lower=lower, upper=upper, step=step) if lower is not None or upper is not None:
            yield ast.Slice(None, upper, step) if lower is not None else ast.Slice(lower, None, step)
        case ast.Return(value=value) if value is not None and not isinstance(value, ast.Constant):
            yield ast.Return(ast.Constant(None))
        case ast.Expr(value=ast.Call()) | ast.AugAssign() | ast.Raise() | ast.Continue():
            yield ast.Pass()
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            yield ast.Pass()
