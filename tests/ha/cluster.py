# SPDX-License-Identifier: Apache-2.0
"""Clusters of the servers of Debian, with the configuration of the guide.

Each node is on a machine of its own: see `network`.
"""

from collections.abc import Mapping
from collections.abc import Sequence
import concurrent.futures
import contextlib
import os
import pathlib
import pwd
import re
import shutil
import signal
import socket
from typing import Any
import uuid

import requests
import sqlalchemy as sa

from tests import serving
from tests.fault import site
from tests.ha import network
from tests.services import private

PAGES = pathlib.Path(__file__).parents[2] / 'doc/source/admin/ha'


# What a client sends: an API without Keystone must be addressed as local.
CLIENT = {**serving.ADMIN, 'Host': 'localhost'}
# What the guide says for HAProxy, and for the service.
USERS = '''
CREATE USER haproxy@'%';
CREATE USER blazar_sched@'%' IDENTIFIED BY 'LEDGER_PASS';
GRANT ALL ON *.* TO blazar_sched@'%';
'''

ROLES = '''
CREATE ROLE haproxy LOGIN;
CREATE ROLE replication LOGIN REPLICATION;
CREATE ROLE blazar_sched LOGIN CREATEDB;
SELECT 1
'''


class Node(private.Server):
    """A server on a machine."""

    def __init__(self, machine: str) -> None:
        super().__init__()
        # The usual port, as each machine has its own.
        self.port = type(self).port
        self.machine = machine
        self.address = network.MACHINES[machine]

    def started(self) -> tuple[list[str], dict[str, Any]]:
        user = pwd.getpwnam(private.USER)
        return [
            'nsenter', f'--net=/run/netns/{self.machine}',
            f'--setgid={user.pw_gid}', f'--setuid={user.pw_uid}',
        ], {}

    def signal(self, number: int) -> None:
        """Signal the server, and the children that have sessions of their own.
        """
        children = [
            int(path.parent.name)
            for path in pathlib.Path('/proc').glob('[0-9]*/stat')
            if _parent(path) == self._process.pid
        ]
        super().signal(number)
        for pid in children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def freeze(self) -> None:
        self.signal(signal.SIGSTOP)

    def resume(self) -> None:
        self.signal(signal.SIGCONT)

    def is_in(self) -> bool:
        """Tell whether the node is a full member of its cluster."""
        raise NotImplementedError

    def query(self, statement: str, *values: object) -> Any:
        """Return the first value that the node answers, None without one."""
        return query(self.url, statement, *values)


def _parent(stat: pathlib.Path) -> int:
    try:
        return int(stat.read_text().rpartition(')')[2].split()[1])
    except OSError:
        return 0


def query(url: str, statement: str, *values: object) -> Any:
    """Return the first value that a server answers, None without one."""
    engine = sa.create_engine(
        url, connect_args={'connect_timeout': 2}, isolation_level='AUTOCOMMIT'
    )
    try:
        with engine.connect() as connection:
            return connection.exec_driver_sql(statement, values).scalar()
    except sa.exc.DBAPIError:
        return None
    finally:
        engine.dispose()


class Cluster:
    """Nodes that are started as one cluster, until the exit."""

    node: type[Node]

    def __init__(self, machines: str) -> None:
        self.nodes = [self.node(f'{machines}-{n}') for n in (1, 2, 3)]

    def __enter__(self) -> 'Cluster':
        try:
            self.form()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *exc_info: object) -> None:
        for node in self.nodes:
            node.stop()

    def form(self) -> None:
        """Start the first node, and then the others."""
        first, *others = self.nodes
        first.prepare()
        first.start()
        self.found(first)
        with concurrent.futures.ThreadPoolExecutor() as pool:
            list(pool.map(self.add, others))
        self.wait()

    def found(self, node: Node) -> None:
        """Set up the first node, before there are others."""

    def add(self, node: Node) -> None:
        node.prepare()
        node.start()

    def wait(self) -> None:
        """Wait until each node is a full member of the cluster."""
        site.wait_for(
            'a whole cluster', lambda: all(node.is_in() for node in self.nodes)
        )


