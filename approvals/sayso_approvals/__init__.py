"""The domain of approvals: judging a tool call, deciding it once, and running it at most once.

Nothing here knows Kubernetes or an agent framework.
"""
