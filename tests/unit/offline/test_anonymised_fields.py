"""No text of a cluster is left in an anonymised record: every field of every model that can hold one is tried.

A new field with a text fails the first test, until it stands in a record here and its text is seen to be gone.
"""

import dataclasses
import json
import types
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, TypeAlias, TypeVar, Union, get_args, get_origin, get_type_hints

import pytest
from pydantic import BaseModel

from controller.adapters.recordings.manifest import RecordedSettings
from controller.model.controls import (
    Controls,
    DecisionApproval,
    DecisionRejection,
    OrderedMove,
    Orders,
    Pause,
)
from controller.model.decision import Command, Decision, Reason, Verdict
from controller.model.errors import TrimtabError
from controller.model.journal import JournalEntry
from controller.model.memory import (
    Breaker,
    BrokerDeaths,
    Destination,
    Failed,
    FatalBundle,
    InFlight,
    Issued,
    Memory,
    OwnBalancing,
    Roster,
    UnlistedBundle,
)
from controller.model.proposals import ControlRequest, Grant, SignedStatement, Statement, StatementKind
from controller.model.proposed import PredictedBroker, ProposedDecision
from controller.model.pulsar_version import ASSUMED, VersionInUse
from controller.offline.pseudonyms.anonymise import OWN_STRATEGY, Anonymiser, anonymised_settings, plain_version
from controller.offline.pseudonyms.names import Pseudonyms
from controller.settings.known_options import options_table
from controller.strategies.catalogue import MEMORIES
from controller.strategies.shedding.peak_shedder.memory import PeakHistory
from controller.wire import metrics, results
from controller.wire.arrow_stream import COLUMNS
from controller.wire.journal import encode_entry
from controller.wire.metrics import LocalBrokerDataRecord
from controller.wire.sweep import ArrowSweep, BrokerSweep
from tests.recordings import SETTINGS, MemoryRecordLog, stored
from tests.records import (
    CLUSTER,
    T,
    as_bytes,
    broker_load,
    broker_state,
    broker_sweep,
    bundle_data,
    bundle_stats,
    load_report,
    namespace_state,
    result,
    tick,
    topic_stats,
)

#: In every text of the records below.
SECRET = "acme"
BROKER, BUNDLE = "acme-1:8080", "acme/ns/0x00000000_0x80000000"
TOPIC = "persistent://acme/ns/orders"
POLICY = {
    "namespaces": ["acme/.*"],
    "primary": ["acme-.*"],
    "secondary": ["acme-2"],
    "autoFailoverPolicy": {
        "policyType": "min_available",
        "parameters": {"minLimit": "3", "usageThreshold": "80", "acme": "acme"},
        "acme": "acme",
    },
    "acme": ["acme"],
}
_TEXTS = {"cluster": f"{SECRET}-{CLUSTER}"}
SWEEP = broker_sweep(BROKER, sweepId="acme@1", bundleStats=[bundle_stats(BUNDLE, topic=[TOPIC] * 2)], **_TEXTS)
#: A record of every kind, all of whose texts have SECRET in them.
RECORDS: dict[str, dict[str, Any]] = {
    "broker_sweep": SWEEP,
    "topic_stats": topic_stats(broker=BROKER, bundle=BUNDLE, topic=TOPIC, **_TEXTS),
    "broker_load": broker_load(
        broker=BROKER,
        report=load_report(
            webServiceUrl="http://acme-1:8080",
            webServiceUrlTls="https://acme-1:8443",
            lastStats={BUNDLE: SWEEP["bundleStats"][0]["totals"]},
        ),
        **_TEXTS,
    ),
    "namespace_state": namespace_state(
        namespace="acme/ns", antiAffinityGroup="acme", isolationPolicies=[POLICY], **_TEXTS
    ),
    "broker_state": broker_state(
        broker=BROKER, failureDomain="acme", brokerVersionString="4.0.1-SNAPSHOT-acme", **_TEXTS
    ),
    "bundle_data": bundle_data(bundle=BUNDLE, **_TEXTS),
    "tick": {**tick(roster=[{"broker": BROKER, "sweepId": "acme@1"}]), **_TEXTS},
    "result": result(id="acme", detail="acme", ownerBefore=BROKER, ownerAfter=BROKER, **_TEXTS),
}
Path: TypeAlias = tuple[str, ...]


