"""What a command printed is JSON, or no answer."""

from pathlib import Path

import pytest

from controller.web.printed_json import check, join_lines, main


@pytest.mark.parametrize("text", ["", "{", '{"a": [1, 2', '{"a": "b', "[cluster]\nname = 1", '{"a": 1} {"b": 2}'])
def test_what_is_cut_off_or_no_json_is_found(tmp_path: Path, text: str) -> None:
    printed = tmp_path / "answer.json"
    printed.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=r"."):
        check(printed)
    with pytest.raises(SystemExit):
        main(str(printed))


def test_lines_become_a_list_and_one_that_is_cut_off_is_found(tmp_path: Path) -> None:
    printed = tmp_path / "answer.json"
    printed.write_text('{"a": 1}\n{"a": 2}\n', encoding="utf-8")
    join_lines(printed, "decisions")
    assert printed.read_text(encoding="utf-8") == '{"decisions":[{"a": 1},{"a": 2}]}\n'
    check(printed)
    printed.write_text("", encoding="utf-8")
    join_lines(printed, "decisions")
    assert printed.read_text(encoding="utf-8") == '{"decisions":[]}\n'
    printed.write_text('{"a": 1}\n{"a"', encoding="utf-8")
    with pytest.raises(ValueError, match="delimiter"):
        join_lines(printed, "decisions")


def test_json_that_is_nested_without_end_is_no_answer(tmp_path: Path) -> None:
    printed = tmp_path / "answer.json"
    printed.write_bytes(b"[" * 200_000)
    with pytest.raises(SystemExit):
        main(str(printed))
