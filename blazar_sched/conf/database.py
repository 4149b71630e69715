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
PostgreSQL ``postgresql+psycopg2://user:password@host/database``. A URL that
names no driver uses the driver that is installed.
""",
    ),
    cfg.IntOpt(
        'max_retries',
        default=10,
        min=0,
        help="""
Maximum number of retries of a transaction that the database does not do now.

After that the request fails with the error that the service is unavailable. 0
disables retries. Retried are conflicts, such as deadlocks, serialization
failures, lock timeouts and failed Galera certifications, and transactions of a
database that cannot be reached, is read-only, full or overloaded, or has
cancelled a statement.
""",
    ),
]


def register(conf: cfg.ConfigOpts) -> None:
    conf.register_opts(opts, group=GROUP)