def texts_in(model: type[BaseModel]) -> Iterator[Path]:
    """The fields of *model*, and of what is in it, that can hold a text."""
    for name, field in model.model_fields.items():
        yield from ((field.alias or name, *rest) for rest in _texts(field.annotation))


def _texts(kind: Any) -> Iterator[Path]:
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        yield from texts_in(kind)
    elif kind in (str, Any, bytes, object) or isinstance(kind, TypeVar):
        yield ()
    elif get_origin(kind) is Literal or kind in (int, float, bool, type(None), Ellipsis):
        return
    elif get_origin(kind) is Annotated:
        yield from _texts(get_args(kind)[0])
    elif get_origin(kind) in (tuple, list, dict, Union, types.UnionType) or hasattr(kind, "__value__"):
        for each in get_args(kind):
            yield from _texts(each)
    else:
        yield ("?", repr(kind))  # nobody knows what it can hold


def with_text(value: Any) -> Iterator[Path]:
    """Where in *value*, which is JSON, SECRET stands."""
    if isinstance(value, Mapping):
        for key, each in value.items():
            if SECRET in key:
                yield ()
            yield from ((key, *rest) if SECRET not in key else rest for rest in with_text(each))
    elif isinstance(value, list):
        for each in value:
            yield from with_text(each)
    elif isinstance(value, str) and SECRET in value:
        yield ()


@pytest.fixture(scope="module")
def other() -> Anonymiser:
    log = MemoryRecordLog({"metrics": [stored(i, as_bytes(each)) for i, each in enumerate(RECORDS.values())]})
    return Anonymiser(
        log, log.extents("metrics"), {}, settings=SETTINGS, cluster=_TEXTS["cluster"], key=b"sixteen bytes or more"
    )


def test_each_field_that_can_hold_a_text_has_one_here() -> None:
    models = {**metrics.MODELS, **results.MODELS}
    assert models.keys() == RECORDS.keys()
    for kind, model in models.items():
        # What a field of no known form holds is told by the form: Pulsar's policies have their own.
        found = {path[:1] if path[0] == "isolationPolicies" else path for path in with_text(RECORDS[kind])}
        assert found == set(texts_in(model)), kind
    assert {name for name, kind in COLUMNS.items() if "string" in str(kind)} == {"bundle", "topic"}
    assert ArrowSweep.model_fields.keys() - BrokerSweep.model_fields.keys() == {"batch"}


def test_no_text_is_left_in_any_record(other: Anonymiser) -> None:
    bare = {key: value for key, value in RECORDS["broker_load"]["report"].items() if key != "webServiceUrlTls"}
    assert set(with_text(bare)) <= set(texts_in(LocalBrokerDataRecord))
    for kind, record in {**RECORDS, "bare": bare}.items():
        topic = "results" if kind == "result" else "metrics"
        renamed = other.rewrite(topic, stored(1, as_bytes(record), key=b"acme", headers=(("acme", b"acme"),)))  # type: ignore[arg-type]
        assert b"removed" not in renamed.value, kind
        assert not [*with_text(json.loads(renamed.value))], (kind, renamed.value)
        assert SECRET.encode() not in (renamed.key or b"")
        assert renamed.headers == ()


