"""The statistics of an untrained network, block by block: the only code that traces a network.

Nothing is imported here, so that `statistics.losses` and `statistics.errors` do not load torch.
"""
