"""Prompts change little while a user types, secrets are redacted, and variants have effect.

A variant is one of the settings that an experiment compares. psm, spm, stable and efim are layouts.
"""

from dataclasses import replace
from itertools import pairwise, takewhile
from typing import Any

import pytest

from caret.foundation.environment import BadSetting
from inference.completion.incoming_request import ContextFile
from inference.completion.snippet import Snippet
from inference.completion.variant import Variant
from inference.context.assemble import assemble
from inference.context.prompt.prompt import Prompt
from inference.context.prompt.variant_options import validate_variants
from tests.fakes.prompts import (
    CODE,
    PRINCIPAL,
    SUFFIX_ID,
    WRITER,
    assemble_prompt,
    make_prompt_writer,
    text_of,
)
from tests.fakes.requests import make_admitted
from tests.fakes.tenants import make_policy, make_principal


def _unchanged_shares(prompts: list[Prompt]) -> list[float]:
    """Return, for each prompt but the last, the share of it with which the next prompt begins."""
    shares = []
    for prompt, next_prompt in pairwise(prompts):
        pairs = zip(prompt.token_ids, next_prompt.token_ids, strict=False)
        num_equal = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
        shares.append(num_equal / len(prompt.token_ids))
    return shares


@pytest.mark.parametrize("num_chars_before", [600, 4_000, 40_000])
@pytest.mark.parametrize("layout", ["stable", "efim"])
def test_nearly_all_of_the_prompt_is_unchanged_while_lines_are_typed(
    layout: str, num_chars_before: int
) -> None:
    typed_text = "".join(f"    value_{n} = self.reader.read(path, encoding)\n" for n in range(20))
    files = tuple(ContextFile(f"{n}.py", CODE[:10_000], n) for n in range(5))
    writer = make_prompt_writer(layout=layout)
    prompts = [
        assemble_prompt(
            writer,
            prefix=CODE[:num_chars_before] + typed_text[:end],
            suffix=")" * (end % 2) + "\n" + CODE,  # editors add and remove closing brackets
            files=files,
        )
        for end in range(1, len(typed_text), 3)  # a prompt after every third character
    ]

    shares = _unchanged_shares(prompts)

    assert sum(shares) / len(shares) > 0.97


def test_a_sliding_window_changes_nearly_all_of_the_prompt() -> None:
    prompts = [
        assemble_prompt(
            make_prompt_writer(layout="psm-sliding"), prefix=CODE + "a = b + c; " * n, suffix=CODE
        )
        for n in range(9)
    ]

    assert max(_unchanged_shares(prompts)) < 0.1


def test_an_edit_in_one_file_keeps_the_files_before_it_in_place() -> None:
    files = [ContextFile(f"{name}.py", f"{name} = 1\n" * 20, 0) for name in "abc"]
    before = assemble_prompt(prefix="x", files=tuple(files))

    edited_file = replace(files.pop(), text="c = 2\n")
    files.insert(0, edited_file)  # the most recently edited file comes first in a request
    after = assemble_prompt(prefix="x", files=tuple(files))

    (unchanged_share,) = _unchanged_shares([before, after])
    text = text_of(before)
    # The share counts tokens. In characters it is about the same.
    assert "b.py" in text[: round(unchanged_share * len(text))]


@pytest.mark.parametrize("rest_of_line", ["", ")", '"),', "]: ", "});", "\r", "`)"])
def test_the_suffix_begins_with_the_next_line_if_only_closing_characters_follow(
    rest_of_line: str,
) -> None:
    bare_prompt = assemble_prompt(prefix="f(", suffix="\nb = 2\n")

    assert (
        assemble_prompt(prefix="f(", suffix=f"{rest_of_line}\nb = 2\n").token_ids
        == bare_prompt.token_ids
    )


@pytest.mark.parametrize("rest_of_line", ["a)", " + 1", "= 3", ") or b"])
def test_other_text_after_the_cursor_is_included(rest_of_line: str) -> None:
    prompt = assemble_prompt(prefix="f(", suffix=f"{rest_of_line}\nb = 2\n")

    assert f"<|fim_suffix|>{rest_of_line}\nb" in text_of(prompt)


def test_secrets_are_redacted_except_on_the_line_of_the_cursor() -> None:
    line = "password = '{}-and-more'\n"
    names = ("before", "after", "file", "found")
    typed_text = line.format("typed")[:-3]  # the user is still typing the value

    text = text_of(
        assemble_prompt(
            snippets=(Snippet("s.py", line.format("found"), 0.9),),
            prefix=line.format("before") + typed_text,
            suffix="x\n" + line.format("after"),
            files=(ContextFile("f.py", line.format("file"), 0),),
        )
    )

    assert typed_text in text
    assert text.count("REDACTED") == len(names)
    assert not any(f"{name}-and" in text for name in names)