class Galera(Node, private.MariaDB):
    package = 'mariadb-server'
    programs = ('mariadbd', 'mariadb-install-db')
    port = 3306
    # Whether this is the first node of a new cluster.
    is_first = False

    @property
    def url(self) -> str:
        return f'mysql+pymysql://blazar_sched:LEDGER_PASS@{self.address}/'

    def command(self) -> list[str]:
        common = [
            'mariadbd', f'--defaults-file={PAGES}/galera.cnf',
            f'--datadir={self._folder}/data',
            f'--socket={self._folder}/socket',
            f'--pid-file={self._folder}/pid',
            f'--wsrep-node-name={self.machine}',
            f'--wsrep-node-address={self.address}',
        ]
        if self.is_first:
            users = self._folder / 'users.sql'
            users.write_text(USERS)
            return [*common, '--wsrep-new-cluster', f'--init-file={users}']
        # As Debian's unit does, so that a node that was killed needs only the
        # transactions that it lacks.
        self.run(*common, '--wsrep-recover')
        log = (self._folder / 'log').read_text(errors='replace')
        found = re.findall(r'Recovered position:? (\S+)', log)
        return [*common, f'--wsrep-start-position={found[-1]}']

    def start(self) -> None:
        super().start()
        self.is_first = False

    def is_in(self) -> bool:
        return self.query(
            'SELECT GROUP_CONCAT(variable_value ORDER BY variable_name) FROM'
            ' information_schema.global_status WHERE variable_name IN'
            " ('wsrep_ready', 'wsrep_cluster_size')"
        ) == '3,ON'


class GaleraCluster(Cluster):
    """Three nodes of Galera; HAProxy lets clients use one of them."""

    node = Galera
    url = f'mysql+pymysql://blazar_sched:LEDGER_PASS@{network.VIRTUAL}:3306/'

    def form(self) -> None:
        self.nodes[0].is_first = True
        super().form()

    def in_use(self) -> Node:
        """Return the node that HAProxy lets clients use."""
        name = query(self.url, 'SELECT @@wsrep_node_name')
        return next(node for node in self.nodes if node.machine == name)

    def not_in_use(self) -> Node:
        used = self.in_use()
        return next(node for node in self.nodes if node is not used)


class PostgreSQL(Node, private.PostgreSQL):
    programs = ('initdb', 'pg_basebackup', 'postgres')
    port = 5432
    # The primary, for a node that is to be its standby.
    primary: 'PostgreSQL | None' = None

    def _find(self, name: str) -> str:
        # Debian's wrapper in PATH knows only the clusters of Debian.
        beside = pathlib.Path(super()._find('initdb')).with_name(name)
        return str(beside) if beside.exists() else super()._find(name)

    @property
    def url(self) -> str:
        return (
            f'postgresql+psycopg2://postgres@{self.address}:{self.port}/'
            'postgres'
        )

    def prepare(self) -> None:
        """Create a new primary, or a copy of the primary."""
        data = self._folder / 'data'
        if self.primary is None:
            super().prepare()
            with (data / 'pg_hba.conf').open('a') as file:
                file.write('host all,replication all 192.0.2.0/24 trust\n')
            return
        shutil.rmtree(data, ignore_errors=True)
        self.run(
            'pg_basebackup', '-h', self.primary.address, '-U', 'replication',
            '-D', str(data), '--checkpoint=fast',
        )
        (data / 'standby.signal').touch()

    def command(self) -> list[str]:
        return [
            'postgres', '-D', f'{self._folder}/data',
            '-k', str(self._folder), '-c', f'cluster_name={self.machine}',
            '-c', f'config_file={PAGES}/postgresql.conf',
        ]

    def is_in(self) -> bool:
        if self.primary is None:
            return True
        return self.query(
            'SELECT 1 FROM pg_stat_wal_receiver WHERE status = %s', 'streaming'
        ) == 1

    def received(self) -> int:
        """Return up to where the node has what its primary has written."""
        return self.query(
            "SELECT pg_wal_lsn_diff(pg_last_wal_receive_lsn(), '0/0')::bigint"
        )


