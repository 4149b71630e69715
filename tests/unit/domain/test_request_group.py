# SPDX-License-Identifier: Apache-2.0
"""Request groups and interchangeable providers, against a full search."""

from collections import Counter
import functools
import itertools
import random

import pytest

from blazar_sched.domain import flavor
from blazar_sched.domain import provider
from blazar_sched.domain import request_group
from blazar_sched.domain.host import Host
from blazar_sched.domain.inventory import Inventory
from blazar_sched.domain.provider import Units
from blazar_sched.domain.request_group import RequestGroup
from blazar_sched.domain.request_group import RequestGroups

GPU = 'CUSTOM_GPU'
NIC = 'CUSTOM_NIC'
FAST = 'CUSTOM_FAST'
OLD = 'CUSTOM_OLD'


def units(capacity, min_unit=1, max_unit=99, step_size=1):
    return Units(capacity, min_unit, max_unit, step_size)


def host(*children, traits=(), **own):
    """Return a host with a number of children: (traits, units by class)."""
    found = provider.grouped(children)
    return Host(
        'h', '1', 'h', traits=traits, providers=found,
        inventory=provider.with_children(
            {name: Inventory(total) for name, total in own.items()}, found
        ),
    )


def groups(extra_specs):
    amounts = flavor.resources(1, 1024, 0, extra_specs)
    return flavor.groups(amounts, extra_specs)


def gpus(*capacities, traits=()):
    return [(traits, {GPU: units(each)}) for each in capacities]


class TestSuits:
    @pytest.mark.parametrize(
        'children', [gpus(1), gpus(1, 1, 1), gpus(4, 2), gpus(1, 0)]
    )
    def test_single_units_are_of_any_provider(self, children):
        for specs in (
            {f'resources:{GPU}': '1'},
            {f'resources1:{GPU}': '1', f'resources2:{GPU}': '1'},
        ):
            assert groups(specs).suits(host(*children, VCPU=8))

    def test_several_units_in_a_group_need_the_only_provider(self):
        wanted = groups({f'resources:{GPU}': '2'})
        assert wanted.suits(host(*gpus(4), VCPU=8))
        assert not wanted.suits(host(*gpus(4, 4), VCPU=8))
        assert not wanted.suits(host(*gpus(4), VCPU=8, CUSTOM_GPU=4))

    def test_a_group_of_two_classes_needs_the_only_provider(self):
        both = {GPU: units(1), NIC: units(1)}
        wanted = groups({f'resources1:{GPU}': '1', f'resources1:{NIC}': '1'})
        assert wanted.suits(host(((), both)))
        assert not wanted.suits(host(((), both), ((), both)))
        assert not wanted.suits(host(((), both), *gpus(1)))

    def test_the_traits_are_those_of_every_provider_of_the_class(self):
        for specs in (
            {f'resources:{GPU}': '1', f'trait:{FAST}': 'required'},
            {f'resources7:{GPU}': '1', f'trait7:{FAST}': 'required'},
            {f'resources7:{GPU}': '1', f'trait7:{OLD}': 'forbidden'},
        ):
            wanted = groups(specs)
            fast = gpus(1, traits=(FAST,))
            assert wanted.suits(host(*fast, *fast))
            assert not wanted.suits(host(*gpus(1, traits=(OLD,))))
            assert not wanted.suits(host(*fast, *gpus(1, traits=(OLD,))))
            # A trait of another class is of no use.
            assert not wanted.suits(host(
                *gpus(1, traits=(OLD,)), ((FAST,), {NIC: units(1)})
            ))

    def test_a_trait_of_a_group_with_suffix_is_not_that_of_the_host(self):
        children = gpus(1)
        assert groups(
            {f'resources:{GPU}': '1', f'trait:{FAST}': 'required'}
        ).suits(host(*children, traits=(FAST,), VCPU=1))
        assert not groups(
            {f'resources1:{GPU}': '1', f'trait1:{FAST}': 'required'}
        ).suits(host(*children, traits=(FAST,), VCPU=1))

    def test_groups_apart_need_providers_of_one_unit(self):
        wanted = groups({
            f'resources1:{GPU}': '1', f'resources2:{GPU}': '1',
            'group_policy': 'isolate',
        })
        assert wanted.suits(host(*gpus(1, 1, 1)))
        assert not wanted.suits(host(*gpus(2, 2)))
        assert not wanted.suits(host(VCPU=8, CUSTOM_GPU=2))

    def test_groups_apart_may_be_of_classes_that_are_apart(self):
        wanted = groups({
            f'resources1:{GPU}': '1', f'resources2:{NIC}': '1',
            'group_policy': 'isolate',
        })
        assert wanted.suits(host(*gpus(4), ((), {NIC: units(4)})))
        assert not wanted.suits(host(((), {GPU: units(4), NIC: units(4)})))

    @pytest.mark.parametrize(('held', 'amount', 'suits'), [
        (units(8, step_size=2), 4, True),
        (units(8, step_size=2), 3, False),
        (units(8, max_unit=2), 3, False),
        (units(8, min_unit=4), 3, False),
        (units(8, min_unit=4), 4, True),
    ])
    def test_the_limits_of_a_provider_hold(self, held, amount, suits):
        wanted = groups({f'resources:{GPU}': str(amount)})
        assert wanted.suits(host(((), {GPU: held}))) is suits

    def test_a_host_without_the_class_never_does(self):
        assert not groups({f'resources:{GPU}': '1'}).suits(host(VCPU=8))

    def test_encoding(self):
        wanted = groups({
            f'resources1:{GPU}': '1', f'trait1:{FAST}': 'required',
            f'trait:{OLD}': 'forbidden', 'group_policy': 'isolate',
        })
        encoded = request_group.encode(wanted)
        assert request_group.decode(encoded) == wanted