def test_of_a_policy_its_numbers_and_what_it_matches_are_left(other: Anonymiser) -> None:
    renamed = json.loads(other.rewrite("metrics", stored(1, as_bytes(RECORDS["namespace_state"]))).value)
    (policy,) = renamed["isolationPolicies"]
    assert policy["auto_failover_policy"] == {
        "policy_type": "min_available",
        "parameters": {"min_limit": 3, "usage_threshold": 80},
    }
    assert policy["namespaces"] == [f"\\Q{renamed['namespace'].partition('/')[0]}/\\E.*"]
    assert [len(policy["primary"]), len(policy["secondary"])] == [1, 0]


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("4.0.1", "4.0.1"), ("4.1.0-SNAPSHOT", "4.1.0-SNAPSHOT"), ("4.0.0-rc.1-acme", "4.0.0-rc.1"),
        ("3.0.7-acme-7", "3.0.7"), ("4.0.0-beta-2.3", "4.0.0-beta-2.3"), ("acme 4.0", None), ("", None),
        ("4.0.1-" + "1" * 5000, "4.0.1"),
    ],
)  # fmt: skip
def test_of_a_version_its_numbers_are_left(given: str, kept: str | None) -> None:
    assert plain_version(given) == kept


#: Fields of the settings that can hold a text: those that are replaced, and those that hold no text of somebody's own.
_REPLACED = {("decisions", "excluded"), ("decisions", "only"), ("broker_conf",)}
_FORM_IS_CHECKED = {
    ("guardrails", "maintenance", "time_zone"),
    ("guardrails", "maintenance", "allowed"),
    ("guardrails", "maintenance", "frozen"),
    ("pulsar",),
}


def test_each_text_of_the_settings_is_replaced_or_has_a_form_that_is_checked() -> None:
    found = {tuple(map(_snake, path)) for path in texts_in(RecordedSettings)}
    limits = {path for path in found if path[0] == "guardrails"} - _FORM_IS_CHECKED
    assert found - limits == _REPLACED | _FORM_IS_CHECKED
    for path in limits:  # a number, or the word "unlimited"
        with pytest.raises(ValueError, match="whole number"):
            SETTINGS.guardrails.model_validate(_nested(path[1:], SECRET))


def _snake(name: str) -> str:
    return "".join(f"_{each.lower()}" if each.isupper() else each for each in name)


def _nested(path: Path, value: object) -> Any:
    return value if not path else {path[0]: _nested(path[1:], value)}


def test_of_broker_conf_numbers_switches_and_strategies_of_trimtab_are_left() -> None:
    conf = {
        "loadBalancerLoadSheddingStrategy": "acme.balance.Shedder",
        "loadBalancerLoadPlacementStrategy": "org.apache.pulsar.broker.loadbalance.impl.LeastLongTermMessageRate",
        "loadManagerClassName": "com.acme.ModularLoadManagerImpl",
        "supportedNamespaceBundleSplitAlgorithms": "range_equally_divide,acme",
        "loadBalancerBrokerMaxTopics": "77",
        "trimtabRebalanceOnMembershipChange": "eager",
        "trimtabSplitHours": "22-5,7",
        "loadBalancerDistributeBundlesEvenlyEnabled": "true",
        "loadBalancerBundleUnloadMinThroughputThreshold": "acme",
        "acmeSecret": "1234",
    }
    settings = SETTINGS.model_copy(update={"broker_conf": conf})
    told = Anonymiser(MemoryRecordLog({}), {}, {}, settings=settings, cluster="c", key=b"k" * 16).settings.broker_conf
    assert told == {
        "loadBalancerLoadSheddingStrategy": OWN_STRATEGY,
        "loadBalancerLoadPlacementStrategy": "LeastLongTermMessageRate",
        "loadManagerClassName": "ModularLoadManagerImpl",
        "supportedNamespaceBundleSplitAlgorithms": "range_equally_divide",
        "loadBalancerBrokerMaxTopics": "77",
        "trimtabRebalanceOnMembershipChange": "eager",
        "trimtabSplitHours": "22-5,7",
        "loadBalancerDistributeBundlesEvenlyEnabled": "true",
    }


