# SPDX-License-Identifier: Apache-2.0
"""The request groups of a flavor, and the hosts that can be promised to them.

Placement takes a group ``resources1`` from one resource provider, and each
class of the group without a suffix from one provider. The timeline of a host
has one sum for each resource class. The sum says exactly what Placement would
allocate wherever the providers of a class are interchangeable for a request:

- the request takes single units, of one class in a group, and all providers of
  the class satisfy the traits of the group: whichever units are free, they
  serve; or
- one provider alone has the classes of the group, so that the amounts cannot
  be spread over several providers.

Groups that have to be on different providers (``group_policy=isolate``) are
on different providers if the groups take different classes of different
providers, or units of a class of which no provider has more than one unit.

A host on which the providers are not interchangeable for a request could
satisfy the request or not, depending on which of the providers other servers
happen to use. No reservation of such a flavor gets the host.
"""

from collections import Counter
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import itertools
from typing import Any

from blazar_sched.domain import inventory
from blazar_sched.domain.host import Host
from blazar_sched.domain.inventory import Inventory
from blazar_sched.domain.provider import Providers
from blazar_sched.domain.provider import Units

ISOLATE = 'isolate'
# The set of only a host's own provider: see _Tree.
_OWN = frozenset({0})
# The inventory of a class that a host's own provider lacks. The sums say that
# no amount is free.
_NONE = Inventory(0)


@dataclasses.dataclass(frozen=True, slots=True)
class RequestGroup:
    """A request group, as in Placement.

    :ivar suffix: '' for the group whose classes may be of several providers
    :ivar resources: (resource class, amount), only positive amounts
    :ivar required: the required traits, sorted
    :ivar forbidden: the forbidden traits, sorted
    """

    suffix: str
    resources: tuple[tuple[str, int], ...]
    required: tuple[str, ...] = ()
    forbidden: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class RequestGroups:
    """The request groups of a flavor.

    :ivar isolate: whether groups with a suffix are on different providers
    """

    groups: tuple[RequestGroup, ...] = ()
    isolate: bool = False

    def amounts(self) -> dict[str, int]:
        """Return the sums of all groups, by resource class."""
        sums: Counter[str] = Counter()
        for group in self.groups:
            sums.update(dict(group.resources))
        return dict(sums)

    def suits(self, host: Host) -> bool:
        """Tell whether sums of a host say what Placement would allocate.

        O(groups² + groups × unlike providers of the host).
        """
        if not self.groups:
            return True
        found = _Tree(host)
        sources: list[tuple[RequestGroup, frozenset[int]]] = []
        for group in self.groups:
            if not group.suffix:
                if not found.suits_unsuffixed(group):
                    return False
                continue
            source = found.source(group)
            if source is None:
                return False
            sources.append((group, source))
        return not self.isolate or all(
            found.are_apart(*pair)
            for pair in itertools.combinations(sources, 2)
        )


# The request groups that any host suits.
NO_GROUPS = RequestGroups()


def encode(groups: RequestGroups) -> dict[str, Any]:
    """Return request groups as plain values, for JSON."""
    return {
        'isolate': groups.isolate,
        'groups': [
            [
                each.suffix, dict(each.resources), list(each.required),
                list(each.forbidden),
            ]
            for each in groups.groups
        ],
    }


def of_amounts(amounts: Mapping[str, int]) -> RequestGroups:
    """Return the request groups of a flavor with RESOURCE_CLASSES alone.

    There is one group, without a suffix.

    :param amounts: what an instance takes, by resource class
    """
    own = tuple(
        (name, amounts[name])
        for name in sorted(inventory.RESOURCE_CLASSES) if amounts.get(name)
    )
    return RequestGroups((RequestGroup('', own),) if own else ())


def decode(data: Mapping[str, Any]) -> RequestGroups:
    """Return the request groups that `encode` has written."""
    return RequestGroups(
        tuple(
            RequestGroup(
                suffix, tuple(sorted(resources.items())), tuple(required),
                tuple(forbidden),
            )
            for suffix, resources, required, forbidden in data['groups']
        ),
        data['isolate'],
    )


class _Tree:
    """The resource providers of a host; number 0 is the root provider."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._children: Sequence[Providers] = host.providers
        self._sources: dict[Any, frozenset[int] | None] = {}

    def suits_unsuffixed(self, group: RequestGroup) -> bool:
        """Tell whether the group without a suffix may have the host.

        The providers that the group uses must have the required traits
        together.
        """
        having: set[str] = set()
        for name, amount in group.resources:
            numbers = self._having(name)
            if not self._is_exact(numbers, {name: amount}):
                return False
            if group.required or group.forbidden:
                all_traits = [set(self._traits(n)) for n in numbers]
                if not all(map(set(group.forbidden).isdisjoint, all_traits)):
                    return False
                having |= set.intersection(*all_traits)
        return having.issuperset(group.required)

    def source(self, group: RequestGroup) -> frozenset[int] | None:
        """Return the providers of a group with a suffix.

        :returns: None if the group may not have the host
        """
        # Many groups of a flavor differ in nothing but the suffix.
        asked = group.resources, group.required, group.forbidden
        if asked not in self._sources:
            self._sources[asked] = self._source(group)
        return self._sources[asked]

    def _source(self, group: RequestGroup) -> frozenset[int] | None:
        resources = dict(group.resources)
        sets = {self._having(name) for name in resources} or {_OWN}
        [numbers, *others] = sets
        if others or not self._is_exact(numbers, resources):
            return None
        if group.required or group.forbidden:
            for n in numbers:
                traits = set(self._traits(n))
                if not traits.issuperset(group.required):
                    return None
                if traits.intersection(group.forbidden):
                    return None
        return numbers

    def are_apart(
        self, one: tuple[RequestGroup, frozenset[int]],
        other: tuple[RequestGroup, frozenset[int]],
    ) -> bool:
        """Tell whether two groups are always on different providers."""
        shared = one[1] & other[1]
        if not shared:
            return True
        classes = {name for name, _ in (*one[0].resources,
                                        *other[0].resources)}
        if len(classes) != 1 or 0 in shared:
            return False
        [name] = classes
        return all(self._children[n - 1].units[name].capacity == 1
                   for n in shared)

    def _having(self, name: str) -> frozenset[int]:
        """Return the providers with inventory of a class."""
        if name in inventory.RESOURCE_CLASSES:
            return _OWN
        below = 0
        found = set()
        for n, child in enumerate(self._children, 1):
            units = child.units.get(name)
            if units is not None and units.capacity:
                found.add(n)
                below += child.count * units.capacity
        if self._host.capacity(name) > below:
            found.add(0)
        return frozenset(found)

    def _is_exact(
        self, numbers: Iterable[int], resources: Mapping[str, int]
    ) -> bool:
        """Tell whether amounts of providers may be added up for a group."""
        numbers = tuple(numbers)
        if not numbers:
            return False
        single = len(resources) == 1 and set(resources.values()) == {1}
        if not single and sum(map(self._count, numbers)) > 1:
            return False
        return all(
            self._units(n, name).allows(amount)
            for n in numbers
            for name, amount in resources.items()
        )

    def _units(self, number: int, name: str) -> Inventory | Units:
        """Return the inventory that a provider has of a class."""
        if number:
            return self._children[number - 1].units[name]
        return self._host.inventory.get(name, _NONE)

    def _count(self, number: int) -> int:
        return self._children[number - 1].count if number else 1

    def _traits(self, number: int) -> Iterable[str]:
        if number:
            return self._children[number - 1].traits
        return self._host.traits
