# SPDX-License-Identifier: Apache-2.0
"""The options of the web page, in a group of the core."""

from oslo_config import cfg

from blazar_sched.conf import api

OPTIONS = {api.GROUP: [
    cfg.BoolOpt(
        'serve_page', default=True,
        help='Whether the API serves its web page at ``/ui/``. With '
        '``auth_strategy = keystone`` users sign in on the page: the API then '
        'asks the Keystone of [keystone] for their tokens.',
    ),
    cfg.DictOpt(
        'websso', default={},
        help='The sign-ins by federation that the web page offers: a label '
        'and the URL of Keystone for each, such as ``University: '
        'https://keystone.example.org/v3/auth/OS-FEDERATION/websso/openid``. '
        'Keystone sends a user back to ``/ui/websso`` of the API: the whole '
        'URL, as browsers see it, must be a [federation] trusted_dashboard '
        'of keystone.conf.',
    ),
]}
