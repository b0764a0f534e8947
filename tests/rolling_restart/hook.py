"""A hook of ``trimtab apply``: asks whoever runs the brokers, at the socket in its argument, to restart $BROKER.

As `systemctl restart` it returns once that is done, with an error where it is not.
"""

import os
import socket
import sys


def main() -> None:
    """Exits with 1 unless the answer is "done"."""
    with socket.socket(socket.AF_UNIX) as asking:
        asking.connect(sys.argv[1])
        asking.sendall(os.environ["BROKER"].encode() + b"\n")
        sys.exit(asking.makefile().readline() != "done\n")


if __name__ == "__main__":
    main()
