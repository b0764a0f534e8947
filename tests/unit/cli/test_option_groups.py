"""A command takes options that belong together as one dataclass."""

from dataclasses import dataclass
from typing import Annotated

import typer
from typer.testing import CliRunner

from controller.cli.shared.option_groups import grouped


@dataclass(frozen=True, kw_only=True)
class Limits:
    most: Annotated[int, typer.Option("--most", min=1, help="So many at most.")] = 20
    names: Annotated[list[str] | None, typer.Option("--name", help="Only these.")] = None


@grouped
def command(subject: Annotated[str, typer.Argument()], limits: Limits, as_json: bool = False) -> None:
    """Print what was given."""
    typer.echo(f"{subject} {limits.most} {limits.names} {as_json}")


app = typer.Typer()
app.command()(command)


def run(*words: str) -> str:
    return CliRunner().invoke(app, list(words)).output.strip()


def test_the_fields_are_options_with_their_defaults() -> None:
    assert run("x") == "x 20 None False"
    assert run("x", "--most", "3", "--name", "a", "--name", "b", "--as-json") == "x 3 ['a', 'b'] True"


def test_the_fields_are_checked_and_explained_like_any_option() -> None:
    assert "--most" in run("x", "--most", "0")
    assert "So many at most." in run("--help")


def test_python_calls_it_with_the_options_too() -> None:
    command(subject="x", most=1)  # type: ignore[call-arg]  # as Typer does
