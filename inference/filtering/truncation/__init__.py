"""Where a completion ends: lines, blocks, repetitions, and brackets that the file needs."""