class Tree:
    """What Placement would allocate of a tree: an oracle of its own.

    :param own: the traits and the inventory of the root
    """

    def __init__(self, own, children):
        self.providers = [own, *children]

    def candidates(self, used, asked):
        """Return all ways to allocate the groups beside what is used."""
        parts = []
        for group in asked.groups:
            names = dict(group.resources)
            if group.suffix:
                parts.append([(
                    group, [(n, name) for name in names]
                ) for n in range(len(self.providers))])
            else:
                parts.append([
                    (group, list(zip(way, names, strict=True)))
                    for way in itertools.product(
                        range(len(self.providers)), repeat=len(names)
                    )
                ])
        for way in itertools.product(*parts):
            taken = self._taken(way, used, asked.isolate)
            if taken is not None:
                yield taken

    def _taken(self, way, used, isolate):
        taken = dict(used)
        apart = []
        for group, places in way:
            amounts = dict(group.resources)
            having = set()
            for n, name in places:
                traits, held = self.providers[n]
                if name not in held or not held[name].allows(amounts[name]):
                    return None
                if set(traits).intersection(group.forbidden):
                    return None
                having.update(traits)
                taken[n, name] = taken.get((n, name), 0) + amounts[name]
                if taken[n, name] > held[name].capacity:
                    return None
            if not having.issuperset(group.required):
                return None
            if group.suffix:
                apart.append(places[0][0])
        if isolate and len(set(apart)) < len(apart):
            return None
        return taken

    def slots(self, used, asked, choose):
        """Return how many instances are booted, by the choice of each one.

        :param choose: min for the worst choices, max for the best choices
        """
        @functools.cache
        def count(state):
            return choose((
                1 + count(frozenset(taken.items()))
                for taken in self.candidates(dict(state), asked)
            ), default=0)

        return count(frozenset(used.items()))


def random_tree(rng):
    def some_units():
        return units(
            rng.choice((1, 1, 1, 2, 3)), max_unit=rng.choice((1, 2, 99)),
            step_size=rng.choice((1, 1, 2)),
        )

    def some_traits():
        return tuple(t for t in (FAST, OLD) if rng.random() < 0.3)

    alike = some_traits()
    children = [
        (
            alike if rng.random() < 0.6 else some_traits(),
            {
                name: units(1) if rng.random() < 0.5 else some_units()
                for name in rng.choice(((GPU,), (GPU,), (NIC,), (GPU, NIC)))
            },
        )
        for _ in range(rng.randint(1, 3))
    ]
    own = {GPU: units(rng.randint(1, 2))} if rng.random() < 0.2 else {}
    return Tree((some_traits(), own), children)


def random_groups(rng):
    found = []
    for suffix in rng.sample(('', '1', '2'), rng.randint(1, 2)):
        names = rng.choice(((GPU,), (GPU,), (NIC,), (GPU, NIC)))
        found.append(RequestGroup(
            suffix, tuple((name, rng.choice((1, 1, 1, 2))) for name in names),
            (FAST,) if rng.random() < 0.2 else (),
            (OLD,) if rng.random() < 0.2 else (),
        ))
    return RequestGroups(tuple(found), rng.random() < 0.4)


def random_use(rng, tree):
    """Return what other servers happen to use, of any providers."""
    return {
        (n, name): rng.randint(0, held.capacity)
        for n, (_, inventory) in enumerate(tree.providers)
        for name, held in inventory.items()
    }


def cases(seed, count):
    """Yield random trees, groups and use: of a tree as a host, too."""
    rng = random.Random(seed)
    for _ in range(count):
        tree, asked = random_tree(rng), random_groups(rng)
        (traits, own), *children = tree.providers
        # The limits of a host's own inventory are not known.
        if any(held != units(held.capacity) for held in own.values()):
            continue
        known = host(
            *children, traits=traits,
            **{name: held.capacity for name, held in own.items()},
        )
        yield tree, known, asked, random_use(rng, tree)


def by_sums(known, asked, used):
    """Return for how many instances the sums of the classes are enough."""
    needs = Counter()
    for group in asked.groups:
        needs.update(dict(group.resources))
    taken = Counter()
    for (_, name), amount in used.items():
        taken[name] += amount
    return min(
        (known.capacity(name) - taken[name]) // amount
        for name, amount in needs.items()
    )


@pytest.mark.row('F94')
def test_sums_say_what_placement_would_allocate():
    """Whatever is used by others, and whichever candidates are chosen."""
    found = []
    for tree, known, asked, used in cases(15, 3000):
        if asked.suits(known):
            found.append(by_sums(known, asked, used))
            for choose in (min, max):
                assert tree.slots(used, asked, choose) == found[-1]
    assert len(found) > 300
    assert sum(each > 0 for each in found) > 100


def test_on_other_hosts_the_sums_promise_too_much():
    """The control: what reservations would get without the rule."""
    wrong = [
        tree.slots(used, asked, min) < by_sums(known, asked, used)
        for tree, known, asked, used in cases(16, 500)
        if not asked.suits(known)
    ]
    assert sum(wrong) > 50
