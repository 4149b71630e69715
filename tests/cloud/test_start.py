# SPDX-License-Identifier: Apache-2.0
"""Leases that start in the same second, on a real cloud.

Their delay depends on the machine: ``python -m tests.cloud.starts`` measures
the delay.
"""

import contextlib
import pathlib

import pytest

from tests.cloud import starts

LEASES = 6
# Seconds, on a busy machine.
LATEST = 30


@pytest.mark.parametrize('refuse', [None, 400, 409])
def test_leases_are_active_soon_though_placement_refuses_each_once(
    admin, register, description, refuse
):
    for name in description['hosts']:
        register(name)
    folder = pathlib.Path(description['folder'])
    log = folder / 'manager.log'
    seen = len(log.read_text())
    with contextlib.ExitStack() as stack:
        if refuse:
            stack.enter_context(starts.proxied(admin, folder, refuse))
        seconds = starts.play(admin, LEASES)
        if refuse:
            assert len(starts.Placement.refused) == LEASES
    assert seconds[-1] < LATEST
    # A request that Placement refuses is repeated at once: no start fails and
    # waits for a retry. The log tells a start that is done at the level INFO,
    # and everything else of a start at a higher level.
    assert not [
        line for line in log.read_text()[seen:].splitlines()
        if 'start_lease' in line and ' INFO ' not in line
    ]
