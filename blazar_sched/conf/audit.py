# SPDX-License-Identifier: Apache-2.0
"""Group ``audit``: the audit trail of the API, with the options of Ironic.

How the events are sent is in [audit_middleware_notifications], which
keystonemiddleware defines.
"""

from oslo_config import cfg

GROUP = 'audit'

opts = [
    cfg.BoolOpt(
        'enabled', default=False,
        help='Whether the API sends two events of the CADF standard about '
        'each request with a valid token, before and after the request, by '
        'the audit middleware of keystonemiddleware: who has requested what, '
        'with which result. The API starts only if [audit_middleware_'
        'notifications] or [oslo_messaging_notifications] names a driver.',
    ),
    cfg.StrOpt(
        'audit_map_file',
        help='Path of the file that maps the paths of the API to the actions '
        'and resources of CADF. If it is not set, the file api_audit_map.conf '
        'of this package is used.',
    ),
    cfg.ListOpt(
        'ignore_req_list', default=[],
        help='HTTP methods whose requests are not audited, such as GET,HEAD. '
        'By default all requests are audited.',
    ),
]
