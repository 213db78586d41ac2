"""Levenshtein distance of two texts by a bit-vector algorithm: one step per character.

Hyyrö, "A bit-vector algorithm for computing Levenshtein and Damerau edit distances" (2003), with
Python's integers as vectors of any length.
"""


def edit_distance(first: str, second: str) -> int:
    if not first:
        return len(second)
    positions: dict[str, int] = {}  # of each character in `first`, as a bit vector
    for index, character in enumerate(first):
        positions[character] = positions.get(character, 0) | 1 << index
    mask, last = (1 << len(first)) - 1, 1 << (len(first) - 1)
    rises, falls, distance = mask, 0, len(first)  # of the column, between adjacent rows
    for character in second:
        matches = positions.get(character, 0)
        diagonal = (((matches & rises) + rises) ^ rises) | matches | falls
        right_rises, right_falls = falls | (mask & ~(diagonal | rises)), rises & diagonal
        distance += bool(right_rises & last) - bool(right_falls & last)
        right_rises = (right_rises << 1 | 1) & mask
        right_falls = (right_falls << 1) & mask
        rises = right_falls | (mask & ~(diagonal | right_rises))
        falls = right_rises & diagonal
    return distance
