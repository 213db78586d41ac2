"""path_comments: the comments in which the plug-in Continue names the files of a prompt.

Continue comments out all lines of the other files. So the comments at the beginning of the current
file cannot be distinguished from the comment with its path, or from the end of the file before it.
Every comment that looks like a path is a possible path of the current file, and the likeliest path
comes first. It is the last one with a file name such as `cart.py` and without a space, if there is
one. The others follow, the last comment first.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference.context.prompt.model_formats.fim_parser import ParsedFile
from inference.context.prompt.model_formats.path_comments import (
    CommentedPrompt,
    parse_path_comments,
)
from inference.gateway.receive import MAX_FILES, MAX_NAME_CHARS

TWO_FILES = (
    "# Path: shop/price.py\n# def price(item):\n#     return item.price\n# \n# x = 1\n"
    "# Path: config.yaml\n# a: b\n"
)


@pytest.mark.parametrize(
    ("prompt", "path"),
    [
        ("\n# shop/cart.py\n", "shop/cart.py"),
        ("\n// src/App.tsx\n", "src/App.tsx"),
        ("\n// [slug]/page.tsx\n", "[slug]/page.tsx"),
        ("\n-- init.lua\n", "init.lua"),
        ("\n; core.clj\n", "core.clj"),
        ("\n README.md\n", "README.md"),  # Markdown has no comment mark
        ("\n# Makefile\n", "Makefile"),
        ("\n# .env\n", ".env"),
        ("\n# a/b/c/d.py\n", "a/b/c/d.py"),
        ("\n# keys/id_rsa\n", "keys/id_rsa"),
        ("\n# legal texts/my contract.py\n", "legal texts/my contract.py"),
        ("\n# straße/größe.py\n", "straße/größe.py"),
        ("\n# ../keys.py\n", "../keys.py"),
    ],
)
def test_a_comment_names_the_current_file(prompt: str, path: str) -> None:
    assert parse_path_comments(f"{prompt}import os\n") == CommentedPrompt("import os\n", (path,))


@pytest.mark.parametrize(
    "prompt",
    [
        "",
        "\n",
        "import os\n",
        "# shop/cart.py\nimport os\n",  # without the empty line with which Continue begins
        "\n# This module computes prices.\n",
        "\n# https://acme.example/a.html\n",
        "\n# shop/cart.py",  # the line of the cursor
        "\n#shop/cart.py\n",
        "\n# shop/cart.py \n",
        "\n# \n",
        "\n# /\n",
        f"\n# {'a' * MAX_NAME_CHARS}.py\n",
        "# Path: shop/cart.py",
    ],
)
def test_a_prompt_with_another_beginning_is_unchanged(prompt: str) -> None:
    assert parse_path_comments(prompt) == CommentedPrompt(prompt)


@pytest.mark.parametrize(
    "path",
    [
        "legal texts/my contract",  # a path with a space needs an extension
        "a//b.py",
    ],
)
def test_a_comment_that_cannot_be_a_path_belongs_to_the_file_before_it(path: str) -> None:
    parsed_prompt = parse_path_comments(f"# Path: a.py\n# return 1\n# {path}\nimport os\n")

    assert parsed_prompt == CommentedPrompt(
        "import os\n", files=(ParsedFile("a.py", f"return 1\n{path}"),)
    )


def test_other_files_are_separated_from_the_current_file() -> None:
    parsed_prompt = parse_path_comments(f"{TWO_FILES}# shop/cart.py\nimport price\n# a comment")

    assert parsed_prompt == CommentedPrompt(
        "import price\n# a comment",
        ("shop/cart.py",),
        (
            ParsedFile("shop/price.py", "def price(item):\n    return item.price\n\nx = 1"),
            ParsedFile("config.yaml", "a: b"),
        ),
    )


@pytest.mark.parametrize(
    ("own_comments", "paths"),
    [
        ("# Licensed under the terms in LICENSE.md\n", ("shop/cart.py",)),
        ("# TODO\n# https://acme.example/a.html\n", ("shop/cart.py",)),
        ("# shop/open.py\n", ("shop/open.py", "shop/cart.py")),
        ("# A\n# public.py\n# B\n", ("public.py", "shop/cart.py")),
    ],
)
def test_each_comment_that_looks_like_a_path_is_a_possible_path_and_the_likeliest_is_first(
    own_comments: str, paths: tuple[str, ...]
) -> None:
    parsed_prompt = parse_path_comments(f"{TWO_FILES}# shop/cart.py\n{own_comments}import os\n")

    assert parsed_prompt.paths[0] == paths[0]
    assert set(paths) <= set(parsed_prompt.paths)


def test_no_possible_path_is_left_out() -> None:
    own_comments = "".join(f"# word{number}\n" for number in range(1_000))

    parsed_prompt = parse_path_comments(f"{TWO_FILES}# shop/cart.py\n{own_comments}import os\n")

    assert len(parsed_prompt.paths) == 1_001


def test_a_path_without_an_extension_is_found_after_other_files() -> None:
    parsed_prompt = parse_path_comments(f"{TWO_FILES}# keys/id_rsa\nsecret\n")

    assert parsed_prompt.paths == ("keys/id_rsa",)
    assert parsed_prompt.text == "secret\n"


def test_only_the_last_files_are_kept_if_there_are_more_than_a_request_may_have() -> None:
    files = "".join(f"# Path: {number}.py\n# pass\n" for number in range(MAX_FILES + 3))

    parsed_prompt = parse_path_comments(f"{files}# cart.py\n")

    assert [file.path for file in parsed_prompt.files] == [
        f"{number}.py" for number in range(3, MAX_FILES + 3)
    ]


@pytest.mark.parametrize(
    "doubtful",
    [
        "secret texts/passwords",
        "the way to the secret",
        f"{'a' * MAX_NAME_CHARS}.py",
        "a//b.py",
        "",
    ],
)
def test_the_text_after_an_invalid_path_is_left_out(doubtful: str) -> None:
    prompt = (
        f"# Path: open.md\n# open\n# Path: {doubtful}\n# secret\n# Path: b.md\n# b\n# cart.py\n"
    )

    parsed_prompt = parse_path_comments(prompt)

    assert parsed_prompt.files == (ParsedFile("open.md", "open"), ParsedFile("b.md", "b"))
    # A comment of one word looks like a path.
    assert parsed_prompt.paths == ("cart.py", "b", "secret", "open")


@given(
    st.lists(
        st.sampled_from(["\n", "# ", "// ", " ", "Path: ", "a/b.py", "x", ".", "/"])
        | st.text(max_size=3)
    )
)
def test_the_text_is_the_end_of_the_prompt(parts: list[str]) -> None:
    prompt = "".join(parts)

    parsed_prompt = parse_path_comments(prompt)

    assert prompt.endswith(parsed_prompt.text)
    # Nothing is cut off from a prompt that names no path.
    assert parsed_prompt.text == prompt or parsed_prompt.paths or "Path: " in prompt
    assert all(len(path) <= MAX_NAME_CHARS for path in parsed_prompt.paths)
