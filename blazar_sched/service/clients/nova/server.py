# SPDX-License-Identifier: Apache-2.0
"""Client of Nova's servers."""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
import dataclasses
from typing import Concatenate
from typing import Literal
from typing import NotRequired
from typing import ParamSpec
from typing import TypedDict

from oslo_log import log

from blazar_sched.domain import duration
from blazar_sched.domain import exception
from blazar_sched.domain import flavor as flavor_rules
from blazar_sched.domain import hints as server_hints
from blazar_sched.domain import pci_alias
from blazar_sched.domain import relocation
from blazar_sched.domain.flavor import RESERVATION
from blazar_sched.domain.hints import Declared
from blazar_sched.domain.pci_alias import Aliases
from blazar_sched.domain.relocation import Features
from blazar_sched.domain.way import COLD
from blazar_sched.domain.way import LIVE
from blazar_sched.service.clients import rest
from blazar_sched.service.clients.glance import Glance
from blazar_sched.service.clients.nova.compute import Compute

LOG = log.getLogger(__name__)
P = ParamSpec('P')

# The first microversion that shows scheduler hints.
MICROVERSION = '2.100'
# The last microversion that shows images.
IMAGE_MICROVERSION = '2.35'
# The key of an image's metadata that names the lease end of the image.
_ENDING = 'blazar:ending'
# The maximum number of characters of an image's name.
_MAX_IMAGE_NAME = 255
# The statuses of a shelved server, still on its host or offloaded.
SHELVED = ('SHELVED', 'SHELVED_OFFLOADED')
# The actions of Nova that move a server to another host.
_MOVES = frozenset(
    (
        'evacuate', 'live-migration', 'migrate', 'resize', 'revertResize',
        'unshelve',
    )
)
# The status of a server for which an action has failed. Nova refuses to shelve
# such a server.
ERROR = 'ERROR'
# The status of a server that Nova deletes later: the server stays on its host
# until then, but lists of servers omit it.
SOFT_DELETED = 'SOFT_DELETED'
# The status of a server that has been resized or migrated, until that is
# confirmed: both hosts have room for the server.
VERIFY_RESIZE = 'VERIFY_RESIZE'


class _Flavor(TypedDict):
    vcpus: int
    ram: int
    disk: int
    ephemeral: int
    swap: int
    extra_specs: NotRequired[dict[str, str]]


class _Image(TypedDict):
    properties: NotRequired[dict[str, str]]


# What is read of a server as Nova shows it. A server that boots from a volume
# has an empty text as its image.
_Shown = TypedDict('_Shown', {
    'id': str,
    'tenant_id': str,
    'created': str,
    'flavor': _Flavor,
    'image': NotRequired[_Image | Literal['']],
    'scheduler_hints': NotRequired[dict[str, object]],
    'name': NotRequired[str],
    'status': NotRequired[str],
    'user_id': NotRequired[str],
    'locked': NotRequired[bool],
    'metadata': NotRequired[dict[str, str]],
    'OS-EXT-SRV-ATTR:hypervisor_hostname': NotRequired[str | None],
    'OS-EXT-STS:task_state': NotRequired[str | None],
})


