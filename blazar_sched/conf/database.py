# SPDX-License-Identifier: Apache-2.0
"""Options of the ledger's database."""

from oslo_config import cfg

GROUP = 'database'
MAX_RETRIES = 10
# The names of SQLAlchemy for options of the pool.
POOL = {
    'max_pool_size': 'pool_size',
    'max_overflow': 'max_overflow',
    'pool_timeout': 'pool_timeout',
    'connection_recycle_time': 'pool_recycle',
}

opts = [
    cfg.StrOpt(
        'connection', default='sqlite:///blazar-sched.sqlite', secret=True,
        help="""
URL of the database of the ledger, in the format of SQLAlchemy.

A SQLite file is sufficient for an installation on one node. For MariaDB and
MySQL the format is ``mysql+pymysql://user:password@host/database``, for
PostgreSQL ``postgresql+psycopg2://user:password@host/database``. A URL that
names no driver uses the driver that is installed.
""",
    ),
    cfg.IntOpt(
        'max_retries', default=MAX_RETRIES, min=-1,
        help=f"""
Maximum number of retries of a transaction that the database does not do now.

After that the request fails with the error that the service is unavailable. 0
disables retries. -1 means {MAX_RETRIES}: in oslo.db it means to wait for the
database without limit at the start, as this service always does. Retried are
conflicts, such as deadlocks, serialization failures, lock timeouts and failed
Galera certifications, and transactions of a database that cannot be reached,
is read-only, full or overloaded, or has cancelled a statement.
""",
    ),
    # As in oslo.db. SQLite has no such pool.
    cfg.IntOpt(
        'max_pool_size', min=0,
        help='Maximum number of connections that are kept open, 0 for no '
        'limit.',
    ),
    cfg.IntOpt(
        'max_overflow', min=-1,
        help='Maximum number of further connections, -1 for no limit.',
    ),
    cfg.IntOpt(
        'pool_timeout', min=0,
        help='Seconds to wait for a connection if all are in use.',
    ),
    cfg.IntOpt(
        'connection_recycle_time', min=-1,
        help='Seconds after which a connection is replaced on its next use, '
        '-1 for never.',
    ),
]
