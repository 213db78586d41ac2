"""Completions found in the operator's index of public code."""

import random
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caret.foundation.environment import BadSetting
from inference.filtering.build_public_code_index import main, write_index
from inference.filtering.fingerprints import (
    WINDOW_CHARS,
    WINNOW_HASHES,
    RollingHash,
    remove_white_space,
    window_hashes,
    winnow,
)
from inference.filtering.public_code_index import (
    HEADER,
    MIN_OWN_CHARS,
    ActivePublicCodeIndex,
    PublicCodeIndexFile,
    PublicCodeMatcher,
)

WORDS = ["def", "return", "self", "value", "(", ")", ":", "=", "+", "index", "for", "in"]
# A copy of this length is always found: wherever it begins, it contains an indexed window.
CERTAIN_CHARS = WINDOW_CHARS + WINNOW_HASHES - 1


def _code(num_words: int, *, seed: int) -> str:
    """Return random code. Another seed gives other code."""
    rng = random.Random(seed)
    return " ".join(f"{rng.choice(WORDS)}{rng.randrange(100)}" for _ in range(num_words))


PUBLIC = _code(400, seed=3)


@pytest.fixture
def index(tmp_path: Path) -> PublicCodeIndexFile:
    """Write two files to `repositories`, one of them PUBLIC, and return their index."""
    folder = tmp_path / "repositories" / "one"
    folder.mkdir(parents=True)
    (folder / "a.py").write_text(PUBLIC)
    (folder / "b.js").write_text(_code(200, seed=4))
    write_index(tmp_path / "repositories", tmp_path / "index")
    return PublicCodeIndexFile(tmp_path / "index")


def _excerpt(num_normalised_chars: int) -> str:
    return remove_white_space(PUBLIC)[500 : 500 + num_normalised_chars]


def _is_public(index: PublicCodeIndexFile, text: str, *, prefix: str = "") -> bool:
    return PublicCodeMatcher(index, prefix=prefix).feed(text)


def test_a_copy_is_found(index: PublicCodeIndexFile) -> None:
    assert _is_public(index, PUBLIC[700:1_000])


@pytest.mark.parametrize("offset", range(0, 200, 7))
def test_a_long_copy_is_found_at_any_offset(index: PublicCodeIndexFile, offset: int) -> None:
    copied = remove_white_space(PUBLIC)[offset : offset + CERTAIN_CHARS]

    assert _is_public(index, copied)


@pytest.mark.parametrize("offset", range(0, 200, 7))
def test_a_copy_shorter_than_a_window_is_never_found(
    index: PublicCodeIndexFile, offset: int
) -> None:
    copied = remove_white_space(PUBLIC)[offset : offset + WINDOW_CHARS - 1]

    # `x` and `y` make the text longer than a window.
    assert not _is_public(index, f"x{copied}y")


def test_whitespace_does_not_hide_a_copy(index: PublicCodeIndexFile) -> None:
    spread = "\n    ".join(_excerpt(CERTAIN_CHARS))

    assert _is_public(index, spread)


def test_other_code_is_not_public(index: PublicCodeIndexFile) -> None:
    assert not _is_public(index, _code(400, seed=5))


def test_a_growing_copy_is_found(index: PublicCodeIndexFile) -> None:
    matcher = PublicCodeMatcher(index, prefix="")

    matches = [matcher.feed(character) for character in PUBLIC[:800]]

    assert True in matches
    # PUBLIC contains white space, which CERTAIN_CHARS does not count.
    assert matches.index(True) < 2 * CERTAIN_CHARS


def test_a_completion_that_continues_public_code_is_found(index: PublicCodeIndexFile) -> None:
    # A match counts only if at least MIN_OWN_CHARS characters of its window are in the completion,
    # not in the prefix. Only one of WINNOW_HASHES consecutive windows is indexed, so a match is
    # certain only with WINNOW_HASHES - 1 more characters.
    num_own_chars = MIN_OWN_CHARS + WINNOW_HASHES - 1
    text = _excerpt(CERTAIN_CHARS + num_own_chars)

    assert _is_public(index, text[-num_own_chars:], prefix=text[:-num_own_chars])


