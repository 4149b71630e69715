# SPDX-License-Identifier: Apache-2.0
"""Leases are added by one path."""

import ast
import pathlib

import blazar_sched

PACKAGE = pathlib.Path(blazar_sched.__file__).parent
# The packages that may add leases to the ledger.
ADDING = {'service/booking', 'parts/blazar'}


def test_only_bookings_and_the_import_add_leases():
    adding = {
        '/'.join(path.relative_to(PACKAGE).parts[:2])
        for path in PACKAGE.rglob('*.py')
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute)
        and node.attr in ('add_lease', 'add_leases')
    }
    assert adding == ADDING
