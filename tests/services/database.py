# SPDX-License-Identifier: Apache-2.0
"""Databases for the tests on a database server."""

from collections.abc import Iterator
import contextlib
import os
import uuid

import sqlalchemy as sa

# Servers, as SQLAlchemy URLs separated by blanks.
VARIABLE = 'BLAZAR_SCHED_TEST_DATABASES'


def servers() -> dict[str, str]:
    """Return the URLs of the servers in the environment, by engine."""
    urls = os.environ.get(VARIABLE, '').split()
    return {sa.make_url(url).get_backend_name(): url for url in urls}


@contextlib.contextmanager
def made(server: str) -> Iterator[str]:
    """Create an empty database; yield its URL, and drop it in the end."""
    name = f'blazar_sched_test_{uuid.uuid4().hex}'
    url = sa.make_url(server)
    engine = sa.create_engine(server, isolation_level='AUTOCOMMIT')
    # Other connections may still be open, if a test failed.
    force = ' WITH (FORCE)' if url.get_backend_name() == 'postgresql' else ''
    with engine.connect() as connection:
        connection.exec_driver_sql(f'CREATE DATABASE {name}')
    try:
        yield url.set(database=name).render_as_string(hide_password=False)
    finally:
        # A new connection: a server that a test killed has lost the old one.
        engine.dispose()
        with engine.connect() as connection:
            connection.exec_driver_sql(f'DROP DATABASE {name}{force}')
        engine.dispose()