def test_namespaces_that_are_excluded_from_shedding_get_the_names_that_their_bundles_get() -> None:
    key = "loadBalancerSheddingExcludedNamespaces"
    settings = SETTINGS.model_copy(update={"broker_conf": {key: "acme/orders, acme/b,,odd"}})
    made = Anonymiser(MemoryRecordLog({}), {}, {}, settings=settings, cluster="c", key=b"k" * 16)
    told, names = made.settings.broker_conf[key].split(","), Pseudonyms(b"k" * 16)
    assert {names.namespace(each) for each in ("acme/orders", "acme/b")} < set(told)
    assert len(told) == 3
    assert not any(word in made.settings.broker_conf[key] for word in ("acme", "orders", "odd"))


def test_the_default_of_every_option_is_left() -> None:
    own = {row.key: row.default for row in options_table() if row.file == "broker.conf" and row.default}
    settings = SETTINGS.model_copy(update={"broker_conf": own})
    told = Anonymiser(MemoryRecordLog({}), {}, {}, settings=settings, cluster="c", key=b"k" * 16).settings.broker_conf
    assert told == own
    assert len(own) > 30


def _names_in(kind: Any) -> Any:
    """A memory of this *kind* whose every mapping, tuple and text names a bundle or a broker."""
    values: dict[str, Any] = {}
    for name, hint in get_type_hints(kind).items():
        if hint == Mapping[str, str]:
            values[name] = {BUNDLE: BROKER, BROKER: BROKER}
        elif get_origin(hint) is Mapping:
            values[name] = {BUNDLE: 1, BROKER: 2}
        elif get_origin(hint) is tuple:
            values[name] = (BROKER,)
        elif hint is str:
            values[name] = BROKER
    return kind(**values)


@pytest.mark.parametrize("kind", MEMORIES.values(), ids=lambda kind: str(kind.__name__))
def test_no_name_is_left_in_what_a_strategy_remembers(other: Anonymiser, kind: Any) -> None:
    if kind is PeakHistory:  # its hashes of names tell who has the names
        assert other.journal.strategy(PeakHistory(bundles="acme", keys="acme")) == PeakHistory()
        return
    renamed: Any = other.journal.strategy(_names_in(kind))
    assert not [*with_text(json.loads(json.dumps(dataclasses.asdict(renamed))))]
    numbers = [name for name, hint in get_type_hints(kind).items() if hint in (Mapping[str, int], Mapping[str, float])]
    assert all(sorted(getattr(renamed, name).values()) == [1, 2] for name in numbers)


