# SPDX-License-Identifier: Apache-2.0
"""What the limits add to the tables of the tests: see `tests.tables`."""

from blazar_sched.parts.limit import exception
from blazar_sched.parts.limit.unused import Unused

REFUSALS = {
    exception.MaxLeases: 400, exception.MaxHosts: 400,
    exception.MaxInstances: 400, exception.MaxWeight: 400,
    exception.MaxWeightHours: 400, exception.ExternalServiceFilter: 400,
}
LOOPS = {'unused reservations'}
FAULTY = {'unused reservations': (Unused, 'step', '_look', lambda some: {
    '_ledger.started_leases': some,
})}
BUSY = {
    ('enforcement', 'unified_limits_interval'): 60,
    ('manager', 'unused_after'): 60,
}
