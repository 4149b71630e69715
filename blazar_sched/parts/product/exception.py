# SPDX-License-Identifier: Apache-2.0
"""The refusal of a product."""

from blazar_sched.domain import exception


class MaxUnits(exception.LimitExceeded):
    """More units of a product at the same time than its limit."""


EXCEPTIONS = (MaxUnits,)
