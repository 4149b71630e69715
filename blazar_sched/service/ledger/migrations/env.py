# SPDX-License-Identifier: Apache-2.0
"""The script of alembic: runs the migrations in the caller's transaction."""

from alembic import context

from blazar_sched.service.ledger import models

context.configure(
    connection=context.config.attributes['connection'],
    target_metadata=models.Base.metadata,
)
context.run_migrations()
