"""The custom resources of `sayso.dev/v1alpha1` as pydantic models, and what is derived from them alone."""
