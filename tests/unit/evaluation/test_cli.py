"""`caret evaluate`: errors for invalid options, and a report that compares two pools."""

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


# Options, and a part of the message that rejects them.
BAD = {
    "an unknown pool": (["--pool", "none"], "there is no pool 'none'"),
    "an unknown layout": (["--pool", "demo-fast:none"], "none"),
    "three pools": (["--pool", "demo-fast"] * 3, "one pool, or two"),
    "no repository": (["--pool", "demo-fast"], "--repository"),
    "no such repository": (["--pool", "demo-fast", "--repository", "/none"], "--repository"),
    "no tasks": (["--pool", "demo-fast", "--tasks", "0"], "--tasks"),
    "no such suite": (["--pool", "demo-fast", "--suite", "/none.jsonl"], "cannot be read"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_option_is_named(name: str) -> None:
    arguments, reason = BAD[name]

    with pytest.raises(BadSetting, match=reason):
        main(arguments)


def test_a_repository_without_source_files_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadSetting, match="no source files"):
        main(["--pool", "demo-fast", "--repository", str(tmp_path)])


def test_a_report_of_two_pools_contains_their_difference() -> None:
    right, wrong = make_result(TASK.answer), make_result("height")

    one = make_report(["a"], [[right]], suite="infilling", models=["qwen"])
    two = make_report(
        ["a", "b"], [[wrong, right], [right] * 2], suite="infilling", models=["qwen", "llama"]
    )

    assert "difference" not in one
    assert [(pool_report["pool"], pool_report["model"]) for pool_report in two["pools"]] == [
        ("a", "qwen"),
        ("b", "llama"),
    ]
    assert two["difference"]["exact_match"]["value"] == 0.5


def test_a_report_names_the_file_of_the_suite_without_its_folder() -> None:
    report = make_report(
        ["a"], [[make_result(TASK.answer)]], suite="/home/ann/exam.jsonl", models=["qwen"]
    )

    assert report["suite"] == "exam.jsonl"
