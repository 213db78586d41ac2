"""`file_opened` frames, which report that a file was opened in an editor."""

from tests.fakes.stream_client import open_editor


async def test_an_opened_file_is_warmed_up_without_a_response() -> None:
    async with open_editor() as editor:
        text = "def area(self):\n    return 1\n"
        files = [{"path": "b.py", "text": "b = 1\n"}]
        await editor.opens(path="a.py", text=text, files=files, repository={"name": "shop"})

        (arrival,) = editor.opened

    draft = arrival.draft
    assert (draft.prefix + draft.suffix, draft.path, draft.repository) == (text, "a.py", "shop")
    assert [file.path for file in draft.files] == ["b.py"]
    assert (draft.is_warm_up, draft.trigger) == (True, "prefetch")
    assert editor.frames == []


async def test_an_open_frame_without_text_is_rejected_without_an_id() -> None:
    async with open_editor() as editor:
        await editor.opens(path="a.py")

        assert editor.ends("") == ["invalid_field"]
        assert editor.opened == []
