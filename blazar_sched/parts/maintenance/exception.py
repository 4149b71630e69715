# SPDX-License-Identifier: Apache-2.0
"""The refusals about maintenances."""

from blazar_sched.domain import exception


class MaintenanceNotFound(exception.NotFound):
    """An id for which there is no maintenance."""


class InTheWay(exception.Conflict):
    """A maintenance of hosts that leases cannot leave."""


EXCEPTIONS = (InTheWay, MaintenanceNotFound)
