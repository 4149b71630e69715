# SPDX-License-Identifier: Apache-2.0
"""Nova's servers."""

from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
import dataclasses
from typing import Any
from urllib import parse

from oslo_utils import strutils

from blazar_sched.domain import duration
from blazar_sched.domain import exception
from blazar_sched.domain import flavor as flavor_rules
from blazar_sched.domain import hints as server_hints
from blazar_sched.domain.flavor import PREEMPTIBLE
from blazar_sched.domain.flavor import RESERVATION
from blazar_sched.domain.hints import Declared
from blazar_sched.service.clients import rest
from blazar_sched.service.clients.glance import Glance

# The first one that shows scheduler hints.
MICROVERSION = '2.100'
# The last one that shows images.
IMAGE_MICROVERSION = '2.35'
# In an image's metadata: which end of a lease it was made for.
_ENDING = 'blazar:ending'
# The most characters of an image's name.
_LONGEST = 255
# What a server is that was shelved, be it still on its host or not.
SHELVED = ('SHELVED', 'SHELVED_OFFLOADED')
# The actions of Nova's that bring a server to another host.
_MOVES = frozenset(
    (
        'evacuate', 'live-migration', 'migrate', 'resize', 'revertResize',
        'unshelve',
    )
)
# What one is that Nova deletes later: its host has it until then, and lists
# have it no more.
SOFT_DELETED = 'SOFT_DELETED'


@dataclasses.dataclass(frozen=True, slots=True)
class Server:
    """A server and what its owner said about it.

    `amounts` and `used` are as in domain.instance;
    `node` is the hostname of the hypervisor it is on, None if on none;
    `start` and `end` are as in domain.hints; `reservation_id` is what it
    *claims* to draw on, whosever that is; `status` and `task` are Nova's;
    `locked` is whether only an administrator may act on it.
    """

    uuid: str
    node: str | None
    project_id: str
    amounts: Mapping[str, int]
    end: int
    reservation_id: str | None
    preemptible: bool
    name: str = ''
    status: str = ''
    task: str | None = None
    locked: bool = False
    user_id: str = ''
    created: int = 0
    start: int | None = None
    lease_name: str = ''
    on_end: str | None = None
    metadata: Mapping[str, str] = dataclasses.field(default_factory=dict)
    used: Mapping[str, int] | None = None


class Servers:
    """What Nova's client does about servers."""

    _rest: rest.Rest
    _glance: Glance | None

    def servers(self, **filters: str) -> Iterator[Server]:
        """Yield the servers of every project that Nova's filters let by.

        :param filters: such as host (the service's) or project_id
        :raises Unavailable: also if a cell with some of them is down
        """
        query = {'all_tenants': '1', 'sort_key': 'uuid', **filters}
        while True:
            page = self._rest.ask(
                f'/servers/detail?{parse.urlencode(query)}',
                microversion=MICROVERSION,
            )
            yield from map(_server, page['servers'])
            if not page.get('servers_links'):
                return
            query['marker'] = page['servers'][-1]['id']

    def server(self, uuid: str) -> Server | None:
        """Return a server of any project, None if there is none.

        :raises Unavailable: also if its cell is down
        """
        answer = self._rest.request(
            'GET',
            f'/servers/{uuid}',
            microversion=MICROVERSION,
            also=(404,),
        )
        shown = rest.document(answer).get('server')
        return shown and _server(shown)

    def has_moved(self, server: Server, since: int) -> bool:
        """Tell whether Nova has moved a server to another host.

        :param since: epoch seconds: a move counts that was over then or later
        :raises Unavailable: if Nova does not answer
        """
        query = parse.urlencode({'changes-since': duration.format_time(since)})
        answer = self._rest.request(
            'GET',
            f'/servers/{server.uuid}/os-instance-actions?{query}',
            also=(404,),
        )
        # An action that has failed has a message.
        return any(
            action['action'] in _MOVES and action['message'] is None
            for action in rest.document(answer).get('instanceActions', ())
        )

    def delete_servers(self, servers: Iterable[Server]) -> bool:
        """Ask Nova to delete servers; it takes its time.

        :returns: True if there was none to delete
        :raises Unavailable: if Nova does not delete some as they are now;
            all others are asked for before
        """
        none = True
        refused = []
        for server in servers:
            none = False
            answer = self._rest.request(
                'DELETE', f'/servers/{server.uuid}', also=(404, 409)
            )
            if answer.status_code == 409:
                refused.append(server.uuid)
        if refused:
            raise exception.Unavailable(
                f'compute does not delete servers now: {", ".join(refused)}'
            )
        return none

    def shelve_servers(self, servers: Iterable[Server]) -> bool:
        """Ask Nova to shelve servers off their hosts; it takes its time.

        One that cannot be shelved as it is now is asked for again with the
        next call.

        :returns: True if there was none on a host, or on its way to one
        """
        none = True
        for server in servers:
            if server.node is None and server.status != 'BUILD':
                continue
            none = False
            # Nova may be told to leave them on their host when shelved.
            shelved = server.status == 'SHELVED'
            self._rest.request(
                'POST',
                f'/servers/{server.uuid}/action',
                json={'shelveOffload' if shelved else 'shelve': None},
                also=(404, 409),
            )
        return none

    def unshelve_server(self, server: Server) -> None:
        """Ask Nova to bring a shelved server back; it takes its time.

        Nothing is asked for of one that is not shelved, or is on its way.
        """
        self._rest.request(
            'POST',
            f'/servers/{server.uuid}/action',
            json={'unshelve': None},
            also=(404, 409),
        )

    def migrate_server(self, server: Server) -> bool:
        """Ask Nova to move a server to another host while it runs.

        It takes its time, and may leave it where it was.

        :returns: False if Nova does not even try
        """
        answer = self._rest.request(
            'POST',
            f'/servers/{server.uuid}/action',
            json={'os-migrateLive': {'host': None, 'block_migration': 'auto'}},
            also=(400, 404, 409),
        )
        return answer.status_code not in (400, 404, 409)

    def set_server_metadata(
        self, server: Server, metadata: Mapping[str, str | None]
    ) -> None:
        """Give a server metadata; None takes away what it has.

        Nova may refuse that: as it is now, or if it has too much already.
        """
        given = {k: v for k, v in metadata.items() if v is not None}
        if given:
            self._rest.request(
                'POST',
                f'/servers/{server.uuid}/metadata',
                json={'metadata': given},
                also=(403, 404, 409),
            )
        for key in metadata.keys() - given:
            self._rest.request(
                'DELETE',
                f'/servers/{server.uuid}/metadata/{parse.quote(key)}',
                also=(404, 409),
            )

    def create_image(
        self, server: Server, name: str, metadata: Mapping[str, str]
    ) -> bool:
        """Make sure that there is an image of a server, with that metadata.

        It takes its time. One of a server that is gone is not made. The image
        of an admin is given to the server's project once it is complete.

        :param name: what is too long for Nova is cut off
        :returns: whether the image is complete
        :raises Unavailable: also if the server cannot be copied as it is now
        """
        name = name[:_LONGEST].rstrip()
        # Nova itself says so of no image of a server that is on a volume.
        mark = {**metadata, 'instance_uuid': server.uuid}
        query = parse.urlencode({'server': server.uuid, 'name': name})
        images = self._rest.ask(
            f'/images/detail?{query}', microversion=IMAGE_MICROVERSION
        )['images']
        known = {
            i['status']: i for i in images
            if mark.items() <= i['metadata'].items()
        }
        if 'ACTIVE' in known:
            if self._glance is not None:
                self._glance.give_image(
                    known['ACTIVE']['id'], server.project_id
                )
            return True
        if 'SAVING' in known:
            return False
        image = {'name': name, 'metadata': mark}
        self._rest.request(
            'POST',
            f'/servers/{server.uuid}/action',
            json={'createImage': image},
            also=(404,),
        )
        return False


