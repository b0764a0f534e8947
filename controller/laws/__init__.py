"""Laws that every strategy must keep, and a check that searches for an example that breaks one.

    from controller.laws import broken_laws

    def test_my_shedder_keeps_the_laws() -> None:
        assert broken_laws(MyShedder()) == []

``trimtab strategies check my_package.my_module.MyShedder`` does the same.  The examples come from Hypothesis, which is
not among the dependencies of trimtab: importing this package without it raises SettingsError.
"""

from controller.model.errors import SettingsError

try:
    import hypothesis as _hypothesis  # noqa: F401
except ModuleNotFoundError as error:
    raise SettingsError(
        "the laws of strategies are checked on examples that Hypothesis makes, and it is not installed:"
        " pip install 'trimtab[laws]'"
    ) from error

from controller.laws.check import BrokenLaw, broken_laws, laws_of
from controller.laws.law import Law

__all__ = ["BrokenLaw", "Law", "broken_laws", "laws_of"]
