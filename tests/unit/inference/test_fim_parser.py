"""Fill-in-the-middle prompts that clients rendered for other models are parsed into their parts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference.context.prompt.model_formats.fim_parser import (
    ParsedFile,
    ParsedFimPrompt,
    parse_fim_prompt,
)
from inference.context.prompt.model_formats.model_families import ALL_MARKERS, FAMILIES
from inference.gateway.receive import MAX_FILES

# The templates of editor plug-ins.
TEMPLATES = {
    "qwen": "<|fim_prefix|>{prefix}<|fim_suffix|>{suffix}<|fim_middle|>",
    "qwen, suffix first": "<|fim_prefix|><|fim_suffix|>{suffix}<|fim_middle|>{prefix}",
    "codegemma": "<bos><|fim_prefix|>{prefix}<|fim_suffix|>{suffix}<|fim_middle|>",
    "starcoder": "<fim_prefix>{prefix}<fim_suffix>{suffix}<fim_middle>",
    "starcoder, suffix first": "<fim_prefix><fim_suffix>{suffix}<fim_middle>{prefix}",
    "refact": "<fim_suffix>{suffix}<fim_prefix>{prefix}<fim_middle>",
    "code llama": "<PRE> {prefix} <SUF>{suffix} <MID>",
    "code llama, suffix first": "<s><PRE> <SUF>{suffix} <MID> {prefix}",
    "deepseek": "<｜fim▁begin｜>{prefix}<｜fim▁hole｜>{suffix}<｜fim▁end｜>",
    "codestral": "[SUFFIX]{suffix}[PREFIX]{prefix}",
    "codestral, with a start token": "<s>[SUFFIX]{suffix}[PREFIX]{prefix}",
    "seed-coder": "<[fim-suffix]>{suffix}<[fim-prefix]>{prefix}<[fim-middle]>",
}
# In some tokenizers, "▁" stands for the space at the beginning of a marker.
SPELLINGS = ALL_MARKERS | {marker.lstrip("▁") for marker in ALL_MARKERS}


def has_no_markers(text: str) -> bool:
    # In Codestral's format, "+++++ " begins the header of a file.
    return not any(marker in text for marker in SPELLINGS) and not text.startswith("+++++ ")


code = st.text(max_size=40).filter(has_no_markers)


@pytest.mark.parametrize("name", TEMPLATES)
@given(prefix=code, suffix=code)
def test_a_rendered_template_is_parsed_into_its_parts(name: str, prefix: str, suffix: str) -> None:
    prompt = TEMPLATES[name].format(prefix=prefix, suffix=suffix)

    assert parse_fim_prompt(prompt) == ParsedFimPrompt(prefix, suffix)


@pytest.mark.parametrize("name", TEMPLATES)
@given(prefix=code, suffix=code)
def test_a_repeated_marker_makes_a_prompt_ambiguous(name: str, prefix: str, suffix: str) -> None:
    # Tokens that begin a prompt (such as `<s>`) are left out: a prompt that contains such a token
    # again is not ambiguous.
    begin_markers = {family.begin for family in FAMILIES}

    for marker in SPELLINGS - begin_markers:
        if marker in TEMPLATES[name]:
            prompt = TEMPLATES[name].format(prefix=prefix + marker, suffix=suffix)
            assert parse_fim_prompt(prompt) is None


@pytest.mark.parametrize(
    "prompt",
    [
        "",
        "def f():\n    return ",
        "<|fim_prefix|>a<|fim_suffix|>b",
        "a<|fim_prefix|>a<|fim_suffix|>b<|fim_middle|>",
        "<|fim_prefix|>a<|fim_suffix|>b<|fim_middle|>c",
        "<|fim_middle|><|fim_prefix|>a<|fim_suffix|>b",
        "<|fim_prefix|>a<|file_sep|>b<|fim_suffix|>c<|fim_middle|>",
        "<|repo_name|>a<|repo_name|>b\n<|file_sep|>c\n<|fim_prefix|>a<|fim_suffix|>b<|fim_middle|>",
        "<|repo_name|>shop\nimport os\n<|fim_prefix|>a<|fim_suffix|>b<|fim_middle|>",
        "<PRE>html</PRE>",
        "text [SUFFIX]b[PREFIX]a",
    ],
)
def test_a_prompt_in_an_inconsistent_format_is_not_parsed(prompt: str) -> None:
    assert parse_fim_prompt(prompt) is None


def test_the_repository_format_contains_repository_name_files_and_path() -> None:
    prompt = (
        "<|repo_name|>shop\n<|file_sep|>src/a.py\nimport os\n<|file_sep|>b.py\nx = 1\n"
        "<|file_sep|>src/c.py\n<|fim_prefix|>p<|fim_suffix|>s<|fim_middle|>"
    )

    assert parse_fim_prompt(prompt) == ParsedFimPrompt(
        "p",
        "s",
        path="src/c.py",
        repository="shop",
        files=(ParsedFile("src/a.py", "import os\n"), ParsedFile("b.py", "x = 1\n")),
    )


def test_files_without_paths_are_parsed() -> None:
    prompt = (
        "<file_sep>def f(x):\n    pass\n<file_sep>a = 1<file_sep>"
        "<fim_prefix>p<fim_suffix>s<fim_middle>"
    )

    parsed = parse_fim_prompt(prompt)

    assert parsed is not None
    assert parsed.files == (ParsedFile("", "def f(x):\n    pass\n"), ParsedFile("", "a = 1"))
    assert parsed.path == ""


def test_codestral_files_come_before_the_prefix() -> None:
    prompt = "[SUFFIX]s[PREFIX]+++++ a.py\nx = 1\n\n+++++ lib/b.py\ny\n\n+++++ c.py\np = "

    assert parse_fim_prompt(prompt) == ParsedFimPrompt(
        "p = ", "s", path="c.py", files=(ParsedFile("a.py", "x = 1"), ParsedFile("lib/b.py", "y"))
    )


@given(st.text(), st.lists(st.sampled_from(sorted(SPELLINGS)), max_size=6))
def test_the_parser_never_raises(text: str, markers: list[str]) -> None:
    parse_fim_prompt(text.join(["", *markers, ""]))  # the text around each marker
    parse_fim_prompt("".join(markers) + text)


@pytest.mark.parametrize(
    ("file_template", "ending"),
    [
        ("<file_sep>{number}.py\nx", "<file_sep>now.py\n<fim_prefix>p<fim_suffix>s<fim_middle>"),
        (
            "<|file_sep|>{number}.py\nx",
            "<|file_sep|>now.py\n<|fim_prefix|>p<|fim_suffix|>s<|fim_middle|>",
        ),
    ],
)
@pytest.mark.parametrize("count", [1, MAX_FILES, MAX_FILES + 1, 10_000])
def test_the_files_nearest_to_the_cursor_are_kept(
    file_template: str, ending: str, count: int
) -> None:
    parsed = parse_fim_prompt(
        "".join(file_template.format(number=number) for number in range(count)) + ending
    )

    assert parsed is not None
    assert parsed.path == "now.py"
    assert [file.path for file in parsed.files] == _nearest_names(count)


@pytest.mark.parametrize("count", [1, MAX_FILES, MAX_FILES + 1, 10_000])
def test_the_codestral_files_nearest_to_the_cursor_are_kept(count: int) -> None:
    files = "\n\n".join(f"+++++ {number}.py\nx" for number in range(count))

    parsed = parse_fim_prompt(f"[SUFFIX]s[PREFIX]{files}\n\n+++++ now.py\np")

    assert parsed is not None
    assert (parsed.prefix, parsed.path) == ("p", "now.py")
    assert [file.path for file in parsed.files] == _nearest_names(count)


def test_a_codestral_file_header_without_a_line_break_is_code() -> None:
    assert parse_fim_prompt("[SUFFIX]s[PREFIX]+++++ a") == ParsedFimPrompt("+++++ a", "s")


def _nearest_names(count: int) -> list[str]:
    return [f"{number}.py" for number in range(max(0, count - MAX_FILES), count)]
