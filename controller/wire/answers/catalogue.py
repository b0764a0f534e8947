"""All answers, by the name of their schema in docs/schemas.  ``trimtab commands tail --json`` prints trimtab.*.json."""

from typing import Final

from controller.wire.answers.audit import AuditAnswer
from controller.wire.answers.base import JsonAnswer
from controller.wire.answers.bench import (
    ArrivalAnswer,
    BalanceAnswer,
    FrontierAnswer,
    OverloadAnswer,
    PipelineAnswer,
    RecordingAnswer,
    SlopeAnswer,
    TimingAnswer,
)
from controller.wire.answers.doctor import DoctorAnswer
from controller.wire.answers.explain import ExplainAnswer, JournalAnswer
from controller.wire.answers.offline import (
    CheckAnswer,
    DecideAnswer,
    OptionAnswer,
    RebalanceAnswer,
    RebalanceExampleAnswer,
    TicksAnswer,
)
from controller.wire.answers.plan import ApplyAnswer, PlanAnswer, RightsizingAnswer
from controller.wire.answers.recordings import RecordAnswer, ReplayedAnswer
from controller.wire.answers.simulate import CompareAnswer, ListedScenarioAnswer, SimulateAnswer
from controller.wire.answers.status import BundleAnswer, CollectAnswer, ControlsAnswer, LookupAnswer, StatusAnswer
from controller.wire.answers.what_if import IncidentAnswer, WhatIfAnswer

#: Name of the schema -> model.
MODELS: Final[dict[str, type[JsonAnswer]]] = {
    "answer.apply": ApplyAnswer,
    "answer.audit": AuditAnswer,
    "answer.bench_decisions": TimingAnswer,
    "answer.bench_frontier": FrontierAnswer,
    "answer.bench_overloaded": OverloadAnswer,
    "answer.bench_arrival": ArrivalAnswer,
    "answer.bench_balance": BalanceAnswer,
    "answer.bench_pipeline": PipelineAnswer,
    "answer.bench_recording": RecordingAnswer,
    "answer.bench_slope": SlopeAnswer,
    "answer.collect": CollectAnswer,
    "answer.compare": CompareAnswer,
    "answer.controls": ControlsAnswer,
    "answer.decide": DecideAnswer,
    "answer.doctor": DoctorAnswer,
    "answer.explain": ExplainAnswer,
    "answer.incident": IncidentAnswer,
    "answer.journal": JournalAnswer,
    "answer.lookup": LookupAnswer,
    "answer.option": OptionAnswer,
    "answer.plan": PlanAnswer,
    "answer.rebalance": RebalanceAnswer,
    "answer.rebalance_example": RebalanceExampleAnswer,
    "answer.record": RecordAnswer,
    "answer.replay": ReplayedAnswer,
    "answer.rightsizing": RightsizingAnswer,
    "answer.simulate": SimulateAnswer,
    "answer.simulate_list": ListedScenarioAnswer,
    "answer.status": StatusAnswer,
    "answer.status_bundle": BundleAnswer,
    "answer.strategies_check": CheckAnswer,
    "answer.ticks": TicksAnswer,
    "answer.what_if": WhatIfAnswer,
}
