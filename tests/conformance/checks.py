"""The check of a component: the test of its module, for a case at hand."""

import importlib
from typing import Any


def check(component: str, case: dict[str, Any]) -> None:
    """Run the test of *component* on *case*; raises what the test raises."""
    module = importlib.import_module(f"tests.conformance.test_{component}")
    (test,) = (value for name, value in vars(module).items() if name.startswith("test_"))
    test(case=case)
