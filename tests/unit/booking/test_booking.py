# SPDX-License-Identifier: Apache-2.0
"""Leases are added by one path."""

import ast
import pathlib

import blazar_sched

SERVICE = pathlib.Path(blazar_sched.__file__).parent / 'service'
# The packages of the service that may add leases to the ledger.
ADDING = {'booking', 'importing'}


def test_only_bookings_and_the_import_add_leases():
    adding = {
        path.relative_to(SERVICE).parts[0]
        for path in SERVICE.rglob('*.py')
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute)
        and node.attr in ('add_lease', 'add_leases')
    }
    assert adding == ADDING
