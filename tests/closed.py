# SPDX-License-Identifier: Apache-2.0
"""Hosts that are closed for a while, as a maintenance closes them."""

import dataclasses

from blazar_sched.domain.host import ClosedWindow
from blazar_sched.domain.host import MAINTENANCE


def close(ledger, name, start, end, called='rack 7', reason='power'):
    """Close a host, which is given by its hypervisor hostname."""
    put(ledger, name, ClosedWindow(
        start, end, MAINTENANCE, 'm1', called, reason
    ))


def put(ledger, name, *windows):
    """Replace the windows in which a host is closed."""
    [host] = [h for h in ledger.hosts() if h.hypervisor_hostname == name]
    ledger.commit(lambda tx: tx.put_host(
        dataclasses.replace(host, maintenances=windows)
    ))
