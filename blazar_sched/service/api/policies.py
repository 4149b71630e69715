# SPDX-License-Identifier: Apache-2.0
"""The policy rules, for the enforcer and for oslo.policy's own tools."""

from collections import defaultdict
import itertools

from oslo_policy import policy

from blazar_sched.service.api import routes
from blazar_sched.service.api import rule
from blazar_sched.service.api.route import Route
from blazar_sched.service.api.rule import Rule


def list_rules() -> list[policy.RuleDefault]:
    """Return every rule, with the routes that ask the rule."""
    asking = defaultdict[Rule, list[Route]](list)
    for route in routes.ROUTES:
        if route.rule is not None:
            for each in (route.rule, *route.also):
                asking[each].append(route)
    return [*rule.base(), *itertools.starmap(_default, asking.items())]


def _default(rule_: Rule, asking: list[Route]) -> policy.RuleDefault:
    return policy.DocumentedRuleDefault(
        rule_.name, f'rule:{rule_.role}',
        rule_.text or ' '.join(each.summary for each in asking),
        [{'path': each.path, 'method': each.method} for each in asking],
        scope_types=rule.SCOPES,
    )
