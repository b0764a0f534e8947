"""How pip builds trimtab: as setuptools does, a wheel has the query's Java compiled, and both name their commit.

pyproject.toml names this.

An editable install gets no jar: scripts/env makes it, with the PySpark of the environment.
"""

import tomllib
from pathlib import Path
from typing import Any

from setuptools import build_meta

from controller.adapters.disk.commit import named_in_the_file
from streaming.jvm.build import build

build_editable = build_meta.build_editable
get_requires_for_build_editable = build_meta.get_requires_for_build_editable
get_requires_for_build_sdist = build_meta.get_requires_for_build_sdist
prepare_metadata_for_build_editable = build_meta.prepare_metadata_for_build_editable
prepare_metadata_for_build_wheel = build_meta.prepare_metadata_for_build_wheel

_PROJECT = Path(__file__).parents[2] / "pyproject.toml"


def get_requires_for_build_wheel(config_settings: Any = None) -> list[str]:
    """What a wheel is built with: PySpark as well, the one that it will run with."""
    project = tomllib.loads(_PROJECT.read_text(encoding="utf-8"))["project"]
    spark = [each for each in project["dependencies"] if each.startswith("pyspark==")]
    return [*build_meta.get_requires_for_build_wheel(config_settings), *spark]


def build_wheel(wheel_directory: str, config_settings: Any = None, metadata_directory: str | None = None) -> str:
    """Compile the Java, then build the wheel; returns its name."""
    build()
    with named_in_the_file():
        return str(build_meta.build_wheel(wheel_directory, config_settings, metadata_directory))


def build_sdist(sdist_directory: str, config_settings: Any = None) -> str:
    """Build the archive of the sources; returns its name."""
    with named_in_the_file():
        return str(build_meta.build_sdist(sdist_directory, config_settings))
