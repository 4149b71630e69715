# SPDX-License-Identifier: Apache-2.0
"""Policy enforcement by oslo.policy."""

from collections.abc import Sequence

from oslo_config import cfg
from oslo_context import context
from oslo_policy import policy

from blazar_sched.domain import exception
from blazar_sched.service.api import rule


class Enforcer:
    """The policy rules, with the operator's own rules from the policy file.

    :param rules: the rules that hold by default
    """

    def __init__(
        self, conf: cfg.ConfigOpts, rules: Sequence[policy.RuleDefault]
    ) -> None:
        self._enforcer = policy.Enforcer(conf)
        self._enforcer.register_defaults(rules)
        self._enforcer.load_rules()

    def authorize(self, ctxt: context.RequestContext, name: str) -> None:
        """Check that `ctxt` may do what a rule allows in its own project.

        :raises NotAuthorized: otherwise
        """
        if not ctxt.project_id:
            raise exception.NotAuthorized('the token has no project')
        target = {'project_id': ctxt.project_id}
        try:
            self._enforcer.authorize(name, target, ctxt, do_raise=True)
        except (policy.PolicyNotAuthorized, policy.InvalidScope) as e:
            raise exception.NotAuthorized(
                f'the policy {name} does not allow the request'
            ) from e

    def is_admin(self, ctxt: context.RequestContext) -> bool:
        """Tell whether `ctxt` may see every project."""
        return bool(
            self._enforcer.authorize(rule.ADMIN, {}, ctxt, do_raise=False)
        )
