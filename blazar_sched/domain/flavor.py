# SPDX-License-Identifier: Apache-2.0
"""A Nova flavor, with the fields that a reservation of instances needs."""

from collections import Counter
from collections import defaultdict
from collections.abc import Iterator
from collections.abc import Mapping
import dataclasses
import json
import re
from typing import Any

import os_resource_classes as orc
from oslo_utils import strutils

from blazar_sched.domain import inventory
from blazar_sched.domain import requirements
from blazar_sched.domain.request_group import ISOLATE
from blazar_sched.domain.request_group import RequestGroup
from blazar_sched.domain.request_group import RequestGroups

# Extra specs of this project: the id of the reservation whose own flavor it
# is, how long servers live, and whether they yield.
PREFIX = 'blazar:'
RESERVATION = f'{PREFIX}reservation'
LIFETIME = f'{PREFIX}lifetime'
PREEMPTIBLE = f'{PREFIX}preemptible'
# How servers of the flavor may be moved; see domain.relocation.
MOVABLE = f'{PREFIX}movable'

# The extra specs of OpenStack Watcher's specification "Preemptible Instances"
# (2026.2): whether servers yield, and what is done with a server that has to.
WATCHERS_PREEMPTIBLE = 'lifecycle:preemptable'
PREEMPT_POLICY = 'lifecycle:preempt_policy'
SHELVE, DELETE = 'shelve', 'delete'

# The extra spec of flavors that Blazar has made of reservations, instead of
# RESERVATION: servers keep what their flavor said when they were booted.
BLAZARS = 'aggregate_instance_extra_specs:reservation'
# The extra spec with which Blazar names the server group of the reservation.
BLAZARS_GROUP = 'affinity_id'

# The extra specs that a reservation may give its own flavor: none that this
# service sets or reads, that ask Placement for more than the size, or that
# choose hosts, as all without a scope do.
EXTRA_SPEC = (
    r'(?!(blazar|lifecycle|capabilities|aggregate_instance_extra_specs|accel|'
    r'pci_passthrough):|(resources|trait)[^:]*:|'
    r'hw:(cpu_policy|emulator_threads_policy|pmem|mem_encryption)$)'
    r'[A-Za-z0-9_.-]{1,64}:[A-Za-z0-9_.: -]{1,128}'
)
MAX_EXTRA_SPECS = 32

_RESOURCES = 'resources'
_TRAIT = 'trait'
# A prefix, the suffix of a numbered group, and a resource class or trait.
_KEY = re.compile(rf'({_RESOURCES}|{_TRAIT})([a-zA-Z0-9_-]{{1,64}})?:(.+)')

# The host properties that Nova's ComputeCapabilitiesFilter can match and that
# the ledger knows, and the operators of that filter.
_CAPABILITIES = ('hypervisor_type', 'hypervisor_version')
_OPERATORS = {
    '': '==', '==': '==', 's==': '==', '!=': '!=', 's!=': '!=',
    '=': '>=', '>=': '>=', '<=': '<=',
}  # fmt: skip


@dataclasses.dataclass(frozen=True, slots=True)
class Flavor:
    """A copy of a Nova flavor.

    `projects` are the projects that may use a private flavor, None if the
    flavor is public. The ledger keeps a copy of Nova's flavors, so that a
    lease is placed without a call to Nova.
    """

    id: str
    name: str
    vcpus: int
    memory_mb: int
    disk_gb: int
    ephemeral_gb: int = 0
    swap_mb: int = 0
    extra_specs: Mapping[str, str] = dataclasses.field(default_factory=dict)
    projects: tuple[str, ...] | None = None

    def is_open_to(self, project_id: str) -> bool:
        return self.projects is None or project_id in self.projects


def as_blazar(parameters: Mapping[str, Any]) -> str:
    """Return the flavor of a reservation as the JSON text that Blazar stores.

    Blazar stores what Nova shows of the flavor, in the first version of Nova's
    API: there a flavor without swap has the swap ''.

    :param parameters: the parameters of a ``flavor:instance``
    """
    return json.dumps({
        'id': parameters['flavor_id'],
        'name': parameters['name'],
        'ram': parameters['memory_mb'],
        'disk': parameters['disk_gb'],
        'swap': parameters['swap_mb'] or '',
        'OS-FLV-EXT-DATA:ephemeral': parameters['ephemeral_gb'],
        'OS-FLV-DISABLED:disabled': False,
        'vcpus': parameters['vcpus'],
        'os-flavor-access:is_public': parameters['is_public'],
        'rxtx_factor': 1.0,
        'extra_specs': parameters['extra_specs'],
    })


def reservation_id(extra_specs: Mapping[str, str]) -> str | None:
    """Return the reservation that a flavor is of, None if there is none."""
    return extra_specs.get(RESERVATION) or extra_specs.get(BLAZARS)


