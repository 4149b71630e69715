# SPDX-License-Identifier: Apache-2.0
"""Each row of what is asked of scheduling has a test that is named for it."""

import ast
import collections
import pathlib

TESTS = pathlib.Path(__file__).parents[1]

# What the founding documents name, and the features beside other systems':
# all of them, and those that scheduling for the future must show.
ROWS = {
    *(f'C{n}' for n in range(1, 56)),
    *(f'F{n}' for n in range(1, 93)),
}
SHOWN = {
    *(f'C{n}' for n in (*range(31, 42), 48, 52, 53)),
    *(f'F{n}' for n in range(38, 58)),
}


def marked():
    """Return the names of the marked tests and classes, by row."""
    found = collections.defaultdict(list)
    for path in TESTS.rglob('test_*.py'):
        for node in ast.walk(ast.parse(path.read_text())):
            for mark in getattr(node, 'decorator_list', ()):
                if ast.unparse(mark).startswith('pytest.mark.row('):
                    for row in mark.args:
                        found[row.value].append(node.name)
    return found


def test_every_row_has_a_test():
    assert SHOWN - marked().keys() == set()


def test_no_test_is_for_a_row_that_is_not_there():
    assert marked().keys() - ROWS == set()
