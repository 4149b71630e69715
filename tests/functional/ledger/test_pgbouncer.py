# SPDX-License-Identifier: Apache-2.0
"""The ledger behind PgBouncer, which lends connections for a transaction.

PgBouncer refuses the options of a connection, and what one client sets for a
session another client finds.
"""

import threading

import pytest
import sqlalchemy as sa

from blazar_sched.service.ledger import engine
from blazar_sched.service.ledger import ledger
from tests.services import database
from tests.services import private

CLIENTS, LEASES = 4, 5
IDLE = 'idle_in_transaction_session_timeout'


@pytest.fixture
def url():
    """The URL of an empty database through PgBouncer."""
    server = database.servers().get('postgresql')
    if server is None:
        pytest.skip(f'{database.VARIABLE} names no postgresql')
    with database.made(server) as direct:
        # The lock of an upgrade is of a session, which PgBouncer ends.
        new = ledger.Ledger(direct)
        new.upgrade()
        new.close()
        try:
            bouncer = private.PgBouncer(direct)
        except private.Missing as e:
            pytest.skip(str(e))
        with bouncer:
            yield bouncer.url


@pytest.mark.services
def test_the_ledger_works_and_keeps_its_limits(
    url, open_ledger, nouns, monkeypatch
):
    ledgers = [open_ledger() for _ in range(2)]

    def client(number):
        for _ in range(LEASES):
            ledgers[number % 2].commit(lambda tx: tx.put_lease(nouns.lease()))
            ledgers[number % 2].leases()

    threads = [
        threading.Thread(target=client, args=(number,))
        for number in range(CLIENTS)
    ]
    for each in threads:
        each.start()
    for each in threads:
        each.join(120)

    store = ledgers[0]
    assert len(store.leases()) == CLIENTS * LEASES
    assert store.changes(0)['newest'] == CLIENTS * LEASES
    assert store.check() == []

    def limits(connection):
        return [
            connection.exec_driver_sql(f'SHOW {name}').scalar()
            for name in ('lock_timeout', IDLE)
        ]

    found = store.commit(lambda tx: limits(tx._connection))
    assert found == [f'{engine.LOCK_WAIT}s', f'{engine.IDLE_LIMIT}s']
    # No other transaction on the same connections has these limits.
    other = sa.create_engine(url)
    with other.connect() as connection:
        assert limits(connection) == ['0', '0']
    other.dispose()

    # A writer that stands still is cut off, and tries again.
    monkeypatch.setattr(engine, 'IDLE_LIMIT', 0.5)
    done = threading.Event()
    begun = threading.Event()
    runs = []

    def work(tx):
        runs.append(1)
        begun.set()
        if len(runs) == 1:
            assert done.wait(60)
        tx.put_property('gpu', True)

    slow = threading.Thread(target=store.commit, args=(work,))
    slow.start()
    assert begun.wait(60)
    ledgers[1].commit(lambda tx: tx.put_property('other', True))
    done.set()
    slow.join(60)
    assert len(runs) == 2
    assert store.properties() == {'gpu': True, 'other': True}