@dataclasses.dataclass(frozen=True, slots=True)
class Server:
    """A server with the data that its owner has declared.

    `amounts` and `used` are as in domain.instance; `node` is the hostname of
    the server's hypervisor, None without a hypervisor; `start` and `end` are
    as in domain.hints; `reservation_id` is the reservation that the server
    *claims* to use, whoever owns the reservation; `status` and `task` are
    Nova's; `locked` is whether only an administrator may act on the server;
    `features` decide whether the server may be relocated; `preempt_policy` is
    what is done with a preemptible server that has to go, as in domain.flavor.
    `bare_metal` is whether the server is on a node of Ironic, if the node has
    been looked up: such a server can be neither moved nor shelved.
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
    features: Features | None = None
    preempt_policy: str | None = None
    bare_metal: bool = False

    @property
    def is_copied(self) -> bool:
        """Whether Nova is making an image of the server."""
        return (self.task or '').startswith('image_')


class Servers(Compute):
    """The part of the Nova client that handles servers."""

    _glance: Glance | None
    _aliases: Aliases

    def servers(self, **filters: str) -> Iterator[Server]:
        """Return the servers of all projects that match Nova's filters.

        :param filters: such as host (the service's) or project_id
        :raises Unavailable: also if a cell with some of the servers is down
        """
        found = rest.pages(
            self._compute, '/servers/detail', 'servers', MICROVERSION,
            all_tenants='1', sort_key='uuid', **filters,
        )
        return (_server(shown, self._aliases) for shown in found)

    def server(self, uuid: str) -> Server | None:
        """Return a server of any project, None if there is no such server.

        :raises Unavailable: also if the server's cell is down
        """
        with rest.tolerating(404):
            answer = self._compute.get(
                f'/servers/{uuid}', microversion=MICROVERSION
            )
            return _server(answer.json()['server'], self._aliases)
        return None

    def has_moved(self, server: Server, since: int) -> bool:
        """Return whether Nova has moved a server to another host.

        :param since: epoch seconds; a move counts if it ended then or later
        :raises Unavailable: if Nova does not answer
        """
        with rest.tolerating(404):
            actions = self._nova.instance_action.list(
                server.uuid, changes_since=duration.format_time(since)
            )
            # An action that has failed has a message.
            return any(
                each.action in _MOVES and each.message is None
                for each in actions
            )
        return False

    def delete_servers(self, servers: Iterable[Server]) -> bool:
        """Ask Nova to delete servers, which Nova does asynchronously.

        Nova would keep a server on its host for `reclaim_instance_interval`,
        unless the deletion is forced.

        :returns: True if there was no server to delete
        :raises Unavailable: if Nova refuses to delete some servers in their
            present state; the deletion of all others is requested before
        """
        none = True
        refused = []
        for server in servers:
            none = False
            with rest.tolerating(404), rest.tolerating(409) as conflicts:
                _request(server, self._nova.servers.force_delete)
            if conflicts:
                refused.append(server.uuid)
        if refused:
            raise exception.Unavailable(
                f'Nova refused to delete servers: {", ".join(refused)}',
                service='compute', refused=True,
            )
        return none

    def shelve_servers(self, servers: Iterable[Server]) -> bool:
        """Ask Nova to shelve and offload servers, done asynchronously.

        A server that cannot be shelved in its present state is requested
        again with the next call.

        :returns: True if no server was on a host, or on its way to a host
        """
        none = True
        for server in servers:
            if server.node is None and server.status != 'BUILD':
                continue
            none = False
            # Nova may be configured to leave shelved servers on their hosts.
            nova = self._nova.servers
            shelved = server.status == 'SHELVED'
            with rest.tolerating(404, 409):
                _request(
                    server, nova.shelve_offload if shelved else nova.shelve
                )
        return none

    def unshelve_server(self, server: Server) -> None:
        """Ask Nova to unshelve a server, which Nova does asynchronously.

        Nothing happens to a server that is not shelved, or that is already
        being unshelved.
        """
        with rest.tolerating(404, 409):
            _request(server, self._nova.servers.unshelve)

    def migrate_server(
        self, server: Server, service_name: str | None = None, way: str = LIVE
    ) -> bool:
        """Ask Nova to migrate a server to another host.

        Nova migrates asynchronously, and may leave the server where it is. A
        cold migration ends with the status VERIFY_RESIZE.

        :param service_name: of the host, None to let nova-scheduler choose
        :param way: LIVE or COLD, as in domain.way
        :returns: False if Nova does not attempt the migration
        """
        nova = self._nova.servers
        with rest.tolerating(400, 404, 409):
            if way == COLD:
                _request(server, nova.migrate, service_name)
            else:
                _request(server, nova.live_migrate, service_name, 'auto')
            return True
        return False

    def confirm_migration(self, server: Server) -> None:
        """Ask Nova to give up the place that a server has left.

        Nothing happens to a server without the status VERIFY_RESIZE.
        """
        with rest.tolerating(400, 404, 409):
            _request(server, self._nova.servers.confirm_resize)

    def set_server_metadata(
        self, server: Server, metadata: Mapping[str, str | None]
    ) -> None:
        """Set metadata of a server; a value of None deletes the key.

        Nova may refuse the metadata because of the server's state, or because
        the server already has too many metadata keys.
        """
        given = {k: v for k, v in metadata.items() if v is not None}
        if given:
            with rest.tolerating(403, 404, 409):
                self._nova.servers.set_meta(server.uuid, given)
        for key in metadata.keys() - given:
            with rest.tolerating(404, 409):
                self._nova.servers.delete_meta(server.uuid, [key])

    def create_image(
        self, server: Server, name: str, metadata: Mapping[str, str]
    ) -> bool:
        """Ensure that there is an image of a server with given metadata.

        Nova creates images asynchronously. No image is created of a server
        that is gone. The image of an admin is given to the server's project
        once the image is complete.

        :param name: the image's name, truncated if too long for Nova
        :returns: whether the image is complete
        :raises Unavailable: also if the server cannot be copied in its
            present state
        """
        name = name[:_MAX_IMAGE_NAME].rstrip()
        # Nova itself does not set instance_uuid on the image of a server that
        # is on a volume.
        mark = {**metadata, 'instance_uuid': server.uuid}
        images = self._compute.get(
            '/images/detail', params={'server': server.uuid, 'name': name},
            microversion=IMAGE_MICROVERSION,
        )
        known = {
            i['status']: i for i in images.json()['images']
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
        with rest.tolerating(404):
            _request(server, self._nova.servers.create_image, name, mark)
        return False


def _request(
    server: Server, action: Callable[Concatenate[str, P], object],
    *args: P.args, **kwargs: P.kwargs,
) -> None:
    LOG.info(
        'Requesting %s of server %s of project %s on host %s', action.__name__,
        server.uuid, server.project_id, server.node,
    )
    action(server.uuid, *args, **kwargs)


def image_mark(reservation_id: str, ending: str) -> dict[str, str]:
    """Return the metadata of an image created for the end of a lease.

    :param ending: identifies the end of the lease: an image for one end is
        not valid for another end
    """
    return {RESERVATION: reservation_id, _ENDING: ending}


def _server(shown: _Shown, aliases: Aliases) -> Server:
    if 'flavor' not in shown:
        # Returning no servers is safer than returning incomplete servers.
        raise exception.Unavailable(
            f'Nova returned a part of server {shown["id"]}: a cell is down',
            service='compute',
        )
    specs = shown['flavor'].get('extra_specs', {})
    # The flavor of a reservation makes the server hold a slot of that
    # reservation, whatever reservation the hints name.
    hints = server_hints.of_server(shown.get('scheduler_hints'))
    claim = flavor_rules.reservation_id(specs) or hints.get(
        server_hints.RESERVATION
    )
    created = duration.parse_time(shown['created'], 'created')
    declared = _declared(hints, specs, created)
    amounts, used = _amounts(shown, aliases)
    return Server(
        uuid=shown['id'],
        node=shown.get('OS-EXT-SRV-ATTR:hypervisor_hostname'),
        project_id=shown['tenant_id'], amounts=amounts, used=used,
        end=declared.end,
        reservation_id=claim if isinstance(claim, str) else None,
        preemptible=flavor_rules.is_preemptible(specs),
        preempt_policy=flavor_rules.preempt_policy(specs),
        name=shown.get('name', ''), status=shown.get('status', ''),
        task=shown.get('OS-EXT-STS:task_state'),
        locked=bool(shown.get('locked')), user_id=shown.get('user_id', ''),
        created=created, start=declared.start, lease_name=declared.name,
        on_end=declared.on_end, metadata=shown.get('metadata') or {},
        features=_features(shown, hints),
    )


def _features(shown: _Shown, hints: Mapping[str, object]) -> Features:
    flavor = shown['flavor']
    image = shown.get('image') or _Image()
    properties = image.get('properties') or {}
    hint = hints.get(server_hints.MOVABLE)
    return Features(
        extra_specs=flavor.get('extra_specs', {}),
        image_properties={
            name: properties[name] for name in relocation.IMAGE_PROPERTIES
            if name in properties
        },
        hint=None if hint is None else str(hint), memory_mb=flavor['ram'],
        local_disk=bool(
            image and flavor['disk'] or flavor['ephemeral'] or flavor['swap']
        ),
        devices=pci_alias.EXTRA_SPEC in flavor.get('extra_specs', {}),
    )


def _amounts(
    shown: _Shown, aliases: Aliases
) -> tuple[dict[str, int], dict[str, int] | None]:
    """Return the amounts of Placement and of Nova; see domain.instance."""
    flavor = shown['flavor']
    vcpus, memory_mb = flavor['vcpus'], flavor['ram']
    # A server that boots from a volume has no image and no root disk.
    root = flavor['disk'] if shown.get('image') else 0
    disks = root, flavor['ephemeral'], flavor['swap']
    amounts = flavor_rules.resources(
        vcpus, memory_mb, flavor_rules.disk_gb(*disks),
        pci_alias.expanded(flavor.get('extra_specs', {}), aliases),
    )
    return amounts, flavor_rules.figures(vcpus, memory_mb, *disks, amounts)


def _declared(
    hints: Mapping[str, object], specs: Mapping[str, str], created: int
) -> Declared:
    """Return a server's declared times, empty if the hints are invalid."""
    try:
        return server_hints.read(hints, specs, created)
    except exception.InvalidInput:
        return Declared()
