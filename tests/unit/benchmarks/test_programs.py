import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import suppress

import pytest

from tests.benchmarks.processes import divided_cores, move_to, num_preempted

pytestmark = pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two cores")


@pytest.fixture
def parent() -> Iterator[subprocess.Popen[str]]:
    """A shell that has printed the process ID of its child."""
    command = "sleep 60 & echo $!; wait"
    with subprocess.Popen(
        ["sh", "-c", command], stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        yield process
        with suppress(ProcessLookupError):  # it had not started its child yet
            os.killpg(process.pid, signal.SIGKILL)


def test_moving_a_process_moves_its_children(parent: subprocess.Popen[str]) -> None:
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    one, _ = divided_cores()

    move_to(one, parent.pid)

    assert os.sched_getaffinity(parent.pid) == os.sched_getaffinity(child) == one
    assert os.sched_getaffinity(0) != one


def test_moving_a_process_moves_its_threads() -> None:
    everywhere = os.sched_getaffinity(0)
    _, others = divided_cores()
    ended = threading.Event()
    thread = threading.Thread(target=ended.wait)
    thread.start()
    try:
        move_to(others, os.getpid())

        assert os.sched_getaffinity(thread.native_id or 0) == others
    finally:
        move_to(frozenset(everywhere), os.getpid())
        ended.set()
        thread.join()


def test_moving_an_ended_process_does_nothing(parent: subprocess.Popen[str]) -> None:
    parent.kill()
    parent.wait()

    move_to(divided_cores()[0], parent.pid)


def test_processes_that_share_a_core_preempt_each_other() -> None:
    one, _ = divided_cores()
    busy = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(2)]
    try:
        for each in busy:
            move_to(one, each.pid)
        before = num_preempted(busy[0].pid)
        give_up_s = time.monotonic() + 20
        while num_preempted(busy[0].pid) < before + 5:
            assert time.monotonic() < give_up_s
            time.sleep(0.05)
    finally:
        for each in busy:
            each.kill()
            each.wait()
