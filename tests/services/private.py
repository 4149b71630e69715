# SPDX-License-Identifier: Apache-2.0
"""Private servers, started from installed programs, on free ports.

The servers keep their data over a restart, so a test may kill them. Each runs
as an unprivileged user: most servers refuse to run as root.
"""

from collections.abc import Iterator
from collections.abc import Mapping
import contextlib
import glob
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from typing import Any

import sqlalchemy as sa

from tests import serving
from tests.services import broker

# Seconds until a started server accepts a login.
PATIENCE = 240
USER = 'nobody'
PLACES = (
    os.environ.get('PATH', os.defpath), '/usr/sbin', '/usr/lib/rabbitmq/bin',
    *sorted(glob.glob('/usr/lib/postgresql/*/bin'), reverse=True),
)


class Missing(Exception):
    """A server is not installed."""


class Server:
    """A private server.

    A subclass creates the data, starts the server, and logs in. `url` is for
    clients.
    """

    package: str
    programs: tuple[str, ...]

    def __init__(self) -> None:
        self.port = serving.free_port()
        self._programs = {name: self._find(name) for name in self.programs}
        # The paths of its sockets must be short.
        self._folder = pathlib.Path(tempfile.mkdtemp(prefix='bs-', dir='/tmp'))
        self._process: subprocess.Popen[bytes] | None = None
        if os.geteuid() == 0:
            shutil.chown(self._folder, USER)

    def _find(self, name: str) -> str:
        found = shutil.which(name, path=os.pathsep.join(PLACES))
        if found is None:
            raise Missing(
                f'{name} is not installed: apt-get install {self.package}'
            )
        return os.path.realpath(found)

    @property
    def url(self) -> str:
        raise NotImplementedError

    def confine(self, size: str) -> bool:
        """Keep the data on a disk of this size, if this user may mount one."""
        mount = ['mount', '-t', 'tmpfs', '-o', f'size={size},mode=755', 'none']
        done = subprocess.run([*mount, self._folder], capture_output=True)
        if not done.returncode:
            shutil.chown(self._folder, USER)
        return not done.returncode

    @contextlib.contextmanager
    def full(self) -> Iterator[None]:
        """Fill the disk of `confine`, and keep it full."""
        ends = threading.Event()
        filler = threading.Thread(target=self._fill, args=(ends,))
        filler.start()
        try:
            yield
        finally:
            ends.set()
            filler.join()
            (self._folder / 'filler').unlink()

    def _fill(self, ends: threading.Event) -> None:
        with (self._folder / 'filler').open('ab', buffering=0) as file:
            while not ends.wait(0.01):
                with contextlib.suppress(OSError):
                    while file.write(b' ' * 4096):
                        pass

    def prepare(self) -> None:
        """Create the initial data."""

    def command(self) -> list[str]:
        raise NotImplementedError

    def environment(self) -> Mapping[str, str]:
        return {}

    def enter(self) -> None:
        """Log in as a client, or raise."""
        raise NotImplementedError

    def __enter__(self) -> 'Server':
        try:
            self.prepare()
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start the server on its data, and wait until it accepts a login."""
        self._process = self._popen(*self.command())
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                return self.enter()
            except Exception:
                over = time.monotonic() > deadline
                if over or self._process.poll() is not None:
                    raise RuntimeError(self._log()) from None
            time.sleep(0.1)

    def signal(self, number: int) -> None:
        """Send a signal to the server and to its child processes."""
        assert self._process is not None
        os.killpg(self._process.pid, number)

    def kill(self) -> None:
        """Kill the server as a power cut would; `start` restarts it."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                self.signal(signal.SIGKILL)
            self._process.wait()
            self._process = None

    def stop(self) -> None:
        """Stop the server and remove its data."""
        self.kill()
        if self._folder.is_mount():
            subprocess.run(['umount', '-l', self._folder], check=True)
        shutil.rmtree(self._folder, ignore_errors=True)

    def run(self, *command: str) -> None:
        """Run a program of the server until it exits."""
        process = self._popen(*command)
        if process.wait(PATIENCE):
            raise RuntimeError(self._log())

    def _popen(self, *command: str) -> subprocess.Popen[bytes]:
        name, *arguments = command
        before, options = self.started()
        with open(self._folder / 'log', 'ab') as log:
            return subprocess.Popen(
                [*before, self._programs[name], *arguments], cwd=self._folder,
                env={
                    **os.environ, 'HOME': str(self._folder),
                    'TMPDIR': str(self._folder), **self.environment(),
                },
                stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True, **options
            )

    def started(self) -> tuple[list[str], dict[str, Any]]:
        """Return the words before a command, and the options of Popen."""
        if os.geteuid() != 0:
            return [], {}
        return [], {'user': USER, 'group': 'nogroup', 'extra_groups': []}

    def _log(self) -> str:
        end = (self._folder / 'log').read_text(errors='replace')[-3000:]
        return f'{type(self).__name__} does not work:\n{end}'


