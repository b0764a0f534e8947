"""REST against its own OpenAPI document, by requests that schemathesis makes up: no 500, no undocumented answer."""

from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import Case, GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from controller.web.app import create_app
from controller.web.jobs import Around, Job, JobOrder, Jobs
from controller.web.limits import EVENTS
from controller.web.rest.openapi import document
from tests.web_people import WRITES, token_of, tokens_file
from tests.web_sites import site

pytestmark = pytest.mark.extended

_CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]


class _NoJobs(Jobs):
    """Takes any number of orders, and begins none; nobody waits for them."""

    def submit(self, order: JobOrder, by: str, around: Around | None = None) -> Job:
        job = Job(id="job", order=order, by=by, created_ms=0, folder=Path("/nowhere"))
        job.ended.set()
        self._jobs = type(self._jobs)(job=job)
        return job

    def start(self, job: Job, sha256: str, size: int) -> Job:
        self.withdraw(job)
        return job


@pytest.fixture(scope="module")
def schema(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("rest")
    shown = site(folder, "east", web=(*WRITES, 'hosts = ["testserver"]', tokens_file(folder)))
    shown.jobs = _NoJobs(1, 1)
    return schemathesis.openapi.from_asgi("/api/v1/openapi.json", create_app(shown))


@pytest.mark.parametrize("kind", list(GenerationMode))
@pytest.mark.parametrize("path", [path for path in document()["paths"] if path != EVENTS])  # a stream has no end
def test_every_answer_is_in_the_document(schema: Any, path: str, kind: GenerationMode) -> None:
    for operation in schema[path].values():
        try:
            cases = operation.as_strategy(generation_mode=kind)
        except Unsatisfiable:
            continue

        @given(case=cases)
        @settings(
            max_examples=50,
            deadline=None,
            derandomize=True,
            database=None,
            phases=[Phase.explicit, Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        def answers(case: "Case[Any]") -> None:
            # An approver may do everything, so that what is refused is refused for what it says.
            case.call_and_validate(checks=_CHECKS, headers={"Authorization": f"Bearer {token_of('anna')}"})

        answers()
