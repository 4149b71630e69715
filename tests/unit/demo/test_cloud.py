# SPDX-License-Identifier: Apache-2.0
"""Nova's databases are SQLite files here, and stand Nova's use of them."""

import sqlite3

from oslo_db import exception
from oslo_db.sqlalchemy import enginefacade
import pytest
import sqlalchemy

from demo import cloud  # noqa: F401


def test_transaction_that_another_has_overtaken_is_a_deadlock(tmp_path):
    path = tmp_path / 'nova.sqlite'
    with sqlite3.connect(path) as made:
        made.execute('PRAGMA journal_mode = WAL')
        made.execute('CREATE TABLE servers (id INTEGER)')
    facade = enginefacade.transaction_context()
    facade.configure(connection=f'sqlite:///{path}')
    engine = facade.writer.get_engine()
    change = sqlalchemy.text('INSERT INTO servers VALUES (1)')
    with engine.connect() as late, engine.connect() as early:
        late.execute(sqlalchemy.text('SELECT * FROM servers')).all()
        early.execute(change)
        early.commit()
        with pytest.raises(exception.DBDeadlock):
            late.execute(change)
