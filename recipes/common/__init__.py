"""What every recipe uses: the backbone, the training loop and the readers of training sets."""
