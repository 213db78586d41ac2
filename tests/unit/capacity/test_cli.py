"""`caret capacity`: its table, JSON and plot, and the errors for invalid options."""

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from caret.capacity.cli import main
from caret.capacity.inputs import InvalidInput
from caret.cli import run

LOAD = ("--requests-per-s", "2000", "--hit-rate", "0.98")
SVG = "{http://www.w3.org/2000/svg}"


def test_the_table_fits_into_80_columns(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")

    assert main([*LOAD]) == 0

    lines = capsys.readouterr().out.splitlines()
    assert max(len(line) for line in lines) <= 80
    assert "  GPUs at a utilisation of 33%          84      250" in "\n".join(lines)
    assert not any("…" in line for line in lines), "no text may be cut"


def test_the_summary_says_that_every_hit_rate_meets_the_target(
    capsys: pytest.CaptureFixture[str],
) -> None:
    main(["--requests-per-s", "0.01", "--target-ms", "1000"])

    text = capsys.readouterr().out
    assert "With 1 GPU, the p99 is within 1000 ms at every hit rate." in text
    assert "1 GPU costs $3.00 an hour" in text


def test_json_contains_the_figures_of_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    main([*LOAD, "--json"])

    plan = json.loads(capsys.readouterr().out)
    assert plan["sustained"]["gpus"] == plan["num_gpus"] == 84
    assert plan["figures"]["hit_rate"] == 0.98


def test_an_option_overrides_the_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "figures.json"
    file.write_text('{"requests_per_s": 10, "hit_rate": 0.5, "num_gpus": 9}')

    main(["--figures", str(file), "--hit-rate", "0.9", "--json"])

    figures = json.loads(capsys.readouterr().out)["figures"]
    assert (figures["requests_per_s"], figures["hit_rate"], figures["num_gpus"]) == (10, 0.9, 9)


def test_the_load_may_be_given_as_tokens_per_day(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--tokens-per-day", "864000", "--output-tokens", "10", "--json"])

    # 864,000 tokens in 86,400 seconds are 10 tokens a second.
    assert json.loads(capsys.readouterr().out)["figures"]["requests_per_s"] == 1


def test_the_plot_has_axes_units_and_dark_colours(tmp_path: Path) -> None:
    file = tmp_path / "plot.svg"

    main([*LOAD, "--svg", str(file)])

    root = ET.parse(file).getroot()  # noqa: S314  # written by ourselves just now
    texts = [element.text for element in root.iter(f"{SVG}text")]
    assert {"first token (ms)", "share of prompt tokens that are cached (%)"} <= set(texts)
    assert {"p50", "p95", "p99", "overloaded", "98%", "100 ms"} <= set(texts)
    assert "prefers-color-scheme: dark" in file.read_text()
    assert len(list(root.iter(f"{SVG}polyline"))) == 3


def test_the_curve_stays_within_the_frame(tmp_path: Path) -> None:
    file = tmp_path / "plot.svg"

    main([*LOAD, "--svg", str(file)])

    curves = ET.parse(file).getroot().iter(f"{SVG}polyline")  # noqa: S314
    points = [pair.split(",") for curve in curves for pair in curve.attrib["points"].split()]
    # The frame of the curves: the drawing of 760 x 440 without its margins.
    assert all(72 <= float(x) <= 664 and 78 <= float(y) <= 376 for x, y in points)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "No load is known"),
        (("--requests-per-s", "-1"), "requests_per_s is -1"),
        ((*LOAD, "--hit-rate", "1.5"), "hit_rate is 1.5"),
        ((*LOAD, "--gpus", "3"), "are needed"),
        ((*LOAD, "--during", "0"), "--during"),
        ((*LOAD, "--svg", "/nowhere/plot.svg"), "cannot be written"),
    ],
)
def test_invalid_arguments_are_rejected_with_one_line(
    arguments: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["manage.py", "capacity", *arguments]) == 2

    output = capsys.readouterr()
    assert message in output.err
    assert output.err.count("\n") == 1
    assert output.out == ""


def test_a_fractional_number_of_gpus_is_rejected(tmp_path: Path) -> None:
    file = tmp_path / "figures.json"
    file.write_text('{"requests_per_s": 10, "num_gpus": 1.5}')

    with pytest.raises(InvalidInput, match="whole number"):
        main(["--figures", str(file)])