def image_mark(reservation_id: str, ending: str) -> dict[str, str]:
    """Return the metadata of an image that is made for the end of a lease.

    :param ending: the lease's: an image for one end is none for another
    """
    return {RESERVATION: reservation_id, _ENDING: ending}


def _server(shown: Mapping[str, Any]) -> Server:
    if 'flavor' not in shown:
        # Better no servers at all than some of which nothing is known.
        raise exception.Unavailable(
            f'compute knows little of server {shown["id"]}: a cell is down'
        )
    specs = shown['flavor'].get('extra_specs', {})
    hints = shown.get('scheduler_hints') or {}
    # Whatever it hints at, a reservation's flavor has it hold a slot of that.
    hints = {name: _single(hint) for name, hint in hints.items()}
    claim = flavor_rules.reservation_id(specs) or hints.get(
        server_hints.RESERVATION
    )
    created = duration.parse_time(shown['created'], 'created')
    declared = _declared(hints, specs, created)
    amounts, used = _amounts(shown)
    return Server(
        uuid=shown['id'],
        node=shown.get('OS-EXT-SRV-ATTR:hypervisor_hostname'),
        project_id=shown['tenant_id'],
        amounts=amounts,
        used=used,
        end=declared.end,
        reservation_id=claim if isinstance(claim, str) else None,
        preemptible=strutils.bool_from_string(
            specs.get(PREEMPTIBLE, '')
        ),
        name=shown.get('name', ''),
        status=shown.get('status', ''),
        task=shown.get('OS-EXT-STS:task_state'),
        locked=bool(shown.get('locked')),
        user_id=shown.get('user_id', ''),
        created=created,
        start=declared.start,
        lease_name=declared.name,
        on_end=declared.on_end,
        metadata=shown.get('metadata') or {},
    )


def _amounts(
    shown: Mapping[str, Any],
) -> tuple[dict[str, int], dict[str, int] | None]:
    """Return what Placement counts, and what Nova does: domain.instance."""
    flavor = shown['flavor']
    vcpus, memory_mb = flavor['vcpus'], flavor['ram']
    # A server that boots from a volume has no image and no root disk.
    root = flavor['disk'] if shown.get('image') else 0
    disks = root, flavor['ephemeral'], flavor['swap']
    amounts = flavor_rules.resources(
        vcpus, memory_mb, flavor_rules.disk_gb(*disks),
        flavor.get('extra_specs', {}),
    )
    return amounts, flavor_rules.figures(vcpus, memory_mb, *disks, amounts)


def _declared(
    hints: Mapping[str, Any], specs: Mapping[str, str], created: int
) -> Declared:
    """Return what a server says of its time; nothing if it is unclear."""
    try:
        return server_hints.read(hints, specs, created)
    except exception.InvalidInput:
        return Declared()


def _single(hint: Any) -> Any:
    """Return a hint's value; Nova shows one given once as a list of one."""
    return hint[0] if isinstance(hint, list) and len(hint) == 1 else hint
