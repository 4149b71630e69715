# SPDX-License-Identifier: Apache-2.0
"""Scheduling requests, each read once from Nova's RequestSpec.

No scheduler hint of a user raises an exception here. A lifetime that cannot
be read counts as no lifetime, which requires more room; a reservation that
cannot be read remains a reservation, but a reservation that no host has.
"""

from collections import Counter
from collections.abc import Mapping
import dataclasses
from typing import Any

from oslo_log import log as logging

from blazar_sched.conf import scheduler
from blazar_sched.domain import duration
from blazar_sched.domain import exception
from blazar_sched.domain import flavor as flavor_rules
from blazar_sched.domain import hints as server_hints
from blazar_sched.domain import inventory
from blazar_sched.domain import relocation as relocation_rules
from blazar_sched.domain import reservation
from blazar_sched.domain import window
from blazar_sched.domain.hints import LIFETIME
from blazar_sched.domain.hints import RESERVATION
from blazar_sched.domain.instance import Instance
from blazar_sched.domain.relocation import Features
from blazar_sched.domain.way import NOT
from blazar_sched.replica import instance_record
from blazar_sched.replica import record
from blazar_sched.replica import state
from blazar_sched.worker import nova_objects
from blazar_sched.worker.nova_objects import RequestSpec

LOG = logging.getLogger(__name__)

# An id that no reservation has.
UNREADABLE = ''


@dataclasses.dataclass(frozen=True, slots=True)
class RequestedServer:
    """The server as it will be after the request.

    The attributes are those of `replica.server_reservation.Server`, with the
    flavor and the hints of the request.
    """

    uuid: str
    project_id: str
    amounts: Mapping[str, int]
    used: Mapping[str, int] | None
    end: int
    reservation_id: str | None
    preemptible: bool
    created: int
    features: Features
    start: int | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Request:
    """A request for a host for one instance.

    `server` is the server after the request, from whose record the other
    fields are derived. `amounts` are by RESOURCE_CLASSES, `extra` has the
    amounts of other classes: see domain.flavor. `reservation_id` is None for a
    request that is not bound; `end` is FOREVER for an unbounded request. `own`
    is the record of an instance that already has a host and moves. `several`
    tells whether another instance of the same RequestSpec has been placed, so
    that HostStates may have counted it. `movable`
    is how the instance may be moved later, see domain.way; `fixed`
    tells whether it has no end and may not be moved, although hosts relocate
    instances.
    """

    server: RequestedServer
    instance_uuid: str
    project_id: str | None
    amounts: tuple[int, ...]
    extra: Mapping[str, int]
    reservation_id: str | None
    preemptible: bool
    end: int
    own: Instance | None
    several: bool = False
    movable: str = NOT
    fixed: bool = False

    @property
    def bound(self) -> bool:
        return self.reservation_id is not None

    @property
    def own_id(self) -> str | None:
        return None if self.own is None else self.own.uuid

    @property
    def by_class(self) -> dict[str, int]:
        """The amounts by class: RESOURCE_CLASSES first, then other classes."""
        return {
            **dict(zip(inventory.RESOURCE_CLASSES, self.amounts, strict=True)),
            **self.extra,
        }

    def placed_on(
        self, host: str, replica: state.Replica, now: int
    ) -> Instance:
        """Return the record of the instance until Nova names its host.

        :param host: the uuid of the host
        """
        placed = instance_record.make(
            replica, host, self.server, now, _rules(replica)
        )
        if self.reservation_id == reservation.lifetime_id(self.instance_uuid):
            # The place is kept until the manager has seen the instance.
            placed = dataclasses.replace(
                placed, reservation_id=self.reservation_id
            )
        return dataclasses.replace(placed, building=True)

    @property
    def is_counted(self) -> bool:
        """Whether the instance counts for itself already, at no less.

        An instance of a reservation counts in the reservation, and a
        preemptible instance yields.
        """
        own = self.own
        return (
            own is not None and own.claim is None and not own.preemptible
            and all(
                amount <= own.amounts.get(name, 0)
                for name, amount in self.by_class.items()
            )
        )


