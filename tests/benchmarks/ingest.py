"""Ingestion: usage records from the Redis stream to the table, through the real worker.

    throughput   The stream already has the records of four tenants, one record in each entry, as
                 gateways send them. The clock runs from the first row to the last.
    faults       Records are sent at a steady rate through a gateway's own journal. Meanwhile the
                 worker, Redis and Postgres are killed (-9), one after the other, and started again.
                 Each record that was sent must be stored exactly once.

    python -m tests.benchmarks.ingest [--records 60000] [--rate 1500] [--seconds 60]

To check only that the benchmark runs: `--records 2000 --rate 200 --seconds 12`.
"""

import argparse
import asyncio
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import cycle, islice
from threading import Thread
from typing import Final

import redis
from redis.asyncio import Redis

from caret.contracts.policy import Mode, Tier
from caret.contracts.usage import (
    USAGE_FIELD,
    USAGE_STREAM,
    CompletionRecord,
    FinishReason,
    encode_records,
)
from caret.foundation.ids import KeyId, TenantId, UserId, new_request_id
from inference.recording.journal import FileJournal
from inference.recording.redis_shipper import RedisShipper
from tests.benchmarks.control_plane import (
    ControlPlane,
    WorkerAndBeat,
    control_plane,
    kill_and_start,
)
from tests.benchmarks.results import Report, say

MIN_RATE: Final = 3_000.0
_NUM_TENANTS: Final = 4
_NUM_USERS: Final = 50  # of each tenant
_LOOK_EVERY_S: Final = 0.2
_BATCHES_PER_S: Final = 20  # the records of a second are sent in as many batches
_TIMEOUT_S: Final = 180.0  # a dead worker's entries are claimed after 30 s
SentIds = dict[str, set[str]]  # request IDs, by tenant


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.ingest")
    parser.add_argument("--records", type=int, default=60_000)
    parser.add_argument("--rate", type=int, default=1_500, help="records a second, under faults")
    parser.add_argument("--seconds", type=int, default=60, help="duration of the load under faults")
    options = parser.parse_args(arguments)
    report = Report("ingest")
    with control_plane() as plane:
        tenants = plane.make_tenants(_NUM_TENANTS)
        _measure_rate(plane, report, _fill_stream(plane, tenants, options.records))
        sent_ids = _ingest_under_faults(plane, tenants, options)
        _compare(plane, report, sent_ids)
    return report.exit_status


def _fill_stream(plane: ControlPlane, tenants: Sequence[str], count: int) -> SentIds:
    say(f"Filling the stream with {count} records")
    sent_ids: SentIds = {tenant: set() for tenant in tenants}
    with redis.Redis.from_url(plane.redis_url) as connection:
        pipeline = connection.pipeline(transaction=False)
        for number, tenant in enumerate(islice(cycle(tenants), count)):
            record = _record(tenant, number)
            sent_ids[tenant].add(record.request_id)
            pipeline.xadd(USAGE_STREAM, {USAGE_FIELD: encode_records([record])})
            if number % 1_000 == 0:
                pipeline.execute()
        pipeline.execute()
    return sent_ids


def _measure_rate(plane: ControlPlane, report: Report, sent_ids: SentIds) -> None:
    count = sum(map(len, sent_ids.values()))
    with plane.run_worker_and_beat():
        _wait(lambda: _num_stored(plane, sent_ids) > 0)
        began_s, before = time.perf_counter(), _num_stored(plane, sent_ids)
        _wait(lambda: _num_stored(plane, sent_ids) >= count)
        took_s = time.perf_counter() - began_s
    rate = (count - before) / took_s
    passed, target = rate >= MIN_RATE, f"at least {MIN_RATE:g}"
    report.judged("rate", rate, "records/s", passed=passed, target=target, records=count)


def _ingest_under_faults(
    plane: ControlPlane, tenants: Sequence[str], options: argparse.Namespace
) -> SentIds:
    sent_ids: SentIds = {tenant: set() for tenant in tenants}
    # The load runs in another thread, because the processes must be started by the main thread:
    # they end with the thread that started them (pdeathsig).
    load = Thread(target=lambda: asyncio.run(_run_gateway(plane, sent_ids, options)))
    with plane.run_worker_and_beat() as workers:
        load.start()
        for service in (workers.worker, plane.valkey, plane.postgres):
            _supervise(options.seconds / 5, workers)  # the kills are spread over the load
            say(f"{service.name} is being killed")
            kill_and_start(service)
        while load.is_alive():
            _supervise(_LOOK_EVERY_S, workers)
        count = sum(map(len, sent_ids.values()))
        say(f"{count} records were sent")
        with suppress(TimeoutError):  # `_compare` reports missing records
            _wait(
                lambda: _num_stored(plane, sent_ids) >= count, while_waiting=workers.restart_ended
            )
        say(f"{workers.num_restarts} processes were restarted")
    return sent_ids


