"""Looking up definitions: the questions to the editor, and the definitions that may be sent."""

from pathlib import Path

import pytest

from caret_ls.definitions.definition_lookup import (
    MAX_PENDING,
    DefinitionQuestion,
    Location,
)
from caret_ls.session import Session
from caret_ls.settings import Settings
from caret_ls.text_document import Position
from tests.unit.caret_ls.provider_harness import ManualClock

# A symbol is looked up again after a minute, or after 5 s if no other file defines it.
_AFTER_MAX_AGE_S = 61
_RETRY_AFTER_S = 5
_LINE = "total = price_of(order"
_DEFINITION = "def price_of(order, rate):\n    return order\n"


class Desk:
    """A session with one open file in a repository, and the questions to its editor."""

    def __init__(self, root: Path, *, excluded: tuple[str, ...] = ()) -> None:
        (root / ".git").mkdir()
        self.root = root
        self.clock = ManualClock()
        self.session = Session(Settings(excluded_globs=excluded), self.clock, lambda _status: None)
        self.questions: list[DefinitionQuestion] = []
        self.session.definitions.send_question = self.questions.append
        self.uri = self.write("a.py", _LINE)
        self.session.open(self.uri, "python", _LINE)

    def write(self, name: str, text: str) -> str:
        file = self.root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file.as_uri()

    def look_up(self, units: int = len(_LINE)) -> DefinitionQuestion:
        self.session.look_up_definitions(self.uri, Position(0, units))
        return self.questions[-1]

    async def answer(self, *locations: Location | None) -> None:
        await self.session.definitions.on_answer(self.look_up().token, locations)

    @property
    def definitions(self) -> list[tuple[str, str]]:
        file = self.session.files.get(self.uri)
        assert file is not None
        context = self.session._build_context(file)
        return [(item.path, item.text) for item in context.definitions]


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


async def test_the_symbols_before_the_cursor_are_asked(desk: Desk) -> None:
    question = desk.look_up()

    assert question == DefinitionQuestion(1, desk.uri, (Position(0, 0), Position(0, 8)))


async def test_a_symbol_is_asked_again_only_after_a_while(desk: Desk) -> None:
    desk.look_up()
    desk.look_up()
    assert len(desk.questions) == 1

    desk.clock.now_s += _AFTER_MAX_AGE_S
    desk.look_up()

    assert len(desk.questions) == 2


@pytest.mark.parametrize("is_found_in_file", [False, True])
async def test_a_symbol_not_found_in_another_file_is_asked_again_soon(
    desk: Desk, is_found_in_file: bool
) -> None:
    location = Location(desk.uri, 0) if is_found_in_file else None
    await desk.answer(location, location)
    desk.look_up()
    assert len(desk.questions) == 1

    desk.clock.now_s += _RETRY_AFTER_S
    desk.look_up()

    assert len(desk.questions) == 2


async def test_the_definition_of_another_file_is_sent(desk: Desk) -> None:
    uri = desk.write("shop/prices.py", "RATE = 1\n" + _DEFINITION)

    await desk.answer(None, Location(uri, 1))

    assert desk.definitions == [("shop/prices.py", "def price_of(order, rate):\n")]


async def test_unsaved_text_of_an_open_file_is_used(desk: Desk) -> None:
    uri = desk.write("prices.py", "")
    desk.session.open(uri, "python", _DEFINITION)

    await desk.answer(None, Location(uri, 0))

    assert desk.definitions == [("prices.py", "def price_of(order, rate):\n")]


@pytest.mark.parametrize(
    "name", ["secrets/prices.py", ".env", "id_rsa", "node_modules/prices.js", "x.lock"]
)
async def test_excluded_secret_and_generated_files_are_not_sent(tmp_path: Path, name: str) -> None:
    desk = Desk(tmp_path, excluded=("secrets/**",))

    await desk.answer(None, Location(desk.write(name, _DEFINITION), 0))

    assert desk.definitions == []


@pytest.mark.parametrize("name", ["secrets/prices.py", ".env", "x.lock"])
async def test_an_open_file_that_must_not_be_sent_is_not_sent(tmp_path: Path, name: str) -> None:
    desk = Desk(tmp_path, excluded=("secrets/**",))
    uri = desk.write(name, "")
    desk.session.open(uri, "python", _DEFINITION)

    await desk.answer(None, Location(uri, 0))

    assert desk.definitions == []


async def test_a_file_that_is_excluded_later_is_not_sent_any_more(desk: Desk) -> None:
    await desk.answer(None, Location(desk.write("legal/prices.py", _DEFINITION), 0))
    assert desk.definitions

    desk.session.policies.update(
        {
            "type": "policy",
            "repository": desk.root.name,
            "excluded_globs": ["legal/**"],
            "modes": [],
        }
    )

    assert desk.definitions == []


async def test_files_outside_of_the_repository_are_not_sent(desk: Desk, tmp_path: Path) -> None:
    outside = tmp_path.parent / "outside.py"
    outside.write_text(_DEFINITION)
    (desk.root / "link.py").symlink_to(outside)
    nested = desk.write("nested/prices.py", _DEFINITION)
    (desk.root / "nested" / ".git").mkdir()

    for uri in (outside.as_uri(), (desk.root / "link.py").as_uri(), nested, "http://a/b.py"):
        desk.clock.now_s += _AFTER_MAX_AGE_S
        await desk.answer(None, Location(uri, 0))

    assert desk.definitions == []


async def test_the_files_own_definitions_are_not_sent(desk: Desk) -> None:
    await desk.answer(None, Location(desk.uri, 0))

    assert desk.definitions == []


async def test_an_unknown_or_late_answer_is_ignored(desk: Desk) -> None:
    uri = desk.write("prices.py", _DEFINITION)
    await desk.session.definitions.on_answer(99, [Location(uri, 0)])
    question = desk.look_up()
    desk.session.close(desk.uri)
    await desk.session.definitions.on_answer(question.token, [None, Location(uri, 0)])
    desk.session.open(desk.uri, "python", _LINE)

    assert desk.definitions == []


async def test_only_the_last_questions_wait_for_an_answer(desk: Desk) -> None:
    uri = desk.write("prices.py", _DEFINITION)
    first = desk.look_up()
    for _ in range(MAX_PENDING):
        desk.clock.now_s += _AFTER_MAX_AGE_S
        desk.look_up()

    await desk.session.definitions.on_answer(first.token, [None, Location(uri, 0)])

    assert desk.definitions == []


async def test_nothing_is_asked_while_the_setting_is_off(desk: Desk) -> None:
    await desk.answer(None, Location(desk.write("prices.py", _DEFINITION), 0))
    desk.session.set_up(Settings(definitions=False), None)
    desk.clock.now_s += _AFTER_MAX_AGE_S
    desk.look_up()

    assert len(desk.questions) == 1
    assert desk.definitions == []


async def test_nothing_is_asked_for_an_excluded_file(tmp_path: Path) -> None:
    desk = Desk(tmp_path, excluded=("a.py",))
    desk.session.look_up_definitions(desk.uri, Position(0, len(_LINE)))

    assert desk.questions == []
