"""Decides on the end of a completion by lines, blocks, repetitions and unmatched brackets."""
