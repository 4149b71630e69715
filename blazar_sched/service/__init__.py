# SPDX-License-Identifier: Apache-2.0
"""The reservation service.

Dependencies between its parts are one-way: api and manager are above
resources, clients and the ledger. api and manager communicate over RPC only.
"""
