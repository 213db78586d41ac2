"""Open files in the order in which they were used, limited in number and size."""

from collections.abc import Collection

from caret_ls.recent_files import MAX_CHARS, MAX_FILE_CHARS, MAX_FILES, RecentFiles


def list_paths(
    recent_files: RecentFiles,
    texts: dict[str, str] | None = None,
    *,
    own: str = "",
    unreadable: Collection[str] = (),
) -> list[str]:
    """Return the paths of the listed files.

    `texts` are the files' texts by URI. `own` is the current file. `unreadable` files have no text.
    """

    def read_file(uri: str) -> str | None:
        if uri in unreadable:
            return None
        return f"text of {uri}\n" if texts is None else texts[uri]

    return [file.path for file in recent_files.list(own, read_file)]


def open_files(*names: str) -> RecentFiles:
    """Open files with these names as paths and URIs, in this order."""
    recent_files = RecentFiles()
    for name in names:
        recent_files.on_open(name, name)
    return recent_files


def test_edited_files_come_first_then_viewed_ones() -> None:
    recent_files = open_files("a", "b", "c", "d")
    recent_files.on_edit("b", at=0, now_s=10.0)
    recent_files.on_edit("a", at=0, now_s=20.0)
    recent_files.on_view("c")

    assert list_paths(recent_files) == ["a", "b", "c", "d"]


def test_the_current_file_and_unreadable_files_are_left_out() -> None:
    assert list_paths(open_files("a", "b", "c"), own="a", unreadable={"c"}) == ["b"]


def test_a_closed_file_is_left_out() -> None:
    recent_files = open_files("a", "b")
    recent_files.on_close("a")
    recent_files.on_edit("a", at=0, now_s=1.0)

    assert list_paths(recent_files) == ["b"]


def test_number_and_size_of_files_are_bounded() -> None:
    names = [str(number) for number in range(50)]
    long_texts = dict.fromkeys(names, "x" * (MAX_CHARS // 6) + "\n")

    assert len(list_paths(open_files(*names))) == MAX_FILES
    assert len(list_paths(open_files(*names), long_texts)) == 5  # the sixth exceeds MAX_CHARS


def test_no_more_files_are_read_than_are_listed() -> None:
    read_uris: list[str] = []

    def read_file(uri: str) -> str:
        read_uris.append(uri)
        return "x\n"

    open_files(*(str(number) for number in range(50))).list("", read_file)

    assert len(read_uris) == MAX_FILES


def test_a_long_file_is_cut_around_its_last_edit_and_left_out_if_it_has_none() -> None:
    text = "".join(f"line {number}\n" for number in range(20_000))
    assert len(text) > MAX_FILE_CHARS
    recent_files = open_files("long", "untouched")
    at = text.index("line 9000\n")
    recent_files.on_edit("long", at=at, now_s=1.0)

    (file,) = recent_files.list("", lambda _: text)

    assert file.path == "long"
    assert file.text.startswith("line ")
    assert "line 9000\n" in file.text
    assert len(file.text) < MAX_FILE_CHARS / 2


def test_blank_files_are_left_out() -> None:
    assert list_paths(open_files("a", "b"), {"a": " \n", "b": "x\n"}) == ["b"]
