# SPDX-License-Identifier: Apache-2.0
"""What measures the usage in a manager."""

from blazar_sched.parts.report.manager import Usages


def of(manager):
    return next(t for t in manager._threads if isinstance(t, Usages))
