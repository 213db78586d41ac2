"""Model families: how one is recognised, and where it wants the parts."""

import pytest
from tokenizers import AddedToken, Tokenizer
from tokenizers.models import BPE

from caret.foundation.environment import BadSetting
from inference.context.fim import FAMILIES, Family, Order, recognise
from inference.context.layout import lay_out, markers_of, stop_token_ids
from inference.context.prompt import Parts
from inference.context.tokens import Tokens

# Vocabularies as the models' own tokenizers have them.
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
LAYOUTS = {
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


def _tokens(*vocabulary: str) -> Tokens:
    tokenizer = Tokenizer(BPE())
    tokenizer.add_special_tokens([AddedToken(each, special=True) for each in vocabulary])
    tokenizer.add_tokens(["P", "S", "F"])
    return Tokens(tokenizer)


def _family(name: str) -> Family:
    return recognise(_tokens(*VOCABULARIES[name]).token_id, model="m")


def test_every_family_has_its_case_here() -> None:
    assert set(VOCABULARIES) == set(LAYOUTS) == {family.name for family in FAMILIES}


@pytest.mark.parametrize("name", VOCABULARIES)
def test_a_family_is_recognised_by_its_markers(name: str) -> None:
    assert _family(name).name == name


@pytest.mark.parametrize("vocabulary", [(), ("<s>", "</s>"), QWEN[:2]])
def test_a_tokenizer_without_markers_is_refused_by_the_models_name(
    vocabulary: tuple[str, ...],
) -> None:
    with pytest.raises(BadSetting, match="my-chat-model"):
        recognise(_tokens(*vocabulary).token_id, model="my-chat-model")


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_prompt_stands_in_the_familys_order(name: str) -> None:
    tokens = _tokens(*VOCABULARIES[name])
    family = _family(name)
    expected = [tokens.token_id(each) for each in LAYOUTS[name].split()]
    parts = Parts(files=[], suffix=tokens.encode("S"), prefix=tokens.encode("P"))

    assert lay_out(family.order, markers_of(family, tokens), parts) == expected


@pytest.mark.parametrize("order", list(Order))
def test_other_files_stand_between_the_beginning_and_the_first_marker(order: Order) -> None:
    tokens = _tokens(*CODELLAMA)
    markers = markers_of(_family("codellama"), tokens)
    parts = Parts(files=tokens.encode("F"), suffix=[], prefix=[])

    laid_out = lay_out(order, markers, parts)

    assert laid_out[:2] == [tokens.token_id("<s>"), tokens.token_id("F")]
    assert laid_out[2] in (*markers.prefix, *markers.suffix)


@pytest.mark.parametrize("name", VOCABULARIES)
def test_every_marker_of_the_family_ends_a_completion(name: str) -> None:
    tokens, family = _tokens(*VOCABULARIES[name]), _family(name)
    stops = stop_token_ids(family, tokens)

    markers = (family.prefix, family.suffix, family.middle, family.file_separator)
    known = {tokens.token_id(marker) for marker in (*markers, *family.ends) if marker}
    assert set(stops) == known | ({tokens.token_id(family.repository or "")} - {None})


def test_an_end_that_the_tokenizer_lacks_is_left_out() -> None:
    tokens = _tokens("<fim_prefix>", "<fim_suffix>", "<fim_middle>")

    stops = stop_token_ids(recognise(tokens.token_id, model="m"), tokens)

    assert len(stops) == 3
