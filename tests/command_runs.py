"""Commands of trimtab that are run in the test's own process."""

from typer.testing import CliRunner

from controller.cli.app import app
from controller.model.errors import TrimtabError


def told(*words: object, code: int = 0) -> str:
    """What the command of *words* prints, which ends with exit code *code*; where it fails, its error."""
    found = CliRunner().invoke(app, list(map(str, words)))
    if isinstance(found.exception, TrimtabError):
        assert found.exception.exit_code == code
        return str(found.exception)
    assert found.exit_code == code, found.output + found.stderr
    return found.output if code == 0 else found.stderr
