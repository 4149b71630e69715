# SPDX-License-Identifier: Apache-2.0
"""Leases that start in the same second, on a real cloud.

Their delay depends on the machine: ``python -m tests.cloud.starts`` measures
the delay.
"""

import pathlib

from tests.cloud import starts

LEASES = 6
# Seconds, on a busy machine.
LATEST = 30


def test_leases_of_one_second_are_active_soon(admin, register, description):
    for name in description['hosts']:
        register(name)
    log = pathlib.Path(description['folder']) / 'manager.log'
    seen = len(log.read_text())
    assert starts.play(admin, LEASES)[-1] < LATEST
    # A request that Placement refuses is repeated at once: no start fails and
    # waits for a retry. The log tells a start that is done at the level INFO,
    # and everything else of a start at a higher level.
    assert not [
        line for line in log.read_text()[seen:].splitlines()
        if 'start_lease' in line and ' INFO ' not in line
    ]