class PostgreSQLCluster(Cluster):
    """A primary with two standbys, one of which has each commit."""

    node = PostgreSQL
    url = (
        'postgresql+psycopg2://blazar_sched:LEDGER_PASS@'
        f'{network.VIRTUAL}:5432/postgres'
    )

    def found(self, node: Node) -> None:
        # Without a standby, other commits would wait for one.
        node.query(f'SET synchronous_commit = local; {ROLES}')

    def add(self, node: Node) -> None:
        node.primary = self.primary
        super().add(node)

    @property
    def primary(self) -> Node:
        return next(node for node in self.nodes if node.primary is None)

    def standby(self) -> Node:
        return next(node for node in self.nodes if node.primary is not None)

    def fail_over(self) -> None:
        """Promote a standby in place of the primary.

        The standby that has received most has every commit that was answered.
        The old primary must be ended, or cut off: the other standby would
        confirm its commits still.
        """
        old = self.primary
        new = max(
            (node for node in self.nodes if node is not old),
            key=PostgreSQL.received,
        )
        new.query('SELECT pg_promote()')
        new.primary = None
        for node in self.nodes:
            if node is not new:
                node.primary = new


class RabbitMQ(Node, private.RabbitMQ):
    programs = ('rabbitmq-server', 'rabbitmqctl')
    port = 5672

    @property
    def url(self) -> str:
        return f'rabbit://blazar_sched:BUS_PASS@{self.address}:{self.port}/'

    def prepare(self) -> None:
        cookie = self._folder / '.erlang.cookie'
        cookie.write_text('A' * 20)
        cookie.chmod(0o400)
        shutil.chown(cookie, private.USER)

    def environment(self) -> Mapping[str, str]:
        return {
            **super().environment(),
            'RABBITMQ_NODENAME': f'rabbit@{self.machine}',
            'RABBITMQ_CONFIG_FILE': f'{PAGES}/rabbitmq.conf',
            'RABBITMQ_NODE_IP_ADDRESS': '',
            'RABBITMQ_DIST_PORT': '25672',
            'RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS': '',
            'ERL_EPMD_ADDRESS': '',
        }

    def enter(self) -> None:
        with socket.create_connection((self.address, self.port), 5):
            pass

    def is_in(self) -> bool:
        try:
            self.run('rabbitmqctl', 'await_online_nodes', '3', '-t', '20')
        except RuntimeError:
            return False
        return True


class RabbitMQCluster(Cluster):
    node = RabbitMQ

    def form(self) -> None:
        super().form()
        for command in (
            'add_user blazar_sched BUS_PASS', 'add_vhost blazar_sched',
            'set_permissions -p blazar_sched blazar_sched .* .* .*',
        ):
            self.nodes[0].run('rabbitmqctl', *command.split())


class HAProxy(private.Server):
    """HAProxy with the configuration of the guide.

    :param apis: the ports of the APIs on this machine, in place of those of
        the guide: an API without Keystone serves only its own machine
    """

    package = 'haproxy'
    programs = ('haproxy',)

    def __init__(self, apis: Sequence[int]) -> None:
        super().__init__()
        text = (PAGES / 'haproxy.cfg').read_text()
        for number, port in enumerate(apis, 1):
            text = text.replace(f'192.0.2.1{number}:1234', f'127.0.0.1:{port}')
        (self._folder / 'haproxy.cfg').write_text(text)

    def command(self) -> list[str]:
        return ['haproxy', '-db', '-f', f'{self._folder}/haproxy.cfg']

    def enter(self) -> None:
        with socket.create_connection((network.VIRTUAL, 1234), 5):
            pass

    def new_database(self, server: Cluster) -> str:
        """Return the URL of a new database, as the service uses it."""
        url = sa.make_url(server.url)
        return site.wait_for(
            'a database', lambda: self._created(url, len(server.nodes))
        )

    def _created(self, url: sa.URL, nodes: int) -> str | None:
        name = f'ledger_{uuid.uuid4().hex}'
        new = url.set(database=name)
        try:
            _execute(url, f'CREATE DATABASE {name}')
            # Until its first checks, HAProxy has all nodes in turn.
            for _ in range(nodes):
                _execute(new, 'SELECT 1')
        except sa.exc.DBAPIError:
            return None
        return new.render_as_string(hide_password=False)


def _execute(url: sa.URL, statement: str) -> None:
    """Execute a statement on a connection of its own."""
    engine = sa.create_engine(url, isolation_level='AUTOCOMMIT')
    try:
        with engine.connect() as connection:
            connection.exec_driver_sql(statement)
    finally:
        engine.dispose()


def answers(url: str) -> bool:
    """Tell whether an API answers through HAProxy."""
    try:
        return requests.get(f'{url}/v1/leases', headers=CLIENT, timeout=10).ok
    except requests.RequestException:
        return False
