"""Rotation of the logs of the programs that `make up` starts."""

from pathlib import Path

from caret.local.processes.log_rotation import read_tail, rotate_at_start, rotate_while_open


def test_a_small_log_is_continued(tmp_path: Path) -> None:
    log_file = tmp_path / "engine.log"
    log_file.write_text("before\n")

    rotate_at_start(log_file, max_bytes=100)

    assert log_file.read_text() == "before\n"


def test_a_large_log_is_rotated_at_the_start(tmp_path: Path) -> None:
    log_file = tmp_path / "engine.log"
    log_file.write_text("x" * 101)

    rotate_at_start(log_file, max_bytes=100)

    assert not log_file.exists()
    assert (tmp_path / "engine.log.1").read_text() == "x" * 101


def test_a_growing_log_is_rotated_while_it_is_open(tmp_path: Path) -> None:
    log_file = tmp_path / "engine.log"
    with log_file.open("a") as writer:
        writer.write("x" * 101)
        writer.flush()

        rotate_while_open(log_file, max_bytes=100)
        writer.write("after")

    assert log_file.read_text() == "after"
    assert (tmp_path / "engine.log.1").read_text() == "x" * 101


def test_the_tail_consists_of_the_last_lines(tmp_path: Path) -> None:
    log_file = tmp_path / "engine.log"
    log_file.write_text("\n".join(str(number) for number in range(10_000)))

    assert read_tail(log_file, max_lines=2) == "9998\n9999"


def test_a_missing_log_has_an_empty_tail(tmp_path: Path) -> None:
    assert read_tail(tmp_path / "absent.log") == ""