class _Database(Server):
    def enter(self) -> None:
        engine = sa.create_engine(self.url)
        with engine.connect():
            pass
        engine.dispose()


class MariaDB(_Database):
    package = 'mariadb-server'
    programs = ('mariadbd', 'mariadb-install-db')

    @property
    def url(self) -> str:
        return f'mysql+pymysql://root@127.0.0.1:{self.port}/'

    def prepare(self) -> None:
        self.run(
            'mariadb-install-db', '--no-defaults',
            f'--datadir={self._folder}/data',
            '--auth-root-authentication-method=normal', '--skip-test-db',
        )

    def command(self) -> list[str]:
        return [
            'mariadbd', '--no-defaults', f'--datadir={self._folder}/data',
            f'--socket={self._folder}/socket',
            f'--pid-file={self._folder}/pid', '--bind-address=127.0.0.1',
            f'--port={self.port}',
        ]


class PostgreSQL(_Database):
    package = 'postgresql'
    programs = ('initdb', 'postgres')

    @property
    def url(self) -> str:
        return f'postgresql+psycopg2://postgres@127.0.0.1:{self.port}/postgres'

    def prepare(self) -> None:
        self.run(
            'initdb', '--auth=trust', '--username=postgres',
            f'--pgdata={self._folder}/data',
        )

    def command(self) -> list[str]:
        return [
            'postgres',
            '-D', f'{self._folder}/data',
            '-k', str(self._folder),
            '-h', '127.0.0.1',
            '-p', str(self.port),
        ]  # fmt: skip


class PgBouncer(_Database):
    """PgBouncer with as many connections as transactions need, and no more.

    :param database: the URL of the database behind it
    """

    package = 'pgbouncer'
    programs = ('pgbouncer',)

    def __init__(self, database: str) -> None:
        super().__init__()
        self._database = sa.make_url(database)

    @property
    def url(self) -> str:
        return self._database.set(
            host='127.0.0.1', port=self.port
        ).render_as_string(hide_password=False)

    def prepare(self) -> None:
        to = self._database
        password = f' password={to.password}' if to.password else ''
        (self._folder / 'ini').write_text(
            '[databases]\n'
            f'* = host={to.host} port={to.port or 5432} user={to.username}'
            f'{password}\n'
            '[pgbouncer]\nlisten_addr = 127.0.0.1\n'
            f'listen_port = {self.port}\nauth_type = any\n'
            'pool_mode = transaction\nunix_socket_dir =\n'
        )

    def command(self) -> list[str]:
        return ['pgbouncer', f'{self._folder}/ini']


class RabbitMQ(Server):
    package = 'rabbitmq-server'
    programs = ('rabbitmq-server',)

    @property
    def url(self) -> str:
        return f'rabbit://guest:guest@127.0.0.1:{self.port}/'

    def command(self) -> list[str]:
        return ['rabbitmq-server']

    def _find(self, name: str) -> str:
        # The wrapper in PATH insists on the system's own user and folders.
        inner = f'/usr/lib/rabbitmq/bin/{name}'
        return inner if os.path.exists(inner) else super()._find(name)

    def environment(self) -> Mapping[str, str]:
        return {
            'RABBITMQ_NODENAME': f'{self._folder.name}@localhost',
            # This replaces the system's file, which may set ports and takes
            # precedence.
            'RABBITMQ_CONFIG_FILE': f'{self._folder}/rabbitmq',
            'RABBITMQ_CONF_ENV_FILE': f'{self._folder}/environment',
            'RABBITMQ_NODE_IP_ADDRESS': '127.0.0.1',
            'RABBITMQ_NODE_PORT': str(self.port),
            'RABBITMQ_DIST_PORT': str(serving.free_port()),
            'RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS': (
                '-kernel inet_dist_use_interface {127,0,0,1}'
            ),
            'ERL_EPMD_ADDRESS': '127.0.0.1',
            'RABBITMQ_MNESIA_BASE': f'{self._folder}/data',
            'RABBITMQ_LOG_BASE': str(self._folder),
            'RABBITMQ_ENABLED_PLUGINS_FILE': f'{self._folder}/plugins',
        }

    def enter(self) -> None:
        broker.enter(self.url)
