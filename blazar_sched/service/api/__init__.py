# SPDX-License-Identifier: Apache-2.0
"""The REST API, compatible with Blazar's own clients.

Holds no state and no database: every answer comes from the manager, by RPC.
`routes` is the whole surface in one table, `deploy` the layers in front of
it; each noun has one file here, in ``schemas``, in ``views`` and in the
policies.
"""
