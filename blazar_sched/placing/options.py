# SPDX-License-Identifier: Apache-2.0
"""The options by which leases are placed, as the operator has set them."""

from collections.abc import Iterator
from collections.abc import Mapping
import dataclasses

from blazar_sched.domain import catalog
from blazar_sched.domain.requirements import Requirement


@dataclasses.dataclass(frozen=True, slots=True)
class Options:
    """The options by which leases are placed.

    :param apart: seconds that what is placed keeps from all else on a host
        that has no cleaning time of its own
    :param default: what hosts have to meet for a reservation that asks for
        no `resource_properties`; those that it holds need not
    :param retry: whether what finds no room so may go without the default
    :param aparts: the same as `apart`, of the resource types that it is not
        for
    """

    apart: int = 0
    default: Requirement = catalog.ANY
    retry: bool = False
    aparts: Mapping[str, int] = dataclasses.field(default_factory=dict)

    def apart_for(self, resource_type: str) -> int:
        """Return `apart` as it is for a resource type."""
        return self.aparts.get(resource_type, self.apart)

    def tries(self) -> 'Iterator[Options]':
        """Yield the options to try one after the other."""
        yield self
        if self.retry and self.default != catalog.ANY:
            yield dataclasses.replace(self, default=catalog.ANY)


# Where the operator leaves all options as they are.
DEFAULT_OPTIONS = Options()
