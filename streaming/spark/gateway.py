"""Spark's JVM: started here, because a signal for this process must not end the JVM before this process has ended.

Service managers send SIGTERM to every process of a service, terminals send SIGINT to a whole process group.  A JVM
that gets one ends in the middle of a micro-batch, with pages of traces.  So it ignores SIGHUP, SIGINT and SIGTERM: a
JVM keeps ignoring what was ignored when it was started.  It ends when its standard input does, so also when this
process is killed.
"""

import atexit
import locale
import os
import pwd
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

import pyspark.serializers
from pyspark import SparkContext
from pyspark.java_gateway import launch_gateway

from controller.adapters.disk.scratch import held_folder
from controller.adapters.process import signals
from controller.adapters.process.process_tree import kill_descendants
from controller.model.errors import SettingsError, TrimtabError
from streaming.spark import class_archive, java_options, spark_home, spark_log

#: Runs its arguments; they and what they start ignore these signals.
_IGNORING_SIGNALS: Final = ("/bin/sh", "-c", 'trap "" HUP INT TERM; exec "$@"', "spark")
#: By these PySpark connects to a JVM that runs already.
_PORT, _SECRET = "PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET"
#: Option of Java: the folder of temporary files.
_TEMPORARY: Final = "-Djava.io.tmpdir"
_POLL_SECONDS: Final = 0.05
#: How long a JVM that does not answer any more may take to end.
_LAST_SECONDS: Final = 10.0


class _Jvm(NamedTuple):
    """A JVM that has been started."""

    process: "subprocess.Popen[bytes]"
    #: Of its temporary files.
    scratch: Path
    output: spark_log.OutputReader


#: The JVM that this process has started and not connected to.
_STARTED: Final[list[_Jvm]] = []


def start_jvm(conf: Mapping[str, str], log_folder: Path | None = None) -> None:
    """Start the JVM of this process, unless there is one, and do not wait for it; see ``ensure_jvm``.

    SettingsError where Java cannot be found, the system has no name for the user, or nothing that lies in the folder of
    temporary files may be executed.
    """
    if SparkContext._gateway is not None or _STARTED:
        return
    _refuse_a_nameless_user()
    scratch = held_folder("trimtab-spark-")
    signals.clean_up_at_end(lambda: shutil.rmtree(scratch, ignore_errors=True))
    try:
        _refuse_no_execution(scratch, conf)
        log_file = spark_log.new_file(log_folder, scratch)
        process = _start(conf, scratch, log_file)
    except BaseException:  # there is no JVM to be ended, with which it would be deleted
        shutil.rmtree(scratch, ignore_errors=True)
        raise
    atexit.register(_end, process, scratch)
    _STARTED.append(_Jvm(process, scratch, spark_log.OutputReader(process.stdout or (), log_file)))


def ensure_jvm(conf: Mapping[str, str], log_folder: Path | None = None) -> None:
    """Start the JVM of this process with Spark's options *conf*, unless there is one; PySpark uses it from then on.

    Spark's log is kept in *log_folder*, if there is one.  TrimtabError where the JVM ends before it can be used.
    """
    if SparkContext._gateway is not None:
        return
    start_jvm(conf, log_folder)
    jvm = _STARTED.pop()
    try:
        os.environ[_PORT], os.environ[_SECRET] = _address(jvm.process, jvm.scratch / "address", jvm.output)
        gateway: Any = launch_gateway()  # type: ignore[no-untyped-call]
    finally:
        for name in (_PORT, _SECRET):
            os.environ.pop(name, None)
    gateway.proc, gateway.scratch, gateway.output = jvm.process, jvm.scratch, jvm.output
    SparkContext._ensure_initialized(gateway=gateway)


def why_it_ended() -> str:
    """How the JVM of this process ended while Spark started, with its last output; "" while it runs."""
    gateway: Any = SparkContext._gateway
    with suppress(subprocess.TimeoutExpired):  # its connections close a little before it ends
        gateway.proc.wait(_LAST_SECONDS)
    return _ended(gateway.proc, gateway.output)


def scratch_folder() -> Path | None:
    """Where the JVM of this process has its temporary files; deleted with it."""
    return getattr(SparkContext._gateway, "scratch", None)


def jvm_pid() -> int:
    """The process id of the JVM of this process."""
    gateway: Any = SparkContext._gateway
    return int(gateway.proc.pid)


def end_in_order() -> int:
    """Close the standard input of this process's JVM, and wait until it has ended by itself; returns its exit code.

    The next ``ensure_jvm`` starts another one.
    """
    gateway: Any = SparkContext._gateway
    gateway.proc.stdin.close()
    exit_code = int(gateway.proc.wait())
    SparkContext._gateway = SparkContext._jvm = None
    return exit_code


