"""What is part of a checkout and not of the installed package: measurements, and servers for demos."""

from collections.abc import Iterator
from contextlib import contextmanager

from controller.model.errors import TrimtabError

#: Packages that pyproject.toml leaves out of the wheel.
_IN_CHECKOUT_ALONE = ("controller.bench", "controller.lab")


@contextmanager
def needs_checkout(what: str) -> Iterator[None]:
    """Where an import in the block fails in an installed package, raise TrimtabError: *what* needs a checkout."""
    try:
        yield
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith(_IN_CHECKOUT_ALONE):
            raise
        raise TrimtabError(f"`{what}` is not part of the installed package: run it in a checkout of trimtab") from error
