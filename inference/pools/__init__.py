"""Pools of engines: their configuration, their replicas, and generation."""
