"""Files are split into chunks for the retrieval index, at the definitions of their language."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenants.privacy.retrieval_index.chunking import (
    MAX_CHUNK_CHARS,
    MAX_CHUNKS,
    MAX_LINE_CHARS,
    MAX_LINES,
    WINDOW_LINES,
    Chunk,
    split_into_chunks,
)


def body(template: str, count: int = 20) -> str:
    """Return the template as `count` lines, with the number of the line in each."""
    return "".join(f"{template.format(n)}\n" for n in range(count))


# For each path: the template of a file with two definitions, the line that fills their bodies, and
# the beginning of the second definition. Each definition gets enough lines for a chunk of its own,
# and the file gets too many lines for a single chunk.
LANGUAGES = {
    "a.py": ("def one():\n{}\n\ndef two():\n{}\n", "    a{} = work()", "def two"),
    "a.js": ("function one() {{\n{}}}\n\nfunction two() {{\n{}}}\n", "  work({});", "function two"),
    "a.ts": ("class One {{\n{}}}\n\nclass Two {{\n{}}}\n", "  a{}: number = 1;", "class Two"),
    "a.tsx": ("function One() {{\n{}}}\nfunction Two() {{\n{}}}\n", "  work({});", "function Two"),
    "a.go": (
        "package a\n\nfunc one() {{\n{}}}\n\nfunc two() {{\n{}}}\n",
        "\twork({})",
        "func two",
    ),
    "a.rs": ("fn one() {{\n{}}}\n\nfn two() {{\n{}}}\n", "    work({});", "fn two"),
    "A.java": (
        "class A {{\n  void one() {{\n{}  }}\n\n  void two() {{\n{}  }}\n}}\n",
        "    work({});",
        "void two",
    ),
    "a.c": ("int one(void) {{\n{}}}\n\nint two(void) {{\n{}}}\n", "  work({});", "int two"),
    "a.cpp": ("class One {{\n{}}};\n\nclass Two {{\n{}}};\n", "  int a{};", "class Two"),
    "A.cs": (
        "class A {{\n  void One() {{\n{}  }}\n\n  void Two() {{\n{}  }}\n}}\n",
        "    Work({});",
        "void Two",
    ),
    "a.rb": ("def one\n{}end\n\ndef two\n{}end\n", "  work({})", "def two"),
    "a.php": (
        "<?php\nfunction one() {{\n{}}}\n\nfunction two() {{\n{}}}\n",
        "  work({});",
        "function two",
    ),
    "a.sql": (
        "CREATE TABLE one (\n{}  z int\n);\n\nCREATE TABLE two (\n{}  z int\n);\n",
        "  a{} int,",
        "CREATE TABLE two",
    ),
    "a.css": (".one {{\n{}}}\n\n.two {{\n{}}}\n", "  --a{}: red;", ".two"),
    "a.html": ("<div>\n{}</div>\n<p>\n{}</p>\n", "  <b>some text {}</b>", "<p>"),
    "a.sh": ("one() {{\n{}}}\n\ntwo() {{\n{}}}\n", "  work {}", "two()"),
    "a.yaml": ("one:\n{}two:\n{}", "  key{}: value", "two:"),
    "a.json": ('{{"one": {{\n{}"z": 0}},\n"two": {{\n{}"z": 0}}}}\n', '  "key{}": 1,', '"two"'),
}


@pytest.mark.parametrize("path", LANGUAGES)
def test_a_definition_is_one_chunk(path: str) -> None:
    template, line, second = LANGUAGES[path]
    text = template.format(body(line, 32), body(line, 32))

    chunks = split_into_chunks(path, text)

    (chunk,) = [chunk for chunk in chunks if chunk.text.lstrip().startswith(second)]
    assert chunk.text.count("\n") >= 32


def test_a_file_that_fits_is_one_chunk() -> None:
    text = body("a{} = work()", 30)

    assert split_into_chunks("a.py", text) == [
        Chunk(first_line=1, last_line=30, text=text.rstrip("\n"))
    ]


def test_small_adjacent_definitions_are_joined() -> None:
    text = "".join(f"def name{n}():\n    return work\n\n\n" for n in range(30))

    chunks = split_into_chunks("a.py", text)

    assert all(chunk.text.count("def ") >= 2 for chunk in chunks)
    assert sum(chunk.text.count("def ") for chunk in chunks) == 30


def test_a_long_class_is_split_between_its_methods() -> None:
    methods = "".join(f"    def name{n}(self):\n{body('        work({})', 15)}\n" for n in range(6))

    chunks = split_into_chunks("a.py", f"class Work:\n{methods}")

    # The first chunk is the head of the class with its first method.
    assert [chunk.text.strip().partition("(")[0] for chunk in chunks[1:]] == [
        f"def name{n}" for n in range(1, 6)
    ]


def test_a_comment_belongs_to_the_following_definition() -> None:
    long = f"def one():\n{body('    work({})', 58)}"
    text = f"{long}\n# Why two is there.\ndef two():\n{body('    work({})', 20)}"

    assert split_into_chunks("a.py", text)[1].text.startswith("# Why two is there.\ndef two")


def test_a_file_without_a_grammar_is_split_into_windows_of_lines() -> None:
    chunks = split_into_chunks("notes.txt", body("some words {}", 100))

    assert [(chunk.first_line, chunk.last_line) for chunk in chunks] == [
        (1, 40),
        (41, 80),
        (81, 100),
    ]
    assert WINDOW_LINES == 40


def test_a_long_statement_without_parts_is_split_into_windows() -> None:
    chunks = split_into_chunks("a.py", f'text = """\n{body("some words {}", 150)}"""\n')

    assert len(chunks) > 2
    assert max(chunk.text.count("\n") + 1 for chunk in chunks) <= MAX_LINES


def test_code_with_syntax_errors_is_split() -> None:
    chunks = split_into_chunks("a.py", body("def ((( broken {} ]]", 200))

    num_lines = sum(chunk.text.count("\n") + 1 for chunk in chunks)
    assert num_lines >= 190  # of 200; a chunk of fewer than three lines may be dropped


def test_minified_files_have_no_chunks() -> None:
    assert split_into_chunks("a.js", f"{body('work({})', 50)}{'x' * (MAX_LINE_CHARS + 1)}\n") == []


def test_text_without_words_has_no_chunks() -> None:
    assert split_into_chunks("a.py", "\n" * 200) == []
    assert split_into_chunks("a.csv", body("{},1,2", 100)) == []
    assert split_into_chunks("a.py", "") == []


def test_deeply_nested_code_is_accepted() -> None:
    split_into_chunks("a.py", "(" * 20_000 + "\n" * 70 + ")" * 20_000)
    split_into_chunks("a.js", "[\n" * 20_000)


@given(
    path=st.sampled_from(["a.py", "a.ts", "a.html", "a.unknown", ""]),
    text=st.text(alphabet="ab(){}[]<>:;\"'#/\n \té\ud800", max_size=2_000),
)
def test_chunks_are_lines_of_the_file_in_order(path: str, text: str) -> None:
    lines = text.split("\n")

    chunks = split_into_chunks(path, text)

    end = 0
    for chunk in chunks:
        assert chunk.first_line > end
        end = chunk.last_line
        assert chunk.text == "\n".join(lines[chunk.first_line - 1 : end])
        assert len(chunk.text) <= MAX_CHUNK_CHARS
    assert len(chunks) <= MAX_CHUNKS


def test_code_that_cannot_be_parsed_is_split_into_windows_of_lines() -> None:
    # The YAML parser rejects so many indents, and the C parser would take too many steps.
    deep = "".join(" " * depth + "key:\n" for depth in range(290))
    slow = ("a=>" * 50 + "\n") * 300

    assert split_into_chunks("a.yaml", deep) == split_into_chunks("notes.txt", deep)
    assert split_into_chunks("a.c", slow) == split_into_chunks("notes.txt", slow)