def read_request(
    spec: RequestSpec, replica: state.Replica | None, now: int, options: Any
) -> Request:
    """Return the request in Nova's RequestSpec `spec`.

    :param replica: the replica, if there is a replica
    :param options: the options of ``[blazar_sched]``
    """
    own = (
        None if replica is None else replica.instances.get(spec.instance_uuid)
    )
    is_first = own is None and is_new(spec)
    server = _server(spec, own, is_first, now, options)
    reservation_id, end = _drawn(server, own, is_first, replica, now)
    rules = _rules(replica)
    movable = NOT if reservation_id is not None else (
        instance_record.way_of(server, rules)
    )
    end = end if end > now else window.FOREVER
    return Request(
        server=server, instance_uuid=server.uuid, project_id=spec.project_id,
        amounts=tuple(
            server.amounts.get(c, 0) for c in inventory.RESOURCE_CLASSES
        ),
        extra=inventory.others(server.amounts), reservation_id=reservation_id,
        preemptible=server.preemptible, end=end, own=own,
        several=nova_objects.has_placed(spec), movable=movable,
        fixed=(
            rules is not None and reservation_id is None and not movable
            and not server.preemptible and end == window.FOREVER
        ),
    )


def read_once(
    spec: RequestSpec, replica: state.Replica | None, now: int, options: Any
) -> Request:
    """Return the request in `spec`; read each RequestSpec once.

    Nova uses the same RequestSpec for all instances of a request.
    """
    revision = None if replica is None else replica.revision
    several = nova_objects.has_placed(spec)
    key = spec.instance_uuid, replica, revision, now, several
    known: Request | None = nova_objects.get_request(spec, key)
    if known is None:
        known = read_request(spec, replica, now, options)
        nova_objects.set_request(spec, key, known)
    return known


def _server(
    spec: RequestSpec, own: Instance | None, is_first: bool, now: int,
    options: Any,
) -> RequestedServer:
    extra_specs = extra_specs_of(spec)
    hints = {name: spec.get_scheduler_hint(name) for name in server_hints.ALL}
    root_gb = 0 if 'is_bfv' in spec and spec.is_bfv else spec.root_gb
    disks = root_gb, spec.ephemeral_gb, spec.swap
    amounts = Counter(flavor_rules.resources(
        spec.vcpus, spec.memory_mb, flavor_rules.disk_gb(*disks), extra_specs
    ))
    amounts.update(_devices(spec))
    if own is not None and own.claim is None and hints[LIFETIME] is not None:
        # When the lifetime began is not known any more, but when it ends is.
        end = own.end
    else:
        default = scheduler.default_lifetime(options, spec.project_id)
        end = _end(hints, extra_specs, now, default, options, is_first)
    # Whatever the hints say, the flavor of a reservation takes a slot of
    # that reservation.
    named = flavor_rules.reservation_id(extra_specs) or hints[RESERVATION]
    return RequestedServer(
        uuid=spec.instance_uuid, project_id=spec.project_id or '',
        amounts=dict(amounts),
        used=flavor_rules.figures(spec.vcpus, spec.memory_mb, *disks, amounts),
        end=end,
        reservation_id=named if isinstance(named, str | None) else UNREADABLE,
        preemptible=flavor_rules.is_preemptible(extra_specs),
        created=now if is_first else 0,
        features=_features(spec, extra_specs, any(disks)),
    )


