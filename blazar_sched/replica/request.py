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

from blazar_sched.domain import exception
from blazar_sched.domain import flavor as flavor_
from blazar_sched.domain import instance
from blazar_sched.domain import inventory
from blazar_sched.domain import lifetime
from blazar_sched.domain import window

LOG = logging.getLogger(__name__)

# Scheduler hints.
RESERVATION = 'reservation'
LEASE_END = 'lease_end'
LIFETIME = 'lifetime'
# Flavor extra specs.
FLAVOR_RESERVATION = 'blazar:reservation'
FLAVOR_LIFETIME = 'blazar:lifetime'
FLAVOR_PREEMPTIBLE = 'blazar:preemptible'

# The key of no reservation.
UNREADABLE = ''


@dataclasses.dataclass(frozen=True, slots=True)
class Request:
    """One instance that needs a host.

    `amounts` are by RESOURCE_CLASSES, `extra` holds those of other classes:
    see domain.flavor. `reservation_id` is None for a request that is not
    bound; `end` is FOREVER for an unbounded one. `own` is what is known of an
    instance that is there already and moves.
    """

    project_id: str | None
    amounts: tuple[int, ...]
    extra: Mapping[str, int]
    reservation_id: str | None
    preemptible: bool
    end: int
    own: instance.Instance | None

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
        """What it asks for beyond what it has already."""
        held = {} if self.own is None else self.own.amounts
        return tuple(
            max(0, amount - held.get(resource_class, 0))
            for resource_class, amount in zip(
                inventory.RESOURCE_CLASSES, self.amounts, strict=True
            )
        )


def read(
    spec: Any,
    instances: Mapping[str, instance.Instance],
    now: int,
    default_lifetime: str = '',
) -> Request:
    """Read Nova's RequestSpec `spec`.

    :param instances: the instances that are known, by uuid
    :param default_lifetime: for who declares none; '' for unbounded
    """
    own = instances.get(spec.instance_uuid)
    flavor = spec.flavor
    extra_specs = (
        flavor.extra_specs or {} if 'extra_specs' in flavor else {}
    )
    hints = {
        name: spec.get_scheduler_hint(name)
        for name in (RESERVATION, LEASE_END, LIFETIME)
    }
    asked = flavor_.resources(
        spec.vcpus, spec.memory_mb, _disk_gb(spec), extra_specs
    )
    return Request(
        project_id=spec.project_id,
        amounts=tuple(asked.get(c, 0) for c in inventory.RESOURCE_CLASSES),
        extra=inventory.others(asked),
        reservation_id=_reservation(own, hints, extra_specs),
        preemptible=strutils.bool_from_string(
            extra_specs.get(FLAVOR_PREEMPTIBLE, '')
        ),
        end=_end(own, hints, extra_specs, now, default_lifetime),
        own=own,
    )


def _disk_gb(spec: Any) -> int:
    root_gb: int = 0 if 'is_bfv' in spec and spec.is_bfv else spec.root_gb
    swap_gb: int = -(-spec.swap // 1024)
    ephemeral_gb: int = spec.ephemeral_gb
    return root_gb + ephemeral_gb + swap_gb


def _reservation(
    own: instance.Instance | None,
    hints: Mapping[str, Any],
    extra_specs: Mapping[str, str],
) -> str | None:
    # Whatever is hinted, a reservation's flavor takes a slot of that one.
    flavor_s = extra_specs.get(FLAVOR_RESERVATION)
    if own is not None:
        # It moves with its first hints, which may be long out of date.
        return own.reservation_id or flavor_s
    hint = flavor_s or hints[RESERVATION]
    return hint if isinstance(hint, str | None) else UNREADABLE


def _end(
    own: instance.Instance | None,
    hints: Mapping[str, Any],
    extra_specs: Mapping[str, str],
    now: int,
    default_lifetime: str,
) -> int:
    """The end from the first that says one; FOREVER if it is no use."""
    if own is not None:
        end = own.end
    else:
        try:
            end = _declared(hints, extra_specs, now, default_lifetime)
        except exception.InvalidInput as e:
            LOG.debug('Taken for unbounded: %s', e)
            return window.FOREVER
    return end if end > now else window.FOREVER


def _declared(
    hints: Mapping[str, Any],
    extra_specs: Mapping[str, str],
    now: int,
    default_lifetime: str,
) -> int:
    if hints[LEASE_END] is not None:
        return lifetime.parse_time(hints[LEASE_END], LEASE_END)
    if hints[LIFETIME] is not None:
        duration = lifetime.parse_duration(hints[LIFETIME], LIFETIME)
    elif FLAVOR_LIFETIME in extra_specs:
        duration = lifetime.parse_duration(
            extra_specs[FLAVOR_LIFETIME], FLAVOR_LIFETIME
        )
    elif default_lifetime:
        duration = lifetime.parse_duration(
            default_lifetime, 'default_lifetime'
        )
    else:
        return window.FOREVER
    return lifetime.end_after(now, duration)