def is_preemptible(extra_specs: Mapping[str, str]) -> bool:
    """Tell whether the servers of a flavor yield to reservations.

    PREEMPTIBLE takes precedence over WATCHERS_PREEMPTIBLE.
    """
    said = extra_specs.get(
        PREEMPTIBLE, extra_specs.get(WATCHERS_PREEMPTIBLE, '')
    )
    preemptible: bool = strutils.bool_from_string(said)
    return preemptible


def preempt_policy(extra_specs: Mapping[str, str]) -> str | None:
    """Return what is done with preemptible servers of a flavor that go.

    :returns: SHELVE or DELETE; None if the flavor does not say
    """
    policy = extra_specs.get(PREEMPT_POLICY)
    return policy if policy in (SHELVE, DELETE) else None


def resources(
    vcpus: int, memory_mb: int, disk_gb: int, extra_specs: Mapping[str, str]
) -> dict[str, int]:
    """Return the amounts that an instance asks of Placement, by class.

    Only positive amounts are returned, counted as Nova does: ``resources:X``
    replaces the flavor's own figure, the amounts of numbered groups
    (``resources1:X``) are added up, and extra specs that Nova does not
    understand are left out. ``hw:cpu_policy`` dedicated or mixed turns VCPU
    into PCPU, by ``hw:cpu_dedicated_mask`` or ``hw:cpu_realtime_mask`` if the
    policy is mixed, and ``hw:emulator_threads_policy`` isolate adds one PCPU.
    ``hw:pmem`` asks for a namespace by each label, ``hw:mem_encryption`` for
    one context.

    Left out are the resource class of the slots of a reservation, which no
    host has of its own, and the other amounts that Nova adds: by the image, by
    ports and devices.

    :param disk_gb: DISK_GB of all disks, as returned by `disk_gb`
    """
    groups: dict[str, dict[str, int]] = defaultdict(dict)
    for group, name, text in _specs(_RESOURCES, extra_specs):
        amount = _amount(text)
        if amount is not None and _is_class(name):
            groups[group][name] = amount
    groups[''].update(_cpus(vcpus, extra_specs))
    asked: Counter[str] = Counter()
    for amounts in groups.values():
        asked.update(amounts)
    if inventory.PCPU not in asked:
        asked.setdefault(inventory.VCPU, vcpus)
    asked.setdefault(inventory.MEMORY_MB, memory_mb)
    asked.setdefault(inventory.DISK_GB, disk_gb)
    return {name: amount for name, amount in asked.items() if amount}


