"""Jars by a lock: conf/jars.lock names them with the hashes of their contents, and Ivy fetches missing ones.

Files other than jars have their extension, and a classifier if any, after the revision: ``org:name:1.0:tar.gz:bin``.

PySpark ships Ivy, so neither Maven nor Docker is needed.  Each jar is fetched on its own: Ivy resolves no dependencies,
so a set never changes unnoticed.
"""

import errno
import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import tomllib
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final
from xml.sax.saxutils import quoteattr

from controller.adapters.disk.places import CACHE, SHARED, SHIPPED, cache_folder
from controller.adapters.disk.scratch import scratch_folder
from controller.adapters.long_work import Done, long_work, megabytes
from controller.adapters.network.deadline import Deadline
from controller.model.errors import SettingsError, TrimtabError

LOCK: Final = SHIPPED / "jars.lock"
FOLDER: Final = cache_folder()
#: Jars that came with the environment, as in a package of Debian: they are not fetched.
PACKAGED: Final = SHARED / "jars"
#: Environment variable: URL of a Maven repository to fetch from instead of Ivy's default.
MIRROR: Final = "TRIMTAB_MAVEN_MIRROR"
#: Errors that a retry does not fix.
_NOT_ALLOWED: Final = frozenset({errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR})

_OLDEST_JAVA: Final = 17
_FETCH_SECONDS: Final = 900
_LOOK_SECONDS: Final = 0.5
#: Ivy and its HTTP client; it would only scan PySpark's other jars.
_IVY: Final = ("ivy", "httpclient", "httpcore", "commons-codec", "jcl-over-slf4j", "slf4j-api")
#: Options for a short-lived JVM, where fast compilation pays off more than optimized code.
SHORT_LIFE: Final = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")


@dataclass(frozen=True, slots=True, kw_only=True)
class Jar:
    """One line of the lock."""

    organisation: str
    name: str
    revision: str
    #: Of the content, in lower-case hexadecimal.
    sha256: str
    #: Of the content; 0 where the lock does not say.
    size: int = 0
    #: Of the file's name; "tar.gz" for a whole distribution.
    extension: str = "jar"
    #: Maven's classifier, for files of one name and revision; mostly empty.
    classifier: str = ""

    @property
    def file_name(self) -> str:
        """The name in the folder of its set."""
        of_these = f"-{self.classifier}" if self.classifier else ""
        return f"{self.name}-{self.revision}{of_these}.{self.extension}"

    def is_at(self, path: Path) -> bool:
        """True when *path* holds this jar, whole."""
        try:
            with path.open("rb") as file:
                return hashlib.file_digest(file, "sha256").hexdigest() == self.sha256
        except (FileNotFoundError, NotADirectoryError):
            return False


def read_lock(set_name: str, lock: Path = LOCK) -> tuple[Jar, ...]:
    """The jars of *set_name*, or SettingsError naming the sets there are."""
    sets = tomllib.loads(lock.read_text(encoding="utf-8"))
    if set_name not in sets:
        raise SettingsError(f"{lock}: no set {set_name!r}; known: {', '.join(sets)}")
    jars = []
    for coordinates, content in sets[set_name].items():
        organisation, name, revision, *kind = coordinates.split(":")
        sha256, _, size = content.partition(" ")
        jar = Jar(organisation=organisation, name=name, revision=revision, sha256=sha256, size=int(size or 0))
        jars.append(replace(jar, **dict(zip(("extension", "classifier"), kind, strict=False))))
    return tuple(jars)


