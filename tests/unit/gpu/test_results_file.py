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
    read_results(path, ABOUT).add_step("fast.typing", LINES, has_missed=False)

    results = read_results(path, ABOUT)
    assert results.steps == {"fast.typing": LINES}
    assert results.missed == []


def test_the_time_of_an_engines_start_is_saved(path: Path) -> None:
    read_results(path, ABOUT).add_start("fast", 12.34)

    assert read_results(path, ABOUT).start_s == {"fast": 12.3}


def test_a_step_that_succeeds_later_is_no_failure(path: Path) -> None:
    results = read_results(path, ABOUT)
    results.add_failure("fast.typing", "The engine ended.")

    results.add_step("fast.typing", LINES, has_missed=False)

    assert read_results(path, ABOUT).failures == {}


def test_a_failed_step_is_not_done(path: Path) -> None:
    read_results(path, ABOUT).add_failure("fast.typing", "The engine ended.")

    results = read_results(path, ABOUT)
    assert results.failures == {"fast.typing": "The engine ended."}
    assert results.steps == {}


def test_a_repeated_step_can_meet_the_target_that_it_missed(path: Path) -> None:
    results = read_results(path, ABOUT)
    results.add_step("fast.typing", LINES, has_missed=True)
    assert read_results(path, ABOUT).missed == ["fast.typing"]

    results.add_step("fast.typing", LINES, has_missed=False)

    assert read_results(path, ABOUT).missed == []


@pytest.mark.parametrize("num_chars", [0, 1, 30, -2])
def test_a_truncated_file_is_rejected_and_kept(path: Path, num_chars: int) -> None:
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


def test_figures_of_two_versions_of_vllm_do_not_mix(path: Path) -> None:
    ResultsFile(path, ABOUT).save()

    with pytest.raises(Refusal, match=r"has figures of shape tiny, vllm 1\.0, not of shape tiny"):
        read_results(path, ABOUT | {"vllm": "2.0"})
