# SPDX-License-Identifier: Apache-2.0
"""Each requirement of scheduling has a test with its number.

The contributor's guide describes the requirements: see PAGE.
"""

import ast
import collections
import functools
import pathlib
import re

TESTS = pathlib.Path(__file__).parents[1]
PAGE = TESTS.parent / 'doc/source/contributor/requirements.md'

# The features that were found later, and are there.
LATER = (93, 94, 95, 96, 106, 108, 109, 111)
# The requirements of the founding documents, and the features of other
# systems.
ROWS = {
    *(f'C{n}' for n in range(1, 56)),
    *(f'F{n}' for n in (*range(1, 93), *LATER)),
}
# No test can show these: a document, and a list of references.
HISTORY = {'C54', 'C55'}
# The features that are a must, and all features of scheduling.
MUSTS = (
    1, 2, 3, 4, 7, 8, 11, 13, 14, 15, 18, 19, 20, 22, 24, 25, 28, 35,
    *range(38, 59), 61, 62, 64, 68, 70, 72, 76, 78, *range(84, 89), 92,
    *LATER,
)  # fmt: skip
SHOWN = {*(f'C{n}' for n in range(1, 56)), *(f'F{n}' for n in MUSTS)} - HISTORY


@functools.cache
def marked():
    """Return the names of the marked tests, classes and files, by number."""
    found = collections.defaultdict(list)
    for path in TESTS.rglob('test_*.py'):
        for node in ast.walk(ast.parse(path.read_text())):
            for mark in getattr(node, 'decorator_list', ()):
                note(found, mark, node.name)
            if isinstance(node, ast.Assign) and ast.unparse(
                node.targets[0]
            ) == 'pytestmark':
                note(found, node.value, path.name)
    return found


def note(found, mark, name):
    if ast.unparse(mark).startswith('pytest.mark.row('):
        for row in mark.args:
            found[row.value].append(name)


def test_every_row_has_a_test():
    assert SHOWN - marked().keys() == set()


def test_no_test_is_for_a_row_that_is_not_there():
    assert marked().keys() - ROWS == set()


def test_every_row_is_explained():
    lines = re.findall(r'^\| ([CF]\d+) \| \S.* \|$', PAGE.read_text(), re.M)
    assert set(lines) == ROWS
    assert len(lines) == len(ROWS), 'a row has two lines'
