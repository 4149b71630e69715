# SPDX-License-Identifier: Apache-2.0
"""A database that is there and does not do what it should, for a while.

Meanwhile clients work. No answer is 500, no lease is lost or doubled, the
health check and the metric tell while nothing can be written, and writes go on
without help.
"""

import contextlib
import dataclasses
import re
import time

import pytest
import requests
import sqlalchemy as sa

from tests import serving
from tests.fault.site import wait_for
from tests.services import private
from tests.services import proxy as proxies

# Seconds of a trouble in which some writes may pass.
DURING = 2
# Seconds by which the packets of a slow network are late.
LATE = 0.1
# The size of a disk that a server fills soon.
SIZE = '300m'


# From where the user of MariaDB may connect.
HOSTS = ("'%%'", 'localhost')


@dataclasses.dataclass(frozen=True)
class Engine:
    """The statements of an engine; the service is the user svc.

    :ivar sessions: the sessions of the service but for {}
    :ivar each: statements of a session
    :ivar read_only, used_up, hasty: statements that begin and end a trouble;
        one that is hasty cancels each statement after a millisecond
    """

    server: type[private.Server]
    url: str
    prepare: tuple[str, ...]
    own: str
    sessions: str
    kill: str
    cancel: str
    read_only: tuple[tuple[str, ...], tuple[str, ...]]
    used_up: tuple[tuple[str, ...], tuple[str, ...]]
    hasty: tuple[tuple[str, ...], tuple[str, ...]]


def alter(option):
    """Return the statements that alter the user of MariaDB."""
    return tuple(f'ALTER USER svc@{host} WITH {option}' for host in HOSTS)


MARIADB = Engine(
    private.MariaDB, 'mysql+pymysql://svc:p@127.0.0.1:{}/ledger',
    (
        'CREATE DATABASE ledger',
        *(
            statement.format(host)
            for host in HOSTS
            for statement in (
                "CREATE USER svc@{} IDENTIFIED BY 'p'",
                'GRANT ALL ON ledger.* TO svc@{}',
            )
        ),
    ),
    'SELECT CONNECTION_ID()',
    "SELECT id FROM information_schema.processlist WHERE user = 'svc'"
    ' AND id <> {}',
    'KILL {}', 'KILL QUERY {}',
    (('SET GLOBAL read_only = 1',), ('SET GLOBAL read_only = 0',)),
    (alter('MAX_USER_CONNECTIONS 1'), alter('MAX_USER_CONNECTIONS 0')),
    (alter('MAX_STATEMENT_TIME 0.001'), alter('MAX_STATEMENT_TIME 0')),
)
POSTGRESQL = Engine(
    private.PostgreSQL, 'postgresql+psycopg2://svc@127.0.0.1:{}/ledger',
    ('CREATE ROLE svc LOGIN', 'CREATE DATABASE ledger OWNER svc'),
    'SELECT pg_backend_pid()',
    "SELECT pid FROM pg_stat_activity WHERE usename = 'svc' AND pid <> {}",
    'SELECT pg_terminate_backend({})', 'SELECT pg_cancel_backend({})',
    (
        (
            'ALTER SYSTEM SET default_transaction_read_only = on',
            'SELECT pg_reload_conf()',
        ),
        (
            'ALTER SYSTEM RESET default_transaction_read_only',
            'SELECT pg_reload_conf()',
        ),
    ),
    (
        ('ALTER ROLE svc CONNECTION LIMIT 1',),
        ('ALTER ROLE svc CONNECTION LIMIT -1',),
    ),
    (
        ("ALTER ROLE svc SET statement_timeout = '1ms'",),
        ('ALTER ROLE svc RESET statement_timeout',),
    ),
)


class Site:
    """A server of an engine behind a proxy, with its troubles."""

    def __init__(self, engine, server, proxy):
        self._engine = engine
        self._server = server
        self._proxy = proxy
        self._admin = sa.create_engine(
            server.url, isolation_level='AUTOCOMMIT',
            poolclass=sa.pool.NullPool,
        )
        self.sql(*engine.prepare)
        self.url = engine.url.format(proxy.port)
        self.direct = sa.create_engine(
            engine.url.format(server.port), poolclass=sa.pool.NullPool
        )

    def sql(self, *statements):
        with self._admin.connect() as connection:
            for each in statements:
                result = connection.exec_driver_sql(each)
            return result.fetchall() if result.returns_rows else []

    def each_session(self, statement, but=0):
        for id_, in self.sql(self._engine.sessions.format(but)):
            # The session may have ended.
            with contextlib.suppress(sa.exc.DBAPIError):
                self.sql(statement.format(id_))

    @contextlib.contextmanager
    def _set(self, statements):
        begin, end = statements
        self.sql(*begin)
        try:
            yield
        finally:
            self.sql(*end)

    def is_read_only(self):
        return self._set(self._engine.read_only)

    def is_full(self):
        return self._server.full()

    @contextlib.contextmanager
    def has_no_connections(self):
        """The test has the only connection that the user may have."""
        with self.direct.connect() as mine, self._set(self._engine.used_up):
            own = mine.exec_driver_sql(self._engine.own).scalar()
            self.each_session(self._engine.kill, but=own)
            yield

    @contextlib.contextmanager
    def does_not_answer(self):
        self._proxy.block()
        try:
            yield
        finally:
            self._proxy.unblock()

    @contextlib.contextmanager
    def cancels_what_is_long(self):
        with self._set(self._engine.hasty):
            self.each_session(self._engine.kill)
            yield
        self.each_session(self._engine.kill)

    def cancels_statements(self):
        return self._each(self._engine.cancel)

    def kills_connections(self):
        return self._each(self._engine.kill)

    @contextlib.contextmanager
    def _each(self, statement):
        until = time.monotonic() + DURING
        while time.monotonic() < until:
            self.each_session(statement)
            time.sleep(LATE)
        yield

    @contextlib.contextmanager
    def is_slow(self):
        def late(data):
            time.sleep(LATE)
            return proxies.forward

        before, self._proxy.to_client = self._proxy.to_client, late
        try:
            yield
        finally:
            self._proxy.to_client = before

    @contextlib.contextmanager
    def has_a_locked_row(self):
        with self.direct.begin() as connection:
            connection.exec_driver_sql('SELECT * FROM ledger FOR UPDATE')
            yield


