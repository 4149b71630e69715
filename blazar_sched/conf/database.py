# SPDX-License-Identifier: Apache-2.0
"""Options of the ledger's database."""

from oslo_config import cfg

GROUP = 'database'

opts = [
    cfg.StrOpt(
        'connection',
        default='sqlite:///blazar-sched.sqlite',
        secret=True,
        help="""
The ledger's database, as an SQLAlchemy URL.

A SQLite file serves one node. For MariaDB or MySQL write
``mysql+pymysql://user:password@host/database``, for PostgreSQL
``postgresql+psycopg2://user:password@host/database``.
""",
    ),
    cfg.IntOpt(
        'max_retries',
        default=10,
        min=0,
        help="""
How often a commit that met a conflict is tried again before the caller is
told that the service is unavailable.

Conflicts are deadlocks, serialization failures, lock timeouts, lost
connections and failed Galera certifications.
""",
    ),
]


def register(conf: cfg.ConfigOpts) -> None:
    conf.register_opts(opts, group=GROUP)
