"""Prompts as the demonstration model gets them, and their text."""

from typing import Any

from inference.completion.snippet import Snippet
from inference.context.assemble import assemble
from inference.context.prompt.prompt import Prompt
from inference.context.prompt.prompt_options import PromptOptions
from inference.context.prompt.prompt_writer import PromptWriter
from tests.fakes.clock import FakeClock
from tests.fakes.gateway import TOKENIZER
from tests.fakes.requests import make_admitted
from tests.fakes.tenants import make_principal

MAX_CONTEXT = 8_192


def make_prompt_writer(max_context_tokens: int = MAX_CONTEXT, **options: Any) -> PromptWriter:
    return PromptWriter(
        TOKENIZER,
        model="demo",
        max_context_tokens=max_context_tokens,
        clock=FakeClock(),
        options=PromptOptions(**{"has_token_healing": False, **options}),
    )


WRITER = make_prompt_writer()
MARKERS = ("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>", "<|file_sep|>", "<|endoftext|>")
PREFIX_ID, SUFFIX_ID, MIDDLE_ID, FILE_ID = (
    TOKENIZER.get_token_id(marker) for marker in MARKERS[:4]
)
PRINCIPAL = make_principal()
# Far more tokens than MAX_CONTEXT.
CODE = "".join(f"def method_{n}(self):\n    return self.field_{n}\n\n" for n in range(3_000))


def assemble_prompt(
    writer: PromptWriter = WRITER, snippets: tuple[Snippet, ...] = (), **fields: Any
) -> Prompt:
    return assemble(writer, make_admitted(PRINCIPAL, **fields), snippets)


def text_of(prompt: Prompt) -> str:
    # No public method decodes token IDs.
    text: str = TOKENIZER._plain.decode(prompt.token_ids, skip_special_tokens=False)
    return text
