"""The GPU acceptance run: the speed of both engine profiles on one NVIDIA GPU."""
