"""The exit codes of ``trimtab``, for docs/cli.md.  Errors carry theirs: see controller.model.errors."""

from collections.abc import Mapping
from typing import Final

from controller.cli.shared.failures import READER_GONE

EXIT_CODES: Final[Mapping[int, str]] = {
    0: "done; or a command that runs until it is told to end was ended by SIGTERM or Ctrl-C",
    1: "it failed, and the last line on standard error says why; or a check found something: `doctor` an error (with"
    " `--strict` also a warning), `strategies check` a broken law, `rebalance --require-balance` an uneven end,"
    " `simulate` an expectation that is not met, `replay` a difference, `journal` and `explain` no such decision,"
    " `plan` that its deadline cannot be met, or that bundles stay on a broker that is to be empty",
    2: "the command line or a setting is wrong, a log is another cluster's, the journal is lost or damaged, the"
    " checkpoint is damaged, a strategy fails, or a later release wrote journal or checkpoint: a person must mend it"
    " before the next start",
    3: "`decide`: a bundle would be moved or split",
    70: "the controller stood still although there was something to read: start it again",
    75: "the controller lost its leadership and cannot lead again: start it again",
    77: "a server refuses the credentials, or a right is missing: an administrator must mend it",
    130: "SIGTERM or Ctrl-C ended a command that was to end by itself",
    READER_GONE: "whoever read the output ended first, as `head` in `trimtab options | head`; nothing is wrong",
}
