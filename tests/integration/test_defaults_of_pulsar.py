"""The table of what differs between versions, beside the class ServiceConfiguration of thirteen releases of Pulsar."""

import pytest

from controller.model.errors import TrimtabError
from controller.model.pulsar_version import PulsarVersion, knows
from controller.settings.known_options import KNOWN_KEYS, options_table
from controller.strategies.catalogue import short_name
from tests.java_rival.defaults import defaults, releases

pytestmark = pytest.mark.integration

#: Options of classes that Pulsar does not have (a user's subclass), and a getter's name that is used as an option's.
_NOT_PULSARS = {"loadBalancerDeviationShedderThreshold", "getMaxUnloadBundleNumPerShedding"}
#: Objects whose default is no constant.
_NO_CONSTANT = {"loadBalancerServiceUnitTableViewSyncer"}


@pytest.mark.parametrize("release", releases())
def test_each_option_is_known_and_has_its_default_as_the_release_has_it(release: str) -> None:
    try:
        theirs = defaults(release)
    except TrimtabError as error:
        pytest.skip(f"without the class: {error}")
    version = PulsarVersion.parse(release)
    assert version is not None
    options = {key for key in KNOWN_KEYS if not key.startswith("trimtab")} - _NOT_PULSARS
    assert {key for key in options if knows(version, key)} == {key for key in options if key in theirs}
    ours = {row.key: row.default for row in options_table(version)}
    compared = (options & ours.keys() & theirs.keys()) - _NO_CONSTANT
    assert len(compared) > 30
    assert {key: ours[key] for key in compared if not _same(ours[key], theirs[key])} == {}


def _same(ours: str, theirs: str) -> bool:
    try:
        return float(ours) == float(theirs)
    except ValueError:
        return ours == short_name(theirs)
