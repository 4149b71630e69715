# SPDX-License-Identifier: Apache-2.0
"""Host weighers for nova-scheduler, one class per file.

In nova.conf, ``[filter_scheduler] weight_classes`` names the functions that
return the classes, separated by a comma:
``nova.scheduler.weights.all_weighers`` for Nova's own weighers and
``blazar_sched.weighers.all_weighers`` for the weighers of this package.
"""


def all_weighers() -> list[type]:
    """Return the weigher classes, for Nova's ``weight_classes``."""
    # Nova is needed only by callers of this function.
    from blazar_sched.weighers import device
    from blazar_sched.weighers import lease_gap
    from blazar_sched.weighers import vacate_cost

    return [
        lease_gap.LeaseGapWeigher,
        vacate_cost.VacateCostWeigher,
        device.DeviceWeigher,
    ]
