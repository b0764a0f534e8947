"""``python -m streaming.make_class_archive``: make the archive of Spark's classes, once for each PySpark.

It starts Spark, runs the query once on made-up records, and has the JVM write the classes that it has loaded.
"""

import os
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Final

from controller.settings.trimtab_toml import read_settings
from streaming import class_archive
from streaming.assembly import Assembly
from streaming.gateway import end_in_order

_SCENARIO: Final = Path(__file__).parents[1] / "conf" / "scenarios" / "demo.toml"


def make(target: Path) -> None:
    """Keep the classes at *target*; the JVM of this process ends."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".archive-") as scratch:
        written = Path(scratch) / target.name
        os.environ[class_archive.OPTIONS] = class_archive.option_to_write(written)
        assembly = Assembly(read_settings(_SCENARIO))
        spark = assembly.session()
        assembly.stand_by(spark)
        spark.stop()
        end_in_order()
        with suppress(FileNotFoundError):  # a JVM without class data sharing writes none
            written.replace(target)


if __name__ == "__main__":
    make(class_archive.path())
