"""`manage.py evaluate`: errors for invalid options, and a report that compares two pools."""

from pathlib import Path

import pytest

from caret.foundation.environment import BadSetting
from caret.local.engines.engine import DEMO_MODEL
from caret.local.engines.pools_file import render_pools, write_pools
from inference.evaluation.cli import main, make_report
from tests.fakes.evaluation import TASK, make_result


@pytest.fixture(autouse=True)
def pools_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "pools.toml"
    text = render_pools(
        model="demo",
        tokenizer=str(DEMO_MODEL),
        max_context_tokens=4096,
        replicas=["http://127.0.0.1:9"],
    )
    write_pools(file, text)
    monkeypatch.setenv("CARET_POOLS_FILE", str(file))


# For each mistake: the options, and a part of the error message.
BAD_OPTIONS = {
    "an unknown pool": (["--pool", "none"], "there is no pool 'none'"),
    "an unknown layout": (["--pool", "demo-fast:none"], "Unknown layout none"),
    "three pools": (["--pool", "demo-fast"] * 3, "one pool, or two"),
    "no repository": (["--pool", "demo-fast"], "--repository"),
    "no such repository": (["--pool", "demo-fast", "--repository", "/none"], "--repository"),
    "no tasks": (["--pool", "demo-fast", "--tasks", "0"], "--tasks"),
    "no such suite": (["--pool", "demo-fast", "--suite", "/none.jsonl"], "cannot be read"),
}


@pytest.mark.parametrize("mistake", BAD_OPTIONS)
def test_the_error_for_a_bad_option_names_the_mistake(mistake: str) -> None:
    arguments, reason = BAD_OPTIONS[mistake]

    with pytest.raises(BadSetting, match=reason):
        main(arguments)


def test_a_repository_without_source_files_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(BadSetting, match="no source files"):
        main(["--pool", "demo-fast", "--repository", str(tmp_path)])


def test_a_report_of_two_pools_contains_their_difference() -> None:
    right, wrong = make_result(TASK.answer), make_result("height")

    single = make_report(["a"], [[right]], suite="infilling", models=["qwen"])
    comparison = make_report(
        ["a", "b"], [[wrong, right], [right] * 2], suite="infilling", models=["qwen", "llama"]
    )

    assert "difference" not in single
    assert [(pool_report["pool"], pool_report["model"]) for pool_report in comparison["pools"]] == [
        ("a", "qwen"),
        ("b", "llama"),
    ]
    # Half of the answers of the first pool are right, and all answers of the second.
    assert comparison["difference"]["exact_match"]["value"] == 0.5


def test_a_report_names_the_file_of_the_suite_without_its_folder() -> None:
    report = make_report(
        ["a"], [[make_result(TASK.answer)]], suite="/home/ann/exam.jsonl", models=["qwen"]
    )

    assert report["suite"] == "exam.jsonl"
