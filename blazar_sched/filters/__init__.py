# SPDX-License-Identifier: Apache-2.0
"""Host filters for nova-scheduler, one class per file.

In nova.conf::

    [filter_scheduler]
    available_filters = nova.scheduler.filters.all_filters
    available_filters = blazar_sched.filters.all_filters
    enabled_filters = <Nova's>,ReservationFilter,LifetimeFilter
"""


def all_filters() -> list[type]:
    """Return the filter classes, for Nova's ``available_filters``.

    The request filter of this project is installed in nova-scheduler, too.
    """
    # Nova is needed only by callers of this function.
    from blazar_sched.filters import lifetime_filter
    from blazar_sched.filters import reservation_filter
    from blazar_sched.hooks import request_filter

    # nova-scheduler gives no other occasion to install a request filter.
    request_filter.install()
    return [
        reservation_filter.ReservationFilter,
        lifetime_filter.LifetimeFilter,
    ]
