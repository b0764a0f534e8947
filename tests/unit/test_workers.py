"""Tests in several workers: each runs once and is reported, whatever becomes of its worker."""

import pytest

from tests.workers import Workers

pytest_plugins = ("pytester",)

#: A file each; those of a file run in one worker, in their order.
FILES = {
    "test_passes": """
        import os, pathlib, pytest
        @pytest.fixture(scope="session")
        def used():
            yield os.getpid()
            pathlib.Path("ended").open("a").write(f"{os.getpid()}\\n")
        def test_one(used): pathlib.Path("one").write_text(str(used))
        def test_two(used): assert pathlib.Path("one").read_text() == str(used)
        def test_folder(tmp_path): assert "worker-" in str(tmp_path)
    """,
    "test_fails": """
        import warnings
        def test_fails(capsys):
            print("what it has printed")
            one = 1
            assert one == 2
        def test_warns(): warnings.warn("look out", stacklevel=1)
    """,
    "test_ends": """
        import os, pathlib
        def test_before(): pass
        def test_ends(): os._exit(3)
        def test_after(): pathlib.Path("after").touch()
    """,
}


def run(pytester: pytest.Pytester, files: dict[str, str], *options: str, workers: int = 2) -> pytest.RunResult:
    pytester.makepyfile(**files)
    plugins = [Workers(workers)]
    return pytester.runpytest_inprocess(*options, "-p", "no:xdist", "-p", "no:cacheprovider", plugins=plugins)


def test_every_test_runs_once_and_is_reported_also_where_its_worker_ends(pytester: pytest.Pytester) -> None:
    result = run(pytester, FILES)
    result.assert_outcomes(passed=6, failed=2, warnings=1)
    result.stdout.fnmatch_lines(["*assert 1 == 2*"])
    result.stdout.fnmatch_lines(["*what it has printed*"])
    result.stdout.fnmatch_lines(["*the process that ran this test ended, with exit code 3*"])
    result.stdout.fnmatch_lines(["*UserWarning: look out*"])
    result.stdout.fnmatch_lines_random(["FAILED test_ends.py::test_ends*", "FAILED test_fails.py::test_fails*"])
    assert (pytester.path / "after").exists()
    assert (pytester.path / "ended").read_text().split() == [(pytester.path / "one").read_text()]


def test_a_worker_in_the_place_of_one_that_ended_tells_no_warning_again(pytester: pytest.Pytester) -> None:
    warns = "import warnings\ndef test_warns(): warnings.warn('look out', stacklevel=1)"
    ends = "import os\ndef test_ends(): os._exit(3)"
    files = {"test_a_warns": warns, "test_b_ends": ends, "test_c_passes": "def test_passes(): pass"}
    run(pytester, files, workers=1).assert_outcomes(passed=2, failed=1, warnings=1)


def test_after_the_first_failure_workers_end_what_they_have_begun_and_begin_nothing(pytester: pytest.Pytester) -> None:
    waits = """
        import pathlib, pytest, time
        @pytest.fixture
        def server():
            yield
            pathlib.Path("ended").touch()
        def test_waits(server):
            pathlib.Path("begun").touch()
            time.sleep(60)
        def test_next(): pathlib.Path("next").touch()
    """
    fails = """
        import pathlib, time
        def test_fails():
            while not pathlib.Path("begun").exists(): time.sleep(0.01)
            assert False
    """
    result = run(pytester, {"test_waits": waits, "test_fails": fails}, "-x")
    result.assert_outcomes(failed=1)
    assert {path.name for path in pytester.path.iterdir()} & {"ended", "next"} == {"ended"}


def test_what_keeps_pytest_from_running_tests_keeps_workers_from_it(pytester: pytest.Pytester) -> None:
    result = run(pytester, {"test_broken": "import no_such_module", "test_fine": "def test_fine(): pass"})
    result.assert_outcomes(errors=1)


def test_what_ends_a_worker_between_two_tests_ends_the_run(pytester: pytest.Pytester) -> None:
    result = run(pytester, {"test_exits": "import pytest\ndef test_exits(): pytest.exit('enough')"})
    assert result.ret != 0
    result.stdout.fnmatch_lines(["*enough*"])