def disk_gb(root_gb: int, ephemeral_gb: int, swap_mb: int) -> int:
    """Return the DISK_GB of all disks; a part of a GB counts as a whole GB."""
    return root_gb + ephemeral_gb - (-swap_mb // 1024)


def figures(
    vcpus: int, memory_mb: int, root_gb: int, ephemeral_gb: int, swap_mb: int,
    amounts: Mapping[str, int],
) -> dict[str, int] | None:
    """Return what Nova counts for an instance in the figures of its host.

    The figures include neither ``resources:X`` nor PCPU. Nova also adds up
    parts of a GB of swap, and rounds the sum of a host down to whole GB.

    :param amounts: the amounts that Placement counts for the same instance
    :returns: amounts by RESOURCE_CLASSES; None if Placement counts the same
        amounts
    """
    counted = {
        inventory.VCPU: vcpus,
        inventory.MEMORY_MB: memory_mb,
        inventory.DISK_GB: root_gb + ephemeral_gb + swap_mb // 1024,
    }
    same = all(amounts.get(name, 0) == n for name, n in counted.items())
    return None if same else counted


def traits(
    extra_specs: Mapping[str, str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the required and the forbidden traits, each in order.

    The traits are those of ``trait:X`` and of numbered groups (``trait1:X``).
    """
    found = [(how, name) for _, name, how in _specs(_TRAIT, extra_specs)]
    required = {name for how, name in found if how == 'required'}
    forbidden = {name for how, name in found if how == 'forbidden'}
    return tuple(sorted(required)), tuple(sorted(forbidden))


def groups(
    amounts: Mapping[str, int], extra_specs: Mapping[str, str]
) -> RequestGroups:
    """Return the request groups of a flavor, as Nova asks Placement for them.

    :param amounts: what `resources` returns for the flavor
    """
    resources_: dict[str, Counter[str]] = defaultdict(Counter)
    traits_: dict[tuple[str, str], set[str]] = defaultdict(set)
    rest = Counter(amounts)
    for group, name, text in _specs(_RESOURCES, extra_specs):
        amount = _amount(text)
        if group and amount and name in amounts:
            resources_[group][name] = amount
            rest[name] -= amount
    # What is in no group with a suffix is in the group without one.
    resources_[''] = +rest
    for group, name, how in _specs(_TRAIT, extra_specs):
        traits_[group, how].add(name)
    suffixes = {*resources_, *(group for group, _ in traits_)}
    return RequestGroups(
        tuple(
            RequestGroup(
                suffix, tuple(sorted(resources_[suffix].items())),
                tuple(sorted(traits_[suffix, 'required'])),
                tuple(sorted(traits_[suffix, 'forbidden'])),
            )
            for suffix in sorted(suffixes)
        ),
        extra_specs.get('group_policy') == ISOLATE,
    )


def own_groups(
    amounts: Mapping[str, int], extra_specs: Mapping[str, str]
) -> RequestGroups | None:
    """Return the request groups of a flavor with further resource classes.

    :param amounts: what `resources` returns for the flavor
    :returns: None for a flavor with RESOURCE_CLASSES alone
    """
    if not inventory.others(amounts):
        return None
    return groups(amounts, extra_specs)


def requirement(
    extra_specs: Mapping[str, str], asked: str = '', with_traits: bool = True
) -> str:
    """Return the requirement of a flavor for hosts, as JSON text.

    :param asked: a requirement that the hosts have to meet as well
    :param with_traits: whether the host itself has to meet the traits, and
        not the providers of its request groups
    :raises InvalidInput: naming `resource_properties`, if the requirement is
        too large
    """
    required, forbidden = traits(extra_specs) if with_traits else ((), ())
    having = {
        name: json.dumps(['==', f'$trait:{name}', 'true'])
        for name in (*required, *forbidden)
    }
    parts = [having[name] for name in required]
    parts += [f'["not", {having[name]}]' for name in forbidden]
    parts += _capabilities(extra_specs)
    if not parts:
        return asked
    # Combined as text, so that no number in the request is reformatted.
    if json.loads(asked or '[]'):
        parts.append(asked)
    text = f'["and", {", ".join(parts)}]'
    requirements.parse(text, 'resource_properties')
    return text


def _capabilities(extra_specs: Mapping[str, str]) -> Iterator[str]:
    """Yield the requirements of the extra specs ``capabilities:…``."""
    for name in _CAPABILITIES:
        text = extra_specs.get(f'capabilities:{name}')
        asked, _, value = (text or '').rpartition(' ')
        operator = _OPERATORS.get(asked.strip())
        if text is not None and operator is not None:
            yield json.dumps([operator, f'${name}', value])


def _specs(
    prefix: str, extra_specs: Mapping[str, str]
) -> Iterator[tuple[str, str, str]]:
    """Yield (group, name, value) of the extra specs with a prefix."""
    for key, value in (*extra_specs.items(), *_translated(extra_specs)):
        match = _KEY.fullmatch(key)
        if match is not None and match[1] == prefix:
            yield match[2] or '', match[3], value


def _translated(extra_specs: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the extra specs into which Nova translates ``hw:`` ones."""
    labels = map(str.strip, extra_specs.get('hw:pmem', '').split(','))
    for label, count in Counter(filter(None, labels)).items():
        name = orc.normalize_name(f'PMEM_NAMESPACE_{label}')
        yield f'{_RESOURCES}:{name}', str(count)
    if strutils.bool_from_string(extra_specs.get('hw:mem_encryption', '')):
        yield f'{_RESOURCES}:{orc.MEM_ENCRYPTION_CONTEXT}', '1'
        model = extra_specs.get('hw:mem_encryption_model', 'amd-sev')
        trait = f'HW_CPU_X86_{model.upper().replace("-", "_")}'
        yield f'{_TRAIT}:{trait}', 'required'


def _is_class(name: str) -> bool:
    if name.startswith(inventory.SLOT_PREFIX):
        return False
    return name.startswith(orc.CUSTOM_NAMESPACE) or name in orc.STANDARDS


def _amount(text: str) -> int | None:
    try:
        amount = int(text)
    except ValueError:
        return None
    return amount if amount >= 0 else None


def _cpus(vcpus: int, extra_specs: Mapping[str, str]) -> dict[str, int]:
    """Return the VCPU and PCPU that the CPU policy asks for, if any."""
    policy = extra_specs.get('hw:cpu_policy')
    isolate = extra_specs.get('hw:emulator_threads_policy') == 'isolate'
    if policy == 'dedicated':
        return {inventory.PCPU: vcpus + isolate}
    if policy != 'mixed':
        return {}
    mask = extra_specs.get('hw:cpu_dedicated_mask') or extra_specs.get(
        'hw:cpu_realtime_mask', ''
    )
    pinned = _count(mask, vcpus)
    return {inventory.VCPU: vcpus - pinned, inventory.PCPU: pinned + isolate}


def _count(mask: str, vcpus: int) -> int:
    """Return how many vCPUs '2-5,^3' names; '^0' is all but the first vCPU.

    The count is 0 if the mask cannot be read: Nova refuses such a flavor.
    """
    every = range(vcpus)
    named = set(every) if mask.startswith('^') else set()
    struck: set[int] = set()
    try:
        for part in mask.split(','):
            first, _, last = part.strip().removeprefix('^').partition('-')
            run = every[int(first) : int(last or first) + 1]
            (struck if '^' in part else named).update(run)
    except ValueError:
        return 0
    return len(named - struck)
