"""Bundles that kill brokers: one whose owners die, one after the other, is not moved any more, and named.

By deaths alone such a bundle and a rolling restart look alike: what a broker leaves behind when it restarts goes to
others, and some of it goes, by chance, to the broker that restarts next.  So nothing is concluded from how many brokers
died, or how fast.  The deaths are taken as given, whatever their reason, and the question is whether the *place* of one
bundle explains them: it was on each of the brokers that died last, without one exception.

After a death each of the bundles of that broker goes somewhere.  If they do not matter to what dies next, a bundle is
on the next broker that dies with the chance q = the larger of

- the number of brokers that die then, as a share of those that it could have gone to, and
- the share of the bundles of the last broker that are there as well.  Where all of them went to one broker, that all
  are there when it restarts says nothing: q is 1.

It says nothing either (q = 1) that the same broker dies again: the broker may be the reason.  The product of all q,
times the number of bundles, is how many bundles are expected to follow that many deaths by chance.  Below
``FALSE_ALARMS`` the bundle is named.  As the chances are those of each step given the steps before, this bounds the
chance of ever naming a bundle wrongly, at whatever time one looks (Ville's inequality), for each death that a series
begins with.

What this cannot see: a bundle in a cluster of two brokers, where it has one place to go; one that is always alone on
its broker, where no other shows what a place says; one that is split, which begins anew; two bundles that take turns;
and a death of another broker in between ends the series.  With b bundles on n brokers it takes log(b / FALSE_ALARMS) /
log(n - 1) deaths: 27 of 3 brokers with 100 bundles, 7 of 50 with 5,000.
"""

import math
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from controller.cycle.guardrails.setting import switch
from controller.model import packed
from controller.model.decision import Reason, Verdict
from controller.model.load import Bools, ClusterView, Floats, Ints
from controller.model.memory import BrokerDeaths, FatalBundle, Memory
from controller.model.names import is_broker_own
from controller.model.reasons import CONFIGURATION, Meaning
from controller.model.some_of import some_of

MEANINGS: Final = {
    Reason.KILLS_BROKERS: Meaning(
        CONFIGURATION, "its owners died one after the other: see their logs, then run `trimtab resume`"
    ),
}
#: Of a million series of deaths that have other reasons, so many at most are blamed on a bundle.
FALSE_ALARMS: Final = 1e-6
#: A named bundle is forgotten after a day in which no owner of it died, and by `trimtab resume`.
_FORGOTTEN_MS: Final = 86_400_000
#: Bundles that are named at once, at most.
MOST_NAMED: Final = 20
#: Commands of so many intervals before explain why a bundle left its broker.
_COMMANDED: Final = 3
_NOBODY: Final = -1
#: Deaths of a series are counted so far.  A bundle that nobody lists is forgotten then, so that the bundles that come
#: and go on a broker which dies again and again do not add up.
_MOST_DEATHS: Final = 127


