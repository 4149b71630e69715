# SPDX-License-Identifier: Apache-2.0
"""The refusals by these limits."""

from blazar_sched.domain import exception


class MaxLeases(exception.LimitExceeded):
    """More leases at a time than the project's limit."""


class MaxHosts(exception.LimitExceeded):
    """More hosts than the project's limit."""


class MaxInstances(exception.LimitExceeded):
    """More instances than the project's limit."""


class MaxWeight(exception.LimitExceeded):
    """Resources of more weight than the project's limit."""


class MaxWeightHours(exception.LimitExceeded):
    """Resources of more weight x hours than the project's limit."""


class ExternalServiceFilter(exception.BlazarSchedError):
    """A refusal by a service that the operator leaves the decision to."""

    status = 400


EXCEPTIONS = (
    MaxLeases, MaxHosts, MaxInstances, MaxWeight, MaxWeightHours,
    ExternalServiceFilter,
)
