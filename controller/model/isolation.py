"""Isolation policies: which policy governs a namespace, and which brokers it allows.

Pulsar: org.apache.pulsar.common.policies.impl.{NamespaceIsolationPolicies, NamespaceIsolationPolicyImpl,
MinAvailablePolicy}.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from controller.model.java_regex import MAX_PATTERNS, Expressions, Hit, matches
from controller.model.some_of import some_of

#: Of so many namespaces it is remembered what governs them.
_MAX_CACHED_NAMESPACES: Final = 200_000
#: So many of them are matched with all expressions at once: each could have thousands of hits.
_AT_ONCE: Final = 1_000
#: Characters of an expression, and namespaces of a policy, in a message.
_MAX_SHOWN_CHARS, _MAX_NAMED = 100, 3
_HIGHEST_PORT: Final = 65_535


@dataclass(frozen=True, slots=True, order=True)
class BrokerStatus:
    """A broker as a fail-over policy sees it; sorted by load, then by name."""

    #: Percent.
    load_factor: int
    address: str
    active: bool = field(compare=False, kw_only=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class MinAvailable:
    """Fail-over policy: secondary brokers serve too while fewer than ``min_limit`` primary brokers are available.

    The default never fails over.
    """

    min_limit: int = 0
    #: Percent; a broker at or above it is not available.  100: the load does not matter.
    usage_threshold: int = 100

    def is_available(self, status: BrokerStatus) -> bool:
        """Whether a broker can take bundles."""
        return status.active and (status.load_factor < self.usage_threshold or self.usage_threshold >= 100)

    def fails_over(self, primaries: int) -> bool:
        """Whether *primaries*, a number of available primary brokers, is below the limit."""
        return primaries < self.min_limit


@dataclass(frozen=True, slots=True, kw_only=True)
class IsolationPolicy:
    """Binds namespaces to brokers, both given as Java regular expressions of whole names.

    A broker's name is its host; since Pulsar 5.0 an expression with a colon also matches ``host:port``.
    """

    namespaces: tuple[str, ...]
    #: Brokers that serve these namespaces and no others.
    primary: tuple[str, ...]
    #: Brokers that also take them while too few primary ones are available.
    secondary: tuple[str, ...] = ()
    auto_failover: MinAvailable = field(default_factory=MinAvailable)

    #: What of it cannot be read, each as a clause; see controller.model.isolation_policies.
    flaws: tuple[str, ...] = ()
    #: Whether the lists of expressions could be read.  A policy whose namespaces are not known governs those whose
    #: records list it.
    namespaces_known: bool = True
    primary_known: bool = True

    def applies_to(self, namespace: str) -> bool:
        """Whether this policy governs *namespace*."""
        return matches(self.namespaces, namespace)

    def fails_over(self, statuses: tuple[BrokerStatus, ...]) -> bool:
        """Whether too few of *statuses*, the primary brokers, are available."""
        return self.auto_failover.fails_over(sum(self.auto_failover.is_available(status) for status in statuses))


class BrokerAddresses(NamedTuple):
    """What expressions for brokers match, of each broker."""

    hosts: tuple[str, ...]
    #: ``host:port``, which expressions with a colon match, too; None: a broker without one.  Empty: hosts alone count.
    ids: tuple[str | None, ...] = ()

    @classmethod
    def of(cls, names: Sequence[str], *, match_ids: bool) -> "BrokerAddresses":
        """Those of brokers by their *names*, ``host:port``.  A host keeps the brackets of IPv6."""
        cut = [name.rpartition(":") for name in names]
        ids = tuple(_broker_id(host, port) for host, _, port in cut) if match_ids else ()
        return cls(tuple(host for host, _, _ in cut), ids)


class Governed(NamedTuple):
    """What governs a namespace."""

    #: The row of its policy; None: there is none.
    row: int | None
    #: Why it is not known what the policy allows, or whether it governs the namespace; "": all is known.  The bundles
    #: of such a namespace stay where they are.
    why: str = ""


class Isolation:
    """The isolation policies of a cluster.

    A namespace stays where it is if the first policy that it could have cannot be read: not what it allows, or not
    whether it means this namespace.  Others are free.  They keep off the brokers that a primary expression could mean;
    one that could mean every broker says nothing about which: see ``open_ended``.
    """

    def __init__(self, policies: tuple[IsolationPolicy, ...], max_patterns: int = MAX_PATTERNS) -> None:
        """*max_patterns*: the maximum number of expressions that are neither names nor beginnings of them."""
        self.policies: Final = policies
        listed = [(regex, row) for row, policy in enumerate(policies) for regex in policy.namespaces]
        self._regexes = [regex for regex, _ in listed]
        self._row = [row for _, row in listed]
        self._namespaces = Expressions(self._regexes, max_patterns)
        self._brokers = Expressions(
            (regex for policy in policies for regex in (*policy.primary, *policy.secondary)), max_patterns
        )
        self._rows_of_number = dict[int, list[int]]()
        for regex, row in listed:
            self._rows_of_number.setdefault(self._namespaces.number[regex], []).append(row)
        #: Row -> what of the policy cannot be read, besides its expressions for namespaces.
        self._flaws = {row: flaws for row, policy in enumerate(policies) if (flaws := self._flaws_of(policy))}
        self._numbers_of = dict[int, frozenset[int]]()
        self._governed = dict[tuple[str, tuple[int, ...]], Governed]()
        #: The expressions for brokers that also match ``host:port``.
        self._of_ids = frozenset(number for regex, number in self._brokers.number.items() if ":" in regex)
        self._addresses: tuple[BrokerAddresses, list[list[Hit]]] = BrokerAddresses(()), []
        #: Expressions of a policy -> which of these brokers they match.
        self._masks = dict[tuple[str, ...], NDArray[np.bool_]]()

    def governed(self, namespaces: Sequence[str], listed: Mapping[str, tuple[int, ...]]) -> list[Governed]:
        """What governs each of *namespaces*; *listed*: namespace -> the policies of its own record, tried first.

        Only what was not asked for lately is matched.
        """
        keys = [(name, listed.get(name, ())) for name in namespaces]
        if len(self._governed) + len(keys) > _MAX_CACHED_NAMESPACES:
            self._governed.clear()
        missing = {key[0]: key[1] for key in keys if key not in self._governed}
        if missing:
            governed = self._find(missing)
            self._governed |= {(name, rows): governed.get(name, Governed(None)) for name, rows in missing.items()}
        return [self._governed[key] for key in keys]

    def naming(self, namespaces: Sequence[str]) -> dict[str, list[int]]:
        """Namespace -> the rows of all policies that name it, or might."""
        unknown = [row for row, policy in enumerate(self.policies) if not policy.namespaces_known]
        hits = self._namespaces.hits(namespaces)
        return {
            name: sorted({*unknown, *(row for hit in hits.get(name, ()) for row in self._rows_of_number[hit.number])})
            for name in namespaces
        }

    def that_name(self, row: int, namespace: str) -> list[str]:
        """The expressions for namespaces of the policy *row* that match *namespace*, or might."""
        numbers = {hit.number for hit in self._namespaces.hits([namespace]).get(namespace, ())}
        return [each for each in self.policies[row].namespaces if self._namespaces.number[each] in numbers]

    def of_brokers(self, regexes: tuple[str, ...], brokers: BrokerAddresses) -> NDArray[np.bool_]:
        """(brokers,) whether one of *regexes*, the primary or secondary ones of a policy, matches each.

        Pulsar: isPrimaryBroker, isSecondaryBroker; from 5.0 on also isPrimaryBrokerId, isSecondaryBrokerId.
        """
        hits = self._hits(brokers)
        if regexes not in self._masks:
            numbers = {self._brokers.number[regex] for regex in regexes}
            matched = [any(hit.sure and hit.number in numbers for hit in of_broker) for of_broker in hits]
            self._masks[regexes] = np.array(matched, np.bool_)
            self._masks[regexes].flags.writeable = False
        return self._masks[regexes]

    def reserved(self, brokers: BrokerAddresses) -> NDArray[np.bool_]:
        """(brokers,) whether each is, or could be, a primary broker of some policy: closed to other namespaces.

        Without what is ``open_ended``.  Pulsar: the opposite of isSharedBroker.
        """
        unclear = {
            self._brokers.number[regex]
            for row in self.open_ended(brokers)
            for regex in self.policies[row].primary
            if regex in self._brokers.refused
        }
        numbers = {self._brokers.number[regex] for policy in self.policies for regex in policy.primary} - unclear
        hits = self._hits(brokers)
        return np.array([any(hit.number in numbers for hit in of_broker) for of_broker in hits], np.bool_)

    def open_ended(self, brokers: BrokerAddresses) -> tuple[int, ...]:
        """The rows of policies of which it is not known which of *brokers* are primary: each of them could be."""
        return tuple(row for row, policy in enumerate(self.policies) if self._is_open_ended(policy, brokers))

    @cached_property
    def flaws(self) -> tuple[tuple[int, str], ...]:
        """What cannot be read: the row of a policy, and what of it, as a sentence without a full stop."""
        flaws_by_row = dict[int, list[str]]()
        for regex, row in zip(self._regexes, self._row, strict=True) if self._namespaces.refused else ():
            if regex in self._namespaces.refused:
                flaws_by_row.setdefault(row, []).append(self._refused("namespaces", regex, self._namespaces))
        for row, flaws in self._flaws.items():
            flaws_by_row.setdefault(row, []).extend(flaws)
        return tuple((row, f"{self._label(row)}: {'; '.join(flaws)}") for row, flaws in sorted(flaws_by_row.items()))

    @property
    def holds_all(self) -> bool:
        """Whether an expression for namespaces could mean any of them: nothing moves that no policy before it names."""
        return bool(self._namespaces.unbounded)

    def _find(self, missing: Mapping[str, tuple[int, ...]]) -> dict[str, Governed]:
        governed = self._find_listed(missing)
        others = [name for name in missing if name not in governed]
        hits = self._namespaces.first(others)
        unsure = dict[int, list[str]]()
        for name, hit in hits.items():
            row = self._row[hit.number]
            if hit.sure:
                governed[name] = self._sure(row)
            else:
                unsure.setdefault(row, []).append(name)
        # Another expression of the same policy may make it sure.
        for row, names in unsure.items():
            governed |= self._find_in(row, names)
        return governed

    def _find_listed(self, missing: Mapping[str, tuple[int, ...]]) -> dict[str, Governed]:
        """What of the policies in its own record governs a name."""
        names, by_name = [name for name, rows in missing.items() if rows], dict[str, Governed]()
        for at in range(0, len(names), _AT_ONCE):
            some = names[at : at + _AT_ONCE]
            hits = self._namespaces.hits(some)
            for name in some:
                governed = self._first_of(missing[name], hits.get(name, ()))
                if governed is not None:
                    by_name[name] = governed
        return by_name

    def _first_of(self, rows: Sequence[int], hits: Sequence[Hit]) -> Governed | None:
        """The first of the policies *rows* that governs a name with these *hits*, or might."""
        sure = {hit.number for hit in hits if hit.sure}
        unsure = {hit.number: hit for hit in hits if not hit.sure}
        for row in rows:
            if not self.policies[row].namespaces_known or not sure.isdisjoint(self._numbers(row)):
                return self._sure(row)
            if unsure and (numbers := unsure.keys() & self._numbers(row)):
                return self._unsure(row, unsure[min(numbers)])
        return None

    def _find_in(self, row: int, names: Sequence[str]) -> dict[str, Governed]:
        """What of the policy *row* each of *names* has that it matches, or might."""
        hits = self._namespaces.hits(names, self._numbers(row))
        first = {name: self._first_of((row,), each) for name, each in hits.items()}
        return {name: governed for name, governed in first.items() if governed is not None}

    def _numbers(self, row: int) -> frozenset[int]:
        """The numbers of the expressions for namespaces of the policy *row*."""
        numbers = self._numbers_of.get(row)
        if numbers is None:
            number = self._namespaces.number
            numbers = self._numbers_of[row] = frozenset(number[regex] for regex in self.policies[row].namespaces)
        return numbers

    def _sure(self, row: int) -> Governed:
        return Governed(row, f"{self._label(row)}: {'; '.join(self._flaws[row])}" if row in self._flaws else "")

    def _unsure(self, row: int, hit: Hit) -> Governed:
        regex = self._regexes[hit.number]
        reason = self._refused("namespaces", regex, self._namespaces)
        if regex not in self._namespaces.refused:
            reason = f"whether {_short(regex)} matches a name that is not plain ASCII cannot be told"
        return Governed(row, f"{self._label(row)}: {reason}")

    def _flaws_of(self, policy: IsolationPolicy) -> tuple[str, ...]:
        refused = self._brokers.refused
        lists = (("primary", policy.primary), ("secondary", policy.secondary)) if refused else ()
        unread = [(part, regex) for part, regexes in lists for regex in regexes if regex in refused]
        return (*policy.flaws, *(self._refused(part, regex, self._brokers) for part, regex in unread))

    def _is_open_ended(self, policy: IsolationPolicy, brokers: BrokerAddresses) -> bool:
        if not policy.primary_known:
            return True
        refused = self._brokers.refused
        numbers = {self._brokers.number[regex] for regex in policy.primary if regex in refused} if refused else ()
        if not numbers:
            return False
        return all(any(hit.number in numbers for hit in of_broker) for of_broker in self._hits(brokers))

    def _hits(self, brokers: BrokerAddresses) -> list[list[Hit]]:
        """The hits of expressions for brokers, of each of *brokers*.  Brokers seldom change."""
        if self._addresses[0] != brokers:
            by_host = self._brokers.hits(brokers.hosts)
            hits_by_broker = [by_host.get(host, []) for host in brokers.hosts]
            if brokers.ids:
                by_id = self._brokers.hits([each for each in brokers.ids if each is not None], self._of_ids)
                hits_by_broker = [
                    [*hits, *by_id.get(each or "", ())] for hits, each in zip(hits_by_broker, brokers.ids, strict=True)
                ]
            self._addresses, self._masks = (brokers, hits_by_broker), {}
        return self._addresses[1]

    def _label(self, row: int) -> str:
        return f"isolation policy of {some_of(self.policies[row].namespaces, _MAX_NAMED, format_item=_short) or '?'}"

    def _refused(self, part: str, regex: str, among: Expressions) -> str:
        return f"expression {_short(regex)} of {part} cannot be read: {among.refused.get(regex, '')}"


@lru_cache(maxsize=8)
def isolation_rules(policies: tuple[IsolationPolicy, ...]) -> Isolation:
    """*policies*, ready to be asked.  Cached: they seldom change."""
    return Isolation(policies)


def _broker_id(host: str, port: str) -> str | None:
    """``host:port`` as Pulsar writes it before it matches it; None where it does not.

    Pulsar: NamespaceIsolationPolicyImpl.toHostAndPort, com.google.common.net.HostAndPort.
    """
    if len(host) > 1 and host[0] == "[" and host[-1] == "]":
        host = host[1:-1]
    port = port.removeprefix("+")  # as Integer.parseInt
    valid = port.isascii() and port.isdigit() and int(port) <= _HIGHEST_PORT
    if not host or not valid or host.startswith("[") or host.count(":") == 1:
        return None
    return f"[{host}]:{int(port)}" if ":" in host else f"{host}:{int(port)}"


def _short(text: str) -> str:
    return text if len(text) <= _MAX_SHOWN_CHARS else f"{text[:_MAX_SHOWN_CHARS]}..."
