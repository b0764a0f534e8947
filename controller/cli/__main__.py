"""``python -m controller.cli``."""

from controller.cli.main import main

main()
