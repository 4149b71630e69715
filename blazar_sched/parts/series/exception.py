# SPDX-License-Identifier: Apache-2.0
"""The refusals about series."""

from blazar_sched.domain import exception


class MaxSeries(exception.LimitExceeded):
    """The project would have too many series."""


class SeriesNotFound(exception.NotFound):
    """There is no such series, or it belongs to another project."""


EXCEPTIONS = (MaxSeries, SeriesNotFound)
