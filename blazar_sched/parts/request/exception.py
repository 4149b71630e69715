# SPDX-License-Identifier: Apache-2.0
"""The refusals about lease requests."""

from blazar_sched.domain import exception


class MaxWaitingRequests(exception.LimitExceeded):
    """The project would have too many waiting lease requests."""


class LeaseRequestNotFound(exception.NotFound):
    """There is no such lease request, or it belongs to another project."""


EXCEPTIONS = (MaxWaitingRequests, LeaseRequestNotFound)
