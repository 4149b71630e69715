# SPDX-License-Identifier: Apache-2.0
"""Texts that every database compares and orders alike: by their bytes.

Otherwise PostgreSQL goes by the language that it was set up with, and MySQL
overlooks blanks at the end.
"""

from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext import compiler
from sqlalchemy.sql import functions

_TEMPLATES = {
    'sqlite': '{}',
    'postgresql': '({} COLLATE "C")',
    'mysql': 'CAST({} AS BINARY)',
    'mariadb': 'CAST({} AS BINARY)',
}


class Exact(functions.FunctionElement[str]):
    """A text, by its bytes."""

    type = sa.String()
    inherit_cache = True


@compiler.compiles(Exact)
def _to_sql(element: Exact, compiling: Any, **kwargs: Any) -> str:
    text = compiling.process(element.clauses, **kwargs)
    return _TEMPLATES[compiling.dialect.name].format(text)
