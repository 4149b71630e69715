# SPDX-License-Identifier: Apache-2.0
"""Measure what the start and the end of a lease cost the clients.

``python -m tests.standins.costs`` prints the clients' processor time, and the
number of requests, of each event: a lease with one instance reservation on two
hosts. Nova and Placement are stand-ins in another process.
"""

from collections.abc import Iterator
import contextlib
import multiprocessing
from multiprocessing import connection
import statistics
import time
import uuid

from keystoneauth1 import adapter
from keystoneauth1 import token_endpoint

from blazar_sched.domain.flavor import Flavor
from blazar_sched.service.clients import placement
from blazar_sched.service.clients import rest
from blazar_sched.service.clients.nova import Nova
from tests.standins.rest import uuid_of
from tests.standins.served import ServedCloud

HOSTS = ('compute-1', 'compute-2')
LEASES = 40


class Clients:
    def __init__(self, url: str) -> None:
        self.nova = Nova(_api(f'{url}/compute'))
        self.placement = placement.Placement(_api(f'{url}/placement'))

    def start(self, id_: str) -> None:
        slots = placement.resource_class(id_)
        self.placement.create_resource_class(slots)
        made = self.nova.create_aggregate(id_, {'reservation': id_})
        for host in HOSTS:
            self.nova.add_to_aggregate(made, host)
            self.placement.set_inventory(uuid_of(host), host, slots, 1)
        self.nova.create_flavor(
            Flavor(id_, id_, 1, 64, 1, extra_specs={f'resources:{slots}': '1'})
        )
        self.nova.add_flavor_access(id_, 'project')
        for host in HOSTS:
            list(self.nova.servers(host=host))

    def end(self, id_: str) -> None:
        slots = placement.resource_class(id_)
        self.nova.remove_flavor_access(id_, 'project')
        list(self.nova.servers(project_id='project'))
        self.nova.delete_flavor(id_)
        for host in HOSTS:
            self.placement.remove_inventory(host, slots)
        self.placement.delete_resource_class(slots)
        self.nova.delete_aggregate(id_)


def _api(url: str) -> adapter.Adapter:
    auth = token_endpoint.Token(url, 'token')
    return adapter.Adapter(rest.Session(auth=auth))


def _serve(pipe: connection.Connection) -> None:
    with ServedCloud(HOSTS) as cloud:
        pipe.send(cloud.url)
        pipe.recv()


@contextlib.contextmanager
def serving() -> Iterator[str]:
    """Yield the URL of a cloud in a process of its own."""
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.Process(target=_serve, args=(theirs,))
    process.start()
    try:
        yield ours.recv()
    finally:
        ours.send(None)
        process.join()


def main() -> None:
    with serving() as url:
        clients = Clients(url)
        costs: dict[str, list[float]] = {'start': [], 'end': []}
        asked: list[object] = []
        with rest.guarded(lambda: asked.append(None)):
            for number in range(-3, LEASES):
                id_ = str(uuid.uuid4())
                for event, times in costs.items():
                    asked.clear()
                    before = time.thread_time()
                    getattr(clients, event)(id_)
                    # The first ones load the libraries.
                    if number >= 0:
                        times.append(time.thread_time() - before)
                    if number == LEASES - 1:
                        print(
                            f'{event}: {statistics.median(times) * 1e3:.1f} '
                            f'ms, {len(asked)} requests'
                        )


if __name__ == '__main__':
    main()
