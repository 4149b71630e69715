# SPDX-License-Identifier: Apache-2.0
"""The options for placing leases, as the operator has set them."""

from collections.abc import Iterator
from collections.abc import Mapping
import dataclasses

from blazar_sched.domain.requirements import ANY
from blazar_sched.domain.requirements import Requirement


@dataclasses.dataclass(frozen=True, slots=True)
class Options:
    """The options for placing leases.

    :param cleaning_time: seconds between an allocation and all other use of a
        host that has no cleaning time of its own
    :param default: the requirement for a reservation that asks for no
        `resource_properties`; hosts that the reservation holds need not meet
        the requirement
    :param retry: whether a reservation that finds no room with the default
        may be placed without the default
    :param spares: whether spare hosts may be used
    :param cleaning_times: values in place of `cleaning_time`, by resource
        type, for the resource types that `cleaning_time` does not apply to
    """

    cleaning_time: int = 0
    default: Requirement = ANY
    retry: bool = False
    spares: bool = False
    cleaning_times: Mapping[str, int] = dataclasses.field(default_factory=dict)

    def cleaning_time_of(self, resource_type: str) -> int:
        """Return the cleaning time that applies to a resource type."""
        return self.cleaning_times.get(resource_type, self.cleaning_time)

    def alternatives(self) -> 'Iterator[Options]':
        """Yield the options to try, one after the other."""
        yield self
        if self.retry and self.default != ANY:
            yield dataclasses.replace(self, default=ANY)


# The options if the operator sets none.
DEFAULT_OPTIONS = Options()
