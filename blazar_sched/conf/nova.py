# SPDX-License-Identifier: Apache-2.0
"""Options of the client of Nova, which keystoneauth defines.

Without ``auth_type`` there is no cloud, and requests that need a cloud are
refused.
"""

from oslo_config import cfg

from blazar_sched.conf import client
from blazar_sched.domain import pci_alias

GROUP = 'nova'

opts = [
    *client.options(service_type='compute'),
    cfg.MultiStrOpt(
        'pci_alias', default=[],
        help='PCI aliases that flavors name in pci_passthrough:alias: the '
        'same JSON values as in [pci] alias of nova.conf. The option may be '
        'repeated. It is for clouds whose PCI devices are in Placement: '
        '[pci] report_in_placement and [filter_scheduler] pci_in_placement '
        'of nova.conf. With it the devices of a flavor are reserved too, and '
        'a flavor with an alias that is not here cannot be reserved. Without '
        'it PCI devices are neither reserved nor counted.',
    ),
]


def pci_aliases(conf: cfg.ConfigOpts) -> dict[str, pci_alias.Alias]:
    """Return the PCI aliases by name.

    An empty value counts as no value: the sample of the configuration shows
    an option without values in this way.

    :raises ValueError: if the option is wrong
    """
    try:
        return pci_alias.read(filter(None, conf.nova.pci_alias))
    except ValueError as e:
        raise ValueError(f'[nova] pci_alias: {e}') from e
