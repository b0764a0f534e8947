"""Which process this is, as it says in the election."""

import os
import socket

from controller.wire.process import encode_process


def own_process() -> bytes:
    """Host and number of the process that calls this."""
    return encode_process(socket.gethostname() or "unknown", os.getpid())
