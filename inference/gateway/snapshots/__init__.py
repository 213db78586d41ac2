"""Tenants, API keys and policies as the gateway knows them: snapshots from Redis, in memory."""
