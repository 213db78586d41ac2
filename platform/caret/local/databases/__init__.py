"""The local Postgres and Valkey servers and their credentials."""
