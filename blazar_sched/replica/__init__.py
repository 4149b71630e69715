# SPDX-License-Identifier: Apache-2.0
"""A timeline index that is kept at the revision of the ledger.

The index is used by nova-scheduler's workers, which feed it over RPC, and by
the service itself, which feeds it from SQL. No module of this package imports
Nova, the service, a database or a web framework.
"""