def fetch(set_name: str, folder: Path = FOLDER, lock: Path = LOCK, packaged: Path = PACKAGED) -> list[Path]:
    """The jars of *set_name* as files below *packaged* or *folder*; those not there, or damaged, are fetched first.

    Several processes may do this at once.  Raises SettingsError where Java is missing and TrimtabError where a
    jar cannot be had, or is not what the lock says.
    """
    target = folder / set_name
    paths = {}
    for jar in read_lock(set_name, lock):
        brought = packaged / set_name / jar.file_name
        paths[jar] = brought if jar.is_at(brought) else target / jar.file_name
    missing = [jar for jar, path in paths.items() if path.parent == target and not jar.is_at(path)]
    if missing:
        try:
            target.mkdir(parents=True, exist_ok=True)
            # Beside the target, for a rename into it is atomic on the same file system only.
            with scratch_folder(".fetch-", folder) as temporary:
                _fetch_into(target, set_name, missing, temporary)
        except OSError as error:
            raise (SettingsError if error.errno in _NOT_ALLOWED else TrimtabError)(
                f"the jars of {set_name!r} cannot be written to {target}: {error.strerror or error}.  Set {CACHE} to a"
                " folder that can be written to, or that holds them"
            ) from error
    return list(paths.values())


def _fetch_into(target: Path, set_name: str, missing: Sequence[Jar], temporary: Path) -> None:
    with long_work(f"fetching jars ({set_name}, once)", sum(jar.size for jar in missing), megabytes) as done:
        words = _run_ivy(missing, temporary, done)
    fetched = {jar: temporary / jar.file_name for jar in missing}
    if not all(path.exists() for path in fetched.values()):
        # Ivy fetches all jars or none: only its output tells which one is missing.
        raise TrimtabError(
            f"the jars of {set_name!r} could not be fetched.  Behind a firewall set {MIRROR} to the URL of a "
            f"Maven repository; without a network copy {target} from a machine that has it.  Ivy says:\n{words}"
        )
    for jar, path in fetched.items():
        _accept(jar, path, target / jar.file_name)


def janino() -> list[Path]:
    """The Java compiler that PySpark ships, for our own sources on hosts that have only a JRE."""
    return sorted([*pyspark_jars().glob("janino-*.jar"), *pyspark_jars().glob("commons-compiler-*.jar")])


def pyspark_jars() -> Path:
    """The folder of the jars that PySpark ships.  SettingsError where it is not installed."""
    # Found, not imported: this side of trimtab works without Spark.
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise SettingsError("PySpark, whose jars trimtab uses, is not installed in this environment")
    return Path(spec.origin).parent / "jars"


def java_program(oldest: int = _OLDEST_JAVA) -> str:
    """The path of java: JAVA_HOME's, else the PATH's.

    SettingsError says how to install the version *oldest* where there is none.
    """
    home = os.environ.get("JAVA_HOME")
    program = f"{home}/bin/java" if home else shutil.which("java")
    if home and not Path(home, "bin", "java").exists():
        raise SettingsError(f"JAVA_HOME={home!r} holds no bin/java. {_install(oldest)}")
    if program is None:
        raise SettingsError(f"Java is not installed (neither JAVA_HOME nor on the PATH). {_install(oldest)}")
    return program


def java(oldest: int = _OLDEST_JAVA) -> str:
    """The java to run, version *oldest* or later: JAVA_HOME's, else the PATH's.

    SettingsError says how to install one.
    """
    program = java_program(oldest)
    try:
        answer = subprocess.run([program, "-version"], capture_output=True, text=True, check=False)
    except OSError as error:
        raise SettingsError(f"{program} cannot be run: {error.strerror}. {_install(oldest)}") from error
    version = re.search(r'version "(?:1\.)?(\d+)', answer.stderr)
    if version is None or int(version[1]) < oldest:
        is_what = f"Java {version[1]}" if version else "not a Java that reports its version"
        raise SettingsError(f"{program} is {is_what}; trimtab needs {oldest} or later. {_install(oldest)}")
    return program


def _install(version: int) -> str:
    return (
        f"Install Java {version}: apt-get install openjdk-{version}-jre-headless (Debian, Ubuntu), "
        f"dnf install java-{version}-openjdk-headless (Fedora, RHEL), brew install openjdk@{version} (macOS); "
        "if it is not on the PATH, set JAVA_HOME."
    )


