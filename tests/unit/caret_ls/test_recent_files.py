"""Open files in the order in which they were used, limited in number and size."""

from collections.abc import Collection

from caret_ls.recent_files import MAX_CHARS, MAX_FILE_CHARS, MAX_FILES, RecentFiles


def paths(recency: RecentFiles, texts: dict[str, str] | None = None, *, own: str = "",
          unreadable: Collection[str] = ()) -> list[str]:  # fmt: skip
    def read_file(uri: str) -> str | None:
        if uri in unreadable:
            return None
        return f"text of {uri}\n" if texts is None else texts[uri]

    return [file.path for file in recency.list(own, read_file)]


def open_files(*names: str) -> RecentFiles:
    recency = RecentFiles()
    for name in names:
        recency.on_open(name, name)
    return recency


def test_edited_files_come_first_then_viewed_ones() -> None:
    recency = open_files("a", "b", "c", "d")
    recency.on_edit("b", at=0, now_s=10.0)
    recency.on_edit("a", at=0, now_s=20.0)
    recency.on_view("c")

    assert paths(recency) == ["a", "b", "c", "d"]


def test_the_current_file_and_unreadable_files_are_left_out() -> None:
    assert paths(open_files("a", "b", "c"), own="a", unreadable={"c"}) == ["b"]


def test_a_closed_file_is_left_out() -> None:
    recency = open_files("a", "b")
    recency.on_close("a")
    recency.on_edit("a", at=0, now_s=1.0)

    assert paths(recency) == ["b"]


def test_number_and_size_of_files_are_bounded() -> None:
    names = [str(number) for number in range(50)]
    long = dict.fromkeys(names, "x" * (MAX_CHARS // 6) + "\n")

    assert len(paths(open_files(*names))) == MAX_FILES
    assert len(paths(open_files(*names), long)) == 5  # the sixth exceeds MAX_CHARS


def test_no_more_files_are_read_than_are_listed() -> None:
    read_uris: list[str] = []

    def read_file(uri: str) -> str:
        read_uris.append(uri)
        return "x\n"

    open_files(*(str(number) for number in range(50))).list("", read_file)

    assert len(read_uris) == MAX_FILES


def test_a_long_file_is_cut_around_the_last_edit() -> None:
    """A long file that was never edited is left out."""
    text = "".join(f"line {number}\n" for number in range(20_000))
    assert len(text) > MAX_FILE_CHARS
    recency = open_files("long", "untouched")
    at = text.index("line 9000\n")
    recency.on_edit("long", at=at, now_s=1.0)

    (file,) = recency.list("", lambda _: text)

    assert file.path == "long"
    assert file.text.startswith("line ")
    assert "line 9000\n" in file.text
    assert len(file.text) < MAX_FILE_CHARS / 2


def test_blank_files_are_left_out() -> None:
    assert paths(open_files("a", "b"), {"a": " \n", "b": "x\n"}) == ["b"]
