"""Pools of engines: what there is, and how text is got out of one."""
