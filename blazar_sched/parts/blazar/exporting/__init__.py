# SPDX-License-Identifier: Apache-2.0
"""Export of the ledger's leases, hosts and floating IPs to Blazar 18.

The export is the reverse of the import: afterwards an import of Blazar's
database would create what the ledger has. An exported entity keeps its id, and
has the objects in other services by which Blazar starts and ends the entity.
No server is changed. A lease that Blazar cannot have is refused and reported.
"""
