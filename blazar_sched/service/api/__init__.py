# SPDX-License-Identifier: Apache-2.0
"""The REST API, compatible with Blazar's own clients.

The API holds no state and no database: every response comes from the manager,
by RPC. `routes` has all routes in one table, `deploy` the layers in front of
them; each noun has one file here, in ``schemas``, in ``views`` and in the
policies.
"""
