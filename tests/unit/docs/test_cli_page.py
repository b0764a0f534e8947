"""docs/cli.md is what the commands say themselves."""

from controller.cli.app import COMMANDS
from controller.cli.reference import EXIT_CODES, PAGE, reference
from controller.model.errors import TrimtabError


def test_the_page_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == reference(), "run python -m controller.cli.reference"


def test_the_page_has_every_command() -> None:
    headings = {line for line in reference().splitlines() if line.startswith("### trimtab ")}
    assert {line.split()[2] for line in headings} == set(COMMANDS)


def test_every_exit_code_of_an_error_is_on_the_page() -> None:
    kinds, codes = [TrimtabError], set()
    while kinds:
        kind = kinds.pop()
        kinds += kind.__subclasses__()
        codes.add(kind.exit_code)
    assert codes <= set(EXIT_CODES)
    assert all(f"\n| {code} | " in reference() for code in EXIT_CODES)
