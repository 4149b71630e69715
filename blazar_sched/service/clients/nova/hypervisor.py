# SPDX-License-Identifier: Apache-2.0
"""Client of Nova's hypervisors."""

from collections.abc import Iterator
from collections.abc import Mapping
import dataclasses
import json
from typing import TYPE_CHECKING
import uuid

from oslo_utils import uuidutils

from blazar_sched.domain import exception
from blazar_sched.domain import flavor
from blazar_sched.domain.host import IRONIC
from blazar_sched.domain.way import LIVE
from blazar_sched.domain.way import NOT
from blazar_sched.domain.way import read_way
from blazar_sched.domain.way import weakest
from blazar_sched.service.clients import rest
from blazar_sched.service.clients.nova.aggregate import Aggregates
from blazar_sched.service.clients.nova.compute import pages

if TYPE_CHECKING:
    from novaclient.v2.hypervisors import Hypervisor as Shown


@dataclasses.dataclass(frozen=True, slots=True)
class Hypervisor:
    """A compute node, with the name `host` of its nova-compute service.

    `cpu_info` is JSON, or empty if the virt driver gives none; `up` is
    whether the nova-compute service runs and is enabled. `movable` is the
    weakest way of moving servers in the metadata of the host's aggregates; a
    node of Ironic cannot move servers at all.
    """

    uuid: str
    hostname: str
    host: str
    type: str
    version: int
    cpu_info: str
    availability_zone: str
    up: bool = True
    movable: str = LIVE


class Hypervisors(Aggregates):
    """The part of the Nova client that handles hypervisors."""

    def hypervisor(self, name: str) -> Hypervisor:
        """Return the hypervisor with a given hostname, service host, or id.

        :raises HostNotFound: if there is no such hypervisor
        :raises Conflict: if several hypervisors have the name
        """
        known: list[Shown] = []
        # Nova answers 400 to a name that cannot be a hostname.
        with rest.tolerating(400, 404):
            known += self._nova.hypervisors.search(name, detailed=True)
        found = [h for h in known if h.hypervisor_hostname == name] or [
            h for h in known if h.service['host'] == name
        ] or self._of_id(name)
        if not found:
            raise exception.HostNotFound(
                f'Nova knows no hypervisor {name!r}', field='name'
            )
        if len(found) > 1:
            raise exception.Conflict(
                f'Nova knows {len(found)} hypervisors {name!r}', field='name'
            )
        zones = self._zones(host=found[0].service['host'])
        return _hypervisor(found[0], zones, self._ways())

    def _of_id(self, id_: str) -> list['Shown']:
        """Return the hypervisor with an id, as Nova shows it.

        :returns: a list, empty if there is no such hypervisor
        """
        if not uuidutils.is_uuid_like(id_):
            return []
        with rest.tolerating(404):
            return [self._nova.hypervisors.get(str(uuid.UUID(id_)))]
        return []

    def hypervisors(self) -> Iterator[Hypervisor]:
        """Yield every hypervisor."""
        zones, ways = self._zones(), self._ways()
        for shown in pages(self._nova.hypervisors.list):
            yield _hypervisor(shown, zones, ways)

    def _zones(self, host: str | None = None) -> dict[str, str]:
        """Return the availability zones of nova-compute services by host."""
        services = self._nova.services.list(host=host, binary='nova-compute')
        return {each.host: each.zone for each in services}

    def _ways(self) -> dict[str, str]:
        """Return how servers are moved by host, where an aggregate says so.
        """
        found: dict[str, str] = {}
        for each in self.aggregates():
            said = read_way(each.metadata.get(flavor.MOVABLE))
            if said is not None:
                for host in each.hosts:
                    found[host] = weakest((said, found.get(host, LIVE)))
        return found


def _hypervisor(
    shown: 'Shown', zones: Mapping[str, str], ways: Mapping[str, str]
) -> Hypervisor:
    host = shown.service['host']
    return Hypervisor(
        uuid=shown.id, hostname=shown.hypervisor_hostname, host=host,
        type=shown.hypervisor_type, version=shown.hypervisor_version,
        cpu_info=_cpu_info(getattr(shown, 'cpu_info', None)),
        availability_zone=zones.get(host, ''),
        up=(shown.state, shown.status) == ('up', 'enabled'),
        movable=(
            NOT if shown.hypervisor_type == IRONIC else ways.get(host, LIVE)
        ),
    )


def _cpu_info(shown: Mapping[str, object] | str | None) -> str:
    """Return `cpu_info` as JSON text, as before microversion 2.28 of Nova."""
    if isinstance(shown, Mapping):
        return json.dumps(shown)
    return shown or ''
