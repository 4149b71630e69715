# SPDX-License-Identifier: Apache-2.0
"""The REST API, compatible with Blazar's own clients.

The API holds no state and no database: every response comes from the manager,
by RPC. `routes` has all routes in one table, `deploy` the layers in front of
them. Each noun has one file, with its routes, views and schemas; leases and
reservations, whose tables are long, have two more in ``views`` and
``schemas``.
"""
