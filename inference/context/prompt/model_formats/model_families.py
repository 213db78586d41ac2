"""Fill-in-the-middle formats as data, one entry per model family.

P is the text before the cursor, S the text after it. The model writes the middle at the end of the
prompt. PSM and SPM name the order (Bavarian et al. 2022, arXiv 2207.14255). A family is detected by
its markers, which are single tokens of its tokenizer, or its name is in the pool's settings.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from caret.foundation.environment import BadSetting


class FimOrder(StrEnum):
    PSM = "psm"  # <pre> P <suf> S <mid>
    SPM = "spm"  # <suf> S <pre> P <mid>
    SPM_VARIANT_2 = "spm2"  # <pre> <suf> S <mid> P
    EFIM = "efim"  # <pre> P up to an anchor <suf> S <mid> the rest of P (arXiv 2505.21889)


@dataclass(frozen=True, slots=True)
class ModelFamily:
    name: str
    order: FimOrder  # in which the models were trained
    # The markers: <pre>, <suf> and <mid> above.
    prefix: str
    suffix: str
    middle: str | None  # None: the model writes directly after the last part
    file_separator: str | None = None  # before a file's path; None: a comment names the file
    repository: str | None = None  # before the repository's name; None: prompts do not name it
    begin: str | None = None  # the first token of every prompt; None: there is no such token
    ends: tuple[str, ...] = ()  # further tokens that end a completion, if the tokenizer has them
    edit_format: str | None = None  # a name in edit_formats.py; None: its models propose no edits


# The order matters: the first family whose markers the tokenizer knows is chosen.
FAMILIES: Final = (
    ModelFamily(
        name="qwen",
        order=FimOrder.PSM,
        prefix="<|fim_prefix|>",
        suffix="<|fim_suffix|>",
        middle="<|fim_middle|>",
        file_separator="<|file_sep|>",
        repository="<|repo_name|>",
        ends=("<|endoftext|>", "<|fim_pad|>"),
    ),
    ModelFamily(
        name="codegemma",
        order=FimOrder.PSM,
        prefix="<|fim_prefix|>",
        suffix="<|fim_suffix|>",
        middle="<|fim_middle|>",
        file_separator="<|file_separator|>",
        begin="<bos>",
        ends=("<eos>",),
    ),
    ModelFamily(
        name="granite",
        order=FimOrder.PSM,
        prefix="<|fim_prefix|>",
        suffix="<|fim_suffix|>",
        middle="<|fim_middle|>",
        ends=("<|end_of_text|>",),
    ),
    ModelFamily(
        name="starcoder2",
        order=FimOrder.PSM,
        prefix="<fim_prefix>",
        suffix="<fim_suffix>",
        middle="<fim_middle>",
        file_separator="<file_sep>",
        repository="<repo_name>",
        ends=("<|endoftext|>",),
    ),
    ModelFamily(
        name="starcoder",
        order=FimOrder.PSM,
        prefix="<fim_prefix>",
        suffix="<fim_suffix>",
        middle="<fim_middle>",
        ends=("<|endoftext|>", "<fim_pad>"),
    ),
    ModelFamily(
        name="deepseek",
        order=FimOrder.PSM,
        prefix="<｜fim▁begin｜>",
        suffix="<｜fim▁hole｜>",
        middle="<｜fim▁end｜>",
        begin="<｜begin▁of▁sentence｜>",
        ends=("<｜end▁of▁sentence｜>",),
    ),
    ModelFamily(
        name="codellama",
        order=FimOrder.SPM_VARIANT_2,
        prefix="▁<PRE>",
        suffix="▁<SUF>",
        middle="▁<MID>",
        begin="<s>",
        ends=("▁<EOT>", "</s>"),
    ),
    ModelFamily(
        name="codestral",
        order=FimOrder.SPM,
        prefix="[PREFIX]",
        suffix="[SUFFIX]",
        middle=None,
        begin="<s>",
        ends=("</s>",),
    ),
    ModelFamily(
        name="seed-coder",
        order=FimOrder.SPM,
        prefix="<[fim-prefix]>",
        suffix="<[fim-suffix]>",
        middle="<[fim-middle]>",
    ),
)


# A pool must name these families, because their tokenizers have the markers of another family.
# Mellum and Refact have StarCoder's markers but were trained in another order. Zeta has Qwen's
# markers but was also trained on edits.
UNDETECTABLE_FAMILIES: Final = (
    *(
        ModelFamily(
            name=name,
            order=FimOrder.SPM,
            prefix="<fim_prefix>",
            suffix="<fim_suffix>",
            middle="<fim_middle>",
            file_separator=separator,
            ends=("<|endoftext|>", "<fim_pad>"),
        )
        for name, separator in (("mellum", "<filename>"), ("refact", None))
    ),
    replace(FAMILIES[0], name="zeta", edit_format="zeta"),
)


ALL_MARKERS: Final = frozenset(
    marker
    for family in (*FAMILIES, *UNDETECTABLE_FAMILIES)
    for marker in (
        *(family.prefix, family.suffix, family.middle, family.file_separator, family.repository),
        *(family.begin, *family.ends),
    )
    if marker is not None
)


def get_family(name: str) -> ModelFamily:
    """Return the family. Raises BadSetting."""
    for family in (*FAMILIES, *UNDETECTABLE_FAMILIES):
        if family.name == name:
            return family
    names = ", ".join(family.name for family in (*FAMILIES, *UNDETECTABLE_FAMILIES))
    raise BadSetting(f"Unknown model family {name}; the families are {names}.")


def detect_family(get_token_id: Callable[[str], int | None], *, model: str) -> ModelFamily:
    """Return the family of a tokenizer by its markers.

    `get_token_id` returns None for an unknown token. `model` is the model's name, for the error.
    Raises BadSetting.
    """
    for family in FAMILIES:
        markers = (
            family.prefix,
            family.suffix,
            family.middle,
            family.file_separator,
            family.repository,
            family.begin,
        )
        if all(get_token_id(marker) is not None for marker in markers if marker is not None):
            return family
    names = ", ".join(family.name for family in FAMILIES)
    raise BadSetting(
        f"The tokenizer of the model {model} has none of the fill-in-the-middle markers of {names}."
    )
