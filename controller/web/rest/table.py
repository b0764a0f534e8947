"""The table of endpoints.  To add one: a function in reading.py or working.py, and a line here."""

from functools import partial
from typing import Final

from controller.settings.web import ViewerRole
from controller.web import orders
from controller.web.control_actions import ACTIONS, NEEDED, ReasonBody
from controller.web.jobs import Around
from controller.web.proposal_actions import ACTIONS as PROPOSAL_ACTIONS
from controller.web.proposal_actions import PlanRequestBody
from controller.web.rest import controlling, proposing, reading, working
from controller.web.rest.answers import (
    BrokerPastAnswer,
    BrokersAnswer,
    BundlePastAnswer,
    ClustersAnswer,
    ControlsWrittenAnswer,
    DecisionAnswer,
    DecisionsAnswer,
    HistoryAnswer,
    JobAnswer,
    JobsAnswer,
    JournalPageAnswer,
    NamespacePastAnswer,
    PlanInForceAnswer,
    ProposalsAnswer,
    ProposalWrittenAnswer,
)
from controller.web.rest.endpoint import Endpoint
from controller.wire.answers.audit import AuditAnswer
from controller.wire.answers.doctor import DoctorAnswer
from controller.wire.answers.explain import ExplainAnswer
from controller.wire.answers.proposals import ProposalDetailAnswer
from controller.wire.answers.status import BundleAnswer, GuardrailsAnswer, StatusAnswer, TopicAnswer

_OPERATOR: Final = ViewerRole.OPERATOR

ENDPOINTS: Final = (
    Endpoint(
        "GET",
        "/clusters",
        "The clusters, how far back each is known, and who you are",
        reading.clusters,
        ClustersAnswer,
    ),
    Endpoint("GET", "/status", "What `trimtab status` says", reading.status, StatusAnswer),
    Endpoint(
        "GET",
        "/status/{name:path}",
        "What `trimtab status BUNDLE` says",
        working.bundle_status,
        BundleAnswer,
        statuses=(202,),
    ),
    Endpoint(
        "GET",
        "/topics/{name:path}",
        "What `trimtab status TOPIC` says: which brokers serve the segments of a scalable topic",
        working.topic_status,
        TopicAnswer,
        statuses=(202,),
    ),
    Endpoint("GET", "/brokers", "All brokers, the fullest first", reading.brokers, BrokersAnswer, reading.Paged),
    Endpoint("GET", "/brokers/{name:path}", "A broker's past", reading.broker, BrokerPastAnswer, reading.SpanQuery),
    Endpoint("GET", "/bundles/{name:path}", "A bundle's past", reading.bundle, BundlePastAnswer, reading.BundleQuery),
    Endpoint(
        "GET",
        "/namespaces/{name:path}",
        "A namespace's past",
        reading.namespace,
        NamespacePastAnswer,
        reading.SpanQuery,
    ),
    Endpoint(
        "GET", "/decisions", "Decisions, the newest first", reading.decisions, DecisionsAnswer, reading.DecisionsQuery
    ),
    Endpoint("GET", "/decisions/{interval:int}", "A decision, whole", reading.decision, DecisionAnswer),
    Endpoint(
        "GET",
        "/decisions/{interval:int}/explain",
        "What `trimtab explain` says of the decision, or of a bundle or broker in it",
        working.explain,
        ExplainAnswer,
        working.ExplainQuery,
        statuses=(202,),
    ),
    Endpoint(
        "GET",
        "/journal",
        "What `trimtab journal` says",
        working.journal,
        JournalPageAnswer,
        working.JournalQuery,
        statuses=(202,),
    ),
    Endpoint("GET", "/plans", "The plan that is being applied, and those before it", reading.plans, PlanInForceAnswer),
    Endpoint(
        "POST",
        "/plans",
        "Begin what `trimtab show-plan` does, on the plan's file that is the body; the result is its answer",
        working.plan_file,
        JobAnswer,
        upload=lambda upload: (orders.of_plan_file(upload.cluster), Around()),
        needs=_OPERATOR,
        success=202,
    ),
    Endpoint(
        "GET",
        "/proposals",
        "What waits for approval, or is carried out",
        proposing.proposals,
        ProposalsAnswer,
        proposing.ProposalsQuery,
    ),
    Endpoint(
        "POST",
        "/proposals",
        "Check the plan's file that is the body, and propose it; the result names the proposal",
        proposing.uploaded,
        JobAnswer,
        proposing.ProposeQuery,
        upload=proposing.upload,
        needs=_OPERATOR,
        writes=True,
        success=202,
    ),
    Endpoint(
        "POST",
        "/proposals/plan",
        "Make a plan as `trimtab plan` does, and propose it; the result names the proposal",
        proposing.planned,
        JobAnswer,
        body=PlanRequestBody,
        needs=_OPERATOR,
        writes=True,
        success=202,
    ),
    Endpoint(
        "GET",
        "/proposals/{id}",
        "What `trimtab proposals show` says",
        proposing.proposal,
        ProposalDetailAnswer,
        statuses=(202,),
    ),
    *(
        Endpoint(
            "POST",
            f"/proposals/{{id}}/{action.name}",
            action.summary,
            partial(proposing.changed, action=action),
            ProposalWrittenAnswer,
            body=ReasonBody,
            needs=_OPERATOR,
            writes=True,
            success=202 if action.name in ("apply", "refresh") else 200,
        )
        for action in PROPOSAL_ACTIONS.values()
    ),
    Endpoint(
        "GET", "/controls", "Mode, pauses, budgets and breaker that are in force", reading.controls, GuardrailsAnswer
    ),
    *(
        Endpoint(
            "POST",
            f"/controls/{action.name}",
            action.summary,
            partial(controlling.changed, action=action),
            ControlsWrittenAnswer,
            body=action.body,
            needs=NEEDED,
            writes=True,
            versioned=True,
            statuses=(202,) if action.allows_more else (),
        )
        for action in ACTIONS.values()
    ),
    Endpoint("GET", "/doctor", "What `trimtab doctor` finds", working.doctor, DoctorAnswer, statuses=(202,)),
    Endpoint(
        "GET",
        "/audit",
        "What `trimtab audit` says of moves",
        working.audit,
        AuditAnswer,
        working.AuditQuery,
        statuses=(202,),
    ),
    Endpoint("GET", "/history", "What people did with the controls", reading.history, HistoryAnswer, reading.Paged),
    Endpoint(
        "POST",
        "/whatif",
        "Begin what `trimtab what-if` does, on a span of the log",
        working.what_if,
        JobAnswer,
        body=working.WhatIfBody,
        needs=_OPERATOR,
        success=202,
    ),
    Endpoint(
        "POST",
        "/incidents",
        "Begin what `trimtab incident make` does; the result is a file",
        working.incident,
        JobAnswer,
        body=working.IncidentBody,
        needs=_OPERATOR,
        success=202,
    ),
    Endpoint("GET", "/jobs", "Long work, the newest first", working.jobs, JobsAnswer),
    Endpoint("GET", "/jobs/{id}", "How far a job is", working.job, JobAnswer),
    Endpoint("DELETE", "/jobs/{id}", "End a job, of your own, or as an operator", working.cancel, None, success=204),
    Endpoint("GET", "/jobs/{id}/result", "What a job has worked out", working.result, None),
)