def test_no_name_and_no_text_is_left_in_an_entry_of_the_journal(other: Anonymiser) -> None:
    flight = InFlight(action="unload", bundle=BUNDLE, source=BROKER, destination=BROKER, interval=T, expires_at_ms=T)
    why = Verdict(subject="acme", reason=Reason.OVERLOADED, unit="acme", by="acme", detail="acme")
    command = Command(
        id="acme", action="unload", cluster="acme", bundle=BUNDLE, interval=T, expires_at_ms=T, mode="active",
        source=BROKER, destination=BROKER, why=why, boundaries=(1,),
    )  # fmt: skip
    waits = ProposedDecision(
        cluster="acme", interval=T, expires_at_ms=T, commands=(command,), brokers="acme",
        usage={BROKER: PredictedBroker(before=0.9, after=0.7)},
    )  # fmt: skip
    issued = Issued(action="unload", namespace="acme/ns", source=BROKER, destination=BROKER, connections=1, interval=T)
    memory = Memory(
        recently_unloaded={BUNDLE: T}, dry_run_unloaded={BUNDLE: T}, rejected={BUNDLE: T},
        destinations={BROKER: Destination(unlisted={BUNDLE: UnlistedBundle(answered=T)})}, proposed=waits,
        pulsar=VersionInUse(version=ASSUMED, source="leader", leader=BROKER),
        in_flight={"acme": flight}, failed={BUNDLE: Failed(times=1, interval=T)},
        issued={"acme": issued}, failures={"acme": T}, breaker=Breaker(why="acme"),
        balancing=OwnBalancing(why="acme", on=1, unknown={BROKER: T}),
        roster=Roster(brokers=(BROKER,), came={BROKER: T}, went={BROKER: T}),
        deaths=BrokerDeaths(
            bundles="acme", hashes="acme", owners="acme", chances="acme", deaths="acme", brokers=(BROKER,),
            alive=(BROKER,), died=(BROKER,), fatal={BUNDLE: FatalBundle(at=T, deaths=3, brokers=(BROKER,))},
        ),
    )  # fmt: skip
    move = OrderedMove(bundle=BUNDLE, source=BROKER, destination=BROKER)
    orders = Orders(
        plan="acme", step=1, wave=1, waves=1, moves=(move,), checked_at=T, expires_at_ms=T, holder="acme", by="acme"
    )
    said = Statement(
        kind=StatementKind.APPROVE, cluster="acme", subject="acme", certificate="acme", person="acme", author="acme",
        at_ms=T, expires_at_ms=T, policy="acme", key="acme", reason="acme",
    )  # fmt: skip
    request = ControlRequest(cluster="acme", action="resume", values=("acme",), at_ms=T)
    grant = Grant(request=request, statements=(SignedStatement(statement=said, signature="acme"),))
    controls = Controls(
        mode="active", reason="acme", by="acme", maintenance="acme", unknown="acme", drained=(BROKER,), orders=orders,
        excluded=(BUNDLE,),
        pauses=(Pause(by="acme", reason="acme", at_ms=T),), not_approved=("acme",), granted=(grant,),
        approved=(DecisionApproval(decision="acme", by=("acme",), at_ms=T),),
        rejected=(DecisionRejection(decision="acme", by="acme", reason="acme", at_ms=T),),
    )  # fmt: skip
    decision = Decision(interval=T, commands=(command,), verdicts=(why,), summary="acme")
    entry = JournalEntry(cluster="acme", decision=decision, memory=memory, controls=controls)
    # Every text that an entry can hold has the name in it, so a new one is noticed.
    assert _without_text(entry) == []
    renamed = json.loads(encode_entry(other.journal.entry(entry)))
    assert not [*with_text(renamed)]
    assert renamed["controls"]["paused"] is False


def _without_text(value: Any, path: str = "") -> list[str]:
    """The fields of *value* that hold a text without SECRET, but for words of trimtab, or that hold nothing."""
    if value in ((), {}):
        return [path]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = [(each.name, getattr(value, each.name)) for each in dataclasses.fields(value)]
        return [found for name, each in fields for found in _without_text(each, f"{path}.{name}")]
    if isinstance(value, Mapping):
        return [found for key, each in value.items() for found in [*_without_text(key), *_without_text(each, path)]]
    if isinstance(value, tuple):
        return [found for each in value for found in _without_text(each, path)]
    texts = (".controls.reason", ".controls.pauses.reason", ".controls.rejected.reason")
    words = ("kind", "action", "mode", "reason", "algorithm", "source", "tag", "label")
    own = path.rpartition(".")[2] in words and path not in texts
    return [path] if isinstance(value, str) and SECRET not in value and not own else []


@pytest.mark.parametrize("key", ["excluded", "only"])
def test_patterns_that_other_names_would_not_match_are_refused(key: str) -> None:
    given = SETTINGS.model_copy(update={"decisions": SETTINGS.decisions.model_copy(update={key: ("acme/prod-*",)})})
    with pytest.raises(TrimtabError, match="'acme/prod-\\*' in \\[decisions\\] is a pattern"):
        anonymised_settings(given, Pseudonyms(b"salt"))
