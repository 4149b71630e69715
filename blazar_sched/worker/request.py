# SPDX-License-Identifier: Apache-2.0
"""What is asked of the hosts: Nova's RequestSpec, read once.

Nothing that a user can write in a hint raises here. A lifetime that cannot
be read counts as none, which asks for more; a reservation that cannot be
read stays a reservation, one that no host has.
"""

from collections.abc import Mapping
import dataclasses
from typing import Any

from oslo_log import log as logging
from oslo_utils import strutils

from blazar_sched.conf import scheduler
from blazar_sched.domain import duration
from blazar_sched.domain import exception
from blazar_sched.domain import flavor as flavor_rules
from blazar_sched.domain import hints as server_hints
from blazar_sched.domain import inventory
from blazar_sched.domain import reservation
from blazar_sched.domain import window
from blazar_sched.domain.flavor import PREEMPTIBLE
from blazar_sched.domain.hints import RESERVATION
from blazar_sched.domain.instance import Instance
from blazar_sched.replica import state

LOG = logging.getLogger(__name__)

# The key of no reservation.
UNREADABLE = ''
# Where a RequestSpec keeps what was read of it.
_READ = '_blazar_sched_read'


@dataclasses.dataclass(frozen=True, slots=True)
class Request:
    """One instance that needs a host.

    `amounts` are by RESOURCE_CLASSES, `extra` holds those of other classes:
    see domain.flavor. `reservation_id` is None for a request that is not
    bound; `end` is FOREVER for an unbounded one. `own` is what is known of an
    instance that is there already and moves.
    """

    instance_uuid: str
    project_id: str | None
    amounts: tuple[int, ...]
    extra: Mapping[str, int]
    reservation_id: str | None
    preemptible: bool
    end: int
    own: Instance | None

    @property
    def bound(self) -> bool:
        return self.reservation_id is not None

    @property
    def own_id(self) -> str | None:
        return None if self.own is None else self.own.uuid

    @property
    def by_class(self) -> dict[str, int]:
        """All amounts: those of RESOURCE_CLASSES, then the others."""
        return {
            **dict(
                zip(inventory.RESOURCE_CLASSES, self.amounts, strict=True)
            ),
            **self.extra,
        }

    @property
    def growth(self) -> tuple[int, ...]:
        """What it asks for beyond what Nova counts for it already."""
        held = {} if self.own is None else self.own.countable_use()
        return tuple(
            max(0, amount - held.get(resource_class, 0))
            for resource_class, amount in zip(
                inventory.RESOURCE_CLASSES, self.amounts, strict=True
            )
        )


def read(
    spec: Any, replica: state.Replica | None, now: int, options: Any
) -> Request:
    """Read Nova's RequestSpec `spec`.

    :param replica: what is known, if anything is
    :param options: of ``[blazar_sched]``
    """
    uuid = spec.instance_uuid
    own = None if replica is None else replica.instances.get(uuid)
    flavor = spec.flavor
    extra_specs = (
        flavor.extra_specs or {} if 'extra_specs' in flavor else {}
    )
    hints = {name: spec.get_scheduler_hint(name) for name in server_hints.ALL}
    asked = flavor_rules.resources(
        spec.vcpus, spec.memory_mb, _disk_gb(spec), extra_specs
    )
    # Whatever is hinted, a reservation's flavor takes a slot of that one.
    flavor_s = flavor_rules.reservation_id(extra_specs)
    hint = hints[RESERVATION]
    booked = _booked(uuid, replica) if hint is None else None
    # The feed may still know it where it was before it was shelved.
    returns = booked is not None and bool(booked[0]) and booked[1] <= now
    if own is not None and not returns:
        # It moves with its first hints, which may be long out of date.
        hint, end = own.reservation_id, own.end
    elif booked is not None:
        hint, _, end = booked
    else:
        default = scheduler.default_lifetime(options, spec.project_id)
        end = _end(hints, extra_specs, now, default, options, _is_new(spec))
    claim = flavor_s or hint
    return Request(
        instance_uuid=uuid,
        project_id=spec.project_id,
        amounts=tuple(asked.get(c, 0) for c in inventory.RESOURCE_CLASSES),
        extra=inventory.others(asked),
        reservation_id=(
            claim if isinstance(claim, str | None) else UNREADABLE
        ),
        preemptible=strutils.bool_from_string(
            extra_specs.get(PREEMPTIBLE, '')
        ),
        end=end if end > now else window.FOREVER,
        own=own,
    )


def read_once(
    spec: Any, replica: state.Replica | None, now: int, options: Any
) -> Request:
    """Read it as `read` does, or return what another one here has read.

    It is kept with Nova's RequestSpec, which one thread has for one request:
    so nothing outlives that, and there is nothing to lock. Nova goes through
    the instances of a request with the same one.
    """
    revision = None if replica is None else replica.revision
    key = spec.instance_uuid, replica, revision, now
    known: tuple[Any, Request] | None = getattr(spec, _READ, None)
    if known is None or known[0] != key:
        known = key, read(spec, replica, now, options)
        setattr(spec, _READ, known)
    return known[1]


def _is_new(spec: Any) -> bool:
    """Tell whether a server is being made, not moved or unshelved.

    For a server that is there Nova names its cell, to keep it in the cell.
    """
    destination = (
        spec.requested_destination if 'requested_destination' in spec else None
    )
    return destination is None or 'cell' not in destination


def _disk_gb(spec: Any) -> int:
    root_gb: int = 0 if 'is_bfv' in spec and spec.is_bfv else spec.root_gb
    return flavor_rules.disk_gb(root_gb, spec.ephemeral_gb, spec.swap)


def _booked(
    uuid: str, replica: state.Replica | None
) -> tuple[str | None, int, int] | None:
    """Return the reservation that keeps a place for an instance, its window.

    That of its own lifetime. No reservation if it keeps no place, as it does
    until the instance has come; None if the instance has none.
    """
    id_ = reservation.lifetime_id(uuid)
    known = None if replica is None else replica.reservations.get(id_)
    if replica is None or known is None:
        return None
    place = id_ if replica.index.held(id_) else None
    return place, known.start, known.end


def _end(
    hints: Mapping[str, Any],
    extra_specs: Mapping[str, str],
    now: int,
    default_lifetime: str,
    options: Any,
    is_new: bool,
) -> int:
    """Return the end that is declared; FOREVER if it is no use."""
    try:
        declared = server_hints.read(
            hints, extra_specs, now, default_lifetime, is_new
        )
    except exception.InvalidInput as e:
        # Nova's log has it as it is, so no text of a user's may be in it
        # as it came.
        LOG.debug('Taken for unbounded: %r', str(e))
        return window.FOREVER
    if declared.start is not None:
        return duration.end_after(now, options.shelving_time)
    return declared.end