def test_a_few_words_after_public_code_are_not_public(index: PublicCodeIndexFile) -> None:
    text = _excerpt(CERTAIN_CHARS + 40)  # 40 is fewer than MIN_OWN_CHARS

    assert not _is_public(index, text[-40:], prefix=text[:-40])


@given(st.text(min_size=WINDOW_CHARS, max_size=400))
def test_the_hash_depends_only_on_the_window(text: str) -> None:
    last_hash = list(window_hashes(text))[-1]
    hashes_of_last_window = list(window_hashes(text[-WINDOW_CHARS:]))

    assert hashes_of_last_window == [last_hash]


@given(st.lists(st.integers(min_value=0, max_value=30), max_size=200))
def test_at_least_one_hash_of_each_group_of_consecutive_hashes_is_kept(hashes: list[int]) -> None:
    kept_hashes = set(winnow(hashes))

    groups = [hashes[i : i + WINNOW_HASHES] for i in range(max(1, len(hashes) - WINNOW_HASHES + 1))]
    assert all(kept_hashes & set(group) for group in groups if group)
    assert len(list(winnow(hashes))) <= len(hashes)


def test_an_incomplete_window_has_no_hash() -> None:
    rolling = RollingHash()

    assert [rolling.add("a") for _ in range(WINDOW_CHARS - 1)] == [None] * (WINDOW_CHARS - 1)


def test_an_index_merged_from_several_sorted_parts_equals_one_written_at_once(
    tmp_path: Path, index: PublicCodeIndexFile
) -> None:
    write_index(tmp_path / "repositories", tmp_path / "other", run_hashes=7)

    assert (tmp_path / "other").read_bytes() == (tmp_path / "index").read_bytes()


def test_git_data_other_file_types_large_files_and_links_are_not_indexed(tmp_path: Path) -> None:
    folder = tmp_path / "repositories"
    (folder / ".git").mkdir(parents=True)
    (folder / ".git" / "a.py").write_text(PUBLIC)
    (folder / "data.bin").write_text(PUBLIC)
    (folder / "big.py").write_text(PUBLIC * 1_000)
    (folder / "linked.py").symlink_to(folder / ".git" / "a.py")

    assert write_index(folder, tmp_path / "index") == (0, 0)
    assert len(PublicCodeIndexFile(tmp_path / "index")) == 0


@pytest.mark.parametrize(
    "data", [b"", b"short", bytes(HEADER.size), b"caretpub" + bytes(HEADER.size)]
)
def test_a_file_that_is_no_index_is_rejected(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "index").write_bytes(data)

    with pytest.raises(BadSetting, match=r"^CARET_PUBLIC_CODE_INDEX: "):
        ActivePublicCodeIndex.open(tmp_path / "index")
    # `ActivePublicCodeIndex.open` opens the index of the setting, so its error names the setting.
    # PublicCodeIndexFile also opens indexes that operators put into use on a page, so its error
    # names the path.
    with pytest.raises(BadSetting, match=f"^{re.escape(str(tmp_path))}"):
        PublicCodeIndexFile(tmp_path / "index")


def test_a_truncated_index_is_rejected(tmp_path: Path, index: PublicCodeIndexFile) -> None:
    (tmp_path / "cut").write_bytes((tmp_path / "index").read_bytes()[:-8])

    with pytest.raises(BadSetting, match="not an index of this version"):
        PublicCodeIndexFile(tmp_path / "cut")


def test_the_command_prints_the_size_of_the_index(
    tmp_path: Path, index: PublicCodeIndexFile, capsys: pytest.CaptureFixture[str]
) -> None:
    status = main([str(tmp_path / "repositories"), "--to", str(tmp_path / "again")])

    assert status == 0
    assert f"2 files, {len(index)} hashes" in capsys.readouterr().out


def test_the_command_rejects_a_missing_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(tmp_path / "nowhere"), "--to", str(tmp_path / "index")]) != 0
    assert "is not a folder" in capsys.readouterr().err
