"""REST as OpenAPI 3.1, made of the table of endpoints and the models of queries, bodies and answers.

``python -m controller.web.rest.openapi`` writes docs/openapi.json; a test says when that was forgotten.
"""

import json
import re
from collections.abc import Mapping
from functools import cache
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from controller.web.refusals import PROBLEM_TYPE, RefusalAnswer
from controller.web.rest.endpoint import BASE, Endpoint, Query
from controller.web.rest.table import ENDPOINTS
from controller.wire.schemas import AnswerSchema

FILE: Final = Path(__file__).parents[3] / "docs" / "openapi.json"

_REF: Final = "#/components/schemas/{model}"
#: The parts of a path that are filled in, and what Starlette converts them to.
_PART: Final = re.compile(r"\{(\w+)(?::(\w+))?\}")
_OF_ALL: Final = (400, 401, 403, 404, 405, 413, 414, 421, 429, 431, 503)
#: Of what changes something.
_IF_MATCH: Final = {
    "name": "If-Match",
    "in": "header",
    "required": True,
    "description": "The ETag of what you have seen, as GET answered it; * for whatever is there",
    "schema": {"type": "string", "minLength": 1, "maxLength": 1000},
}
_KEY: Final = {
    "name": "Idempotency-Key",
    "in": "header",
    "description": "Yours, for this request: sent again within a day, the request is answered as before, and not"
    " carried out again",
    "schema": {"type": "string", "pattern": "^[!-~]{1,200}$"},
}
_EVENTS: Final = {
    "get": {
        "summary": "Server-sent events: one for each change of what is known",
        "operationId": "events",
        "parameters": [
            {"name": "cluster", "in": "query", "schema": {"type": "string", "minLength": 1, "maxLength": 200}}
        ],
        "responses": {
            "200": {
                "description": "event: interval; data: {version, interval, mode, summary}",
                "content": {"text/event-stream": {"schema": {"type": "string"}}},
            }
        },
    }
}


@cache
def document() -> dict[str, Any]:
    """The whole of it."""
    models = _models()
    keys, definitions = models_json_schema(
        [(model, "validation") for model in models], ref_template=_REF, schema_generator=AnswerSchema
    )
    schemas = definitions.get("$defs", {})
    refs = {model: keys[model, "validation"] for model in models}
    paths: dict[str, dict[str, Any]] = {}
    for each in ENDPOINTS:
        path = BASE + _PART.sub(r"{\1}", each.path)
        paths.setdefault(path, {})[each.method.lower()] = _operation(each, refs)
    events = json.loads(json.dumps(_EVENTS))
    events["get"]["responses"] |= {str(status): _problem(status, refs) for status in _OF_ALL}
    paths[f"{BASE}/events"] = events
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "trimtab",
            "version": "1",
            "description": "What trimtab sees, decides and why, and what people may change.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "security": [{"bearer": []}, {"session": []}, {}],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "session": {"type": "apiKey", "in": "cookie", "name": "__Host-trimtab"},
            },
        },
    }


def document_text() -> str:
    """The content of docs/openapi.json."""
    return json.dumps(document(), indent=2) + "\n"


def _models() -> list[type[BaseModel]]:
    models: dict[type[BaseModel], None] = {RefusalAnswer: None}
    for each in ENDPOINTS:
        models |= {model: None for model in (each.answer, each.body, each.query) if model is not None}
    return list(models)


def _operation(endpoint: Endpoint, refs: Mapping[type[BaseModel], Any]) -> dict[str, Any]:
    words = re.sub(r"\W+", "_", _PART.sub(r"\1", endpoint.path)).strip("_")
    made: dict[str, Any] = {
        "summary": endpoint.summary,
        "description": f"Needs the role {endpoint.needs}{', a name, and writes in [web]' if endpoint.writes else ''}.",
        "operationId": f"{endpoint.method.lower()}_{words}",
        "parameters": [
            *_path_parameters(endpoint.path),
            *_query_parameters(endpoint.query),
            *((_IF_MATCH,) if endpoint.versioned else ()),
            *((_KEY,) if endpoint.writes else ()),
        ],
        "responses": _responses(endpoint, refs),
    }
    if endpoint.body is not None or endpoint.upload is not None:
        # What a file may hold is for the job to say: docs/schemas has it.
        schema = {"type": "object"} if endpoint.body is None else refs[endpoint.body]
        made["requestBody"] = {"required": True, "content": {"application/json": {"schema": schema}}}
    return made


def _path_parameters(path: str) -> list[dict[str, Any]]:
    kinds = {"int": {"type": "integer", "minimum": 0}, "path": {"type": "string", "minLength": 1}}
    return [
        {"name": name, "in": "path", "required": True, "schema": kinds.get(kind, kinds["path"])}
        for name, kind in _PART.findall(path)
    ]


def _query_parameters(query: type[Query]) -> list[dict[str, Any]]:
    schema = query.model_json_schema(schema_generator=AnswerSchema)
    definitions = schema.get("$defs", {})
    made = []
    for name, property_schema in schema["properties"].items():
        kinds = [kind for kind in property_schema.get("anyOf", [property_schema]) if kind.get("type") != "null"]
        kind = {key: value for key, value in kinds[0].items() if key not in ("default", "description")}
        reference = kind.pop("$ref", "").rpartition("/")[2]
        described = {"description": property_schema["description"]} if "description" in property_schema else {}
        made.append({"name": name, "in": "query", "schema": definitions[reference] if reference else kind, **described})
    return made


def _responses(endpoint: Endpoint, refs: Mapping[type[BaseModel], Any]) -> dict[str, Any]:
    content: dict[str, Any] = {"application/json": {"schema": refs[endpoint.answer] if endpoint.answer else {}}}
    if endpoint.answer is None:
        content["application/octet-stream"] = {"schema": {}}
    headers = {"ETag": {"schema": {"type": "string"}}} if endpoint.method == "GET" or endpoint.versioned else {}
    success: dict[str, Any] = {"description": HTTPStatus(endpoint.success).phrase, "headers": headers}
    if endpoint.success != HTTPStatus.NO_CONTENT:
        success["content"] = content
    made = {str(endpoint.success): success}
    if 202 in (endpoint.success, *endpoint.statuses):
        job = next(model for model in refs if model.__name__ == "JobAnswer")
        if endpoint.writes and endpoint.answer is not None:
            job = endpoint.answer
        made["202"] = {
            "description": "It is being worked out: Location names the job",
            "headers": {"Location": {"schema": {"type": "string"}}, "Retry-After": {"schema": {"type": "string"}}},
            "content": {"application/json": {"schema": refs[job]}},
        }
    if endpoint.method == "GET":
        made["304"] = {"description": "Nothing has changed since the ETag that If-None-Match names"}
    statuses = [*_OF_ALL, *([415] if endpoint.method == "POST" else [])]
    statuses += [409] if endpoint.upload is not None or endpoint.writes else []
    statuses += [422] if endpoint.writes else []
    statuses += [412, 428] if endpoint.versioned else []
    return made | {str(status): _problem(status, refs) for status in statuses}


def _problem(status: int, refs: Mapping[type[BaseModel], Any]) -> dict[str, Any]:
    return {"description": HTTPStatus(status).phrase, "content": {PROBLEM_TYPE: {"schema": refs[RefusalAnswer]}}}


def main() -> None:
    """Write the file."""
    FILE.write_text(document_text(), encoding="utf-8")


if __name__ == "__main__":
    main()
