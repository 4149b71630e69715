# SPDX-License-Identifier: Apache-2.0
"""An index kept at the ledger's revision.

Used by nova-scheduler's workers, fed over RPC, and by the service itself, fed
from SQL. Nothing here imports Nova, the service, a database or a web
framework.
"""
