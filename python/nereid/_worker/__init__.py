"""What each worker process is at first: `zygote.py` warms one module and forks a jailed child for each
request."""
