# SPDX-License-Identifier: Apache-2.0
"""Policy rules of oslo.policy, one noun per file, with Blazar's names.

Operators have these names in their policy files: never change a name.
"""

import itertools

from oslo_policy import policy

from blazar_sched.policies import allocation
from blazar_sched.policies import base
from blazar_sched.policies import capacity
from blazar_sched.policies import flavor
from blazar_sched.policies import floating_ip
from blazar_sched.policies import host
from blazar_sched.policies import lease
from blazar_sched.policies import lease_request
from blazar_sched.policies import maintenance
from blazar_sched.policies import offer
from blazar_sched.policies import property
from blazar_sched.policies import series
from blazar_sched.policies import timeline


def list_rules() -> list[policy.RuleDefault]:
    """Return every rule, for the enforcer and oslo.policy's own tools."""
    return list(
        itertools.chain(
            base.rules,
            allocation.rules,
            capacity.rules,
            flavor.rules,
            floating_ip.rules,
            host.rules,
            lease.rules,
            lease_request.rules,
            maintenance.rules,
            offer.rules,
            property.rules,
            series.rules,
            timeline.rules,
        )
    )
