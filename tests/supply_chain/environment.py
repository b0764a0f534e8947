"""The environment that packages and images carry: what trimtab needs of Python's packages, under /opt/trimtab.

It is copied from the environment that runs this, file by file as their records say, and each is compared with its
checksum.  So it needs no network, and holds what requirements.lock names.
"""

import base64
import hashlib
import re
import shutil
import sys
import zipfile
from collections.abc import Callable, Iterator
from importlib.metadata import Distribution, distribution
from pathlib import Path
from typing import Final

from controller.adapters.disk import jars
from controller.model.errors import TrimtabError
from tests.supply_chain.materials import JARS_NEEDED, packages

#: Where it lies on the machine that it is for; deploy/systemd starts it there.
HOME: Final = Path("/opt/trimtab")
#: The Python that it is for.
PYTHON: Final = f"python{sys.version_info.major}.{sys.version_info.minor}"
#: Of the metadata of a package: how pip installed it here.  Where it is for, pip changes nothing.
_OF_THIS_INSTALL: Final = frozenset({"RECORD", "INSTALLER", "REQUESTED", "WHEEL", "direct_url.json"})
#: What nothing of trimtab, nor of what it uses, ever loads.  Of PySpark's jars these are libraries for other systems,
#: and machine learning and graphs with what only they need: no other jar but Spark Connect names a class of them.
_LEFT_OUT: Final = re.compile(
    r".*/tests/.*|pyarrow/include/.*|pyspark/examples/.*"
    r"|pyspark/jars/(.*-(osx|windows)-.*|(spark-mllib|spark-graphx|breeze|spire|cats-kernel|algebra|JTransforms"
    r"|JLargeArrays|arpack|blas|lapack)[-_].*)\.jar"
)
_PROGRAM: Final = f"""\
#!{HOME}/bin/python
import sys

from controller.cli.main import main

sys.exit(main())
"""
_CONFIGURATION: Final = f"""\
home = /usr/bin
include-system-site-packages = false
executable = /usr/bin/{PYTHON}
"""


def write_environment(root: Path, wheel: Path, run: Callable[..., None]) -> None:
    """Write the environment with trimtab from *wheel* below *root*; *run* runs Python with the words that it is given.

    TrimtabError where a package of the lock is not installed here in that version, or was changed.
    """
    home = root / HOME.relative_to("/")
    modules = home / "lib" / PYTHON / "site-packages"
    modules.mkdir(parents=True)
    for package in packages():
        if package.scope != "excluded":
            found = distribution(package.name)
            if found.version != package.version:
                raise TrimtabError(f"{package.name} is {found.version}, and {package.version} in requirements.lock")
            copy_package(found, modules)
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(modules, [name for name in archive.namelist() if not _is_of_this_install(Path(name))])
    _write_programs(home)
    for name in JARS_NEEDED:
        target = home / "share" / "trimtab" / "jars" / name
        target.mkdir(parents=True)
        for jar in jars.fetch(name):
            shutil.copyfile(jar, target / jar.name)
    # Python writes nothing there later.  unchecked-hash: the files have no time.
    words = ("-m", "compileall", "-q", "--invalidation-mode", "unchecked-hash")
    run(*words, "-s", str(modules), "-p", str(HOME / "lib" / PYTHON / "site-packages"), str(modules))


def _write_programs(home: Path) -> None:
    (home / "bin").mkdir()
    (home / "pyvenv.cfg").write_text(_CONFIGURATION, encoding="utf-8")
    (home / "bin" / "python").symlink_to(f"/usr/bin/{PYTHON}")
    program = home / "bin" / "trimtab"
    program.write_text(_PROGRAM, encoding="utf-8")
    program.chmod(0o755)


def copy_package(package: Distribution, modules: Path) -> None:
    """Copy the modules and data of *package*, without programs and what is never loaded.

    TrimtabError where a file is not what was installed.
    """
    for name, source, expected in _files(package):
        content = source.read_bytes()
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        if digest != expected:
            raise TrimtabError(f"{source} is not what was installed: make .venv anew")
        target = modules / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
        # Others than root have to read it, whatever the umask of whoever made .venv.
        target.chmod(0o755 if source.stat().st_mode & 0o100 else 0o644)


def _files(package: Distribution) -> Iterator[tuple[Path, Path, str]]:
    """Name below the modules, place and checksum of each file."""
    for file in package.files or ():
        name = Path(*file.parts)
        if ".." in name.parts or "__pycache__" in name.parts or _is_of_this_install(name):
            continue
        if _LEFT_OUT.fullmatch(name.as_posix()):
            continue
        if file.hash is None or file.hash.mode != "sha256":
            raise TrimtabError(f"{package.name} was installed without checksums ({name}): make .venv anew")
        yield name, Path(str(file.locate())), file.hash.value


def _is_of_this_install(name: Path) -> bool:
    return name.name in _OF_THIS_INSTALL and name.parent.suffix == ".dist-info"
