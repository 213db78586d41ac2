"""Prompt assembly: how long it takes to write the prompt of a keystroke, without an engine.

The cursor stands in a file of 5,000 lines, with 20 other files open. A prompt has 2,000 tokens.
Warm: the writer has seen the files, and one more character was typed. Cold: the writer has seen
none of these files before. The benchmark collects garbage between keystrokes, as the gateway does.

    python -m tests.benchmarks.assembly [--keystrokes 500] [--files 100]
"""

import argparse
import gc
import random
import sys
import sysconfig
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from caret.contracts.policy import Mode
from caret.foundation.clock import SystemClock
from caret.foundation.garbage_collection import disabled_gc
from caret.local.engines.engine import DEMO_MODEL, MAX_CONTEXT_TOKENS
from inference.completion.incoming_request import ContextFile
from inference.completion.request import AdmittedRequest, CompletionRequest, Principal
from inference.completion.variant import NO_VARIANT
from inference.context.assemble import assemble
from inference.context.prompt.prompt_writer import PromptWriter
from inference.context.tokenization.tokenizer import Tokenizer, load_tokenizer
from tests.benchmarks.installation import new_tenant
from tests.benchmarks.results import Report, percentile, spread

NUM_LINES: Final = 5_000
NUM_OTHER_FILES: Final = 20  # open beside the current one
MAX_COLD_MS: Final = 10.0
MAX_WARM_MS: Final = 3.0
_MIN_CHARS, _MAX_CHARS = 4_000, 50_000  # of a standard-library file, from which files are made
_TYPED_LINE: Final = "        return self._reader.read_all(path, encoding=self.encoding)\n"


class Keystrokes:
    """The keystrokes of one editor: its current file, its other open files and its principal."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        texts = _read_standard_library()
        lines = [line for text in texts.values() for line in text.splitlines()]
        start = self._random.randrange(len(lines) - NUM_LINES)
        self._lines = lines[start : start + NUM_LINES]
        paths = self._random.sample(sorted(texts), NUM_OTHER_FILES)
        self._files = tuple(ContextFile(path, texts[path], edited_at=0.0) for path in paths)
        snapshot, _ = new_tenant("benchmark", root_secret=bytes(32))
        self._principal = Principal(credential=snapshot.credentials[0], snapshot=snapshot)

    def iterate_requests(self) -> Iterator[AdmittedRequest]:
        """Yield a request after each character of a line that the user types."""
        cursor = self._random.randrange(NUM_LINES)
        before, after = ("\n".join(part) for part in (self._lines[:cursor], self._lines[cursor:]))
        request = CompletionRequest(
            mode=Mode.INLINE,
            path="lib/current.py",
            language="python",
            prefix="",
            suffix=f"\n{after}",
            files=self._files,
            repository="acme/lib",
            max_tokens=64,
            stop=(),
            is_raw=False,
        )
        for end in range(1, len(_TYPED_LINE)):
            request_after_typing = replace(request, prefix=f"{before}\n{_TYPED_LINE[:end]}")
            yield AdmittedRequest(
                self._principal, request_after_typing, pool="", variant=NO_VARIANT
            )


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--keystrokes", type=int, default=500, help="minimum number of warm keystrokes"
    )
    parser.add_argument("--files", type=int, default=100, help="number of cold files")
    options = parser.parse_args(arguments)
    with disabled_gc():
        return _measure(options)


def _measure(options: argparse.Namespace) -> int:
    tokenizer = load_tokenizer(str(DEMO_MODEL))
    # The first assembly in a process also loads the tree-sitter grammars. Run one before measuring,
    # so that this time is not measured.
    _measure_ms(_make_writer(tokenizer), Keystrokes(0))
    report = Report("assembly")
    cold = [
        _measure_ms(_make_writer(tokenizer), Keystrokes(seed), max_times=1)[0]
        for seed in range(1, options.files + 1)
    ]
    warm: list[float] = []
    seed = 0
    while len(warm) < options.keystrokes:
        seed += 1
        # Without the first time, which is cold.
        warm += _measure_ms(_make_writer(tokenizer), Keystrokes(seed))[1:]
    all_ms = [*cold, *warm]
    report.target("cold.p99", percentile(cold, 99), "ms", at_most=MAX_COLD_MS, **spread(cold))
    report.target("warm.p99", percentile(warm, 99), "ms", at_most=MAX_WARM_MS, **spread(warm))
    report.figure("all.p99", percentile(all_ms, 99), "ms", **spread(all_ms))
    return report.exit_status


def _make_writer(tokenizer: Tokenizer) -> PromptWriter:
    return PromptWriter(
        tokenizer,
        model="demo",
        max_context_tokens=MAX_CONTEXT_TOKENS,
        clock=SystemClock(),
    )


def _measure_ms(
    writer: PromptWriter, keystrokes: Keystrokes, *, max_times: int | None = None
) -> list[float]:
    """Return the time of each assembly, at most `max_times`. Only the first one is cold.

    By default, the whole line is typed.
    """
    times: list[float] = []
    for admitted in keystrokes.iterate_requests():
        if len(times) == max_times:
            break
        gc.collect(0)
        began_s = time.perf_counter()
        assemble(writer, admitted)
        times.append((time.perf_counter() - began_s) * 1000)
    return times


def _read_standard_library() -> dict[str, str]:
    folder = Path(sysconfig.get_path("stdlib"))
    texts = {path.name: path.read_text(errors="replace") for path in sorted(folder.glob("*.py"))}
    return {name: text for name, text in texts.items() if _MIN_CHARS < len(text) < _MAX_CHARS}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
