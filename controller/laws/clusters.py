"""Small clusters for the laws.  Hypothesis generates them, and simplifies one that breaks a law."""

from functools import cache
from typing import Final, NamedTuple

from hypothesis import strategies as st

from controller.model.load import ClusterView, Ints
from controller.strategies.view_builder import Broker, Bundle, cluster_view

NAMESPACE: Final = "acme/test"
_MBYTES: Final = st.floats(0, 500) | st.sampled_from([0.0, 10.0, 100.0])
_USAGES: Final = st.floats(0, 1.2) | st.sampled_from([0.0, 0.5, 0.95])
_BUNDLES: Final = st.builds(
    Bundle,
    mbytes_in=_MBYTES,
    msg_rate_in=st.floats(0, 50_000),
    topics=st.integers(0, 2000),
    producers=st.integers(0, 800),
    consumers=st.integers(0, 800),
)


class Placing(NamedTuple):
    """A cluster, and the rows of the brokers that its first bundle may go to."""

    view: ClusterView
    candidates: Ints


def bundle_name(broker: int, number: int) -> str:
    """The name of a bundle that can be split."""
    lower = broker << 16 | number << 2
    return f"{NAMESPACE}/0x{lower:08x}_0x{lower + 2:08x}"


@st.composite
def clusters(draw: st.DrawFn, *, least_bundles: int = 0) -> ClusterView:
    """Up to six brokers with up to six bundles each, some of which were unloaded recently.

    *least_bundles*: of the first broker.
    """
    first = draw(_brokers(least_bundles))
    brokers, recent = [], set[str]()
    for i, (usage, coming, drawn) in enumerate([first, *draw(_OTHERS)]):
        named = {bundle_name(i, j): bundle for j, (bundle, _) in enumerate(drawn)}
        recent |= {name for name, (_, recently) in zip(named, drawn, strict=True) if recently}
        brokers.append(Broker(f"b{i}", cpu=usage, on_its_way=coming, bundles=named))
    count = draw(_COUNTS)
    some = any(broker.bundles for broker in brokers)
    return cluster_view(*brokers, recently_unloaded=recent, bundle_count={NAMESPACE: count} if some else {})


@cache
def _brokers(least_bundles: int) -> st.SearchStrategy[tuple[float, float, list[tuple[Bundle, bool]]]]:
    """Usage, msg/s on their way, and bundles with whether each was unloaded recently."""
    bundles = st.lists(st.tuples(_BUNDLES, st.booleans()), min_size=least_bundles, max_size=6)
    return st.tuples(_USAGES, st.sampled_from([0.0, 100.0]), bundles)


_OTHERS: Final = st.lists(_brokers(0), max_size=5)
_COUNTS: Final = st.sampled_from([1, -1, 126, 127, 128, 1000])


@st.composite
def alike(draw: st.DrawFn) -> ClusterView:
    """Up to six brokers with the same bundles, in all but their names, and none of them too full."""
    usage = draw(st.floats(0, 0.8) | st.sampled_from([0.0, 0.5]))
    bundles = draw(st.lists(_BUNDLES, max_size=6))
    return cluster_view(
        *(
            Broker(f"b{i}", cpu=usage, bundles={bundle_name(i, j): one for j, one in enumerate(bundles)})
            for i in range(draw(st.integers(1, 6)))
        )
    )


def hot_and_cold() -> ClusterView:
    """One broker that is nearly full, and one with nearly nothing."""
    heavy = {
        bundle_name(0, i): Bundle(mbytes_in=mbytes, msg_rate_in=mbytes * 100)
        for i, mbytes in enumerate((300, 200, 100))
    }
    light = {bundle_name(1, 0): Bundle(mbytes_in=1, msg_rate_in=1)}
    return cluster_view(Broker("hot", cpu=0.95, bundles=heavy), Broker("cold", cpu=0.05, bundles=light))
