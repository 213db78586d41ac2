"""Decides where a completion ends, by lines, blocks, repetitions and unmatched brackets."""
