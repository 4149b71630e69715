# SPDX-License-Identifier: Apache-2.0
"""The options of placing and of relocation, read from the configuration."""

from typing import Any

from oslo_config import cfg

from blazar_sched.conf import relocation as relocation_conf
from blazar_sched.domain import exception
from blazar_sched.domain import requirements
from blazar_sched.domain.relocation import Rules
from blazar_sched.placing import options


def read(conf: Any) -> options.Options:
    """Return the options by which leases are placed.

    :param conf: the manager's group of options
    :raises ValueError: if the default requirement cannot be parsed
    """
    try:
        default = requirements.parse(
            conf.default_resource_properties, 'default_resource_properties'
        )
    except (exception.InvalidInput, cfg.Error) as e:
        raise ValueError(
            '[manager] default_resource_properties is not a requirement '
            f'(write $ as $$): {e}'
        ) from e
    pairs = (each.rsplit('=', 1) for each in conf.cleaning_times)
    return options.Options(
        60 * conf.cleaning_time, default, conf.retry_without_defaults,
        cleaning_times={
            resource_type: 60 * int(minutes)
            for resource_type, minutes in pairs
        },
    )


def rules(conf: cfg.ConfigOpts) -> Rules | None:
    """Return the rules of relocation; None if no instance is relocated."""
    if not conf.manager.relocate_instances:
        return None
    return relocation_conf.rules(conf.manager)
