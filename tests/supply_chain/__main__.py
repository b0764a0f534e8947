"""scripts/sbom: print the bill of materials, or write docs/licences.md."""

import json
from pathlib import Path
from typing import Annotated, Final

import typer

from tests.supply_chain.bill import JAR_LICENCES, bill
from tests.supply_chain.materials import ROOT, own_licence, packages

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


def needed() -> str:
    """What `pip install --require-hashes -r` installs trimtab's dependencies from, without developers' tools."""
    return "\n".join(one.requirement for one in packages() if one.scope == "required")


def main(
    licences: Annotated[bool, typer.Option("--licences", help="Write docs/licences.md instead.")] = False,
    requirements: Annotated[
        bool,
        typer.Option("--requirements", help="Print instead the lines of requirements.lock that trimtab itself needs."),
    ] = False,
    out: Annotated[Path | None, typer.Option(help="File to write.", show_default="standard output")] = None,
) -> None:
    """Print trimtab's bill of materials, CycloneDX 1.6 in JSON, from requirements.lock and conf/jars.lock."""
    if licences:
        PAGE.write_text(page(), encoding="utf-8")
        return
    text = needed() if requirements else json.dumps(bill(), indent=2)
    if out is None:
        typer.echo(text)
    else:
        out.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    typer.run(main)
