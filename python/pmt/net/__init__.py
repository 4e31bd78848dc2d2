"""The quantized graph, its image, and the float graph before quantization."""
