"""trimtab's own code for the executors of a Spark cluster, as a zip that Spark copies to them.

Executors then run the code of this controller, whatever release is installed on their machines.  Python itself and the
libraries that the fold needs (NumPy, pandas, PyArrow, pydantic) must be there: docs/spark_cluster.md.
"""

import hashlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final
from uuid import uuid4
from zipfile import ZipFile, ZipInfo

from controller.adapters.disk import jars

#: The packages of trimtab.
_PACKAGES: Final = ("controller", "streaming")
_FILES: Final = "spark.files"
_PYTHONPATH: Final = "spark.executorEnv.PYTHONPATH"
#: Every file of the zip has this time, so that the same code is the same zip.
_TIME: Final = (1980, 1, 1, 0, 0, 0)


def with_code(master: str, options: Mapping[str, str], folder: Path = jars.FOLDER) -> dict[str, str]:
    """Spark's *options* for *master*, with trimtab's code where its executors are processes of their own.

    The zip lies in *folder*.  Spark copies it to the folder that an executor works in, which is where PYTHONPATH looks.
    """
    if _is_one_process(master):
        return dict(options)
    code = _zip(folder)
    files = [each for each in options.get(_FILES, "").split(",") if each.strip()]
    path = [code.name, options.get(_PYTHONPATH, "")]
    return {**options, _FILES: ",".join([*files, str(code)]), _PYTHONPATH: os.pathsep.join(filter(None, path))}


def _is_one_process(master: str) -> bool:
    """Whether the driver runs the tasks itself."""
    return master == "local" or master.startswith("local[")


def _zip(folder: Path) -> Path:
    """The zip of the code that runs here, made where there is none yet."""
    content = {name: path.read_bytes() for name, path in _sources()}
    digest = hashlib.sha256(b"".join(name.encode() + b"\0" + value for name, value in content.items())).hexdigest()
    archive = folder.resolve() / "trimtab" / f"trimtab-code-{digest[:16]}.zip"
    if not archive.exists():
        archive.parent.mkdir(parents=True, exist_ok=True)
        new = archive.with_name(f".{archive.name}.{uuid4().hex}")
        with ZipFile(new, "x") as written:
            for name, value in content.items():
                written.writestr(ZipInfo(name, _TIME), value)
        new.replace(archive)  # at once, so that nobody finds half of it
    return archive


def _sources() -> Iterator[tuple[str, Path]]:
    """Name in the zip, and file, of each module."""
    root = Path(__file__).parents[2]
    for package in _PACKAGES:
        for path in sorted((root / package).rglob("*.py")):
            yield path.relative_to(root).as_posix(), path
