"""Model families: detection by their markers, and the order of prefix and suffix in prompts."""

import pytest
from tokenizers import AddedToken
from tokenizers import Tokenizer as HfTokenizer
from tokenizers.models import BPE

from caret.foundation.environment import BadSetting
from inference.completion.segment import SegmentKind, SegmentTokens
from inference.context.prompt.model_formats.layout import (
    LAYOUTS,
    PromptParts,
    ends_with_text,
    get_layout,
    lay_out,
    resolve_markers,
    resolve_order,
    resolve_stop_token_ids,
)
from inference.context.prompt.model_formats.model_families import (
    FAMILIES,
    UNDETECTABLE_FAMILIES,
    FimOrder,
    ModelFamily,
    detect_family,
    get_family,
)
from inference.context.tokenization.tokenizer import Tokenizer

# Vocabularies of the models' own tokenizers.
QWEN = (
    *("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>", "<|fim_pad|>"),
    *("<|file_sep|>", "<|repo_name|>", "<|endoftext|>"),
)
CODEGEMMA = (
    *("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>", "<|file_separator|>"),
    *("<bos>", "<eos>"),
)
GRANITE = ("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>", "<|fim_pad|>", "<|end_of_text|>")
STARCODER = ("<fim_prefix>", "<fim_suffix>", "<fim_middle>", "<fim_pad>", "<|endoftext|>")
STARCODER2 = (*STARCODER, "<repo_name>", "<file_sep>")
DEEPSEEK = (
    *("<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>"),
    *("<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>"),
)
CODELLAMA = ("<s>", "</s>", "▁<PRE>", "▁<SUF>", "▁<MID>", "▁<EOT>")
CODESTRAL = ("<s>", "</s>", "[PREFIX]", "[SUFFIX]")
SEED_CODER = ("<[fim-prefix]>", "<[fim-suffix]>", "<[fim-middle]>", "<[end]>")
VOCABULARIES = {
    "qwen": QWEN,
    "codegemma": CODEGEMMA,
    "granite": GRANITE,
    "starcoder": STARCODER,
    "starcoder2": STARCODER2,
    "deepseek": DEEPSEEK,
    "codellama": CODELLAMA,
    "codestral": CODESTRAL,
    "seed-coder": SEED_CODER,
}
# The order that each family was trained with. P is the prefix, S the suffix.
NATIVE = {
    "qwen": "<|fim_prefix|> P <|fim_suffix|> S <|fim_middle|>",
    "codegemma": "<bos> <|fim_prefix|> P <|fim_suffix|> S <|fim_middle|>",
    "granite": "<|fim_prefix|> P <|fim_suffix|> S <|fim_middle|>",
    "starcoder": "<fim_prefix> P <fim_suffix> S <fim_middle>",
    "starcoder2": "<fim_prefix> P <fim_suffix> S <fim_middle>",
    "deepseek": "<｜begin▁of▁sentence｜> <｜fim▁begin｜> P <｜fim▁hole｜> S <｜fim▁end｜>",
    "codellama": "<s> ▁<PRE> ▁<SUF> S ▁<MID> P",
    "codestral": "<s> [SUFFIX] S [PREFIX] P",
    "seed-coder": "<[fim-suffix]> S <[fim-prefix]> P <[fim-middle]>",
}
# The order of Caret's layout `stable`.
STABLE = {
    "qwen": "<|fim_prefix|> <|fim_suffix|> S <|fim_middle|> P",
    "codegemma": "<bos> <|fim_prefix|> <|fim_suffix|> S <|fim_middle|> P",
    "granite": "<|fim_prefix|> <|fim_suffix|> S <|fim_middle|> P",
    "starcoder": "<fim_prefix> <fim_suffix> S <fim_middle> P",
    "starcoder2": "<fim_prefix> <fim_suffix> S <fim_middle> P",
    "deepseek": "<｜begin▁of▁sentence｜> <｜fim▁begin｜> <｜fim▁hole｜> S <｜fim▁end｜> P",
    "codellama": "<s> ▁<PRE> ▁<SUF> S ▁<MID> P",
    "codestral": "<s> [SUFFIX] S [PREFIX] P",
    "seed-coder": "<[fim-suffix]> S <[fim-prefix]> P <[fim-middle]>",
}


def _make_tokenizer(*vocabulary: str) -> Tokenizer:
    hf_tokenizer = HfTokenizer(BPE())
    hf_tokenizer.add_special_tokens([AddedToken(token, special=True) for token in vocabulary])
    hf_tokenizer.add_tokens(["P", "S", "F"])
    return Tokenizer(hf_tokenizer)


def _family(name: str) -> ModelFamily:
    return detect_family(_make_tokenizer(*VOCABULARIES[name]).get_token_id, model="m")


def test_this_file_covers_every_family() -> None:
    assert set(VOCABULARIES) == set(NATIVE) == set(STABLE) == {family.name for family in FAMILIES}


@pytest.mark.parametrize("name", VOCABULARIES)
def test_a_family_is_detected_by_its_markers(name: str) -> None:
    assert _family(name).name == name


