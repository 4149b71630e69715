# SPDX-License-Identifier: Apache-2.0
"""Host weighers for nova-scheduler, one class a file.

In nova.conf::

    [filter_scheduler]
    weight_classes = nova.scheduler.weights.all_weighers
    weight_classes = blazar_sched.weighers.all_weighers
"""


def all_weighers() -> list[type]:
    """Return the weigher classes, for Nova's ``weight_classes``."""
    # Only who asks for the classes needs Nova.
    from blazar_sched.weighers import lease_gap

    return [lease_gap.LeaseGapWeigher]
