"""docs/schemas says what the models say."""

from controller.wire.schemas import FOLDER, schema_files


def test_schemas_are_current() -> None:
    committed = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.json")}
    assert committed == schema_files(), "run: python -m controller.wire.schemas"
