"""Evaluation probes: lines of code that are cut for the model to complete, and their scores."""

import pytest

from inference.demo_model.corpus import SourceFile
from inference.demo_model.evaluation.probes import EvalProbe, choose_probes, score_probe
from inference.demo_model.fim import cut_line_at

TEXT = '''"""A docstring of the module."""

# A comment that is long enough.
def area(width, height):
    """A docstring of the function."""
    result = width * height
    return result
'''
CODE = ("def area(width, height):", "    result = width * height", "    return result")
PROBE = EvalProbe("shapes.py", cut_line_at(TEXT, TEXT.index(" * height")))


def test_probes_are_lines_of_code_but_not_comments_or_docstrings() -> None:
    probes = choose_probes([SourceFile("shapes.py", TEXT, is_test=False)], seed=1)

    lines = {probe.cut.prefix.rsplit("\n", 1)[-1] + probe.cut.middle for probe in probes}
    assert lines == set(CODE)


def test_the_same_seed_chooses_the_same_probes() -> None:
    files = [SourceFile("shapes.py", TEXT, is_test=False)]

    assert choose_probes(files, seed=3) == choose_probes(files, seed=3)


@pytest.mark.parametrize("completion", [" * height", " * height  ", " * height\n    return 1"])
def test_a_completion_that_begins_with_the_rest_of_the_line_is_exact(completion: str) -> None:
    assert score_probe(PROBE, completion).is_exact


def test_a_completion_with_another_text_is_not_exact() -> None:
    assert not score_probe(PROBE, " * width").is_exact


@pytest.mark.parametrize(("completion", "is_parsable"), [(" * width", True), (" * (height", False)])
def test_a_completion_is_parsed_with_the_file_around_it(completion: str, is_parsable: bool) -> None:
    assert score_probe(PROBE, completion).is_parsable is is_parsable
