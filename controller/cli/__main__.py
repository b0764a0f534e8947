"""``python -m controller.cli.main``."""

from controller.cli.main import main

main()
