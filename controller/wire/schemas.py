"""JSON Schema files of everything on the wire, and of what the commands print with --json, for other programs.

``python -m controller.wire.schemas`` writes docs/schemas and docs/asyncapi.json; a test says when that was forgotten.
"""

import json
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode, JsonSchemaValue
from pydantic_core.core_schema import ModelSchema

from controller.wire import asyncapi, cells, commands, journal_records, metrics, results, summary
from controller.wire.answers import catalogue as answers
from controller.wire.attribute_docstrings import attribute_docstrings
from controller.wire.dead_letter import DeadLetter
from controller.wire.plan import PlanFile

FOLDER: Final = Path(__file__).parents[2] / "docs" / "schemas"
ASYNCAPI: Final = FOLDER.parent / "asyncapi.json"

#: File name without suffix -> model.
MODELS: Final[dict[str, type[BaseModel]]] = {
    **metrics.MODELS,
    "result": results.Result,
    **commands.MODELS,
    **{f"journal.{name}": model for name, model in journal_records.RECORDS.items()},
    "dead_letter": DeadLetter,
    **summary.MODELS,
    **{f"election.{name}": model for name, model in cells.MODELS.items()},
    "plan": PlanFile,
    **answers.MODELS,
}

#: Constants that a record must have, though our models fill them in when they write.
_MUST: Final = ("v", "type", "specversion")


class AnswerSchema(GenerateJsonSchema):
    """Schemas with the docstrings of fields as descriptions, and without titles."""

    def generate(self, schema: Any, mode: JsonSchemaMode = "validation") -> JsonSchemaValue:
        """See GenerateJsonSchema."""
        made = super().generate(schema, mode)
        fields = made["properties"]
        made["required"] = sorted({*made.get("required", ()), *(name for name in _MUST if name in fields)})
        return {"$schema": self.schema_dialect, **made}

    def model_schema(self, schema: ModelSchema) -> JsonSchemaValue:
        """See GenerateJsonSchema."""
        model = schema["cls"]
        made = super().model_schema(schema)
        for name, meaning in attribute_docstrings(model).items():
            field = model.model_fields.get(name)
            key = name if field is None or field.alias is None else field.alias
            if key in made.get("properties", {}):
                made["properties"][key]["description"] = meaning
        return made

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002
        """See GenerateJsonSchema."""
        return False


def schema_files() -> dict[str, str]:
    """File name -> content, for every model."""
    return {
        f"{name}.json": json.dumps(model.model_json_schema(schema_generator=AnswerSchema), indent=2) + "\n"
        for name, model in MODELS.items()
    }


def asyncapi_text() -> str:
    """The content of docs/asyncapi.json."""
    return json.dumps(asyncapi.document(), indent=2) + "\n"


def main() -> None:
    """Write the files."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, content in schema_files().items():
        (FOLDER / name).write_text(content, encoding="utf-8")
    ASYNCAPI.write_text(asyncapi_text(), encoding="utf-8")


if __name__ == "__main__":
    main()
