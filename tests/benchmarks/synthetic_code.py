"""Prompts of a given length: pieces of the standard library in random order.

Each prompt looks like code. The first line of its prefix is unique, so that no prefix is cached.
Only the short suffix, which is the same in all prompts and stands before the prefix, can be cached.
"""

import random
import sysconfig
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from caret.contracts.policy import Mode, Tier
from caret.foundation.clock import SystemClock
from inference.completion import request as completion_request
from inference.completion.incoming_request import IncomingRequest, UnvalidatedRequest
from inference.completion.request import AdmittedRequest, Principal
from inference.completion.variant import NO_VARIANT
from inference.context.assemble import assemble
from inference.context.prompt.prompt import Prompt
from inference.context.prompt.prompt_writer import PromptWriter
from inference.context.tokenization.tokenizer import load_tokenizer
from inference.gateway.receive import receive
from inference.pools.pool_config import Pool
from tests.benchmarks.installation import new_tenant

_MODULES: Final = ("argparse", "ast", "configparser", "dataclasses", "inspect", "shutil", "tarfile")
# The cursor is in the middle of a line. There the model writes at once and the filter holds nothing
# back.
_LAST_LINE: Final = "        self."
SUFFIX: Final = "\n\n    def close(self) -> None:\n        self.stream.close()\n"
_MAX_LINE_CHARS: Final = 80
_CHUNK_LINES: Final = 2
# A prompt counts as full after this many chunks that do not fit.
_MAX_REJECTED: Final = 5


@dataclass(frozen=True, slots=True)
class Sample:
    prefix: str
    prompt: Prompt  # as the gateway assembles it
    text: str  # the prompt as text, with the FIM markers


class CodeText:
    """Makes prompts of code for the model of a pool. The same seed gives the same prompts."""

    def __init__(self, pool: Pool, *, seed: int) -> None:
        self.pool = pool
        self._random = random.Random(seed)
        self._lines = _lines_of_library()
        tokenizer = load_tokenizer(pool.tokenizer)
        self._decoder = tokenizer._raw  # the only access to a decoder of token IDs
        self._writer = PromptWriter(
            tokenizer,
            model=pool.model,
            max_context_tokens=pool.max_context_tokens,
            clock=SystemClock(),
            options=pool.prompt_options,
        )
        snapshot, _ = new_tenant("benchmark", root_secret=bytes(32))
        self._principal = Principal(credential=snapshot.credentials[0], snapshot=snapshot)

    def sample(self, *, mode: str, num_tokens: int, max_tokens: int) -> Sample:
        """Return a prompt of about `num_tokens`, and not more unless the shortest prompt has more.

        `num_tokens` must be below the pool's token budget for the mode. The gateway shortens a
        prompt that exceeds the budget, so it would never have more than `num_tokens`, and the loop
        would not end. The assertion detects this.
        """
        lines = [f"# {self._random.randbytes(12).hex()}"]
        sample = self._assemble_sample(lines, mode, max_tokens)
        num_rejected = 0
        while num_rejected < _MAX_REJECTED:
            longer = [*lines, *self._chunk()]
            candidate = self._assemble_sample(longer, mode, max_tokens)
            is_longer = len(candidate.prompt.token_ids) > len(sample.prompt.token_ids)
            assert is_longer, "num_tokens is not below the pool's token budget"
            if len(candidate.prompt.token_ids) > num_tokens:
                num_rejected += 1
            else:
                lines, sample = longer, candidate
        return sample

    def _assemble_sample(self, lines: list[str], mode: str, max_tokens: int) -> Sample:
        prefix = "\n".join([*lines, _LAST_LINE])
        draft = UnvalidatedRequest(mode=mode, prefix=prefix, suffix=SUFFIX, max_tokens=max_tokens)
        incoming = IncomingRequest(
            "benchmark", key_text=None, address=None, draft=draft, received_s=0.0, occurred_at_ms=0
        )
        admitted = AdmittedRequest(self._principal, receive(incoming), pool="", variant=NO_VARIANT)
        prompt = assemble(self._writer, admitted)
        text = self._decoder.decode(prompt.token_ids, skip_special_tokens=False)
        return Sample(prefix, prompt, text)

    def _chunk(self) -> list[str]:
        start = self._random.randrange(len(self._lines) - _CHUNK_LINES)
        return self._lines[start : start + _CHUNK_LINES]


def tier_of(mode: str) -> Tier:
    """Return the tier of the mode with this name, as the gateway does."""
    return completion_request.tier_of(Mode(mode))


def _lines_of_library() -> list[str]:
    folder = Path(sysconfig.get_path("stdlib"))
    texts = [(folder / f"{name}.py").read_text() for name in _MODULES]
    return [
        line
        for text in texts
        for line in text.splitlines()
        if 0 < len(line.strip()) < _MAX_LINE_CHARS
    ]
