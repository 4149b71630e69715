# SPDX-License-Identifier: Apache-2.0
"""``virtual:instance``: slots of any size, on any hosts with room."""

from collections.abc import Mapping
from typing import Any

from blazar_sched.domain.demand import BEFORE_END
from blazar_sched.domain.demand import decode
from blazar_sched.domain.demand import DEFAULT_BEFORE_END
from blazar_sched.domain.demand import Demand
from blazar_sched.domain.demand import ON_START
from blazar_sched.domain.demand import VIRTUAL_INSTANCE
from blazar_sched.service.resources import slots
from blazar_sched.service.resources.parameters import check_integer
from blazar_sched.service.resources.parameters import check_names
from blazar_sched.service.resources.parameters import check_requirement

_DEFAULTS: dict[str, Any] = {
    'vcpus': None,
    'memory_mb': None,
    'disk_gb': None,
    'ephemeral_gb': 0,
    'extra_specs': {},
    'amount': None,
    'affinity': None,
    'resource_properties': '',
    BEFORE_END: DEFAULT_BEFORE_END,
    ON_START: '',
}
# The minimum values that Nova requires of a flavor, and at least one instance.
_MINIMUM = {
    'vcpus': 1, 'memory_mb': 1, 'disk_gb': 0, 'ephemeral_gb': 0, 'amount': 1,
}


class InstanceResource(slots.SlotsResource):
    """The driver of ``virtual:instance``."""

    def _read(self, parameters: Mapping[str, Any], project_id: str) -> Demand:
        complete = check_names(parameters, _DEFAULTS)
        for name, minimum in _MINIMUM.items():
            check_integer(complete, name, minimum)
        disks = complete['disk_gb'] + complete['ephemeral_gb']
        check_integer({'ephemeral_gb': disks}, 'ephemeral_gb', 0)
        slots.check_affinity(complete)
        check_requirement(complete, 'resource_properties')
        return decode(VIRTUAL_INSTANCE, complete)
