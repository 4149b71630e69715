# SPDX-License-Identifier: Apache-2.0
"""A product: what an operator publishes for reservations."""

from collections import Counter
from collections.abc import Iterable
from collections.abc import Mapping
import dataclasses
import itertools
from typing import Any

from blazar_sched.domain.demand import PHYSICAL_HOST
from blazar_sched.domain.lease import Lease
from blazar_sched.domain.window import Window


@dataclasses.dataclass(frozen=True, slots=True)
class Product:
    """A product, of which a reservation has units: hosts or instances.

    :param parameters: the parameters of a reservation, without its size
    :param max_duration: the longest lease, in seconds, None for any
    :param max_units: the most units that all projects may have at the same
        time, None for any
    :param projects: the projects that may reserve the product, none for all
    """

    name: str
    resource_type: str
    parameters: Mapping[str, Any]
    description: str = ''
    max_duration: int | None = None
    max_units: int | None = None
    projects: tuple[str, ...] = ()

    def is_open_to(self, project_id: str) -> bool:
        return not self.projects or project_id in self.projects

    def asked(self, amount: int) -> dict[str, Any]:
        """Return the parameters of a reservation of some units."""
        if self.resource_type == PHYSICAL_HOST:
            return {**self.parameters, 'min': amount, 'max': amount}
        return {**self.parameters, 'amount': amount, 'affinity': None}


def units(lease: Lease | None) -> Counter[str]:
    """Return the units that a lease has of each product."""
    found: Counter[str] = Counter()
    for each in lease.reservations if lease else ():
        if each.product:
            found[each.product] += each.demand.most
    return found


def peak(booked: Iterable[tuple[Window, int]]) -> int:
    """Return the most units that are booked at the same time.

    :param booked: windows that overlap one window, with their units: where
        several of them overlap, they do so in that window too
    """
    steps = sorted(
        step
        for window, count in booked
        for step in ((window.start, count), (window.end, -count))
    )
    return max(itertools.accumulate(count for _, count in steps), default=0)
