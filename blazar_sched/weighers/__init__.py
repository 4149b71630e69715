# SPDX-License-Identifier: Apache-2.0
"""Host weighers for nova-scheduler, one class a file.

In nova.conf, ``[filter_scheduler] weight_classes`` names what gives the
classes, with a comma between: ``nova.scheduler.weights.all_weighers`` for
Nova's own and ``blazar_sched.weighers.all_weighers`` for these.
"""


def all_weighers() -> list[type]:
    """Return the weigher classes, for Nova's ``weight_classes``."""
    # Only who asks for the classes needs Nova.
    from blazar_sched.weighers import lease_gap
    from blazar_sched.weighers import vacate_cost

    return [lease_gap.LeaseGapWeigher, vacate_cost.VacateCostWeigher]
