# SPDX-License-Identifier: Apache-2.0
"""The demonstration in the terminal: start all services, run a scenario."""

from collections.abc import Iterator
from collections.abc import Mapping
import contextlib
import pathlib
import tempfile
import threading
import time

# Imported before any module that imports oslo.messaging: see the docstring of
# demo.cloud.
from demo.cloud import Cloud  # isort: skip

from keystoneauth1 import adapter
from keystoneauth1 import exceptions
from keystoneauth1 import session
from keystoneauth1 import token_endpoint
from rich.console import Console
from rich.table import Table

from blazar_sched.conf import service as service_conf
from blazar_sched.service import assembly
from blazar_sched.service.clients.nova import Nova
from blazar_sched.service.clients.placement import Placement
from demo import world
from demo.cloud import Timeout
from demo.scenario import ADMIN
from demo.scenario import ALICE
from demo.scenario import BOB
from demo.scenario import HOSTS
from demo.scenario import Scenario

PROMISES = {
    'a': 'a bounded instance runs on the reserved host before its window',
    'b': 'an unbounded instance is kept off the reserved host',
    'c': 'in the window only instances of the lease run on the host',
    'd': 'at the end the instances of the lease are deleted, and the host '
    'is free',
}
ENVIRONMENT = """\
export OS_AUTH_TYPE=admin_token
export OS_ENDPOINT=http://127.0.0.1:{port}/v1
export OS_TOKEN=admin

# For the curl commands of the guides, as alice or as bob:
TOKEN=alice:alice
TOKEN=bob:bob
"""


def run(keep: bool, port: int) -> int:
    """Run the demonstration; return 0 only if every promise held."""
    console = Console(highlight=False)
    try:
        return _run(console, keep, port)
    except (Timeout, exceptions.ClientException) as e:
        console.print(f'[red]The demonstration failed[/red]: {e}')
        return 1


def _run(console: Console, keep: bool, port: int) -> int:
    begun = time.monotonic()

    def say(line: str) -> None:
        console.print(f'[dim]+{time.monotonic() - begun:4.0f} s[/dim]  {line}')

    with contextlib.ExitStack() as stack:
        with console.status('starting Nova: API, conductor, scheduler…'):
            cloud = stack.enter_context(_cloud())
        say(f'Nova 34 is up, with computes {", ".join(HOSTS)}')
        api = stack.enter_context(_service(cloud, port))
        say(f'the reservation service is up: http://127.0.0.1:{api}/v1')
        clients = _clients(api)
        scenario = Scenario(cloud, clients, say, console.status)
        held = scenario.play()
        _report(console, scenario)
        if not keep:
            console.print(
                'With [bold]python -m demo --keep[/bold] the service stays '
                'up, with a web page to look at.'
            )
        else:
            scenario.clear()
            world.fill(cloud, clients, scenario.flavor, say)
            console.print(
                'The service stays up; end it with Ctrl-C. In a browser of '
                'this machine, sign in as alice, bob or admin:\n'
            )
            # Not wrapped, because the text is meant to be copied.
            print(f'http://127.0.0.1:{api}/ui/\n')
            console.print(
                'In another terminal, for `openstack reservation …` or '
                '`blazar …`:\n'
            )
            print(ENVIRONMENT.format(port=api), flush=True)
            with contextlib.suppress(KeyboardInterrupt):
                threading.Event().wait()
    return 0 if held else 1


def _cloud() -> Cloud:
    return Cloud(
        HOSTS,
        # The weight must outweigh Nova's own weighers, for which two equal
        # hosts differ by a server.
        options={'lease_gap_weight_multiplier': 10.0},
    )


@contextlib.contextmanager
def _service(cloud: Cloud, port: int) -> Iterator[int]:
    """Run the whole service over SQLite; yield the API's port."""
    with tempfile.TemporaryDirectory(prefix='blazar-sched-') as folder:
        conf = service_conf.load(files=[])
        path = pathlib.Path(folder) / 'ledger.sqlite'
        conf.set_override('connection', f'sqlite:///{path}', 'database')
        conf.set_override('transport_url', 'fake://')
        conf.set_override('port', port, 'api')
        # There is no Keystone in the demonstration.
        conf.set_override('auth_strategy', 'noauth', 'api')
        conf.set_override('sync_interval', 1.0, 'manager')
        # The windows open within seconds, in which no server can be moved, and
        # a project leases more than half of the hosts.
        conf.set_override('unbounded', 'forever', 'manager')
        conf.set_override('enabled_filters', [], 'enforcement')
        service = assembly.start_all(
            conf, Nova(_adapter(cloud, 'compute')),
            Placement(_adapter(cloud, 'placement')),
        )
        try:
            yield service.api.port
        finally:
            service.stop()


def _adapter(cloud: Cloud, service_type: str) -> adapter.Adapter:
    return adapter.Adapter(cloud.session(), service_type=service_type)


def _clients(port: int) -> Mapping[str, adapter.Adapter]:
    """Return a client of the reservation API for each project."""
    endpoint = f'http://127.0.0.1:{port}/v1'
    tokens = {
        ADMIN: 'admin',
        ALICE: 'alice:alice',
        BOB: 'bob:bob',
    }
    return {
        who: adapter.Adapter(
            session.Session(auth=token_endpoint.Token(endpoint, token)),
            service_type='reservation',
        )
        for who, token in tokens.items()
    }


def _report(console: Console, scenario: Scenario) -> None:
    table = Table(title='Placements', title_justify='left')
    for column in ('', 'who', 'asked', 'host', 'why'):
        table.add_column(column)
    for note in scenario.placements:
        style = None if note.held else 'red'
        table.add_row(
            note.chapter, note.who, note.asked, note.host or 'refused',
            note.why, style=style,
        )
    console.print(table)
    taken = max(map(len, HOSTS)) + len('│  │  │')
    console.print(scenario.chart(min(72, console.width - taken)))
    for chapter, promise in PROMISES.items():
        held = scenario.promises.get(chapter, False)
        mark = '[green]held[/green]' if held else '[red]BROKEN[/red]'
        console.print(f'  ({chapter}) {promise}: {mark}')
