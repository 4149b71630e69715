# SPDX-License-Identifier: Apache-2.0
"""The terms on which the operator has leases placed."""

from collections.abc import Iterator
from collections.abc import Mapping
import dataclasses
from typing import Any

from oslo_config import cfg

from blazar_sched.domain import catalog
from blazar_sched.domain import exception
from blazar_sched.domain import requirements


@dataclasses.dataclass(frozen=True, slots=True)
class Terms:
    """The terms on which leases are placed.

    :param apart: seconds that what is placed keeps from all else on a host
        that has no cleaning time of its own
    :param default: what hosts have to meet for a reservation that asks for
        no `resource_properties`; those that it holds need not
    :param retry: whether what finds no room so may go without the default
    :param aparts: the same as `apart`, of the resource types that it is not
        for
    """

    apart: int = 0
    default: requirements.Requirement = catalog.ANY
    retry: bool = False
    aparts: Mapping[str, int] = dataclasses.field(default_factory=dict)

    def apart_for(self, resource_type: str) -> int:
        """Return `apart` as it is for a resource type."""
        return self.aparts.get(resource_type, self.apart)

    def tries(self) -> 'Iterator[Terms]':
        """Yield the terms to try one after the other."""
        yield self
        if self.retry and self.default != catalog.ANY:
            yield dataclasses.replace(self, default=catalog.ANY)


# The operator's, if they leave all options as they are.
PLAIN = Terms()


def read(conf: Any) -> Terms:
    """Return the operator's terms.

    :param conf: the manager's group of options
    :raises ValueError: if the default cannot be read
    """
    try:
        default = requirements.parse(
            conf.default_resource_properties, 'default_resource_properties'
        )
    except (exception.InvalidInput, cfg.Error) as e:
        raise ValueError(
            '[manager] default_resource_properties is no requirement (each '
            f'$ of it is written $$): {e}'
        ) from e
    pairs = (each.rsplit('=', 1) for each in conf.cleaning_times)
    return Terms(
        60 * conf.cleaning_time,
        default,
        conf.retry_without_defaults,
        {resource_type: 60 * int(minutes) for resource_type, minutes in pairs},
    )