@dataclass(frozen=True, kw_only=True)
class FatalLimits:
    """See the module docstring."""

    move_fatal: bool = switch(
        default=False,
        meaning="Unload and split bundles whose owners died one after the other, more often than chance explains.  The"
        " default is false, so that such a bundle is not sent to one broker after the other.",
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Series:
    """Columns, a row for each bundle: who owns it, and the series of deaths that it was present at."""

    #: Hashed names.
    keys: NDArray[np.uint64]
    #: Index of the owner in *brokers*; _NOBODY.
    owner: Ints
    #: Logarithm of the product of all q, and the number of deaths; 0 and 0: it was not on a broker that died last.
    chance: Floats
    deaths: Ints
    brokers: tuple[str, ...]

    @property
    def herd(self) -> Bools:
        """(rows,) whether a bundle was on a broker of the last death."""
        return self.deaths > 0

    @classmethod
    def read(cls, before: BrokerDeaths) -> Self:
        """What *before* holds; columns that do not fit together begin anew."""
        keys, owner = packed.unpack_keys(before.hashes), packed.unpack_codes(before.owners) - 1
        deaths, chances = packed.unpack_bytes(before.deaths), packed.unpack_floats(before.chances)
        in_series = deaths > 0
        fits = len(keys) == len(owner) == len(deaths) and len(chances) == int(in_series.sum())
        if not fits or bool((owner >= len(before.brokers)).any()):
            nothing: Ints = np.zeros(0, np.int64)
            return cls(keys=keys[:0], owner=nothing, chance=np.zeros(0), deaths=nothing, brokers=before.brokers)
        chance = np.zeros(len(keys))
        chance[in_series] = chances
        return cls(keys=keys, owner=owner, chance=chance, deaths=deaths, brokers=before.brokers)

    def for_rows(self, keys: NDArray[np.uint64], brokers: tuple[str, ...]) -> Self:
        """The rows *keys*, with codes of *brokers*."""
        code_of = {name: code for code, name in enumerate(brokers)}
        codes: Ints = np.array([*(code_of.get(name, _NOBODY) for name in self.brokers), _NOBODY], np.int64)
        moved = replace(self, owner=codes[self.owner], brokers=brokers)
        if np.array_equal(self.keys, keys):
            return moved
        rows: Ints = np.full(len(keys), len(self.keys), np.int64)  # of a bundle that is new: behind the last one
        if len(self.keys):
            order = np.argsort(self.keys, kind="stable")
            at = np.minimum(np.searchsorted(self.keys, keys, sorter=order), len(order) - 1)
            rows = np.where(self.keys[order[at]] == keys, order[at], rows)
        return replace(
            moved,
            keys=keys,
            owner=np.append(moved.owner, _NOBODY)[rows],
            chance=np.append(self.chance, 0.0)[rows],
            deaths=np.append(self.deaths, 0)[rows],
        )

    def after(self, dying: Bools, *, choices: int, same: bool) -> Self:
        """After the owners in *dying* (brokers,) died; *choices*: to so many brokers the herd could have gone."""
        present = dying[self.owner] & (self.owner != _NOBODY)
        share = float(present[self.herd].mean()) if self.herd.any() else 1.0
        chance = 1.0 if same or not choices else max(min(1.0, int(dying.sum()) / choices), share)
        return replace(
            self,
            chance=np.where(present & self.herd, self.chance + math.log(chance), 0.0),
            deaths=np.where(present, np.minimum(self.deaths + 1, _MOST_DEATHS), 0),
        )


def watched_deaths(memory: Memory, view: ClusterView, limits: FatalLimits, period_ms: int, resumed_ms: int) -> Memory:
    """*memory* with the owners that died since the interval before, and the bundles that are named because of them.

    A broker died if it is gone, or if it has none of its bundles any more, though no command took all of them.  A
    broker without data lives.  O(bundles).
    """
    if limits.move_fatal:
        return replace(memory, deaths=BrokerDeaths()) if memory.deaths != BrokerDeaths() else memory
    before, roster = memory.deaths, {*view.brokers.names, *view.missing}
    departed = {*before.alive} - roster
    brokers = tuple(sorted({*before.brokers, *roster}))
    names, rows = _names(view)
    digest = blake2b("\n".join(names).encode(), digest_size=16).hexdigest()
    old = _Series.read(before)
    keys = old.keys[: len(names)] if digest == before.bundles and len(old.keys) >= len(names) else _hashed(names)
    series = old.for_rows(np.concatenate([keys, _away(old, keys, view, departed)]), brokers)
    now = _owners(view, rows, series)
    dying = _dying(memory, view, series, now, names, period_ms)
    died = {name for name, dies in zip(brokers, dying.tolist(), strict=True) if dies}
    resumed = resumed_ms > before.resumed_ms
    choices, last, died_at = before.choices, before.died, 0 if resumed else before.died_at
    if died:
        series = series.after(dying, choices=before.choices, same=died <= {*before.died})
        choices, last, died_at = len(roster - died), tuple(sorted(died)), view.as_of_ms
    fatal = _fatal({} if resumed else before.fatal, series, names, view.as_of_ms, died_at)
    owners = np.unique(now[now != _NOBODY])
    owned: Ints = np.full(len(brokers) + 1, _NOBODY, np.int64)
    owned[owners] = np.arange(len(owners))
    deaths = BrokerDeaths(
        bundles=digest,
        hashes=packed.pack_keys(series.keys),
        owners=packed.pack_codes(owned[now] + 1),
        chances=packed.pack_floats(series.chance[series.herd]),
        deaths=packed.pack_bytes(series.deaths),
        brokers=tuple(brokers[code] for code in owners.tolist()),
        alive=tuple(sorted(roster)),
        died=last,
        choices=choices,
        died_at=died_at,
        fatal=fatal,
        resumed_ms=resumed_ms,
    )
    return replace(memory, deaths=deaths)


def about_fatal(memory: Memory) -> list[Verdict]:
    """A verdict on each bundle that is named."""
    return [
        Verdict(
            subject=bundle,
            reason=Reason.KILLS_BROKERS,
            observed=float(each.deaths),
            unit="deaths of owners in a row",
            by="guardrails.move_fatal",
            detail=f"its owners died one after the other, the last ones {some_of(each.brokers, 3)}: it stays where it"
            " is until `trimtab resume`; look at their logs for what ended them, and at the bundle's topics",
        )
        for bundle, each in sorted(memory.deaths.fatal.items())
    ]


def summary_of_fatal(memory: Memory) -> str:
    """Which bundles are named, for the summary of a decision; "" where none is."""
    return f"{Reason.KILLS_BROKERS}: {some_of(sorted(memory.deaths.fatal), 3)}" if memory.deaths.fatal else ""


def _names(view: ClusterView) -> tuple[list[str], Ints]:
    """The bundles of *view* that can go to another broker, and their rows; none of a broker's own."""
    shared = ~np.array([is_broker_own(name) for name in view.bundles.namespaces], np.bool_)
    rows: Ints = np.flatnonzero(shared[view.bundles.namespace]) if len(view.bundles) else np.zeros(0, np.int64)
    return [view.bundles.names[row] for row in rows.tolist()], rows


def _away(old: _Series, keys: NDArray[np.uint64], view: ClusterView, departed: Set[str]) -> NDArray[np.uint64]:
    """Keys of the bundles that may still be somewhere, though *keys*, those of *view*, do not have them.

    They are on brokers without data, or were on brokers that died now or last: *departed* are gone.
    """
    hidden = np.array([*(name in view.missing or name in departed for name in old.brokers), False], np.bool_)
    absent = old.keys[hidden[old.owner] | (old.herd & (old.deaths < _MOST_DEATHS))]
    return absent[~np.isin(absent, keys)]


def _hashed(names: list[str]) -> NDArray[np.uint64]:
    digests = b"".join(blake2b(name.encode(), digest_size=8).digest() for name in names)
    return np.frombuffer(digests, "<u8").astype(np.uint64)


def _owners(view: ClusterView, rows: Ints, series: _Series) -> Ints:
    """Who owns each row of *series* now, of its brokers; the last known owner, where nobody lists it."""
    code_of = {name: code for code, name in enumerate(series.brokers)}
    codes: Ints = np.array([*(code_of[name] for name in view.brokers.names), _NOBODY], np.int64)
    now = series.owner.copy()
    listed = codes[view.bundles.broker[rows]]
    now[: len(rows)] = np.where(listed == _NOBODY, now[: len(rows)], listed)
    return now


def _dying(memory: Memory, view: ClusterView, series: _Series, now: Ints, names: list[str], period_ms: int) -> Bools:
    """(brokers,) which of the owners before died."""
    since = view.as_of_ms - _COMMANDED * period_ms
    ours = {bundle for bundle, t in memory.recently_unloaded.items() if t >= since}
    commanded = np.zeros(len(now), np.bool_)
    commanded[: len(names)] = [name in ours for name in names]
    owned = series.owner != _NOBODY
    size = len(series.brokers)

    def count(mask: Bools) -> Ints:
        return np.bincount(series.owner[mask], minlength=size)

    def among(names: Iterable[str]) -> Bools:
        chosen = {*names}
        return np.array([name in chosen for name in series.brokers], np.bool_)

    was = among(memory.deaths.alive)
    departed = was & ~among((*view.brokers.names, *view.missing))
    emptied = was & among(view.brokers.names)
    emptied &= (count(owned & (now == series.owner)) == 0) & (count(owned & ~commanded) > 0)
    died: Bools = (departed | emptied) & (count(owned) > 0)
    return died


def _fatal(
    before: Mapping[str, FatalBundle], series: _Series, names: list[str], interval: int, died_at: int
) -> dict[str, FatalBundle]:
    """The bundles that are named: those of *before*, and those that the deaths of *died_at* show.

    A bundle whose owner died may be listed again only some intervals later.  Its name is not known until then.
    """
    fatal = {name: each for name, each in before.items() if interval - each.at < _FORGOTTEN_MS}
    if not died_at or interval - died_at >= _FORGOTTEN_MS:
        return fatal
    expected = len(series.keys) * np.exp(series.chance)
    for row in np.flatnonzero(expected[: len(names)] < FALSE_ALARMS).tolist():
        known = fatal.get(names[row])
        if known is not None and known.at >= died_at:
            continue
        owner, earlier = series.brokers[int(series.owner[row])], () if known is None else known.brokers
        brokers = (owner, *(name for name in earlier if name != owner))[:3]
        fatal[names[row]] = FatalBundle(at=died_at, deaths=int(series.deaths[row]), brokers=brokers)
    newest = sorted(fatal, key=lambda name: (-fatal[name].at, name))[:MOST_NAMED]
    return {name: fatal[name] for name in sorted(newest)}


def fatal_bundles(memory: Memory, limits: FatalLimits) -> Set[str]:
    """The bundles that must not be moved or split."""
    return frozenset() if limits.move_fatal else memory.deaths.fatal.keys()
