"""The store that several processes and machines share: values with versions, leases, logs and channels.

What lies in it is decided by whoever uses it. `opening.open_store` opens the one of the config.
"""
