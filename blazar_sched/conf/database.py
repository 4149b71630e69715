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
URL of the database of the ledger, in the format of SQLAlchemy.

A SQLite file is sufficient for an installation on one node. For MariaDB and
MySQL the format is ``mysql+pymysql://user:password@host/database``, for
PostgreSQL ``postgresql+psycopg2://user:password@host/database``.
""",
    ),
    cfg.IntOpt(
        'max_retries',
        default=10,
        min=0,
        help="""
Maximum number of retries of a transaction after a conflict in the database.

After that the request fails with the error that the service is unavailable. 0
disables retries. Conflicts are deadlocks, serialization failures, lock
timeouts, lost connections and failed Galera certifications.
""",
    ),
]


def register(conf: cfg.ConfigOpts) -> None:
    conf.register_opts(opts, group=GROUP)