def _drawn(
    server: RequestedServer, own: Instance | None, is_first: bool,
    replica: state.Replica | None, now: int,
) -> tuple[str | None, int]:
    """Return the reservation that a server will draw on, and its end.

    The reservation is the reservation that the record of the server will
    name. A new server, and a server that takes a slot by its new flavor, are
    refused where they may not draw on the reservation that they name. An older
    server whose hint names a reservation that is over counts for itself.
    """
    named = server.reservation_id
    if replica is None:
        return named, server.end
    reserved, end = instance_record.drawn(
        replica, server, None if own is None else own.host, now
    )
    if reserved is not None:
        return reserved.id, end
    place = _place(server.uuid, own, replica, now)
    if named is None and place is not None:
        return place.id, place.end
    is_asked = is_first or flavor_rules.reservation_id(
        server.features.extra_specs
    )
    return named if is_asked else None, end


def extra_specs_of(spec: RequestSpec) -> Mapping[str, str]:
    """Return the extra specs of the flavor of a request."""
    if 'extra_specs' in spec.flavor:
        return spec.flavor.extra_specs or {}
    return {}


def is_new(spec: RequestSpec) -> bool:
    """Tell whether a server is being created, not moved or unshelved.

    For an existing server Nova names the cell of the server, to keep the
    server in the cell.
    """
    destination = (
        spec.requested_destination if 'requested_destination' in spec else None
    )
    return destination is None or 'cell' not in destination


def _rules(replica: state.Replica | None) -> relocation_rules.Rules | None:
    """Return the rules of relocation; None if no host relocates instances."""
    if replica is None or not replica.settings.relocating:
        return None
    if (
        replica.settings.unbounded == duration.RELOCATE
        or replica.with_relocation
    ):
        return replica.settings.rules
    return None


def _features(
    spec: RequestSpec, extra_specs: Mapping[str, str], local_disk: bool
) -> Features:
    image = spec.image if 'image' in spec else None
    properties = {}
    if image is not None and 'properties' in image:
        properties = {
            name: getattr(image.properties, name)
            for name in relocation_rules.IMAGE_PROPERTIES
            if name in image.properties
        }
    devices = spec.pci_requests if 'pci_requests' in spec else None
    hint = spec.get_scheduler_hint(server_hints.MOVABLE)
    return Features(
        extra_specs=extra_specs, image_properties=properties,
        hint=None if hint is None else str(hint), memory_mb=spec.memory_mb,
        local_disk=local_disk,
        devices=devices is not None and bool(devices.requests),
    )


def _devices(spec: RequestSpec) -> Counter[str]:
    """Return the amounts that Nova asks of Placement for PCI devices.

    Nova adds request groups for the devices of a flavor's PCI alias where PCI
    devices are in Placement.
    """
    amounts: Counter[str] = Counter()
    devices = spec.pci_requests if 'pci_requests' in spec else None
    if devices is None or not devices.requests:
        return amounts
    prefixes = tuple(f'{each.request_id}-' for each in devices.requests)
    groups = spec.requested_resources if 'requested_resources' in spec else ()
    for group in groups or ():
        if (group.requester_id or '').startswith(prefixes):
            amounts.update(group.resources)
    return amounts


def _place(
    uuid: str, own: Instance | None, replica: state.Replica, now: int
) -> record.Reservation | None:
    """Return the reservation that keeps a place for an instance, if any.

    The reservation is that of the instance's own lifetime, which keeps a place
    until the instance has come. The feed may still have the instance on its
    host from before shelving.
    """
    id_ = reservation.lifetime_id(uuid)
    known = replica.reservations.get(id_)
    if known is None or own is not None and now < known.start:
        return None
    return known if replica.indexes.main.held(id_) else None


def _end(
    hints: Mapping[str, Any], extra_specs: Mapping[str, str], now: int,
    default_lifetime: str, options: Any, is_new: bool,
) -> int:
    """Return the declared end; FOREVER if no end can be read."""
    try:
        declared = server_hints.read(
            hints, extra_specs, now, default_lifetime, is_new
        )
    except exception.InvalidInput as e:
        # The text goes to Nova's log verbatim, so the text of a user must
        # be escaped.
        LOG.debug('Treating the instance as unbounded: %r', str(e))
        return window.FOREVER
    if declared.start is not None:
        return duration.end_after(now, options.shelving_time)
    return declared.end
