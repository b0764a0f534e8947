"""Commands of trimtab that are run in the test's own process."""

from collections.abc import Callable
from typing import Any

import typer
from typer.testing import CliRunner, Result

from controller.cli.app import app
from controller.model.errors import TrimtabError


def output_of(*words: object, code: int = 0) -> str:
    """What the command of *words* prints, which ends with exit code *code*; where it fails, its error."""
    found = CliRunner().invoke(app, list(map(str, words)))
    if isinstance(found.exception, TrimtabError):
        assert found.exception.exit_code == code
        return str(found.exception)
    assert found.exit_code == code, found.output + found.stderr
    return found.output if code == 0 else found.stderr


def runner_of(command: Callable[..., Any]) -> Callable[..., Result]:
    """What runs *command* with arguments, also paths and numbers."""
    alone = typer.Typer()
    alone.command()(command)
    return lambda *arguments: CliRunner().invoke(alone, list(map(str, arguments)))