def test_a_private_key_is_redacted_everywhere() -> None:
    body = "MIIEpAIBAAKCAQEA7bq\nZ2VuZXJhdGVkIGZvciB0ZXN0cw\n" * 9
    key = f'KEY = """-----BEGIN RSA PRIVATE KEY-----\n{body}-----END RSA PRIVATE KEY-----"""\n'

    text = text_of(
        assemble_prompt(
            snippets=(Snippet("s.pem", key, 0.9),),
            prefix=f"a = 1\n{key}b = ",
            suffix=f"\n{key}",
            files=(ContextFile("f.py", key, 0), ContextFile("g.py", CODE + key, 0)),
        )
    )

    assert "MIIE" not in text
    assert "Z2Vu" not in text


def test_the_rest_of_a_private_key_after_the_cursor_is_left_out() -> None:
    body = "MIIEpAIBAAKCAQEA7bq\nZ2VuZXJhdGVkIGZvciB0ZXN0cw\n"

    text = text_of(
        assemble_prompt(
            prefix=f"a = 1\n-----BEGIN RSA PRIVATE KEY-----\n{body}MIIEpAIB",
            suffix=f"AAKCAQEA7bq\n{body}-----END RSA PRIVATE KEY-----\nb = 2\n",
        )
    )

    assert not any(part in text for part in ("MIIE", "AAKC", "Z2Vu"))
    assert "b = 2" in text


def test_the_partial_word_is_removed_for_token_healing() -> None:
    prompt = assemble_prompt(
        make_prompt_writer(has_token_healing=True), prefix="x = 1\nself.read_fi", suffix="\n"
    )

    assert (prompt.healed_prefix, text_of(prompt)[-len("self.read") :]) == ("_fi", "self.read")


def test_a_part_of_a_private_key_is_redacted_and_not_kept_for_token_healing() -> None:
    prefix = "KEY = '''-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKC"

    prompt = assemble_prompt(make_prompt_writer(has_token_healing=True), prefix=prefix)

    assert prompt.healed_prefix == ""
    assert "MIIE" not in text_of(prompt)


@pytest.mark.parametrize("prefix", ["a = ", "f(", "", "x\n"])
def test_without_a_partial_word_nothing_is_removed(prefix: str) -> None:
    prompt = assemble_prompt(make_prompt_writer(has_token_healing=True), prefix=prefix)

    assert prompt.healed_prefix == ""


@pytest.mark.parametrize("layout", ["psm", "spm"])
def test_no_word_is_removed_if_a_marker_follows_the_prefix(layout: str) -> None:
    writer = make_prompt_writer(has_token_healing=True, layout=layout)

    assert assemble_prompt(writer, prefix="self.read_fi").healed_prefix == ""


def test_a_snippet_excluded_by_the_policy_is_left_out() -> None:
    principal = make_principal(policy=make_policy(content_exclusion={"*": ("secret/**",)}))
    snippets = (Snippet("secret/a.py", "hidden\n", 0.9), Snippet("b.py", "seen\n", 0.8))

    prompt = assemble(WRITER, make_admitted(principal), snippets)

    assert "hidden" not in text_of(prompt)
    assert "seen" in text_of(prompt)


def test_a_variant_has_its_own_layout_and_shares() -> None:
    files = tuple(ContextFile(f"{n}.py", CODE[:10_000], n) for n in range(5))
    fields: dict[str, Any] = {"prefix": CODE, "suffix": CODE, "files": files}
    variant = Variant("e/v", layout="psm", files_share=0.0, suffix_share=0.1)

    prompt = assemble(WRITER, make_admitted(PRINCIPAL, variant=variant, **fields))

    assert text_of(prompt).startswith("<|fim_prefix|>")
    # In this layout, the suffix is near the end. It gets a tenth of the 2,000 tokens, about 200,
    # instead of the default 400. A few markers follow it.
    assert 0 < len(prompt.token_ids) - prompt.token_ids.index(SUFFIX_ID or 0) < 320


def test_a_variant_may_rank_files_by_similarity() -> None:
    # Not all of these files fit into the prompt. The prefix resembles the last one.
    files = tuple(
        ContextFile(f"{name}.py", f"{name} = {name}_reader({name}_path)\n" * 60, 0)
        for name in ("apple", "banana", "cherry", "lemon", "grape", "melon")
    )
    variants = (Variant("e/v", ranking=ranking) for ranking in ("recency", "similarity"))

    by_recency, by_similarity = (
        text_of(
            assemble(
                WRITER,
                make_admitted(
                    PRINCIPAL, variant=variant, prefix=files[-1].text * 9, suffix=CODE, files=files
                ),
            )
        )
        for variant in variants
    )

    assert "<|file_sep|>melon.py" not in by_recency
    assert "<|file_sep|>melon.py" in by_similarity


@pytest.mark.parametrize(
    "fields",
    [{"layout": "psd"}, {"ranking": "size"}, {"files_share": 0.7}, {"suffix_share": 0.9}],
)
def test_an_invalid_variant_is_rejected_at_the_start(fields: dict[str, Any]) -> None:
    with pytest.raises(BadSetting, match="e/v"):
        validate_variants([Variant("e/v", **fields)])
