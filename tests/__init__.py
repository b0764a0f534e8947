"""The tests of trimtab."""

import sys

# Containers often forbid bytecode.  To compile the tests and rewrite their asserts again would take longer than most
# tests; git ignores __pycache__.
sys.dont_write_bytecode = False
