"""Compiles Java with the compiler of Eclipse, which runs on a JRE; conf/jars.lock pins it."""

import os
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from controller.adapters.disk import jars
from controller.model.errors import TrimtabError

#: Of the Java that trimtab runs on; see controller.adapters.disk.jars.java.
_VERSION: Final = "17"
#: The set of conf/jars.lock.
_COMPILER: Final = "java-compiler"
#: Of the compiler: the language, and no annotation processor that happens to be on the classpath.
_OPTIONS: Final = ("-source", _VERSION, "-target", _VERSION, "-encoding", "UTF-8", "-proc:none")
WITHOUT_WARNINGS: Final = ("-nowarn",)


def compile_java(
    sources: Sequence[Path], classpath: Iterable[Path], folder: Path, options: Sequence[str] = WITHOUT_WARNINGS
) -> None:
    """Compile *sources*, which use *classpath*, into *folder*.

    Fetches the compiler where it is missing.  Raises TrimtabError with the compiler's words where they do not compile,
    and as ``jars.fetch`` does.
    """
    (compiler,) = jars.fetch(_COMPILER)
    command = [jars.java(), *jars.SHORT_LIFE, "-jar", str(compiler), *_OPTIONS, *options]
    command += ["-classpath", os.pathsep.join(map(str, classpath)), "-d", str(folder), *map(str, sources)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode:
        names = ", ".join(sorted({str(source.parent) for source in sources}))
        raise TrimtabError(f"the Java files in {names} do not compile:\n{run.stdout}{run.stderr}")
