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
from oslo_utils import strutils

from blazar_sched.conf import relocation
from blazar_sched.conf import scheduler
from blazar_sched.domain import duration
from blazar_sched.domain import exception
from blazar_sched.domain import flavor as flavor_rules
from blazar_sched.domain import hints as server_hints
from blazar_sched.domain import inventory
from blazar_sched.domain import relocation as relocation_rules
from blazar_sched.domain import reservation
from blazar_sched.domain import window
from blazar_sched.domain.flavor import PREEMPTIBLE
from blazar_sched.domain.hints import RESERVATION
from blazar_sched.domain.instance import Instance
from blazar_sched.replica import state
from blazar_sched.worker import nova_objects

LOG = logging.getLogger(__name__)

# An id that no reservation has.
UNREADABLE = ''


@dataclasses.dataclass(frozen=True, slots=True)
class Request:
    """A request for a host for one instance.

    `amounts` are by RESOURCE_CLASSES, `extra` has the amounts of other
    classes: see domain.flavor. `reservation_id` is None for a request that is
    not bound; `end` is FOREVER for an unbounded request. `own` is the record
    of an instance that already has a host and moves. `movable` tells whether
    the instance may be live-migrated later.
    """

    instance_uuid: str
    project_id: str | None
    amounts: tuple[int, ...]
    extra: Mapping[str, int]
    reservation_id: str | None
    preemptible: bool
    end: int
    own: Instance | None
    movable: bool = False

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
            **dict(
                zip(inventory.RESOURCE_CLASSES, self.amounts, strict=True)
            ),
            **self.extra,
        }

    def placed_on(self, host: str) -> Instance:
        """Return the record of the instance until Nova names its host.

        :param host: the uuid of the host
        """
        return Instance(
            uuid=self.instance_uuid,
            host=host,
            project_id=self.project_id or '',
            amounts={
                name: amount for name, amount in self.by_class.items()
                if amount
            },
            end=self.end,
            reservation_id=self.reservation_id,
            preemptible=self.preemptible,
            claim=self.reservation_id,
            movable=self.movable,
            building=True,
        )

    @property
    def growth(self) -> tuple[int, ...]:
        """The amounts beyond those that Nova counts already."""
        held = {} if self.own is None else self.own.countable_use()
        return tuple(
            max(0, amount - held.get(resource_class, 0))
            for resource_class, amount in zip(
                inventory.RESOURCE_CLASSES, self.amounts, strict=True
            )
        )


def read_request(
    spec: Any, replica: state.Replica | None, now: int, options: Any
) -> Request:
    """Return the request in Nova's RequestSpec `spec`.

    :param replica: the replica, if there is a replica
    :param options: the options of ``[blazar_sched]``
    """
    uuid = spec.instance_uuid
    own = None if replica is None else replica.instances.get(uuid)
    flavor = spec.flavor
    extra_specs = (
        flavor.extra_specs or {} if 'extra_specs' in flavor else {}
    )
    hints = {name: spec.get_scheduler_hint(name) for name in server_hints.ALL}
    request = Counter(flavor_rules.resources(
        spec.vcpus, spec.memory_mb, _disk_gb(spec), extra_specs
    ))
    request.update(_devices(spec))
    # Whatever the hints say, the flavor of a reservation takes a slot of
    # that reservation.
    flavor_s = flavor_rules.reservation_id(extra_specs)
    hint = hints[RESERVATION]
    booked = _booked(uuid, replica) if hint is None else None
    # The feed may still have the instance on its host from before shelving.
    returns = booked is not None and bool(booked[0]) and booked[1] <= now
    if own is not None and not returns:
        # The instance moves with its first hints, which may be out of date.
        hint, end = own.reservation_id, own.end
    elif booked is not None:
        hint, _, end = booked
    else:
        default = scheduler.default_lifetime(options, spec.project_id)
        end = _end(hints, extra_specs, now, default, options, _is_new(spec))
    claim = flavor_s or hint
    end = end if end > now else window.FOREVER
    return Request(
        instance_uuid=uuid,
        project_id=spec.project_id,
        amounts=tuple(request.get(c, 0) for c in inventory.RESOURCE_CLASSES),
        extra=inventory.others(request),
        reservation_id=(
            claim if isinstance(claim, str | None) else UNREADABLE
        ),
        preemptible=strutils.bool_from_string(
            extra_specs.get(PREEMPTIBLE, '')
        ),
        end=end,
        own=own,
        movable=_is_movable(spec, extra_specs, end - now, replica, options),
    )


def read_once(
    spec: Any, replica: state.Replica | None, now: int, options: Any
) -> Request:
    """Return the request in `spec`; read each RequestSpec once.

    Nova uses the same RequestSpec for all instances of a request.
    """
    revision = None if replica is None else replica.revision
    key = spec.instance_uuid, replica, revision, now
    known: Request | None = nova_objects.get_request(spec, key)
    if known is None:
        known = read_request(spec, replica, now, options)
        nova_objects.set_request(spec, key, known)
    return known


def _is_new(spec: Any) -> bool:
    """Tell whether a server is being created, not moved or unshelved.

    For an existing server Nova names the cell of the server, to keep the
    server in the cell.
    """
    destination = (
        spec.requested_destination if 'requested_destination' in spec else None
    )
    return destination is None or 'cell' not in destination


def _is_movable(
    spec: Any,
    extra_specs: Mapping[str, str],
    lifetime: int,
    replica: state.Replica | None,
    options: Any,
) -> bool:
    """Tell whether an instance may be live-migrated later.

    The answer is False where no relocation can be needed: for an instance with
    a short lifetime, and in a cloud in which no host relocates instances.
    """
    if lifetime <= options.relocation_notice or not (
        options.unbounded == duration.RELOCATE
        or replica is not None and replica.with_relocation
    ):
        return False
    return relocation_rules.is_movable(
        relocation.rules(options), _features(spec, extra_specs)
    )


def _features(
    spec: Any, extra_specs: Mapping[str, str]
) -> relocation_rules.Features:
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
    return relocation_rules.Features(
        extra_specs=extra_specs,
        image_properties=properties,
        hint=None if hint is None else str(hint),
        memory_mb=spec.memory_mb,
        local_disk=_disk_gb(spec) > 0,
        devices=devices is not None and bool(devices.requests),
    )


def _devices(spec: Any) -> Counter[str]:
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


def _disk_gb(spec: Any) -> int:
    root_gb: int = 0 if 'is_bfv' in spec and spec.is_bfv else spec.root_gb
    return flavor_rules.disk_gb(root_gb, spec.ephemeral_gb, spec.swap)


def _booked(
    uuid: str, replica: state.Replica | None
) -> tuple[str | None, int, int] | None:
    """Return an instance's reservation that keeps a place, and the window.

    The reservation is that of the instance's own lifetime. It is None if it
    keeps no place; it keeps a place until the instance has come. The result is
    None if the instance has no such reservation.
    """
    id_ = reservation.lifetime_id(uuid)
    known = None if replica is None else replica.reservations.get(id_)
    if replica is None or known is None:
        return None
    place = id_ if replica.indexes.main.held(id_) else None
    return place, known.start, known.end


def _end(
    hints: Mapping[str, Any],
    extra_specs: Mapping[str, str],
    now: int,
    default_lifetime: str,
    options: Any,
    is_new: bool,
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
