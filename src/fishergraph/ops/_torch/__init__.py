"""The plain PyTorch engine as one record."""
