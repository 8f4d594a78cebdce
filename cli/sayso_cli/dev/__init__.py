"""`sayso dev`: the same manifests, compile step, runtime and ledger as on a cluster, on one machine."""
