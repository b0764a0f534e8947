"""``trimtab options``: print the options that trimtab reads."""

from rich.markup import escape
from rich.table import Table

from controller.cli.common import console
from controller.settings.policy import options_table


def options() -> None:
    """Print every option of broker.conf and trimtab.toml that trimtab reads."""
    table = Table("key", "default", "unit", "meaning")
    for row in options_table():
        # Escaped: Rich would read brackets as markup.
        table.add_row(*map(escape, (row.key, row.default, row.unit, row.meaning)))
    console().print(table)
