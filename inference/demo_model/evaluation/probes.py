"""Single-line evaluation probes, from files that were not used for training, and their scores.

A probe's cursor is in mid-line; the expected completion is the rest of that line.
"""

import ast
import random
import warnings
from collections.abc import Sequence
from dataclasses import dataclass

from inference.demo_model.corpus import SourceFile
from inference.demo_model.fim import FimCut, cut_line_at

MAX_PROBES_PER_FILE = 15
MIN_LINE_CHARS = 8
MIN_ANSWER_CHARS = 3  # of the expected completion


@dataclass(frozen=True, slots=True)
class EvalProbe:
    path: str
    cut: FimCut


@dataclass(frozen=True, slots=True)
class ProbeScore:
    probe: EvalProbe
    completion: str  # as generated, truncated at the first line break
    is_exact: bool  # as expected, except for white space at the line's end
    is_parsable: bool  # the file with this completion is valid Python


def choose_probes(files: Sequence[SourceFile], seed: int) -> list[EvalProbe]:
    """Choose the probes. The same files and seed give the same probes."""
    probes = []
    for file in files:
        rng = random.Random(f"{seed}:{file.path}")
        starts = _find_code_lines(file.text)
        probe_starts = rng.sample(starts, min(MAX_PROBES_PER_FILE, len(starts)))
        probes += [
            EvalProbe(file.path, _cut_in_line(file.text, start, rng)) for start in probe_starts
        ]
    return probes


def score_probe(probe: EvalProbe, completion: str) -> ProbeScore:
    line = completion.split("\n", 1)[0]
    return ProbeScore(
        probe=probe,
        completion=line,
        is_exact=line.rstrip() == probe.cut.middle.rstrip(),
        is_parsable=is_parsable(probe.cut.prefix + line + probe.cut.suffix),
    )


def is_parsable(text: str) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)  # odd escapes in generated strings
            ast.parse(text)
    except (SyntaxError, ValueError):
        return False
    return True


def _find_code_lines(text: str) -> list[int]:
    """Return the starts of code lines, without comments, docstrings and very short lines."""
    docstring_lines = _find_docstring_lines(text)
    starts, position = [], 0
    for number, line in enumerate(text.split("\n"), start=1):
        stripped = line.strip()
        is_code = len(stripped) >= MIN_LINE_CHARS and not stripped.startswith("#")
        if is_code and number not in docstring_lines:
            starts.append(position)
        position += len(line) + 1
    return starts


def _find_docstring_lines(text: str) -> set[int]:
    """Return the numbers, from 1, of lines with docstrings and other constants as statements."""
    lines: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            lines.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return lines


def _cut_in_line(text: str, start: int, rng: random.Random) -> FimCut:
    """Cut the line that begins at `start` at a random place after its indentation."""
    line = text[start:].split("\n", 1)[0].rstrip()
    indent = len(line) - len(line.lstrip())
    return cut_line_at(text, start + rng.randint(indent, len(line) - MIN_ANSWER_CHARS))
