"""Conversion of Caret's Redis URLs into the broker URLs that Celery expects."""

from caret.foundation.broker_url import broker_from_redis_url


def test_a_tcp_url_stays_unchanged() -> None:
    assert broker_from_redis_url("rediss://:p@host:6379/2") == "rediss://:p@host:6379/2"


def test_a_socket_url_is_converted_for_celery() -> None:
    url = "unix://:secret@/tmp/caret/valkey.sock?db=3"

    assert (
        broker_from_redis_url(url) == "redis+socket://:secret@/tmp/caret/valkey.sock?virtual_host=3"
    )


def test_a_socket_url_without_a_database_uses_database_zero() -> None:
    assert (
        broker_from_redis_url("unix:///run/v.sock") == "redis+socket:///run/v.sock?virtual_host=0"
    )
