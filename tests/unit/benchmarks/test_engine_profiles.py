"""Each stream of the benchmark of engine profiles sends prompts of its own."""

from tests.benchmarks.engine_profiles import split_files
from tests.benchmarks.engine_streams import code_tokens

_BLOCK_TOKENS = 16  # the smallest block of a prefix cache


def test_no_two_of_sixteen_streams_share_a_block_of_the_prefix_cache() -> None:
    files = split_files(code_tokens(), 16)

    first_blocks = {tuple(file[:_BLOCK_TOKENS]) for file in files}
    assert len(first_blocks) == 16
    assert min(map(len, files)) > 4_000  # the longest prompt