@pytest.mark.parametrize("vocabulary", [(), ("<s>", "</s>"), QWEN[:2]])
def test_a_tokenizer_without_markers_is_rejected_with_the_models_name(
    vocabulary: tuple[str, ...],
) -> None:
    with pytest.raises(BadSetting, match="my-chat-model"):
        detect_family(_make_tokenizer(*vocabulary).get_token_id, model="my-chat-model")


@pytest.mark.parametrize("name", NATIVE)
def test_a_prompt_has_the_order_of_its_family(name: str) -> None:
    tokenizer = _make_tokenizer(*VOCABULARIES[name])
    family = _family(name)
    expected = [tokenizer.get_token_id(token) for token in NATIVE[name].split()]
    parts = PromptParts(
        context=[], suffix=tokenizer.encode("S"), prefix=tokenizer.encode("P"), prefix_tail=[]
    )

    assert lay_out(family.order, resolve_markers(family, tokenizer), parts) == expected


@pytest.mark.parametrize("order", list(FimOrder))
def test_other_files_come_between_the_start_and_the_first_marker(order: FimOrder) -> None:
    tokenizer = _make_tokenizer(*CODELLAMA)
    markers = resolve_markers(_family("codellama"), tokenizer)
    parts = PromptParts(
        [SegmentTokens(SegmentKind.FILES, tokenizer.encode("F"))],
        suffix=[],
        prefix=[],
        prefix_tail=[],
    )

    laid_out = lay_out(order, markers, parts)

    assert laid_out[:2] == [tokenizer.get_token_id("<s>"), tokenizer.get_token_id("F")]
    assert laid_out[2] in (*markers.prefix, *markers.suffix)


@pytest.mark.parametrize("name", VOCABULARIES)
def test_every_marker_of_a_family_ends_a_completion(name: str) -> None:
    tokenizer, family = _make_tokenizer(*VOCABULARIES[name]), _family(name)
    markers = (family.prefix, family.suffix, family.middle, family.file_separator)
    marker_ids = {tokenizer.get_token_id(marker) for marker in (*markers, *family.ends) if marker}

    stops = resolve_stop_token_ids(family, tokenizer)

    # Some tokenizers lack the repository marker of their family.
    repository_id = tokenizer.get_token_id(family.repository or "")
    expected_ids = marker_ids if repository_id is None else marker_ids | {repository_id}
    assert set(stops) == expected_ids


def test_an_end_marker_missing_from_the_tokenizer_is_left_out() -> None:
    tokenizer = _make_tokenizer("<fim_prefix>", "<fim_suffix>", "<fim_middle>")

    stops = resolve_stop_token_ids(detect_family(tokenizer.get_token_id, model="m"), tokenizer)

    assert len(stops) == 3  # the three markers of this tokenizer


@pytest.mark.parametrize("name", STABLE)
def test_the_stable_layout_has_the_suffix_first_and_the_prefix_last(name: str) -> None:
    tokenizer, family = _make_tokenizer(*VOCABULARIES[name]), _family(name)
    expected = [tokenizer.get_token_id(token) for token in STABLE[name].split()]
    parts = PromptParts(
        context=[], suffix=tokenizer.encode("S"), prefix=tokenizer.encode("P"), prefix_tail=[]
    )

    order = resolve_order(LAYOUTS["stable"], family)

    assert lay_out(order, resolve_markers(family, tokenizer), parts) == expected


def test_the_efim_layout_puts_the_end_of_the_prefix_after_the_last_marker() -> None:
    tokenizer, family = _make_tokenizer(*QWEN), _family("qwen")
    parts = PromptParts(
        context=[],
        suffix=tokenizer.encode("S"),
        prefix=tokenizer.encode("P"),
        prefix_tail=tokenizer.encode("F"),
    )

    laid_out = lay_out(
        resolve_order(LAYOUTS["efim"], family), resolve_markers(family, tokenizer), parts
    )

    expected = ["<|fim_prefix|>", "P", "<|fim_suffix|>", "S", "<|fim_middle|>", "F"]
    assert laid_out == [tokenizer.get_token_id(token) for token in expected]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_family_without_a_middle_marker_has_only_one_order(layout: str) -> None:
    assert resolve_order(LAYOUTS[layout], _family("codestral")) is FimOrder.SPM


@pytest.mark.parametrize(
    ("name", "is_text_last"),
    [("qwen", True), ("codellama", True), ("codestral", True), ("seed-coder", False)],
)
def test_ends_with_text_is_true_unless_a_marker_follows_the_prefix(
    name: str, is_text_last: bool
) -> None:
    family = _family(name)

    assert ends_with_text(resolve_order(LAYOUTS["stable"], family), family) is is_text_last


@pytest.mark.parametrize("family", UNDETECTABLE_FAMILIES, ids=lambda family: family.name)
def test_a_family_without_distinct_markers_is_found_by_name(family: ModelFamily) -> None:
    assert get_family(family.name) is family


def test_an_unknown_family_or_layout_is_rejected_with_the_known_ones() -> None:
    with pytest.raises(BadSetting, match="mellum"):
        get_family("melon")
    with pytest.raises(BadSetting, match="psm-sliding"):
        get_layout("psm-slippery")
