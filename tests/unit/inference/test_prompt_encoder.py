"""Limits of single texts of a prompt."""

from inference.context.prompt.prompt_encoder import PromptEncoder
from inference.context.tokenization.ttl_cache import PartitionKey
from tests.fakes.prompts import make_prompt_writer


def test_without_tokens_no_text_near_the_cursor_is_selected() -> None:
    encoder = PromptEncoder(make_prompt_writer(), PartitionKey(b"acme"), path="a.py")

    assert encoder.select_nearby_text("before", "after", max_tokens=0) == ("", "")
