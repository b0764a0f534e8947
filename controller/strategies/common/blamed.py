"""Wraps errors that a strategy raises, so that the message names the strategy: a user may have written it."""

from dataclasses import dataclass
from typing import Final

from controller.model.errors import StrategyError

#: Maximum number of characters of an error's text in the message.
_MAX_SHOWN_CHARS: Final = 300


@dataclass(frozen=True, slots=True)
class Blamed:
    """Within the block, what *part* of *strategy* raises is raised as a StrategyError; so is ``sys.exit``.

    Not so a lack of memory, which is no fault of the strategy; and a StrategyError names another one that it asked.
    """

    strategy: object
    #: The method or property that is called.
    part: str

    def __enter__(self) -> None:
        """Nothing to do."""

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        """Raise the error as a StrategyError."""
        # Spark waits for ever for a batch that SystemExit ends.
        if isinstance(error, Exception | SystemExit) and not isinstance(error, StrategyError | MemoryError):
            raise raised_by(self.strategy, self.part, error) from error


def raised_by(strategy: object, part: str, error: Exception | SystemExit) -> StrategyError:
    """The StrategyError for *error*, which *part* of *strategy* raised."""
    return StrategyError(type(strategy).__name__, f"its {part} raises {_describe(error)}{_place(strategy, error)}")


def _describe(error: Exception | SystemExit) -> str:
    try:
        text = " ".join(str(error).split())
    except Exception:  # a user's class may raise anything
        text = ""
    return f"{type(error).__name__}: {text:.{_MAX_SHOWN_CHARS}}" if text else type(error).__name__


def _place(strategy: object, error: Exception | SystemExit) -> str:
    """The last line of the strategy's own module that *error* came through; "" where it came through none."""
    module, line, trace = type(strategy).__module__, 0, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_globals.get("__name__") == module:
            line = trace.tb_lineno
        trace = trace.tb_next
    return f" ({module}, line {line})" if line else ""
