# SPDX-License-Identifier: Apache-2.0
"""The refusals about floating IPs."""

from blazar_sched.domain import exception


class FloatingIPNotFound(exception.NotFound):
    """An id for which there is no floating IP."""


class FloatingIPExists(exception.Conflict):
    """A floating IP that is registered already."""


class CantDeleteFloatingIP(exception.Conflict):
    """A floating IP to delete that is allocated."""


class NotEnoughFloatingIPAvailable(exception.NoRoom):
    """A window that has no room for a reservation of floating IPs."""


EXCEPTIONS = (
    FloatingIPNotFound, FloatingIPExists, CantDeleteFloatingIP,
    NotEnoughFloatingIPAvailable,
)
