"""Measure how often the model copies a name from the prompt if the right name occurs there.

A probe's cursor is in a name of the code: at a random place from its start to before its last
character. The name has at least four characters and is no keyword or builtin. It occurs as a whole
word elsewhere in the prompt, whose texts are truncated to the windows of the evaluation. The
completion copies the name if it begins with exactly the rest of the name.
"""

import builtins
import io
import keyword
import random
import re
import tokenize
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from inference.demo_model.corpus import SourceFile
from inference.demo_model.fim import FimCut, cut_line_at

MAX_PROBES_PER_FILE = 15
MIN_NAME_CHARS = 4
EXCLUDED_NAMES = frozenset({*keyword.kwlist, *keyword.softkwlist, *dir(builtins)})

# Returns the parts of prefix and suffix that a prompt shows, joined by a line break.
GetVisibleText = Callable[[FimCut], str]


@dataclass(frozen=True, slots=True)
class NameProbe:
    path: str
    cut: FimCut
    typed_part: str  # the part of the name before the cursor
    remaining_part: str

    def is_copied_by(self, completion: str) -> bool:
        return _leading_name(completion) == self.remaining_part


def choose_name_probes(
    files: Sequence[SourceFile], get_visible_text: GetVisibleText, seed: int
) -> list[NameProbe]:
    """Choose the probes. The same files, visible texts and seed give the same probes."""
    probes: list[NameProbe] = []
    for file in files:
        rng = random.Random(f"{seed}:{file.path}:names")
        names = _find_names(file.text)
        rng.shuffle(names)
        file_probes: list[NameProbe] = []
        for start, name in names:
            cursor = start + rng.randrange(len(name))
            fim_cut = cut_line_at(file.text, cursor)
            if _occurs_in(get_visible_text(fim_cut), name):
                file_probes.append(_build_probe(file.path, fim_cut, name, cursor - start))
            if len(file_probes) == MAX_PROBES_PER_FILE:
                break
        probes += file_probes
    return probes


def _build_probe(path: str, fim_cut: FimCut, name: str, num_typed: int) -> NameProbe:
    return NameProbe(path, fim_cut, typed_part=name[:num_typed], remaining_part=name[num_typed:])


def _find_names(text: str) -> list[tuple[int, str]]:
    """Return the start and the text of each name in the code, not in strings and comments."""
    line_starts = [0]
    for line in io.StringIO(text):  # the lines that `tokenize` counts; form feeds end no line
        line_starts.append(line_starts[-1] + len(line))
    names = []
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        is_eligible = len(token.string) >= MIN_NAME_CHARS and token.string not in EXCLUDED_NAMES
        if token.type == tokenize.NAME and is_eligible:
            names.append((line_starts[token.start[0] - 1] + token.start[1], token.string))
    return names


def _occurs_in(text: str, name: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text) is not None


def _leading_name(text: str) -> str:
    match = re.match(r"\w*", text)
    return match.group() if match else ""
