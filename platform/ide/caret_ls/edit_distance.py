"""Levenshtein distance of two texts by a bit-vector algorithm. Pure.

Source: Hyyrö, "A bit-vector algorithm for computing Levenshtein and Damerau edit distances", 2003.
The vectors are Python's integers, which have any length.
"""


def edit_distance(first: str, second: str) -> int:
    """Return the least number of characters to insert, delete or replace to make the texts equal.

    The algorithm computes the usual table of distances, with a row for each character of `first`
    and a column for each character of `second`. It keeps only one column: the differences between
    adjacent rows are 1, 0 or -1, and are stored as bits.
    """
    if not first:
        return len(second)
    positions: dict[str, int] = {}  # of each character in `first`, as a bit vector
    for index, character in enumerate(first):
        positions[character] = positions.get(character, 0) | (1 << index)
    all_rows, last_row = (1 << len(first)) - 1, 1 << (len(first) - 1)
    # Rows of the column whose distance is 1 more, or 1 less, than that of the row before.
    # `distance` is that of the last row.
    rises, falls, distance = all_rows, 0, len(first)
    for character in second:
        matches = positions.get(character, 0)
        # Rows whose distance is that of the row before in the column before.
        diagonal = (((matches & rises) + rises) ^ rises) | matches | falls
        # Rows whose distance is 1 more, or 1 less, than in the column before.
        right_rises, right_falls = falls | (all_rows & ~(diagonal | rises)), rises & diagonal
        distance += bool(right_rises & last_row) - bool(right_falls & last_row)
        # After the shift, each bit is about the row before. Before the first row, the distance
        # rises in each column.
        right_rises = ((right_rises << 1) | 1) & all_rows
        right_falls = (right_falls << 1) & all_rows
        rises = right_falls | (all_rows & ~(diagonal | right_rises))
        falls = right_rises & diagonal
    return distance