def _accept(jar: Jar, fetched: Path, path: Path) -> None:
    if not jar.is_at(fetched):
        raise SettingsError(
            f"{jar.file_name} as fetched is not the jar of conf/jars.lock (SHA-256 {jar.sha256}): "
            "the repository has a different file under this name, so trimtab does not use it"
        )
    fetched.replace(path)


def _run_ivy(jars: Iterable[Jar], folder: Path, done: Done) -> str:
    """Let Ivy fetch *jars* into *folder*; returns its output, which names the jars that it could not fetch, and why.

    *done* is called with the number of bytes received.
    """
    cache = folder / "cache"
    settings, module = folder / "ivysettings.xml", folder / "ivy.xml"
    settings.write_text(_ivy_settings(cache, os.environ.get(MIRROR, "")), encoding="utf-8")
    module.write_text(_ivy_module(jars), encoding="utf-8")
    pattern = f"{folder}/[artifact]-[revision](-[classifier]).[ext]"
    command = [java(), *SHORT_LIFE, "-cp", _classpath_of_ivy(), "org.apache.ivy.Main", "-settings", str(settings)]
    command += ["-ivy", str(module), "-retrieve", pattern]
    deadline = Deadline.after(_FETCH_SECONDS)
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as ivy:
        try:
            while True:
                with suppress(subprocess.TimeoutExpired):
                    output, _ = ivy.communicate(timeout=_LOOK_SECONDS)
                    return "\n".join(output.splitlines()[-12:])
                done(_bytes_in(cache))
                if deadline.passed:
                    return f"not done after {_FETCH_SECONDS} s"
        finally:
            ivy.kill()


def _classpath_of_ivy() -> str:
    folder = pyspark_jars()
    return os.pathsep.join(str(jar) for name in _IVY for jar in folder.glob(f"{name}-[0-9]*.jar"))


def _bytes_in(folder: Path) -> int:
    total = 0
    for path in folder.rglob("*"):
        with suppress(FileNotFoundError):  # Ivy renames complete downloads
            total += path.stat().st_size if path.is_file() else 0
    return total


def _ivy_settings(cache: Path, mirror: str) -> str:
    root = f" root={quoteattr(mirror)}" if mirror else ""
    return f"""<ivysettings>
  <settings defaultResolver="maven"/>
  <caches defaultCacheDir={quoteattr(str(cache))}/>
  <resolvers><ibiblio name="maven" m2compatible="true" usepoms="false"{root}/></resolvers>
</ivysettings>
"""


def _ivy_module(jars: Iterable[Jar]) -> str:
    dependencies = "\n".join(
        f"    <dependency org={quoteattr(jar.organisation)} name={quoteattr(jar.name)} rev={quoteattr(jar.revision)}"
        f' transitive="false"><artifact name={quoteattr(jar.name)} type="jar" ext={quoteattr(jar.extension)}'
        f"{f' m:classifier={quoteattr(jar.classifier)}' if jar.classifier else ''}/></dependency>"
        for jar in jars
    )
    return f"""<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">
  <info organisation="trimtab" module="jars"/>
  <dependencies>
{dependencies}
  </dependencies>
</ivy-module>
"""


def fingerprint(jar_files: Iterable[Path]) -> str:
    """A name that another Java, and other jars, do not have."""
    described = "\n".join([_described(_modules()), *map(_described, jar_files)])
    return hashlib.sha256(described.encode()).hexdigest()[:16]


def _modules() -> Path:
    """A file that differs between versions of Java: its modules."""
    program = Path(java_program()).resolve()
    modules = program.parents[1] / "lib" / "modules"
    return modules if modules.exists() else program


def _described(file: Path) -> str:
    """The file as JVMs compare it: path, size and time of its last change."""
    state = file.stat()
    return f"{file} {state.st_size} {state.st_mtime_ns}"
