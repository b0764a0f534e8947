"""A command of trimtab in a process of its own, forked from the test's, so that nothing is imported a second time."""

import logging
import os
import sys
from collections.abc import Callable
from subprocess import CompletedProcess
from tempfile import TemporaryFile

from controller.cli.main import main


def trimtab(*words: str, encoding: str = "utf-8", read: bool = True) -> CompletedProcess[str]:
    """Run the command of *words* as a shell would; with *read* False whoever reads its output has ended before."""
    with TemporaryFile() as out, TemporaryFile() as err:
        stdout = out.fileno() if read else _closed_pipe()
        child = os.fork()
        if not child:
            _become(lambda: _run(words), stdout, err.fileno(), encoding)
        if not read:
            os.close(stdout)
        _, status = os.waitpid(child, 0)
        out.seek(0)
        err.seek(0)
        told = out.read().decode(encoding), err.read().decode("utf-8")
    return CompletedProcess(words, os.waitstatus_to_exitcode(status), *told)


def _closed_pipe() -> int:
    reads, writes = os.pipe()
    os.close(reads)
    return writes


def _run(words: tuple[str, ...]) -> None:
    sys.argv = ["trimtab", *words]
    main()


def _become(run: Callable[[], None], stdout: int, stderr: int, encoding: str) -> None:
    """End this process with the exit code of *run*, whose output goes to these files; never returns."""
    code = 70
    try:
        os.dup2(stdout, 1)
        os.dup2(stderr, 2)
        sys.stdout = open(1, "w", encoding=encoding, closefd=False)  # noqa: SIM115
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False, buffering=1)  # noqa: SIM115
        logging.getLogger().handlers.clear()  # pytest's
        try:
            run()
            code = 0
        except SystemExit as ended:
            code = int(ended.code or 0)
        sys.stdout.flush()
    finally:
        os._exit(code)