def _refuse_a_nameless_user() -> None:
    """As in a container that is started with a number of its own.  Hadoop's client, which Spark uses, asks for it."""
    try:
        pwd.getpwuid(os.getuid())
    except KeyError as error:
        raise SettingsError(
            f"this process runs as user {os.getuid()}, who has no user name on this system, and Spark "
            f"does not start without one: run it as a user in /etc/passwd (in trimtab's image: 10001), "
            f"or add this one there"
        ) from error


def _refuse_no_execution(scratch: Path, conf: Mapping[str, str]) -> None:
    """As where /tmp is mounted so: RocksDB, which keeps the state, unpacks its library there, and cannot load it."""
    chosen = f"{conf.get('spark.driver.extraJavaOptions', '')} {os.environ.get(class_archive.OPTIONS, '')}"
    elsewhere = _TEMPORARY in chosen or not conf.get("spark.master", "local").startswith("local")
    if not elsewhere and os.statvfs(scratch).f_flag & getattr(os, "ST_NOEXEC", 0):
        raise SettingsError(
            f"{scratch.parent} is mounted with noexec, and Spark loads libraries that it unpacks there: set the"
            " environment variable TMPDIR to a folder on another file system"
        )


def _end(jvm: "subprocess.Popen[bytes]", scratch: Path) -> None:
    """End the JVM when this process does: left to itself it ends later, and others wait for what it holds."""
    signals.be_silent()
    if jvm.poll() is None:  # else its process id may be another process's
        jvm.send_signal(signal.SIGSTOP)  # so that it does not report the end of its Python workers
        kill_descendants(jvm.pid)
        jvm.kill()
        jvm.wait()
    shutil.rmtree(scratch, ignore_errors=True)


def _start(conf: Mapping[str, str], scratch: Path, log_file: Path) -> "subprocess.Popen[bytes]":
    home = spark_home.spark_home()
    options = [word for name, value in conf.items() for word in ("--conf", f"{name}={value}")]
    archive = class_archive.path(home)
    class_archive.make_in_background(archive)
    # The user's come last: they prevail.
    own = (
        f"{_TEMPORARY}={scratch}",
        spark_log.java_options(log_file),
        class_archive.option_to_read(archive),
        java_options.java_options(conf, os.environ, home),
        os.environ.get(class_archive.OPTIONS, ""),
    )
    env = {
        **os.environ,
        spark_home.VARIABLE: str(home),
        class_archive.OPTIONS: " ".join(filter(None, own)),
        "SPARK_CONNECT_MODE": "0",
        # Else Spark looks for an address, and warns of what it finds.
        "SPARK_LOCAL_IP": os.environ.get("SPARK_LOCAL_IP") or conf.get("spark.driver.bindAddress", "127.0.0.1"),
        "_PYSPARK_DRIVER_CONN_INFO_PATH": str(scratch / "address"),
        **spark_home.for_yarn(conf.get("spark.master", "")),
        **_names_of_files(),
    }
    # The pipe is never written to: its end tells the JVM to end.
    return subprocess.Popen(
        [*_IGNORING_SIGNALS, str(home / "bin" / "spark-submit"), *options, "pyspark-shell"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=env,
    )


def _names_of_files() -> dict[str, str]:
    """Environment in which Java writes names of files as this process does.

    With LC_ALL=C, or a locale that the system does not have, Python takes UTF-8 and Java ASCII: of a checkpoint whose
    path has other characters the one would lie here and the other there.
    """
    as_java = locale.nl_langinfo(locale.CODESET).replace("-", "").lower()
    return {"LC_ALL": "C.UTF-8"} if sys.getfilesystemencoding() == "utf-8" and as_java != "utf8" else {}


def _ended(jvm: "subprocess.Popen[bytes]", output: spark_log.OutputReader) -> str:
    return f"Spark's JVM ended with exit code {jvm.poll()} while it started; it said:\n{output.last_lines()}"


def _address(jvm: "subprocess.Popen[bytes]", file: Path, output: spark_log.OutputReader) -> tuple[str, str]:
    """Port and secret, which the JVM writes to *file* when it can be used."""
    while not file.exists():
        if jvm.poll() is not None:
            raise TrimtabError(_ended(jvm, output))
        time.sleep(_POLL_SECONDS)
    with file.open("rb") as content:
        serializers: Any = pyspark.serializers
        return str(serializers.read_int(content)), serializers.UTF8Deserializer().loads(content)
