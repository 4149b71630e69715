# SPDX-License-Identifier: Apache-2.0
"""A product: what an operator publishes for reservations."""

from collections.abc import Mapping
import dataclasses
from typing import Any

from blazar_sched.domain.demand import PHYSICAL_HOST


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
