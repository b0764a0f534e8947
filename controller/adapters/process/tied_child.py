"""A child process that ends with its parent, however the parent ends, and after a time limit of its own.

The parent holds one end of a pipe and the child the other.  The kernel closes the parent's end when the parent ends, by
SIGKILL too.  PR_SET_PDEATHSIG would do less: it goes by the thread that started the child, and spares what the child
has started.

Only the standard library is imported here: the child calls this before the rest is loaded.
"""

import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Final, NoReturn

from controller.adapters.process.process_tree import kill_descendants

#: The environment variable that tells the child its end of the pipe, and its time limit in seconds.
_VARIABLE: Final = "TRIMTAB_PARENT_PIPE"
#: The environment variable that, where it is set, tells a command its exit code for a NothingFoundError.  By itself a
#: command ends with 1, as where the log did not answer: a parent has to know which of both it is.
NOTHING_FOUND_VARIABLE: Final = "TRIMTAB_NOTHING_FOUND_EXIT_CODE"
#: The child's limit is later than the parent's by this: where both run, the parent ends the child and says why.
_LATER_SECONDS: Final = 5.0
_ENDED: Final = 1
#: The exit code of a program that is there and cannot be run, as shells have it.
_NOT_RUN: Final = 126


@contextmanager
def tied_child(
    command: Sequence[str],
    *,
    stdout: IO[bytes],
    stderr: IO[bytes],
    environment: Mapping[str, str],
    seconds: float | None = None,
    new_session: bool = False,
    folder: Path | None = None,
) -> Iterator["subprocess.Popen[bytes]"]:
    """Run *command*, which calls ``end_with_parent``, in a process that ends with the block, and with all it started.

    Other programs are run by the words of ``foreign``.  The process ends by itself when this one has ended, or has not
    ended it *seconds* from now and a little more; None: no limit.  *new_session*: signals of the terminal do not reach
    it.  *folder*: it runs there.
    """
    limit = "" if seconds is None else str(max(0.0, seconds) + _LATER_SECONDS)
    reader, writer = os.pipe()
    try:
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                pass_fds=(reader,),
                env={**environment, _VARIABLE: f"{reader}:{limit}"},
                start_new_session=new_session,
                cwd=folder,
            )
        finally:
            os.close(reader)
        try:
            yield process
        finally:
            if process.poll() is None:
                kill_descendants(process.pid)
                process.kill()
                process.wait()
    finally:
        os.close(writer)


def foreign(command: Sequence[str]) -> list[str]:
    """Words for ``tied_child`` that run *command*, a program that is not ours, with no time limit.

    The process becomes that program, so its pid and exit code are the program's.  A child of it waits for the end of
    the parent and then kills it.
    """
    return [sys.executable, "-m", __name__, *command]


def end_with_parent(environment: MutableMapping[str, str] = os.environ) -> None:
    """Have this process end with its parent, and in time, where ``tied_child`` started it."""
    text = environment.pop(_VARIABLE, "")
    if not text:
        return
    descriptor, _, seconds = text.partition(":")
    os.set_inheritable(int(descriptor), False)
    arguments = (int(descriptor), float(seconds) if seconds else None)
    threading.Thread(target=_end_in_time, args=arguments, name="parent", daemon=True).start()


def _end_in_time(reader: int, seconds: float | None) -> None:
    has_ended = _closed([reader], seconds)
    why = "the process that started this one has ended" if has_ended else f"it took longer than {seconds:g} s"
    with suppress(OSError):
        os.write(2, f"trimtab: ended: {why}\n".encode())
    kill_descendants(os.getpid())
    os._exit(_ENDED)


def _closed(readers: Sequence[int], seconds: float | None = None) -> list[int]:
    """Those of *readers*, ends of pipes, whose other end is closed, once one is; none after *seconds*."""
    poll = select.poll()  # unlike select(), it takes descriptors of a process that has more than 1,024 files open
    for each in readers:
        poll.register(each, select.POLLIN)
    return [each for each, _ in poll.poll(None if seconds is None else seconds * 1000)]


def _become(command: list[str], environment: MutableMapping[str, str] = os.environ) -> NoReturn:
    """Become *command*, after starting the process that kills it when the parent has ended."""
    parent = int(environment.pop(_VARIABLE).partition(":")[0])
    # The program holds the other end of this pipe, also after exec: it closes when the program ends.
    program_ended, held_by_program = os.pipe()
    program = os.getpid()
    if os.fork() == 0:
        os.close(held_by_program)
        if program_ended not in _closed([parent, program_ended]) and os.getppid() == program:
            os.kill(program, signal.SIGKILL)
        os._exit(0)
    for descriptor in (parent, program_ended):
        os.close(descriptor)
    os.set_inheritable(held_by_program, True)
    try:
        os.execvpe(command[0], command, environment)
    except OSError as error:  # as of a script without #!
        os.write(2, f"trimtab: {command[0]} cannot be run: {error.strerror}\n".encode())
        os._exit(_NOT_RUN)


if __name__ == "__main__":
    _become(sys.argv[1:])
