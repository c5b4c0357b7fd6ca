"""What every recipe uses: the backbone, the training loop, the readers of training sets."""
