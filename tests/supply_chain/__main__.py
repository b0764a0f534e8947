"""scripts/sbom: print the bill of materials, or write docs/licences.md."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Final

import typer

from tests.supply_chain.bill import JAR_LICENCES, bill
from tests.supply_chain.materials import ROOT, of_extra, own_licence, packages

PAGE: Final = ROOT / "docs" / "licences.md"
_ABOVE: Final = """\
# Licences

trimtab itself is under {own}. The texts are in `LICENSE` and `NOTICE` of the repository, and in the `licenses`
folder of the wheel's metadata.

## What trimtab uses

This section is for those who pass trimtab on, in a container for example. `scripts/sbom --licences` writes it; a test
compares it with what is installed, and refuses a licence that asks for more than to keep the licence's text.

`scripts/sbom` prints the whole bill of materials in CycloneDX 1.6: every package and jar with version, SHA-256 and
licence.

| part | licence | needed by |
| --- | --- | --- |
"""
_NEEDED_BY: Final = {"required": "trimtab", "optional": "an extra"}
_BELOW: Final = """
PySpark also brings Spark's own jars. Their licences are in the folder `licenses` of the package, and in Spark's
`LICENSE` and `NOTICE`. Packages that only developers of trimtab need are in the bill of materials alone.
"""


def page() -> str:
    """The content of docs/licences.md."""
    rows = [
        f"| {one.name} | {one.licence} | {_NEEDED_BY[one.scope]} |" for one in packages() if one.scope in _NEEDED_BY
    ]
    jars = [f"| jars of {name} | {licence} | `trimtab run` with Kafka |" for name, licence in JAR_LICENCES.items()]
    return _ABOVE.format(own=own_licence()) + "\n".join([*rows, *jars]) + "\n" + _BELOW


def needed(extras: Sequence[str] = ()) -> str:
    """What `pip install --require-hashes -r` installs trimtab's dependencies from, without developers' tools."""
    locked = packages()
    more = set[str]().union(*(of_extra(extra, locked) for extra in extras))
    return "\n".join(one.requirement for one in locked if one.scope == "required" or one.name in more)


def main(
    licences: Annotated[bool, typer.Option("--licences", help="Write docs/licences.md instead.")] = False,
    requirements: Annotated[
        bool,
        typer.Option("--requirements", help="Print instead the lines of requirements.lock that trimtab itself needs."),
    ] = False,
    extra: Annotated[
        list[str] | None, typer.Option(help="With --requirements: what this extra needs, too; can be repeated.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="File to write.", show_default="standard output")] = None,
) -> None:
    """Print trimtab's bill of materials, CycloneDX 1.6 in JSON, from requirements.lock and conf/jars.lock."""
    if licences:
        PAGE.write_text(page(), encoding="utf-8")
        return
    text = needed(extra or ()) if requirements else json.dumps(bill(), indent=2)
    if out is None:
        typer.echo(text)
    else:
        out.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    app = typer.Typer(add_completion=False)
    app.command()(main)
    app(prog_name="scripts/sbom")
