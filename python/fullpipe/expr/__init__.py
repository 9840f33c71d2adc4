"""The expression language of metrics, sweeps and claims."""
