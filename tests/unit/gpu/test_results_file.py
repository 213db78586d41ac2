"""The results file of the measurements on a GPU.

Each call of `python -m tests.gpu` adds the steps that it runs.
"""

from pathlib import Path

import pytest

from tests.gpu.requirements import Refusal
from tests.gpu.results_file import ResultsFile, read_results

ABOUT = {"shape": "tiny", "vllm": "1.0"}
LINES = [{"figure": "first_token", "value": 1.5}]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "gpu" / "tiny.json"


def test_each_step_is_saved_immediately(path: Path) -> None:
    read_results(path, ABOUT).add_step("fast.typing", LINES, has_missed_target=False)

    results = read_results(path, ABOUT)
    assert results.steps == {"fast.typing": LINES}
    assert results.missed == []


def test_the_duration_of_an_engines_start_is_saved_in_tenths_of_a_second(path: Path) -> None:
    read_results(path, ABOUT).add_start("fast", 12.34)

    assert read_results(path, ABOUT).start_s == {"fast": 12.3}


def test_a_failed_step_that_succeeds_later_is_no_longer_a_failure(path: Path) -> None:
    results = read_results(path, ABOUT)
    results.add_failure("fast.typing", "The engine ended.")

    results.add_step("fast.typing", LINES, has_missed_target=False)

    assert read_results(path, ABOUT).failures == {}


def test_a_failed_step_is_saved_as_a_failure_and_not_as_done(path: Path) -> None:
    read_results(path, ABOUT).add_failure("fast.typing", "The engine ended.")

    results = read_results(path, ABOUT)
    assert results.failures == {"fast.typing": "The engine ended."}
    assert results.steps == {}


def test_a_repeated_step_that_meets_its_target_is_no_longer_a_miss(path: Path) -> None:
    results = read_results(path, ABOUT)
    results.add_step("fast.typing", LINES, has_missed_target=True)
    assert read_results(path, ABOUT).missed == ["fast.typing"]

    results.add_step("fast.typing", LINES, has_missed_target=False)

    assert read_results(path, ABOUT).missed == []


@pytest.mark.parametrize("num_chars", [0, 1, 30, -2])  # -2: without the last two characters
def test_a_truncated_file_is_rejected_and_left_unchanged(path: Path, num_chars: int) -> None:
    ResultsFile(path, ABOUT, {"fast.typing": LINES}).save()
    text = path.read_text()[:num_chars]
    path.write_text(text)

    with pytest.raises(Refusal, match="is truncated or not a results file"):
        read_results(path, ABOUT)
    assert path.read_text() == text


@pytest.mark.parametrize("text", ["[]", "3", '{"about": {"shape": "tiny"}, "more": 1}', "{}"])
def test_another_json_file_is_rejected(path: Path, text: str) -> None:
    path.parent.mkdir()
    path.write_text(text)

    with pytest.raises(Refusal, match="is truncated or not a results file"):
        read_results(path, ABOUT)


def test_a_file_with_figures_of_another_version_of_vllm_is_rejected(path: Path) -> None:
    ResultsFile(path, ABOUT).save()

    with pytest.raises(Refusal, match=r"has figures of shape tiny, vllm 1\.0, not of shape tiny"):
        read_results(path, ABOUT | {"vllm": "2.0"})
