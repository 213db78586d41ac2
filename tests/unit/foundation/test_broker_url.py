from caret.foundation.broker_url import broker_from_redis_url


def test_an_ordinary_address_is_left_alone() -> None:
    assert broker_from_redis_url("rediss://:p@host:6379/2") == "rediss://:p@host:6379/2"


def test_a_socket_is_written_as_celery_wants_it() -> None:
    url = "unix://:secret@/tmp/caret/valkey.sock?db=3"

    assert (
        broker_from_redis_url(url) == "redis+socket://:secret@/tmp/caret/valkey.sock?virtual_host=3"
    )


def test_the_first_database_is_the_default() -> None:
    assert (
        broker_from_redis_url("unix:///run/v.sock") == "redis+socket:///run/v.sock?virtual_host=0"
    )
