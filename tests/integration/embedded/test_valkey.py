"""The embedded Valkey server: it keeps data after a crash, and requires a password."""

from pathlib import Path
from threading import Thread

import pytest
import redis
from celery import Celery

from caret.foundation.broker_url import broker_from_redis_url
from caret.local.databases.valkey import EmbeddedValkey
from caret.local.paths import EmbeddedPaths
from caret.local.processes.health_checks import is_worker_responding
from tests.stack.services import Services
from tests.stack.waiting import wait_until


@pytest.fixture
def paths(tmp_path: Path) -> EmbeddedPaths:
    return EmbeddedPaths(tmp_path / "home")


def _connect(paths: EmbeddedPaths) -> redis.Redis:
    return redis.Redis.from_url(paths.redis_url.read_text().strip(), decode_responses=True)


def test_synced_writes_survive_a_kill(paths: EmbeddedPaths) -> None:
    with EmbeddedValkey(paths) as valkey, _connect(paths) as client:
        client.set("kept", "yes")
        # Valkey syncs each second (`appendfsync everysec`). Wait up to 60,000 ms until the write is
        # on the disk: in 1 local append-only file, and on 0 replicas.
        assert client.execute_command("WAITAOF", 1, 0, 60_000) == [1, 0]
        valkey.child.kill()

    with EmbeddedValkey(paths), _connect(paths) as client:
        assert client.get("kept") == "yes"


def test_valkey_requires_a_password(paths: EmbeddedPaths) -> None:
    with EmbeddedValkey(paths):
        address = paths.redis_url.read_text().strip()
        without_password = "unix://" + address.partition("@")[2]
        with (
            redis.Redis.from_url(without_password) as stranger,
            pytest.raises(redis.AuthenticationError),
        ):
            stranger.ping()


def test_the_password_is_not_in_the_command_line(paths: EmbeddedPaths) -> None:
    with EmbeddedValkey(paths) as valkey:
        arguments = Path(f"/proc/{valkey.child.pid}/cmdline").read_text()

    assert (paths.secrets / "password-valkey").read_text().strip() not in arguments


def test_valkey_never_evicts_keys(paths: EmbeddedPaths) -> None:
    with EmbeddedValkey(paths), _connect(paths) as client:
        assert client.config_get("maxmemory-policy") == {"maxmemory-policy": "noeviction"}


def test_celery_can_use_valkey_as_its_broker(services: Services) -> None:
    broker = broker_from_redis_url(services.redis_url)
    with Celery(broker=broker).connection_for_write() as connection:
        queue = connection.SimpleQueue("test_celery_can_use_valkey")
        queue.put("hello")

        message = queue.get(timeout=60)

        assert message.payload == "hello"
        message.ack()
        queue.close()


def test_a_callers_setting_overrides_the_default(paths: EmbeddedPaths) -> None:
    with EmbeddedValkey(paths, settings={"maxmemory": "8mb"}), _connect(paths) as client:
        assert client.config_get("maxmemory") == {"maxmemory": str(8 * 1024**2)}


def test_checking_a_worker_raises_no_error_if_valkey_disconnects(paths: EmbeddedPaths) -> None:
    with EmbeddedValkey(paths), _connect(paths) as client:
        killer = Thread(target=_kill_waiting_connections, args=(client,))
        killer.start()
        results = []
        # No worker runs: a check waits for a response until the connection is closed. The check
        # itself gives up soon, so it is repeated until the connection was closed once.
        while killer.is_alive():
            results.append(is_worker_responding(paths, environment={}, worker="nobody@localhost"))
        killer.join()

    assert results
    assert not any(results)


def _kill_waiting_connections(client: redis.Redis) -> None:
    """Close connections that wait for the worker's response."""

    def kill_waiting() -> bool:
        """Return whether any connection was waiting."""
        waiting = [entry for entry in client.client_list() if entry["cmd"] == "brpop"]
        for entry in waiting:
            client.client_kill_filter(_id=entry["id"])
        return bool(waiting)

    wait_until(kill_waiting, timeout_s=60)
