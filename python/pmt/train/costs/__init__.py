"""The cost of methods: multiply-accumulates and memory, counted."""
