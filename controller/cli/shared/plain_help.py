"""Groups of commands whose help and errors are plain text, as wide as the terminal: no frames, and no sentence cut."""

import shutil
from collections.abc import Mapping
from typing import Any, Final

from typer import BadParameter
from typer.core import TyperGroup
from typer.exceptions import TyperException

#: Lines are not wider than this, however wide the terminal is.
_WIDEST: Final = 80
_NARROWEST: Final = 20
#: Options and commands that were removed -> what to do instead.
REMOVED: Final[Mapping[str, str]] = {
    **{f"bench {name}": f"run `scripts/measure {name}` in a checkout" for name in ("balance", "frontier", "moves")},
}
#: What pydantic puts before the text of an error.
_OF_PYDANTIC: Final = "Value error, "


class PlainGroup(TyperGroup):
    """Lists its commands under their headings, each with its whole first paragraph."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.rich_markup_mode = None

    def make_context(self, info_name: Any, args: list[str], parent: Any = None, **extra: Any) -> Any:
        """A context with the width of the terminal, also of one that is narrower than Click expects."""
        width = min(_WIDEST, shutil.get_terminal_size().columns)
        extra.setdefault("terminal_width", max(_NARROWEST, width))
        return super().make_context(info_name, args, parent, **extra)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """See TyperGroup; a command that was removed is refused by name."""
        removed = _removed(ctx, *args[:1])
        if removed:
            ctx.fail(removed)
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """See TyperGroup; a wrong value is shown without pydantic's words, an option that was removed by name."""
        try:
            return super().invoke(ctx)
        except BadParameter as error:
            error.message = error.message.removeprefix(_OF_PYDANTIC)
            raise
        except TyperException as error:
            unknown: Any = error
            removed = _removed(unknown.ctx, getattr(error, "option_name", ""))
            if removed:
                unknown.message, unknown.possibilities = removed, ()
            raise

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands, by heading."""
        by_heading: dict[str, list[tuple[str, str]]] = {}
        for name in self.list_commands(ctx):
            command: Any = self.get_command(ctx, name)
            first, _, _ = (command.help or "").partition("\n\n")
            by_heading.setdefault(command.rich_help_panel or "Commands", []).append((name, " ".join(first.split())))
        for heading, commands in by_heading.items():
            with formatter.section(heading):
                formatter.write_dl(commands)


def _removed(ctx: Any, *word: str) -> str:
    """What to do in place of the command or option *word* where the command of *ctx* no longer has it; or ""."""
    words = " ".join([*("" if ctx is None else ctx.command_path).split()[1:], *word])
    return f"{word[0]} was removed: {REMOVED[words]}" if words in REMOVED else ""