def _supervise(seconds: float, workers: WorkerAndBeat) -> None:
    until_s = time.monotonic() + seconds
    while time.monotonic() < until_s:
        workers.restart_ended()
        time.sleep(_LOOK_EVERY_S)


async def _run_gateway(plane: ControlPlane, sent_ids: SentIds, options: argparse.Namespace) -> None:
    """Send the records as a gateway does."""
    journal = FileJournal(plane.home.paths.home / "journal")
    async with Redis.from_url(plane.redis_url, socket_timeout=2.0) as connection:
        shipper = RedisShipper(connection)
        shipping = asyncio.create_task(journal.run(shipper))
        await _load(journal, sent_ids, options)
        shipping.cancel()
        with suppress(asyncio.CancelledError):
            await shipping
        await journal.close(shipper)


async def _load(journal: FileJournal, sent_ids: SentIds, options: argparse.Namespace) -> None:
    """Send records at a steady rate, and catch up after the event loop was blocked."""
    tenants, number = cycle(sent_ids), 0
    began_s = time.perf_counter()
    while (elapsed_s := time.perf_counter() - began_s) < options.seconds:
        while number < elapsed_s * options.rate:
            record = _record(next(tenants), number)
            journal.append(record)
            sent_ids[record.tenant_id].add(record.request_id)
            number += 1
        await asyncio.sleep(1 / _BATCHES_PER_S)


def _compare(plane: ControlPlane, report: Report, sent_ids: SentIds) -> None:
    missing = duplicates = 0
    for tenant, ids in sent_ids.items():
        with plane.connect_as_tenant(tenant) as connection:
            # Request IDs are in the order of time, so earlier measurements are left out.
            rows = connection.execute(
                "SELECT request_id FROM tenants_usage_record WHERE request_id >= %s", [min(ids)]
            ).fetchall()
        stored_ids = [str(request_id) for (request_id,) in rows]
        missing += len(ids - set(stored_ids))
        duplicates += len(stored_ids) - len(set(stored_ids))
    count = sum(map(len, sent_ids.values()))
    for name, value in (("missing", missing), ("duplicates", duplicates)):
        report.judged(name, value, "records", passed=value == 0, target="none", sent=count)


def _num_stored(plane: ControlPlane, sent_ids: SentIds) -> int:
    """Return how many of the sent records are stored.

    Request IDs are in the order of time, so the records between the lowest and the highest ID are
    counted.
    """
    total = 0
    for tenant, ids in sent_ids.items():
        if not ids:
            continue
        with plane.connect_as_tenant(tenant) as connection:
            row = connection.execute(
                "SELECT count(*) FROM tenants_usage_record WHERE request_id BETWEEN %s AND %s",
                [min(ids), max(ids)],
            ).fetchone()
            total += row[0] if row else 0
    return total


def _wait(
    condition: Callable[[], bool], *, while_waiting: Callable[[], None] = lambda: None
) -> None:
    """Wait until the condition is true.

    Raises TimeoutError.
    """
    deadline_s = time.monotonic() + _TIMEOUT_S
    while not condition():
        while_waiting()
        if time.monotonic() > deadline_s:
            raise TimeoutError
        time.sleep(_LOOK_EVERY_S)


def _record(tenant: str, number: int) -> CompletionRecord:
    user = f"0199aaaa-0000-7000-8000-{number % _NUM_USERS:012x}"
    return CompletionRecord(
        request_id=new_request_id(),
        tenant_id=TenantId(tenant),
        user_id=UserId(user),
        key_id=KeyId(user),
        occurred_at_ms=time.time_ns() // 1_000_000,
        protocol="stream",
        mode=Mode.INLINE,
        language="python",
        tier=Tier.FAST,
        pool="fast",
        replica="10.0.0.1:8000",
        finish_reason=FinishReason.STOP,
        error_code="",
        prompt_tokens=1_900,
        cached_tokens=1_880,
        generated_tokens=12,
        assemble_ms=2.4,
        first_token_ms=43.0,
        engine_ms=40.0,
        total_ms=120.0,
        authenticated_ms=0.2,
        admitted_ms=0.4,
        routed_ms=2.5,
        num_in_flight_at_replica=1,
        editor="vscode",
        model="qwen",
        num_chars=40,
        num_lines=1,
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
