# SPDX-License-Identifier: Apache-2.0
"""Blazar's rule: a host that is kept for leases is shut to all others."""

from collections.abc import Collection
from collections.abc import Mapping
from typing import Any

from nova.scheduler import filters

from blazar_sched.domain import hints

# By the uuid of each host of the pool, the ids of the reservations that have
# it now: what Blazar keeps as aggregates.
Held = Mapping[str, Collection[str]]


class FreepoolFilter(filters.BaseHostFilter):
    """Pass what names a reservation there, and only what names none else.

    It answers as BlazarFilter does without `allow_preemptibles`.
    """

    RUN_ON_REBUILD = False

    def __init__(self, held: Held) -> None:
        self._held = held

    def host_passes(self, host_state: Any, spec_obj: Any) -> bool:
        asked = spec_obj.get_scheduler_hint(hints.RESERVATION)
        if asked is None:
            return host_state.uuid not in self._held
        return asked in self._held.get(host_state.uuid, ())
