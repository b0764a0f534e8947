"""`scripts/fuzz`: every reader with inputs that atheris makes up and changes where they reach new lines of Python.

It begins with a reader's samples and with what lies in tests/fuzz/corpus, which the tests read as well.  An input that
leads to another error than the reader's own, or takes too long or too much memory, is kept.
"""

import os
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Final

import typer

try:
    import atheris
except ModuleNotFoundError:
    sys.exit("scripts/fuzz: not installed: atheris (.venv/bin/pip install 'atheris>=3', on Linux)")

#: Where readers are; lines of these packages are counted.
_READING: Final = ("wire", "settings", "aggregate", "collector", "offline", "web.access")

with atheris.instrument_imports(include=[f"controller.{package}" for package in _READING]):
    from tests.fuzz.readers import CORPUS, READERS, folder_of

#: Of one input.
_TIMEOUT_SECONDS, _MEMORY_MB = 10, 2_048
_LONGEST_BYTES: Final = 20_000
#: Of the inputs of a reader that reach new lines, so many that are no longer than this go into the corpus.
_SMALL_BYTES: Final = 2_000
_KEPT: Final = 6

app = typer.Typer(add_completion=False)


@app.command(help=__doc__)
def main(
    seconds: Annotated[int, typer.Option(min=1, max=86_400, help="For each reader.")] = 60,
    only: Annotated[list[str] | None, typer.Option(metavar="READER", help="One of tests/fuzz/readers.py.")] = None,
    found: Annotated[Path, typer.Option(help="Where bad inputs are kept.")] = Path("fuzzed"),
    keep: Annotated[bool, typer.Option("--keep", help="Add a few inputs that reach new lines to the corpus.")] = False,
) -> None:
    """Exits with 1 where an input was bad."""
    for name in only or ():
        if name not in READERS:
            raise typer.BadParameter(f"{name!r} is none of {', '.join(READERS)}")
    bad = [name for name in only or READERS if not _is_faultless(name, seconds, found, keep=keep)]
    for name in bad:
        typer.echo(f"{name}: bad inputs in {found / folder_of(name)}")
    raise typer.Exit(int(bool(bad)))


def _is_faultless(name: str, seconds: int, found: Path, *, keep: bool) -> bool:
    typer.echo(f"{name}: {seconds} s")
    bad, corpus = found / folder_of(name), CORPUS / folder_of(name)
    bad.mkdir(parents=True, exist_ok=True)
    limits = (f"-max_len={_LONGEST_BYTES}", f"-timeout={_TIMEOUT_SECONDS}", f"-rss_limit_mb={_MEMORY_MB}")
    with tempfile.TemporaryDirectory(prefix="trimtab-fuzz-") as scratch:
        new, known, files = (Path(scratch, each) for each in ("new", "known", "files"))
        for folder in (new, known, files):
            folder.mkdir()
        for nth, sample in enumerate(READERS[name].samples):
            (known / f"sample-{nth}").write_bytes(sample)
        for path in corpus.glob("*"):
            (known / path.name).write_bytes(path.read_bytes())
        words = [str(new), str(known), *limits, f"-max_total_time={seconds}", f"-artifact_prefix={bad}/"]
        faultless = _run(name, words, files)
        if keep:
            _keep(list(new.iterdir()), corpus)
    return faultless


def _keep(inputs: Sequence[Path], corpus: Path) -> None:
    """Add the last of *inputs*, each of which reached something new, to the *corpus*."""
    small = [path for path in inputs if path.stat().st_size <= _SMALL_BYTES]
    for path in sorted(small, key=lambda path: path.stat().st_mtime_ns)[-_KEPT:]:
        corpus.mkdir(parents=True, exist_ok=True)
        (corpus / path.name).write_bytes(path.read_bytes())


def _run(name: str, words: Sequence[str], folder: Path) -> bool:
    """Run the fuzzer of the reader *name*, which writes to *folder*, in a process of its own; whether it ended well.

    A fork: to import all readers takes longer than many a run.
    """
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    reader = READERS[name]

    def read(value: bytes) -> None:
        with suppress(reader.error):
            reader.read(value, folder)

    atheris.Setup([sys.argv[0], *words], read)
    atheris.Fuzz()
    os._exit(1)


if __name__ == "__main__":
    app()
