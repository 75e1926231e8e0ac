"""What a request means: the meta-tools, and how a call finds its upstream."""