TROUBLES = (
    Site.is_read_only, Site.is_full, Site.has_no_connections,
    Site.does_not_answer, Site.cancels_what_is_long, Site.cancels_statements,
    Site.kills_connections, Site.is_slow, Site.has_a_locked_row,
)


class Watched:
    """The health check of the API and the metrics of each manager."""

    def __init__(self, folder, managers):
        self._folder = folder
        self._ports = serving.free_ports(managers)

    def more(self, process):
        """Return the further configuration file of a process."""
        name, _, number = process.rpartition('-')
        if name != 'manager':
            return []
        file = self._folder / f'metrics-{number}.conf'
        port = self._ports[int(number)]
        file.write_text(f'[metrics]\nhost = 127.0.0.1\nport = {port}\n')
        return [file]

    def is_healthy(self, fleet):
        url = f'http://127.0.0.1:{fleet.ports[0]}/healthcheck'
        return requests.get(url, timeout=60).status_code == 200

    def ups(self):
        """Return database_up of each manager."""
        return [
            float(re.search(
                r'^blazar_sched_manager_database_up (\S+)',
                requests.get(
                    f'http://127.0.0.1:{port}/metrics', timeout=60
                ).text,
                re.M,
            )[1])
            for port in self._ports
        ]


@pytest.fixture(params=[MARIADB, POSTGRESQL], ids=['mysql', 'postgresql'])
def site(request):
    engine = request.param
    try:
        server = engine.server()
    except private.Missing as e:
        pytest.skip(str(e))
    troubles = list(TROUBLES)
    if not server.confine(SIZE):
        troubles.remove(Site.is_full)
    with server, proxies.Proxy(server.port) as proxy:
        site = Site(engine, server, proxy)
        site.troubles = troubles
        yield site
        site.direct.dispose()


def test_in_no_trouble_a_lease_is_lost_or_an_answer_500(
    site, bus, new_fleet, tmp_path, record_property
):
    watched = Watched(tmp_path, 2)
    fleet = new_fleet(
        site.url, bus, managers=2, more=watched.more, event_claim_seconds=10
    )
    with fleet.at_work(clients=4) as traffic:
        for trouble in site.troubles:
            name = trouble.__name__
            goes_on(traffic)
            before, waits = traffic.statuses.copy(), len(traffic.waits)
            with trouble(site):
                lasts(name, traffic, fleet, watched)
            ended = time.monotonic()
            goes_on(traffic)
            again = time.monotonic() - ended
            wait_for(f'{name}: healthy', lambda: watched.is_healthy(fleet))
            wait_for(f'{name}: up', lambda: watched.ups() == [1, 1])
            well = time.monotonic() - ended
            assert not traffic.troubles, (name, traffic.troubles)
            record_property(
                f'{site.url.partition(":")[0]} {name}',
                f'{dict(traffic.statuses - before)}, longest '
                f'{max(traffic.waits[waits:]):.1f} s, leases again after '
                f'{again:.1f} s, well after {well:.1f} s',
            )
    fleet.close()


def goes_on(traffic):
    made = len(traffic.made)
    wait_for('new leases', lambda: len(traffic.made) > made + 4)


def lasts(name, traffic, fleet, watched):
    """Wait until a request shows the trouble, or for some seconds."""
    if name in ('is_read_only', 'has_no_connections'):
        wait_for(f'{name}: down', lambda: watched.ups() == [0, 0])
    if name in ('is_read_only', 'has_no_connections', 'does_not_answer'):
        return wait_for(
            f'{name}: unhealthy', lambda: not watched.is_healthy(fleet)
        )
    if name == 'is_full':
        # Pages that deletions free may have room for the next leases, but the
        # deletions themselves then need new pages.
        refused = traffic.total(503)
        return wait_for(
            f'{name}: refused', lambda: traffic.total(503) > refused
        )
    time.sleep(DURING)
