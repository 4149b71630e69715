# SPDX-License-Identifier: Apache-2.0
"""The reservation service.

Its parts know each other one way: api and manager above resources, clients
and the ledger. api and manager meet over RPC only.
"""
