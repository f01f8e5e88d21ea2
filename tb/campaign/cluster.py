def cluster_named(cluster, workers): raise NotImplementedError
