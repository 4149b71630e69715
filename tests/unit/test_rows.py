# SPDX-License-Identifier: Apache-2.0
"""Each row of what is asked for has a test with its number.

The rows are on the contributors' page PAGE: those that have tests beside their
promises, the others in a table of their own.
"""

import collections
import pathlib
import re

TESTS = pathlib.Path(__file__).parents[1]
PAGE = TESTS.parent / 'doc/source/contributor/promises.md'
ROW = r'[CF]\d+'


def marked():
    """Return the rows that tests, classes and files are marked with."""
    return {
        row
        for path in TESTS.rglob('test_*.py')
        for mark in re.findall(
            r'^ *(?:@|pytestmark = )pytest\.mark\.row\(([^)]*)\)',
            path.read_text(), re.M,
        )
        for row in re.findall(r'\w+', mark)
    }


def rows():
    """Return the rows on the page that have tests, and the others."""
    text = PAGE.read_text()
    tested = re.findall(rf'^\| .+ \| ({ROW}(?:, {ROW})*)\b.* \|$', text, re.M)
    return ', '.join(tested).split(', '), re.findall(
        rf'^\| ({ROW}) \| .+ \|$', text, re.M
    )


def test_each_row_with_tests_has_one_and_no_other_row_has():
    tested, _ = rows()
    assert marked() == set(tested)


def test_each_row_is_on_the_page_once():
    found = [row for each in rows() for row in each]
    counts = collections.Counter(row[0] for row in found)
    assert sorted(found) == sorted(
        f'{kind}{n + 1}' for kind, count in counts.items()
        for n in range(count)
    )
