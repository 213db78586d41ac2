"""Levenshtein distance of two texts by a bit-vector algorithm: one step per character.

Hyyrö, "A bit-vector algorithm for computing Levenshtein and Damerau edit distances" (2003), with
Python's integers as vectors of any length.
"""


def edit_distance(one: str, other: str) -> int:
    if not one:
        return len(other)
    places: dict[str, int] = {}
    for index, character in enumerate(one):
        places[character] = places.get(character, 0) | 1 << index
    every, last = (1 << len(one)) - 1, 1 << (len(one) - 1)
    rises, falls, distance = every, 0, len(one)  # of the column, between adjacent rows
    for character in other:
        same = places.get(character, 0)
        diagonal = (((same & rises) + rises) ^ rises) | same | falls
        right_rises, right_falls = falls | (every & ~(diagonal | rises)), rises & diagonal
        distance += bool(right_rises & last) - bool(right_falls & last)
        right_rises = (right_rises << 1 | 1) & every
        right_falls = (right_falls << 1) & every
        rises = right_falls | (every & ~(diagonal | right_rises))
        falls = right_rises & diagonal
    return distance
