"""The prompt format of models that propose edits: `zeta`, named after its first model.

A prompt contains an excerpt of the file. The model may change only the excerpt's region, and its
answer repeats the region with the changes.
"""

import pytest

from caret.foundation.environment import BadSetting
from inference.completion.edit import Diagnostic, DiagnosticSeverity, RecentEdit
from inference.context.prompt.model_formats.edit_formats import EditExcerpt, get_edit_format
from inference.context.prompt.model_formats.model_families import get_family
from tests.fakes.edits import CURSOR, REGION_END, REGION_START, ZETA, make_answer

EXCERPT = EditExcerpt(
    path="shop/area.py",
    is_file_start=True,
    above="import os\n",
    region="def area(width):\n    return w",
    cursor=len("def area(width):\n    return w"),
    below="\n\nprint(area(2))",
)


def test_the_excerpt_in_the_prompt_has_the_markers_of_the_region_and_the_cursor() -> None:
    assert ZETA.render_excerpt(EXCERPT) == (
        "### User Excerpt:\n\n```shop/area.py\n<|start_of_file|>\nimport os\n"
        f"{REGION_START}\ndef area(width):\n    return w{CURSOR}\n{REGION_END}\n"
        "\n\nprint(area(2))\n```\n\n"
    )


def test_a_recent_edit_is_a_diff_in_the_prompt() -> None:
    edit = RecentEdit("a.py", start_line=3, removed="def area(w):\n", added="def area(width):\n\n")

    # A RecentEdit counts lines from 0, and a diff counts them from 1.
    assert ZETA.render_edit(edit) == (
        'User edited "a.py":\n```diff\n@@ -4,1 +4,2 @@\n'
        "-def area(w):\n+def area(width):\n+\n\n```\n\n"
    )


@pytest.mark.parametrize(
    ("removed", "added", "header"),
    [("", "a\nb\n", "@@ -4,0 +4,2 @@"), ("a\n", "", "@@ -4,1 +4,0 @@")],
    ids=["inserted", "deleted"],
)
def test_a_recent_edit_names_its_first_line_like_the_training_data(
    removed: str, added: str, header: str
) -> None:
    edit = RecentEdit("a.py", start_line=3, removed=removed, added=added)

    assert f"```diff\n{header}\n" in ZETA.render_edit(edit)


def test_only_line_breaks_end_the_lines_of_a_recent_edit() -> None:
    edit = RecentEdit("a.c", start_line=0, removed="int a;\r\n", added="int a;\f\nint b;")

    assert "@@ -1,1 +1,2 @@\n-int a;\n+int a;\f\n+int b;\n" in ZETA.render_edit(edit)


def test_a_diagnostic_is_in_the_prompt_with_the_text_of_its_line() -> None:
    diagnostic = Diagnostic(4, DiagnosticSeverity.ERROR, 'undefined name\n"w"')

    text = ZETA.render_diagnostics([("return w * 2", diagnostic)])

    assert text == 'Diagnostics:\n```\nerror at `return w * 2`: undefined name "w"\n```\n\n'


@pytest.mark.parametrize(
    ("answer", "region"),
    [
        (make_answer("a\nb"), "a\nb"),
        (make_answer(f"a{CURSOR}\nb"), "a\nb"),
        (f"```a.py\n{make_answer('a')}```", "a"),
        (make_answer("a\n"), "a\n"),
        (f"{REGION_START}\n{REGION_END}", ""),
        (f"{REGION_START}\na\n", None),
        (f"a\n{REGION_END}", None),
        ("", None),
    ],
    ids=[
        "plain",
        "cursor",
        "fence",
        "blank line at the end",
        "empty",
        "no end",
        "no start",
        "none",
    ],
)
def test_the_new_region_is_read_from_the_answer(answer: str, region: str | None) -> None:
    assert ZETA.parse(answer) == region


def test_the_error_for_an_unknown_format_names_the_known_ones() -> None:
    with pytest.raises(BadSetting, match="zeta"):
        get_edit_format("unknown")


def test_the_model_family_zeta_has_the_format_and_qwen_has_none() -> None:
    assert get_family("zeta").edit_format == "zeta"
    assert get_family("qwen").edit_format is None
