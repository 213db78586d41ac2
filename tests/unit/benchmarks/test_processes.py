"""A benchmark moves processes to some of the processor's cores, with their children and threads.

The benchmark also counts how often a process is preempted, and its CPU time.
"""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress

import pytest

from tests.benchmarks.processes import cpu_s, move_to, num_preempted, split_cores

pytestmark = pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two cores")


@pytest.fixture
def parent() -> Iterator[subprocess.Popen[str]]:
    """A shell that has printed the process ID of its child."""
    command = "sleep 60 & echo $!; wait"
    with subprocess.Popen(
        ["sh", "-c", command], stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        yield process
        # A test may kill the shell before it has started `sleep`. Then the group has no process.
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def test_moving_a_process_moves_its_children(parent: subprocess.Popen[str]) -> None:
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    our_cores, _ = split_cores()

    move_to(our_cores, parent.pid)

    assert os.sched_getaffinity(parent.pid) == os.sched_getaffinity(child) == our_cores
    assert os.sched_getaffinity(0) != our_cores  # 0: this process, which was not moved


def test_moving_a_process_moves_its_threads() -> None:
    everywhere = os.sched_getaffinity(0)
    _, other_cores = split_cores()
    stop_event = threading.Event()
    thread = threading.Thread(target=stop_event.wait)
    thread.start()
    try:
        move_to(other_cores, os.getpid())

        assert thread.native_id is not None
        assert os.sched_getaffinity(thread.native_id) == other_cores
    finally:
        move_to(frozenset(everywhere), os.getpid())
        stop_event.set()
        thread.join()


def test_moving_an_ended_process_does_nothing(parent: subprocess.Popen[str]) -> None:
    parent.kill()
    parent.wait()

    move_to(split_cores()[0], parent.pid)


def test_the_cpu_time_of_a_process_includes_ended_children() -> None:
    work = "import time\nwhile time.process_time() < 0.3: pass"
    before_s = cpu_s(os.getpid())

    subprocess.run([sys.executable, "-c", work], check=True)

    assert cpu_s(os.getpid()) - before_s > 0.25  # of the child's 0.3 s


def test_processes_that_share_a_core_preempt_each_other() -> None:
    our_cores, _ = split_cores()
    busy = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(2)]
    try:
        for process in busy:
            move_to(our_cores, process.pid)
        before = num_preempted(busy[0].pid)
        give_up_s = time.monotonic() + 20
        while num_preempted(busy[0].pid) < before + 5:
            assert time.monotonic() < give_up_s
            time.sleep(0.05)
    finally:
        for process in busy:
            process.kill()
            process.wait()
