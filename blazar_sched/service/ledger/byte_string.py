# SPDX-License-Identifier: Apache-2.0
"""Strings that every database compares and orders alike, by their bytes.

Otherwise PostgreSQL uses the collation of its locale, and MySQL ignores
trailing blanks.
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


class ByteString(functions.FunctionElement[str]):
    """A string that is compared by its bytes."""

    type = sa.String()
    inherit_cache = True


@compiler.compiles(ByteString)
def _to_sql(element: ByteString, compiling: Any, **kwargs: Any) -> str:
    text = compiling.process(element.clauses, **kwargs)
    return _TEMPLATES[compiling.dialect.name].format(text)
