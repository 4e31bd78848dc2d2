"""Before the first step: alignment to new images, and the linear head trained alone."""
