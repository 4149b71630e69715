# SPDX-License-Identifier: Apache-2.0
"""A check of the configured credentials, by obtaining tokens with them.

For `blazar-sched status upgrade check`: each message names the group.
"""

from collections.abc import Iterator

from keystoneauth1 import adapter
from keystoneauth1 import exceptions
from keystoneauth1 import loading
from keystoneauth1 import session
from keystonemiddleware import opts as keystonemiddleware_opts
from oslo_config import cfg

from blazar_sched.conf import keystone as keystone_conf
from blazar_sched.conf import nova as nova_conf
from blazar_sched.conf import placement as placement_conf
from blazar_sched.conf import service as service_conf
from blazar_sched.service import parts
from blazar_sched.service.clients import rest

TOKENS = 'keystone_authtoken'
# The groups without which a manager can do nothing for a lease.
NEEDED = (nova_conf.GROUP, placement_conf.GROUP)


def register_tokens(conf: cfg.ConfigOpts) -> None:
    """Register the group that the API's middleware would register."""
    for group, opts in keystonemiddleware_opts.list_auth_token_opts():
        conf.register_opts(opts, group)


def lacking(conf: cfg.ConfigOpts) -> list[str]:
    """Return a message for each unconfigured group that a manager needs.

    On a node that runs the API alone, such a group is not needed.
    """
    return [
        f'[{group}] auth_type is not set: a manager on this node cannot call '
        'this service'
        for group in NEEDED
        if not conf[group].auth_type
    ]


def faults(conf: cfg.ConfigOpts) -> Iterator[str]:
    """Yield the faults of each group; tokens are requested from Keystone.

    :raises oslo_config.cfg.Error: if a value cannot be read
    """
    if conf.api.auth_strategy == 'keystone':
        yield from _fault_of_tokens(conf)
    # Without the others, a manager has no trusts, or parts do nothing.
    of_parts = sorted(service_conf.clients(parts.running(conf)))
    for group in (*NEEDED, keystone_conf.GROUP, *of_parts):
        if conf[group].auth_type:
            yield from _fault_of(conf, group)


def _fault_of_tokens(conf: cfg.ConfigOpts) -> Iterator[str]:
    """Yield the faults that prevent the API from validating tokens."""
    register_tokens(conf)
    if conf[TOKENS].auth_type or conf[TOKENS].auth_section:
        yield from _fault_of(conf, TOKENS, is_service=False)
    else:
        yield (
            f'[{TOKENS}] auth_type is not set: with [api] auth_strategy = '
            'keystone every request fails with status 503'
        )


def _fault_of(
    conf: cfg.ConfigOpts, group: str, is_service: bool = True
) -> Iterator[str]:
    try:
        api = rest.load_adapter(conf, group) if is_service else _plain(conf)
        if api is None or not api.get_token():
            yield f'[{group}] auth_type provides no token'
        elif is_service and not api.get_endpoint():
            yield (
                f'[{group}] the service catalog has no endpoint with '
                f'service_type {conf[group].service_type}, region_name '
                f'{conf[group].region_name} and valid_interfaces '
                f'{conf[group].valid_interfaces}'
            )
    except (exceptions.ClientException, ValueError) as e:
        yield f'[{group}] Keystone issued no token: {e}'


def _plain(conf: cfg.ConfigOpts) -> adapter.Adapter:
    """Return an adapter that calls Keystone as the API's middleware does."""
    auth = loading.load_auth_from_conf_options(conf, TOKENS)
    options = conf[TOKENS]
    return adapter.Adapter(
        session.Session(
            auth=auth,
            verify=not options.insecure and (options.cafile or True),
            cert=(options.certfile, options.keyfile)
            if options.certfile
            else None,
            timeout=options.http_connect_timeout or rest.TIMEOUT,
        )
    )
