# SPDX-License-Identifier: Apache-2.0
"""The refusals about offers."""

from blazar_sched.domain import exception


class MaxHeldOffers(exception.LimitExceeded):
    """The project would hold too many offers."""


class OfferNotFound(exception.NotFound):
    """There is no such held offer in the project."""


class OfferLapsed(exception.Conflict):
    """An offer that is to be accepted is not held any more."""


EXCEPTIONS = (MaxHeldOffers, OfferNotFound, OfferLapsed)
